// Functions of matrices: MatrixExponential, MatrixLogarithm and MatrixSquareRoot.
#include <Eigen/Eigenvalues>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <unsupported/Eigen/MatrixFunctions>

#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/linalg/eigen.h"
#include "gradflow/ops/linalg/matrices.h"

namespace gradflow::matrix_functions {
namespace {

struct Exponential {
  static constexpr double kOperations = 30;
  template <typename T>
  static EigenMatrix<T> Of(const EigenMatrix<T>& matrix) {
    return matrix.exp();
  }
};

struct SquareRoot {
  static constexpr double kOperations = 25;
  template <typename T>
  static EigenMatrix<T> Of(const EigenMatrix<T>& matrix) {
    using Matrix = EigenMatrix<T>;
    if constexpr (Eigen::NumTraits<T>::IsComplex) {
      return matrix.sqrt();
    } else {
      const int64_t n = matrix.rows();
      const Eigen::RealSchur<Matrix> schur(matrix);
      if (schur.info() != Eigen::Success || HasNegativeEigenvalue(schur.matrixT())) {
        return Matrix::Constant(n, n, std::numeric_limits<T>::quiet_NaN());
      }
      Matrix root = Matrix::Zero(n, n);
      Eigen::matrix_sqrt_quasi_triangular(schur.matrixT(), root);
      return schur.matrixU() * root * schur.matrixU().adjoint();
    }
  }

  // Returns whether the matrix, whose blocks of two rows have conjugate eigenvalues, has no real
  // root. Eigen has an assertion for it.
  template <typename T>
  static bool HasNegativeEigenvalue(const EigenMatrix<T>& quasi_triangular) {
    const int64_t n = quasi_triangular.rows();
    for (int64_t i = 0; i < n; ++i) {
      const bool is_block = i + 1 < n && quasi_triangular(i + 1, i) != 0;
      if (!is_block && !(quasi_triangular(i, i) >= 0)) return true;
      if (is_block) ++i;
    }
    return false;
  }
};

// The Schur decomposition, whose triangular matrix U is brought near to 1 by k square roots. Then
// log(U) = 2^k log(1 + X) with X = U^(1/2^k) - 1, and log(1 + X) is the integral of
// X (1 + t X)^-1 over t in [0, 1], by Gauss-Legendre quadrature.
struct Logarithm {
  static constexpr double kOperations = 60;
  static EigenMatrix<complex128> Of(const EigenMatrix<complex128>& matrix) {
    using Matrix = EigenMatrix<complex128>;
    // Square roots of a number that is not 0 come near to 1 in fewer steps.
    constexpr int kMaxRoots = 64;
    constexpr double kNear = 0.25;
    // Nodes and weights on [-1, 1], of one sign; the other half is symmetric.
    constexpr double kNodes[] = {0.1834346424956498, 0.5255324099163290, 0.7966664774136267,
                                 0.9602898564975363};
    constexpr double kWeights[] = {0.3626837833783620, 0.3137066458778873, 0.2223810344533745,
                                   0.1012285362903763};
    const int64_t n = matrix.rows();
    const Matrix nan = Matrix::Constant(n, n, std::numeric_limits<double>::quiet_NaN());
    const Eigen::ComplexSchur<Matrix> schur(matrix);
    if (schur.info() != Eigen::Success) return nan;
    Matrix triangle = schur.matrixT().triangularView<Eigen::Upper>();
    if ((triangle.diagonal().array() == complex128(0)).any()) return nan;
    const Matrix identity = Matrix::Identity(n, n);
    int roots = 0;
    // The condition is also false for NaN.
    while (!((triangle - identity).cwiseAbs().colwise().sum().maxCoeff() < kNear)) {
      if (++roots > kMaxRoots || !triangle.allFinite()) return nan;
      Matrix root = Matrix::Zero(n, n);
      Eigen::matrix_sqrt_triangular(triangle, root);
      triangle = root.triangularView<Eigen::Upper>();
    }
    const Matrix x = triangle - identity;
    Matrix log = Matrix::Zero(n, n);
    for (int i = 0; i < 4; ++i) {
      for (const double sign : {-1.0, 1.0}) {
        const double t = 0.5 * (1 + sign * kNodes[i]);
        const Matrix scaled = identity + t * x;
        log += 0.5 * kWeights[i] * scaled.triangularView<Eigen::Upper>().solve(x);
      }
    }
    log *= std::ldexp(1.0, roots);
    return schur.matrixU() * log.triangularView<Eigen::Upper>() * schur.matrixU().adjoint();
  }
};

template <typename F>
absl::Status Compute(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  GRADFLOW_RETURN_IF_ERROR(CheckTypes(ctx, 1, ctx.expected_output_dtype(0)));
  GRADFLOW_RETURN_IF_ERROR(CheckSquare("input", input.shape()));
  Tensor* out = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, input.shape(), &out));
  const MatrixBatch batch(input.shape());
  const double n = static_cast<double>(batch.rows);
  absl::Status status;
  const auto compute = [&](auto tag) {
    using T = typename decltype(tag)::type;
    status = ForEachMatrix(ctx, batch.count, F::kOperations * n * n * n,
                           8 * sizeof(complex128) * n * n, [&](int64_t i) {
                             const EigenMatrix<T> matrix = LoadMatrix<T>(input, i);
                             if (matrix.allFinite()) {
                               StoreMatrix<T>(F::Of(matrix), out, i);
                             } else {
                               FillMatrix(std::numeric_limits<double>::quiet_NaN(), out, i);
                             }
                             return absl::OkStatus();
                           });
  };
  if constexpr (std::is_same_v<F, Logarithm>) {
    compute(TypeTag<complex128>());
  } else {
    DispatchWide(input.dtype(), compute);
  }
  return status;
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("MatrixExponential")
      .Group("linalg_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: {double, float, half, complex64, complex128}")
      .Shape(SquareShape)
      .Doc(R"(Computes the exponentials of matrices: the sums of their powers divided by factorials.

For a matrix with NaN or infinity, the result is NaN.

input: Square matrices along the last two dimensions.
output: The exponential of each matrix.
T: The type of `input` and `output`; there is no kernel for half.)");
  registry.Op("MatrixLogarithm")
      .Group("linalg_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: {complex64, complex128}")
      .Shape(SquareShape)
      .Doc(R"(Computes the principal logarithms of matrices.

The exponential of the result is the input. For a matrix that is singular, or has NaN or infinity,
the result is NaN.

input: Square matrices along the last two dimensions.
output: The logarithm of each matrix.
T: The type of `input` and `output`.)");
  registry.Op("MatrixSquareRoot")
      .Group("linalg_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: {double, float, half, complex64, complex128}")
      .Shape(SquareShape)
      .Doc(R"(Computes the principal square roots of matrices.

The square of the result is the input. For a real matrix whose root is not real, for some singular
ones, and for those with NaN or infinity, the result has NaN.

input: Square matrices along the last two dimensions.
output: The square root of each matrix.
T: The type of `input` and `output`; there is no kernel for half.)");
  registry.Kernel("MatrixExponential", MakeFunctionKernel<Compute<Exponential>>)
      .Types("T", DataTypesOf(LinalgTypes()));
  registry.Kernel("MatrixLogarithm", MakeFunctionKernel<Compute<Logarithm>>)
      .Types("T", DataTypesOf(ComplexTypes()));
  registry.Kernel("MatrixSquareRoot", MakeFunctionKernel<Compute<SquareRoot>>)
      .Types("T", DataTypesOf(LinalgTypes()));
}

}  // namespace gradflow::matrix_functions
