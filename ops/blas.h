// Products of matrices by the BLAS that the library is linked to, for kernels that split their work
// with core/parallel.h: every call computes on the thread that makes it.
#ifndef GRADFLOW_OPS_BLAS_H_
#define GRADFLOW_OPS_BLAS_H_

#include <cstdint>

#include "gradflow/core/types.h"

namespace gradflow {

// A matrix in row-major order, in which row i begins at data + i * stride.
template <typename T>
struct BlasMatrix {
  T* data;
  int64_t stride;
  // Stands for the transpose of what is in memory. Not for a result.
  bool transposed = false;

  // The block that begins at this row and column, of the matrix that this stands for.
  BlasMatrix Block(int64_t row, int64_t column) const {
    return {data + (transposed ? column * stride + row : row * stride + column), stride,
            transposed};
  }
};

// Whether several threads may call BlasGemm at once with a gain. Debian's serial build of OpenBLAS
// hands the same scratch memory to calls that overlap, so that their results are wrong: there
// BlasGemm lets one call through at a time. The first call of either function asks a BLAS with
// threads of its own to keep to the calling thread.
bool BlasIsConcurrent();

// c[m,n] = a[m,k] * b[k,n], or, if `add`, c + that. REQUIRES: m, n, k > 0; they and all strides fit
// in an int.
void BlasGemm(int64_t m, int64_t n, int64_t k, BlasMatrix<const float> a, BlasMatrix<const float> b,
              BlasMatrix<float> c, bool add = false);
void BlasGemm(int64_t m, int64_t n, int64_t k, BlasMatrix<const double> a,
              BlasMatrix<const double> b, BlasMatrix<double> c, bool add = false);
void BlasGemm(int64_t m, int64_t n, int64_t k, BlasMatrix<const complex64> a,
              BlasMatrix<const complex64> b, BlasMatrix<complex64> c, bool add = false);
void BlasGemm(int64_t m, int64_t n, int64_t k, BlasMatrix<const complex128> a,
              BlasMatrix<const complex128> b, BlasMatrix<complex128> c, bool add = false);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_BLAS_H_
