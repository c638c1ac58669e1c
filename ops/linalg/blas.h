// Matrix products on the calling thread, for kernels that split their work with core/parallel.h:
//   - a row of float times a matrix by row_product_simd.h,
//   - others of float by oneDNN on processors with AVX-512, and on all in a build without a BLAS,
//   - the rest by the BLAS, or by plain_product.h in a build without one.
// Also how to call LAPACK, which calls the BLAS.
#ifndef GRADFLOW_OPS_LINALG_BLAS_H_
#define GRADFLOW_OPS_LINALG_BLAS_H_

#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/functional/function_ref.h"
#include "gradflow/core/types.h"

namespace gradflow {

// A view of a row-major matrix whose row i starts at data + i * stride.
template <typename T>
struct BlasMatrix {
  T* data;
  int64_t stride;
  // The view is the transpose of the matrix in memory. Must be false for results.
  bool transposed = false;
  // The elements are conjugated. REQUIRES: transposed, unless the elements are real
  bool conjugated = false;

  // Returns the block of the view that starts at `row` and `column`.
  BlasMatrix Block(int64_t row, int64_t column) const {
    return {data + (transposed ? column * stride + row : row * stride + column), stride, transposed,
            conjugated};
  }
};

// Returns the name and version of the BLAS that is loaded, such as "BLIS 0.9.0"; "" in a build
// without one.
std::string BlasName();

// Returns true if concurrent calls of the BLAS run in parallel. Debian's serial build of OpenBLAS
// shares scratch memory between concurrent calls, which makes their results wrong; CallBlas
// serializes calls of it. The first call of either function sets a multithreaded BLAS to one
// thread.
bool BlasIsConcurrent();

// Calls `fn`, which calls the BLAS or LAPACK, so that both compute on the calling thread.
// REQUIRES: `fn` does not use the functions of this header
void CallBlas(absl::FunctionRef<void()> fn);

// Returns true if oneDNN has code for AVX-512 on this processor, or if there is oneDNN and no BLAS.
// BlasGemm then computes products of float by oneDNN, unless that is out of memory. With AVX-512,
// oneDNN is faster than BLIS, above all on processors that BLIS does not recognize: it then uses
// AVX2. If both use AVX2, they are about equally fast. docs/performance.md has figures, under
// "products".
bool OneDnnHasFastProducts();

// Returns true if concurrent calls of BlasGemm for elements of type T run in parallel.
template <typename T>
bool GemmIsConcurrent() {
  return BlasIsConcurrent() || (std::is_same_v<T, float> && OneDnnHasFastProducts());
}

// Computes c[m,n] = a[m,k] * b[k,n], or c += a * b if `add`.
// REQUIRES: m, n, k > 0; they and all strides fit in an int
void BlasGemm(int64_t m, int64_t n, int64_t k, BlasMatrix<const float> a, BlasMatrix<const float> b,
              BlasMatrix<float> c, bool add = false);
void BlasGemm(int64_t m, int64_t n, int64_t k, BlasMatrix<const double> a,
              BlasMatrix<const double> b, BlasMatrix<double> c, bool add = false);
void BlasGemm(int64_t m, int64_t n, int64_t k, BlasMatrix<const complex64> a,
              BlasMatrix<const complex64> b, BlasMatrix<complex64> c, bool add = false);
void BlasGemm(int64_t m, int64_t n, int64_t k, BlasMatrix<const complex128> a,
              BlasMatrix<const complex128> b, BlasMatrix<complex128> c, bool add = false);

// Computes c -= a * b. REQUIRES: as BlasGemm
void BlasSubtract(int64_t m, int64_t n, int64_t k, BlasMatrix<const double> a,
                  BlasMatrix<const double> b, BlasMatrix<double> c);
void BlasSubtract(int64_t m, int64_t n, int64_t k, BlasMatrix<const complex128> a,
                  BlasMatrix<const complex128> b, BlasMatrix<complex128> c);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_LINALG_BLAS_H_
