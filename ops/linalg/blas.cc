#include "gradflow/ops/linalg/blas.h"

#include <cblas.h>

#include "gradflow/core/mutex.h"
#include "gradflow/ops/linalg/openmp.h"
#include "gradflow/ops/linalg/row_product_simd.h"

#ifdef GRADFLOW_HAS_ONEDNN
#include "oneapi/dnnl/dnnl.h"
#endif

extern "C" {
#ifndef OPENBLAS_VERSION
// Not in this cblas.h, but possibly in the library that is loaded at run time.
__attribute__((weak)) int openblas_get_parallel(void);
__attribute__((weak)) void openblas_set_num_threads(int);
#endif
}

namespace gradflow {
namespace {

enum class Threading {
  // Calls may run concurrently, each on its thread.
  kConcurrent,
  // OpenBLAS for OpenMP: every call queries OpenMP for the number of threads.
  kOpenMp,
  // OpenBLAS without locks: calls must be serialized.
  kSerialized,
};

Threading AskBlas() {
#ifndef OPENBLAS_VERSION
  if (openblas_get_parallel == nullptr) return Threading::kConcurrent;
#endif
  const int parallel = openblas_get_parallel();
  if (parallel == 0) return Threading::kSerialized;
  openblas_set_num_threads(1);
  return parallel == 2 && OpenMpThreads() > 0 ? Threading::kOpenMp : Threading::kConcurrent;
}

Threading BlasThreading() {
  static const Threading threading = AskBlas();
  return threading;
}

// Calls `gemm` as the BLAS requires.
template <typename F>
void Call(const F& gemm) {
  switch (BlasThreading()) {
    case Threading::kConcurrent:
      return gemm();
    case Threading::kOpenMp: {
      const OneOpenMpThread one_thread;
      return gemm();
    }
    case Threading::kSerialized: {
      static auto* const mutex = new Mutex;
      MutexLock lock(mutex);
      return gemm();
    }
  }
}

template <typename T>
CBLAS_TRANSPOSE Transpose(const BlasMatrix<T>& matrix) {
  if (!matrix.transposed) return CblasNoTrans;
  return matrix.conjugated ? CblasConjTrans : CblasTrans;
}

int Int(int64_t value) { return static_cast<int>(value); }

#ifdef GRADFLOW_HAS_ONEDNN

bool HasAvx512() {
#if defined(__x86_64__)
  return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core;
#else
  // oneDNN reports every instruction set of x86 on other processors.
  return false;
#endif
}

// Returns false, without effect, if out of memory.
bool OneDnnGemm(int64_t m, int64_t n, int64_t k, const BlasMatrix<const float>& a,
                const BlasMatrix<const float>& b, const BlasMatrix<float>& c, bool add) {
  const OneOpenMpThread one_thread;
  return dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, 1, a.data,
                    a.stride, b.data, b.stride, add ? 1 : 0, c.data, c.stride) == dnnl_success;
}

#else

bool HasAvx512() { return false; }
bool OneDnnGemm(int64_t, int64_t, int64_t, const BlasMatrix<const float>&,
                const BlasMatrix<const float>&, const BlasMatrix<float>&, bool) {
  return false;
}

#endif

}  // namespace

bool OneDnnHasFastProducts() {
  static const bool fast = HasAvx512();
  return fast;
}

bool BlasIsConcurrent() { return BlasThreading() != Threading::kSerialized; }

void BlasGemm(int64_t m, int64_t n, int64_t k, BlasMatrix<const float> a, BlasMatrix<const float> b,
              BlasMatrix<float> c, bool add) {
  if (m == 1 && !b.transposed) {
    return MultiplyRow(n, k, a.data, a.transposed ? a.stride : 1, b.data, b.stride, c.data, add);
  }
  if (OneDnnHasFastProducts() && OneDnnGemm(m, n, k, a, b, c, add)) return;
  Call([&] {
    cblas_sgemm(CblasRowMajor, Transpose(a), Transpose(b), Int(m), Int(n), Int(k), 1, a.data,
                Int(a.stride), b.data, Int(b.stride), add ? 1 : 0, c.data, Int(c.stride));
  });
}

void BlasGemm(int64_t m, int64_t n, int64_t k, BlasMatrix<const double> a,
              BlasMatrix<const double> b, BlasMatrix<double> c, bool add) {
  Call([&] {
    cblas_dgemm(CblasRowMajor, Transpose(a), Transpose(b), Int(m), Int(n), Int(k), 1, a.data,
                Int(a.stride), b.data, Int(b.stride), add ? 1 : 0, c.data, Int(c.stride));
  });
}

void BlasGemm(int64_t m, int64_t n, int64_t k, BlasMatrix<const complex64> a,
              BlasMatrix<const complex64> b, BlasMatrix<complex64> c, bool add) {
  const complex64 one = 1;
  const complex64 scale = add ? 1 : 0;
  Call([&] {
    cblas_cgemm(CblasRowMajor, Transpose(a), Transpose(b), Int(m), Int(n), Int(k), &one, a.data,
                Int(a.stride), b.data, Int(b.stride), &scale, c.data, Int(c.stride));
  });
}

void BlasGemm(int64_t m, int64_t n, int64_t k, BlasMatrix<const complex128> a,
              BlasMatrix<const complex128> b, BlasMatrix<complex128> c, bool add) {
  const complex128 one = 1;
  const complex128 scale = add ? 1 : 0;
  Call([&] {
    cblas_zgemm(CblasRowMajor, Transpose(a), Transpose(b), Int(m), Int(n), Int(k), &one, a.data,
                Int(a.stride), b.data, Int(b.stride), &scale, c.data, Int(c.stride));
  });
}

}  // namespace gradflow
