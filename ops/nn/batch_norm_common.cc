#include "gradflow/ops/nn/batch_norm_common.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/input_checks.h"

namespace gradflow {

absl::Status CheckBatchNormAttrs(BatchNormAttrs* attrs) {
  if (!(attrs->epsilon >= 0) || !std::isfinite(attrs->epsilon)) {
    return errors::InvalidArgument("epsilon is ", attrs->epsilon,
                                   ", expected a finite number that is not negative");
  }
  const std::string& format = attrs->data_format;
  if (format != "NHWC" && format != "NCHW" && format != "NDHWC" && format != "NCDHW") {
    return errors::InvalidArgument("data_format is '", format,
                                   "', expected NHWC, NCHW, NDHWC or NCDHW");
  }
  attrs->rank = static_cast<int>(format.size());
  attrs->channels_last = format.back() == 'C';
  return absl::OkStatus();
}

absl::StatusOr<int64_t> BatchNormChannels(const BatchNormAttrs& attrs,
                                          const PartialTensorShape& x) {
  if (x.unknown_rank()) return -1;
  GRADFLOW_RETURN_IF_ERROR(CheckRank("x", x, attrs.rank));
  return x.dim_size(attrs.channels_last ? attrs.rank - 1 : 1);
}

absl::Status CheckPerChannel(const BatchNormAttrs& attrs, const PartialTensorShape& x,
                             absl::string_view name, const PartialTensorShape& found,
                             int64_t* channels) {
  GRADFLOW_RETURN_IF_ERROR(CheckRank(name, found, 1));
  if (!found.IsCompatibleWith({*channels})) {
    return ShapeError(name, found, {*channels},
                      absl::StrCat("the channels of x ", x.DebugString(), ", ", attrs.data_format));
  }
  if (*channels < 0 && !found.unknown_rank()) *channels = found.dim_size(0);
  return absl::OkStatus();
}

PartialTensorShape WithChannels(const BatchNormAttrs& attrs, PartialTensorShape x,
                                int64_t channels) {
  if (x.unknown_rank()) x = PartialTensorShape::UnknownOfRank(attrs.rank);
  x.set_dim(attrs.channels_last ? attrs.rank - 1 : 1, channels);
  return x;
}

BatchNormLayout MakeBatchNormLayout(const BatchNormAttrs& attrs, const TensorShape& x) {
  const int channel_dim = attrs.channels_last ? attrs.rank - 1 : 1;
  BatchNormLayout layout;
  layout.batch = x.dim_size(0);
  layout.channels = x.dim_size(channel_dim);
  layout.spatial = 1;
  for (int d = 1; d < attrs.rank; ++d) {
    // The product of the other dimensions of an empty tensor could overflow.
    if (d != channel_dim)
      layout.spatial = x.num_elements() == 0 ? 0 : layout.spatial * x.dim_size(d);
  }
  // If planes have size 1, both formats have the same layout.
  layout.in_rows = attrs.channels_last || layout.spatial == 1;
  return layout;
}

void ForEachRows(const RunContext& run, int64_t size, int64_t width, bool backwards,
                 absl::FunctionRef<void(int64_t offset, const BatchNormRows& rows)> fn) {
  // The minimum number of elements that are worth a task.
  constexpr int64_t kTaskElements = 32 * 1024;
  const int64_t rows = size / width;
  const int64_t rest = size % width;
  const int64_t rows_per_task = std::max<int64_t>(1, kTaskElements / width);
  const int64_t tasks = NumBlocks(rows, rows_per_task);
  ParallelFor(run, tasks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t task = backwards ? tasks - 1 - i : i;
      const int64_t first = task * rows_per_task;
      fn(first * width, {std::min(rows_per_task, rows - first), width, width});
      if (task == tasks - 1 && rest > 0) fn(rows * width, {1, width, rest});
    }
  });
}

ElementType ElementTypeOf(DataType dtype) {
  return dtype == DT_HALF       ? ElementType::kHalf
         : dtype == DT_BFLOAT16 ? ElementType::kBfloat16
                                : ElementType::kFloat;
}

void ElementsToFloats(ElementType type, const void* elements, int64_t n, float* floats) {
  switch (type) {
    case ElementType::kFloat:
      std::copy_n(static_cast<const float*>(elements), n, floats);
      return;
    case ElementType::kHalf:
      std::copy_n(static_cast<const half*>(elements), n, floats);
      return;
    case ElementType::kBfloat16:
      std::copy_n(static_cast<const bfloat16*>(elements), n, floats);
      return;
  }
}

void VectorToFloats(const RunContext& run, const Tensor& vector, float* floats) {
  const ElementType type = ElementTypeOf(vector.dtype());
  const void* const elements = vector.raw_data();
  ParallelFor(run, vector.NumElements(), BlockSizeForCost(1), [&](int64_t begin, int64_t end) {
    ElementsToFloats(type, ElementAt(elements, type, begin), end - begin, floats + begin);
  });
}

void SetVector(const RunContext& run, Tensor* vector, absl::FunctionRef<double(int64_t i)> value) {
  // Always the same NaN, so that its bits do not depend on the processor.
  const auto as_float = [&](int64_t i) {
    const double v = value(i);
    return std::isnan(v) ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(v);
  };
  if (vector->dtype() == DT_BFLOAT16) {
    const auto flat = vector->flat<bfloat16>();
    ForEachChannel(run, flat.size(), [&](int64_t i) { flat(i) = bfloat16(as_float(i)); });
  } else {
    const auto flat = vector->flat<float>();
    ForEachChannel(run, flat.size(), [&](int64_t i) { flat(i) = as_float(i); });
  }
}

}  // namespace gradflow
