// The formats of image files.
#include "absl/strings/match.h"
#include "gradflow/io/image_codecs.h"

namespace gradflow::internal {

ImageFormat ImageFormatOf(absl::string_view bytes) {
  if (absl::StartsWith(bytes, "\x89PNG\r\n\x1a\n")) return ImageFormat::kPng;
  if (absl::StartsWith(bytes, "\xff\xd8\xff")) return ImageFormat::kJpeg;
  if (absl::StartsWith(bytes, "GIF8")) return ImageFormat::kGif;
  if (absl::StartsWith(bytes, "BM")) return ImageFormat::kBmp;
  if (bytes.size() >= 12 && absl::StartsWith(bytes, "RIFF") && bytes.substr(8, 4) == "WEBP")
    return ImageFormat::kWebP;
  return ImageFormat::kUnknown;
}

}  // namespace gradflow::internal
