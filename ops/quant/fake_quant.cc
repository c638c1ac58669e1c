// Fake quantization rounds numbers to the levels of an integer type and keeps them as floats, so
// that training sees the effect of quantization. fake_quant_gradient.cc has the gradients.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "gradflow/core/integer_kernels.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/common/row_blocks.h"
#include "gradflow/ops/common/simd.h"
#include "gradflow/ops/quant/fake_quant_common.h"
#include "gradflow/ops/quant/fake_quant_simd.h"

namespace gradflow::fake_quant {
namespace {

using FlatLoop = void (*)(const float* x, float* y, int64_t n, const FakeQuantStep& step,
                          bool non_temporal);

// Computes output 0 from input 0. All elements share one range.
absl::Status QuantizeAll(KernelContext& ctx, const FakeQuantStep& step, FlatLoop loop) {
  Tensor* outputs = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.ForwardInputOrAllocateOutput(0, 0, ctx.input(0).shape(), &outputs));
  const float* x = ctx.input(0).flat<float>().data();
  float* y = outputs->flat<float>().data();
  const bool non_temporal = ShouldUseNonTemporalStores(y, y == x, outputs->TotalBytes());
  ParallelFor(ctx, outputs->NumElements(), kFakeQuantBlock, [&](int64_t begin, int64_t end) {
    loop(x + begin, y + begin, end - begin, step, non_temporal);
  });
  return absl::OkStatus();
}

absl::Status SetToZero(KernelContext& ctx) {
  Tensor* outputs = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.ForwardInputOrAllocateOutput(0, 0, ctx.input(0).shape(), &outputs));
  float* y = outputs->flat<float>().data();
  ParallelFor(ctx, outputs->NumElements(), kFakeQuantBlock,
              [&](int64_t begin, int64_t end) { std::fill(y + begin, y + end, 0.0f); });
  return absl::OkStatus();
}

// ---- Integers ----

// Returns the format of the levels of a range, or says why they are not 8-bit integers.
absl::StatusOr<IntegerFormat> FormatOf(const FakeQuantLevels& levels, const FakeQuantStep& step,
                                       float min, float max) {
  const float highest = levels.highest - levels.lowest;
  constexpr float kMaxHighest = 255;
  if (highest > kMaxHighest) return errors::Unimplemented("it rounds to more than 256 levels");
  if (!(min < max) || !(step.scale >= std::numeric_limits<float>::min()) ||
      !std::isfinite(step.inverse) || !std::isfinite(step.scale * highest)) {
    return errors::Unimplemented("its range is [", min, ", ", max, "]");
  }
  IntegerFormat format;
  format.scale = step.scale;
  format.zero_point = static_cast<int32_t>(step.zero);
  format.highest = static_cast<int32_t>(highest);
  format.min = min;
  format.max = max;
  return format;
}

// Checks the ranges, inputs 1 and 2, and returns the formats of all channels.
absl::StatusOr<QuantizingKernel::Formats> FormatsOfVars(const FakeQuantLevels& levels,
                                                        absl::Span<const Tensor> inputs) {
  GRADFLOW_RETURN_IF_ERROR(CheckFakeQuantVars(RunContext(), inputs[1], inputs[2]));
  QuantizingKernel::Formats result;
  const absl::Span<const float> min = inputs[1].flat<float>();
  const absl::Span<const float> max = inputs[2].flat<float>();
  for (size_t i = 0; i < min.size() && i < max.size(); ++i) {
    GRADFLOW_ASSIGN_OR_RETURN(const IntegerFormat format,
                              FormatOf(levels, Nudge(levels, min[i], max[i]), min[i], max[i]));
    result.formats.push_back(format);
  }
  return result;
}

class QuantizeToIntegers final : public OpKernel {
 public:
  QuantizeToIntegers(const FakeQuantStep& step, bool divides) : step_(step), divides_(divides) {}
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, {DT_FLOAT}));
    Tensor* integers = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, ctx.input(0).shape(), &integers));
    const float* const x = ctx.input(0).flat<float>().data();
    auto* const y = static_cast<uint8_t*>(integers->raw_data());
    ParallelFor(ctx, integers->NumElements(), kFakeQuantBlock, [&](int64_t begin, int64_t end) {
      FakeQuantIntegers(x + begin, y + begin, end - begin, step_, divides_);
    });
    return absl::OkStatus();
  }

 private:
  const FakeQuantStep step_;
  const bool divides_;
};

// ---- FakeQuantWithMinMaxArgs ----

absl::Status ArgsShape(ShapeContext& c) {
  FakeQuantStep step;
  GRADFLOW_RETURN_IF_ERROR(ReadFakeQuantStep(c, &step));
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

class FakeQuantArgs final : public OpKernel, public QuantizingKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(ReadFakeQuantLevels(construction, &levels_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("min", &min_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("max", &max_));
    return ReadFakeQuantStep(construction, &step_);
  }
  absl::StatusOr<Formats> FormatsOf(absl::Span<const Tensor>) const override {
    Formats result;
    GRADFLOW_ASSIGN_OR_RETURN(const IntegerFormat format, FormatOf(levels_, step_, min_, max_));
    result.formats = {format};
    return result;
  }
  std::shared_ptr<const OpKernel> MakeQuantize(absl::Span<const Tensor>) const override {
    return std::make_shared<QuantizeToIntegers>(step_, /*divides=*/false);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, {DT_FLOAT}));
    return QuantizeAll(ctx, step_, FakeQuantMultiply);
  }

 private:
  FakeQuantLevels levels_;
  float min_ = 0;
  float max_ = 0;
  FakeQuantStep step_;
};

// ---- FakeQuantWithMinMaxVars ----

absl::Status VarsShape(ShapeContext& c) {
  FakeQuantLevels levels;
  GRADFLOW_RETURN_IF_ERROR(ReadFakeQuantLevels(c, &levels));
  GRADFLOW_RETURN_IF_ERROR(CheckFakeQuantScalars(c.input(1), c.input(2)));
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

class FakeQuantVars final : public OpKernel, public QuantizingKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return ReadFakeQuantLevels(construction, &levels_);
  }
  absl::StatusOr<Formats> FormatsOf(absl::Span<const Tensor> inputs) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckFakeQuantScalars(inputs[1].shape(), inputs[2].shape()));
    return FormatsOfVars(levels_, inputs);
  }
  std::shared_ptr<const OpKernel> MakeQuantize(absl::Span<const Tensor> inputs) const override {
    const FakeQuantStep step =
        Nudge(levels_, inputs[1].flat<float>()[0], inputs[2].flat<float>()[0]);
    return std::make_shared<QuantizeToIntegers>(step, /*divides=*/true);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, {DT_FLOAT, DT_FLOAT, DT_FLOAT}));
    GRADFLOW_RETURN_IF_ERROR(CheckFakeQuantScalars(ctx.input(1).shape(), ctx.input(2).shape()));
    GRADFLOW_RETURN_IF_ERROR(CheckFakeQuantVars(ctx.run(), ctx.input(1), ctx.input(2)));
    const float min = ctx.input(1).scalar<float>()();
    const float max = ctx.input(2).scalar<float>()();
    if (IsZeroRange(min, max)) return SetToZero(ctx);
    return QuantizeAll(ctx, Nudge(levels_, min, max), FakeQuantDivide);
  }

 private:
  FakeQuantLevels levels_;
};

// ---- FakeQuantWithMinMaxVarsPerChannel ----

absl::Status PerChannelShape(ShapeContext& c) {
  FakeQuantLevels levels;
  GRADFLOW_RETURN_IF_ERROR(ReadFakeQuantLevels(c, &levels));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t channels,
                            FakeQuantChannels(c.input(0), c.input(1), c.input(2)));
  PartialTensorShape outputs = c.input(0);
  if (!outputs.unknown_rank()) outputs.set_dim(outputs.dims() - 1, channels);
  c.set_output(0, std::move(outputs));
  return absl::OkStatus();
}

class FakeQuantPerChannel final : public OpKernel, public QuantizingKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return ReadFakeQuantLevels(construction, &levels_);
  }
  absl::StatusOr<Formats> FormatsOf(absl::Span<const Tensor> inputs) const override {
    if (inputs[1].dims() != 1 || inputs[2].shape() != inputs[1].shape()) {
      return errors::Unimplemented("its ranges have shapes ", inputs[1].shape().DebugString(),
                                   " and ", inputs[2].shape().DebugString());
    }
    return FormatsOfVars(levels_, inputs);
  }
  std::shared_ptr<const OpKernel> MakeQuantize(absl::Span<const Tensor> inputs) const override {
    const FakeQuantStep step =
        Nudge(levels_, inputs[1].flat<float>()[0], inputs[2].flat<float>()[0]);
    return std::make_shared<QuantizeToIntegers>(step, /*divides=*/false);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, {DT_FLOAT, DT_FLOAT, DT_FLOAT}));
    const TensorShape shape = ctx.input(0).shape();
    GRADFLOW_ASSIGN_OR_RETURN(const int64_t channels,
                              FakeQuantChannels(shape, ctx.input(1).shape(), ctx.input(2).shape()));
    GRADFLOW_RETURN_IF_ERROR(CheckFakeQuantVars(ctx.run(), ctx.input(1), ctx.input(2)));
    Tensor* outputs = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.ForwardInputOrAllocateOutput(0, 0, shape, &outputs));
    if (shape.num_elements() == 0) return absl::OkStatus();

    const RowBlocks blocks(ctx.run(), shape.num_elements() / channels, channels);
    const int64_t width = blocks.width();
    const float* const min = ctx.input(1).flat<float>().data();
    const float* const max = ctx.input(2).flat<float>().data();
    const float* const x = ctx.input(0).flat<float>().data();
    float* const y = outputs->flat<float>().data();
    const bool non_temporal =
        ShouldUseNonTemporalStores(y, y == x, outputs->TotalBytes(), width * sizeof(float));
    blocks.ForEachTile([&](const RowBlocks::Tile& tile) {
      // Each tile computes its ranges again, which is faster than loading them from memory.
      constexpr int64_t kMax = RowBlocks::kMaxColumns;
      alignas(64) float values[5 * kMax];
      alignas(64) uint32_t keep[kMax];
      const int64_t n = FakeQuantTableStride(tile.columns);
      const FakeQuantColumns steps = {values,         values + n,     values + 2 * n,
                                      values + 3 * n, values + 4 * n, keep};
      NudgeColumns(levels_, min + tile.column, max + tile.column, std::min(channels, tile.columns),
                   steps);
      for (int i = 0; i < 5; ++i) blocks.Repeat(values + i * n);
      blocks.Repeat(keep);
      tile.ForEachPart([&](int64_t offset, int64_t rows, int64_t columns) {
        FakeQuantRows(x + offset, y + offset, rows, width, columns, steps, non_temporal);
      });
    });
    return absl::OkStatus();
  }

 private:
  FakeQuantLevels levels_;
};

// ---- Registration ----

void RegisterArgs(Registry& registry) {
  registry.Op("FakeQuantWithMinMaxArgs")
      .Group("array_ops")
      .Input("inputs: float")
      .Output("outputs: float")
      .Attr("min: float = -6.0")
      .Attr("max: float = 6.0")
      .Attr("num_bits: int = 8")
      .Attr("narrow_range: bool = false")
      .Shape(ArgsShape)
      .Doc(R"(Rounds floats to the levels of a `num_bits` integer over a fixed range [min, max].

The result is float: the numbers after quantization to q0 ... q1 and dequantization, where
q0 = 1 if `narrow_range` else 0, and q1 = 2^num_bits - 1.

The range is nudged first, so that zero is one of the levels. Let scale = (max - min) / (q1 - q0).
The zero point z is the integer for zero: q0 - min / scale, clamped to [q0, q1] and rounded (halves
away from zero). The range becomes [(q0 - z) * scale, (q1 - z) * scale]. With 8 bits and without
`narrow_range`,

    [-1, 1]    becomes [-0.99607849, 1.00392163], with z = 127 (127.49999237 rounds down)
    [-6, 6]    becomes [-6.02352953, 5.97647047], with z = 128
    [12, 123]  becomes [0, 111], with z = 0, because the range must contain zero

Numbers are clamped to the nudged range and then rounded to its nearest level, halves up. Zero stays
exactly zero, and a NaN stays NaN.

inputs: The numbers, of any shape.
outputs: The rounded numbers.
min: The lower end of the range; finite and less than `max`.
max: The upper end of the range; finite.
num_bits: The bits of the integer, 2 to 16.
narrow_range: If true, leaves out the lowest level. Ranges such as [-6, 6] stay symmetric.)");
  registry.Kernel("FakeQuantWithMinMaxArgs", MakeKernel<FakeQuantArgs>);
}

void RegisterVars(Registry& registry) {
  registry.Op("FakeQuantWithMinMaxVars")
      .Group("array_ops")
      .Input("inputs: float")
      .Input("min: float")
      .Input("max: float")
      .Output("outputs: float")
      .Attr("num_bits: int = 8")
      .Attr("narrow_range: bool = false")
      .Shape(VarsShape)
      .Doc(R"(Rounds floats to the levels of a `num_bits` integer over a range that is an input.

The range can therefore be trained. It is nudged so that zero is one of the levels: with 8 bits and
without `narrow_range`, [-1, 1] becomes [-0.99607849, 1.00392163], [-6, 6] becomes
[-6.02352953, 5.97647047] and [12, 123] becomes [0, 111]. `FakeQuantWithMinMaxArgs` has the
formulas. That op multiplies by the inverse of the scale; this op divides by the scale. For a number
half-way between two levels, the results can differ by one level.

If min = max = 0, all results are zero. If min = max, but not 0, the nudged range is {0} and the
results are NaN. If min > max, all results are the lower end of the nudged range, except that a NaN
stays NaN.

inputs: The numbers, of any shape.
min: A scalar: the lower end of the range; finite.
max: A scalar: the upper end of the range; finite.
outputs: The rounded numbers.
num_bits: The bits of the integer, 2 to 16.
narrow_range: If true, leaves out the lowest level. Ranges such as [-6, 6] stay symmetric.)");
  registry.Kernel("FakeQuantWithMinMaxVars", MakeKernel<FakeQuantVars>);
}

void RegisterPerChannel(Registry& registry) {
  registry.Op("FakeQuantWithMinMaxVarsPerChannel")
      .Group("array_ops")
      .Input("inputs: float")
      .Input("min: float")
      .Input("max: float")
      .Output("outputs: float")
      .Attr("num_bits: int = 8")
      .Attr("narrow_range: bool = false")
      .Shape(PerChannelShape)
      .Doc(R"(Rounds floats to the levels of a `num_bits` integer, over a range for each channel.

The channels are the last dimension. Element [..., c] is rounded over [min[c], max[c]], as
`FakeQuantWithMinMaxVars` does over its range. Each range is nudged so that zero is one of its
levels: with 8 bits and without `narrow_range`, [-1, 1] becomes [-0.99607849, 1.00392163], [-6, 6]
becomes [-6.02352953, 5.97647047] and [12, 123] becomes [0, 111].

If min = max = 0 for a channel, its results are zero. If min = max, but not 0, its nudged range is
{0} and its results are NaN. If min > max, all its results are the lower end of the nudged range,
except that a NaN stays NaN.

inputs: The numbers, of at least rank 1.
min: The lower end of each channel's range; finite.
max: The upper end of each channel's range; finite.
outputs: The rounded numbers.
num_bits: The bits of the integer, 2 to 16.
narrow_range: If true, leaves out the lowest level. Ranges such as [-6, 6] stay symmetric.)");
  registry.Kernel("FakeQuantWithMinMaxVarsPerChannel", MakeKernel<FakeQuantPerChannel>);
}

}  // namespace

void Register(Registry& registry) {
  RegisterArgs(registry);
  RegisterVars(registry);
  RegisterPerChannel(registry);
}

}  // namespace gradflow::fake_quant
