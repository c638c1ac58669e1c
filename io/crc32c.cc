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
__attribute__((target("sse4.2"))) uint32_t ExtendByInstruction(uint32_t crc,
                                                               absl::string_view bytes) {
  const char* at = bytes.data();
  size_t left = bytes.size();
  uint64_t state = ~crc;
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
