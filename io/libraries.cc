#include "gradflow/io/libraries.h"

#include <zlib.h>

#include <string>

#include "absl/strings/str_cat.h"

// The build defines GRADFLOW_HAS_IMAGES if it contains ops for image files.
#ifdef GRADFLOW_HAS_IMAGES
#include <gif_lib.h>
#include <png.h>
#include <webp/decode.h>

#include <cstdio>

// Included after <cstdio>, because jpeglib.h needs FILE.
#include <jpeglib.h>
#endif

namespace gradflow {

#ifdef GRADFLOW_HAS_IMAGES
namespace {

std::string JpegVersion() {
#ifdef LIBJPEG_TURBO_VERSION_NUMBER
  constexpr int kVersion = LIBJPEG_TURBO_VERSION_NUMBER;
  return absl::StrCat("turbo ", kVersion / 1000000, ".", kVersion / 1000 % 1000, ".",
                      kVersion % 1000);
#else
  return absl::StrCat(JPEG_LIB_VERSION / 10, ".", JPEG_LIB_VERSION % 10);
#endif
}

std::string WebPVersion() {
  const int version = WebPGetDecoderVersion();
  return absl::StrCat(version >> 16, ".", version >> 8 & 255, ".", version & 255);
}

}  // namespace

std::vector<Library> FileLibraries() {
  return {{"zlib", zlibVersion()},
          {"libpng", png_get_libpng_ver(nullptr)},
          {"libjpeg", JpegVersion()},
          {"giflib", absl::StrCat(GIFLIB_MAJOR, ".", GIFLIB_MINOR, ".", GIFLIB_RELEASE)},
          {"libwebp", WebPVersion()}};
}
#else
std::vector<Library> FileLibraries() { return {{"zlib", zlibVersion()}, {"image files", "none"}}; }
#endif

}  // namespace gradflow
