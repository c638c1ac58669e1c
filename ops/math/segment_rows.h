// Reductions of the rows of a matrix by segment, for segment ops.
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

// Returns the elements of input i, which is of an integer type of at least 16 bits, as int64.
// *storage holds them if the input is not int64.
absl::StatusOr<absl::Span<const int64_t>> Int64Elements(KernelContext& ctx, int i,
                                                        absl::string_view name, Tensor* storage);

// The rows of each segment: order[starts[s]], ..., order[starts[s + 1] - 1], in that order.
struct SegmentRows {
  int64_t num_segments = 0;
  // num_segments + 1 numbers.
  const int64_t* starts = nullptr;
  // Null for the identity.
  const int64_t* order = nullptr;

  // The memory of the numbers.
  Tensor starts_storage;
  Tensor order_storage;
};

// Returns INVALID_ARGUMENT unless `ids` are in [0, limit) and do not decrease. A negative limit is
// none.
absl::Status CheckSortedIds(absl::string_view name, absl::Span<const int64_t> ids, int64_t limit);
// Returns INVALID_ARGUMENT unless all are in [0, limit).
absl::Status CheckIndices(absl::string_view name, absl::Span<const int64_t> indices, int64_t limit);

// Groups the rows 0, 1, ... with these ids, which CheckSortedIds accepts. Leaves order null.
absl::Status GroupSortedRows(KernelContext& ctx, absl::Span<const int64_t> ids,
                             int64_t num_segments, SegmentRows* rows);
// Groups the rows with ids in any order. The rows of a segment keep their order, and those of a
// negative id are in none. REQUIRES: all ids are less than num_segments
absl::Status GroupRows(KernelContext& ctx, absl::Span<const int64_t> ids, int64_t num_segments,
                       SegmentRows* rows);

// Sets row s of `out`, of `width` elements, to the reduction of the rows of segment s of `data`,
// for all segments, concurrently. Fills the rows of segments without rows with the element `empty`.
// The bits do not depend on the number of threads. REQUIRES: width > 0
absl::Status ReduceSegments(KernelContext& ctx, const Reducer& reducer, const SegmentRows& rows,
                            int64_t width, const Tensor& data, const void* empty, Tensor* out);

// Returns true if ScatterRows() can take the place of GroupRows() and ReduceSegments(): there are
// few enough results for their accumulators to stay in a fast cache, to which it adds the rows.
bool CanScatterRows(const Reducer& reducer, int64_t num_segments, int64_t width);
// REQUIRES: CanScatterRows(reducer, num_segments, width)
absl::Status ScatterRows(KernelContext& ctx, const Reducer& reducer, absl::Span<const int64_t> ids,
                         int64_t num_segments, int64_t width, const Tensor& data, const void* empty,
                         Tensor* out);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_MATH_SEGMENT_ROWS_H_
