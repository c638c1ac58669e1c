// Cholesky and CholeskyGrad.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/common/legacy_name.h"
#include "gradflow/ops/linalg/dense.h"
#include "gradflow/ops/linalg/matrices.h"
#include "gradflow/ops/linalg/wide_matrix.h"

namespace gradflow::cholesky {
namespace {

absl::Status Cholesky(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  GRADFLOW_RETURN_IF_ERROR(CheckTypes(ctx, 1, ctx.expected_output_dtype(0)));
  GRADFLOW_RETURN_IF_ERROR(CheckSquare("input", input.shape()));
  Tensor* out = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, input.shape(), &out));
  const MatrixBatch batch(input.shape());
  const double n = static_cast<double>(batch.rows);
  absl::Status status;
  DispatchWide(input.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    status = ForEachMatrix(ctx, batch.count, n * n * n / 3, sizeof(T) * n * n, [&](int64_t i) {
      WideMatrix<T> matrix = LoadMatrix<T>(input, i);
      const bool positive = FactorCholesky(&matrix);
      for (int64_t column = 0; column < batch.columns; ++column) {
        std::fill_n(&matrix(0, column), column, T(0));
        if (!positive) {
          std::fill_n(&matrix(column, column), batch.rows - column,
                      T(std::numeric_limits<double>::quiet_NaN()));
        }
      }
      StoreMatrix(matrix, out, i);
      return absl::OkStatus();
    });
  });
  return status;
}

absl::Status CholeskyGradShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckSquare("l", c.input(0)));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, MergeInputs(c, 0, 1));
  GRADFLOW_RETURN_IF_ERROR(CheckSquare("grad", shape));
  if (!shape.unknown_rank()) {
    const int rank = shape.dims();
    const int64_t n = std::max(shape.dim_size(rank - 2), shape.dim_size(rank - 1));
    shape.set_dim(rank - 2, n);
    shape.set_dim(rank - 1, n);
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// Returns the matrix with zeros below the diagonal.
WideMatrix<double> UpperTriangle(WideMatrix<double> matrix) {
  for (int64_t column = 0; column < matrix.columns(); ++column) {
    std::fill_n(&matrix(column, column) + 1, matrix.rows() - column - 1, 0.0);
  }
  return matrix;
}

// Let G be the gradient of L, and S the lower triangle of L^T G with a halved diagonal. The
// gradient of A = L L^T is then L^-T (S + S^T) L^-1 / 2.
absl::Status CholeskyGrad(KernelContext& ctx) {
  const Tensor& l = ctx.input(0);
  const Tensor& grad = ctx.input(1);
  GRADFLOW_RETURN_IF_ERROR(CheckTypes(ctx, 2, ctx.expected_output_dtype(0)));
  GRADFLOW_RETURN_IF_ERROR(CheckSquare("l", l.shape()));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckSameShape(0, "l", 1, "grad"));
  Tensor* out = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, l.shape(), &out));
  const MatrixBatch batch(l.shape());
  const double n = static_cast<double>(batch.rows);
  return ForEachMatrix(ctx, batch.count, 2 * n * n * n, 5 * sizeof(double) * n * n, [&](int64_t i) {
    using Matrix = WideMatrix<double>;
    const Matrix upper = UpperTriangle(LoadMatrix<double>(l, i, /*adjoint=*/true));
    const Matrix upper_grad = UpperTriangle(LoadMatrix<double>(grad, i, /*adjoint=*/true));
    Matrix middle(batch.rows, batch.columns);
    Multiply<double>({upper.view()}, {upper_grad.view(), /*adjoint=*/true}, middle.view());
    for (int64_t column = 1; column < batch.columns; ++column) {
      for (int64_t row = 0; row < column; ++row) middle(row, column) = middle(column, row);
    }
    SolveTriangular<double>(upper.view(), Triangle::kUpper, middle.view());
    Matrix result = Adjoint(middle);
    SolveTriangular<double>(upper.view(), Triangle::kUpper, result.view());
    for (int64_t column = 0; column < batch.columns; ++column) {
      for (int64_t row = 0; row < batch.rows; ++row) {
        middle(row, column) = 0.25 * (result(row, column) + result(column, row));
      }
    }
    StoreMatrix(middle, out, i);
    return absl::OkStatus();
  });
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("Cholesky")
      .Group("linalg_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: {double, float, half, complex64, complex128}")
      .Shape(SquareShape)
      .Doc(R"(Computes the Cholesky decomposition of matrices.

The input is the product of a lower triangular matrix and the adjoint of that matrix. Only the lower
triangle of the input is read. If a matrix is not positive definite, the lower triangle of its
result is NaN.

input: Self-adjoint, positive definite matrices along the last two dimensions.
output: The lower triangular matrices, with zeros above the diagonal.
T: The type of `input` and `output`; there is no kernel for half.)");
  registry.Op("CholeskyGrad")
      .Group("linalg_ops")
      .Input("l: T")
      .Input("grad: T")
      .Output("output: T")
      .Attr("T: {half, float, double}")
      .Shape(CholeskyGradShape)
      .Doc(R"(Computes the gradient of Cholesky.

l: The output of Cholesky. Only the lower triangle is read.
grad: The gradient of `l`, of the same shape. Only the lower triangle is read.
output: The gradient of the input of Cholesky: symmetric matrices.
T: The type of the inputs and the output; there is no kernel for half.)");
  registry.Kernel("Cholesky", MakeFunctionKernel<Cholesky>).Types("T", DataTypesOf(LinalgTypes()));
  registry.Kernel("CholeskyGrad", MakeFunctionKernel<CholeskyGrad>)
      .Types("T", {DT_FLOAT, DT_DOUBLE});
  RegisterLegacyName(registry, {"BatchCholesky", "Cholesky", 13, "T", {DT_DOUBLE, DT_FLOAT}},
                     MakeFunctionKernel<Cholesky>);
  RegisterLegacyName(registry,
                     {"BatchCholeskyGrad", "CholeskyGrad", 13, "T", {DT_FLOAT, DT_DOUBLE}},
                     MakeFunctionKernel<CholeskyGrad>);
}

}  // namespace gradflow::cholesky
