// Eigenvalues: SelfAdjointEig, SelfAdjointEigV2 and Eig.
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/linalg/eigen.h"
#include "gradflow/ops/linalg/matrices.h"

namespace gradflow::eig {
namespace {

absl::Status NotConverged(bool self_adjoint) {
  return errors::InvalidArgument(
      self_adjoint ? "Self-adjoint eigen decomposition" : "Eigen decomposition",
      " was not successful. The input might not be valid");
}

// Decomposes the matrix whose lower triangle is that of matrix i of a tensor.
template <typename T>
absl::Status Decompose(const Tensor& input, int64_t i, bool vectors,
                       Eigen::SelfAdjointEigenSolver<EigenMatrix<T>>* solver) {
  const EigenMatrix<T> lower = LoadMatrix<T>(input, i).template triangularView<Eigen::Lower>();
  if (!lower.allFinite()) return NotConverged(true);
  solver->compute(lower, vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
  return solver->info() == Eigen::Success ? absl::OkStatus() : NotConverged(true);
}

// ---- SelfAdjointEig, whose output has the eigenvalues as a first row ----

// Returns INVALID_ARGUMENT if there is no size of one row more than the `n` of the matrices.
absl::Status CheckRowFits(const PartialTensorShape& input, int64_t n) {
  if (n < std::numeric_limits<int64_t>::max()) return absl::OkStatus();
  return errors::InvalidArgument("input of shape ", input.DebugString(),
                                 " has too many rows for one more in the output");
}

absl::Status SelfAdjointEigShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckSquare("input", c.input(0)));
  if (c.input(0).unknown_rank()) return absl::OkStatus();
  const int64_t n = std::max(c.Dim(0, -1), c.Dim(0, -2));
  GRADFLOW_RETURN_IF_ERROR(CheckRowFits(c.input(0), n));
  return SetBatchOutput(c, 0, {n < 0 ? -1 : n + 1, n});
}

absl::Status SelfAdjointEig(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  GRADFLOW_RETURN_IF_ERROR(CheckTypes(ctx, 1, ctx.expected_output_dtype(0)));
  GRADFLOW_RETURN_IF_ERROR(CheckSquare("input", input.shape()));
  const MatrixBatch batch(input.shape());
  GRADFLOW_RETURN_IF_ERROR(CheckRowFits(input.shape(), batch.rows));
  const double n = static_cast<double>(batch.rows);
  Tensor* out = nullptr;
  GRADFLOW_RETURN_IF_ERROR(AllocateBatchOutput(ctx, 0, {batch.rows + 1, batch.rows}, &out));
  return ForEachMatrix(ctx, batch.count, 10 * n * n * n, 5 * sizeof(double) * n * n,
                       [&](int64_t i) {
                         Eigen::SelfAdjointEigenSolver<EigenMatrix<double>> solver;
                         GRADFLOW_RETURN_IF_ERROR(Decompose<double>(input, i, true, &solver));
                         EigenMatrix<double> result(batch.rows + 1, batch.rows);
                         result.row(0) = solver.eigenvalues().transpose();
                         result.bottomRows(batch.rows) = solver.eigenvectors();
                         StoreMatrix<double>(result, out, i);
                         return absl::OkStatus();
                       });
}

// ---- SelfAdjointEigV2 and Eig ----

absl::Status EigShape(ShapeContext& c) {
  bool compute_v = true;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("compute_v", &compute_v));
  GRADFLOW_RETURN_IF_ERROR(CheckSquare("input", c.input(0)));
  if (!compute_v) c.set_output(1, {0});
  if (c.input(0).unknown_rank()) return absl::OkStatus();
  const int64_t n = std::max(c.Dim(0, -1), c.Dim(0, -2));
  GRADFLOW_RETURN_IF_ERROR(SetBatchOutput(c, 0, {n}));
  return compute_v ? SetBatchOutput(c, 1, {n, n}) : absl::OkStatus();
}

class EigBase : public OpKernel {
 protected:
  absl::Status ReadComputeV(const KernelConstruction& construction) {
    return construction.GetAttr("compute_v", &compute_v_);
  }

  // Checks the input and allocates the outputs.
  absl::Status Allocate(KernelContext& ctx, DataType dtype, Tensor** e, Tensor** v) const {
    GRADFLOW_RETURN_IF_ERROR(CheckTypes(ctx, 1, dtype));
    GRADFLOW_RETURN_IF_ERROR(CheckSquare("input", ctx.input(0).shape()));
    const int64_t n = MatrixBatch(ctx.input(0).shape()).rows;
    GRADFLOW_RETURN_IF_ERROR(AllocateBatchOutput(ctx, 0, {n}, e));
    if (!compute_v_) return ctx.AllocateOutput(1, {0}, v);
    return AllocateBatchOutput(ctx, 1, {n, n}, v);
  }

  bool compute_v_ = true;
};

class SelfAdjointEigKernel final : public EigBase {
 public:
  absl::Status Init(const KernelConstruction& construction) { return ReadComputeV(construction); }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& input = ctx.input(0);
    Tensor* e = nullptr;
    Tensor* v = nullptr;
    GRADFLOW_RETURN_IF_ERROR(Allocate(ctx, ctx.expected_output_dtype(0), &e, &v));
    const MatrixBatch batch(input.shape());
    const double n = static_cast<double>(batch.rows);
    absl::Status status;
    DispatchWide(input.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      status =
          ForEachMatrix(ctx, batch.count, 10 * n * n * n, 4 * sizeof(T) * n * n, [&](int64_t i) {
            Eigen::SelfAdjointEigenSolver<EigenMatrix<T>> solver;
            GRADFLOW_RETURN_IF_ERROR(Decompose<T>(input, i, compute_v_, &solver));
            StoreVector(solver.eigenvalues(), e, i);
            if (compute_v_) StoreMatrix<T>(solver.eigenvectors(), v, i);
            return absl::OkStatus();
          });
    });
    return status;
  }
};

class EigKernel final : public EigBase {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    input_type_ = construction.input_type(0);
    const DataType out = construction.output_type(0);
    const bool is_narrow = input_type_ == DT_FLOAT || input_type_ == DT_COMPLEX64;
    if (is_narrow != (out == DT_COMPLEX64)) {
      return errors::InvalidArgument("Tout must be ", is_narrow ? "complex64" : "complex128",
                                     " for inputs of type ", DataTypeString(input_type_),
                                     ", but is ", DataTypeString(out));
    }
    return ReadComputeV(construction);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& input = ctx.input(0);
    Tensor* e = nullptr;
    Tensor* v = nullptr;
    GRADFLOW_RETURN_IF_ERROR(Allocate(ctx, input_type_, &e, &v));
    const MatrixBatch batch(input.shape());
    const double n = static_cast<double>(batch.rows);
    absl::Status status;
    DispatchWide(input.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      status = ForEachMatrix(
          ctx, batch.count, 25 * n * n * n, 6 * sizeof(complex128) * n * n,
          [&](int64_t i) { return DecomposeAny<T>(LoadMatrix<T>(input, i), i, e, v); });
    });
    return status;
  }

 private:
  template <typename T>
  absl::Status DecomposeAny(const EigenMatrix<T>& matrix, int64_t i, Tensor* e, Tensor* v) const {
    if (!matrix.allFinite()) return NotConverged(false);
    using Solver = std::conditional_t<kIsComplex<T>, Eigen::ComplexEigenSolver<EigenMatrix<T>>,
                                      Eigen::EigenSolver<EigenMatrix<T>>>;
    const Solver solver(matrix, compute_v_);
    if (solver.info() != Eigen::Success) return NotConverged(false);
    StoreVector(solver.eigenvalues(), e, i);
    if (compute_v_) StoreMatrix<complex128>(solver.eigenvectors(), v, i);
    return absl::OkStatus();
  }

  DataType input_type_ = DT_INVALID;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("SelfAdjointEig")
      .Group("linalg_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: {double, float, half}")
      .Shape(SelfAdjointEigShape)
      .HandWritten()
      .Doc(R"(Computes the eigenvalues and eigenvectors of symmetric matrices, in one tensor.

The lower triangles are read. SelfAdjointEigV2 replaces this op, and has its C++ name.

input: Symmetric matrices [n, n] along the last two dimensions.
output: For each matrix [n + 1, n]: a row of the eigenvalues, in increasing order, then the
  eigenvectors as columns.
T: The type of `input` and `output`; there is no kernel for half.)");
  registry.Op("SelfAdjointEigV2")
      .Group("linalg_ops")
      .Alias("SelfAdjointEig")
      .Input("input: T")
      .Output("e: T")
      .Output("v: T")
      .Attr("compute_v: bool = true")
      .Attr("T: {double, float, half, complex64, complex128}")
      .Shape(EigShape)
      .Doc(R"(Computes the eigenvalues and eigenvectors of self-adjoint matrices.

The lower triangles are read.

input: Self-adjoint matrices [n, n] along the last two dimensions.
e: The n eigenvalues of each matrix, in increasing order.
v: The eigenvectors of each matrix, of norm 1, as columns. Empty unless `compute_v`.
compute_v: If true, computes the eigenvectors.
T: The type of the input and the outputs; there is no kernel for half.)");
  registry.Op("Eig")
      .Group("linalg_ops")
      .Input("input: T")
      .Output("e: Tout")
      .Output("v: Tout")
      .Attr("compute_v: bool = true")
      .Attr("T: {float, double, complex64, complex128}")
      .Attr("Tout: {complex64, complex128}")
      .Shape(EigShape)
      .Doc(R"(Computes the eigenvalues and eigenvectors of matrices.

input: Square matrices [n, n] along the last two dimensions.
e: The n eigenvalues of each matrix.
v: The eigenvectors of each matrix, of norm 1, as columns. Empty unless `compute_v`.
compute_v: If true, computes the eigenvectors.
T: The type of the input.
Tout: The complex type of the precision of T.)");
  registry.Kernel("SelfAdjointEig", MakeFunctionKernel<SelfAdjointEig>)
      .Types("T", {DT_FLOAT, DT_DOUBLE});
  registry.Kernel("SelfAdjointEigV2", MakeKernel<SelfAdjointEigKernel>)
      .Types("T", DataTypesOf(LinalgTypes()));
  registry.Kernel("Eig", MakeKernel<EigKernel>);
}

}  // namespace gradflow::eig
