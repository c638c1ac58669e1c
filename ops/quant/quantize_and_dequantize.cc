// QuantizeAndDequantize, its versions V2 to V4, and QuantizeAndDequantizeV4Grad.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gradflow/core/integer_kernels.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/clones.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/quant/channel_slices.h"

namespace gradflow::quantize_and_dequantize {
namespace {

// Versions 2 to 4 have the inputs input, input_min and input_max. In version 3, num_bits is also an
// input; in the other versions it is an attribute. In version 1, everything except input is an
// attribute.
struct Options {
  bool is_signed = true;
  bool range_given = false;
  bool narrow_range = false;
  bool half_up = false;
  int64_t num_bits = 8;
  int64_t axis = -1;
  // The range, which is an attribute of version 1.
  float min = 0;
  float max = 0;

  template <typename Source>
  absl::Status Read(const Source& source, int version) {
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr("signed_input", &is_signed));
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr("range_given", &range_given));
    if (version != 3) {
      GRADFLOW_RETURN_IF_ERROR(source.GetAttr("num_bits", &num_bits));
      GRADFLOW_RETURN_IF_ERROR(CheckBits());
    }
    if (version == 1) {
      GRADFLOW_RETURN_IF_ERROR(source.GetAttr("input_min", &min));
      return source.GetAttr("input_max", &max);
    }
    if (version != 3) {
      std::string round_mode;
      GRADFLOW_RETURN_IF_ERROR(source.GetAttr("round_mode", &round_mode));
      half_up = round_mode == "HALF_UP";
    }
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr("narrow_range", &narrow_range));
    return source.GetAttr("axis", &axis);
  }

  absl::Status CheckBits() const {
    const int64_t limit = is_signed ? 61 : 62;
    if (num_bits >= 1 && num_bits <= limit) return absl::OkStatus();
    return errors::InvalidArgument("num_bits must be in [1, ", limit, "], but is ", num_bits);
  }
};

// Returns INVALID_ARGUMENT unless `min` and `max` have the shape that `axis` requires. Shape is
// PartialTensorShape or TensorShape.
template <typename Shape>
absl::Status CheckRanges(const Options& options, const Shape& input, const Shape& min,
                         const Shape& max) {
  GRADFLOW_RETURN_IF_ERROR(CheckChannelAxis(options.axis, input));
  GRADFLOW_RETURN_IF_ERROR(CheckChannelRange("input_min", min, options.axis, input));
  return CheckChannelRange("input_max", max, options.axis, input);
}

template <int Version>
absl::Status Shape(ShapeContext& c) {
  Options options;
  GRADFLOW_RETURN_IF_ERROR(options.Read(c, Version));
  if constexpr (Version > 1) {
    GRADFLOW_RETURN_IF_ERROR(CheckRanges(options, c.input(0), c.input(1), c.input(2)));
  }
  if constexpr (Version == 3) {
    GRADFLOW_RETURN_IF_ERROR(c.CheckRank(3, 0));
    std::vector<int64_t> num_bits;
    GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(3, &num_bits));
    if (known) {
      options.num_bits = num_bits[0];
      GRADFLOW_RETURN_IF_ERROR(options.CheckBits());
    }
  }
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

// The quantization of one channel: clamps to [min, max] if `clamps` is true, multiplies, rounds and
// multiplies again.
template <typename C>
struct Scale {
  C min = 0;
  C max = 0;
  C scale = 0;
  C inverse = 0;
};

// Returns the largest scale that maps [min, max] into the quantized integers and 0 to 0.
template <typename C>
Scale<C> MakeScale(const Options& options, C min, C max) {
  const int64_t ones = int64_t{1} << (options.num_bits - (options.is_signed ? 1 : 0));
  const int64_t lowest = !options.is_signed ? 0 : options.narrow_range ? 1 - ones : -ones;
  const C lo = static_cast<C>(lowest);
  const C hi = static_cast<C>(ones - 1);
  constexpr C kMax = std::numeric_limits<C>::max();
  const C from_min = lo * min > 0 ? lo / min : kMax;
  const C from_max = hi * max > 0 ? hi / max : kMax;
  Scale<C> scale;
  if (from_min < from_max) {
    scale = {min, 0, from_min, min / lo};
    scale.max = hi * scale.inverse;
  } else if (hi > 0) {
    scale = {0, max, from_max, max / hi};
    scale.min = lo * scale.inverse;
  }
  // Otherwise 0 is the only integer to use, such as with a single signed bit, and all results are
  // 0.
  return scale;
}

// Clamps if `clamps` is true, rounds to multiples of the inverse scale. NaN stays NaN.
template <typename T, typename C>
GRADFLOW_CLONES void RoundToScale(const Scale<C>& scale, bool clamps, bool half_up, const T* from,
                                  T* to, int64_t n) {
  constexpr C kInfinity = std::numeric_limits<C>::infinity();
  const C min = clamps ? scale.min : -kInfinity;
  const C max = clamps ? scale.max : kInfinity;
  const C factor = scale.scale;
  const C inverse = scale.inverse;
  const auto scaled = [=](T value) {
    C x = static_cast<C>(value);
    x = x > max ? max : x;
    x = x < min ? min : x;
    return x * factor;
  };
  if (half_up) {
    for (int64_t i = 0; i < n; ++i) {
      to[i] = static_cast<T>(std::floor(scaled(from[i]) + C(0.5)) * inverse);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      to[i] = static_cast<T>(std::nearbyint(scaled(from[i])) * inverse);
    }
  }
}

// Merges n elements into [*min, *max], ignoring NaN.
template <typename T, typename C>
GRADFLOW_CLONES void ExtendRange(const T* from, int64_t n, C* min, C* max) {
  // Several ranges, because each comparison waits for the previous comparison of its range.
  constexpr int kRanges = 32;
  int64_t i = 0;
  if (n >= kRanges) {
    C low[kRanges];
    C high[kRanges];
    std::fill_n(low, kRanges, *min);
    std::fill_n(high, kRanges, *max);
    for (; i + kRanges <= n; i += kRanges) {
      for (int k = 0; k < kRanges; ++k) {
        const C x = static_cast<C>(from[i + k]);
        low[k] = x < low[k] ? x : low[k];
        high[k] = x > high[k] ? x : high[k];
      }
    }
    *min = *std::min_element(low, low + kRanges);
    *max = *std::max_element(high, high + kRanges);
  }
  for (; i < n; ++i) {
    const C x = static_cast<C>(from[i]);
    *min = x < *min ? x : *min;
    *max = x > *max ? x : *max;
  }
}

// Rounds like QuantizeAndDequantizeKernel and keeps the integers, as bytes.
class QuantizeToBytes final : public OpKernel {
 public:
  QuantizeToBytes(const Scale<float>& scale, bool half_up, int32_t zero_point)
      : scale_(scale), half_up_(half_up), zero_point_(static_cast<float>(zero_point)) {}

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, {DT_FLOAT}));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, ctx.input(0).shape(), &output));
    const auto* const from = static_cast<const float*>(ctx.input(0).raw_data());
    auto* const to = static_cast<uint8_t*>(output->raw_data());
    ParallelFor(ctx, output->NumElements(), BlockSizeForCost(2), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float x = std::isnan(from[i]) ? 0 : std::clamp(from[i], scale_.min, scale_.max);
        const float scaled = x * scale_.scale;
        const float rounded = half_up_ ? std::floor(scaled + 0.5f) : std::nearbyint(scaled);
        to[i] = static_cast<uint8_t>(rounded + zero_point_);
      }
    });
    return absl::OkStatus();
  }

 private:
  const Scale<float> scale_;
  const bool half_up_;
  const float zero_point_;
};

template <typename T, int Version>
class QuantizeAndDequantizeKernel final : public OpKernel, public QuantizingKernel {
  using C = ComputeType<T>;

 public:
  absl::Status Init(const KernelConstruction& construction) {
    return options_.Read(construction, Version);
  }

  absl::StatusOr<Formats> FormatsOf(absl::Span<const Tensor> inputs) const override {
    constexpr int64_t kMaxBits = 8;
    GRADFLOW_ASSIGN_OR_RETURN(const Options options, OptionsOf(inputs));
    if (!std::is_same_v<T, float>) return errors::Unimplemented("its type is not float");
    if (!options.range_given) return errors::Unimplemented("its range is not constant");
    if (options.num_bits > kMaxBits)
      return errors::Unimplemented("it rounds to more than 256 levels");
    Formats result;
    result.axis = static_cast<int>(options.axis);
    for (const auto& [min, max] : RangesOf(options, inputs)) {
      const Scale<float> scale = MakeScale<float>(options, min, max);
      if (!(min <= max) || !(scale.inverse >= std::numeric_limits<float>::min()) ||
          !std::isfinite(scale.scale) || !std::isfinite(scale.min) || !std::isfinite(scale.max)) {
        return errors::Unimplemented("its range is [", min, ", ", max, "]");
      }
      IntegerFormat format;
      format.scale = scale.inverse;
      format.zero_point = ZeroPoint(options);
      format.highest =
          (1 << options.num_bits) - (options.is_signed && options.narrow_range ? 2 : 1);
      result.formats.push_back(format);
    }
    return result;
  }

  std::shared_ptr<const OpKernel> MakeQuantize(absl::Span<const Tensor> inputs) const override {
    const Options options = OptionsOf(inputs).value();
    const auto [min, max] = RangesOf(options, inputs)[0];
    return std::make_shared<QuantizeToBytes>(MakeScale<float>(options, min, max), options.half_up,
                                             ZeroPoint(options));
  }

  absl::Status Compute(KernelContext& ctx) const override {
    Options options = options_;
    const Tensor input = ctx.input(0);
    if constexpr (Version > 1) {
      GRADFLOW_RETURN_IF_ERROR(CheckRanges<PartialTensorShape>(
          options, input.shape(), ctx.input(1).shape(), ctx.input(2).shape()));
    }
    if constexpr (Version == 3) {
      GRADFLOW_ASSIGN_OR_RETURN(options.num_bits, ctx.ScalarInt(3, "num_bits"));
      GRADFLOW_RETURN_IF_ERROR(options.CheckBits());
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, input.shape(), &output));
    if (input.NumElements() == 0) return absl::OkStatus();
    const ChannelSlices slices(input.shape(), options.axis);
    std::vector<Scale<C>> scales(slices.channels());
    if (options.range_given) {
      GRADFLOW_RETURN_IF_ERROR(GivenRanges(ctx, options, &scales));
    } else {
      GRADFLOW_RETURN_IF_ERROR(FoundRanges(ctx, slices, input, &scales));
    }
    for (Scale<C>& scale : scales) scale = MakeScale(options, scale.min, scale.max);
    const T* from = input.flat<T>().data();
    T* to = output->flat<T>().data();
    const bool clamps = options.range_given;
    slices.ForEachRun(ctx.run(), [&](int64_t, int64_t channel, int64_t begin, int64_t end) {
      RoundToScale(scales[channel], clamps, options.half_up, from + begin, to + begin, end - begin);
    });
    return absl::OkStatus();
  }

 private:
  // Returns the options, with num_bits from the inputs in version 3.
  absl::StatusOr<Options> OptionsOf(absl::Span<const Tensor> inputs) const {
    Options options = options_;
    if constexpr (Version == 3) {
      if (inputs[3].dtype() != DT_INT32 || inputs[3].dims() != 0) {
        return errors::Unimplemented("num_bits is not a scalar");
      }
      options.num_bits = inputs[3].scalar<int32_t>()();
      GRADFLOW_RETURN_IF_ERROR(options.CheckBits());
    }
    return options;
  }
  // Returns the given ranges.
  static std::vector<std::pair<float, float>> RangesOf(const Options& options,
                                                       absl::Span<const Tensor> inputs) {
    if constexpr (Version > 1 && std::is_same_v<T, float>) {
      std::vector<std::pair<float, float>> ranges;
      const absl::Span<const float> min = inputs[1].flat<float>();
      const absl::Span<const float> max = inputs[2].flat<float>();
      for (size_t c = 0; c < min.size() && c < max.size(); ++c) ranges.emplace_back(min[c], max[c]);
      return ranges;
    } else {
      return {{options.min, options.max}};
    }
  }
  static int32_t ZeroPoint(const Options& options) {
    if (!options.is_signed) return 0;
    return (1 << (options.num_bits - 1)) - (options.narrow_range ? 1 : 0);
  }

  static absl::Status GivenRanges(const KernelContext& ctx, const Options& options,
                                  std::vector<Scale<C>>* scales) {
    for (size_t c = 0; c < scales->size(); ++c) {
      C min = static_cast<C>(options.min);
      C max = static_cast<C>(options.max);
      if constexpr (Version > 1) {
        min = static_cast<C>(ctx.input(1).flat<T>()(c));
        max = static_cast<C>(ctx.input(2).flat<T>()(c));
      }
      if (!(min <= max)) {
        return errors::InvalidArgument("Invalid range: input_min ", min, " > input_max ", max,
                                       options.axis < 0 ? "" : absl::StrCat(" in channel ", c));
      }
      (*scales)[c].min = min;
      (*scales)[c].max = max;
    }
    return absl::OkStatus();
  }

  // Finds the smallest and the largest element of each channel, ignoring NaN.
  static absl::Status FoundRanges(KernelContext& ctx, const ChannelSlices& slices,
                                  const Tensor& input, std::vector<Scale<C>>* scales) {
    const int64_t channels = slices.channels();
    Tensor partial;
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape,
                              TensorShape::Make({slices.num_blocks(), channels, 2}));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DataTypeToEnum<C>::value, shape, &partial));
    constexpr C kInfinity = std::numeric_limits<C>::infinity();
    const absl::Span<C> ranges = partial.span<C>();
    for (size_t i = 0; i < ranges.size(); i += 2) {
      ranges[i] = kInfinity;
      ranges[i + 1] = -kInfinity;
    }
    const T* from = input.flat<T>().data();
    slices.ForEachRun(ctx.run(), [&](int64_t block, int64_t channel, int64_t begin, int64_t end) {
      C* const range = &ranges[(block * channels + channel) * 2];
      ExtendRange(from + begin, end - begin, range, range + 1);
    });
    for (int64_t c = 0; c < channels; ++c) {
      C min = kInfinity;
      C max = -kInfinity;
      for (int64_t block = 0; block < slices.num_blocks(); ++block) {
        min = std::min(min, ranges[(block * channels + c) * 2]);
        max = std::max(max, ranges[(block * channels + c) * 2 + 1]);
      }
      // All elements are NaN.
      if (min > max) min = max = 0;
      (*scales)[c].min = min;
      (*scales)[c].max = max;
    }
    return absl::OkStatus();
  }

  Options options_;
};

// ---- QuantizeAndDequantizeV4Grad ----

absl::Status GradShape(ShapeContext& c) {
  Options options;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("axis", &options.axis));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape input, MergeInputs(c, 0, 1));
  GRADFLOW_RETURN_IF_ERROR(CheckRanges(options, input, c.input(2), c.input(3)));
  PartialTensorShape range = PartialTensorShape(TensorShape());
  if (options.axis >= 0) {
    range = {input.unknown_rank() ? -1 : input.dim_size(static_cast<int>(options.axis))};
  }
  c.set_output(0, std::move(input));
  c.set_output(1, range);
  c.set_output(2, range);
  return absl::OkStatus();
}

template <typename T>
class GradKernel final : public OpKernel {
  using C = ComputeType<T>;

 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("axis", &options_.axis);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor gradients = ctx.input(0);
    const Tensor& input = ctx.input(1);
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckSameShape(0, "gradients", 1, "input"));
    GRADFLOW_RETURN_IF_ERROR(CheckRanges<PartialTensorShape>(
        options_, input.shape(), ctx.input(2).shape(), ctx.input(3).shape()));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, input.shape(), &output));
    for (int i = 1; i < 3; ++i) {
      Tensor* range = nullptr;
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(i, ctx.input(i + 1).shape(), &range));
      range->flat<T>().setZero();
    }
    const T* min = ctx.input(2).flat<T>().data();
    const T* max = ctx.input(3).flat<T>().data();
    const T* x = input.flat<T>().data();
    const T* dy = gradients.flat<T>().data();
    T* dx = output->flat<T>().data();
    const ChannelSlices slices(input.shape(), options_.axis);
    slices.ForEachRun(ctx.run(), [&](int64_t, int64_t channel, int64_t begin, int64_t end) {
      const C low = static_cast<C>(min[channel]);
      const C high = static_cast<C>(max[channel]);
      for (int64_t i = begin; i < end; ++i) {
        const C value = static_cast<C>(x[i]);
        // Multiplies, so that infinite and NaN gradients outside of the range give NaN.
        const C mask = value >= low && value <= high ? C(1) : C(0);
        dx[i] = static_cast<T>(static_cast<C>(dy[i]) * mask);
      }
    });
    return absl::OkStatus();
  }

 private:
  Options options_;
};

constexpr char kSummary[] = R"(Quantizes numbers and converts them back.

The scale is the greatest that maps the range [min, max] into the integers of `num_bits` bits. Each
number is clamped to the range (if given), scaled, rounded and scaled back. 0 stays 0.

input: The numbers.)";
constexpr char kRangeInputs[] = R"(
input_min: The least number of the range, if `range_given`: a scalar, or a vector with an element
  for each index of `axis`.
input_max: The greatest number of the range, of the same shape.)";
constexpr char kCommon[] = R"(
output: The numbers after quantization.
signed_input: Quantizes to signed integers.
range_given: If true, the arguments give the range. Otherwise it is the range of the numbers.
T: The type of the numbers.)";
constexpr char kNumBits[] = R"(
num_bits: The number of bits of the integers: at most 61 if they are signed, otherwise 62.)";
constexpr char kRoundMode[] = R"(
round_mode: "HALF_TO_EVEN" rounds halves to even integers, "HALF_UP" rounds them up.)";
constexpr char kAxis[] = R"(
narrow_range: Does not use the lowest signed integer, so that the range is symmetric.
axis: The dimension that has a separate range for each index; -1 for a single range.)";

}  // namespace

void Register(Registry& registry) {
  registry.Op("QuantizeAndDequantize")
      .Group("array_ops")
      .HandWritten()  // TensorFlow has no class for this op.
      .Input("input: T")
      .Output("output: T")
      .Attr("signed_input: bool = true")
      .Attr("num_bits: int = 8")
      .Attr("range_given: bool = false")
      .Attr("input_min: float = 0")
      .Attr("input_max: float = 0")
      .Attr("T: {bfloat16, half, float, double}")
      .Shape(Shape<1>)
      .Doc(absl::StrCat(kSummary, R"(
input_min: The least number of the range, if `range_given`.
input_max: The greatest number of the range, if `range_given`.)",
                        kCommon, kNumBits));
  for (const int version : {2, 4}) {
    registry.Op(absl::StrCat("QuantizeAndDequantizeV", version))
        .Group("array_ops")
        .Input("input: T")
        .Input("input_min: T")
        .Input("input_max: T")
        .Output("output: T")
        .Attr("signed_input: bool = true")
        .Attr("num_bits: int = 8")
        .Attr("range_given: bool = false")
        .Attr("T: {bfloat16, half, float, double}")
        .Attr("round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'")
        .Attr("narrow_range: bool = false")
        .Attr("axis: int = -1")
        .Shape(version == 2 ? Shape<2> : Shape<4>)
        .Doc(absl::StrCat(kSummary, kRangeInputs, kCommon, kNumBits, kRoundMode, kAxis));
  }
  registry.Op("QuantizeAndDequantizeV3")
      .Group("array_ops")
      .Input("input: T")
      .Input("input_min: T")
      .Input("input_max: T")
      .Input("num_bits: int32")
      .Output("output: T")
      .Attr("signed_input: bool = true")
      .Attr("range_given: bool = true")
      .Attr("T: {bfloat16, half, float, double}")
      .Attr("narrow_range: bool = false")
      .Attr("axis: int = -1")
      .Shape(Shape<3>)
      .Doc(absl::StrCat(kSummary, kRangeInputs, R"(
num_bits: A scalar: the number of bits of the integers; at most 61 if they are signed, else 62.)",
                        kCommon, kAxis));
  registry.Op("QuantizeAndDequantizeV4Grad")
      .Group("array_ops")
      .Input("gradients: T")
      .Input("input: T")
      .Input("input_min: T")
      .Input("input_max: T")
      .Output("input_backprop: T")
      .Output("input_min_backprop: T")
      .Output("input_max_backprop: T")
      .Attr("T: {bfloat16, half, float, double}")
      .Attr("axis: int = -1")
      .Shape(GradShape)
      .Doc(R"(Returns the gradients of `QuantizeAndDequantizeV4`, as if that op did not round.

gradients: The gradient of the result.
input: The numbers.
input_min: The least number of the range: a scalar, or a vector with an element for each index of
  `axis`.
input_max: The greatest number of the range, of the same shape.
input_backprop: The gradient of the numbers: `gradients` within the range, and 0 outside.
input_min_backprop: Zeros.
input_max_backprop: Zeros.
T: The type of the numbers.
axis: The dimension that has a separate range for each index; -1 for a single range.)");
  ForEachType(FloatingTypes(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const struct {
      const char* op;
      KernelFactory factory;
    } kernels[] = {
        {"QuantizeAndDequantize", MakeKernel<QuantizeAndDequantizeKernel<T, 1>>},
        {"QuantizeAndDequantizeV2", MakeKernel<QuantizeAndDequantizeKernel<T, 2>>},
        {"QuantizeAndDequantizeV3", MakeKernel<QuantizeAndDequantizeKernel<T, 3>>},
        {"QuantizeAndDequantizeV4", MakeKernel<QuantizeAndDequantizeKernel<T, 2>>},
        {"QuantizeAndDequantizeV4Grad", MakeKernel<GradKernel<T>>},
    };
    for (const auto& kernel : kernels) {
      registry.Kernel(kernel.op, kernel.factory).template Type<T>("T");
    }
  });
}

}  // namespace gradflow::quantize_and_dequantize
