// Products of small matrices and of integer matrices, with sums in registers.
#ifndef GRADFLOW_OPS_LINALG_REGISTER_PRODUCT_H_
#define GRADFLOW_OPS_LINALG_REGISTER_PRODUCT_H_

#include <cstdint>
#include <vector>

#include "gradflow/core/types.h"
#include "gradflow/ops/linalg/blas.h"

namespace gradflow {

// Computes c[m,n] = a[m,k] * b[k,n], or c += a * b if `add` is true, with the bits of
// MultiplySmall() (plain_product.h). Integers wrap around. `scratch` keeps memory between calls. T
// is a type of real or complex floating-point numbers or an unsigned integer. REQUIRES: m, n, k > 0
template <typename T>
void MultiplyInRegisters(int64_t m, int64_t n, int64_t k, BlasMatrix<const T> a,
                         BlasMatrix<const T> b, BlasMatrix<T> c, bool add, std::vector<T>* scratch);

// Returns the number of columns that MultiplyInRegisters() computes together.
template <typename T>
constexpr int64_t RegisterColumns() {
  constexpr int64_t kVectorBytes = 32;
  return kVectorBytes / static_cast<int64_t>(sizeof(T)) * (kIsComplex<T> ? 2 : 1);
}

}  // namespace gradflow

#endif  // GRADFLOW_OPS_LINALG_REGISTER_PRODUCT_H_
