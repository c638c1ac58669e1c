// Eigenvalues: SelfAdjointEig, SelfAdjointEigV2 and Eig.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/common/legacy_name.h"
#include "gradflow/ops/linalg/lapack.h"
#include "gradflow/ops/linalg/matrices.h"
#include "gradflow/ops/linalg/wide_matrix.h"

namespace gradflow::eig {
namespace {

absl::Status NotConverged(bool self_adjoint) {
  return errors::InvalidArgument(
      self_adjoint ? "Self-adjoint eigen decomposition" : "Eigen decomposition",
      " was not successful. The input might not be valid");
}

// Decomposes the self-adjoint matrix i of a tensor. Reads only its lower triangle. Sets *matrix to
// the eigenvectors if `vectors` is true.
template <typename T>
absl::Status Decompose(const LapackWork& work, const Tensor& input, int64_t i, bool vectors,
                       WideMatrix<T>* matrix, std::vector<double>* values) {
  *matrix = LoadMatrix<T>(input, i);
  for (int64_t column = 1; column < matrix->columns(); ++column) {
    std::fill_n(&(*matrix)(0, column), column, T(0));
  }
  if (!AllFinite(*matrix) || !ComputeSelfAdjointEig(work, vectors, matrix, values)) {
    return NotConverged(true);
  }
  return absl::OkStatus();
}

// ---- SelfAdjointEig: its output has the eigenvalues as the first row ----

// Returns INVALID_ARGUMENT if n + 1, the number of rows of the output, overflows.
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
  if (batch.count == 0) return absl::OkStatus();
  GRADFLOW_ASSIGN_OR_RETURN(const LapackWork work,
                            SelfAdjointEigWork<double>(batch.rows, /*vectors=*/true));
  const double bytes = sizeof(double) * (2 * n * n + 2 * n) + work.bytes<double>();
  return ForEachMatrix(ctx, batch.count, 10 * n * n * n, bytes, [&](int64_t i) {
    WideMatrix<double> vectors;
    std::vector<double> values;
    GRADFLOW_RETURN_IF_ERROR(Decompose(work, input, i, true, &vectors, &values));
    WideMatrix<double> result(batch.rows + 1, batch.rows);
    for (int64_t column = 0; column < batch.rows; ++column) {
      result(0, column) = values[column];
      std::copy_n(&vectors(0, column), batch.rows, &result(1, column));
    }
    StoreMatrix(result, out, i);
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
    if (batch.count == 0) return absl::OkStatus();
    absl::Status status;
    DispatchWide(input.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const absl::StatusOr<LapackWork> work = SelfAdjointEigWork<T>(batch.rows, compute_v_);
      if (!work.ok()) {
        status = work.status();
        return;
      }
      const double bytes = sizeof(T) * n * n + sizeof(double) * n + work->bytes<T>();
      status = ForEachMatrix(ctx, batch.count, 10 * n * n * n, bytes, [&](int64_t i) {
        WideMatrix<T> vectors;
        std::vector<double> values;
        GRADFLOW_RETURN_IF_ERROR(Decompose(*work, input, i, compute_v_, &vectors, &values));
        StoreVector<double>(values, e, i);
        if (compute_v_) StoreMatrix(vectors, v, i);
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
    if (batch.count == 0) return absl::OkStatus();
    absl::Status status;
    DispatchWide(input.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const absl::StatusOr<LapackWork> work = EigWork<T>(batch.rows, compute_v_);
      if (!work.ok()) {
        status = work.status();
        return;
      }
      const double bytes = sizeof(T) * n * n + sizeof(complex128) * (n + (compute_v_ ? n * n : 0)) +
                           work->bytes<T>();
      status = ForEachMatrix(ctx, batch.count, 25 * n * n * n, bytes, [&](int64_t i) {
        WideMatrix<T> matrix = LoadMatrix<T>(input, i);
        std::vector<complex128> values;
        WideMatrix<complex128> vectors;
        if (!AllFinite(matrix) || !ComputeEig(*work, compute_v_, &matrix, &values, &vectors)) {
          return NotConverged(false);
        }
        StoreVector<complex128>(values, e, i);
        if (compute_v_) StoreMatrix(vectors, v, i);
        return absl::OkStatus();
      });
    });
    return status;
  }

 private:
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

Only the lower triangles are read. SelfAdjointEigV2 replaces this op; the C++ class SelfAdjointEig
is for SelfAdjointEigV2.

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
Tout: The complex type with the precision of T.)");
  registry.Kernel("SelfAdjointEig", MakeFunctionKernel<SelfAdjointEig>)
      .Types("T", {DT_FLOAT, DT_DOUBLE});
  registry.Kernel("SelfAdjointEigV2", MakeKernel<SelfAdjointEigKernel>)
      .Types("T", DataTypesOf(LinalgTypes()));
  registry.Kernel("Eig", MakeKernel<EigKernel>);
  RegisterLegacyName(registry,
                     {"BatchSelfAdjointEig", "SelfAdjointEig", 11, "T", {DT_DOUBLE, DT_FLOAT}},
                     MakeFunctionKernel<SelfAdjointEig>);
  RegisterLegacyName(registry,
                     {"BatchSelfAdjointEigV2", "SelfAdjointEigV2", 13, "T", {DT_DOUBLE, DT_FLOAT}},
                     MakeKernel<SelfAdjointEigKernel>);
}

}  // namespace gradflow::eig
