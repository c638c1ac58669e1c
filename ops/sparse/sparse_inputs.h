// Checks of sparse tensors: a matrix of indices with a row for each value, the values, and the
// shape.
#ifndef GRADFLOW_OPS_SPARSE_SPARSE_INPUTS_H_
#define GRADFLOW_OPS_SPARSE_SPARSE_INPUTS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"

namespace gradflow {

// A sparse tensor whose shapes have been checked. Borrows the inputs.
struct SparseInput {
  int64_t size = 0;
  int rank = 0;
  // [size, rank]
  absl::Span<const int64_t> indices;
  const Tensor* values = nullptr;
  // Valid: the number of its elements fits int64.
  TensorShape shape;
  // The steps of the dimensions in row-major order.
  DimVector strides;

  absl::Span<const int64_t> index(int64_t i) const { return indices.subspan(i * rank, rank); }
  // Returns the position of a value in row-major order.
  int64_t Position(int64_t i) const {
    int64_t position = 0;
    for (int d = 0; d < rank; ++d) position += indices[i * rank + d] * strides[d];
    return position;
  }
};

// The order of indices that an op needs.
enum class SparseOrder {
  // Any, and they need not be within the shape.
  kUnchecked,
  // Any, within the shape.
  kAny,
  // Increasing in row-major order.
  kSorted,
};

// Reads the sparse tensor in inputs `i` (indices, int64), i + 1 (values) and i + 2 (shape, int64).
// `name` is a prefix for errors, such as "a_". A `values` of -1 means that there is no such input,
// and the shape is input i + 1.
absl::StatusOr<SparseInput> ReadSparse(const KernelContext& ctx, absl::string_view name,
                                       SparseOrder order, int indices, int values, int shape);

// Checks the shapes of these inputs for shape functions.
absl::Status CheckSparseShapes(ShapeContext& c, int indices, int values, int shape);

// Makes outputs `i` (indices) and i + 1 (values) with room for `size` values.
absl::Status AllocateSparse(KernelContext& ctx, int indices, int values, int64_t size, int rank,
                            double string_bytes, Tensor** indices_out, Tensor** values_out);

// Makes output `i` a vector of int64.
absl::Status SetShapeOutput(KernelContext& ctx, int i, absl::Span<const int64_t> dims);

// Returns the row-major order of the values: the positions in the sparse tensor, sorted by index.
// Equal indices keep their order.
absl::StatusOr<Tensor> SortedOrder(KernelContext& ctx, const SparseInput& sparse);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_SPARSE_SPARSE_INPUTS_H_
