#include "gradflow/ops/quant/quantized_range.h"

#include "gradflow/core/status.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow {

absl::Status CheckRangeShapes(ShapeContext& c, int first, int count) {
  for (int i = first; i < first + count; ++i) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 0));
  for (int i = 1; i < c.num_outputs(); ++i) c.set_output(i, TensorShape());
  return absl::OkStatus();
}

void RangeInputs::Init(const KernelConstruction& construction, int first, int count) {
  first_ = first;
  types_ = InputTypes(construction);
  const auto& args = construction.op_def().input_arg();
  for (int i = 0; i < 2 * count; ++i) names_.push_back(args[first + i].name());
}

absl::StatusOr<std::vector<QuantizedRange>> RangeInputs::Read(const KernelContext& ctx) const {
  GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
  std::vector<QuantizedRange> ranges(names_.size() / 2);
  for (size_t i = 0; i < names_.size(); ++i) {
    const int input = first_ + static_cast<int>(i);
    GRADFLOW_ASSIGN_OR_RETURN(const float bound, FiniteScalar(ctx, input, names_[i]));
    (i % 2 == 0 ? ranges[i / 2].min : ranges[i / 2].max) = bound;
  }
  return ranges;
}

absl::StatusOr<std::vector<QuantizedRange>> RangeInputs::ReadNonempty(
    const KernelContext& ctx) const {
  GRADFLOW_ASSIGN_OR_RETURN(std::vector<QuantizedRange> ranges, Read(ctx));
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].max > ranges[i].min) continue;
    return errors::InvalidArgument(names_[2 * i + 1], " must be greater than ", names_[2 * i],
                                   ", but they are ", ranges[i].max, " and ", ranges[i].min);
  }
  return ranges;
}

absl::StatusOr<float> FiniteScalar(const KernelContext& ctx, int i, absl::string_view name) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(i, name));
  const float value = *static_cast<const float*>(ctx.input(i).raw_data());
  if (std::isfinite(value)) return value;
  return errors::InvalidArgument(name, " must be finite, but is ", value);
}

absl::Status OutputRange(KernelContext& ctx, int i, const QuantizedRange& range) {
  for (int k = 0; k < 2; ++k) {
    Tensor* bound = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(i + k, TensorShape(), &bound));
    bound->flat<float>()(0) = k == 0 ? range.min : range.max;
  }
  return absl::OkStatus();
}

int64_t SaturatedInt64(double value) {
  constexpr double kMost = 4611686018427387904.0;  // 2^62
  if (std::isnan(value)) return 0;
  return static_cast<int64_t>(std::clamp(value, -kMost, kMost));
}

FixedPointRequantizer::FixedPointRequantizer(const QuantizedRange& from, const QuantizedRange& to) {
  constexpr double kOne = 1 << kBits;
  constexpr double kSteps = QuantizedLimits<uint8_t>::kCount - 1;
  const float from_size = from.max - from.min;
  const float to_size = to.max - to.min;
  // The middle of the range is near the integer 0.
  const auto middle = static_cast<float>((from.min + from.max) / 2.0);
  const float per_number = to_size == 0 ? 0 : static_cast<float>(kSteps / to_size);
  factor_ = to_size == 0 ? 0 : SaturatedInt64(kSteps * kOne * from_size / to_size);
  const int64_t zero = SaturatedInt64(middle * per_number * static_cast<float>(kOne));
  const int64_t first =
      to_size == 0 ? 0 : SaturatedInt64(std::round(kOne * (to.min * kSteps) / to_size));
  constexpr uint64_t kHalf = uint64_t{1} << (kBits - 1);
  offset_ =
      static_cast<int64_t>(static_cast<uint64_t>(zero) - static_cast<uint64_t>(first) + kHalf);
}

}  // namespace gradflow
