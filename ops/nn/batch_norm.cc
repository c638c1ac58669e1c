// Batch normalization: FusedBatchNorm, FusedBatchNormV2 and FusedBatchNormV3. batch_norm_grad.cc
// has the gradients.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "gradflow/core/fused_steps.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/common/plane_blocks.h"
#include "gradflow/ops/common/row_blocks.h"
#include "gradflow/ops/nn/batch_norm_common.h"
#include "gradflow/ops/nn/batch_norm_moments.h"
#include "gradflow/ops/nn/batch_norm_simd.h"

namespace gradflow::batch_norm {
namespace {

// Inputs.
constexpr int kX = 0;
constexpr int kScale = 1;
constexpr int kOffset = 2;
constexpr int kMean = 3;
constexpr int kVariance = 4;
// Outputs.
constexpr int kY = 0;
constexpr int kBatchMean = 1;
constexpr int kBatchVariance = 2;
constexpr int kReserveSpace1 = 3;
constexpr int kReserveSpace2 = 4;
constexpr int kReserveSpace3 = 5;

constexpr const char* kInputNames[] = {"x", "scale", "offset", "mean", "variance"};

struct ForwardAttrs : BatchNormAttrs {
  float exponential_avg_factor = 1;
  // Returns true if the result depends on the running statistics, `mean` and `variance`.
  bool uses_running() const { return !is_training || exponential_avg_factor != 1; }
};

template <typename Source>
absl::Status ReadAttrs(const Source& source, ForwardAttrs* attrs) {
  GRADFLOW_RETURN_IF_ERROR(ReadBatchNormAttrs(source, attrs));
  return source.GetAttr("exponential_avg_factor", &attrs->exponential_avg_factor);
}

// Checks the shapes of the inputs. Returns the number of channels; -1 if unknown.
absl::StatusOr<int64_t> CheckShapes(const ForwardAttrs& attrs,
                                    absl::FunctionRef<PartialTensorShape(int input)> shape) {
  const PartialTensorShape x = shape(kX);
  GRADFLOW_ASSIGN_OR_RETURN(int64_t channels, BatchNormChannels(attrs, x));
  for (int i = kScale; i <= kVariance; ++i) {
    const PartialTensorShape found = shape(i);
    if (i >= kMean && !attrs.uses_running()) {
      if (!found.IsCompatibleWith({-1})) {
        return ShapeError(kInputNames[i], found, {-1}, "a vector, of any length in training");
      }
    } else {
      GRADFLOW_RETURN_IF_ERROR(CheckPerChannel(attrs, x, kInputNames[i], found, &channels));
    }
  }
  return channels;
}

absl::Status BatchNormShape(ShapeContext& c) {
  ForwardAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(ReadAttrs(c, &attrs));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t channels,
                            CheckShapes(attrs, [&](int i) { return c.input(i); }));
  c.set_output(kY, WithChannels(attrs, c.input(kX), channels));
  for (int i = kBatchMean; i <= kReserveSpace2; ++i) {
    c.set_output(i, PartialTensorShape({channels}));
  }
  if (c.num_outputs() > kReserveSpace3) c.set_output(kReserveSpace3, TensorShape());
  return absl::OkStatus();
}

// The mean and variance of each channel, and the coefficients of each column or channel.
struct BatchNormTable {
  double* mean;
  double* variance;
  float* center;
  float* center_rest;
  float* factor;
  float* offset;
};

// Inference on rows of floats, as a fused step.
class BatchNormStep final : public FusedStep {
 public:
  // `floats` is [4, channels]: the coefficients, in the order of BatchNormCoefficients.
  explicit BatchNormStep(Tensor floats) : floats_(std::move(floats)) {}
  void Apply(const ResultPart& part) const override {
    const float* const data = static_cast<const float*>(floats_.raw_data());
    const int64_t channels = floats_.dim_size(1);
    const BatchNormCoefficients all = {data, data + channels, data + 2 * channels,
                                       data + 3 * channels};
    BatchNormRowsForward(ElementType::kFloat, part.data, part.data,
                         {part.rows, part.stride, part.columns}, all.At(part.column),
                         /*non_temporal=*/false);
  }

 private:
  const Tensor floats_;
};

class BatchNorm final : public OpKernel, public StepKernel {
 public:
  bool CanBeStep(int input) const override {
    const auto is_float = [](DataType dtype) { return dtype == DT_FLOAT; };
    return input == kX && !attrs_.is_training && attrs_.channels_last &&
           std::all_of(input_types_.begin(), input_types_.end(), is_float);
  }
  std::unique_ptr<FusedStep> MakeStep(const RunContext& run, absl::Span<const Tensor> inputs, int,
                                      const TensorShape& shape) const override {
    for (int i = kScale; i <= kVariance; ++i) {
      if (inputs[i].dtype() != DT_FLOAT || !inputs[i].IsInitialized()) return nullptr;
    }
    const auto shape_of = [&](int i) {
      return PartialTensorShape(i == kX ? shape : inputs[i].shape());
    };
    if (!CheckShapes(attrs_, shape_of).ok()) return nullptr;
    const int64_t channels = shape.dim_size(shape.dims() - 1);
    absl::StatusOr<Tensor> floats = Tensor::Allocate(*run.allocator, DT_FLOAT, {4, channels});
    if (!floats.ok()) return nullptr;
    float* const center = static_cast<float*>(floats->raw_data());
    const auto at = [&](int input, int64_t c) {
      return static_cast<const float*>(inputs[input].raw_data())[c];
    };
    for (int64_t c = 0; c < channels; ++c) {
      const double stddev = Stddev(static_cast<double>(at(kVariance, c)));
      center[c] = SplitDouble(static_cast<double>(at(kMean, c)), &center[channels + c]);
      center[2 * channels + c] = Factor(at(kScale, c), stddev);
      center[3 * channels + c] = at(kOffset, c);
    }
    return std::make_unique<BatchNormStep>(*std::move(floats));
  }

  absl::Status Init(const KernelConstruction& construction) {
    input_types_ = InputTypes(construction);
    return ReadAttrs(construction, &attrs_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, input_types_));
    const auto shape_of = [&](int i) { return PartialTensorShape(ctx.input(i).shape()); };
    GRADFLOW_RETURN_IF_ERROR(CheckShapes(attrs_, shape_of).status());
    const TensorShape shape = ctx.input(kX).shape();
    const BatchNormLayout layout = MakeBatchNormLayout(attrs_, shape);
    if (ctx.num_outputs() > kReserveSpace3) {
      Tensor* unused = nullptr;
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(kReserveSpace3, TensorShape(), &unused));
      SetVector(ctx.run(), unused, [](int64_t) { return 0; });
    }
    if (shape.num_elements() == 0) return ComputeEmpty(ctx, layout);

    const BatchNormBlocks blocks(ctx.run(), layout);
    const int64_t width = blocks.width;
    Tensor floats;
    Tensor doubles;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, {4, width}, &floats));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_DOUBLE, {2, layout.channels}, &doubles));
    BatchNormTable table;
    table.mean = doubles.flat<double>().data();
    table.variance = table.mean + layout.channels;
    table.center = floats.flat<float>().data();
    table.center_rest = table.center + width;
    table.factor = table.center_rest + width;
    table.offset = table.factor + width;

    // Training computes moments; inference reads the statistics from inputs.
    Tensor block_moments;
    if (attrs_.is_training) {
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_DOUBLE, blocks.sums_shape, &block_moments));
    } else {
      // The statistics are converted to floats in the arrays of coefficients, then to doubles.
      VectorToFloats(ctx.run(), ctx.input(kMean), table.center);
      VectorToFloats(ctx.run(), ctx.input(kVariance), table.factor);
      ForEachChannel(ctx.run(), layout.channels, [&](int64_t c) {
        table.mean[c] = table.center[c];
        table.variance[c] = table.factor[c];
      });
    }
    VectorToFloats(ctx.run(), ctx.input(kScale), table.factor);
    VectorToFloats(ctx.run(), ctx.input(kOffset), table.offset);
    Tensor* y = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.ForwardInputOrAllocateOutput(kX, kY, shape, &y));
    double* const moments = block_moments.flat<double>().data();
    if (layout.in_rows) {
      ComputeRows(blocks.rows, ctx.input(kX), layout, moments, table, y);
    } else {
      ComputePlanes(blocks.planes, ctx.input(kX), layout, moments, table, y);
    }
    return SetStatistics(ctx, layout, table);
  }

 private:
  absl::Status ComputeEmpty(KernelContext& ctx, const BatchNormLayout& layout) const {
    Tensor* y = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(kY, ctx.input(kX).shape(), &y));
    if (!attrs_.is_training) {
      PassOnStatistics(ctx);
      return absl::OkStatus();
    }
    for (int i = kBatchMean; i <= kReserveSpace2; ++i) {
      Tensor* statistic = nullptr;
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(i, {layout.channels}, &statistic));
      const double value = i < kReserveSpace1 ? std::numeric_limits<double>::quiet_NaN() : 0.0;
      SetVector(ctx.run(), statistic, [=](int64_t) { return value; });
    }
    return absl::OkStatus();
  }

  // Computes a channel's coefficients from its mean and variance. table.factor[c] must hold the
  // scale.
  void SetCoefficients(const BatchNormTable& table, int64_t c) const {
    const double stddev = Stddev(table.variance[c]);
    table.center[c] = SplitDouble(table.mean[c], &table.center_rest[c]);
    table.factor[c] = Factor(table.factor[c], stddev);
  }
  double Stddev(double variance) const {
    return std::sqrt(variance + static_cast<double>(attrs_.epsilon));
  }
  static float Factor(float scale, double stddev) { return static_cast<float>(scale / stddev); }

  void ComputeRows(const RowBlocks& blocks, const Tensor& x, const BatchNormLayout& layout,
                   double* moments, const BatchNormTable& table, Tensor* y) const {
    const ElementType type = ElementTypeOf(x.dtype());
    const void* const in = x.raw_data();
    void* const out = y->raw_data();
    const int64_t width = blocks.width();
    if (attrs_.is_training) {
      MomentsOfRows(blocks, layout.channels, type, in, moments);
      ForEachChannel(blocks.run(), layout.channels, [&](int64_t c) {
        table.mean[c] = moments[c];
        table.variance[c] = moments[width + c] / static_cast<double>(layout.count());
      });
    }
    ForEachChannel(blocks.run(), layout.channels, [&](int64_t c) { SetCoefficients(table, c); });
    for (float* values : {table.center, table.center_rest, table.factor, table.offset}) {
      blocks.Repeat(values);
    }
    const BatchNormCoefficients coefficients = {table.center, table.center_rest, table.factor,
                                                table.offset};
    const bool non_temporal = ShouldUseNonTemporalStores(out, out == in, y->TotalBytes(),
                                                         ElementBytes(type, blocks.width()));
    ForEachRows(blocks.run(), x.NumElements(), width, /*backwards=*/!non_temporal,
                [&](int64_t offset, const BatchNormRows& rows) {
                  BatchNormRowsForward(type, ElementAt(in, type, offset),
                                       ElementAt(out, type, offset), rows, coefficients,
                                       non_temporal);
                });
  }

  void ComputePlanes(const PlaneBlocks& blocks, const Tensor& x, const BatchNormLayout& layout,
                     double* moments, const BatchNormTable& table, Tensor* y) const {
    const ElementType type = ElementTypeOf(x.dtype());
    const void* const in = x.raw_data();
    void* const out = y->raw_data();
    const BatchNormCoefficients coefficients = {table.center, table.center_rest, table.factor,
                                                table.offset};
    const bool non_temporal = ShouldUseNonTemporalStores(out, out == in, y->TotalBytes(),
                                                         ElementBytes(type, layout.spatial));
    const auto normalize = [&](const PlaneBlocks::Tile& tile) {
      BatchNormPlanesForward(type, ElementAt(in, type, tile.offset),
                             ElementAt(out, type, tile.offset), tile.planes,
                             coefficients.At(tile.channel), non_temporal);
    };
    if (!attrs_.is_training) {
      ForEachChannel(blocks.run(), layout.channels, [&](int64_t c) { SetCoefficients(table, c); });
      blocks.ForEachTile(normalize);
      return;
    }
    blocks.InTwoPasses(
        [&](const PlaneBlocks::Tile& tile) { MomentsOfPlanes(blocks, type, in, tile, moments); },
        [&](int64_t c) {
          const Moments all = CombineBlocksOfChannel(blocks, moments + c * blocks.num_blocks() * 2);
          table.mean[c] = all.mean;
          table.variance[c] = all.squares / static_cast<double>(layout.count());
          SetCoefficients(table, c);
        },
        normalize);
  }

  static void PassOnStatistics(KernelContext& ctx) {
    for (const int i : {kBatchMean, kReserveSpace1}) ctx.set_output(i, ctx.input(kMean));
    for (const int i : {kBatchVariance, kReserveSpace2}) ctx.set_output(i, ctx.input(kVariance));
  }

  absl::Status SetStatistics(KernelContext& ctx, const BatchNormLayout& layout,
                             const BatchNormTable& table) const {
    if (!attrs_.is_training) {
      PassOnStatistics(ctx);
      return absl::OkStatus();
    }
    Tensor* outputs[kReserveSpace2 + 1] = {};
    for (int i = kBatchMean; i <= kReserveSpace2; ++i) {
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(i, {layout.channels}, &outputs[i]));
    }
    const double n = static_cast<double>(layout.count());
    const double bessel = n > 1 ? n / (n - 1) : 1.0;
    const double factor = attrs_.exponential_avg_factor;
    if (factor == 1) {
      SetVector(ctx.run(), outputs[kBatchMean], [&](int64_t c) { return table.mean[c]; });
      SetVector(ctx.run(), outputs[kBatchVariance],
                [&](int64_t c) { return table.variance[c] * bessel; });
    } else {
      // The coefficients are no longer used, so their memory is reused.
      float* const running = table.center;
      VectorToFloats(ctx.run(), ctx.input(kMean), running);
      SetVector(ctx.run(), outputs[kBatchMean],
                [&](int64_t c) { return (1 - factor) * running[c] + factor * table.mean[c]; });
      VectorToFloats(ctx.run(), ctx.input(kVariance), running);
      SetVector(ctx.run(), outputs[kBatchVariance], [&](int64_t c) {
        return (1 - factor) * running[c] + factor * (table.variance[c] * bessel);
      });
    }
    SetVector(ctx.run(), outputs[kReserveSpace1], [&](int64_t c) { return table.mean[c]; });
    SetVector(ctx.run(), outputs[kReserveSpace2], [&](int64_t c) { return table.variance[c]; });
    return absl::OkStatus();
  }

  ForwardAttrs attrs_;
  DataTypeVector input_types_;
};

// $0 is a final sentence, $1 the rank of x, $2 more lines for outputs and types, and $3 the data
// formats.
constexpr char kDoc[] = R"(Batch normalization.

Each channel of `x` is brought to mean 0 and variance 1, then scaled and shifted:

    y = (x - mean) * scale / sqrt(variance + epsilon) + offset

In training, the mean and the variance of the batch are used, over all axes except the channels.
Otherwise, the inputs `mean` and `variance` are used, and are also returned as the outputs.
Statistics are accurate even if the mean is much larger than the stddev, and have the same bits for
any number of threads and on any processor. In training, an empty batch has NaN in `batch_mean` and
`batch_variance`, and zero in the reserve spaces. $0

x: A tensor of rank $1.
scale: A vector with the factor of each channel.
offset: A vector with the offset of each channel.
mean: A vector with the running mean of each channel. In training with exponential_avg_factor = 1
  it is not used and may have any length.
variance: A vector with the running variance of each channel. Not used if `mean` is not used.
y: The normalized tensor.
batch_mean: The mean; in training with a factor f = exponential_avg_factor other than 1,
  (1 - f) * mean + f * (mean of the batch).
batch_variance: The variance. In training it has Bessel's correction: it is multiplied by
  m / (m - 1) if a channel has m > 1 elements. If f is not 1, it is mixed with the running variance
  in the same way as the mean.
reserve_space_1: The mean, for the gradient.
reserve_space_2: The variance without correction, for the gradient.
$2epsilon: Added to the variance to avoid a division by zero. Must not be negative.
exponential_avg_factor: The weight of the batch in `batch_mean` and `batch_variance`.
data_format: The order of the dimensions of `x`: $3.
is_training: If true, uses the statistics of the batch.)";

void RegisterV1(Registry& registry) {
  registry.Op("FusedBatchNorm")
      .Group("nn_ops")
      .Input("x: T")
      .Input("scale: T")
      .Input("offset: T")
      .Input("mean: T")
      .Input("variance: T")
      .Output("y: T")
      .Output("batch_mean: T")
      .Output("batch_variance: T")
      .Output("reserve_space_1: T")
      .Output("reserve_space_2: T")
      .Attr("T: {float}")
      .Attr("epsilon: float = 0.0001")
      .Attr("exponential_avg_factor: float = 1.0")
      .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
      .Attr("is_training: bool = true")
      .Shape(BatchNormShape)
      .Doc(absl::Substitute(kDoc, "FusedBatchNormV2 takes half and bfloat16 too.", "4",
                            "T: The type of everything.\n", "NHWC or NCHW"));
  registry.Kernel("FusedBatchNorm", MakeKernel<BatchNorm>).Type<float>("T");
}

void RegisterV2(Registry& registry) {
  registry.Op("FusedBatchNormV2")
      .Group("nn_ops")
      .Input("x: T")
      .Input("scale: U")
      .Input("offset: U")
      .Input("mean: U")
      .Input("variance: U")
      .Output("y: T")
      .Output("batch_mean: U")
      .Output("batch_variance: U")
      .Output("reserve_space_1: U")
      .Output("reserve_space_2: U")
      .Attr("T: {half, bfloat16, float}")
      .Attr("U: {float}")
      .Attr("epsilon: float = 0.0001")
      .Attr("exponential_avg_factor: float = 1.0")
      .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
      .Attr("is_training: bool = true")
      .Shape(BatchNormShape)
      .Doc(absl::Substitute(kDoc, "FusedBatchNormV3 takes images of three dimensions too.", "4",
                            kBatchNormTypesDoc, "NHWC or NCHW"));
  registry.Kernel("FusedBatchNormV2", MakeKernel<BatchNorm>)
      .Types("T", {DT_HALF, DT_BFLOAT16, DT_FLOAT})
      .Type<float>("U");
}

void RegisterV3(Registry& registry) {
  registry.Op("FusedBatchNormV3")
      .Group("nn_ops")
      .Input("x: T")
      .Input("scale: U")
      .Input("offset: U")
      .Input("mean: U")
      .Input("variance: U")
      .Output("y: T")
      .Output("batch_mean: U")
      .Output("batch_variance: U")
      .Output("reserve_space_1: U")
      .Output("reserve_space_2: U")
      .Output("reserve_space_3: U")
      .Attr("T: {half, bfloat16, float}")
      .Attr("U: {bfloat16, float}")
      .Attr("epsilon: float = 0.0001")
      .Attr("exponential_avg_factor: float = 1.0")
      .Attr("data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'")
      .Attr("is_training: bool = true")
      .Shape(BatchNormShape)
      .Doc(absl::Substitute(
          kDoc, "", "4, or 5 for the formats with D",
          absl::StrCat("reserve_space_3: A scalar 0, which nothing uses.\n", kBatchNormTypesDoc),
          "NHWC, NCHW, NDHWC or NCDHW"));
  registry.Kernel("FusedBatchNormV3", MakeKernel<BatchNorm>)
      .Types("T", {DT_HALF, DT_BFLOAT16, DT_FLOAT})
      .Types("U", {DT_BFLOAT16, DT_FLOAT});
}

}  // namespace

void Register(Registry& registry) {
  RegisterV1(registry);
  RegisterV2(registry);
  RegisterV3(registry);
}

}  // namespace gradflow::batch_norm
