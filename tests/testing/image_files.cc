#include "tests/testing/image_files.h"

#include <cstddef>
#include <utility>

#include "absl/strings/string_view.h"

namespace gradflow::testing {
namespace {

// Writes bits, the lowest of a byte first.
class BitWriter {
 public:
  void Write(uint32_t value, int count) {
    for (int i = 0; i < count; ++i) {
      if (count_ % 8 == 0) bytes_.push_back('\0');
      bytes_.back() = static_cast<char>(bytes_.back() | (value >> i & 1) << count_ % 8);
      ++count_;
    }
  }
  std::string Finish() { return std::move(bytes_); }

 private:
  std::string bytes_;
  int64_t count_ = 0;
};

// Writes a code with the single symbol 0, which takes no bits.
void WriteSingleCode(BitWriter* bits) { bits->Write(1, 4); }

// Writes a code that maps each of the first 256 symbols to itself, highest bit first. All lengths
// are 8, and the code of the lengths has a single symbol, which takes no bits.
void WriteByteCode(BitWriter* bits) {
  bits->Write(0, 1);
  // The lengths of the lengths 17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7 and 8.
  bits->Write(12 - 4, 4);
  for (int i = 0; i < 12; ++i) bits->Write(i == 11 ? 1 : 0, 3);
  // 256 lengths follow.
  bits->Write(1, 1);
  bits->Write(3, 3);
  bits->Write(256 - 2, 8);
}

void WriteByte(BitWriter* bits, uint32_t value) {
  for (int i = 7; i >= 0; --i) bits->Write(value >> i, 1);
}

std::string LittleEndian(size_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> 8 * i));
  return text;
}

std::string BigEndian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift));
  return bytes;
}

// Computes the CRC-32 of PNG.
uint32_t Crc32(absl::string_view bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc % 2 != 0 ? 0xedb88320u : 0);
  }
  return ~crc;
}

}  // namespace

std::string LosslessWebPData(int columns, int rows, int groups, int cache_bits) {
  BitWriter bits;
  // No transform.
  bits.Write(0, 1);
  bits.Write(cache_bits > 0 ? 1 : 0, 1);
  if (cache_bits > 0) bits.Write(cache_bits, 4);
  // A prefix image with a pixel for each 4 x 4 pixels, and its codes: green, red, blue, alpha,
  // distance.
  bits.Write(1, 1);
  bits.Write(0, 3);
  bits.Write(0, 1);
  WriteByteCode(&bits);
  WriteByteCode(&bits);
  for (int i = 0; i < 3; ++i) WriteSingleCode(&bits);
  const int pixels = (columns + 3) / 4 * ((rows + 3) / 4);
  for (int i = 0; i < pixels; ++i) {
    const uint32_t group = i < groups ? i : groups - 1;
    WriteByte(&bits, group & 255);
    WriteByte(&bits, group >> 8);
  }
  for (int i = 0; i < 5 * groups; ++i) WriteSingleCode(&bits);
  return bits.Finish();
}

std::string LosslessWebPChunk(int columns, int rows, const std::string& data) {
  const size_t header = static_cast<size_t>(rows - 1) << 14 | static_cast<size_t>(columns - 1);
  return WebPChunk("VP8L", "\x2f" + LittleEndian(header, 4) + data);
}

std::string WebPChunk(const std::string& tag, const std::string& content) {
  return tag + LittleEndian(content.size(), 4) + content + std::string(content.size() % 2, '\0');
}

std::string WebPFile(const std::vector<std::string>& chunks) {
  std::string content = "WEBP";
  for (const std::string& chunk : chunks) content += chunk;
  return WebPChunk("RIFF", content);
}

std::string WebPHeaderChunk(int columns, int rows, int flags) {
  return WebPChunk(
      "VP8X", LittleEndian(flags, 4) + LittleEndian(columns - 1, 3) + LittleEndian(rows - 1, 3));
}

std::string WebPFrameChunk(int columns, int rows, const std::string& chunks) {
  return WebPChunk("ANMF", LittleEndian(0, 6) + LittleEndian(columns - 1, 3) +
                               LittleEndian(rows - 1, 3) + LittleEndian(100, 4) + chunks);
}

std::string PngChunk(const std::string& type, const std::string& content) {
  return BigEndian(static_cast<uint32_t>(content.size())) + type + content +
         BigEndian(Crc32(type + content));
}

}  // namespace gradflow::testing
