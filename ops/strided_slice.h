// The arithmetic of NumPy's extended slices, x[begin:end:stride, ..., newaxis, i], which the shape
// function and the kernel of StridedSlice share.
#ifndef GRADFLOW_OPS_STRIDED_SLICE_H_
#define GRADFLOW_OPS_STRIDED_SLICE_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gradflow/core/tensor_shape.h"

namespace gradflow {

// The masks of the op: bit i speaks of entry i of `begin`, `end` and `strides`.
struct StridedSliceMasks {
  // Begins at the first element in the direction of the stride, whatever `begin` says.
  int64_t begin = 0;
  // Ends behind the last one, whatever `end` says.
  int64_t end = 0;
  // Stands for as many whole dimensions as the other entries leave over; at most one entry.
  int64_t ellipsis = 0;
  // Inserts a dimension of size 1, and takes none of the input's.
  int64_t new_axis = 0;
  // Selects the one index `begin`, and leaves the dimension out.
  int64_t shrink_axis = 0;

  // `get_attr(name, &value)` reads an attribute of the node.
  template <typename GetAttr>
  absl::Status Read(const GetAttr& get_attr) {
    absl::Status status;
    status.Update(get_attr("begin_mask", &begin));
    status.Update(get_attr("end_mask", &end));
    status.Update(get_attr("ellipsis_mask", &ellipsis));
    status.Update(get_attr("new_axis_mask", &new_axis));
    status.Update(get_attr("shrink_axis_mask", &shrink_axis));
    return status;
  }
};

// The entries, of which any of the three may not be known when a shape is inferred.
struct StridedSliceEntries {
  int count = 0;
  std::optional<absl::Span<const int64_t>> begin;
  std::optional<absl::Span<const int64_t>> end;
  std::optional<absl::Span<const int64_t>> strides;
};

struct StridedSlicePlan {
  // For each dimension of the input: where it is entered, by what stride, and for how many
  // elements (-1 if not known).
  DimVector begin;
  DimVector stride;
  DimVector size;
  // The shape of the result: `size` with dimensions left out and put in.
  DimVector shape;
};

// INVALID_ARGUMENT if the entries do not fit the input. REQUIRES: the rank of `input` is known.
absl::StatusOr<StridedSlicePlan> PlanStridedSlice(const PartialTensorShape& input,
                                                  const StridedSliceEntries& entries,
                                                  const StridedSliceMasks& masks);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_STRIDED_SLICE_H_
