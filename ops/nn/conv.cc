// Convolutions and their gradients: Conv, Conv2D, Conv3D, DepthwiseConv2dNative.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/blocked_layout.h"
#include "gradflow/core/fused_steps.h"
#include "gradflow/core/integer_kernels.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/common/strided_copy.h"
#include "gradflow/ops/linalg/product.h"
#include "gradflow/ops/nn/conv_engine.h"
#include "gradflow/ops/nn/conv_geometry.h"
#include "gradflow/ops/nn/integer_conv.h"
#include "gradflow/proto/node_def.pb.h"

namespace gradflow::conv {
namespace {

// The label of kernels that do not use oneDNN. Tests compare them with the kernels that do.
constexpr char kGemmLabel[] = "gemm";

// Returns INVALID_ARGUMENT if a size exceeds the int range of the BLAS.
absl::Status CheckSizes(const ConvGeometry& g) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  const int64_t patch = g.taps() * g.group_in_depth();
  if (g.in_depth <= kMax && g.out_depth <= kMax && patch <= kMax) return absl::OkStatus();
  return errors::InvalidArgument("input depth ", g.in_depth, ", output depth ", g.out_depth,
                                 " and patch size ", patch, ", expected each at most ", kMax);
}

// Copies between a tensor with the depth last and a tensor with the depth right after the batch.
void MoveDepth(KernelContext& ctx, int64_t batch, int64_t volume, int64_t depth, const Tensor& from,
               bool to_last, Tensor* to) {
  const StridedLoop::Operand last = {0, {volume * depth, depth, 1}};
  const StridedLoop::Operand first = {0, {volume * depth, 1, volume}};
  // The inner loop writes in memory order.
  if (to_last) {
    CopyStrided(ctx.run(), {batch, volume, depth}, from, first, to, last);
  } else {
    CopyStrided(ctx.run(), {batch, depth, volume}, from, {0, {volume * depth, 1, depth}}, to,
                {0, {volume * depth, volume, 1}});
  }
}

// Converts an input to the compute type. Moves the depth of an image or its gradient to the last
// dimension.
absl::Status Prepare(KernelContext& ctx, const ConvAttrs& attrs, const Tensor& from, int64_t batch,
                     int64_t volume, int64_t depth, bool is_filter, Tensor* to) {
  Tensor moved = from;
  if (!is_filter && !attrs.channels_last && volume != 1 && depth != 1) {
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(from.dtype(), from.shape(), &moved));
    MoveDepth(ctx, batch, volume, depth, from, /*to_last=*/true, &moved);
  }
  return ConvertElements(ctx, moved, ProductType(from.dtype()), to);
}

class ConvKernel : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    std::string label;
    const bool labeled = construction.GetAttr("_kernel", &label).ok();
    if (!labeled || label != kGemmLabel) fast_ = MakeFastConv(pass_);
    const bool has_filter = pass_ != ConvPass::kFilterGradient;
    if (has_filter && construction.constant() != nullptr) constant_ = *construction.constant();
    return attrs_.Read(construction);
  }

 protected:
  explicit ConvKernel(ConvPass pass) : pass_(pass) {}

  // Computes output 0 of shape `shape` from the inputs a and b. Applies `steps` unless it is null.
  // REQUIRES: with steps, the type is float, the depth is the last dimension, and no tensor is
  // empty
  absl::Status Run(KernelContext& ctx, const ConvGeometry& g, int a, int b,
                   const TensorShape& shape, const FusedSteps* steps = nullptr) const {
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    if (output->NumElements() == 0) return absl::OkStatus();
    if (ctx.input(a).NumElements() == 0 || ctx.input(b).NumElements() == 0) {
      SetZero(ctx.run(), output);
      return absl::OkStatus();
    }
    GRADFLOW_RETURN_IF_ERROR(CheckSizes(g));
    const bool in_is_a = pass_ != ConvPass::kInputGradient;
    Tensor x;
    Tensor y;
    GRADFLOW_RETURN_IF_ERROR(Prepare(ctx, attrs_, ctx.input(a), g.batch,
                                     in_is_a ? g.in_volume() : g.out_volume(),
                                     in_is_a ? g.in_depth : g.out_depth, false, &x));
    GRADFLOW_RETURN_IF_ERROR(Prepare(ctx, attrs_, ctx.input(b), g.batch, g.out_volume(),
                                     g.out_depth, pass_ != ConvPass::kFilterGradient, &y));
    const int64_t depth = pass_ == ConvPass::kForward ? g.out_depth : g.in_depth;
    const int64_t volume = pass_ == ConvPass::kForward ? g.out_volume() : g.in_volume();
    const bool move =
        pass_ != ConvPass::kFilterGradient && !attrs_.channels_last && depth != 1 && volume != 1;
    const bool convert = x.dtype() != output->dtype();
    Tensor result = *output;
    if (move || convert) {
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(x.dtype(), shape, &result));
    }
    GRADFLOW_RETURN_IF_ERROR(Convolve(ctx, g, {x, y, &result, IsConstant(y), steps}));
    if (convert) {
      Tensor rounded = *output;
      if (move) {
        GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(output->dtype(), shape, &rounded));
      }
      RoundElements(ctx, result, &rounded);
      result = rounded;
    }
    if (move) MoveDepth(ctx, g.batch, volume, depth, result, /*to_last=*/false, output);
    return absl::OkStatus();
  }

  const ConvAttrs& attrs() const { return attrs_; }
  const DataTypeVector& types() const { return types_; }
  // Returns true if the filter has the same elements in all runs that pass this buffer. A fed or
  // converted filter may differ between runs.
  bool IsConstant(const Tensor& filter) const {
    return filter.SharesBufferWith(constant_) && filter.raw_data() == constant_.raw_data();
  }
  bool uses_onednn() const { return fast_ != nullptr; }

 private:
  absl::Status Convolve(KernelContext& ctx, const ConvGeometry& g,
                        const ConvTensors& tensors) const {
    if (fast_ != nullptr && tensors.out->dtype() == DT_FLOAT) {
      bool done = false;
      GRADFLOW_RETURN_IF_ERROR(fast_->Run(ctx, g, tensors, &done));
      if (done) return absl::OkStatus();
    }
    GRADFLOW_RETURN_IF_ERROR(ConvByGemm(ctx, pass_, g, tensors));
    if (tensors.steps != nullptr) ApplyToAll(ctx.run(), *tensors.steps, tensors.out);
    return absl::OkStatus();
  }

  const ConvPass pass_;
  ConvAttrs attrs_;
  DataTypeVector types_;
  std::unique_ptr<FastConv> fast_;
  // The largest constant input, usually the filter. This reference prevents its reuse in place.
  Tensor constant_;
};

class Conv final : public ConvKernel,
                   public FusibleKernel,
                   public BlockableConv,
                   public IntegerProductKernel {
 public:
  Conv() : ConvKernel(ConvPass::kForward), blocked_(MakeBlockedConv()) {}
  bool CanBeFused() const override { return types()[0] == DT_FLOAT && attrs().channels_last; }

  absl::Status ComputeFused(KernelContext& ctx, FusedSteps* steps, bool* done) const override {
    *done = false;
    ConvGeometry geometry;
    TensorShape shape;
    if (!CheckInputTypes(ctx, types()).ok() ||
        !InferNonEmpty(ctx.input(0).shape(), ctx.input(1).shape(), &geometry, &shape) ||
        !steps->Prepare(shape)) {
      return absl::OkStatus();
    }
    *done = true;
    return Run(ctx, geometry, 0, 1, shape, steps);
  }

  absl::StatusOr<Channels> IntegerChannels(const TensorShape& weights) const override {
    return IntegerConvChannels(attrs(), weights);
  }
  absl::StatusOr<std::shared_ptr<const OpKernel>> MakeIntegerProduct(
      const IntegerProductArgs& args) const override {
    return MakeIntegerConv(attrs(), args);
  }

  int64_t BlockSize(const Tensor& filter, Depths* depths) const override {
    constexpr int kFilterRank = 4;
    if (!CanBeFused() || blocked_ == nullptr || !uses_onednn() || attrs().spatial_dims != 2 ||
        attrs().batch_dims != 1 || !IsConstant(filter) || filter.dtype() != DT_FLOAT ||
        filter.dims() != kFilterRank || filter.NumElements() == 0) {
      return 0;
    }
    const int64_t last = filter.dim_size(3);
    if (attrs().depthwise && last != 1) return 0;
    *depths = {filter.dim_size(2), attrs().depthwise ? filter.dim_size(2) : last};
    return OneDnnBlockSize();
  }

  absl::Status ComputeBlocked(KernelContext& ctx, const BlockedConvArgs& args,
                              bool* done) const override {
    *done = false;
    Depths depths;
    if (BlockSize(*args.filter, &depths) == 0) return absl::OkStatus();
    const auto image_shape = [&](const BlockedImage& image, int64_t depth) {
      const TensorShape& shape = image.tensor->shape();
      return image.blocked ? UnblockedShape(shape, depth) : shape;
    };
    const auto is_float = [](const Tensor& tensor) {
      return tensor.dtype() == DT_FLOAT && tensor.IsInitialized();
    };
    ConvGeometry geometry;
    TensorShape shape;
    if (!is_float(*args.input.tensor) ||
        !InferNonEmpty(image_shape(args.input, depths.in), args.filter->shape(), &geometry,
                       &shape) ||
        (geometry.groups != 1 && !attrs().depthwise)) {
      return absl::OkStatus();
    }
    if (args.addend.tensor != nullptr &&
        (!is_float(*args.addend.tensor) || image_shape(args.addend, depths.out) != shape)) {
      return absl::OkStatus();
    }
    return blocked_->Run(ctx, geometry, args, shape, done);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types()));
    ConvGeometry geometry;
    PartialTensorShape output;
    GRADFLOW_RETURN_IF_ERROR(
        InferConv(attrs(), ctx.input(0).shape(), ctx.input(1).shape(), &geometry, &output));
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(output.dim_sizes()));
    return Run(ctx, geometry, 0, 1, shape);
  }

 private:
  // Returns false if the shapes are not valid or a tensor is empty.
  bool InferNonEmpty(const TensorShape& input, const TensorShape& filter, ConvGeometry* geometry,
                     TensorShape* output) const {
    PartialTensorShape inferred;
    if (!InferConv(attrs(), input, filter, geometry, &inferred).ok()) return false;
    absl::StatusOr<TensorShape> shape = TensorShape::Make(inferred.dim_sizes());
    if (!shape.ok() || shape->num_elements() == 0 || input.num_elements() == 0 ||
        filter.num_elements() == 0 || !CheckSizes(*geometry).ok()) {
      return false;
    }
    *output = *std::move(shape);
    return true;
  }

  const std::unique_ptr<BlockedConv> blocked_;
};

// Returns the shape that the elements of input i state if `sizes` is true; otherwise input i's own
// shape.
template <typename F>
absl::StatusOr<TensorShape> ShapeOrSizes(const KernelContext& ctx, int i, bool sizes,
                                         absl::string_view name, const F& from_sizes) {
  if (!sizes) return ctx.input(i).shape();
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(i, name));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector dims, ctx.Ints(i, name));
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] >= 0) continue;
    return errors::InvalidArgument(name, "[", d, "] is ", dims[d], ", expected at least 0");
  }
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape, from_sizes(dims));
  return TensorShape::Make(shape.dim_sizes());
}

// The gradient of the input. Input 0 has the sizes or the shape of the convolution's input.
template <bool kSizes>
class ConvBackpropInput final : public ConvKernel {
 public:
  ConvBackpropInput() : ConvKernel(ConvPass::kInputGradient) {}
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types()));
    const TensorShape& filter = ctx.input(1).shape();
    const TensorShape& dy = ctx.input(2).shape();
    GRADFLOW_ASSIGN_OR_RETURN(
        const TensorShape shape,
        ShapeOrSizes(ctx, 0, kSizes, "input_sizes", [&](const DimVector& dims) {
          return InputShapeFromSizes(attrs(), dims, filter, dy);
        }));
    ConvGeometry geometry;
    GRADFLOW_RETURN_IF_ERROR(InferConvGradient(attrs(), shape, filter, dy, &geometry));
    return Run(ctx, geometry, 2, 1, shape);
  }
};

// The gradient of the filter. Input 1 has the sizes or the shape of the convolution's filter.
template <bool kSizes>
class ConvBackpropFilter final : public ConvKernel {
 public:
  ConvBackpropFilter() : ConvKernel(ConvPass::kFilterGradient) {}
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types()));
    const TensorShape& input = ctx.input(0).shape();
    GRADFLOW_ASSIGN_OR_RETURN(
        const TensorShape shape,
        ShapeOrSizes(ctx, 1, kSizes, "filter_sizes",
                     [&](const DimVector& dims) { return FilterShapeFromSizes(attrs(), dims); }));
    ConvGeometry geometry;
    GRADFLOW_RETURN_IF_ERROR(
        InferConvGradient(attrs(), input, shape, ctx.input(2).shape(), &geometry));
    return Run(ctx, geometry, 0, 2, shape);
  }
};

// ---- Definitions ----

// The parts of a definition that depend on the kind of image.
struct Family {
  // "rows, columns", or "planes, rows, columns".
  const char* sizes;
  const char* padding;
  const char* dilations;
  // The documentation of the attribute data_format. Null if the op does not have the attribute.
  const char* format;
};

constexpr char kWithExplicit[] = "padding: {'SAME', 'VALID', 'EXPLICIT'}";
constexpr char kWithoutExplicit[] = "padding: {'SAME', 'VALID'}";
constexpr char kImageFormat[] = "data_format: {'NHWC', 'NCHW'} = 'NHWC'";
constexpr char kVolumeFormat[] = "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'";
constexpr char kImageDilations[] = "dilations: list(int) = [1, 1, 1, 1]";
constexpr char kVolumeDilations[] = "dilations: list(int) = [1, 1, 1, 1, 1]";

constexpr char kImageAttrsDoc[] = R"(
strides: The distance between windows in each dimension of the input; 1 for the batch and the depth.
padding: `SAME` pads with zeros so that strides of 1 keep the size. If the number of zeros is odd,
  there is one more zero behind than before. `VALID` does not pad. `EXPLICIT` pads by
  `explicit_paddings`.
explicit_paddings: The numbers of zeros before and behind each dimension of the input, empty unless
  `padding` is `EXPLICIT`.
data_format: The order of dimensions: [batch, rows, columns, depth] for NHWC,
  [batch, depth, rows, columns] for NCHW.
dilations: The distance between the elements of a window in each dimension of the input; 1 for the
  batch and the depth.)";
constexpr char kVolumeAttrsDoc[] = R"(
strides: The distance between windows in each dimension of the input; 1 for the batch and the depth.
padding: `SAME` pads with zeros so that strides of 1 keep the size. If the number of zeros is odd,
  there is one more zero behind than before. `VALID` does not pad.
dilations: The distance between the elements of a window in each dimension of the input; 1 for the
  batch and the depth.)";
constexpr char kVolumeFormatDoc[] = R"(
data_format: The order of dimensions: [batch, planes, rows, columns, depth] for NDHWC,
  [batch, depth, planes, rows, columns] for NCDHW.)";
constexpr char kCudnnDoc[] = R"(
use_cudnn_on_gpu: Has no effect.)";
constexpr char kTypeDoc[] = R"(
T: The type of the inputs and outputs. Half and bfloat16 are computed in float.)";

// The documentation of gradients. `op` is the op that they belong to.
std::string InputGradientDoc(const char* op, const char* input, const std::string& attrs) {
  return absl::StrCat("Computes the gradient of ", op, R"( with respect to its input.

)",
                      input, "\nfilter: The filter of ", op, R"(.
out_backprop: The gradient with respect to the output.
output: The gradient with respect to the input.)",
                      kTypeDoc, attrs);
}
std::string FilterGradientDoc(const char* op, const char* filter, const std::string& attrs) {
  return absl::StrCat("Computes the gradient of ", op, R"( with respect to its filter.

input: The input of )",
                      op, ".\n", filter, R"(
out_backprop: The gradient with respect to the output.
output: The gradient with respect to the filter.)",
                      kTypeDoc, attrs);
}

constexpr char kInputSizes[] = "input_sizes: The shape of the input, a vector.";
constexpr char kFilterSizes[] = "filter_sizes: The shape of the filter, a vector.";

void RegisterConv2D(Registry& registry) {
  const std::string attrs = absl::StrCat(kCudnnDoc, kImageAttrsDoc);
  registry.Op("Conv2D")
      .Group("nn_ops")
      .Input("input: T")
      .Input("filter: T")
      .Output("output: T")
      .Attr("T: {half, bfloat16, float, double, int32}")
      .Attr("strides: list(int)")
      .Attr("use_cudnn_on_gpu: bool = true")
      .Attr(kWithExplicit)
      .Attr("explicit_paddings: list(int) = []")
      .Attr(kImageFormat)
      .Attr(kImageDilations)
      .Shape(ConvShape)
      .Doc(absl::StrCat(R"(Computes a convolution of images with a filter.

    output[b, i, j, k] = sum(input[b, i * stride + di * dilation - pad, ..., q] * filter[di, dj, q, k])

over all di, dj, q, for NHWC. If the input is g times as deep as the filter, both depths are divided
into g groups, and each group of the output is computed from the same group of the input. Integers
wrap around.

input: Images.
filter: A tensor [rows, columns, depth, output depth].
output: The result, whose depth is the output depth of the filter.)",
                        kTypeDoc, attrs));
  for (const bool v2 : {false, true}) {
    auto&& op = registry.Op(v2 ? "Conv2DBackpropInputV2" : "Conv2DBackpropInput");
    op.Group("nn_ops")
        .Input(v2 ? "input: T" : "input_sizes: int32")
        .Input("filter: T")
        .Input("out_backprop: T")
        .Output("output: T")
        .Attr("T: {half, bfloat16, float, double, int32}")
        .Attr("strides: list(int)")
        .Attr("use_cudnn_on_gpu: bool = true")
        .Attr(kWithExplicit)
        .Attr("explicit_paddings: list(int) = []")
        .Attr(kImageFormat)
        .Attr(kImageDilations)
        .Shape(ConvBackpropInputShape)
        .Doc(InputGradientDoc(
            "Conv2D",
            v2 ? "input: A tensor of the shape of the input. Its elements are not read."
               : "input_sizes: The shape of the input, a vector, or only its rows and columns; the "
                 "filter then\n  gives the depth.",
            attrs));
  }
  for (const bool v2 : {false, true}) {
    auto&& op = registry.Op(v2 ? "Conv2DBackpropFilterV2" : "Conv2DBackpropFilter");
    op.Group("nn_ops")
        .Input("input: T")
        .Input(v2 ? "filter: T" : "filter_sizes: int32")
        .Input("out_backprop: T")
        .Output("output: T")
        .Attr("T: {half, bfloat16, float, double}")
        .Attr("strides: list(int)")
        .Attr("use_cudnn_on_gpu: bool = true")
        .Attr(kWithExplicit)
        .Attr("explicit_paddings: list(int) = []")
        .Attr(kImageFormat)
        .Attr(kImageDilations)
        .Shape(ConvBackpropFilterShape)
        .Doc(FilterGradientDoc(
            "Conv2D",
            v2 ? "filter: A tensor of the shape of the filter. Its elements are not read."
               : kFilterSizes,
            attrs));
  }
}

void RegisterDepthwise(Registry& registry) {
  registry.Op("DepthwiseConv2dNative")
      .Group("nn_ops")
      .Input("input: T")
      .Input("filter: T")
      .Output("output: T")
      .Attr("T: {half, bfloat16, float, double}")
      .Attr("strides: list(int)")
      .Attr(kWithExplicit)
      .Attr("explicit_paddings: list(int) = []")
      .Attr(kImageFormat)
      .Attr(kImageDilations)
      .Shape(ConvShape)
      .Doc(absl::StrCat(R"(Computes a convolution of each channel of images with separate filters.

Channel k * multiplier + m of the output is the convolution of channel k with filter m of the channel:

    output[b, i, j, k * multiplier + m] =
        sum(input[b, i * stride + di * dilation - pad, ..., k] * filter[di, dj, k, m])

over all di, dj, for NHWC.

input: Images.
filter: A tensor [rows, columns, depth, multiplier].
output: The result, of depth depth * multiplier.)",
                        kTypeDoc, kImageAttrsDoc));
  registry.Op("DepthwiseConv2dNativeBackpropInput")
      .Group("nn_ops")
      .Input("input_sizes: int32")
      .Input("filter: T")
      .Input("out_backprop: T")
      .Output("output: T")
      .Attr("T: {half, bfloat16, float, double}")
      .Attr("strides: list(int)")
      .Attr(kWithExplicit)
      .Attr("explicit_paddings: list(int) = []")
      .Attr(kImageFormat)
      .Attr(kImageDilations)
      .Shape(ConvBackpropInputShape)
      .Doc(InputGradientDoc("DepthwiseConv2dNative", kInputSizes, kImageAttrsDoc));
  registry.Op("DepthwiseConv2dNativeBackpropFilter")
      .Group("nn_ops")
      .Input("input: T")
      .Input("filter_sizes: int32")
      .Input("out_backprop: T")
      .Output("output: T")
      .Attr("T: {half, bfloat16, float, double}")
      .Attr("strides: list(int)")
      .Attr(kWithExplicit)
      .Attr("explicit_paddings: list(int) = []")
      .Attr(kImageFormat)
      .Attr(kImageDilations)
      .Shape(ConvBackpropFilterShape)
      .Doc(FilterGradientDoc("DepthwiseConv2dNative", kFilterSizes, kImageAttrsDoc));
}

void RegisterConv3D(Registry& registry) {
  const std::string attrs = absl::StrCat(kVolumeAttrsDoc, kVolumeFormatDoc);
  registry.Op("Conv3D")
      .Group("nn_ops")
      .Input("input: T")
      .Input("filter: T")
      .Output("output: T")
      .Attr("T: {half, bfloat16, float, double}")
      .Attr("strides: list(int) >= 5")
      .Attr(kWithoutExplicit)
      .Attr(kVolumeFormat)
      .Attr(kVolumeDilations)
      .Shape(ConvShape)
      .Doc(absl::StrCat(R"(Computes a convolution of volumes with a filter, like Conv2D for images.

input: Volumes.
filter: A tensor [planes, rows, columns, depth, output depth].
output: The result, whose depth is the output depth of the filter.)",
                        kTypeDoc, attrs));
  registry.Op("Conv3DBackpropInput")
      .Group("nn_ops")
      .Input("input: T")
      .Input("filter: T")
      .Input("out_backprop: T")
      .Output("output: T")
      .Attr("T: {half, float, double}")
      .Attr("strides: list(int) >= 5")
      .Attr(kWithoutExplicit)
      .Attr(kVolumeDilations)
      .Shape(ConvBackpropInputShape)
      .Doc(InputGradientDoc("Conv3D",
                            "input: A tensor of the shape of the input. Its elements are not read.",
                            kVolumeAttrsDoc));
  registry.Op("Conv3DBackpropFilter")
      .Group("nn_ops")
      .Input("input: T")
      .Input("filter: T")
      .Input("out_backprop: T")
      .Output("output: T")
      .Attr("T: {half, float, double}")
      .Attr("strides: list(int) >= 5")
      .Attr(kWithoutExplicit)
      .Attr(kVolumeDilations)
      .Shape(ConvBackpropFilterShape)
      .Doc(FilterGradientDoc(
          "Conv3D", "filter: A tensor of the shape of the filter. Its elements are not read.",
          kVolumeAttrsDoc));
  registry.Op("Conv3DBackpropInputV2")
      .Group("nn_ops")
      .Input("input_sizes: Tshape")
      .Input("filter: T")
      .Input("out_backprop: T")
      .Output("output: T")
      .Attr("T: {half, bfloat16, float, double}")
      .Attr("strides: list(int) >= 5")
      .Attr(kWithoutExplicit)
      .Attr(kVolumeFormat)
      .Attr(kVolumeDilations)
      .Attr("Tshape: {int32, int64} = DT_INT32")
      .Shape(ConvBackpropInputShape)
      .Doc(InputGradientDoc("Conv3D", kInputSizes,
                            absl::StrCat(attrs, "\nTshape: The type of `input_sizes`.")));
  registry.Op("Conv3DBackpropFilterV2")
      .Group("nn_ops")
      .Input("input: T")
      .Input("filter_sizes: int32")
      .Input("out_backprop: T")
      .Output("output: T")
      .Attr("T: {half, bfloat16, float, double}")
      .Attr("strides: list(int) >= 5")
      .Attr(kWithoutExplicit)
      .Attr(kVolumeFormat)
      .Attr(kVolumeDilations)
      .Shape(ConvBackpropFilterShape)
      .Doc(FilterGradientDoc("Conv3D", kFilterSizes, attrs));
}

void RegisterGeneralConv(Registry& registry) {
  registry.Op("Conv")
      .Group("nn_ops")
      .Input("input: T")
      .Input("filter: T")
      .Output("output: T")
      .Attr("T: {half, bfloat16, float, double, int32}")
      .Attr("strides: list(int)")
      .Attr(kWithExplicit)
      .Attr("explicit_paddings: list(int) = []")
      .Attr("data_format: {'CHANNELS_FIRST', 'CHANNELS_LAST'} = 'CHANNELS_LAST'")
      .Attr("dilations: list(int) = []")
      .Attr("batch_dims: int = 1")
      .Attr("groups: int = 1")
      .Shape(ConvShape)
      .Doc(R"(Computes a convolution of images or volumes with a filter, like Conv2D and Conv3D.

The inputs are images if there are 4 strides, and volumes if there are 5 strides.

input: Images or volumes, with any number of batch dimensions before the other dimensions.
filter: A tensor [rows, columns, depth, output depth], or with planes before the rows.
output: The result, whose depth is the output depth of the filter.
T: The type of the inputs and outputs. Half and bfloat16 are computed in float.
strides: The distance between windows in the batch, the spatial dimensions and the depth, in the
  order of `data_format`; 1 for the batch and the depth.
padding: `SAME` pads with zeros so that strides of 1 keep the size. If the number of zeros is odd,
  there is one more zero behind than before. `VALID` does not pad. `EXPLICIT` pads images by
  `explicit_paddings`.
explicit_paddings: The numbers of zeros before and behind the batch, the spatial dimensions and the
  depth, empty unless `padding` is `EXPLICIT`.
data_format: The position of the depth: last, or first after the batch dimensions.
dilations: The distance between the elements of a window, in the order of `strides`; all 1 if empty.
batch_dims: The number of batch dimensions.
groups: The number of groups that both depths are divided into.)");
}

template <typename Kernel>
void RegisterKernels(Registry& registry, absl::string_view op, const DataTypeVector& types) {
  registry.Kernel(op, MakeKernel<Kernel>).Types("T", types);
  registry.Kernel(op, MakeKernel<Kernel>).Types("T", types).Label(kGemmLabel);
}

}  // namespace

void Register(Registry& registry) {
  RegisterGeneralConv(registry);
  RegisterConv2D(registry);
  RegisterConv3D(registry);
  RegisterDepthwise(registry);
  const DataTypeVector with_integers = {DT_HALF, DT_BFLOAT16, DT_FLOAT, DT_DOUBLE, DT_INT32};
  const DataTypeVector floating = {DT_HALF, DT_BFLOAT16, DT_FLOAT, DT_DOUBLE};
  const DataTypeVector first_version = {DT_HALF, DT_FLOAT, DT_DOUBLE};
  RegisterKernels<Conv>(registry, "Conv", with_integers);
  RegisterKernels<Conv>(registry, "Conv2D", with_integers);
  RegisterKernels<Conv>(registry, "Conv3D", floating);
  RegisterKernels<Conv>(registry, "DepthwiseConv2dNative", floating);
  RegisterKernels<ConvBackpropInput<true>>(registry, "Conv2DBackpropInput", with_integers);
  RegisterKernels<ConvBackpropInput<false>>(registry, "Conv2DBackpropInputV2", with_integers);
  RegisterKernels<ConvBackpropInput<false>>(registry, "Conv3DBackpropInput", first_version);
  RegisterKernels<ConvBackpropInput<true>>(registry, "Conv3DBackpropInputV2", floating);
  RegisterKernels<ConvBackpropInput<true>>(registry, "DepthwiseConv2dNativeBackpropInput",
                                           floating);
  RegisterKernels<ConvBackpropFilter<true>>(registry, "Conv2DBackpropFilter", floating);
  RegisterKernels<ConvBackpropFilter<false>>(registry, "Conv2DBackpropFilterV2", floating);
  RegisterKernels<ConvBackpropFilter<false>>(registry, "Conv3DBackpropFilter", first_version);
  RegisterKernels<ConvBackpropFilter<true>>(registry, "Conv3DBackpropFilterV2", floating);
  RegisterKernels<ConvBackpropFilter<true>>(registry, "DepthwiseConv2dNativeBackpropFilter",
                                            floating);
}

}  // namespace gradflow::conv
