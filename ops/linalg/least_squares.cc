// MatrixSolveLs.
#include <Eigen/Cholesky>
#include <Eigen/QR>
#include <algorithm>
#include <cstdint>
#include <utility>

#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/linalg/eigen.h"
#include "gradflow/ops/linalg/matrices.h"

namespace gradflow::least_squares {
namespace {

// Checks matrix [..., m, n] and rhs [..., m, k]. Returns the shape of the solution [..., n, k];
// unknown if a rank is.
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

// Solves the normal equations by a Cholesky decomposition.
template <typename T>
absl::Status SolveFast(const EigenMatrix<T>& a, const EigenMatrix<T>& b, double regularizer,
                       EigenMatrix<T>* x) {
  const bool is_tall = a.rows() >= a.cols();
  EigenMatrix<T> gram = is_tall ? EigenMatrix<T>(a.adjoint() * a) : EigenMatrix<T>(a * a.adjoint());
  gram.diagonal().array() += T(regularizer);
  const Eigen::LLT<EigenMatrix<T>> llt(gram);
  if (llt.info() != Eigen::Success) {
    return errors::InvalidArgument(
        "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a "
        "larger l2_regularizer > 0");
  }
  if (is_tall) {
    *x = llt.solve(a.adjoint() * b);
  } else {
    *x = a.adjoint() * llt.solve(b);
  }
  return absl::OkStatus();
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
    const double m = static_cast<double>(matrix.dim_size(matrix.dims() - 2));
    const double n = static_cast<double>(batch.rows);
    const double k = static_cast<double>(batch.columns);
    absl::Status status;
    DispatchWide(out->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      status = ForEachMatrix(
          ctx, batch.count, (m + n) * std::min(m, n) * (n + k),
          sizeof(T) * (2 * m * n + (m + n) * k + std::min(m, n) * std::min(m, n)), [&](int64_t i) {
            if (m == 0) {
              FillMatrix(0, out, i);
              return absl::OkStatus();
            }
            const EigenMatrix<T> a = LoadMatrix<T>(matrix, i);
            const EigenMatrix<T> b = LoadMatrix<T>(rhs, i);
            EigenMatrix<T> x;
            if (fast_) {
              GRADFLOW_RETURN_IF_ERROR(SolveFast<T>(a, b, regularizer, &x));
            } else {
              x = Eigen::CompleteOrthogonalDecomposition<EigenMatrix<T>>(a).solve(b);
            }
            StoreMatrix<T>(x, out, i);
            return absl::OkStatus();
          });
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

The solution minimizes the norm of `matrix * output - rhs`, and if there are several, its own norm.
If `fast`, the regularizer times the squared norm of the solution is added, and the normal equations
are solved by Cholesky's decomposition. That is an error for matrices that do not have full rank,
without a regularizer. Otherwise a complete orthogonal decomposition is used, which serves all
matrices, and the regularizer is ignored.

matrix: Matrices along the last two dimensions.
rhs: Matrices with as many rows, whose columns are right-hand sides.
l2_regularizer: A scalar, not negative.
output: The solutions, with as many rows as `matrix` has columns.
T: The type of the matrices; there is no kernel for half.
fast: If true, solves the normal equations.)");
  registry.Kernel("MatrixSolveLs", MakeKernel<SolveLsKernel>)
      .Types("T", DataTypesOf(LinalgTypes()));
}

}  // namespace gradflow::least_squares
