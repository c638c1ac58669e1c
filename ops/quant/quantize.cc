// QuantizeV2 and Dequantize.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/clones.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/quant/channel_slices.h"

namespace gradflow::quantize {
namespace {

enum class Mode { kMinCombined, kMinFirst, kScaled };

struct CommonQuantizeOptions {
  Mode mode = Mode::kMinCombined;
  bool narrow_range = false;
  int64_t axis = -1;

  template <typename Source>
  absl::Status Read(const Source& source) {
    std::string name;
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr("mode", &name));
    mode = name == "SCALED" ? Mode::kScaled
                            : (name == "MIN_FIRST" ? Mode::kMinFirst : Mode::kMinCombined);
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr("narrow_range", &narrow_range));
    return source.GetAttr("axis", &axis);
  }
};

// Returns INVALID_ARGUMENT unless the ranges have a single element or, with an axis, an element per
// index.
absl::Status CheckRanges(int64_t axis, const PartialTensorShape& input,
                         const PartialTensorShape& min, const PartialTensorShape& max) {
  GRADFLOW_RETURN_IF_ERROR(CheckChannelAxis(axis, input));
  for (const auto& [name, range] : {std::pair("min_range", &min), std::pair("max_range", &max)}) {
    // Without an axis, every shape of a single element is accepted.
    if (axis < 0 && CheckOneElement(name, *range).ok()) continue;
    GRADFLOW_RETURN_IF_ERROR(CheckChannelRange(name, *range, axis, input));
  }
  return absl::OkStatus();
}

// The integers of a quantized type, as floating-point numbers.
template <typename Storage>
struct Integers {
  static constexpr double kLowest = std::numeric_limits<Storage>::min();
  static constexpr double kHighest = std::numeric_limits<Storage>::max();
  // The offset that MIN_COMBINED adds to make signed integers nonnegative.
  static constexpr float kHalfRange =
      std::is_signed_v<Storage> ? static_cast<float>((kHighest - kLowest + 1) / 2) : 0.0f;
  // For MIN_FIRST: the number of integers, and the factor that scales the range so that its highest
  // number becomes the highest integer.
  static constexpr double kSteps = kHighest - kLowest + 1;
  static constexpr double kRangeAdjust = kSteps / (kSteps - 1);

  // Clamps to the range of integers. NaN becomes the lowest integer.
  static Storage Saturated(double value) {
    if (value >= kHighest) return std::numeric_limits<Storage>::max();
    return value > kLowest ? static_cast<Storage>(value) : std::numeric_limits<Storage>::min();
  }
};

// ---- QuantizeV2 ----

struct QuantizeOptions : CommonQuantizeOptions {
  bool half_to_even = false;
  float ensure_minimum_range = 0.01f;

  template <typename Source>
  absl::Status Read(const Source& source) {
    GRADFLOW_RETURN_IF_ERROR(CommonQuantizeOptions::Read(source));
    std::string round_mode;
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr("round_mode", &round_mode));
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr("ensure_minimum_range", &ensure_minimum_range));
    half_to_even = round_mode == "HALF_TO_EVEN";
    if (!half_to_even || mode == Mode::kScaled) return absl::OkStatus();
    return errors::InvalidArgument("round_mode HALF_TO_EVEN requires mode SCALED");
  }
};

// The range of one channel, and the factor that converts its numbers to integers.
struct Range {
  // The size of the range. Computed in float as in TensorFlow, unless this overflows.
  double size() const {
    const float size = max - min;
    return std::isfinite(size) ? size : static_cast<double>(max) - min;
  }

  float min = 0;
  float max = 0;
  float scale = 0;
};

// Returns a range that contains 0 and is not too small. In mode SCALED, the lowest and the highest
// integer become its bounds.
template <typename Storage>
Range MakeRange(const QuantizeOptions& options, float min, float max) {
  using I = Integers<Storage>;
  Range range;
  range.min = std::min(0.0f, min);
  const float least =
      std::max(1.0f, std::max(std::fabs(min), std::fabs(max))) * options.ensure_minimum_range;
  constexpr float kMax = std::numeric_limits<float>::max();
  range.max = std::min(kMax, std::max(0.0f, std::max(max, range.min + least)));
  switch (options.mode) {
    case Mode::kMinCombined:
      range.scale = static_cast<float>((I::kHighest - I::kLowest) / range.size());
      break;
    case Mode::kMinFirst:
      range.scale = static_cast<float>(
          I::kSteps / ((static_cast<double>(range.max) - range.min) * I::kRangeAdjust));
      break;
    case Mode::kScaled: {
      const float lowest = static_cast<float>(I::kLowest + (options.narrow_range ? 1 : 0));
      const float highest = static_cast<float>(I::kHighest);
      const float from_min = lowest * range.min > 0 ? lowest / range.min : kMax;
      const float from_max = highest * range.max > 0 ? highest / range.max : kMax;
      range.scale = std::min({from_min, from_max, kMax});
      range.min = lowest / range.scale;
      range.max = highest / range.scale;
      break;
    }
  }
  return range;
}

// Rounds a number to an integer of [low, high], halves away from zero or to even. NaN becomes
// `low`. REQUIRES: the bounds are integers with magnitudes below 2^22
template <bool kHalfToEven>
inline int32_t RoundedBetween(float value, float low, float high) {
  value = value > low ? value : low;
  value = value < high ? value : high;
  if (kHalfToEven) {
    // The sum has no bits for a fraction.
    constexpr float kIntegers = 0x1.8p23f;
    return static_cast<int32_t>((value + kIntegers) - kIntegers);
  }
  // Adds the largest float below 1/2. Adding 1/2 would round that float up to 1.
  return static_cast<int32_t>(value + std::copysign(0x1.fffffep-2f, value));
}

// The formula of a mode. Each of its operations rounds to float.
enum class Step { kDistance, kScaled, kScaledHalfToEven, kFirst };
// The ranges of consecutive elements, or the single range of all elements.
struct Ranges {
  const float* min;
  const float* max;
  const float* scale;
  const float* first;
};

// Quantizes n elements. Element i has range kStride * i.
template <typename Storage, Step kStep, int kStride>
GRADFLOW_CLONES void QuantizeNarrow(const Ranges& ranges, const float* __restrict x,
                                    Storage* __restrict y, int64_t n) {
  using I = Integers<Storage>;
  const float* __restrict const min = ranges.min;
  const float* __restrict const max = ranges.max;
  const float* __restrict const scale = ranges.scale;
  const float* __restrict const first = ranges.first;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t k = kStride * i;
    // NaN is quantized like 0.
    float value = x[i] != x[i] ? 0.0f : x[i];
    if (kStep != Step::kFirst) {
      value = value > max[k] ? max[k] : value;
      value = value < min[k] ? min[k] : value;
    }
    if (kStep == Step::kDistance) {
      value = (value - min[k]) * scale[k] - I::kHalfRange;
    } else {
      value = value * scale[k];
    }
    const float low = static_cast<float>(I::kLowest) + first[k];
    const float high = static_cast<float>(I::kHighest) + first[k];
    y[i] = static_cast<Storage>(RoundedBetween<kStep == Step::kScaledHalfToEven>(value, low, high) -
                                static_cast<int32_t>(first[k]));
  }
}

template <typename Storage, int kStride>
void QuantizeNarrow(const QuantizeOptions& options, const Ranges& ranges, const float* x,
                    Storage* y, int64_t n) {
  switch (options.mode) {
    case Mode::kMinCombined:
      return QuantizeNarrow<Storage, Step::kDistance, kStride>(ranges, x, y, n);
    case Mode::kMinFirst:
      return QuantizeNarrow<Storage, Step::kFirst, kStride>(ranges, x, y, n);
    case Mode::kScaled:
      if (options.half_to_even) {
        return QuantizeNarrow<Storage, Step::kScaledHalfToEven, kStride>(ranges, x, y, n);
      }
      return QuantizeNarrow<Storage, Step::kScaled, kStride>(ranges, x, y, n);
  }
}

template <typename Storage>
void Quantize(const QuantizeOptions& options, const Range& range, const float* x, Storage* y,
              int64_t n) {
  using I = Integers<Storage>;
  const double first = static_cast<double>(std::round(range.min * range.scale)) - I::kLowest;
  // Differences from the minimum are computed in double if they may overflow float.
  const bool is_wide = !std::isfinite(range.max - range.min);
  for (int64_t i = 0; i < n; ++i) {
    // NaN is quantized like 0.
    const float value = std::isnan(x[i]) ? 0.0f : x[i];
    if (options.mode == Mode::kMinFirst) {
      y[i] = I::Saturated(static_cast<double>(std::round(value * range.scale)) - first);
      continue;
    }
    const float clamped = std::max(std::min(value, range.max), range.min);
    if (options.mode == Mode::kScaled) {
      const float scaled = clamped * range.scale;
      y[i] = I::Saturated(options.half_to_even ? std::nearbyint(scaled) : std::round(scaled));
    } else if (is_wide) {
      const double distance = static_cast<double>(clamped) - range.min;
      y[i] = I::Saturated(std::round(distance * range.scale - I::kHalfRange));
    } else {
      y[i] = I::Saturated(std::round((clamped - range.min) * range.scale - I::kHalfRange));
    }
  }
}

absl::Status QuantizeShape(ShapeContext& c) {
  QuantizeOptions options;
  GRADFLOW_RETURN_IF_ERROR(options.Read(c));
  const PartialTensorShape& input = c.input(0);
  GRADFLOW_RETURN_IF_ERROR(CheckRanges(options.axis, input, c.input(1), c.input(2)));
  c.set_output(0, input);
  PartialTensorShape range = TensorShape();
  if (options.axis >= 0) {
    const int64_t channels =
        input.unknown_rank() ? -1 : input.dim_size(static_cast<int>(options.axis));
    // The bounds of a single channel are scalars, as in TensorFlow.
    if (channels < 0) range = PartialTensorShape();
    if (channels >= 0 && channels != 1) range = {channels};
  }
  c.set_output(1, range);
  c.set_output(2, range);
  return absl::OkStatus();
}

template <typename Storage>
class QuantizeKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) { return options_.Read(construction); }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& input = ctx.input(0);
    GRADFLOW_RETURN_IF_ERROR(
        CheckRanges(options_.axis, input.shape(), ctx.input(1).shape(), ctx.input(2).shape()));
    const ChannelSlices slices(input.shape(), options_.axis);
    // The bounds of a single channel are scalars, as in TensorFlow.
    TensorShape range_shape;
    if (options_.axis >= 0 && input.dim_size(static_cast<int>(options_.axis)) != 1) {
      range_shape.AddDim(input.dim_size(static_cast<int>(options_.axis)));
    }
    Tensor* outputs[3] = {};
    for (int i = 0; i < 3; ++i) {
      GRADFLOW_RETURN_IF_ERROR(
          ctx.AllocateOutput(i, i == 0 ? input.shape() : range_shape, &outputs[i]));
    }
    const int64_t channels = range_shape.num_elements();
    std::vector<Range> ranges(channels);
    for (int64_t c = 0; c < channels; ++c) {
      const float min = ctx.input(1).flat<float>()(c);
      const float max = ctx.input(2).flat<float>()(c);
      if (!(min <= max) || !std::isfinite(min) || !std::isfinite(max)) {
        return errors::InvalidArgument("min_range and max_range must be finite, and min_range at ",
                                       "most max_range, but they are ", min, " and ", max);
      }
      ranges[c] = MakeRange<Storage>(options_, min, max);
      outputs[1]->flat<float>()(c) = ranges[c].min;
      outputs[2]->flat<float>()(c) = ranges[c].max;
    }
    const float* from = input.flat<float>().data();
    Storage* to = static_cast<Storage*>(outputs[0]->raw_data());
    if constexpr (sizeof(Storage) <= sizeof(int16_t)) {
      if (Narrow(ctx.run(), slices, ranges, from, to)) return absl::OkStatus();
    }
    slices.ForEachRun(ctx.run(), [&](int64_t, int64_t channel, int64_t begin, int64_t end) {
      Quantize(options_, ranges[channel], from + begin, to + begin, end - begin);
    });
    return absl::OkStatus();
  }

 private:
  // Quantizes with loops that the compiler vectorizes. Returns false if the ranges need double.
  bool Narrow(const RunContext& run, const ChannelSlices& slices, const std::vector<Range>& ranges,
              const float* from, Storage* to) const {
    constexpr float kMostFirst = 1 << 20;
    const size_t n = ranges.size();
    std::vector<float> numbers(4 * n);
    float* const min = numbers.data();
    float* const max = min + n;
    float* const scale = max + n;
    float* const first = scale + n;
    for (size_t c = 0; c < n; ++c) {
      min[c] = ranges[c].min;
      max[c] = ranges[c].max;
      scale[c] = ranges[c].scale;
      if (options_.mode == Mode::kMinFirst) {
        first[c] = static_cast<float>(static_cast<double>(std::round(min[c] * scale[c])) -
                                      Integers<Storage>::kLowest);
      }
      if (!(std::abs(first[c]) < kMostFirst)) return false;
      if (options_.mode == Mode::kMinCombined && !std::isfinite(max[c] - min[c])) return false;
    }
    const Ranges all = {min, max, scale, first};
    if (slices.channels_are_last()) {
      const int64_t channels = slices.channels();
      slices.ForEachRow(run, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          QuantizeNarrow<Storage, 1>(options_, all, from + row * channels, to + row * channels,
                                     channels);
        }
      });
      return true;
    }
    slices.ForEachRun(run, [&](int64_t, int64_t c, int64_t begin, int64_t end) {
      QuantizeNarrow<Storage, 0>(options_, {min + c, max + c, scale + c, first + c}, from + begin,
                                 to + begin, end - begin);
    });
    return true;
  }

  QuantizeOptions options_;
};

// ---- Dequantize ----

// Converts an integer q to (q + before) * scale + after.
struct IntegerAffine {
  float before = 0;
  float scale = 0;
  float after = 0;
};

template <typename Storage>
IntegerAffine MakeAffine(const CommonQuantizeOptions& options, float min, float max) {
  using I = Integers<Storage>;
  switch (options.mode) {
    case Mode::kMinCombined:
      return {I::kHalfRange, static_cast<float>((max - min) / (I::kHighest - I::kLowest)), min};
    case Mode::kMinFirst: {
      const float step =
          static_cast<float>((static_cast<double>(max) - min) * I::kRangeAdjust / I::kSteps);
      const float first = max == min ? min : std::round(min / step) * step;
      return {static_cast<float>(-I::kLowest), step, first};
    }
    case Mode::kScaled:
      break;
  }
  const float lowest = static_cast<float>(I::kLowest + (options.narrow_range ? 1 : 0));
  const float from_max = max / static_cast<float>(I::kHighest);
  return {0, I::kLowest == 0 ? from_max : std::max(min / lowest, from_max), 0};
}

absl::Status DequantizeShape(ShapeContext& c) {
  CommonQuantizeOptions options;
  GRADFLOW_RETURN_IF_ERROR(options.Read(c));
  GRADFLOW_RETURN_IF_ERROR(CheckRanges(options.axis, c.input(0), c.input(1), c.input(2)));
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

template <typename Storage, typename Out>
GRADFLOW_CLONES void DequantizeRun(const IntegerAffine& affine, const Storage* from, Out* to,
                                   int64_t n) {
  const auto [before, scale, after] = affine;
  for (int64_t i = 0; i < n; ++i) {
    to[i] = static_cast<Out>((static_cast<float>(from[i]) + before) * scale + after);
  }
}

template <typename Storage, typename Out>
class DequantizeKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) { return options_.Read(construction); }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& input = ctx.input(0);
    GRADFLOW_RETURN_IF_ERROR(
        CheckRanges(options_.axis, input.shape(), ctx.input(1).shape(), ctx.input(2).shape()));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, input.shape(), &output));
    std::vector<IntegerAffine> affines;
    for (int64_t c = 0; c < ctx.input(1).NumElements(); ++c) {
      affines.push_back(MakeAffine<Storage>(options_, ctx.input(1).flat<float>()(c),
                                            ctx.input(2).flat<float>()(c)));
    }
    const Storage* from = static_cast<const Storage*>(input.raw_data());
    Out* to = output->template flat<Out>().data();
    const ChannelSlices slices(input.shape(), options_.axis);
    slices.ForEachRun(ctx.run(), [&](int64_t, int64_t channel, int64_t begin, int64_t end) {
      DequantizeRun(affines[channel], from + begin, to + begin, end - begin);
    });
    return absl::OkStatus();
  }

 private:
  CommonQuantizeOptions options_;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("QuantizeV2")
      .Group("array_ops")
      .Input("input: float")
      .Input("min_range: float")
      .Input("max_range: float")
      .Output("output: T")
      .Output("output_min: float")
      .Output("output_max: float")
      .Attr("T: {qint8, quint8, qint32, qint16, quint16}")
      .Attr("mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'")
      .Attr("round_mode: {'HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'} = 'HALF_AWAY_FROM_ZERO'")
      .Attr("narrow_range: bool = false")
      .Attr("axis: int = -1")
      .Attr("ensure_minimum_range: float = 0.01")
      .Shape(QuantizeShape)
      .Doc(R"(Quantizes numbers to integers.

The range is extended to contain 0. Numbers outside of the range become the lowest or the highest
integer, and NaN becomes the integer of 0.

input: The numbers.
min_range: The least number of the range: a scalar, or a vector with an element for each index of
  `axis`.
max_range: The greatest number of the range, of the same shape.
output: The integers.
output_min: The least number of the range that was used: a scalar, or a vector with an element for
  each index of `axis` if there are several.
output_max: The greatest number of the range that was used, of the same shape.
T: The type of the integers.
mode: "MIN_COMBINED" maps the range to all integers, linearly. "MIN_FIRST" does the same, but
  rounds so that 0 is exactly an integer. "SCALED" multiplies by a factor, so 0 becomes 0.
round_mode: The rounding of halves; "HALF_TO_EVEN" requires the mode "SCALED".
narrow_range: Does not use the lowest integer, in the mode "SCALED".
axis: The dimension that has a separate range for each index; -1 for a single range.
ensure_minimum_range: The least size of the range, relative to the largest of 1, |min_range| and
  |max_range|.)");

  registry.Op("Dequantize")
      .Group("array_ops")
      .Input("input: T")
      .Input("min_range: float")
      .Input("max_range: float")
      .Output("output: dtype")
      .Attr("T: {qint8, quint8, qint32, qint16, quint16}")
      .Attr("mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'")
      .Attr("narrow_range: bool = false")
      .Attr("axis: int = -1")
      .Attr("dtype: {bfloat16, float} = DT_FLOAT")
      .Shape(DequantizeShape)
      .Doc(R"(Dequantizes integers.

input: The integers.
min_range: The least number of the range: a scalar, or a vector with an element for each index of
  `axis`.
max_range: The greatest number of the range, of the same shape.
output: The numbers.
T: The type of the integers.
mode: The mode of `QuantizeV2`.
narrow_range: See `QuantizeV2`.
axis: The dimension that has a separate range for each index; -1 for a single range.
dtype: The type of the numbers.)");

  ForEachType(QuantizedTypes(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Storage = decltype(T::value);
    registry.Kernel("QuantizeV2", MakeKernel<QuantizeKernel<Storage>>).template Type<T>("T");
    registry.Kernel("Dequantize", MakeKernel<DequantizeKernel<Storage, float>>)
        .template Type<T>("T")
        .template Type<float>("dtype");
    registry.Kernel("Dequantize", MakeKernel<DequantizeKernel<Storage, bfloat16>>)
        .template Type<T>("T")
        .template Type<bfloat16>("dtype");
  });
}

}  // namespace gradflow::quantize
