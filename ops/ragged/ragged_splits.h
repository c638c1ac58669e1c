// Row splits of ragged tensors: row i of a ragged tensor has the values [splits[i], splits[i + 1]).
#ifndef GRADFLOW_OPS_RAGGED_RAGGED_SPLITS_H_
#define GRADFLOW_OPS_RAGGED_RAGGED_SPLITS_H_

#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"

namespace gradflow {

// Returns the largest number that splits of type int32 or int64 hold.
inline int64_t LargestSplit(DataType dtype) {
  return dtype == DT_INT32 ? std::numeric_limits<int32_t>::max()
                           : std::numeric_limits<int64_t>::max();
}

// Makes output `i` the splits of `rows` rows, whose last element will be `last`. Returns
// INVALID_ARGUMENT if the type of the output does not hold `last`, or if `last` is negative: the
// caller found that it exceeds int64.
absl::StatusOr<Tensor*> AllocateSplits(KernelContext& ctx, int i, int64_t rows, int64_t last);

// Makes the first outputs the splits of the dimensions of `shape` after its first, which are
// uniform.
absl::Status WriteUniformSplits(KernelContext& ctx, const TensorShape& shape);

// Returns INVALID_ARGUMENT unless `splits` is a vector of int32 or int64 that begins with 0, does
// not decrease, and ends with `num_values`.
absl::Status CheckRowSplits(absl::string_view name, const Tensor& splits, int64_t num_values);

// Checks the splits in inputs [first, first + count), from the outermost to the innermost
// dimension, whose values are input first + count. Returns INVALID_ARGUMENT if the values are a
// scalar.
absl::Status CheckNestedSplits(const KernelContext& ctx, absl::string_view name, int first,
                               int count);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_RAGGED_RAGGED_SPLITS_H_
