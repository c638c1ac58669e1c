// Gradients of the fake-quant ops. The staircase of the forward ops has no useful derivative; the
// gradient is that of the cut to the nudged range behind it ("straight-through estimator").
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/fake_quant_common.h"
#include "gradflow/ops/fake_quant_simd.h"
#include "gradflow/ops/input_checks.h"
#include "gradflow/ops/register.h"
#include "gradflow/ops/row_blocks.h"
#include "gradflow/ops/simd.h"

namespace gradflow {
namespace {

// The inputs of all three ops; min and max are attributes of the first.
constexpr int kGradients = 0;
constexpr int kInputs = 1;
constexpr int kMin = 2;
constexpr int kMax = 3;

// Output 0, over the gradients or else the inputs if one of them may be overwritten.
absl::Status MakeBackprops(KernelContext& ctx, Tensor** backprops) {
  const int from = ctx.input(kGradients).CanBeReused() ? kGradients : kInputs;
  return ctx.ForwardInputOrAllocateOutput(from, 0, ctx.input(kInputs).shape(), backprops);
}

absl::StatusOr<PartialTensorShape> BackpropsShape(const ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckFakeQuantGradients(c.input(kGradients), c.input(kInputs)));
  return c.input(kGradients).MergeWith(c.input(kInputs));
}

// ---- FakeQuantWithMinMaxArgsGradient ----

absl::Status ArgsShape(ShapeContext& c) {
  FakeQuantLevels levels;
  float min = 0;
  float max = 0;
  GRADFLOW_RETURN_IF_ERROR(ReadFakeQuantLevels(c, &levels));
  GRADFLOW_RETURN_IF_ERROR(ReadFakeQuantArgs(c, &min, &max));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape backprops, BackpropsShape(c));
  c.set_output(0, std::move(backprops));
  return absl::OkStatus();
}

class ArgsGradient final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    FakeQuantLevels levels;
    float min = 0;
    float max = 0;
    GRADFLOW_RETURN_IF_ERROR(ReadFakeQuantLevels(construction, &levels));
    GRADFLOW_RETURN_IF_ERROR(ReadFakeQuantArgs(construction, &min, &max));
    step_ = Nudge(levels, min, max);
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, {DT_FLOAT, DT_FLOAT}));
    GRADFLOW_RETURN_IF_ERROR(
        CheckFakeQuantGradients(ctx.input(kGradients).shape(), ctx.input(kInputs).shape()));
    Tensor* backprops = nullptr;
    GRADFLOW_RETURN_IF_ERROR(MakeBackprops(ctx, &backprops));
    const float* g = ctx.input(kGradients).flat<float>().data();
    const float* x = ctx.input(kInputs).flat<float>().data();
    float* dx = backprops->flat<float>().data();
    const bool stream = StreamsTo(dx, dx == g || dx == x, backprops->TotalBytes());
    ParallelFor(backprops->NumElements(), kFakeQuantBlock, [&](int64_t begin, int64_t end) {
      FakeQuantGrad(g + begin, x + begin, dx + begin, end - begin, step_.min, step_.max, stream);
    });
    return absl::OkStatus();
  }

 private:
  FakeQuantStep step_;
};

// ---- FakeQuantWithMinMaxVarsGradient ----

absl::Status VarsShape(ShapeContext& c) {
  FakeQuantLevels levels;
  GRADFLOW_RETURN_IF_ERROR(ReadFakeQuantLevels(c, &levels));
  GRADFLOW_RETURN_IF_ERROR(CheckFakeQuantScalars(c.input(kMin), c.input(kMax)));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape backprops, BackpropsShape(c));
  c.set_output(0, std::move(backprops));
  c.set_output(1, TensorShape());
  c.set_output(2, TensorShape());
  return absl::OkStatus();
}

class VarsGradient final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return ReadFakeQuantLevels(construction, &levels_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, {DT_FLOAT, DT_FLOAT, DT_FLOAT, DT_FLOAT}));
    GRADFLOW_RETURN_IF_ERROR(
        CheckFakeQuantGradients(ctx.input(kGradients).shape(), ctx.input(kInputs).shape()));
    GRADFLOW_RETURN_IF_ERROR(
        CheckFakeQuantScalars(ctx.input(kMin).shape(), ctx.input(kMax).shape()));
    GRADFLOW_RETURN_IF_ERROR(CheckFakeQuantVars(ctx.input(kMin), ctx.input(kMax)));
    Tensor* sum_below = nullptr;
    Tensor* sum_above = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, TensorShape(), &sum_below));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(2, TensorShape(), &sum_above));
    sum_below->scalar<float>()() = 0;
    sum_above->scalar<float>()() = 0;
    const float min = ctx.input(kMin).scalar<float>()();
    const float max = ctx.input(kMax).scalar<float>()();
    if (IsZeroRange(min, max)) {
      ctx.set_output(0, ctx.input(kGradients));
      return absl::OkStatus();
    }

    const FakeQuantStep step = Nudge(levels_, min, max);
    const int64_t n = ctx.input(kInputs).NumElements();
    const int64_t num_blocks = NumBlocks(n, kFakeQuantBlock);
    Tensor sums;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_DOUBLE, {num_blocks, 2}, &sums));
    Tensor* backprops = nullptr;
    GRADFLOW_RETURN_IF_ERROR(MakeBackprops(ctx, &backprops));
    if (n == 0) return absl::OkStatus();
    const float* g = ctx.input(kGradients).flat<float>().data();
    const float* x = ctx.input(kInputs).flat<float>().data();
    float* dx = backprops->flat<float>().data();
    double* block_sums = sums.flat<double>().data();
    const bool stream = StreamsTo(dx, dx == g || dx == x, backprops->TotalBytes());
    ParallelFor(n, kFakeQuantBlock, [&](int64_t begin, int64_t end) {
      double lanes[2 * kSumLanes] = {};
      FakeQuantGradSums(g + begin, x + begin, dx + begin, end - begin, step.min, step.max, stream,
                        lanes);
      double* sum = block_sums + begin / kFakeQuantBlock * 2;
      sum[0] = SumOfLanes(lanes);
      sum[1] = SumOfLanes(lanes + kSumLanes);
    });
    AddUpBlocks(block_sums, num_blocks, 2);
    SumsToFloats(block_sums, 1, sum_below->flat<float>().data());
    SumsToFloats(block_sums + 1, 1, sum_above->flat<float>().data());
    return absl::OkStatus();
  }

 private:
  FakeQuantLevels levels_;
};

// ---- FakeQuantWithMinMaxVarsPerChannelGradient ----

absl::Status PerChannelShape(ShapeContext& c) {
  FakeQuantLevels levels;
  GRADFLOW_RETURN_IF_ERROR(ReadFakeQuantLevels(c, &levels));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape backprops, BackpropsShape(c));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t channels,
                            FakeQuantChannels(backprops, c.input(kMin), c.input(kMax)));
  if (!backprops.unknown_rank()) backprops.set_dim(backprops.dims() - 1, channels);
  c.set_output(0, std::move(backprops));
  c.set_output(1, PartialTensorShape({channels}));
  c.set_output(2, PartialTensorShape({channels}));
  return absl::OkStatus();
}

class PerChannelGradient final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return ReadFakeQuantLevels(construction, &levels_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, {DT_FLOAT, DT_FLOAT, DT_FLOAT, DT_FLOAT}));
    const TensorShape shape = ctx.input(kInputs).shape();
    GRADFLOW_RETURN_IF_ERROR(CheckFakeQuantGradients(ctx.input(kGradients).shape(), shape));
    GRADFLOW_ASSIGN_OR_RETURN(
        const int64_t channels,
        FakeQuantChannels(shape, ctx.input(kMin).shape(), ctx.input(kMax).shape()));
    GRADFLOW_RETURN_IF_ERROR(CheckFakeQuantVars(ctx.input(kMin), ctx.input(kMax)));
    Tensor* below = nullptr;
    Tensor* above = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, {channels}, &below));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(2, {channels}, &above));
    if (shape.num_elements() == 0) {
      float* const zeros[] = {below->flat<float>().data(), above->flat<float>().data()};
      ParallelFor(channels, kFakeQuantBlock, [&](int64_t begin, int64_t end) {
        for (float* sums : zeros) std::fill(sums + begin, sums + end, 0.0f);
      });
      Tensor* backprops = nullptr;
      return ctx.AllocateOutput(0, shape, &backprops);
    }

    const RowBlocks blocks(shape.num_elements() / channels, channels);
    const int64_t width = blocks.width();
    // With few rows the sums are as large as the data, and are best rounded where they are made.
    const bool one_tile_per_column = blocks.num_blocks() == 1 && blocks.repeats() == 1;
    Tensor block_sums;
    if (!one_tile_per_column) {
      GRADFLOW_RETURN_IF_ERROR(
          ctx.AllocateTemp(DT_DOUBLE, {blocks.num_blocks(), 2, width}, &block_sums));
    }
    Tensor* backprops = nullptr;
    GRADFLOW_RETURN_IF_ERROR(MakeBackprops(ctx, &backprops));
    const float* const g = ctx.input(kGradients).flat<float>().data();
    const float* const x = ctx.input(kInputs).flat<float>().data();
    const float* const min = ctx.input(kMin).flat<float>().data();
    const float* const max = ctx.input(kMax).flat<float>().data();
    float* const dx = backprops->flat<float>().data();
    float* const below_out = below->flat<float>().data();
    float* const above_out = above->flat<float>().data();
    double* const sums = one_tile_per_column ? nullptr : block_sums.flat<double>().data();
    const bool stream =
        StreamsTo(dx, dx == g || dx == x, backprops->TotalBytes(), width * sizeof(float));
    blocks.ForEachTile([&](const RowBlocks::Tile& tile) {
      // Each tile works out its ranges anew, which costs less than to fetch them from memory.
      float values[3 * RowBlocks::kMaxColumns];
      const FakeQuantRanges ranges = {values, values + RowBlocks::kMaxColumns,
                                      values + 2 * RowBlocks::kMaxColumns};
      NudgeRanges(levels_, min + tile.column, max + tile.column, std::min(channels, tile.columns),
                  ranges);
      for (float* range : {ranges.min, ranges.max, ranges.outside}) blocks.Repeat(range);

      double tile_sums[2 * RowBlocks::kMaxColumns];
      double* sum_below = tile_sums;
      double* sum_above = tile_sums + RowBlocks::kMaxColumns;
      if (!one_tile_per_column) {
        sum_below = sums + tile.block * 2 * width + tile.column;
        sum_above = sum_below + width;
      }
      std::fill(sum_below, sum_below + tile.columns, 0.0);
      std::fill(sum_above, sum_above + tile.columns, 0.0);
      const auto run = [&](int64_t offset, int64_t rows, int64_t columns) {
        FakeQuantGradRows(g + offset, x + offset, dx + offset, rows, width, columns, ranges, stream,
                          sum_below, sum_above);
      };
      run(tile.offset, tile.rows, tile.columns);
      if (tile.rest_columns > 0) run(tile.rest_offset, 1, tile.rest_columns);
      if (one_tile_per_column) {
        SumsToFloats(sum_below, tile.columns, below_out + tile.column);
        SumsToFloats(sum_above, tile.columns, above_out + tile.column);
      }
    });
    if (one_tile_per_column) return absl::OkStatus();
    blocks.AddUp(sums, 2);
    ParallelFor(channels, kFakeQuantBlock, [&](int64_t begin, int64_t end) {
      SumsToFloats(sums + begin, end - begin, below_out + begin);
      SumsToFloats(sums + width + begin, end - begin, above_out + begin);
    });
    return absl::OkStatus();
  }

 private:
  FakeQuantLevels levels_;
};

}  // namespace

void RegisterFakeQuantGradient(Registry& registry) {
  registry.Op("FakeQuantWithMinMaxArgsGradient")
      .Group("array_ops")
      .Input("gradients: float")
      .Input("inputs: float")
      .Output("backprops: float")
      .Attr("min: float = -6.0")
      .Attr("max: float = 6.0")
      .Attr("num_bits: int = 8")
      .Attr("narrow_range: bool = false")
      .Shape(ArgsShape)
      .Doc(R"(The gradient of FakeQuantWithMinMaxArgs.

Gradients pass where the input lies in the nudged range, ends included, and are multiplied by zero
elsewhere: also where the input is NaN.

gradients: What comes back from the outputs of FakeQuantWithMinMaxArgs.
inputs: Its inputs, of the same shape.
backprops: gradients * (nudged_min <= inputs <= nudged_max ? 1 : 0).
min: As in FakeQuantWithMinMaxArgs.
max: As in FakeQuantWithMinMaxArgs.
num_bits: As in FakeQuantWithMinMaxArgs.
narrow_range: As in FakeQuantWithMinMaxArgs.)");
  registry.Kernel("FakeQuantWithMinMaxArgsGradient", MakeKernel<ArgsGradient>);

  registry.Op("FakeQuantWithMinMaxVarsGradient")
      .Group("array_ops")
      .Input("gradients: float")
      .Input("inputs: float")
      .Input("min: float")
      .Input("max: float")
      .Output("backprops_wrt_input: float")
      .Output("backprop_wrt_min: float")
      .Output("backprop_wrt_max: float")
      .Attr("num_bits: int = 8")
      .Attr("narrow_range: bool = false")
      .Shape(VarsShape)
      .Doc(R"(The gradients of FakeQuantWithMinMaxVars.

They are those of the cut to the nudged range: for `inputs` where the input is inside, ends included,
and for `min` and `max` the sums of what lies below and above. The input NaN is nowhere. The sums
have the same bits whatever the number of threads and the processor. With min = max = 0, all
gradients go to the inputs.

gradients: What comes back from the outputs of FakeQuantWithMinMaxVars.
inputs: Its inputs, of the same shape.
min: A scalar: the lower end of the range; finite.
max: A scalar: the upper end of the range; finite.
backprops_wrt_input: gradients * (nudged_min <= inputs <= nudged_max ? 1 : 0).
backprop_wrt_min: A scalar: the sum of gradients where inputs < nudged_min.
backprop_wrt_max: A scalar: the sum of gradients where inputs > nudged_max.
num_bits: As in FakeQuantWithMinMaxVars.
narrow_range: As in FakeQuantWithMinMaxVars.)");
  registry.Kernel("FakeQuantWithMinMaxVarsGradient", MakeKernel<VarsGradient>);

  registry.Op("FakeQuantWithMinMaxVarsPerChannelGradient")
      .Group("array_ops")
      .Input("gradients: float")
      .Input("inputs: float")
      .Input("min: float")
      .Input("max: float")
      .Output("backprops_wrt_input: float")
      .Output("backprop_wrt_min: float")
      .Output("backprop_wrt_max: float")
      .Attr("num_bits: int = 8")
      .Attr("narrow_range: bool = false")
      .Shape(PerChannelShape)
      .Doc(R"(The gradients of FakeQuantWithMinMaxVarsPerChannel.

As those of FakeQuantWithMinMaxVars, for each channel (of the last dimension) with its own range. A
channel with min = max = 0 passes all its gradients to its inputs.

gradients: What comes back from the outputs of FakeQuantWithMinMaxVarsPerChannel.
inputs: Its inputs, of the same shape, of rank 1 at least.
min: The lower end of each channel's range; finite.
max: The upper end of each channel's range; finite.
backprops_wrt_input: gradients * (nudged_min <= inputs <= nudged_max ? 1 : 0).
backprop_wrt_min: Of each channel, the sum of gradients where inputs < nudged_min.
backprop_wrt_max: Of each channel, the sum of gradients where inputs > nudged_max.
num_bits: As in FakeQuantWithMinMaxVarsPerChannel.
narrow_range: As in FakeQuantWithMinMaxVarsPerChannel.)");
  registry.Kernel("FakeQuantWithMinMaxVarsPerChannelGradient", MakeKernel<PerChannelGradient>);
}

}  // namespace gradflow
