#include "gradflow/ops/quant/fake_quant_common.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/input_checks.h"

namespace gradflow {

absl::Status MakeFakeQuantLevels(int64_t num_bits, bool narrow_range, FakeQuantLevels* levels) {
  if (num_bits < 2 || num_bits > 16) {
    return errors::InvalidArgument("num_bits is ", num_bits, ", expected 2 to 16");
  }
  levels->lowest = narrow_range ? 1.0f : 0.0f;
  levels->highest = static_cast<float>((1 << num_bits) - 1);
  return absl::OkStatus();
}

absl::Status CheckFakeQuantArgs(float min, float max) {
  if (!std::isfinite(min)) {
    return errors::InvalidArgument("min is ", min, ", expected a finite number");
  }
  if (!std::isfinite(max)) {
    return errors::InvalidArgument("max is ", max, ", expected a finite number");
  }
  if (min >= max) {
    return errors::InvalidArgument("min is ", min, ", expected less than max, which is ", max);
  }
  return absl::OkStatus();
}

absl::Status CheckFakeQuantVars(const RunContext& run, const Tensor& min, const Tensor& max) {
  const auto check = [&](absl::string_view name, const Tensor& tensor) {
    const absl::Span<const float> values = tensor.flat<float>();
    std::atomic<int64_t> finite{0};
    ParallelFor(run, values.size(), kFakeQuantBlock, [&](int64_t begin, int64_t end) {
      if (AllFinite(values.data() + begin, end - begin)) finite += end - begin;
    });
    if (finite == static_cast<int64_t>(values.size())) return absl::OkStatus();
    const auto bad = std::find_if_not(values.begin(), values.end(),
                                      [](float value) { return std::isfinite(value); });
    // Some elements were not checked.
    if (bad == values.end()) return absl::CancelledError("the run has been stopped");
    return errors::InvalidArgument(
        name, tensor.dims() == 0 ? "" : absl::StrCat("[", bad - values.begin(), "]"), " is ", *bad,
        ", expected a finite number");
  };
  GRADFLOW_RETURN_IF_ERROR(check("min", min));
  return check("max", max);
}

absl::Status CheckFakeQuantScalars(const PartialTensorShape& min, const PartialTensorShape& max) {
  const PartialTensorShape scalar{TensorShape()};
  const absl::string_view why = "it must be a scalar, of rank 0";
  if (!min.IsCompatibleWith(scalar)) return ShapeError("min", min, scalar, why);
  if (!max.IsCompatibleWith(scalar)) return ShapeError("max", max, scalar, why);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> FakeQuantChannels(const PartialTensorShape& inputs,
                                          const PartialTensorShape& min,
                                          const PartialTensorShape& max) {
  if (inputs.dims() == 0) {
    return errors::InvalidArgument(
        "inputs has shape [], expected rank 1 at least (the last dimension is the channels)");
  }
  int64_t channels = inputs.unknown_rank() ? -1 : inputs.dim_size(inputs.dims() - 1);
  const auto error = [&](absl::string_view name, const PartialTensorShape& found) {
    return ShapeError(name, found, {channels},
                      absl::StrCat("of rank 1, one for each channel: the last dimension of inputs ",
                                   inputs.DebugString()));
  };
  if (!min.IsCompatibleWith({channels})) return error("min", min);
  if (channels < 0 && !min.unknown_rank()) channels = min.dim_size(0);
  if (!max.IsCompatibleWith({channels})) return error("max", max);
  if (channels < 0 && !max.unknown_rank()) channels = max.dim_size(0);
  return channels;
}

absl::Status CheckFakeQuantGradients(const PartialTensorShape& gradients,
                                     const PartialTensorShape& inputs) {
  if (gradients.IsCompatibleWith(inputs)) return absl::OkStatus();
  return ShapeError("gradients", gradients, inputs, "the same shape as inputs");
}

}  // namespace gradflow
