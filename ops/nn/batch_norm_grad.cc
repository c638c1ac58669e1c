// The gradients of batch normalization: FusedBatchNormGrad, FusedBatchNormGradV2 and
// FusedBatchNormGradV3.
#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/common/plane_blocks.h"
#include "gradflow/ops/common/row_blocks.h"
#include "gradflow/ops/nn/batch_norm_common.h"
#include "gradflow/ops/nn/batch_norm_grad_simd.h"

namespace gradflow::batch_norm_grad {
namespace {

// Inputs. V3 has another input, which is not used.
constexpr int kYBackprop = 0;
constexpr int kX = 1;
constexpr int kScale = 2;
constexpr int kMean = 3;
constexpr int kVariance = 4;
// Outputs. Two more outputs are empty.
constexpr int kXBackprop = 0;
constexpr int kScaleBackprop = 1;
constexpr int kOffsetBackprop = 2;
constexpr int kFirstUnused = 3;
constexpr int kNumOutputs = 5;

constexpr const char* kInputNames[] = {"y_backprop", "x", "scale", "reserve_space_1",
                                       "reserve_space_2"};

// Checks the shapes of the inputs. Returns the number of channels; -1 if unknown.
absl::StatusOr<int64_t> CheckShapes(const BatchNormAttrs& attrs,
                                    absl::FunctionRef<PartialTensorShape(int input)> shape) {
  const PartialTensorShape x = shape(kX);
  GRADFLOW_ASSIGN_OR_RETURN(int64_t channels, BatchNormChannels(attrs, x));
  const PartialTensorShape y_backprop = shape(kYBackprop);
  if (!y_backprop.IsCompatibleWith(x)) {
    return ShapeError("y_backprop", y_backprop, x, "the same shape as x");
  }
  for (int i = kScale; i <= kVariance; ++i) {
    GRADFLOW_RETURN_IF_ERROR(CheckPerChannel(attrs, x, kInputNames[i], shape(i), &channels));
  }
  return channels;
}

absl::Status GradShape(ShapeContext& c) {
  BatchNormAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(ReadBatchNormAttrs(c, &attrs));
  PartialTensorShape x = c.input(kX);
  if (x.IsCompatibleWith(c.input(kYBackprop))) {
    GRADFLOW_ASSIGN_OR_RETURN(x, x.MergeWith(c.input(kYBackprop)));
  }
  const auto shape_of = [&](int i) { return i == kX ? x : c.input(i); };
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t channels, CheckShapes(attrs, shape_of));
  c.set_output(kXBackprop, WithChannels(attrs, x, channels));
  c.set_output(kScaleBackprop, PartialTensorShape({channels}));
  c.set_output(kOffsetBackprop, PartialTensorShape({channels}));
  for (int i = kFirstUnused; i < kNumOutputs; ++i) c.set_output(i, PartialTensorShape({0}));
  return absl::OkStatus();
}

// The coefficients of each column or channel, and the sums of each channel.
struct BatchNormGradTable {
  float* mean;
  float* mean_dy;
  float* mean_dy_rest;
  float* slope;
  // Holds the scale until SetCoefficients() is called.
  float* factor;
  // The sums of dy, and of dy * (x - mean).
  double* sum_dy;
  double* sum_product;

  BatchNormGradCoefficients At(int64_t i) const {
    return {mean + i, mean_dy + i, mean_dy_rest + i, slope + i, factor + i};
  }
};

BatchNormGradTable MakeTable(Tensor& floats, int64_t width, Tensor& sums, int64_t channels) {
  BatchNormGradTable table;
  table.mean = floats.flat<float>().data();
  table.mean_dy = table.mean + width;
  table.mean_dy_rest = table.mean_dy + width;
  table.slope = table.mean_dy_rest + width;
  table.factor = table.slope + width;
  table.sum_dy = sums.flat<double>().data();
  table.sum_product = table.sum_dy + channels;
  return table;
}

class BatchNormGrad final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    input_types_ = InputTypes(construction);
    return ReadBatchNormAttrs(construction, &attrs_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, input_types_));
    const auto shape_of = [&](int i) { return PartialTensorShape(ctx.input(i).shape()); };
    GRADFLOW_RETURN_IF_ERROR(CheckShapes(attrs_, shape_of).status());
    const TensorShape shape = ctx.input(kX).shape();
    const BatchNormLayout layout = MakeBatchNormLayout(attrs_, shape);
    const int64_t channels = layout.channels;
    Tensor* unused = nullptr;
    for (int i = kFirstUnused; i < kNumOutputs; ++i) {
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(i, {0}, &unused));
    }
    Tensor* scale_backprop = nullptr;
    Tensor* offset_backprop = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(kScaleBackprop, {channels}, &scale_backprop));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(kOffsetBackprop, {channels}, &offset_backprop));
    if (shape.num_elements() == 0) {
      for (Tensor* sum : {scale_backprop, offset_backprop}) {
        SetVector(ctx.run(), sum, [](int64_t) { return 0; });
      }
      return ctx.AllocateOutput(kXBackprop, shape, &unused);
    }

    const BatchNormBlocks blocks(ctx.run(), layout);
    Tensor floats;
    Tensor sums;
    Tensor block_sums;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, {5, blocks.width}, &floats));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_DOUBLE, {2, channels}, &sums));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_DOUBLE, blocks.sums_shape, &block_sums));
    const BatchNormGradTable table = MakeTable(floats, blocks.width, sums, channels);
    VectorToFloats(ctx.run(), ctx.input(kMean), table.mean);
    VectorToFloats(ctx.run(), ctx.input(kScale), table.factor);

    // Reuses the buffer of dy or x if one of them may be overwritten.
    const int from = ctx.input(kYBackprop).CanBeReused() ? kYBackprop : kX;
    Tensor* x_backprop = nullptr;
    GRADFLOW_RETURN_IF_ERROR(
        ctx.ForwardInputOrAllocateOutput(from, kXBackprop, shape, &x_backprop));
    const Run run = {ElementTypeOf(x_backprop->dtype()),
                     ctx.input(kYBackprop).raw_data(),
                     ctx.input(kX).raw_data(),
                     x_backprop->raw_data(),
                     ctx.input(kVariance).flat<float>().data(),
                     layout,
                     block_sums.flat<double>().data(),
                     table};
    if (layout.in_rows) {
      ComputeRows(blocks.rows, run);
    } else {
      ComputePlanes(blocks.planes, run);
    }
    SetVector(ctx.run(), offset_backprop, [&](int64_t c) { return table.sum_dy[c]; });
    SetVector(ctx.run(), scale_backprop, [&](int64_t c) {
      return Rstd(run.variance[c], attrs_.epsilon) * table.sum_product[c];
    });
    return absl::OkStatus();
  }

 private:
  struct Run {
    ElementType type;
    const void* dy;
    const void* x;
    void* dx;
    const float* variance;
    BatchNormLayout layout;
    double* block_sums;
    BatchNormGradTable table;

    const void* DyAt(int64_t i) const { return ElementAt(dy, type, i); }
    const void* XAt(int64_t i) const { return ElementAt(x, type, i); }
    void* DxAt(int64_t i) const { return ElementAt(dx, type, i); }
  };

  // Returns true if dx is written with non-temporal stores, in runs of `length` elements.
  static bool UsesNonTemporalStores(const Run& run, int64_t length) {
    const int64_t size = run.layout.count() * run.layout.channels;
    return ShouldUseNonTemporalStores(run.dx, run.dx == run.dy || run.dx == run.x,
                                      ElementBytes(run.type, size), ElementBytes(run.type, length));
  }

  // Computes the coefficients of channel c from its scale and, in training, from its sums.
  void SetCoefficients(const Run& run, int64_t c) const {
    const BatchNormGradTable& t = run.table;
    const double inverse = Rstd(run.variance[c], attrs_.epsilon);
    t.factor[c] = static_cast<float>(t.factor[c] * inverse);
    if (!attrs_.is_training) return;
    const double count = static_cast<double>(run.layout.count());
    t.mean_dy[c] = SplitDouble(t.sum_dy[c] / count, &t.mean_dy_rest[c]);
    t.slope[c] = static_cast<float>(inverse * inverse * t.sum_product[c] / count);
  }

  void ComputeRows(const RowBlocks& blocks, const Run& run) const {
    const BatchNormGradTable& table = run.table;
    const int64_t width = blocks.width();
    const int64_t channels = run.layout.channels;
    const bool non_temporal = UsesNonTemporalStores(run, width);
    if (!attrs_.is_training) {
      ForEachChannel(blocks.run(), channels, [&](int64_t c) { SetCoefficients(run, c); });
      blocks.Repeat(table.factor);
    }
    blocks.Repeat(table.mean);
    blocks.ForEachTile([&](const RowBlocks::Tile& tile) {
      double* const sum_dy = run.block_sums + tile.block * 2 * width + tile.column;
      double* const sum_product = sum_dy + width;
      std::fill_n(sum_dy, tile.columns, 0.0);
      std::fill_n(sum_product, tile.columns, 0.0);
      tile.ForEachPart([&](int64_t offset, int64_t num_rows, int64_t columns) {
        const BatchNormRows rows = {num_rows, width, columns};
        if (attrs_.is_training) {
          BatchNormGradSumsOfRows(run.type, run.DyAt(offset), run.XAt(offset), rows,
                                  table.mean + tile.column, sum_dy, sum_product);
        } else {
          BatchNormFrozenGradRows(run.type, run.DyAt(offset), run.XAt(offset), run.DxAt(offset),
                                  rows, table.mean + tile.column, table.factor + tile.column,
                                  non_temporal, sum_dy, sum_product);
        }
      });
    });
    blocks.AddUp(run.block_sums, 2);
    ForEachChannel(blocks.run(), channels, [&](int64_t c) {
      table.sum_dy[c] = run.block_sums[c];
      table.sum_product[c] = run.block_sums[width + c];
    });
    if (!attrs_.is_training) return;

    ForEachChannel(blocks.run(), channels, [&](int64_t c) { SetCoefficients(run, c); });
    for (float* values : {table.mean_dy, table.mean_dy_rest, table.slope, table.factor}) {
      blocks.Repeat(values);
    }
    ForEachRows(blocks.run(), run.layout.count() * channels, width, /*backwards=*/!non_temporal,
                [&](int64_t offset, const BatchNormRows& rows) {
                  BatchNormGradRows(run.type, run.DyAt(offset), run.XAt(offset), run.DxAt(offset),
                                    rows, table.At(0), non_temporal);
                });
  }

  void ComputePlanes(const PlaneBlocks& blocks, const Run& run) const {
    const BatchNormGradTable& table = run.table;
    const int64_t num_blocks = blocks.num_blocks();
    const bool non_temporal = UsesNonTemporalStores(run, run.layout.spatial);
    const auto add = [&](const PlaneBlocks::Tile& tile) {
      const int64_t offset = tile.offset;
      double lanes[PlaneBlocks::kMaxChannels * 2 * kSumLanes];
      std::fill_n(lanes, tile.planes.channels * 2 * kSumLanes, 0.0);
      if (attrs_.is_training) {
        BatchNormGradSumsOfPlanes(run.type, run.DyAt(offset), run.XAt(offset), tile.planes,
                                  table.mean + tile.channel, lanes);
      } else {
        BatchNormFrozenGradPlanes(run.type, run.DyAt(offset), run.XAt(offset), run.DxAt(offset),
                                  tile.planes, table.mean + tile.channel,
                                  table.factor + tile.channel, non_temporal, lanes);
      }
      for (int64_t i = 0; i < tile.planes.channels; ++i) {
        double* const sums = run.block_sums + ((tile.channel + i) * num_blocks + tile.block) * 2;
        for (int k = 0; k < 2; ++k) sums[k] = SumOfLanes(lanes + (i * 2 + k) * kSumLanes);
      }
    };
    const auto add_up = [&](int64_t c) {
      double* const sums = run.block_sums + c * num_blocks * 2;
      AddUpBlocks(blocks.run(), sums, num_blocks, 2);
      table.sum_dy[c] = sums[0];
      table.sum_product[c] = sums[1];
    };
    if (!attrs_.is_training) {
      ForEachChannel(blocks.run(), run.layout.channels,
                     [&](int64_t c) { SetCoefficients(run, c); });
      blocks.ForEachTile(add);
      ForEachChannel(blocks.run(), run.layout.channels, add_up);
      return;
    }
    blocks.InTwoPasses(
        add,
        [&](int64_t c) {
          add_up(c);
          SetCoefficients(run, c);
        },
        [&](const PlaneBlocks::Tile& tile) {
          const int64_t offset = tile.offset;
          BatchNormGradPlanes(run.type, run.DyAt(offset), run.XAt(offset), run.DxAt(offset),
                              tile.planes, table.At(tile.channel), non_temporal);
        });
  }

  BatchNormAttrs attrs_;
  DataTypeVector input_types_;
};

// $0 is the forward op, $1 the rank of x, $2 more lines for inputs, outputs and types, and $3 the
// data formats.
constexpr char kDoc[] = R"(The gradients of $0.

With m elements in a channel, sums over them, and inv = 1 / sqrt(reserve_space_2 + epsilon):

    offset_backprop = sum(dy)
    scale_backprop = inv * sum(dy * (x - mean))
    x_backprop = scale * inv * (dy - sum(dy) / m - (x - mean) * inv^2 * sum(dy * (x - mean)) / m)

where dy is `y_backprop` and mean is `reserve_space_1`. When not training, the statistics are
constants, and x_backprop = scale * inv * dy. The sums have the same bits for any number of threads
and on any processor. The sums of an empty batch are 0.

y_backprop: The gradient of `y`, of the same shape as `x`.
x: A tensor of rank $1.
scale: A vector with the factor of each channel.
reserve_space_1: A vector with the mean of each channel: in training the output reserve_space_1 of
  $0, otherwise the running mean.
reserve_space_2: A vector with the variance of each channel: in training the output reserve_space_2
  of $0, otherwise the running variance.
x_backprop: The gradient of `x`.
scale_backprop: The gradient of `scale`.
offset_backprop: The gradient of `offset`.
$2epsilon: Added to the variance, against division by zero; not negative.
data_format: The order of the dimensions of `x`: $3.
is_training: The attribute of the forward op.)";

std::string UnusedDoc(int first) {
  return absl::StrCat("reserve_space_", first, ": Empty; nothing uses it.\nreserve_space_",
                      first + 1, ": Empty; nothing uses it.\n");
}

void RegisterV1(Registry& registry) {
  registry.Op("FusedBatchNormGrad")
      .Group("nn_ops")
      .Input("y_backprop: T")
      .Input("x: T")
      .Input("scale: T")
      .Input("reserve_space_1: T")
      .Input("reserve_space_2: T")
      .Output("x_backprop: T")
      .Output("scale_backprop: T")
      .Output("offset_backprop: T")
      .Output("reserve_space_3: T")
      .Output("reserve_space_4: T")
      .Attr("T: {float}")
      .Attr("epsilon: float = 0.0001")
      .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
      .Attr("is_training: bool = true")
      .Shape(GradShape)
      .Doc(absl::Substitute(kDoc, "FusedBatchNorm", "4",
                            absl::StrCat(UnusedDoc(3), "T: The type of everything.\n"),
                            "NHWC or NCHW"));
  registry.Kernel("FusedBatchNormGrad", MakeKernel<BatchNormGrad>).Type<float>("T");
}

void RegisterV2(Registry& registry) {
  registry.Op("FusedBatchNormGradV2")
      .Group("nn_ops")
      .Input("y_backprop: T")
      .Input("x: T")
      .Input("scale: float")
      .Input("reserve_space_1: U")
      .Input("reserve_space_2: U")
      .Output("x_backprop: T")
      .Output("scale_backprop: U")
      .Output("offset_backprop: U")
      .Output("reserve_space_3: U")
      .Output("reserve_space_4: U")
      .Attr("T: {half, bfloat16, float}")
      .Attr("U: {float}")
      .Attr("epsilon: float = 0.0001")
      .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
      .Attr("is_training: bool = true")
      .Shape(GradShape)
      .Doc(absl::Substitute(kDoc, "FusedBatchNormV2", "4",
                            absl::StrCat(UnusedDoc(3), kBatchNormTypesDoc), "NHWC or NCHW"));
  registry.Kernel("FusedBatchNormGradV2", MakeKernel<BatchNormGrad>)
      .Types("T", {DT_HALF, DT_BFLOAT16, DT_FLOAT})
      .Type<float>("U");
}

void RegisterV3(Registry& registry) {
  registry.Op("FusedBatchNormGradV3")
      .Group("nn_ops")
      .Input("y_backprop: T")
      .Input("x: T")
      .Input("scale: float")
      .Input("reserve_space_1: U")
      .Input("reserve_space_2: U")
      .Input("reserve_space_3: U")
      .Output("x_backprop: T")
      .Output("scale_backprop: U")
      .Output("offset_backprop: U")
      .Output("reserve_space_4: U")
      .Output("reserve_space_5: U")
      .Attr("T: {half, bfloat16, float}")
      .Attr("U: {float}")
      .Attr("epsilon: float = 0.0001")
      .Attr("data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'")
      .Attr("is_training: bool = true")
      .Shape(GradShape)
      .Doc(absl::Substitute(kDoc, "FusedBatchNormV3", "4, or 5 for the formats with D",
                            absl::StrCat("reserve_space_3: Of any shape; nothing uses it.\n",
                                         UnusedDoc(4), kBatchNormTypesDoc),
                            "NHWC, NCHW, NDHWC or NCDHW"));
  registry.Kernel("FusedBatchNormGradV3", MakeKernel<BatchNormGrad>)
      .Types("T", {DT_HALF, DT_BFLOAT16, DT_FLOAT})
      .Type<float>("U");
}

}  // namespace

void Register(Registry& registry) {
  RegisterV1(registry);
  RegisterV2(registry);
  RegisterV3(registry);
}

}  // namespace gradflow::batch_norm_grad
