// Batches of matrices for the ops of linear algebra: tensors whose last two dimensions are the rows
// and columns of a matrix. Matrices are processed in parallel, each on one thread.
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
  // Elements of a matrix; 0 if the tensor has none.
  int64_t size;
  // 0 if the tensor has no elements.
  int64_t count;
};

// ---- Shapes ----

// Return INVALID_ARGUMENT "input must have rank 2 at least, but has shape [3]", or "input must be
// square matrices, but has shape [2,3]".
absl::Status CheckMatrices(absl::string_view name, const PartialTensorShape& shape);
absl::Status CheckSquare(absl::string_view name, const PartialTensorShape& shape);

// Returns the dimensions but for the last two. REQUIRES: the rank is 2 at least
DimVector BatchDims(const PartialTensorShape& shape);
// Returns `batch` followed by `dims`.
absl::StatusOr<PartialTensorShape> WithDims(DimVector batch, absl::Span<const int64_t> dims);
// Sets output i to the batch dimensions of input 0, followed by `dims`; nothing if its rank is not
// known.
absl::Status SetBatchOutput(ShapeContext& c, int i, absl::Span<const int64_t> dims);
// Allocates a kernel's output i with that shape.
absl::Status AllocateBatchOutput(KernelContext& ctx, int i, absl::Span<const int64_t> dims,
                                 Tensor** out);

// Output 0 has the shape of input 0, which is square matrices.
absl::Status SquareShape(ShapeContext& c);

// Returns the batch dimensions of the solutions of systems of equations: those of matrix and rhs,
// which must be equal, or broadcast. INVALID_ARGUMENT if they are not, or if rhs does not have `m`
// rows, a dimension of matrix. -1 is unknown. REQUIRES: both ranks are 2 at least
absl::StatusOr<DimVector> MergeBatches(const PartialTensorShape& matrix, int64_t m,
                                       const PartialTensorShape& rhs, bool broadcast);
// Checks matrix [..., m, m] and rhs [..., m, k] of a system of equations, whose other dimensions
// are equal, or broadcast. Returns the shape of the solution [..., m, k]; unknown if a rank is.
absl::StatusOr<PartialTensorShape> SolutionShape(const PartialTensorShape& matrix,
                                                 const PartialTensorShape& rhs, bool broadcast);

// ---- Kernels ----

// Returns INVALID_ARGUMENT unless the first `n` inputs are of `dtype`.
absl::Status CheckTypes(const KernelContext& ctx, int n, DataType dtype);

// Calls fn(i) for i in [0, count), concurrently. Each costs about `operations` multiplications and
// uses `workspace_bytes` of memory of its own, which is charged to the session meanwhile. Returns
// the error of the smallest i that has one. A run can be stopped between the calls, not within
// LAPACK.
absl::Status ForEachMatrix(KernelContext& ctx, int64_t count, double operations,
                           double workspace_bytes, absl::FunctionRef<absl::Status(int64_t i)> fn);

// The index of the matrix of an input for a matrix of the output, to which its batch dimensions are
// broadcast.
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
