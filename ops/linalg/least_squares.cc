// MatrixSolveLs.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/common/legacy_name.h"
#include "gradflow/ops/linalg/dense.h"
#include "gradflow/ops/linalg/lapack.h"
#include "gradflow/ops/linalg/matrices.h"
#include "gradflow/ops/linalg/wide_matrix.h"

namespace gradflow::least_squares {
namespace {

// Checks matrix [..., m, n] and rhs [..., m, k]. Returns the shape of the solution [..., n, k];
// unknown if a rank is unknown.
absl::StatusOr<PartialTensorShape> SolutionOf(const PartialTensorShape& matrix,
                                              const PartialTensorShape& rhs) {
  GRADFLOW_RETURN_IF_ERROR(CheckMatrices("matrix", matrix));
  GRADFLOW_RETURN_IF_ERROR(CheckMatrices("rhs", rhs));
  if (matrix.unknown_rank() || rhs.unknown_rank()) return PartialTensorShape();
  const int64_t m = matrix.dim_size(matrix.dims() - 2);
  GRADFLOW_ASSIGN_OR_RETURN(DimVector batch, MergeBatches(matrix, m, rhs, /*broadcast=*/false));
  return WithDims(std::move(batch),
                  {matrix.dim_size(matrix.dims() - 1), rhs.dim_size(rhs.dims() - 1)});
}

absl::Status SolveShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(2, 0));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, SolutionOf(c.input(0), c.input(1)));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// Solves the normal equations with a Cholesky decomposition. Sets *x [n, k].
template <typename T>
absl::Status SolveFast(const WideMatrix<T>& a, const WideMatrix<T>& b, double regularizer,
                       WideMatrix<T>* x) {
  const bool is_tall = a.rows() >= a.columns();
  const int64_t n = std::min(a.rows(), a.columns());
  WideMatrix<T> gram(n, n);
  Multiply<T>({a.view(), is_tall}, {a.view(), !is_tall}, gram.view());
  for (int64_t i = 0; i < n; ++i) gram(i, i) += regularizer;
  if (!FactorCholesky(&gram)) {
    return errors::InvalidArgument(
        "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a "
        "larger l2_regularizer > 0");
  }
  const auto solve = [&gram](WideMatrix<T>* y) {
    SolveTriangular<T>(gram.view(), Triangle::kLower, y->view());
    SolveTriangular<T>(Adjoint(gram).view(), Triangle::kUpper, y->view());
  };
  *x = WideMatrix<T>(a.columns(), b.columns());
  if (is_tall) {
    Multiply<T>({a.view(), /*adjoint=*/true}, {b.view()}, x->view());
    solve(x);
  } else {
    WideMatrix<T> y = b;
    solve(&y);
    Multiply<T>({a.view(), /*adjoint=*/true}, {y.view()}, x->view());
  }
  return absl::OkStatus();
}

// Solves with a complete orthogonal decomposition. Sets the first n rows of *x.
template <typename T>
void SolveSlow(const LapackWork& work, WideMatrix<T>* a, const WideMatrix<T>& b, WideMatrix<T>* x) {
  *x = WideMatrix<T>(std::max(a->rows(), a->columns()), b.columns());
  for (int64_t column = 0; column < b.columns(); ++column) {
    std::copy_n(b.view().Column(column), b.rows(), x->view().Column(column));
  }
  SolveLeastSquares(work, a, x);
}

class SolveLsKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("fast", &fast_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& matrix = ctx.input(0);
    const Tensor& rhs = ctx.input(1);
    GRADFLOW_RETURN_IF_ERROR(CheckTypes(ctx, 2, ctx.expected_output_dtype(0)));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(2, "l2_regularizer"));
    if (ctx.input_dtype(2) != DT_DOUBLE) {
      return errors::InvalidArgument("l2_regularizer must be of type double, but is ",
                                     DataTypeString(ctx.input_dtype(2)));
    }
    const double regularizer = ctx.input(2).scalar<double>()();
    if (!(regularizer >= 0)) {
      return errors::InvalidArgument("l2_regularizer is ", regularizer, ", expected at least 0");
    }
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape dims,
                              SolutionOf(matrix.shape(), rhs.shape()));
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims.dim_sizes()));
    Tensor* out = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &out));
    const MatrixBatch batch(shape);
    const int64_t m = matrix.dim_size(matrix.dims() - 2);
    const int64_t n = batch.rows;
    const int64_t k = batch.columns;
    if (m == 0) {
      FillElements(0, out);
      return absl::OkStatus();
    }
    if (batch.count == 0) return absl::OkStatus();
    absl::Status status;
    DispatchWide(out->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const absl::StatusOr<LapackWork> work = LeastSquaresWork<T>(m, n, k);
      if (!work.ok()) {
        status = work.status();
        return;
      }
      const auto solve = [&](int64_t i) -> absl::Status {
        WideMatrix<T> a = LoadMatrix<T>(matrix, i);
        const WideMatrix<T> b = LoadMatrix<T>(rhs, i);
        if (!AllFinite(a) || !AllFinite(b)) {
          FillMatrix(std::numeric_limits<double>::quiet_NaN(), out, i);
          return absl::OkStatus();
        }
        WideMatrix<T> x;
        if (fast_) {
          GRADFLOW_RETURN_IF_ERROR(SolveFast<T>(a, b, regularizer, &x));
        } else {
          SolveSlow<T>(*work, &a, b, &x);
        }
        StoreMatrix(x, out, i);
        return absl::OkStatus();
      };
      const double smaller = static_cast<double>(std::min(m, n));
      const double larger = static_cast<double>(std::max(m, n));
      const double columns = static_cast<double>(k);
      const double work_bytes =
          fast_ ? 2 * sizeof(T) * (smaller * smaller + smaller * columns) : work->bytes<T>();
      status =
          ForEachMatrix(ctx, batch.count, 2 * larger * smaller * (smaller + columns),
                        sizeof(T) * (larger * smaller + 2 * larger * columns) + work_bytes, solve);
    });
    return status;
  }

 private:
  bool fast_ = true;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("MatrixSolveLs")
      .Group("linalg_ops")
      .Input("matrix: T")
      .Input("rhs: T")
      .Input("l2_regularizer: double")
      .Output("output: T")
      .Attr("T: {double, float, half, complex64, complex128}")
      .Attr("fast: bool = true")
      .Shape(SolveShape)
      .Doc(R"(Solves linear least-squares problems.

The solution minimizes the norm of `matrix * output - rhs`. If there are several such solutions, the
result is the solution of minimum norm. If `fast` is true, the squared norm plus `l2_regularizer`
times the squared norm of the solution is minimized: the normal equations are solved with a Cholesky
decomposition. Without a regularizer, matrices that do not have full rank are then an error. If
`fast` is false, a complete orthogonal decomposition is used, which works for all matrices, and the
regularizer is ignored. For a system with NaN or infinity, the solution is NaN.

matrix: Matrices along the last two dimensions.
rhs: Matrices with as many rows as `matrix`, whose columns are right-hand sides.
l2_regularizer: A scalar, not negative.
output: The solutions, with as many rows as `matrix` has columns.
T: The type of the matrices; there is no kernel for half.
fast: If true, solves the normal equations.)");
  registry.Kernel("MatrixSolveLs", MakeKernel<SolveLsKernel>)
      .Types("T", DataTypesOf(LinalgTypes()));
  RegisterLegacyName(registry,
                     {"BatchMatrixSolveLs", "MatrixSolveLs", 13, "T", {DT_DOUBLE, DT_FLOAT}},
                     MakeKernel<SolveLsKernel>);
}

}  // namespace gradflow::least_squares
