#include "gradflow/ops/linalg/blas.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/mutex.h"
#include "gradflow/ops/linalg/openmp.h"
#include "gradflow/ops/linalg/plain_product.h"
#include "gradflow/ops/linalg/row_product_simd.h"

#ifdef GRADFLOW_HAS_ONEDNN
#include "oneapi/dnnl/dnnl.h"
#endif

#ifdef GRADFLOW_HAS_BLAS
#include <cblas.h>
#include <dlfcn.h>

extern "C" {
#ifndef OPENBLAS_VERSION
// The cblas.h of this build is not OpenBLAS's and does not declare these functions, but the library
// that is loaded at run time may define them.
__attribute__((weak)) int openblas_get_parallel(void);
__attribute__((weak)) void openblas_set_num_threads(int);
#endif
}
#endif

namespace gradflow {
namespace {

#ifdef GRADFLOW_HAS_BLAS

enum class Threading {
  // Calls may run concurrently. Each uses only the calling thread.
  kConcurrent,
  // OpenBLAS built for OpenMP: each call asks OpenMP for the number of threads.
  kOpenMp,
  // OpenBLAS built without locks: calls must be serialized.
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

template <typename T>
CBLAS_TRANSPOSE Transpose(const BlasMatrix<T>& matrix) {
  if (!matrix.transposed) return CblasNoTrans;
  return matrix.conjugated ? CblasConjTrans : CblasTrans;
}

int Int(int64_t value) { return static_cast<int>(value); }

// These functions compute c = scale * a * b + c_scale * c.
void Gemm(int64_t m, int64_t n, int64_t k, float scale, const BlasMatrix<const float>& a,
          const BlasMatrix<const float>& b, float c_scale, const BlasMatrix<float>& c) {
  cblas_sgemm(CblasRowMajor, Transpose(a), Transpose(b), Int(m), Int(n), Int(k), scale, a.data,
              Int(a.stride), b.data, Int(b.stride), c_scale, c.data, Int(c.stride));
}

void Gemm(int64_t m, int64_t n, int64_t k, double scale, const BlasMatrix<const double>& a,
          const BlasMatrix<const double>& b, double c_scale, const BlasMatrix<double>& c) {
  cblas_dgemm(CblasRowMajor, Transpose(a), Transpose(b), Int(m), Int(n), Int(k), scale, a.data,
              Int(a.stride), b.data, Int(b.stride), c_scale, c.data, Int(c.stride));
}

void Gemm(int64_t m, int64_t n, int64_t k, complex64 scale, const BlasMatrix<const complex64>& a,
          const BlasMatrix<const complex64>& b, complex64 c_scale, const BlasMatrix<complex64>& c) {
  cblas_cgemm(CblasRowMajor, Transpose(a), Transpose(b), Int(m), Int(n), Int(k), &scale, a.data,
              Int(a.stride), b.data, Int(b.stride), &c_scale, c.data, Int(c.stride));
}

void Gemm(int64_t m, int64_t n, int64_t k, complex128 scale, const BlasMatrix<const complex128>& a,
          const BlasMatrix<const complex128>& b, complex128 c_scale,
          const BlasMatrix<complex128>& c) {
  cblas_zgemm(CblasRowMajor, Transpose(a), Transpose(b), Int(m), Int(n), Int(k), &scale, a.data,
              Int(a.stride), b.data, Int(b.stride), &c_scale, c.data, Int(c.stride));
}

template <typename T>
void Multiply(int64_t m, int64_t n, int64_t k, const BlasMatrix<const T>& a,
              const BlasMatrix<const T>& b, const BlasMatrix<T>& c, bool add) {
  CallBlas([&] { Gemm(m, n, k, T(1), a, b, T(add ? 1 : 0), c); });
}

template <typename T>
void Subtract(int64_t m, int64_t n, int64_t k, const BlasMatrix<const T>& a,
              const BlasMatrix<const T>& b, const BlasMatrix<T>& c) {
  CallBlas([&] { Gemm(m, n, k, T(-1), a, b, T(1), c); });
}

// Returns the function `name` of the loaded BLAS; null if the BLAS does not have it.
template <typename F>
F* FindFunction(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
}

std::string LoadedBlas() {
  if (auto* const version = FindFunction<char*()>("bli_info_get_version_str")) {
    return absl::StrCat("BLIS ", version());
  }
  if (auto* const config = FindFunction<char*()>("openblas_get_config")) {
    // The text is, for example, "OpenBLAS 0.3.21 NO_LAPACKE ...".
    const std::vector<absl::string_view> words = absl::StrSplit(config(), absl::MaxSplits(' ', 2));
    return absl::StrCat(words[0], " ", words.size() > 1 ? words[1] : "");
  }
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&cblas_sgemm), &info) == 0) return "unknown";
  const absl::string_view file = info.dli_fname;
  return std::string(file.substr(file.rfind('/') + 1));
}

#else  // GRADFLOW_HAS_BLAS

template <typename T>
void Multiply(int64_t m, int64_t n, int64_t k, const BlasMatrix<const T>& a,
              const BlasMatrix<const T>& b, const BlasMatrix<T>& c, bool add) {
  MultiplyInTiles(m, n, k, a, b, c, add);
}

template <typename T>
void Subtract(int64_t m, int64_t n, int64_t k, const BlasMatrix<const T>& a,
              const BlasMatrix<const T>& b, const BlasMatrix<T>& c) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t l = 0; l < k; ++l) {
      const T factor = plain_product::Element(a, i, l);
      for (int64_t j = 0; j < n; ++j) {
        *c.Block(i, j).data -= plain_product::Times(factor, plain_product::Element(b, l, j));
      }
    }
  }
}

#endif  // GRADFLOW_HAS_BLAS

#ifdef GRADFLOW_HAS_ONEDNN

bool OneDnnIsBest() {
#if !defined(GRADFLOW_HAS_BLAS)
  return true;
#elif defined(__x86_64__)
  return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core;
#else
  // On other processors, oneDNN claims to support all x86 instruction sets.
  return false;
#endif
}

// Returns false, without other effects, if out of memory.
bool OneDnnGemm(int64_t m, int64_t n, int64_t k, const BlasMatrix<const float>& a,
                const BlasMatrix<const float>& b, const BlasMatrix<float>& c, bool add) {
  const OneOpenMpThread one_thread;
  return dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, 1, a.data,
                    a.stride, b.data, b.stride, add ? 1 : 0, c.data, c.stride) == dnnl_success;
}

#else

bool OneDnnIsBest() { return false; }
bool OneDnnGemm(int64_t, int64_t, int64_t, const BlasMatrix<const float>&,
                const BlasMatrix<const float>&, const BlasMatrix<float>&, bool) {
  return false;
}

#endif

}  // namespace

bool OneDnnHasFastGemm() {
  static const bool fast = OneDnnIsBest();
  return fast;
}

#ifdef GRADFLOW_HAS_BLAS
std::string BlasName() { return LoadedBlas(); }

bool BlasIsConcurrent() { return BlasThreading() != Threading::kSerialized; }

void CallBlas(absl::FunctionRef<void()> fn) {
  switch (BlasThreading()) {
    case Threading::kConcurrent:
      return fn();
    case Threading::kOpenMp: {
      const OneOpenMpThread one_thread;
      return fn();
    }
    case Threading::kSerialized: {
      static auto* const mutex = new Mutex;
      MutexLock lock(mutex);
      return fn();
    }
  }
}
#else
std::string BlasName() { return ""; }

bool BlasIsConcurrent() { return true; }

void CallBlas(absl::FunctionRef<void()> fn) {
  // LAPACK calls the BLAS that it is linked with.
  const OneOpenMpThread one_thread;
  fn();
}
#endif

void BlasGemm(int64_t m, int64_t n, int64_t k, BlasMatrix<const float> a, BlasMatrix<const float> b,
              BlasMatrix<float> c, bool add) {
  if (m == 1 && !b.transposed) {
    return MultiplyRow(n, k, a.data, a.transposed ? a.stride : 1, b.data, b.stride, c.data, add);
  }
  if (OneDnnHasFastGemm() && OneDnnGemm(m, n, k, a, b, c, add)) return;
  Multiply(m, n, k, a, b, c, add);
}

void BlasGemm(int64_t m, int64_t n, int64_t k, BlasMatrix<const double> a,
              BlasMatrix<const double> b, BlasMatrix<double> c, bool add) {
  Multiply(m, n, k, a, b, c, add);
}

void BlasGemm(int64_t m, int64_t n, int64_t k, BlasMatrix<const complex64> a,
              BlasMatrix<const complex64> b, BlasMatrix<complex64> c, bool add) {
  Multiply(m, n, k, a, b, c, add);
}

void BlasGemm(int64_t m, int64_t n, int64_t k, BlasMatrix<const complex128> a,
              BlasMatrix<const complex128> b, BlasMatrix<complex128> c, bool add) {
  Multiply(m, n, k, a, b, c, add);
}

void BlasSubtract(int64_t m, int64_t n, int64_t k, BlasMatrix<const double> a,
                  BlasMatrix<const double> b, BlasMatrix<double> c) {
  Subtract(m, n, k, a, b, c);
}

void BlasSubtract(int64_t m, int64_t n, int64_t k, BlasMatrix<const complex128> a,
                  BlasMatrix<const complex128> b, BlasMatrix<complex128> c) {
  Subtract(m, n, k, a, b, c);
}

}  // namespace gradflow
