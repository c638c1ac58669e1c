// The gradients of batch normalisation: FusedBatchNormGrad, FusedBatchNormGradV2 and
// FusedBatchNormGradV3.
#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/batch_norm_common.h"
#include "gradflow/ops/batch_norm_grad_simd.h"
#include "gradflow/ops/input_checks.h"
#include "gradflow/ops/plane_blocks.h"
#include "gradflow/ops/register.h"
#include "gradflow/ops/row_blocks.h"

namespace gradflow {
namespace {

// Inputs. V3 has one more, which nothing uses.
constexpr int kYBackprop = 0;
constexpr int kX = 1;
constexpr int kScale = 2;
constexpr int kMean = 3;
constexpr int kVariance = 4;
// Outputs. Two more are empty.
constexpr int kXBackprop = 0;
constexpr int kScaleBackprop = 1;
constexpr int kOffsetBackprop = 2;
constexpr int kFirstUnused = 3;
constexpr int kNumOutputs = 5;

constexpr const char* kInputNames[] = {"y_backprop", "x", "scale", "reserve_space_1",
                                       "reserve_space_2"};

// Checks the shapes of the inputs; the number of channels, or -1.
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

// What the elements of each channel, or column, are computed with; and the sums of each channel.
struct ChannelTable {
  float* mean;
  float* mean_dy;
  float* mean_dy_rest;
  float* slope;
  // The scale, until SetCoefficients.
  float* factor;
  // Of dy, and of dy * (x - mean).
  double* sum_dy;
  double* sum_product;

  BatchNormGradCoefficients At(int64_t i) const {
    return {mean + i, mean_dy + i, mean_dy_rest + i, slope + i, factor + i};
  }
};

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
        SetVector(sum, [](int64_t) { return 0; });
      }
      return ctx.AllocateOutput(kXBackprop, shape, &unused);
    }

    const RowBlocks rows(layout.count(), channels);
    const PlaneBlocks planes(layout.batch, channels, layout.spatial);
    const int64_t width = layout.in_rows ? rows.width() : channels;
    Tensor floats;
    Tensor sums;
    Tensor block_sums;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, {5, width}, &floats));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_DOUBLE, {2, channels}, &sums));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_DOUBLE,
                                              layout.in_rows
                                                  ? TensorShape({rows.num_blocks(), 2, width})
                                                  : TensorShape({channels, planes.num_blocks(), 2}),
                                              &block_sums));
    ChannelTable table;
    table.mean = floats.flat<float>().data();
    table.mean_dy = table.mean + width;
    table.mean_dy_rest = table.mean_dy + width;
    table.slope = table.mean_dy_rest + width;
    table.factor = table.slope + width;
    table.sum_dy = sums.flat<double>().data();
    table.sum_product = table.sum_dy + channels;
    VectorToFloats(ctx.input(kMean), table.mean);
    VectorToFloats(ctx.input(kScale), table.factor);

    // Over dy or else x, if one of them may be overwritten.
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
      ComputeRows(rows, run);
    } else {
      ComputePlanes(planes, run);
    }
    SetVector(offset_backprop, [&](int64_t c) { return table.sum_dy[c]; });
    SetVector(scale_backprop, [&](int64_t c) {
      return InverseDeviation(run.variance[c], attrs_.epsilon) * table.sum_product[c];
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
    ChannelTable table;

    const void* DyAt(int64_t i) const { return ElementAt(dy, type, i); }
    const void* XAt(int64_t i) const { return ElementAt(x, type, i); }
    void* DxAt(int64_t i) const { return ElementAt(dx, type, i); }
  };

  // Whether to stream dx, where runs of that many elements are stored.
  static bool Streams(const Run& run, int64_t length) {
    const int64_t size = run.layout.count() * run.layout.channels;
    return StreamsTo(run.dx, run.dx == run.dy || run.dx == run.x, ElementBytes(run.type, size),
                     ElementBytes(run.type, length));
  }

  // Of channel c, from its scale and, in training, its sums.
  void SetCoefficients(const Run& run, int64_t c) const {
    const ChannelTable& t = run.table;
    const double inverse = InverseDeviation(run.variance[c], attrs_.epsilon);
    t.factor[c] = static_cast<float>(t.factor[c] * inverse);
    if (!attrs_.is_training) return;
    const double count = static_cast<double>(run.layout.count());
    t.mean_dy[c] = SplitDouble(t.sum_dy[c] / count, &t.mean_dy_rest[c]);
    t.slope[c] = static_cast<float>(inverse * inverse * t.sum_product[c] / count);
  }

  void ComputeRows(const RowBlocks& blocks, const Run& run) const {
    const ChannelTable& table = run.table;
    const int64_t width = blocks.width();
    const int64_t channels = run.layout.channels;
    const bool stream = Streams(run, width);
    if (!attrs_.is_training) {
      ForEachChannel(channels, [&](int64_t c) { SetCoefficients(run, c); });
      blocks.Repeat(table.factor);
    }
    blocks.Repeat(table.mean);
    blocks.ForEachTile([&](const RowBlocks::Tile& tile) {
      double* const sum_dy = run.block_sums + tile.block * 2 * width + tile.column;
      double* const sum_product = sum_dy + width;
      std::fill_n(sum_dy, tile.columns, 0.0);
      std::fill_n(sum_product, tile.columns, 0.0);
      const auto add = [&](int64_t offset, const BatchNormRows& rows) {
        if (attrs_.is_training) {
          BatchNormGradSumsOfRows(run.type, run.DyAt(offset), run.XAt(offset), rows,
                                  table.mean + tile.column, sum_dy, sum_product);
        } else {
          BatchNormFrozenGradRows(run.type, run.DyAt(offset), run.XAt(offset), run.DxAt(offset),
                                  rows, table.mean + tile.column, table.factor + tile.column,
                                  stream, sum_dy, sum_product);
        }
      };
      add(tile.offset, {tile.rows, width, tile.columns});
      if (tile.rest_columns > 0) add(tile.rest_offset, {1, width, tile.rest_columns});
    });
    blocks.AddUp(run.block_sums, 2);
    ForEachChannel(channels, [&](int64_t c) {
      table.sum_dy[c] = run.block_sums[c];
      table.sum_product[c] = run.block_sums[width + c];
    });
    if (!attrs_.is_training) return;

    ForEachChannel(channels, [&](int64_t c) { SetCoefficients(run, c); });
    for (float* values : {table.mean_dy, table.mean_dy_rest, table.slope, table.factor}) {
      blocks.Repeat(values);
    }
    ForEachRows(run.layout.count() * channels, width, /*backwards=*/!stream,
                [&](int64_t offset, const BatchNormRows& rows) {
                  BatchNormGradRows(run.type, run.DyAt(offset), run.XAt(offset), run.DxAt(offset),
                                    rows, table.At(0), stream);
                });
  }

  void ComputePlanes(const PlaneBlocks& blocks, const Run& run) const {
    const ChannelTable& table = run.table;
    const int64_t num_blocks = blocks.num_blocks();
    const bool stream = Streams(run, run.layout.spatial);
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
                                  table.factor + tile.channel, stream, lanes);
      }
      for (int64_t i = 0; i < tile.planes.channels; ++i) {
        double* const sums = run.block_sums + ((tile.channel + i) * num_blocks + tile.block) * 2;
        for (int k = 0; k < 2; ++k) sums[k] = SumOfLanes(lanes + (i * 2 + k) * kSumLanes);
      }
    };
    const auto add_up = [&](int64_t c) {
      double* const sums = run.block_sums + c * num_blocks * 2;
      AddUpBlocks(sums, num_blocks, 2);
      table.sum_dy[c] = sums[0];
      table.sum_product[c] = sums[1];
    };
    if (!attrs_.is_training) {
      ForEachChannel(run.layout.channels, [&](int64_t c) { SetCoefficients(run, c); });
      blocks.ForEachTile(add);
      ForEachChannel(run.layout.channels, add_up);
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
                              tile.planes, table.At(tile.channel), stream);
        });
  }

  BatchNormAttrs attrs_;
  DataTypeVector input_types_;
};

// $0: the forward op; $1: the rank of x; $2: further lines for inputs, outputs and types; $3: the
// data formats.
constexpr char kDoc[] = R"(The gradients of $0.

With m elements in a channel, sums over them, and inv = 1 / sqrt(reserve_space_2 + epsilon):

    offset_backprop = sum(dy)
    scale_backprop = inv * sum(dy * (x - mean))
    x_backprop = scale * inv * (dy - sum(dy) / m - (x - mean) * inv^2 * sum(dy * (x - mean)) / m)

where dy is `y_backprop` and mean is `reserve_space_1`. When not training, the statistics are
constants, and x_backprop = scale * inv * dy. The sums have the same bits whatever the number of
threads and the processor. An empty batch has the sums 0.

y_backprop: What comes back from `y`; of the same shape as `x`.
x: A tensor of rank $1.
scale: A vector with the factor of each channel.
reserve_space_1: A vector with the mean of each channel: in training what $0
  gives as reserve_space_1, otherwise the running mean.
reserve_space_2: A vector with the variance of each channel: in training what $0
  gives as reserve_space_2, otherwise the running variance.
x_backprop: The gradient of `x`.
scale_backprop: The gradient of `scale`.
offset_backprop: The gradient of `offset`.
$2epsilon: Added to the variance, against division by zero; not negative.
data_format: The order of the dimensions of `x`: $3.
is_training: Whether the forward op was in training.)";

constexpr char kTypesDoc[] = R"(T: The type of the elements; they are computed with in float.
U: The type of the statistics.
)";

std::string UnusedDoc(int first) {
  return absl::StrCat("reserve_space_", first, ": Empty; nothing uses it.\nreserve_space_",
                      first + 1, ": Empty; nothing uses it.\n");
}

}  // namespace

void RegisterBatchNormGrad(Registry& registry) {
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
      .Doc(absl::Substitute(kDoc, "FusedBatchNormV2", "4", absl::StrCat(UnusedDoc(3), kTypesDoc),
                            "NHWC or NCHW"));
  registry.Kernel("FusedBatchNormGradV2", MakeKernel<BatchNormGrad>)
      .Types("T", {DT_HALF, DT_BFLOAT16, DT_FLOAT})
      .Type<float>("U");

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
                                         UnusedDoc(4), kTypesDoc),
                            "NHWC, NCHW, NDHWC or NCDHW"));
  registry.Kernel("FusedBatchNormGradV3", MakeKernel<BatchNormGrad>)
      .Types("T", {DT_HALF, DT_BFLOAT16, DT_FLOAT})
      .Type<float>("U");
}

}  // namespace gradflow
