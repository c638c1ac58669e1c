#include "gradflow/ops/ragged/ragged_splits.h"

#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/common/row_splits.h"

namespace gradflow {

absl::StatusOr<Tensor*> AllocateSplits(KernelContext& ctx, int i, int64_t rows, int64_t last) {
  const DataType dtype = ctx.expected_output_dtype(i);
  if (last < 0 || last > LargestSplit(dtype)) {
    return errors::InvalidArgument("the splits of the result exceed ", DataTypeString(dtype));
  }
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t count, NumRowSplits(rows));
  Tensor* splits = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(i, {count}, &splits));
  return splits;
}

absl::Status WriteUniformSplits(KernelContext& ctx, const TensorShape& shape) {
  int64_t rows = 1;
  for (int d = 0; d + 1 < shape.dims(); ++d) {
    // The product of some sizes may overflow if another size is 0.
    rows = MultiplyWithoutOverflow(rows, shape.dim_size(d));
    const int64_t size = shape.dim_size(d + 1);
    GRADFLOW_ASSIGN_OR_RETURN(Tensor* const splits,
                              AllocateSplits(ctx, d, rows, MultiplyWithoutOverflow(rows, size)));
    for (int64_t r = 0; r <= rows; ++r) WriteIndex(splits, r, r * size);
  }
  return absl::OkStatus();
}

absl::Status CheckRowSplits(absl::string_view name, const Tensor& splits, int64_t num_values) {
  if (splits.dims() != 1 || splits.NumElements() == 0 ||
      (splits.dtype() != DT_INT32 && splits.dtype() != DT_INT64)) {
    return errors::InvalidArgument(name, " must be a vector of at least one integer, but has type ",
                                   DataTypeString(splits.dtype()), " and shape ",
                                   splits.shape().DebugString());
  }
  const IndexReader reader(splits);
  const int64_t last = splits.NumElements() - 1;
  if (reader[0] != 0) {
    return errors::InvalidArgument(name, " must begin with 0, but begins with ", reader[0]);
  }
  for (int64_t i = 0; i < last; ++i) {
    if (reader[i + 1] < reader[i]) {
      return errors::InvalidArgument(name, " must not decrease, but ", reader[i],
                                     " is followed by ", reader[i + 1]);
    }
  }
  if (reader[last] != num_values) {
    return errors::InvalidArgument(name, " must end with the number of values, ", num_values,
                                   ", but ends with ", reader[last]);
  }
  return absl::OkStatus();
}

absl::Status CheckNestedSplits(const KernelContext& ctx, absl::string_view name, int first,
                               int count) {
  const Tensor& values = ctx.input(first + count);
  if (values.dims() == 0) {
    return errors::InvalidArgument("the values of a ragged tensor must not be a scalar");
  }
  for (int k = 0; k < count; ++k) {
    const Tensor& next = ctx.input(first + k + 1);
    const int64_t rows = k + 1 == count ? values.dim_size(0) : next.NumElements() - 1;
    GRADFLOW_RETURN_IF_ERROR(
        CheckRowSplits(absl::StrCat(name, "[", k, "]"), ctx.input(first + k), rows));
  }
  return absl::OkStatus();
}

}  // namespace gradflow
