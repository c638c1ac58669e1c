// Gradients of the fake-quant ops. The forward ops are step functions without a useful derivative.
// The gradient is therefore the gradient of a clamp to the nudged range ("straight-through
// estimator").
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
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

namespace gradflow::fake_quant_gradient {
namespace {

// The inputs of the gradient ops. In FakeQuantWithMinMaxArgsGradient, min and max are attributes.
constexpr int kGradients = 0;
constexpr int kInputs = 1;
constexpr int kMin = 2;
constexpr int kMax = 3;

// Allocates output 0. Reuses the buffer of the gradients or the inputs if one of them may be
// overwritten.
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
  FakeQuantStep step;
  GRADFLOW_RETURN_IF_ERROR(ReadFakeQuantStep(c, &step));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape backprops, BackpropsShape(c));
  c.set_output(0, std::move(backprops));
  return absl::OkStatus();
}

class ArgsGradient final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return ReadFakeQuantStep(construction, &step_);
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
    const bool non_temporal =
        ShouldUseNonTemporalStores(dx, dx == g || dx == x, backprops->TotalBytes());
    ParallelFor(ctx, backprops->NumElements(), kFakeQuantBlock, [&](int64_t begin, int64_t end) {
      FakeQuantGrad(g + begin, x + begin, dx + begin, end - begin, step_.min, step_.max,
                    non_temporal);
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
    GRADFLOW_RETURN_IF_ERROR(CheckFakeQuantVars(ctx.run(), ctx.input(kMin), ctx.input(kMax)));
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
    const bool non_temporal =
        ShouldUseNonTemporalStores(dx, dx == g || dx == x, backprops->TotalBytes());
    ParallelFor(ctx, n, kFakeQuantBlock, [&](int64_t begin, int64_t end) {
      double lanes[2 * kSumLanes] = {};
      FakeQuantGradSums(g + begin, x + begin, dx + begin, end - begin, step.min, step.max,
                        non_temporal, lanes);
      double* sum = block_sums + begin / kFakeQuantBlock * 2;
      sum[0] = SumOfLanes(lanes);
      sum[1] = SumOfLanes(lanes + kSumLanes);
    });
    AddUpBlocks(ctx.run(), block_sums, num_blocks, 2);
    SumsToFloats(block_sums, &min, &max, 1, sum_below->flat<float>().data());
    SumsToFloats(block_sums + 1, &min, &max, 1, sum_above->flat<float>().data());
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
    GRADFLOW_RETURN_IF_ERROR(CheckFakeQuantVars(ctx.run(), ctx.input(kMin), ctx.input(kMax)));
    Tensor* below = nullptr;
    Tensor* above = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, {channels}, &below));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(2, {channels}, &above));
    Run run;
    run.below = below->flat<float>().data();
    run.above = above->flat<float>().data();
    if (shape.num_elements() == 0) return ComputeEmpty(ctx, shape, channels, run);

    const RowBlocks blocks(ctx.run(), shape.num_elements() / channels, channels);
    const int64_t width = blocks.width();
    // With few rows, the sums are as large as the data, so they are rounded by the task that
    // computes them.
    const bool one_tile_per_column = blocks.num_blocks() == 1 && blocks.repeats() == 1;
    Tensor sums;
    if (!one_tile_per_column) {
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_DOUBLE, {blocks.num_blocks(), 2, width}, &sums));
      run.sums = sums.flat<double>().data();
    }
    Tensor* backprops = nullptr;
    GRADFLOW_RETURN_IF_ERROR(MakeBackprops(ctx, &backprops));
    run.channels = channels;
    run.g = ctx.input(kGradients).flat<float>().data();
    run.x = ctx.input(kInputs).flat<float>().data();
    run.min = ctx.input(kMin).flat<float>().data();
    run.max = ctx.input(kMax).flat<float>().data();
    run.dx = backprops->flat<float>().data();
    run.non_temporal = ShouldUseNonTemporalStores(run.dx, run.dx == run.g || run.dx == run.x,
                                                  backprops->TotalBytes(), width * sizeof(float));
    blocks.ForEachTile([&](const RowBlocks::Tile& tile) { ComputeTile(blocks, tile, run); });
    if (one_tile_per_column) return absl::OkStatus();
    blocks.AddUp(run.sums, 2);
    ParallelFor(ctx, channels, kFakeQuantBlock, [&](int64_t begin, int64_t end) {
      SetSums(run, begin, end - begin, run.sums + begin, run.sums + width + begin);
    });
    return absl::OkStatus();
  }

 private:
  struct Run {
    int64_t channels = 0;
    const float* g = nullptr;
    const float* x = nullptr;
    const float* min = nullptr;
    const float* max = nullptr;
    float* dx = nullptr;
    bool non_temporal = false;
    // [num_blocks, 2, width]. Null if each column has a single tile.
    double* sums = nullptr;
    float* below = nullptr;
    float* above = nullptr;
  };

  static absl::Status ComputeEmpty(KernelContext& ctx, const TensorShape& shape, int64_t channels,
                                   const Run& run) {
    ParallelFor(ctx, channels, kFakeQuantBlock, [&](int64_t begin, int64_t end) {
      for (float* sums : {run.below, run.above}) std::fill(sums + begin, sums + end, 0.0f);
    });
    Tensor* backprops = nullptr;
    return ctx.AllocateOutput(0, shape, &backprops);
  }

  // Rounds the sums of n channels, starting at `channel`.
  static void SetSums(const Run& run, int64_t channel, int64_t n, const double* below,
                      const double* above) {
    const float* const min = run.min + channel;
    const float* const max = run.max + channel;
    SumsToFloats(below, min, max, n, run.below + channel);
    SumsToFloats(above, min, max, n, run.above + channel);
  }

  void ComputeTile(const RowBlocks& blocks, const RowBlocks::Tile& tile, const Run& run) const {
    // Each tile computes its ranges again, which is faster than loading them from memory.
    alignas(64) float values[3 * RowBlocks::kMaxColumns];
    const int64_t stride = FakeQuantTableStride(tile.columns);
    const FakeQuantRanges ranges = {values, values + stride, values + 2 * stride};
    NudgeRanges(levels_, run.min + tile.column, run.max + tile.column,
                std::min(run.channels, tile.columns), ranges);
    for (float* range : {ranges.min, ranges.max, ranges.outside}) blocks.Repeat(range);

    const int64_t width = blocks.width();
    alignas(64) double tile_sums[2 * RowBlocks::kMaxColumns];
    double* below = tile_sums;
    double* above = tile_sums + stride;
    if (run.sums != nullptr) {
      below = run.sums + tile.block * 2 * width + tile.column;
      above = below + width;
    }
    std::fill_n(below, tile.columns, 0.0);
    std::fill_n(above, tile.columns, 0.0);
    tile.ForEachPart([&](int64_t offset, int64_t rows, int64_t columns) {
      FakeQuantGradRows(run.g + offset, run.x + offset, run.dx + offset, rows, width, columns,
                        ranges, run.non_temporal, below, above);
    });
    if (run.sums == nullptr) SetSums(run, tile.column, tile.columns, below, above);
  }

  FakeQuantLevels levels_;
};

// ---- Registration ----

void RegisterArgs(Registry& registry) {
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

Gradients pass where the input lies in the nudged range, ends included. They are multiplied by zero
elsewhere, and where the input is NaN.

gradients: The gradients of the outputs of `FakeQuantWithMinMaxArgs`.
inputs: The inputs of that op, of the same shape.
backprops: gradients * (nudged_min <= inputs <= nudged_max ? 1 : 0).
min: The attribute of `FakeQuantWithMinMaxArgs`.
max: The attribute of `FakeQuantWithMinMaxArgs`.
num_bits: The attribute of `FakeQuantWithMinMaxArgs`.
narrow_range: The attribute of `FakeQuantWithMinMaxArgs`.)");
  registry.Kernel("FakeQuantWithMinMaxArgsGradient", MakeKernel<ArgsGradient>);
}

void RegisterVars(Registry& registry) {
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

They are the gradients of a clamp to the nudged range. `inputs` receives the gradients where the
input is inside the range, ends included. `min` receives the sum of the gradients where the input is
below the range, `max` the sum where the input is above the range. A NaN input is neither inside,
below nor above. For each result, all other gradients are multiplied by 0, so an infinite or NaN
gradient makes the result NaN. The sums have the same bits for any number of threads and on any
processor. If min = max = 0, all gradients pass to the inputs and the sums are 0.

gradients: The gradients of the outputs of `FakeQuantWithMinMaxVars`.
inputs: The inputs of that op, of the same shape.
min: A scalar: the lower end of the range; finite.
max: A scalar: the upper end of the range; finite.
backprops_wrt_input: gradients * (nudged_min <= inputs <= nudged_max ? 1 : 0).
backprop_wrt_min: A scalar: the sum of gradients * (inputs < nudged_min ? 1 : 0).
backprop_wrt_max: A scalar: the sum of gradients * (inputs > nudged_max ? 1 : 0).
num_bits: The attribute of `FakeQuantWithMinMaxVars`.
narrow_range: The attribute of `FakeQuantWithMinMaxVars`.)");
  registry.Kernel("FakeQuantWithMinMaxVarsGradient", MakeKernel<VarsGradient>);
}

void RegisterPerChannel(Registry& registry) {
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

They are computed as for `FakeQuantWithMinMaxVars`, with a separate range for each channel of the
last dimension. If min = max = 0 for a channel, all its gradients pass to its inputs.

gradients: The gradients of the outputs of `FakeQuantWithMinMaxVarsPerChannel`.
inputs: The inputs of that op, of the same shape, of at least rank 1.
min: The lower end of each channel's range; finite.
max: The upper end of each channel's range; finite.
backprops_wrt_input: gradients * (nudged_min <= inputs <= nudged_max ? 1 : 0).
backprop_wrt_min: For each channel, the sum of gradients * (inputs < nudged_min ? 1 : 0).
backprop_wrt_max: For each channel, the sum of gradients * (inputs > nudged_max ? 1 : 0).
num_bits: The attribute of `FakeQuantWithMinMaxVarsPerChannel`.
narrow_range: The attribute of `FakeQuantWithMinMaxVarsPerChannel`.)");
  registry.Kernel("FakeQuantWithMinMaxVarsPerChannelGradient", MakeKernel<PerChannelGradient>);
}

}  // namespace

void Register(Registry& registry) {
  RegisterArgs(registry);
  RegisterVars(registry);
  RegisterPerChannel(registry);
}

}  // namespace gradflow::fake_quant_gradient
