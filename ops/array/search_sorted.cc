// LowerBound and UpperBound.
#include <algorithm>
#include <limits>
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/indices.h"

namespace gradflow::search_sorted {
namespace {

absl::Status CheckRows(const PartialTensorShape& sorted_inputs, const PartialTensorShape& values) {
  for (const auto& [name, shape] :
       {std::pair("sorted_inputs", &sorted_inputs), std::pair("values", &values)}) {
    GRADFLOW_RETURN_IF_ERROR(CheckRank(name, *shape, 2));
  }
  if (sorted_inputs.unknown_rank() || values.unknown_rank()) return absl::OkStatus();
  const int64_t a = sorted_inputs.dim_size(0);
  const int64_t b = values.dim_size(0);
  if (a < 0 || b < 0 || a == b) return absl::OkStatus();
  return errors::InvalidArgument(
      "sorted_inputs and values must have the same number of rows, but have shapes ",
      sorted_inputs.DebugString(), " and ", values.DebugString());
}

absl::Status SearchShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckRows(c.input(0), c.input(1)));
  c.set_output(0, {c.Dim(1, 0) < 0 ? c.Dim(0, 0) : c.Dim(1, 0), c.Dim(1, 1)});
  return absl::OkStatus();
}

// Returns the number of elements less than `value` or, if `Upper`, not greater than `value`.
template <typename T, bool Upper>
int64_t Search(const T* begin, const T* end, T value) {
  using C = ComputeType<T>;
  const C key = static_cast<C>(value);
  if constexpr (Upper) {
    return std::upper_bound(begin, end, key, [](C a, T b) { return a < static_cast<C>(b); }) -
           begin;
  } else {
    return std::lower_bound(begin, end, key, [](T a, C b) { return static_cast<C>(a) < b; }) -
           begin;
  }
}

template <typename T, bool Upper>
absl::Status SearchRows(KernelContext& ctx) {
  const Tensor& sorted = ctx.input(0);
  const Tensor& values = ctx.input(1);
  GRADFLOW_RETURN_IF_ERROR(CheckRows(sorted.shape(), values.shape()));
  if (ctx.expected_output_dtype(0) == DT_INT32 &&
      sorted.dim_size(1) > std::numeric_limits<int32_t>::max()) {
    return errors::InvalidArgument("out_type is int32, which cannot hold the indices of ",
                                   "sorted_inputs, of shape ", sorted.shape().DebugString());
  }
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, values.shape(), &output));
  const T* rows = sorted.flat<T>().data();
  const T* keys = values.flat<T>().data();
  const int64_t columns = sorted.dim_size(1);
  const int64_t per_row = values.dim_size(1);
  ParallelFor(ctx, values.NumElements(), BlockSizeForCost(30), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* row = rows + i / per_row * columns;
      WriteIndex(output, i, Search<T, Upper>(row, row + columns, keys[i]));
    }
  });
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  const struct {
    const char* op;
    const char* doc;
  } ops[] = {
      {"UpperBound", "after the elements that equal it"},
      {"LowerBound", "before the elements that equal it"},
  };
  for (const auto& op : ops) {
    registry.Op(op.op)
        .Group("array_ops")
        .Input("sorted_inputs: T")
        .Input("values: T")
        .Output("output: out_type")
        .Attr("T: type")
        .Attr("out_type: {int32, int64} = DT_INT32")
        .Shape(SearchShape)
        .Doc(absl::StrCat("Returns where values belong in sorted rows, ", op.doc, R"(.

sorted_inputs: A matrix whose rows are in ascending order.
values: A matrix with as many rows: the values to look up in each.
output: The index of each value.
T: The type of the values, a real number type.
out_type: The type of the indices.)"));
  }
  ForEachType(RealTypes(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    registry.Kernel("UpperBound", MakeFunctionKernel<SearchRows<T, true>>).template Type<T>("T");
    registry.Kernel("LowerBound", MakeFunctionKernel<SearchRows<T, false>>).template Type<T>("T");
  });
}

}  // namespace gradflow::search_sorted
