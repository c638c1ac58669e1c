// Index arithmetic of NumPy's extended slices, x[begin:end:stride, ..., newaxis, i], shared by the
// shape functions and the kernels of StridedSlice, its gradient and TensorStridedSliceUpdate.
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
  // Ends after the last element, ignoring `end`.
  int64_t end = 0;
  // Selects all of the dimensions that the other entries do not index. At most one bit.
  int64_t ellipsis = 0;
  // Inserts a dimension of size 1, without indexing a dimension of the input.
  int64_t new_axis = 0;
  // Selects the one index `begin` and removes the dimension.
  int64_t shrink_axis = 0;

  // Reads the attributes of a node: of a ShapeContext or a KernelConstruction.
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

// The entries. During shape inference any of the three vectors may be unknown.
struct StridedSliceEntries {
  int count = 0;
  std::optional<absl::Span<const int64_t>> begin;
  std::optional<absl::Span<const int64_t>> end;
  std::optional<absl::Span<const int64_t>> strides;
};

struct StridedSlicePlan {
  // For each dimension of the input, the first index, the stride, and the number of elements (-1 if
  // unknown).
  DimVector begin;
  DimVector stride;
  DimVector size;
  // The shape of the result: `size` with dimensions removed and inserted.
  DimVector shape;
  // For each dimension of the result, that of the input; -1 if it is inserted.
  DimVector source;
};

// Returns the slice of a shape function whose vectors are inputs `first` to `first` + 2; nothing if
// the rank of `input` or the number of entries is unknown.
absl::StatusOr<std::optional<StridedSlicePlan>> ReadStridedSlice(const ShapeContext& c, int first,
                                                                 const PartialTensorShape& input,
                                                                 const StridedSliceMasks& masks);
// Returns that of a kernel.
absl::StatusOr<StridedSlicePlan> ReadStridedSlice(const KernelContext& ctx, int first,
                                                  const TensorShape& input,
                                                  const StridedSliceMasks& masks);

// Locates the elements of the slice in a tensor of shape `input`: with a stride for each dimension
// of the input (LocateSource) or of the result (LocateResult).
StridedLoop::Operand LocateSource(const StridedSlicePlan& plan, const TensorShape& input);
StridedLoop::Operand LocateResult(const StridedSlicePlan& plan, const TensorShape& input);

// Returns INVALID_ARGUMENT if the entries are not valid for the input.
// REQUIRES: the rank of `input` is known
absl::StatusOr<StridedSlicePlan> PlanStridedSlice(const PartialTensorShape& input,
                                                  const StridedSliceEntries& entries,
                                                  const StridedSliceMasks& masks);

// ---- Ops that replace a slice ----

// The shape function of an op whose inputs 1 to 3 select a slice of a tensor of shape `shape`, and
// whose input 4 are the new elements. Sets the shape of output 0, if there is one.
absl::Status SliceUpdateShape(ShapeContext& c, const PartialTensorShape& shape);

// Adds attributes T and Index, and those of the masks.
Registry::OpBuilder& AddSliceAttrs(Registry::OpBuilder& op);
// The documentation of these attributes except T, to be appended to its line.
inline constexpr char kSliceAttrsDoc[] = R"(
Index: The type of the vectors.
begin_mask: See `StridedSlice`.
end_mask: See `StridedSlice`.
ellipsis_mask: See `StridedSlice`.
new_axis_mask: See `StridedSlice`.
shrink_axis_mask: See `StridedSlice`.)";

}  // namespace gradflow::strided_slice

#endif  // GRADFLOW_OPS_ARRAY_STRIDED_SLICE_H_
