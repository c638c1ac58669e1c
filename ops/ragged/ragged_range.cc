// RaggedRange.
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/common/row_splits.h"
#include "gradflow/ops/ragged/ragged_splits.h"

namespace gradflow::ragged_range {
namespace {

constexpr const char* kInputs[] = {"starts", "limits", "deltas"};

// Returns the number of rows; -1 if it is not known. Scalars stand for vectors of any length.
absl::StatusOr<int64_t> NumRows(absl::Span<const PartialTensorShape* const> shapes) {
  bool known = true;
  int64_t rows = -1;
  int64_t scalars = 0;
  for (int i = 0; i < 3; ++i) {
    const PartialTensorShape& shape = *shapes[i];
    if (shape.unknown_rank()) {
      known = false;
    } else if (shape.dims() > 1) {
      return errors::InvalidArgument(kInputs[i], " must be a scalar or a vector, but has shape ",
                                     shape.DebugString());
    } else if (shape.dims() == 0) {
      ++scalars;
    } else if (shape.dim_size(0) < 0) {
      known = false;
    } else if (rows >= 0 && rows != shape.dim_size(0)) {
      return errors::InvalidArgument(
          "starts, limits and deltas must be scalars or have the same shape, but have ", rows,
          " and ", shape.dim_size(0), " elements");
    } else {
      rows = shape.dim_size(0);
    }
  }
  if (rows >= 0) return rows;
  return known || scalars == 3 ? 1 : -1;
}

absl::Status RangeShape(ShapeContext& c) {
  const PartialTensorShape* const shapes[] = {&c.input(0), &c.input(1), &c.input(2)};
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t rows, NumRows(shapes));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t splits, NumRowSplits(rows));
  c.set_output(0, PartialTensorShape({splits}));
  c.set_output(1, PartialTensorShape({-1}));
  return absl::OkStatus();
}

// Returns the number of values from `start` to `limit`, or -1 if there are more than int64 holds.
template <typename T>
int64_t RangeSize(T start, T limit, T delta) {
  if constexpr (std::is_integral_v<T>) {
    if (delta > 0 ? start >= limit : start <= limit) return 0;
    const auto distance = delta > 0 ? static_cast<uint64_t>(limit) - static_cast<uint64_t>(start)
                                    : static_cast<uint64_t>(start) - static_cast<uint64_t>(limit);
    const uint64_t step =
        delta > 0 ? static_cast<uint64_t>(delta) : uint64_t{0} - static_cast<uint64_t>(delta);
    const uint64_t size = (distance - 1) / step + 1;
    return size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())
               ? -1
               : static_cast<int64_t>(size);
  } else {
    if (delta > 0 ? start >= limit : start <= limit) return 0;
    const double size = std::ceil(std::abs((limit - start) / delta));
    // The comparison is false for NaN.
    return size < 9.2e18 ? static_cast<int64_t>(size) : -1;
  }
}

template <typename T>
absl::Status Range(KernelContext& ctx, int64_t rows) {
  const auto at = [&](int i, int64_t row) {
    return ctx.input(i).span<T>()[ctx.input(i).dims() == 0 ? 0 : row];
  };
  Tensor* splits = nullptr;
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t num_splits, NumRowSplits(rows));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {num_splits}, &splits));
  const int64_t most = LargestSplit(splits->dtype());
  int64_t total = 0;
  WriteIndex(splits, 0, 0);
  for (int64_t row = 0; row < rows; ++row) {
    const T delta = at(2, row);
    if (delta == T(0)) return errors::InvalidArgument("delta ", row, " must not be 0");
    const int64_t size = RangeSize<T>(at(0, row), at(1, row), delta);
    if (size < 0 || size > most - total) {
      return errors::InvalidArgument("range ", row, ", from ", at(0, row), " to ", at(1, row),
                                     " by ", delta, ", has too many values");
    }
    total += size;
    WriteIndex(splits, row + 1, total);
  }
  Tensor* values = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, {total}, &values));
  const IndexReader first(*splits);
  const auto out = values->span<T>();
  ParallelFor(ctx, rows, BlockSizeForCost(5 + static_cast<double>(total) / (rows + 1.0)),
              [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  T value = at(0, row);
                  const T delta = at(2, row);
                  for (int64_t i = first[row]; i < first[row + 1]; ++i) {
                    if ((i & 0xfffff) == 0xfffff && ctx.ShouldStop()) return;
                    out[i] = value;
                    if constexpr (std::is_integral_v<T>) {
                      using U = std::make_unsigned_t<T>;
                      value = static_cast<T>(static_cast<U>(value) + static_cast<U>(delta));
                    } else {
                      value += delta;
                    }
                  }
                }
              });
  return absl::OkStatus();
}

absl::Status RaggedRange(KernelContext& ctx) {
  const PartialTensorShape shapes[] = {ctx.input(0).shape(), ctx.input(1).shape(),
                                       ctx.input(2).shape()};
  const PartialTensorShape* const pointers[] = {&shapes[0], &shapes[1], &shapes[2]};
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t rows, NumRows(pointers));
  const DataType dtype = ctx.expected_output_dtype(1);
  for (int i = 0; i < 3; ++i) {
    if (ctx.input_dtype(i) != dtype) {
      return errors::InvalidArgument(kInputs[i], " must be of type ", DataTypeString(dtype));
    }
  }
  absl::Status status;
  DispatchType(TypeList<float, double, int32_t, int64_t>(), dtype,
               [&](auto tag) { status = Range<typename decltype(tag)::type>(ctx, rows); });
  return status;
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("RaggedRange")
      .Group("math_ops")
      .HandWritten()
      .Input("starts: T")
      .Input("limits: T")
      .Input("deltas: T")
      .Output("rt_nested_splits: Tsplits")
      .Output("rt_dense_values: T")
      .Attr("T: {bfloat16, float, double, int32, int64} = DT_INT32")
      .Attr("Tsplits: {int32, int64} = DT_INT64")
      .Shape(RangeShape)
      .Doc(R"(Returns a ragged matrix whose rows are ranges of numbers.

starts: The first number of each row. A scalar stands for all rows, here and below.
limits: The bound of each row, which the row does not contain.
deltas: The difference of neighboring numbers of each row.
rt_nested_splits: The first value of each row, and the number of values.
rt_dense_values: The values of all rows.
T: The type of the numbers.
Tsplits: The type of `rt_nested_splits`.)");
  registry.Kernel("RaggedRange", MakeFunctionKernel<RaggedRange>)
      .Types("T", {DT_FLOAT, DT_DOUBLE, DT_INT32, DT_INT64});
}

}  // namespace gradflow::ragged_range
