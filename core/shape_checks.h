// Checks of shapes that shape functions and kernels share. Their errors begin with the texts of
// TensorFlow's shape functions, and then name the arguments and their shapes:
//   Shape must be rank 2 but is rank 1: logits has shape [3]
// All errors are INVALID_ARGUMENT. An unknown rank or dimension, and a dimension that the shape
// does not have, passes every check.
//
// Thread safety: thread-safe.
#ifndef GRADFLOW_CORE_SHAPE_CHECKS_H_
#define GRADFLOW_CORE_SHAPE_CHECKS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/tensor_shape.h"

#pragma GCC visibility push(default)
namespace gradflow {

// ---- One shape ----

// Return an error unless the rank is equal to, at least, or at most `rank`.
absl::Status CheckRank(absl::string_view name, const PartialTensorShape& shape, int rank);
absl::Status CheckRankAtLeast(absl::string_view name, const PartialTensorShape& shape, int rank);
absl::Status CheckRankAtMost(absl::string_view name, const PartialTensorShape& shape, int rank);
// Returns an error unless dimension d has the size. Negative d count from the end.
absl::Status CheckDim(absl::string_view name, const PartialTensorShape& shape, int d, int64_t size);

// ---- Two shapes ----

// Returns the size that both dimensions must have, or -1 if both are unknown. Negative d count from
// the end.
absl::StatusOr<int64_t> MergeDims(absl::string_view name_a, const PartialTensorShape& a, int d_a,
                                  absl::string_view name_b, const PartialTensorShape& b, int d_b);
// Returns the shape that both must have.
absl::StatusOr<PartialTensorShape> MergeShapes(absl::string_view name_a,
                                               const PartialTensorShape& a,
                                               absl::string_view name_b,
                                               const PartialTensorShape& b);

// ---- Inputs of a shape function ----

absl::Status CheckRankAtMost(const ShapeContext& c, int i, int rank);
absl::Status CheckDim(const ShapeContext& c, int i, int d, int64_t size);
// Merges dimension d_i of input i with dimension d_j of input j.
absl::StatusOr<int64_t> MergeDims(const ShapeContext& c, int i, int d_i, int j, int d_j);
absl::StatusOr<PartialTensorShape> MergeInputs(const ShapeContext& c, int i, int j);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_SHAPE_CHECKS_H_
