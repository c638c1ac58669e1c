// Decoders and encoders of image files: PNG, JPEG, GIF, WebP and BMP. Internal.
//
// Codecs return CANCELLED if `stop`, which may be null, stops the run. The WebP decoder does not
// check `stop` while libwebp decodes a frame. The bytes are untrusted. Decoders check sizes before
// they allocate, and ask the caller for memory (ImageMemory). They return INVALID_ARGUMENT,
// "Invalid PNG data: ...", or the error of the caller's allocation.
#ifndef GRADFLOW_IO_IMAGE_CODECS_H_
#define GRADFLOW_IO_IMAGE_CODECS_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gradflow {

class StopToken;

namespace internal {

enum class ImageFormat { kUnknown, kPng, kJpeg, kGif, kBmp, kWebP };
// Returns the format that the first bytes of a file name.
ImageFormat ImageFormatOf(absl::string_view bytes);

// The size of an image, or of the frames of an animation.
struct ImageSize {
  int64_t frames = 1;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t channels = 0;
};

// The source of a decoder's memory.
struct ImageMemory {
  // Charges the working memory of the decoder, without the image: at least the memory that the
  // library holds at any time. Decoders call it before they allocate, and again when they know
  // more. Each call replaces the charge.
  absl::FunctionRef<absl::Status(int64_t bytes)> charge;
  // Returns memory for the elements of an image of this size, [frames, rows, columns, channels], of
  // uint8, or uint16 for a PNG of 16 bits. Called once.
  absl::FunctionRef<absl::StatusOr<void*>(const ImageSize& size)> allocate;
};
// The maximum memory of a decoder's state, tables and input buffers.
inline constexpr int64_t kDecoderBytes = 1 << 17;

// Images have fewer elements than this.
inline constexpr int64_t kMaxImageElements = int64_t{1} << 31;

// Decodes to `channels` channels (0: as in the file; 1 gray, 2 gray and alpha, 3 RGB, 4 RGBA) of
// `bits` bits, 8 or 16.
absl::Status DecodePng(absl::string_view bytes, int channels, int bits, ImageMemory memory,
                       StopToken* stop = nullptr);
// Appends a file to *bytes. Elements are uint8, or uint16 if bits is 16. `compression` is -1 for
// the default, or 0 to 9. REQUIRES: 1 to 4 channels
absl::Status EncodePng(const void* elements, const ImageSize& size, int bits, int compression,
                       std::string* bytes, StopToken* stop = nullptr);

struct JpegOptions {
  // 1 (gray), 3 (RGB), or 0 for the channels of the file.
  int channels = 0;
  // 1, 2, 4 or 8. The image is scaled by 1 / ratio.
  int ratio = 1;
  bool fancy_upscaling = true;
  // If true, decodes truncated files; libjpeg makes up the missing rows.
  bool recover_truncated = false;
  // The fraction of the rows that a file must have. The elements of missing rows are 0.
  float acceptable_fraction = 1;
  // If true, uses the exact inverse transform instead of the fast inverse transform.
  bool accurate = false;
  // If true, only this part of the image is returned.
  bool crop = false;
  int64_t crop_row = 0;
  int64_t crop_column = 0;
  int64_t crop_rows = 0;
  int64_t crop_columns = 0;
};
absl::Status DecodeJpeg(absl::string_view bytes, const JpegOptions& options, ImageMemory memory,
                        StopToken* stop = nullptr);

struct JpegEncoding {
  // 0 to 100.
  int quality = 95;
  bool progressive = false;
  bool optimize_size = false;
  bool chroma_downsampling = true;
  // 1 for inches, 2 for centimeters.
  int density_unit = 1;
  int x_density = 300;
  int y_density = 300;
  // Stored in the file if it is not empty.
  std::string xmp_metadata;
};
// Appends a file to *bytes. REQUIRES: 1 or 3 channels
absl::Status EncodeJpeg(const uint8_t* elements, const ImageSize& size,
                        const JpegEncoding& encoding, std::string* bytes,
                        StopToken* stop = nullptr);

// Decodes all frames, or the first, to RGB.
absl::Status DecodeGif(absl::string_view bytes, bool all_frames, ImageMemory memory,
                       StopToken* stop = nullptr);

// Decodes an image, or all frames or the first frame of an animation. The file decides the number
// of channels, 3 or 4. It must equal `channels` unless `channels` is 0.
absl::Status DecodeWebP(absl::string_view bytes, int channels, bool all_frames, ImageMemory memory,
                        StopToken* stop = nullptr);

// Decodes to `channels` channels: 3 or 4, or 0 for the channels of the file.
absl::Status DecodeBmp(absl::string_view bytes, int channels, ImageMemory memory);

}  // namespace internal
}  // namespace gradflow

#endif  // GRADFLOW_IO_IMAGE_CODECS_H_
