// Matrices for the tests of linear algebra.
#ifndef GRADFLOW_TESTS_OPS_LINALG_MATRICES_H_
#define GRADFLOW_TESTS_OPS_LINALG_MATRICES_H_

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gradflow/testing/kernel_test.h"

namespace gradflow {
namespace testing {

// The types of the linear-algebra kernels.
inline constexpr DataType kLinalgTypes[] = {DT_FLOAT, DT_DOUBLE, DT_COMPLEX64, DT_COMPLEX128};

// The accuracy of the decomposition of a small matrix.
inline double LinalgTolerance(DataType dtype) {
  return dtype == DT_FLOAT || dtype == DT_COMPLEX64 ? 2e-5 : 1e-12;
}

// Calls fn(tag, elements) with the elements of a tensor of one of these types.
template <typename F>
void WithElements(Tensor* x, const F& fn) {
  using Types = TypeList<float, double, complex64, complex128>;
  DispatchType(Types(), x->dtype(), [&](auto tag) { fn(x->span<typename decltype(tag)::type>()); });
}

// Returns the products of matrices or of their adjoints. The test of BatchMatMul checks this op.
inline Tensor Times(const Tensor& x, const Tensor& y, bool adj_x = false, bool adj_y = false) {
  const auto product = OpTester("BatchMatMulV2")
                           .Input(x)
                           .Input(y)
                           .Attr("adj_x", adj_x)
                           .Attr("adj_y", adj_y)
                           .RunOne();
  GRADFLOW_EXPECT_OK(product.status());
  return product.ok() ? *product : Tensor();
}

// Returns random matrices [batch..., rows, columns].
inline Tensor RandomMatrices(DataType dtype, const TensorShape& shape, uint32_t seed = 1) {
  return RandomTensor(dtype, shape, -1, 1, seed);
}

// Returns random square matrices with a dominant diagonal. Such matrices are well-conditioned.
inline Tensor RegularMatrices(DataType dtype, TensorShape shape, uint32_t seed = 1) {
  Tensor x = RandomMatrices(dtype, shape, seed);
  const int64_t n = shape.dim_size(shape.dims() - 1);
  WithElements(&x, [&](auto elements) {
    for (int64_t i = 0; i < static_cast<int64_t>(elements.size()); ++i) {
      if (i / n % n == i % n) elements[i] += static_cast<float>(n);
    }
  });
  return x;
}

// Returns random self-adjoint, positive definite matrices.
inline Tensor PositiveMatrices(DataType dtype, TensorShape shape, uint32_t seed = 1) {
  const Tensor x = RegularMatrices(dtype, shape, seed);
  return Times(x, x, false, true);
}

// Returns a copy of `x` with each matrix element replaced by f(row, column, element).
template <typename F>
Tensor MapMatrices(const Tensor& x, const F& f) {
  Tensor y = *x.DeepCopy();
  const int64_t rows = x.dim_size(x.dims() - 2);
  const int64_t columns = x.dim_size(x.dims() - 1);
  WithElements(&y, [&](auto elements) {
    for (int64_t i = 0; i < static_cast<int64_t>(elements.size()); ++i) {
      elements[i] = f(i / columns % rows, i % columns, elements[i]);
    }
  });
  return y;
}

inline Tensor LowerTriangle(const Tensor& x) {
  return MapMatrices(x, [](int64_t i, int64_t j, auto e) { return i >= j ? e : decltype(e)(0); });
}
inline Tensor UpperTriangle(const Tensor& x) {
  return MapMatrices(x, [](int64_t i, int64_t j, auto e) { return i <= j ? e : decltype(e)(0); });
}
// Returns identity matrices of the type and shape of `x`.
inline Tensor IdentityLike(const Tensor& x) {
  return MapMatrices(x, [](int64_t i, int64_t j, auto e) { return decltype(e)(i == j ? 1 : 0); });
}

// Returns diagonal matrices with the last dimension of `x` as diagonals.
inline Tensor DiagonalMatrices(const Tensor& x) {
  TensorShape shape = x.shape();
  const int64_t n = shape.dim_size(shape.dims() - 1);
  shape.AddDim(n);
  Tensor y(x.dtype(), shape);
  Tensor in = x;
  WithElements(&in, [&](auto from) {
    using T = typename decltype(from)::value_type;
    const auto to = y.span<T>();
    for (int64_t i = 0; i < static_cast<int64_t>(to.size()); ++i) {
      to[i] = i / n % n == i % n ? from[i / n] : T(0);
    }
  });
  return y;
}

// Matches a tensor within the tolerance of its type. `scale` is the magnitude of the elements.
inline auto MatricesNear(const Tensor& expected, double scale = 1) {
  const double tolerance = LinalgTolerance(expected.dtype());
  return TensorNear(expected, scale * tolerance, tolerance);
}

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTS_OPS_LINALG_MATRICES_H_
