#include "gradflow/ops/linalg/openmp.h"

#include <dlfcn.h>

namespace gradflow {
namespace {

// Functions of the OpenMP library that oneDNN or the BLAS has loaded. They are not weak references,
// because a linker sets these to null in a program that does not link OpenMP.
struct OpenMp {
  int (*get_max_threads)() = nullptr;
  void (*set_num_threads)(int) = nullptr;
};

const OpenMp& FindOpenMp() {
  static const OpenMp found = [] {
    OpenMp functions;
    functions.get_max_threads =
        reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
    functions.set_num_threads =
        reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
    return functions.set_num_threads == nullptr ? OpenMp() : functions;
  }();
  return found;
}

}  // namespace

int OpenMpThreads() {
  const OpenMp& openmp = FindOpenMp();
  return openmp.get_max_threads == nullptr ? 0 : openmp.get_max_threads();
}

void SetOpenMpThreads(int threads) {
  const OpenMp& openmp = FindOpenMp();
  if (openmp.set_num_threads != nullptr) openmp.set_num_threads(threads);
}

}  // namespace gradflow
