#include "gradflow/core/libraries.h"

#include <google/protobuf/stubs/common.h>
#include <oneapi/tbb/version.h>

#include "absl/base/config.h"
#include "absl/strings/str_cat.h"

namespace gradflow {
namespace {

std::string AbseilVersion() {
#ifdef ABSL_LTS_RELEASE_VERSION
  return absl::StrCat(ABSL_LTS_RELEASE_VERSION, ".", ABSL_LTS_RELEASE_PATCH_LEVEL);
#else
  return "between releases";
#endif
}

std::string ProtobufVersion() {
  constexpr int kVersion = GOOGLE_PROTOBUF_VERSION;
  return absl::StrCat(kVersion / 1000000, ".", kVersion / 1000 % 1000, ".", kVersion % 1000);
}

}  // namespace

std::vector<Library> CoreLibraries() {
  return {{"Abseil", AbseilVersion()},
          {"Protocol Buffers", ProtobufVersion()},
          {"oneTBB", TBB_runtime_version()}};
}

}  // namespace gradflow
