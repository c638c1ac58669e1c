// Index arithmetic of NumPy's extended slices, x[begin:end:stride, ..., newaxis, i]. Shared by the
// shape functions and kernels of StridedSlice, its gradient, and the ops that replace a slice of a
// tensor or of a variable.
#ifndef GRADFLOW_OPS_ARRAY_STRIDED_SLICE_H_
#define GRADFLOW_OPS_ARRAY_STRIDED_SLICE_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::strided_slice {

// The masks of the op. Bit i applies to entry i of `begin`, `end` and `strides`.
struct StridedSliceMasks {
  // Starts at the first element in the direction of the stride, ignoring `begin`.
  int64_t begin = 0;
  // Ends after the last element in the direction of the stride, ignoring `end`.
  int64_t end = 0;
  // Selects all dimensions that the other entries do not index. Has at most one bit.
  int64_t ellipsis = 0;
  // Inserts a dimension of size 1. Does not index a dimension of the input.
  int64_t new_axis = 0;
  // Selects the single index `begin` and removes the dimension.
  int64_t shrink_axis = 0;

  // Reads the attributes of a node. Source is ShapeContext or KernelConstruction.
  template <typename Source>
  absl::Status Read(const Source& source) {
    absl::Status status;
    status.Update(source.GetAttr("begin_mask", &begin));
    status.Update(source.GetAttr("end_mask", &end));
    status.Update(source.GetAttr("ellipsis_mask", &ellipsis));
    status.Update(source.GetAttr("new_axis_mask", &new_axis));
    status.Update(source.GetAttr("shrink_axis_mask", &shrink_axis));
    return status;
  }
};

// The entries. A shape function may not know all three vectors.
struct StridedSliceEntries {
  int count = 0;
  std::optional<absl::Span<const int64_t>> begin;
  std::optional<absl::Span<const int64_t>> end;
  std::optional<absl::Span<const int64_t>> strides;
};

struct StridedSlicePlan {
  // For each dimension of the input: the first index, the stride, and the number of elements (-1 if
  // unknown).
  DimVector begin;
  DimVector stride;
  DimVector size;
  // The shape of the result: `size` after removing and inserting dimensions.
  DimVector shape;
  // For each dimension of the result: the dimension of the input; -1 if the dimension is inserted.
  DimVector source;
};

// Returns the slice whose vectors are inputs `first` to `first` + 2 of a shape function. Returns
// nullopt if the rank of `input` or the number of entries is unknown.
absl::StatusOr<std::optional<StridedSlicePlan>> ReadStridedSlice(const ShapeContext& c, int first,
                                                                 const PartialTensorShape& input,
                                                                 const StridedSliceMasks& masks);
// Overload for kernels.
absl::StatusOr<StridedSlicePlan> ReadStridedSlice(const KernelContext& ctx, int first,
                                                  const TensorShape& input,
                                                  const StridedSliceMasks& masks);

// Locates the elements of the slice in a tensor of shape `input`. LocateSource returns a stride for
// each dimension of the input, LocateResult for each dimension of the result.
StridedLoop::Operand LocateSource(const StridedSlicePlan& plan, const TensorShape& input);
StridedLoop::Operand LocateResult(const StridedSlicePlan& plan, const TensorShape& input);

// Returns INVALID_ARGUMENT if the entries are not valid for the input.
// REQUIRES: the rank of `input` is known
absl::StatusOr<StridedSlicePlan> PlanStridedSlice(const PartialTensorShape& input,
                                                  const StridedSliceEntries& entries,
                                                  const StridedSliceMasks& masks);

// ---- Ops that replace a slice ----

// The shape function of an op that replaces a slice of a tensor of shape `shape`. Inputs 1 to 3
// select the slice, and input 4 has the new elements. Sets the shape of output 0 if the op has an
// output.
absl::Status SliceUpdateShape(ShapeContext& c, const PartialTensorShape& shape);

// Adds the attributes T and Index and the masks.
Registry::OpRegistrar& AddSliceAttrs(Registry::OpRegistrar& op);
// The documentation of these attributes, without T. Append it to the line of T.
inline constexpr char kSliceAttrsDoc[] = R"(
Index: The type of the vectors.
begin_mask: See `StridedSlice`.
end_mask: See `StridedSlice`.
ellipsis_mask: See `StridedSlice`.
new_axis_mask: See `StridedSlice`.
shrink_axis_mask: See `StridedSlice`.)";

}  // namespace gradflow::strided_slice

#endif  // GRADFLOW_OPS_ARRAY_STRIDED_SLICE_H_
