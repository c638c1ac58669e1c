#include "gradflow/io/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>

namespace gradflow::internal {
namespace {

// The reversed polynomial.
constexpr uint32_t kPolynomial = 0x82f63b78u;

// table[k][b] is the checksum of byte b followed by k bytes of 0.
using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][b] = crc;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (uint32_t b = 0; b < 256; ++b) {
      const uint32_t before = tables[k - 1][b];
      tables[k][b] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

uint32_t Word(const unsigned char* at) {
  return static_cast<uint32_t>(at[0]) | static_cast<uint32_t>(at[1]) << 8 |
         static_cast<uint32_t>(at[2]) << 16 | static_cast<uint32_t>(at[3]) << 24;
}

#if defined(__x86_64__)
// The instruction has a latency of three cycles and can start in every cycle, so three parts of
// this many bytes are computed at once.
constexpr size_t kPartBytes = 1024;

// table[k][b] is the state after kPartBytes bytes of 0 that follow the state b << 8k. The shift is
// linear: the result for a state is the sum of the results for its bytes.
using ShiftTables = std::array<std::array<uint32_t, 256>, 4>;

constexpr ShiftTables MakeShiftTables() {
  std::array<uint32_t, 32> of_bits{};
  for (uint32_t bit = 0; bit < 32; ++bit) {
    uint32_t state = uint32_t{1} << bit;
    for (size_t i = 0; i < kPartBytes; ++i) state = (state >> 8) ^ kTables[0][state & 0xff];
    of_bits[bit] = state;
  }
  ShiftTables tables{};
  for (uint32_t k = 0; k < 4; ++k) {
    for (uint32_t b = 0; b < 256; ++b) {
      uint32_t state = 0;
      for (uint32_t bit = 0; bit < 8; ++bit) {
        if ((b >> bit & 1) != 0) state ^= of_bits[8 * k + bit];
      }
      tables[k][b] = state;
    }
  }
  return tables;
}

constexpr ShiftTables kShiftTables = MakeShiftTables();

// Returns the state after kPartBytes bytes of 0.
uint64_t Shift(uint64_t state) {
  return kShiftTables[0][state & 0xff] ^ kShiftTables[1][state >> 8 & 0xff] ^
         kShiftTables[2][state >> 16 & 0xff] ^ kShiftTables[3][state >> 24 & 0xff];
}

__attribute__((target("sse4.2"))) uint32_t ExtendByInstruction(uint32_t crc,
                                                               absl::string_view bytes) {
  const char* at = bytes.data();
  size_t left = bytes.size();
  uint64_t state = ~crc;
  for (; left >= 3 * kPartBytes; left -= 3 * kPartBytes, at += 3 * kPartBytes) {
    uint64_t second = 0;
    uint64_t third = 0;
    for (size_t i = 0; i < kPartBytes; i += 8) {
      uint64_t words[3];
      std::memcpy(&words[0], at + i, 8);
      std::memcpy(&words[1], at + kPartBytes + i, 8);
      std::memcpy(&words[2], at + 2 * kPartBytes + i, 8);
      state = __builtin_ia32_crc32di(state, words[0]);
      second = __builtin_ia32_crc32di(second, words[1]);
      third = __builtin_ia32_crc32di(third, words[2]);
    }
    state = Shift(Shift(state) ^ second) ^ third;
  }
  for (; left >= 8; left -= 8, at += 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    state = __builtin_ia32_crc32di(state, word);
  }
  auto narrow = static_cast<uint32_t>(state);
  for (; left > 0; --left, ++at) {
    narrow = __builtin_ia32_crc32qi(narrow, static_cast<unsigned char>(*at));
  }
  return ~narrow;
}
#endif

}  // namespace

uint32_t ExtendCrc32cPortable(uint32_t crc, absl::string_view bytes) {
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t left = bytes.size();
  crc = ~crc;
  for (; left >= 8; left -= 8, at += 8) {
    const uint32_t low = crc ^ Word(at);
    const uint32_t high = Word(at + 4);
    crc = kTables[7][low & 0xff] ^ kTables[6][low >> 8 & 0xff] ^ kTables[5][low >> 16 & 0xff] ^
          kTables[4][low >> 24] ^ kTables[3][high & 0xff] ^ kTables[2][high >> 8 & 0xff] ^
          kTables[1][high >> 16 & 0xff] ^ kTables[0][high >> 24];
  }
  for (; left > 0; --left, ++at) crc = (crc >> 8) ^ kTables[0][(crc ^ *at) & 0xff];
  return ~crc;
}

uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return ExtendByInstruction(crc, bytes);
#endif
  return ExtendCrc32cPortable(crc, bytes);
}

}  // namespace gradflow::internal
