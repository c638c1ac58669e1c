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

// A sum as a float; a NaN is always the same one.
float SumToFloat(double sum) {
  return std::isnan(sum) ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(sum);
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
    ParallelFor(backprops->NumElements(), kFakeQuantBlock, [&](int64_t begin, int64_t end) {
      FakeQuantGrad(g + begin, x + begin, dx + begin, end - begin, step_.min, step_.max);
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
    ParallelFor(n, kFakeQuantBlock, [&](int64_t begin, int64_t end) {
      double lanes[2 * kSumLanes] = {};
      FakeQuantGradSums(g + begin, x + begin, dx + begin, end - begin, step.min, step.max, lanes);
      double* sum = block_sums + begin / kFakeQuantBlock * 2;
      sum[0] = SumOfLanes(lanes);
      sum[1] = SumOfLanes(lanes + kSumLanes);
    });
    AddUpBlocks(block_sums, num_blocks, 2);
    sum_below->scalar<float>()() = SumToFloat(block_sums[0]);
    sum_above->scalar<float>()() = SumToFloat(block_sums[1]);
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
      below->flat<float>().setZero();
      above->flat<float>().setZero();
      Tensor* backprops = nullptr;
      return ctx.AllocateOutput(0, shape, &backprops);
    }

    const RowBlocks blocks(shape.num_elements() / channels, channels);
    const int64_t width = blocks.width();
    Tensor floats;
    Tensor doubles;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, {3, width}, &floats));
    GRADFLOW_RETURN_IF_ERROR(
        ctx.AllocateTemp(DT_DOUBLE, {blocks.num_blocks(), 2, width}, &doubles));
    float* const low = floats.flat<float>().data();
    float* const high = low + width;
    float* const outside = high + width;
    NudgeRanges(ctx.input(kMin), ctx.input(kMax), low, high, outside);
    for (float* values : {low, high, outside}) blocks.Repeat(values);

    Tensor* backprops = nullptr;
    GRADFLOW_RETURN_IF_ERROR(MakeBackprops(ctx, &backprops));
    const float* const g = ctx.input(kGradients).flat<float>().data();
    const float* const x = ctx.input(kInputs).flat<float>().data();
    float* const dx = backprops->flat<float>().data();
    double* const sums = doubles.flat<double>().data();
    blocks.ForEachTile([&](const RowBlocks::Tile& tile) {
      const int64_t j = tile.column;
      const FakeQuantRanges ranges = {low + j, high + j, outside + j};
      double* sum_below = sums + tile.block * 2 * width + j;
      double* sum_above = sum_below + width;
      std::fill(sum_below, sum_below + tile.columns, 0.0);
      std::fill(sum_above, sum_above + tile.columns, 0.0);
      const auto run = [&](int64_t offset, int64_t rows, int64_t columns) {
        FakeQuantGradRows(g + offset, x + offset, dx + offset, rows, width, columns, ranges,
                          sum_below, sum_above);
      };
      run(tile.offset, tile.rows, tile.columns);
      if (tile.rest_columns > 0) run(tile.rest_offset, 1, tile.rest_columns);
    });
    blocks.AddUp(sums, 2);
    for (int64_t c = 0; c < channels; ++c) {
      below->flat<float>()(c) = SumToFloat(sums[c]);
      above->flat<float>()(c) = SumToFloat(sums[width + c]);
    }
    return absl::OkStatus();
  }

 private:
  void NudgeRanges(const Tensor& min, const Tensor& max, float* low, float* high,
                   float* outside) const {
    const float* const min_in = min.flat<float>().data();
    const float* const max_in = max.flat<float>().data();
    ParallelFor(min.NumElements(), kFakeQuantBlock / 8, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        if (IsZeroRange(min_in[c], max_in[c])) {
          // Everything is inside, and what cannot be (a NaN) passes too.
          low[c] = -std::numeric_limits<float>::infinity();
          high[c] = std::numeric_limits<float>::infinity();
          outside[c] = 1;
        } else {
          const FakeQuantStep step = Nudge(levels_, min_in[c], max_in[c]);
          low[c] = step.min;
          high[c] = step.max;
          outside[c] = 0;
        }
      }
    });
  }

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
