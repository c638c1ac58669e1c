// Reductions of the rows of a matrix by segment.
#ifndef GRADFLOW_OPS_MATH_SEGMENT_ROWS_H_
#define GRADFLOW_OPS_MATH_SEGMENT_ROWS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/tensor.h"
#include "gradflow/ops/math/reduction.h"

namespace gradflow {

// Returns the elements of input i as int64. The input must have an integer type of at least 16
// bits. If the type is not int64, *storage holds the elements.
absl::StatusOr<absl::Span<const int64_t>> Int64Elements(KernelContext& ctx, int i,
                                                        absl::string_view name, Tensor* storage);

// The rows of each segment s, in order: order[starts[s]], ..., order[starts[s + 1] - 1].
struct SegmentRows {
  int64_t num_segments = 0;
  // An array of num_segments + 1 positions.
  const int64_t* starts = nullptr;
  // Null if order[i] is i.
  const int64_t* order = nullptr;

  // The memory of the arrays.
  Tensor starts_storage;
  Tensor order_storage;
};

// Returns INVALID_ARGUMENT unless `ids` are in [0, limit) and do not decrease. A negative limit
// means no limit.
absl::Status CheckSortedIds(absl::string_view name, absl::Span<const int64_t> ids, int64_t limit);
// Returns INVALID_ARGUMENT unless all indices are in [0, limit).
absl::Status CheckIndices(absl::string_view name, absl::Span<const int64_t> indices, int64_t limit);

// Groups the rows 0, 1, ... by their ids. Leaves order null. REQUIRES: CheckSortedIds accepts the
// ids
absl::Status GroupSortedRows(KernelContext& ctx, absl::Span<const int64_t> ids,
                             int64_t num_segments, SegmentRows* rows);
// Groups rows with ids in any order. The rows of a segment keep their order. Rows with a negative
// id are in no segment. REQUIRES: all ids are less than num_segments
absl::Status GroupRows(KernelContext& ctx, absl::Span<const int64_t> ids, int64_t num_segments,
                       SegmentRows* rows);

// Sets row s of `out`, which has `width` elements, to the reduction of the rows of segment s of
// `data`, for all segments concurrently. Rows of empty segments are filled with the element
// `empty`. The bits do not depend on the number of threads. REQUIRES: width > 0
absl::Status ReduceSegments(KernelContext& ctx, const Reducer& reducer, const SegmentRows& rows,
                            int64_t width, const Tensor& data, const void* empty, Tensor* out);

// Returns true if ScatterRows() can replace GroupRows() and ReduceSegments(). ScatterRows() adds
// each row to its accumulators, which must be few enough to stay in a fast cache.
bool CanScatterRows(const Reducer& reducer, int64_t num_segments, int64_t width);
// REQUIRES: CanScatterRows(reducer, num_segments, width)
absl::Status ScatterRows(KernelContext& ctx, const Reducer& reducer, absl::Span<const int64_t> ids,
                         int64_t num_segments, int64_t width, const Tensor& data, const void* empty,
                         Tensor* out);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_MATH_SEGMENT_ROWS_H_
