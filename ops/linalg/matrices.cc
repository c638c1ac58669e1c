#include "gradflow/ops/linalg/matrices.h"

#include <algorithm>
#include <utility>

#include "gradflow/core/call_safely.h"
#include "gradflow/core/memory_reservation.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow {

absl::Status CheckMatrices(absl::string_view name, const PartialTensorShape& shape) {
  return CheckRankAtLeast(name, shape, 2);
}

absl::Status CheckSquare(absl::string_view name, const PartialTensorShape& shape) {
  GRADFLOW_RETURN_IF_ERROR(CheckMatrices(name, shape));
  if (shape.unknown_rank()) return absl::OkStatus();
  const int64_t rows = shape.dim_size(shape.dims() - 2);
  const int64_t columns = shape.dim_size(shape.dims() - 1);
  if (rows < 0 || columns < 0 || rows == columns) return absl::OkStatus();
  return errors::InvalidArgument("Dimensions must be equal, but are ", rows, " and ", columns, ": ",
                                 name, " must be square matrices, but has shape ",
                                 shape.DebugString());
}

DimVector BatchDims(const PartialTensorShape& shape) {
  const auto dims = shape.dim_sizes();
  return DimVector(dims.begin(), dims.end() - 2);
}

absl::StatusOr<PartialTensorShape> WithDims(DimVector batch, absl::Span<const int64_t> dims) {
  batch.insert(batch.end(), dims.begin(), dims.end());
  return PartialTensorShape::Make(batch);
}

absl::Status SetBatchOutput(ShapeContext& c, int i, absl::Span<const int64_t> dims) {
  if (c.input(0).unknown_rank()) return absl::OkStatus();
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, WithDims(BatchDims(c.input(0)), dims));
  c.set_output(i, std::move(shape));
  return absl::OkStatus();
}

absl::Status AllocateBatchOutput(KernelContext& ctx, int i, absl::Span<const int64_t> dims,
                                 Tensor** out) {
  DimVector all = BatchDims(ctx.input(0).shape());
  all.insert(all.end(), dims.begin(), dims.end());
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(all));
  return ctx.AllocateOutput(i, shape, out);
}

absl::Status SquareShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckSquare(c.input_name(0), c.input(0)));
  if (c.input(0).unknown_rank()) return absl::OkStatus();
  const int64_t n = std::max(c.Dim(0, -1), c.Dim(0, -2));
  return SetBatchOutput(c, 0, {n, n});
}

absl::StatusOr<DimVector> MergeBatches(const PartialTensorShape& matrix, int64_t m,
                                       const PartialTensorShape& rhs, bool broadcast) {
  const int64_t rows = rhs.dim_size(rhs.dims() - 2);
  const PartialTensorShape batch(BatchDims(matrix));
  const PartialTensorShape rhs_batch(BatchDims(rhs));
  if (m >= 0 && rows >= 0 && m != rows) {
    return errors::InvalidArgument("Dimensions must be equal, but are ", m, " and ", rows,
                                   ": matrix has shape ", matrix.DebugString(),
                                   ", and rhs has shape ", rhs.DebugString());
  }
  absl::StatusOr<PartialTensorShape> all =
      broadcast ? BroadcastShapes(batch, rhs_batch)
                : MergeShapes("the batch of matrix", batch, "the batch of rhs", rhs_batch);
  if (!all.ok()) return errors::Prefix("the batches of matrix and rhs: ", all.status());
  return DimVector(all->dim_sizes().begin(), all->dim_sizes().end());
}

absl::StatusOr<PartialTensorShape> SolutionShape(const PartialTensorShape& matrix,
                                                 const PartialTensorShape& rhs, bool broadcast) {
  GRADFLOW_RETURN_IF_ERROR(CheckSquare("matrix", matrix));
  GRADFLOW_RETURN_IF_ERROR(CheckMatrices("rhs", rhs));
  if (matrix.unknown_rank() || rhs.unknown_rank()) {
    // A batch that is broadcast may have any rank.
    if (matrix.unknown_rank() || broadcast) return PartialTensorShape();
    const int64_t size =
        std::max(matrix.dim_size(matrix.dims() - 2), matrix.dim_size(matrix.dims() - 1));
    return WithDims(BatchDims(matrix), {size, -1});
  }
  const int64_t m =
      std::max(matrix.dim_size(matrix.dims() - 2), matrix.dim_size(matrix.dims() - 1));
  GRADFLOW_ASSIGN_OR_RETURN(DimVector batch, MergeBatches(matrix, m, rhs, broadcast));
  const int64_t rows = std::max(m, rhs.dim_size(rhs.dims() - 2));
  return WithDims(std::move(batch), {rows, rhs.dim_size(rhs.dims() - 1)});
}

absl::Status CheckTypes(const KernelContext& ctx, int n, DataType dtype) {
  for (int i = 0; i < n; ++i) {
    if (ctx.input_dtype(i) != dtype) {
      return errors::InvalidArgument("input ", i, " must be of type ", DataTypeString(dtype),
                                     ", but is ", DataTypeString(ctx.input_dtype(i)));
    }
  }
  return absl::OkStatus();
}

absl::Status ForEachMatrix(KernelContext& ctx, int64_t count, double operations,
                           double workspace_bytes, absl::FunctionRef<absl::Status(int64_t i)> fn) {
  if (count == 0) return absl::OkStatus();
  Mutex mutex;
  int64_t failed = count;
  absl::Status status;
  const auto fail = [&](int64_t i, absl::Status error) {
    MutexLock lock(&mutex);
    if (i >= failed) return;
    failed = i;
    status = std::move(error);
  };
  ParallelFor(ctx, count, BlockSizeForCost(operations + 200), [&](int64_t begin, int64_t end) {
    MemoryReservation workspace(ctx.allocator().get());
    absl::Status charged = workspace.Set(workspace_bytes, "the workspace of a matrix");
    if (!charged.ok()) return fail(begin, std::move(charged));
    for (int64_t i = begin; i < end && !ctx.ShouldStop(); ++i) {
      absl::Status here = CallSafely([&] { return fn(i); });
      if (!here.ok()) fail(i, std::move(here));
    }
  });
  return status;
}

BroadcastIndex::BroadcastIndex(const TensorShape& input, const TensorShape& output)
    : dims_(BatchDims(output)), strides_(BroadcastStrides(BatchDims(input), dims_)) {}

int64_t BroadcastIndex::operator()(int64_t i) const {
  int64_t index = 0;
  for (size_t d = dims_.size(); d-- > 0 && i > 0;) {
    index += i % dims_[d] * strides_[d];
    i /= dims_[d];
  }
  return index;
}

}  // namespace gradflow
