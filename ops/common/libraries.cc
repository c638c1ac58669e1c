#include "gradflow/ops/common/libraries.h"

#include <hwy/highway.h>
#include <sleef.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "gradflow/ops/linalg/blas.h"

#ifdef GRADFLOW_HAS_ONEDNN
#include "oneapi/dnnl/dnnl.h"
#endif

namespace gradflow {
namespace {

constexpr char kNone[] = "none";

std::string OneDnnVersion() {
#ifdef GRADFLOW_HAS_ONEDNN
  const dnnl_version_t* const version = dnnl_version();
  return absl::StrCat(version->major, ".", version->minor, ".", version->patch);
#else
  return kNone;
#endif
}

}  // namespace

std::vector<Library> KernelLibraries() {
  const std::string blas = BlasName();
  return {{"Highway", absl::StrCat(HWY_MAJOR, ".", HWY_MINOR, ".", HWY_PATCH)},
          {"SLEEF", absl::StrCat(SLEEF_VERSION_MAJOR, ".", SLEEF_VERSION_MINOR, ".",
                                 SLEEF_VERSION_PATCHLEVEL)},
          {"oneDNN", OneDnnVersion()},
          {"BLAS", blas.empty() ? kNone : blas}};
}

}  // namespace gradflow
