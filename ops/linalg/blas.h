// Matrix products on the calling thread, for kernels that split their work with core/parallel.h:
//   - row_product_simd.h computes products of a row of floats and a matrix.
//   - oneDNN computes other products of floats, with AVX-512 or in a build without a BLAS.
//   - The BLAS computes all other products; without a BLAS, plain_product.h does.
// Also functions to call LAPACK, which calls the BLAS.
#ifndef GRADFLOW_OPS_LINALG_BLAS_H_
#define GRADFLOW_OPS_LINALG_BLAS_H_

#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/functional/function_ref.h"
#include "gradflow/core/types.h"

namespace gradflow {

// A view of a row-major matrix. Row i starts at data + i * stride.
template <typename T>
struct BlasMatrix {
  T* data;
  int64_t stride;
  // The view is the transpose of the matrix in memory. REQUIRES: false for results
  bool transposed = false;
  // The elements are conjugated. REQUIRES: `transposed` is true, or the elements are real
  bool conjugated = false;

  // Returns the part of the view that starts at `row` and `column`.
  BlasMatrix Block(int64_t row, int64_t column) const {
    return {data + (transposed ? column * stride + row : row * stride + column), stride, transposed,
            conjugated};
  }
};

// Returns the name and version of the loaded BLAS, such as "BLIS 0.9.0"; "" in a build without a
// BLAS.
std::string BlasName();

// Returns true if concurrent calls of the BLAS run in parallel. Debian's serial build of OpenBLAS
// shares scratch memory between concurrent calls, which gives wrong results, so CallBlas serializes
// its calls. The first call of either function sets a multithreaded BLAS to one thread.
bool BlasIsConcurrent();

// Calls `fn`, which may call the BLAS or LAPACK. Both then compute on the calling thread.
// REQUIRES: `fn` does not use the functions of this header
void CallBlas(absl::FunctionRef<void()> fn);

// Returns true if oneDNN has AVX-512 code for this processor, or if the build has oneDNN and no
// BLAS. BlasGemm then computes products of floats with oneDNN, unless oneDNN is out of memory.
// oneDNN is faster than BLIS with AVX-512, above all on processors that BLIS does not recognize,
// because BLIS then uses its AVX2 code. With AVX2, both are about equally fast. docs/performance.md
// has measurements under "products".
bool OneDnnHasFastGemm();

// Returns true if concurrent calls of BlasGemm with elements of type T run in parallel.
template <typename T>
bool GemmIsConcurrent() {
  return BlasIsConcurrent() || (std::is_same_v<T, float> && OneDnnHasFastGemm());
}

// Computes c[m,n] = a[m,k] * b[k,n], or c += a * b if `add` is true.
// REQUIRES: m, n, k > 0, and they and all strides fit in an int
void BlasGemm(int64_t m, int64_t n, int64_t k, BlasMatrix<const float> a, BlasMatrix<const float> b,
              BlasMatrix<float> c, bool add = false);
void BlasGemm(int64_t m, int64_t n, int64_t k, BlasMatrix<const double> a,
              BlasMatrix<const double> b, BlasMatrix<double> c, bool add = false);
void BlasGemm(int64_t m, int64_t n, int64_t k, BlasMatrix<const complex64> a,
              BlasMatrix<const complex64> b, BlasMatrix<complex64> c, bool add = false);
void BlasGemm(int64_t m, int64_t n, int64_t k, BlasMatrix<const complex128> a,
              BlasMatrix<const complex128> b, BlasMatrix<complex128> c, bool add = false);

// Computes c -= a * b. REQUIRES: the conditions of BlasGemm
void BlasSubtract(int64_t m, int64_t n, int64_t k, BlasMatrix<const double> a,
                  BlasMatrix<const double> b, BlasMatrix<double> c);
void BlasSubtract(int64_t m, int64_t n, int64_t k, BlasMatrix<const complex128> a,
                  BlasMatrix<const complex128> b, BlasMatrix<complex128> c);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_LINALG_BLAS_H_
