// MatrixTriangularSolve and BandedTriangularSolve.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/common/legacy_name.h"
#include "gradflow/ops/linalg/dense.h"
#include "gradflow/ops/linalg/matrices.h"
#include "gradflow/ops/linalg/wide_matrix.h"

namespace gradflow::triangular_solve {
namespace {

// Checks bands [..., k, m] and rhs [..., m, n]. Returns the shape of the solution [..., m, n];
// unknown if a rank is unknown.
absl::StatusOr<PartialTensorShape> BandedSolutionShape(const PartialTensorShape& bands,
                                                       const PartialTensorShape& rhs) {
  GRADFLOW_RETURN_IF_ERROR(CheckMatrices("matrix", bands));
  GRADFLOW_RETURN_IF_ERROR(CheckMatrices("rhs", rhs));
  if (bands.unknown_rank() || rhs.unknown_rank()) return PartialTensorShape();
  const int64_t m = bands.dim_size(bands.dims() - 1);
  if (bands.dim_size(bands.dims() - 2) == 0) {
    return errors::InvalidArgument("matrix must have one band at least, but has shape ",
                                   bands.DebugString());
  }
  GRADFLOW_ASSIGN_OR_RETURN(DimVector batch, MergeBatches(bands, m, rhs, /*broadcast=*/true));
  const int64_t rows = std::max(m, rhs.dim_size(rhs.dims() - 2));
  return WithDims(std::move(batch), {rows, rhs.dim_size(rhs.dims() - 1)});
}

absl::StatusOr<PartialTensorShape> SolutionOf(const PartialTensorShape& matrix,
                                              const PartialTensorShape& rhs, bool banded) {
  return banded ? BandedSolutionShape(matrix, rhs) : SolutionShape(matrix, rhs, /*broadcast=*/true);
}

template <bool kBanded>
absl::Status SolveShape(ShapeContext& c) {
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, SolutionOf(c.input(0), c.input(1), kBanded));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// The form of the system of equations.
struct TriangularForm {
  bool lower = true;
  bool adjoint = false;
};

// Band k of a lower triangular matrix is row k of `bands`; it has element (j, j - k) at column j.
// Band k of an upper triangular matrix is the k-th row from the last; it has element (j, j + k) at
// column j.
template <typename T>
absl::Status SolveBanded(const RunContext& run, const WideMatrix<T>& bands, TriangularForm form,
                         WideMatrix<T>* x) {
  const int64_t m = bands.columns();
  const int64_t num_bands = std::min<int64_t>(bands.rows(), m);
  const auto element = [&](int64_t row, int64_t column) {
    if (form.adjoint) std::swap(row, column);
    const T value =
        form.lower ? bands(row - column, row) : bands(bands.rows() - 1 - (column - row), row);
    return form.adjoint ? Conjugate(value) : value;
  };
  // True if rows are solved from first to last.
  const bool forward = form.lower != form.adjoint;
  // The number of rows between checks for a stop of the run.
  const int64_t rows_per_look =
      1 + (int64_t{1} << 16) / std::max<int64_t>(1, num_bands * x->columns());
  for (int64_t step = 0; step < m; ++step) {
    if (step % rows_per_look == 0 && run.ShouldStop()) return absl::OkStatus();
    const int64_t row = forward ? step : m - 1 - step;
    const T pivot = element(row, row);
    if (pivot == T(0)) return errors::InvalidArgument("Input matrix is not invertible");
    for (int64_t k = 1; k < num_bands && k <= step; ++k) {
      const int64_t column = forward ? row - k : row + k;
      const T factor = element(row, column);
      for (int64_t j = 0; j < x->columns(); ++j) (*x)(row, j) -= factor * (*x)(column, j);
    }
    for (int64_t j = 0; j < x->columns(); ++j) (*x)(row, j) /= pivot;
  }
  return absl::OkStatus();
}

template <bool kBanded>
class TriangularSolveKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("lower", &form_.lower));
    return construction.GetAttr("adjoint", &form_.adjoint);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& matrix = ctx.input(0);
    const Tensor& rhs = ctx.input(1);
    GRADFLOW_RETURN_IF_ERROR(CheckTypes(ctx, 2, ctx.expected_output_dtype(0)));
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape dims,
                              SolutionOf(matrix.shape(), rhs.shape(), kBanded));
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims.dim_sizes()));
    Tensor* out = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &out));
    const MatrixBatch batch(shape);
    const double bands = static_cast<double>(matrix.dim_size(matrix.dims() - 2));
    const BroadcastIndex matrix_index(matrix.shape(), shape);
    const BroadcastIndex rhs_index(rhs.shape(), shape);
    absl::Status status;
    DispatchWide(out->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const double size = static_cast<double>(batch.size) + bands * static_cast<double>(batch.rows);
      const auto solve = [&](int64_t i) -> absl::Status {
        WideMatrix<T> x = LoadMatrix<T>(rhs, rhs_index(i));
        if (kBanded) {
          const WideMatrix<T> a = LoadMatrix<T>(matrix, matrix_index(i));
          GRADFLOW_RETURN_IF_ERROR(SolveBanded<T>(ctx.run(), a, form_, &x));
        } else {
          const WideMatrix<T> a = LoadMatrix<T>(matrix, matrix_index(i), form_.adjoint);
          const bool lower = form_.lower != form_.adjoint;
          SolveTriangular<T>(a.view(), lower ? Triangle::kLower : Triangle::kUpper, x.view());
        }
        StoreMatrix(x, out, i);
        return absl::OkStatus();
      };
      status = ForEachMatrix(ctx, batch.count, static_cast<double>(batch.size) * (bands + 1),
                             sizeof(T) * size, solve);
    });
    return status;
  }

 private:
  TriangularForm form_;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("MatrixTriangularSolve")
      .Group("linalg_ops")
      .Input("matrix: T")
      .Input("rhs: T")
      .Output("output: T")
      .Attr("lower: bool = true")
      .Attr("adjoint: bool = false")
      .Attr("T: {bfloat16, double, float, half, complex64, complex128}")
      .Shape(SolveShape<false>)
      .Doc(R"(Solves systems of linear equations with triangular matrices.

A 0 on the diagonal gives infinities or NaN. All dimensions except the last two are broadcast.

matrix: Square matrices along the last two dimensions. One triangle of each is read.
rhs: Matrices with as many rows as `matrix`, whose columns are right-hand sides.
output: The solutions: the product of the triangle of `matrix` and `output` is `rhs`.
lower: If true, reads the lower triangles, otherwise the upper triangles.
adjoint: If true, solves with the adjoints of the triangles.
T: The type of the inputs and the output; there are no kernels for half and bfloat16.)");
  registry.Op("BandedTriangularSolve")
      .Group("linalg_ops")
      .Input("matrix: T")
      .Input("rhs: T")
      .Output("output: T")
      .Attr("lower: bool = true")
      .Attr("adjoint: bool = false")
      .Attr("T: {double, float, half, complex64, complex128}")
      .Shape(SolveShape<true>)
      .Doc(R"(Solves systems of linear equations with triangular matrices that are given as bands.

The diagonal is the first band of a lower triangular matrix, and the last band of an upper
triangular matrix. Element i of a band belongs to row i of the matrix. A 0 on the diagonal is an
error. All dimensions except the last two are broadcast.

matrix: Bands along the last two dimensions, [number of bands, m].
rhs: Matrices with m rows, whose columns are right-hand sides.
output: The solutions: the product of the triangular matrices and `output` is `rhs`.
lower: If true, the matrices are lower triangular, otherwise upper triangular.
adjoint: If true, solves with the adjoints of the matrices.
T: The type of the inputs and the output; there is no kernel for half.)");
  const DataTypeVector types = DataTypesOf(LinalgTypes());
  registry.Kernel("MatrixTriangularSolve", MakeKernel<TriangularSolveKernel<false>>)
      .Types("T", types);
  RegisterLegacyName(
      registry,
      {"BatchMatrixTriangularSolve", "MatrixTriangularSolve", 13, "T", {DT_DOUBLE, DT_FLOAT}},
      MakeKernel<TriangularSolveKernel<false>>);
  registry.Kernel("BandedTriangularSolve", MakeKernel<TriangularSolveKernel<true>>)
      .Types("T", types);
}

}  // namespace gradflow::triangular_solve
