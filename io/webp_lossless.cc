#include "gradflow/io/webp_lossless.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/io/image_codecs.h"

namespace gradflow::internal {
namespace {

constexpr int kMaxLength = 15;
constexpr int kLiterals = 256;
// The prefixes of lengths follow the literals in the alphabet of green.
constexpr int kLengthPrefixes = 24;
constexpr int kDistancePrefixes = 40;
constexpr int kMaxCacheBits = 11;

// Reads bits, the lowest of a byte first.
class BitReader {
 public:
  explicit BitReader(absl::string_view bytes) : bytes_(bytes) {}

  // Returns the next `count` bits, at most 32. Bits after the end are zeros.
  uint32_t Read(int count) {
    while (count_ < count) {
      if (at_ == bytes_.size()) {
        is_past_end_ = true;
        count_ = 64;
        break;
      }
      bits_ |= uint64_t{static_cast<uint8_t>(bytes_[at_++])} << count_;
      count_ += 8;
    }
    const auto value = static_cast<uint32_t>(bits_ & ((uint64_t{1} << count) - 1));
    bits_ >>= count;
    count_ -= count;
    return value;
  }
  bool is_past_end() const { return is_past_end_; }

 private:
  const absl::string_view bytes_;
  size_t at_ = 0;
  uint64_t bits_ = 0;
  int count_ = 0;
  bool is_past_end_ = false;
};

// A canonical prefix code.
class PrefixCode {
 public:
  // Sets the length of the code of each symbol; 0 for symbols without a code. Returns false if
  // there are too many or too few codes. A single code takes no bits.
  bool Set(const std::vector<uint8_t>& lengths) {
    std::fill(std::begin(counts_), std::end(counts_), 0);
    for (const uint8_t length : lengths) ++counts_[length];
    counts_[0] = 0;
    int first[kMaxLength + 2] = {};
    int unused = 1;
    for (int length = 1; length <= kMaxLength; ++length) {
      first[length + 1] = first[length] + counts_[length];
      unused = 2 * unused - counts_[length];
      if (unused < 0) return false;
    }
    symbols_.resize(first[kMaxLength + 1]);
    for (size_t symbol = 0; symbol < lengths.size(); ++symbol) {
      if (lengths[symbol] > 0) symbols_[first[lengths[symbol]]++] = static_cast<int>(symbol);
    }
    return unused == 0 || symbols_.size() == 1;
  }
  int Read(BitReader* bits) const {
    if (symbols_.size() == 1) return symbols_[0];
    int code = 0;
    // The first code of this length, and the number of shorter codes.
    int first = 0;
    int shorter = 0;
    for (int length = 1; length <= kMaxLength; ++length) {
      code = code << 1 | static_cast<int>(bits->Read(1));
      if (code - first < counts_[length]) return symbols_[shorter + code - first];
      shorter += counts_[length];
      first = (first + counts_[length]) << 1;
    }
    return 0;  // not reached: the code is complete
  }

 private:
  int counts_[kMaxLength + 1] = {};
  // The symbols in the order of their codes.
  std::vector<int> symbols_;
};

// Reads the code of an alphabet. Returns false if the code is not valid.
bool ReadCode(BitReader* bits, int alphabet, PrefixCode* code) {
  std::vector<uint8_t> lengths(std::max(alphabet, kLiterals));
  if (bits->Read(1) != 0) {
    // One or two symbols.
    const bool has_two = bits->Read(1) != 0;
    lengths[bits->Read(bits->Read(1) != 0 ? 8 : 1)] = 1;
    if (has_two) lengths[bits->Read(8)] = 1;
    lengths.resize(alphabet);
    return code->Set(lengths);
  }
  // The lengths are themselves coded.
  constexpr int kOrder[] = {17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  std::vector<uint8_t> lengths_of_lengths(std::size(kOrder));
  const uint32_t count = bits->Read(4) + 4;
  for (uint32_t i = 0; i < count; ++i) {
    lengths_of_lengths[kOrder[i]] = static_cast<uint8_t>(bits->Read(3));
  }
  PrefixCode length_code;
  if (!length_code.Set(lengths_of_lengths)) return false;
  int left = alphabet;
  if (bits->Read(1) != 0) {
    const int size = 2 + 2 * static_cast<int>(bits->Read(3));
    left = 2 + static_cast<int>(bits->Read(size));
    if (left > alphabet) return false;
  }
  lengths.assign(alphabet, 0);
  uint8_t previous = 8;
  for (int symbol = 0; symbol < alphabet && left > 0; --left) {
    const int length = length_code.Read(bits);
    if (length <= kMaxLength) {
      lengths[symbol++] = static_cast<uint8_t>(length);
      if (length != 0) previous = static_cast<uint8_t>(length);
      continue;
    }
    // 16 repeats the previous length; 17 and 18 stand for zeros.
    const int repeats = length == 16   ? 3 + static_cast<int>(bits->Read(2))
                        : length == 17 ? 3 + static_cast<int>(bits->Read(3))
                                       : 11 + static_cast<int>(bits->Read(7));
    if (repeats > alphabet - symbol) return false;
    std::fill_n(lengths.begin() + symbol, repeats, length == 16 ? previous : uint8_t{0});
    symbol += repeats;
  }
  return code->Set(lengths);
}

// Reads the number of a length or distance after its prefix, at most 2^20.
int64_t ReadNumber(BitReader* bits, int prefix) {
  if (prefix < 4) return prefix + 1;
  const int extra = (prefix - 2) >> 1;
  return (int64_t{2 + (prefix & 1)} << extra) + bits->Read(extra) + 1;
}

// Returns the distance of a code. The first codes stand for near pixels.
int64_t Distance(int64_t code, int64_t columns) {
  // Each entry has the number of rows above in the upper four bits, and 8 minus the number of
  // columns to the left in the lower four bits.
  constexpr uint8_t kNear[] = {
      0x18, 0x07, 0x17, 0x19, 0x28, 0x06, 0x27, 0x29, 0x16, 0x1a, 0x26, 0x2a, 0x38, 0x05, 0x37,
      0x39, 0x15, 0x1b, 0x36, 0x3a, 0x25, 0x2b, 0x48, 0x04, 0x47, 0x49, 0x14, 0x1c, 0x35, 0x3b,
      0x46, 0x4a, 0x24, 0x2c, 0x58, 0x45, 0x4b, 0x34, 0x3c, 0x03, 0x57, 0x59, 0x13, 0x1d, 0x56,
      0x5a, 0x23, 0x2d, 0x44, 0x4c, 0x55, 0x5b, 0x33, 0x3d, 0x68, 0x02, 0x67, 0x69, 0x12, 0x1e,
      0x66, 0x6a, 0x22, 0x2e, 0x54, 0x5c, 0x43, 0x4d, 0x65, 0x6b, 0x32, 0x3e, 0x78, 0x01, 0x77,
      0x79, 0x53, 0x5d, 0x11, 0x1f, 0x64, 0x6c, 0x42, 0x4e, 0x76, 0x7a, 0x21, 0x2f, 0x75, 0x7b,
      0x31, 0x3f, 0x63, 0x6d, 0x52, 0x5e, 0x00, 0x74, 0x7c, 0x41, 0x4f, 0x10, 0x20, 0x62, 0x6e,
      0x30, 0x73, 0x7d, 0x51, 0x5f, 0x40, 0x72, 0x7e, 0x61, 0x6f, 0x50, 0x71, 0x7f, 0x60, 0x70};
  constexpr auto kCodes = static_cast<int64_t>(std::size(kNear));
  if (code > kCodes) return code - kCodes;
  const int near = kNear[code - 1];
  return std::max<int64_t>(1, (near >> 4) * columns + 8 - (near & 15));
}

absl::Status Invalid() {
  return errors::InvalidArgument("Invalid WebP data: the prefix codes cannot be read");
}

// Reads the number of bits of the color cache; 0 if there is no cache. Returns false if the number
// is not valid.
bool ReadCacheBits(BitReader* bits, int* cache_bits) {
  *cache_bits = 0;
  if (bits->Read(1) == 0) return true;
  *cache_bits = static_cast<int>(bits->Read(4));
  return *cache_bits >= 1 && *cache_bits <= kMaxCacheBits;
}

// Reads an image with a single group of prefix codes as ARGB. Such an image is the data of a
// transform or the prefix image.
absl::StatusOr<std::vector<uint32_t>> ReadImage(BitReader* bits, int64_t columns, int64_t rows,
                                                StopToken* stop) {
  int cache_bits = 0;
  if (!ReadCacheBits(bits, &cache_bits)) return Invalid();
  const int cache_size = cache_bits > 0 ? 1 << cache_bits : 0;
  const int alphabets[] = {kLiterals + kLengthPrefixes + cache_size, kLiterals, kLiterals,
                           kLiterals, kDistancePrefixes};
  PrefixCode codes[std::size(alphabets)];
  for (size_t i = 0; i < std::size(alphabets); ++i) {
    if (!ReadCode(bits, alphabets[i], &codes[i])) return Invalid();
  }
  const auto& [green, red, blue, alpha, distances] = codes;
  const auto slot = [cache_bits](uint32_t pixel) {
    return pixel * 0x1e35a7bdu >> (32 - cache_bits);
  };
  std::vector<uint32_t> pixels(static_cast<size_t>(columns * rows));
  std::vector<uint32_t> cache(cache_size);
  size_t at = 0;
  // The first pixel that is not in the cache yet.
  size_t cached = 0;
  for (size_t checked = 0; at < pixels.size();) {
    if (at - checked >= 4096) {
      checked = at;
      GRADFLOW_RETURN_IF_ERROR(CheckStop(stop));
    }
    if (bits->is_past_end()) return Invalid();
    const int symbol = green.Read(bits);
    if (symbol < kLiterals) {
      uint32_t pixel = static_cast<uint32_t>(red.Read(bits)) << 16;
      pixel |= static_cast<uint32_t>(symbol) << 8;
      pixel |= static_cast<uint32_t>(blue.Read(bits));
      pixel |= static_cast<uint32_t>(alpha.Read(bits)) << 24;
      pixels[at++] = pixel;
    } else if (symbol < kLiterals + kLengthPrefixes) {
      const auto length = static_cast<size_t>(ReadNumber(bits, symbol - kLiterals));
      const int64_t code = ReadNumber(bits, distances.Read(bits));
      const auto distance = static_cast<size_t>(Distance(code, columns));
      if (distance > at || length > pixels.size() - at) return Invalid();
      for (size_t i = 0; i < length; ++i, ++at) pixels[at] = pixels[at - distance];
    } else {
      for (; cached < at; ++cached) cache[slot(pixels[cached])] = pixels[cached];
      pixels[at++] = cache[symbol - kLiterals - kLengthPrefixes];
    }
  }
  if (bits->is_past_end()) return Invalid();
  return pixels;
}

int64_t Subsampled(int64_t size, int bits) { return (size + (1 << bits) - 1) >> bits; }

}  // namespace

absl::StatusOr<int64_t> LosslessTableBytes(absl::string_view data, int64_t columns, int64_t rows,
                                           StopToken* stop) {
  BitReader bits(data);
  bool seen[4] = {};
  while (bits.Read(1) != 0) {
    const uint32_t type = bits.Read(2);
    if (seen[type]) return Invalid();
    seen[type] = true;
    constexpr uint32_t kSubtractGreen = 2;
    constexpr uint32_t kColorIndexing = 3;
    if (type == kSubtractGreen) continue;
    if (type == kColorIndexing) {
      const int64_t colors = bits.Read(8) + 1;
      GRADFLOW_RETURN_IF_ERROR(ReadImage(&bits, colors, 1, stop).status());
      // A pixel holds several indices if there are few colors.
      columns = Subsampled(columns, colors > 16 ? 0 : colors > 4 ? 1 : colors > 2 ? 2 : 3);
    } else {
      const int block = static_cast<int>(bits.Read(3)) + 2;
      GRADFLOW_RETURN_IF_ERROR(
          ReadImage(&bits, Subsampled(columns, block), Subsampled(rows, block), stop).status());
    }
  }
  int cache_bits = 0;
  if (!ReadCacheBits(&bits, &cache_bits)) return Invalid();
  // The red and green of each pixel of the prefix image are the number of a group of codes.
  uint32_t last_group = 0;
  if (bits.Read(1) != 0) {
    const int block = static_cast<int>(bits.Read(3)) + 2;
    GRADFLOW_ASSIGN_OR_RETURN(
        const std::vector<uint32_t> prefix_image,
        ReadImage(&bits, Subsampled(columns, block), Subsampled(rows, block), stop));
    for (const uint32_t pixel : prefix_image)
      last_group = std::max(last_group, pixel >> 8 & 0xffff);
  }
  if (bits.is_past_end()) return Invalid();
  // The number of four-byte entries of libwebp's table for the five codes of a group, indexed by
  // the bits of the color cache. The root tables have 8 bits.
  constexpr int64_t kEntries[kMaxCacheBits + 1] = {2954, 2956, 2958, 2962, 2970, 2986,
                                                   3018, 3082, 3212, 3468, 3980, 5004};
  // Covers a group itself, and libwebp's map of the used numbers.
  constexpr int64_t kGroupBytes = 640;
  return (int64_t{last_group} + 1) * (4 * kEntries[cache_bits] + kGroupBytes);
}

}  // namespace gradflow::internal
