// The codecs of a build without ops for image files: each returns UNIMPLEMENTED.
#include "gradflow/core/status.h"
#include "gradflow/io/image_codecs.h"

namespace gradflow::internal {
namespace {

absl::Status LeftOut() {
  return errors::Unimplemented(
      "this build of gradflow has no image files; add DecodeImage to GRADFLOW_OPS when you run "
      "CMake");
}

}  // namespace

absl::Status DecodePng(absl::string_view, int, int, ImageMemory, StopToken*) { return LeftOut(); }
absl::Status EncodePng(const void*, const ImageSize&, int, int, std::string*, StopToken*) {
  return LeftOut();
}
absl::Status DecodeJpeg(absl::string_view, const JpegOptions&, ImageMemory, StopToken*) {
  return LeftOut();
}
absl::Status EncodeJpeg(const uint8_t*, const ImageSize&, const JpegEncoding&, std::string*,
                        StopToken*) {
  return LeftOut();
}
absl::Status DecodeGif(absl::string_view, bool, ImageMemory, StopToken*) { return LeftOut(); }
absl::Status DecodeWebP(absl::string_view, int, bool, ImageMemory, StopToken*) { return LeftOut(); }
absl::Status DecodeBmp(absl::string_view, int, ImageMemory) { return LeftOut(); }

}  // namespace gradflow::internal
