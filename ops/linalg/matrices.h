// Batches of matrices for linear algebra ops: tensors whose last two dimensions are the rows and
// columns of a matrix. Matrices are processed in parallel, each on one thread.
#ifndef GRADFLOW_OPS_LINALG_MATRICES_H_
#define GRADFLOW_OPS_LINALG_MATRICES_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/tensor_shape.h"

namespace gradflow {

// The number and size of the matrices of a tensor.
struct MatrixBatch {
  explicit MatrixBatch(const TensorShape& shape)
      : rows(shape.dim_size(shape.dims() - 2)),
        columns(shape.dim_size(shape.dims() - 1)),
        // The product may overflow if another dimension is 0.
        size(shape.num_elements() == 0 ? 0 : rows * columns),
        count(size == 0 ? 0 : shape.num_elements() / size) {}

  int64_t rows;
  int64_t columns;
  // The number of elements of a matrix; 0 if the tensor is empty.
  int64_t size;
  // The number of matrices; 0 if the tensor is empty.
  int64_t count;
};

// ---- Shapes ----

// Returns INVALID_ARGUMENT "input must have rank 2 at least, but has shape [3]", or "input must be
// square matrices, but has shape [2,3]".
absl::Status CheckMatrices(absl::string_view name, const PartialTensorShape& shape);
absl::Status CheckSquare(absl::string_view name, const PartialTensorShape& shape);

// Returns the dimensions without the last two. REQUIRES: the rank is at least 2
DimVector BatchDims(const PartialTensorShape& shape);
// Returns `batch` followed by `dims`.
absl::StatusOr<PartialTensorShape> WithDims(DimVector batch, absl::Span<const int64_t> dims);
// Sets output i to the batch dimensions of input 0, followed by `dims`. Does nothing if the rank of
// input 0 is unknown.
absl::Status SetBatchOutput(ShapeContext& c, int i, absl::Span<const int64_t> dims);
// Allocates output i of a kernel with this shape.
absl::Status AllocateBatchOutput(KernelContext& ctx, int i, absl::Span<const int64_t> dims,
                                 Tensor** out);

// Shape function: output 0 has the shape of input 0, which must be square matrices.
absl::Status SquareShape(ShapeContext& c);

// Returns the batch dimensions of the solutions of systems of equations. The batch dimensions of
// `matrix` and `rhs` must be equal, or broadcastable if `broadcast` is true. Returns
// INVALID_ARGUMENT if they do not match, or if rhs does not have `m` rows, a dimension of `matrix`.
// Unknown dimensions are -1.
// REQUIRES: both ranks are at least 2
absl::StatusOr<DimVector> MergeBatches(const PartialTensorShape& matrix, int64_t m,
                                       const PartialTensorShape& rhs, bool broadcast);
// Checks matrix [..., m, m] and rhs [..., m, k] of a system of equations. Their batch dimensions
// must be equal, or broadcastable if `broadcast` is true. Returns the shape of the solution [...,
// m, k]; unknown if a rank is unknown.
absl::StatusOr<PartialTensorShape> SolutionShape(const PartialTensorShape& matrix,
                                                 const PartialTensorShape& rhs, bool broadcast);

// ---- Kernels ----

// Returns INVALID_ARGUMENT unless the first `n` inputs have type `dtype`.
absl::Status CheckTypes(const KernelContext& ctx, int n, DataType dtype);

// Calls fn(i) concurrently for i in [0, count). A call costs about `operations` multiplications and
// uses `workspace_bytes` of memory, which are charged to the session during the call. Returns the
// error with the smallest i. A run can be stopped between calls, but not within LAPACK.
absl::Status ForEachMatrix(KernelContext& ctx, int64_t count, double operations,
                           double workspace_bytes, absl::FunctionRef<absl::Status(int64_t i)> fn);

// Maps a matrix of the output to the matrix of an input whose batch dimensions are broadcast.
class BroadcastIndex {
 public:
  BroadcastIndex(const TensorShape& input, const TensorShape& output);
  int64_t operator()(int64_t i) const;

 private:
  DimVector dims_;
  DimVector strides_;
};

}  // namespace gradflow

#endif  // GRADFLOW_OPS_LINALG_MATRICES_H_
