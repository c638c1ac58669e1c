#include "gradflow/ops/common/libraries.h"

#include <hwy/highway.h>

#include <string>

#include "absl/strings/str_cat.h"

// The build defines GRADFLOW_HAS_<package> for the packages that its ops use.
#ifdef GRADFLOW_HAS_BLAS
#include "gradflow/ops/linalg/blas.h"
#endif
#ifdef GRADFLOW_HAS_LAPACK
#include <lapacke.h>
#endif
#ifdef GRADFLOW_HAS_ONEDNN
#include "oneapi/dnnl/dnnl.h"
#endif
#ifdef GRADFLOW_HAS_SLEEF
#include <sleef.h>
#endif

namespace gradflow {
namespace {

[[maybe_unused]] constexpr char kNone[] = "none";

std::string SleefVersion() {
#ifdef GRADFLOW_HAS_SLEEF
  return absl::StrCat(SLEEF_VERSION_MAJOR, ".", SLEEF_VERSION_MINOR, ".", SLEEF_VERSION_PATCHLEVEL);
#else
  return kNone;
#endif
}

std::string OneDnnVersion() {
#ifdef GRADFLOW_HAS_ONEDNN
  const dnnl_version_t* const version = dnnl_version();
  return absl::StrCat(version->major, ".", version->minor, ".", version->patch);
#else
  return kNone;
#endif
}

std::string BlasVersion() {
#ifdef GRADFLOW_HAS_BLAS
  return BlasName();
#else
  return kNone;
#endif
}

std::string LapackVersion() {
#ifdef GRADFLOW_HAS_LAPACK
  lapack_int major = 0;
  lapack_int minor = 0;
  lapack_int patch = 0;
  LAPACKE_ilaver(&major, &minor, &patch);
  return absl::StrCat(major, ".", minor, ".", patch);
#else
  return kNone;
#endif
}

}  // namespace

std::vector<Library> KernelLibraries() {
  return {{"Highway", absl::StrCat(HWY_MAJOR, ".", HWY_MINOR, ".", HWY_PATCH)},
          {"SLEEF", SleefVersion()},
          {"oneDNN", OneDnnVersion()},
          {"BLAS", BlasVersion()},
          {"LAPACK", LapackVersion()}};
}

}  // namespace gradflow
