// Lu, and the ops that use it: MatrixDeterminant, LogMatrixDeterminant, MatrixInverse, MatrixSolve.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/common/legacy_name.h"
#include "gradflow/ops/linalg/dense.h"
#include "gradflow/ops/linalg/matrices.h"
#include "gradflow/ops/linalg/wide_matrix.h"

namespace gradflow::lu {
namespace {

// Calls fn(TypeTag<T>(), i) for each matrix of input 0. The matrices must be square. fn decomposes
// a matrix and solves it for `right` columns, which determines the cost.
template <typename F>
absl::Status ForEachSquare(KernelContext& ctx, const F& fn, int64_t right = 0) {
  const Tensor& input = ctx.input(0);
  const MatrixBatch batch(input.shape());
  const double n = static_cast<double>(batch.rows);
  const double k = static_cast<double>(right);
  absl::Status status;
  DispatchWide(input.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const double bytes = sizeof(T) * (n * n + 2 * n * k) + sizeof(int64_t) * n;
    status = ForEachMatrix(ctx, batch.count, n * n * (n + k), bytes,
                           [&](int64_t i) { return fn(tag, i); });
  });
  return status;
}

absl::Status CheckInput(const KernelContext& ctx, DataType dtype) {
  GRADFLOW_RETURN_IF_ERROR(CheckTypes(ctx, 1, dtype));
  return CheckSquare("input", ctx.input(0).shape());
}

// ---- Lu ----

absl::Status LuShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(SquareShape(c));
  if (c.input(0).unknown_rank()) return absl::OkStatus();
  return SetBatchOutput(c, 1, {std::max(c.Dim(0, -1), c.Dim(0, -2))});
}

absl::Status Lu(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  GRADFLOW_RETURN_IF_ERROR(CheckInput(ctx, ctx.expected_output_dtype(0)));
  const int64_t n = input.dim_size(input.dims() - 1);
  Tensor* out = nullptr;
  Tensor* order = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, input.shape(), &out));
  GRADFLOW_RETURN_IF_ERROR(AllocateBatchOutput(ctx, 1, {n}, &order));
  return ForEachSquare(ctx, [&](auto tag, int64_t i) {
    using T = typename decltype(tag)::type;
    const LuDecomposition<T> lu = FactorLu(LoadMatrix<T>(input, i));
    if (lu.is_singular()) return errors::InvalidArgument("Input is not invertible");
    StoreMatrix(lu.factors, out, i);
    DispatchType(IndexTypes(), order->dtype(), [&](auto index_tag) {
      using Index = typename decltype(index_tag)::type;
      Index* to = static_cast<Index*>(order->raw_data()) + i * n;
      for (int64_t r = 0; r < n; ++r) to[r] = static_cast<Index>(lu.order[r]);
    });
    return absl::OkStatus();
  });
}

// ---- Determinants ----

absl::Status DeterminantShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckSquare("input", c.input(0)));
  for (int i = 0; i < c.num_outputs(); ++i) GRADFLOW_RETURN_IF_ERROR(SetBatchOutput(c, i, {}));
  return absl::OkStatus();
}

// Sets element i of a tensor.
void StoreScalar(complex128 value, Tensor* tensor, int64_t i) {
  if (DataTypeIsComplex(tensor->dtype())) {
    StoreVector<complex128>({value}, tensor, i);
  } else {
    StoreVector<double>({value.real()}, tensor, i);
  }
}

absl::Status MatrixDeterminant(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(CheckInput(ctx, ctx.expected_output_dtype(0)));
  Tensor* out = nullptr;
  GRADFLOW_RETURN_IF_ERROR(AllocateBatchOutput(ctx, 0, {}, &out));
  // The determinant of an empty matrix is 1.
  if (ctx.input(0).NumElements() == 0) FillElements(1, out);
  return ForEachSquare(ctx, [&](auto tag, int64_t i) {
    using T = typename decltype(tag)::type;
    const LuDecomposition<T> lu = FactorLu(LoadMatrix<T>(ctx.input(0), i));
    T product(lu.odd ? -1 : 1);
    for (int64_t d = 0; d < lu.factors.rows(); ++d) product *= lu.factors(d, d);
    StoreScalar(product, out, i);
    return absl::OkStatus();
  });
}

absl::Status LogMatrixDeterminant(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(CheckInput(ctx, ctx.expected_output_dtype(0)));
  Tensor* sign = nullptr;
  Tensor* log = nullptr;
  GRADFLOW_RETURN_IF_ERROR(AllocateBatchOutput(ctx, 0, {}, &sign));
  GRADFLOW_RETURN_IF_ERROR(AllocateBatchOutput(ctx, 1, {}, &log));
  if (ctx.input(0).NumElements() == 0) {
    FillElements(1, sign);
    FillElements(0, log);
  }
  return ForEachSquare(ctx, [&](auto tag, int64_t i) {
    using T = typename decltype(tag)::type;
    const LuDecomposition<T> lu = FactorLu(LoadMatrix<T>(ctx.input(0), i));
    T phase(lu.odd ? -1 : 1);
    double sum = 0;
    for (int64_t d = 0; d < lu.factors.rows(); ++d) {
      const T pivot = lu.factors(d, d);
      const double magnitude = std::abs(pivot);
      sum += std::log(magnitude);
      phase *= magnitude == 0 ? T(0) : pivot / magnitude;
    }
    StoreScalar(phase, sign, i);
    StoreScalar(sum, log, i);
    return absl::OkStatus();
  });
}

// ---- MatrixInverse and MatrixSolve ----

class AdjointKernel : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("adjoint", &adjoint_);
  }

 protected:
  template <typename T>
  LuDecomposition<T> Decompose(const Tensor& tensor, int64_t i) const {
    return FactorLu(LoadMatrix<T>(tensor, i, adjoint_));
  }

 private:
  bool adjoint_ = false;
};

class InverseKernel final : public AdjointKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInput(ctx, ctx.expected_output_dtype(0)));
    Tensor* out = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, ctx.input(0).shape(), &out));
    const auto invert = [&](auto tag, int64_t i) {
      using T = typename decltype(tag)::type;
      const LuDecomposition<T> lu = Decompose<T>(ctx.input(0), i);
      if (lu.is_singular()) return errors::InvalidArgument("Input is not invertible");
      StoreMatrix(SolveLu(lu, WideMatrix<T>::Identity(lu.factors.rows())), out, i);
      return absl::OkStatus();
    };
    return ForEachSquare(ctx, invert, MatrixBatch(out->shape()).columns);
  }
};

absl::Status SolveShape(ShapeContext& c) {
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape,
                            SolutionShape(c.input(0), c.input(1), /*broadcast=*/false));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

class MatrixSolveKernel final : public AdjointKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckTypes(ctx, 2, ctx.expected_output_dtype(0)));
    GRADFLOW_RETURN_IF_ERROR(
        SolutionShape(ctx.input(0).shape(), ctx.input(1).shape(), /*broadcast=*/false).status());
    Tensor* out = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, ctx.input(1).shape(), &out));
    if (out->NumElements() == 0) return absl::OkStatus();
    const auto solve = [&](auto tag, int64_t i) {
      using T = typename decltype(tag)::type;
      const LuDecomposition<T> lu = Decompose<T>(ctx.input(0), i);
      if (lu.is_singular()) return errors::InvalidArgument("Input matrix is not invertible");
      StoreMatrix(SolveLu(lu, LoadMatrix<T>(ctx.input(1), i)), out, i);
      return absl::OkStatus();
    };
    return ForEachSquare(ctx, solve, MatrixBatch(out->shape()).columns);
  }
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("Lu")
      .Group("linalg_ops")
      .Input("input: T")
      .Output("lu: T")
      .Output("p: output_idx_type")
      .Attr("T: {double, float, half, complex64, complex128}")
      .Attr("output_idx_type: {int32, int64} = DT_INT32")
      .Shape(LuShape)
      .Doc(R"(Computes the LU decomposition of matrices, with partial pivoting.

The rows of a matrix in the order `p` are the product of a lower triangular matrix, with ones on its
diagonal, and an upper triangular matrix. A matrix with a pivot of 0 is an error.

input: Square, invertible matrices along the last two dimensions.
lu: The upper triangular matrices and, below the diagonal, the lower triangular matrices.
p: The order of the rows of each matrix.
T: The type of `input` and `lu`; there is no kernel for half.
output_idx_type: The type of `p`.)");
  registry.Op("MatrixDeterminant")
      .Group("linalg_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: {half, float, double, complex64, complex128}")
      .Shape(DeterminantShape)
      .Doc(R"(Computes the determinants of matrices.

input: Square matrices along the last two dimensions.
output: The determinant of each matrix; 1 for matrices without elements.
T: The type of `input` and `output`; there is no kernel for half.)");
  registry.Op("LogMatrixDeterminant")
      .Group("linalg_ops")
      .Input("input: T")
      .Output("sign: T")
      .Output("log_abs_determinant: T")
      .Attr("T: {half, float, double, complex64, complex128}")
      .Shape(DeterminantShape)
      .Doc(R"(Computes the signs and the logarithms of the determinants of matrices.

The determinant is `sign * exp(log_abs_determinant)`, which may overflow although the outputs do
not.

input: Square matrices along the last two dimensions.
sign: The determinant divided by its magnitude; 0 if the determinant is 0.
log_abs_determinant: The logarithm of the magnitude of the determinant.
T: The type of the input and the outputs; there is no kernel for half.)");
  registry.Op("MatrixInverse")
      .Group("linalg_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("adjoint: bool = false")
      .Attr("T: {double, float, half, complex64, complex128}")
      .Shape(SquareShape)
      .Doc(R"(Computes the inverses of matrices, or of their adjoints.

A matrix with a pivot of 0 in its LU decomposition is an error.

input: Square, invertible matrices along the last two dimensions.
output: The inverse of each matrix.
adjoint: If true, inverts the adjoint of each matrix.
T: The type of `input` and `output`.)");
  registry.Op("MatrixSolve")
      .Group("linalg_ops")
      .Input("matrix: T")
      .Input("rhs: T")
      .Output("output: T")
      .Attr("adjoint: bool = false")
      .Attr("T: {double, float, half, complex64, complex128}")
      .Shape(SolveShape)
      .Doc(R"(Solves systems of linear equations.

A matrix with a pivot of 0 in its LU decomposition is an error.

matrix: Square, invertible matrices along the last two dimensions.
rhs: Matrices with as many rows as `matrix`, whose columns are right-hand sides.
output: The solutions, of the shape of `rhs`: the product of `matrix` and `output` is `rhs`.
adjoint: If true, solves with the adjoint of each matrix.
T: The type of the inputs and the output; there is no kernel for half.)");
  const DataTypeVector types = DataTypesOf(LinalgTypes());
  registry.Kernel("Lu", MakeFunctionKernel<Lu>).Types("T", types);
  registry.Kernel("MatrixDeterminant", MakeFunctionKernel<MatrixDeterminant>).Types("T", types);
  registry.Kernel("LogMatrixDeterminant", MakeFunctionKernel<LogMatrixDeterminant>)
      .Types("T", types);
  registry.Kernel("MatrixInverse", MakeKernel<InverseKernel>)
      .Types("T", DataTypesOf(MatrixTypes()));
  registry.Kernel("MatrixSolve", MakeKernel<MatrixSolveKernel>).Types("T", types);
  RegisterLegacyName(registry,
                     {"BatchMatrixDeterminant",
                      "MatrixDeterminant",
                      13,
                      "T",
                      {DT_FLOAT, DT_DOUBLE, DT_COMPLEX64, DT_COMPLEX128}},
                     MakeFunctionKernel<MatrixDeterminant>);
  RegisterLegacyName(registry,
                     {"BatchMatrixInverse", "MatrixInverse", 13, "T", {DT_DOUBLE, DT_FLOAT}},
                     MakeKernel<InverseKernel>);
  RegisterLegacyName(registry, {"BatchMatrixSolve", "MatrixSolve", 13, "T", {DT_DOUBLE, DT_FLOAT}},
                     MakeKernel<MatrixSolveKernel>);
}

}  // namespace gradflow::lu
