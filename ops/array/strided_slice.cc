#include "gradflow/ops/array/strided_slice.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::strided_slice {
namespace {

// The number of entries must be less than this, as in TensorFlow.
constexpr int kMaxEntries = 32;

bool Has(int64_t mask, int i) { return ((mask >> i) & 1) != 0; }

struct IndexRange {
  int64_t begin = 0;
  int64_t stride = 1;
  int64_t size = -1;
};

// Returns the single index that entry `i` selects in dimension `d` of size `dim`.
absl::StatusOr<IndexRange> OneIndex(const StridedSliceEntries& entries, int i, int d, int64_t dim) {
  if (entries.strides.has_value() && (*entries.strides)[i] < 0) {
    return errors::InvalidArgument("strides[", i, "] must be positive, since shrink_axis_mask ",
                                   "selects one index there, but is ", (*entries.strides)[i]);
  }
  IndexRange range{0, 1, 1};
  if (!entries.begin.has_value() || dim < 0) return range;
  const int64_t index = (*entries.begin)[i];
  if (index < -dim || index >= dim) {
    return errors::InvalidArgument("slice index begin[", i, "] = ", index, " of dimension ", d,
                                   " is out of range [", -dim, ", ", dim, ")");
  }
  range.begin = index < 0 ? index + dim : index;
  return range;
}

// Returns the range that entry `i` selects in a dimension of size `dim`.
IndexRange RangeOfEntry(const StridedSliceEntries& entries, const StridedSliceMasks& masks, int i,
                        int64_t dim) {
  const bool from_start = Has(masks.begin, i);
  const bool to_end = Has(masks.end, i);
  if (dim < 0 || !entries.strides.has_value() || (!from_start && !entries.begin.has_value()) ||
      (!to_end && !entries.end.has_value())) {
    return IndexRange();
  }
  const int64_t stride = (*entries.strides)[i];
  // The bounds that indices are clamped to.
  const int64_t first = stride > 0 ? 0 : -1;
  const int64_t last = stride > 0 ? dim : dim - 1;
  const auto resolve = [&](int64_t index) {
    return std::clamp(index < 0 ? index + dim : index, first, last);
  };
  IndexRange range;
  range.stride = stride;
  range.begin = from_start ? (stride > 0 ? first : last) : resolve((*entries.begin)[i]);
  const int64_t end = to_end ? (stride > 0 ? last : first) : resolve((*entries.end)[i]);
  const int64_t distance = end - range.begin;
  const bool empty = distance == 0 || (distance < 0) != (stride < 0);
  range.size = empty ? 0 : distance / stride + (distance % stride != 0 ? 1 : 0);
  return range;
}

absl::Status CheckEntries(const StridedSliceEntries& entries, const StridedSliceMasks& masks,
                          int* ellipsis) {
  if (entries.count >= kMaxEntries) {
    return errors::InvalidArgument("begin, end and strides must have fewer than ", kMaxEntries,
                                   " elements, but have ", entries.count);
  }
  *ellipsis = -1;
  for (int i = 0; i < entries.count; ++i) {
    if (Has(masks.ellipsis, i)) {
      if (*ellipsis >= 0) {
        return errors::InvalidArgument("ellipsis_mask ", masks.ellipsis,
                                       " has more than one entry, ", *ellipsis, " and ", i);
      }
      *ellipsis = i;
    }
    if (entries.strides.has_value() && (*entries.strides)[i] == 0) {
      return errors::InvalidArgument("strides[", i, "] must not be 0");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StridedSlicePlan> PlanStridedSlice(const PartialTensorShape& input,
                                                  const StridedSliceEntries& entries,
                                                  const StridedSliceMasks& masks) {
  int ellipsis;
  GRADFLOW_RETURN_IF_ERROR(CheckEntries(entries, masks, &ellipsis));
  int taken = 0;
  for (int i = 0; i < entries.count; ++i) {
    if (i != ellipsis && !Has(masks.new_axis, i)) ++taken;
  }
  if (taken > input.dims()) {
    return errors::InvalidArgument("begin, end and strides index ", taken,
                                   " dimensions, but input has shape ", input.DebugString());
  }
  StridedSlicePlan plan;
  const auto take = [&](const IndexRange& range, bool keep) {
    plan.begin.push_back(range.begin);
    plan.stride.push_back(range.stride);
    plan.size.push_back(range.size);
    if (!keep) return;
    plan.shape.push_back(range.size);
    plan.source.push_back(static_cast<int64_t>(plan.size.size()) - 1);
  };
  const auto take_whole = [&](int count) {
    for (int k = 0; k < count; ++k) {
      take({0, 1, input.dim_size(static_cast<int>(plan.size.size()))}, true);
    }
  };
  for (int i = 0; i < entries.count; ++i) {
    if (i == ellipsis) {
      take_whole(input.dims() - taken);
      continue;
    }
    if (Has(masks.new_axis, i)) {
      plan.shape.push_back(1);
      plan.source.push_back(-1);
      continue;
    }
    const int d = static_cast<int>(plan.size.size());
    if (Has(masks.shrink_axis, i)) {
      GRADFLOW_ASSIGN_OR_RETURN(const IndexRange index, OneIndex(entries, i, d, input.dim_size(d)));
      take(index, false);
    } else {
      take(RangeOfEntry(entries, masks, i, input.dim_size(d)), true);
    }
  }
  // A missing ellipsis is implied at the end.
  if (ellipsis < 0) take_whole(input.dims() - taken);
  return plan;
}

absl::StatusOr<std::optional<StridedSlicePlan>> ReadStridedSlice(const ShapeContext& c, int first,
                                                                 const PartialTensorShape& input,
                                                                 const StridedSliceMasks& masks) {
  // The three vectors have the same length, which may be known from any of them.
  PartialTensorShape length = PartialTensorShape::UnknownOfRank(1);
  for (int i = first; i < first + 3; ++i) {
    if (!length.IsCompatibleWith(c.input(i))) {
      return errors::InvalidArgument("begin, end and strides must be vectors of one length, but ",
                                     "have shapes ", c.input(first).DebugString(), ", ",
                                     c.input(first + 1).DebugString(), " and ",
                                     c.input(first + 2).DebugString());
    }
    GRADFLOW_ASSIGN_OR_RETURN(length, length.MergeWith(c.input(i)));
  }
  std::vector<int64_t> values[3];
  std::optional<absl::Span<const int64_t>> known[3];
  for (int i = 0; i < 3; ++i) {
    GRADFLOW_ASSIGN_OR_RETURN(const bool is_known, c.IntsFromInput(first + i, &values[i]));
    if (is_known) known[i] = values[i];
  }
  if (input.unknown_rank() || length.dim_size(0) < 0) return std::nullopt;
  const int count = static_cast<int>(std::min<int64_t>(length.dim_size(0), kMaxEntries));
  return PlanStridedSlice(input, {count, known[0], known[1], known[2]}, masks);
}

absl::StatusOr<StridedSlicePlan> ReadStridedSlice(const KernelContext& ctx, int first,
                                                  const TensorShape& input,
                                                  const StridedSliceMasks& masks) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(first, "begin"));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckSameShape(first, "begin", first + 1, "end"));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckSameShape(first, "begin", first + 2, "strides"));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector begin, ctx.Ints(first, "begin"));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector end, ctx.Ints(first + 1, "end"));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector strides, ctx.Ints(first + 2, "strides"));
  const int count = static_cast<int>(std::min<size_t>(begin.size(), kMaxEntries));
  return PlanStridedSlice(input, {count, begin, end, strides}, masks);
}

StridedLoop::Operand LocateSource(const StridedSlicePlan& plan, const TensorShape& input) {
  StridedLoop::Operand operand = {0, RowMajorStrides(input.dim_sizes())};
  // An empty slice has no elements, and its offsets may overflow.
  if (std::find(plan.size.begin(), plan.size.end(), 0) != plan.size.end()) return operand;
  for (int d = 0; d < input.dims(); ++d) {
    operand.offset += plan.begin[d] * operand.strides[d];
    // The stride of a single element is not used and may have any value.
    operand.strides[d] = plan.size[d] == 1 ? 0 : operand.strides[d] * plan.stride[d];
  }
  return operand;
}

StridedLoop::Operand LocateResult(const StridedSlicePlan& plan, const TensorShape& input) {
  const StridedLoop::Operand source = LocateSource(plan, input);
  StridedLoop::Operand operand = {source.offset, {}};
  for (const int64_t d : plan.source) operand.strides.push_back(d < 0 ? 0 : source.strides[d]);
  return operand;
}

absl::Status SliceUpdateShape(ShapeContext& c, const PartialTensorShape& shape) {
  StridedSliceMasks masks;
  GRADFLOW_RETURN_IF_ERROR(masks.Read(c));
  GRADFLOW_ASSIGN_OR_RETURN(const std::optional<StridedSlicePlan> plan,
                            ReadStridedSlice(c, 1, shape, masks));
  if (plan.has_value()) {
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape slice,
                              PartialTensorShape::Make(plan->shape));
    GRADFLOW_RETURN_IF_ERROR(CheckBroadcastsTo("value", c.input(4), slice));
  }
  if (c.num_outputs() > 0) c.set_output(0, shape);
  return absl::OkStatus();
}

Registry::OpRegistrar& AddSliceAttrs(Registry::OpRegistrar& op) {
  return op.Attr("T: type")
      .Attr("Index: {int32, int64}")
      .Attr("begin_mask: int = 0")
      .Attr("end_mask: int = 0")
      .Attr("ellipsis_mask: int = 0")
      .Attr("new_axis_mask: int = 0")
      .Attr("shrink_axis_mask: int = 0");
}

namespace {

absl::Status StridedSliceShape(ShapeContext& c) {
  StridedSliceMasks masks;
  GRADFLOW_RETURN_IF_ERROR(masks.Read(c));
  GRADFLOW_ASSIGN_OR_RETURN(const std::optional<StridedSlicePlan> plan,
                            ReadStridedSlice(c, 1, c.input(0), masks));
  if (!plan.has_value()) return absl::OkStatus();
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, PartialTensorShape::Make(plan->shape));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

class StridedSliceKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) { return masks_.Read(construction); }

  absl::Status Compute(KernelContext& ctx) const override {
    const TensorShape& input = ctx.input(0).shape();
    GRADFLOW_ASSIGN_OR_RETURN(const StridedSlicePlan plan, ReadStridedSlice(ctx, 1, input, masks_));
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(plan.shape));
    return OutputStrided(ctx, 0, shape, plan.size, 0, LocateSource(plan, input));
  }

 private:
  StridedSliceMasks masks_;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("StridedSlice")
      .Group("array_ops")
      .Input("input: T")
      .Input("begin: Index")
      .Input("end: Index")
      .Input("strides: Index")
      .Output("output: T")
      .Attr("T: type")
      .Attr("Index: {int16, int32, int64}")
      .Attr("begin_mask: int = 0")
      .Attr("end_mask: int = 0")
      .Attr("ellipsis_mask: int = 0")
      .Attr("new_axis_mask: int = 0")
      .Attr("shrink_axis_mask: int = 0")
      .Shape(StridedSliceShape)
      .Doc(R"(Returns the slice `input[begin:end:stride, ..., newaxis, index]`, as in NumPy.

Entry i of the three vectors applies to dimension i. It selects the elements from `begin[i]` up to
but excluding `end[i]` in steps of `strides[i]`, backwards if the stride is negative. Negative
indices count from the end, and ranges are clamped to the dimension. Dimensions without an entry are
selected whole. Bit i of a mask changes the meaning of entry i.

input: The tensor.
begin: A vector: the first index in each dimension.
end: A vector of the same length: the exclusive limit in each dimension.
strides: A vector of the same length: the step in each dimension, not 0.
output: The selected elements.
T: The type of `input`.
Index: The type of the vectors.
begin_mask: Ignores `begin[i]`: starts at the first element, or at the last if the stride is
  negative.
end_mask: Ignores `end[i]`: continues to the last element, or to the first if the stride is
  negative.
ellipsis_mask: The entry selects all dimensions that have no other entry. Has at most one bit.
new_axis_mask: The entry inserts a dimension of size 1 and applies to no dimension of `input`.
shrink_axis_mask: The entry selects the single index `begin[i]`, which must exist, and removes the
  dimension.)");
  registry.Kernel("StridedSlice", MakeKernel<StridedSliceKernel>).Types("T", AllDataTypes());
}

}  // namespace gradflow::strided_slice
