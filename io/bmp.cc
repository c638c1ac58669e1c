// Uncompressed BMP files with 8, 24 and 32 bits.
#include <cstdlib>
#include <cstring>

#include "gradflow/core/status.h"
#include "gradflow/io/image_codecs.h"

namespace gradflow::internal {
namespace {

// Reads a little-endian number.
int32_t ReadInt32(absl::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t k = 4; k-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[at + k]);
  int32_t result;
  std::memcpy(&result, &value, sizeof(result));
  return result;
}

template <typename... Args>
absl::Status Invalid(const Args&... args) {
  return errors::InvalidArgument("Invalid BMP data: ", args...);
}

// Converts a pixel of gray, BGR or BGRA to gray, RGB or RGBA.
void ConvertPixel(const uint8_t* from, int64_t from_channels, int64_t to_channels, uint8_t* to) {
  if (to_channels == 1) {
    to[0] = from[0];
    return;
  }
  for (int c = 0; c < 3; ++c) to[c] = from_channels == 1 ? from[0] : from[2 - c];
  if (to_channels == 4) to[3] = from_channels == 4 ? from[3] : 255;
}

}  // namespace

absl::Status DecodeBmp(absl::string_view bytes, int channels, ImageMemory memory) {
  constexpr size_t kMinSize = 32;
  if (bytes.size() < kMinSize) {
    return Invalid("expected a header of ", kMinSize, " bytes, but there are ", bytes.size());
  }
  const int64_t header = ReadInt32(bytes, 10);
  const int64_t columns = ReadInt32(bytes, 18);
  const int64_t height = ReadInt32(bytes, 22);
  const int64_t bits = static_cast<uint8_t>(bytes[28]) | static_cast<uint8_t>(bytes[29]) << 8;
  const int64_t found = bits / 8;
  if (found != 1 && found != 3 && found != 4) {
    return Invalid("a pixel has ", bits, " bits, expected 8, 24 or 32");
  }
  // A positive height means that the last row comes first.
  const int64_t rows = std::abs(height);
  if (columns <= 0 || rows == 0 || header < 0) {
    return Invalid("the image has ", columns, " x ", height, " pixels behind ", header, " bytes");
  }
  if (columns >= kMaxImageElements / 4 / rows) {
    return Invalid("an image of ", columns, " x ", rows, " pixels is too large");
  }
  // Rows are padded to four bytes.
  const int64_t row_bytes = (found * columns + 3) / 4 * 4;
  if (static_cast<int64_t>(bytes.size()) != header + row_bytes * rows) {
    return Invalid("expected ", header + row_bytes * rows, " bytes, but there are ", bytes.size());
  }
  ImageSize size;
  size.rows = rows;
  size.columns = columns;
  size.channels = channels != 0 ? channels : found;
  GRADFLOW_ASSIGN_OR_RETURN(void* const output, memory.allocate(size));
  uint8_t* to = static_cast<uint8_t*>(output);
  const uint8_t* const pixels = reinterpret_cast<const uint8_t*>(bytes.data()) + header;
  for (int64_t r = 0; r < rows; ++r) {
    const uint8_t* from = pixels + (height < 0 ? r : rows - 1 - r) * row_bytes;
    for (int64_t c = 0; c < columns; ++c, from += found, to += size.channels) {
      ConvertPixel(from, found, size.channels, to);
    }
  }
  return absl::OkStatus();
}

}  // namespace gradflow::internal
