// Fake quantization: rounds numbers to the levels of an integer type and keeps them as floats, so
// that a graph sees in training what quantization does to it. Gradients are in
// fake_quant_gradient.cc.
#include <algorithm>
#include <cstdint>
#include <utility>

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

// Computes output 0 from input 0, with one range for all elements.
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

// ---- FakeQuantWithMinMaxArgs ----

absl::Status ArgsShape(ShapeContext& c) {
  FakeQuantStep step;
  GRADFLOW_RETURN_IF_ERROR(ReadFakeQuantStep(c, &step));
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

class FakeQuantArgs final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return ReadFakeQuantStep(construction, &step_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, {DT_FLOAT}));
    return QuantizeAll(ctx, step_, FakeQuantMultiply);
  }

 private:
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

class FakeQuantVars final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return ReadFakeQuantLevels(construction, &levels_);
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

class FakeQuantPerChannel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return ReadFakeQuantLevels(construction, &levels_);
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
      // Each tile computes its ranges anew, which costs less than loading them from memory.
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

The range is nudged first, so that zero is one of the levels: with scale = (max - min) / (q1 - q0),
the integer for zero is q0 - min / scale, clamped to [q0, q1] and rounded (halves away from zero),
and the range becomes ((q0 - zero) * scale, (q1 - zero) * scale). With 8 bits and without
`narrow_range`,

    [-1, 1]    becomes [-0.99607849, 1.00392163], with zero at 127 (127.49999237 rounds down)
    [-6, 6]    becomes [-6.02352953, 5.97647047], with zero at 128
    [12, 123]  becomes [0, 111], because the range must contain zero

Numbers are clamped to the nudged range and then rounded to its nearest level, halves up. Zero stays
exactly zero, and a NaN stays NaN.

inputs: The numbers, of any shape.
outputs: The rounded numbers.
min: The lower end of the range; finite and less than `max`.
max: The upper end of the range; finite.
num_bits: The bits of the integer, 2 to 16.
narrow_range: If true, leaves out the lowest level, which makes the range symmetric.)");
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

If min = max = 0, all results are zero. If min > max, no number is inside the range. If min = max is
not zero, the nudged range is {0} and the results are NaN.

inputs: The numbers, of any shape.
min: A scalar: the lower end of the range; finite.
max: A scalar: the upper end of the range; finite.
outputs: The rounded numbers.
num_bits: The bits of the integer, 2 to 16.
narrow_range: If true, leaves out the lowest level, which makes the range symmetric.)");
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

If min = max = 0 for a channel, its results are zero. If min > max, no number is inside its range.
If min = max is not zero, its nudged range is {0} and its results are NaN.

inputs: The numbers, of at least rank 1.
min: The lower end of each channel's range; finite.
max: The upper end of each channel's range; finite.
outputs: The rounded numbers.
num_bits: The bits of the integer, 2 to 16.
narrow_range: If true, leaves out the lowest level, which makes the range symmetric.)");
  registry.Kernel("FakeQuantWithMinMaxVarsPerChannel", MakeKernel<FakeQuantPerChannel>);
}

}  // namespace

void Register(Registry& registry) {
  RegisterArgs(registry);
  RegisterVars(registry);
  RegisterPerChannel(registry);
}

}  // namespace gradflow::fake_quant
