// Gradients of the ops of ops/nn.
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "gradflow/core/attributes.h"
#include "gradflow/gradients/gradient_helpers.h"
#include "gradflow/gradients/gradient_registry.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/ops/standard_ops.h"

namespace gradflow {
namespace gradients {
namespace {

// ---- Activations ----

// The gradient op takes the output of the activation.
template <typename Gradient>
absl::Status GradientByOutput(const Scope& scope, const Operation& op,
                              const std::vector<Output>& dy, std::vector<Output>* dx) {
  dx->push_back(Gradient(scope, dy[0], op.output(0)));
  return scope.status();
}
// The gradient op takes the input of the activation.
template <typename Gradient>
absl::Status GradientByInput(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                             std::vector<Output>* dx) {
  dx->push_back(Gradient(scope, dy[0], op.input(0)));
  return scope.status();
}
absl::Status GradientOfLeakyRelu(const Scope& scope, const Operation& op,
                                 const std::vector<Output>& dy, std::vector<Output>* dx) {
  float alpha = 0;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "alpha", &alpha));
  const auto attrs = ops::LeakyReluGrad::Alpha(alpha);
  dx->push_back(ops::LeakyReluGrad(scope, dy[0], op.input(0), attrs));
  return scope.status();
}

// The gradient ops are linear in their first input, the gradients. The slope of a ReLU is constant
// almost everywhere, so the second input has no gradient.
template <typename Gradient>
absl::Status ReluGradGradient(const Scope& scope, const Operation& op,
                              const std::vector<Output>& dy, std::vector<Output>* dx) {
  *dx = {Gradient(scope, dy[0], op.input(1)), NoGradient()};
  return scope.status();
}
absl::Status GradientOfLeakyReluGrad(const Scope& scope, const Operation& op,
                                     const std::vector<Output>& dy, std::vector<Output>* dx) {
  float alpha = 0;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "alpha", &alpha));
  const auto attrs = ops::LeakyReluGrad::Alpha(alpha);
  *dx = {ops::LeakyReluGrad(scope, dy[0], op.input(1), attrs), NoGradient()};
  return scope.status();
}
// The slope of Elu and Selu is a constant plus the output y where y < 0, otherwise a constant.
template <typename Gradient>
absl::Status GradientOfEluGrad(const Scope& scope, const Operation& op,
                               const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output y = op.input(1);
  const Output is_negative = ops::Less(scope, y, Scalar(scope, y.type(), 0));
  const Output product = ops::Mul(scope, dy[0], op.input(0));
  *dx = {Gradient(scope, dy[0], y),
         ops::SelectV2(scope, is_negative, product, ops::ZerosLike(scope, y))};
  return scope.status();
}
// SoftplusGrad(g, x) = g s, where s = sigmoid(x) has the derivative s (1 - s).
absl::Status GradientOfSoftplusGrad(const Scope& scope, const Operation& op,
                                    const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output x = op.input(1);
  const Output product = ops::Mul(scope, dy[0], op.input(0));
  *dx = {ops::SoftplusGrad(scope, dy[0], x),
         ops::SigmoidGrad(scope, ops::Sigmoid(scope, x), product)};
  return scope.status();
}
// SoftsignGrad(g, x) = g (1 + |x|)^-2.
absl::Status GradientOfSoftsignGrad(const Scope& scope, const Operation& op,
                                    const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output x = op.input(1);
  const Output slope = ops::Mul(scope, Scalar(scope, x.type(), -2), ops::Sign(scope, x));
  const Output d = ops::Add(scope, Scalar(scope, x.type(), 1), ops::Abs(scope, x));
  const Output product = ops::Mul(scope, dy[0], op.input(0));
  *dx = {ops::SoftsignGrad(scope, dy[0], x),
         ops::Div(scope, ops::Mul(scope, slope, ops::SoftsignGrad(scope, product, x)), d)};
  return scope.status();
}

// ---- Biases ----

absl::Status GradientOfBiasAdd(const Scope& scope, const Operation& op,
                               const std::vector<Output>& dy, std::vector<Output>* dx) {
  std::string data_format;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "data_format", &data_format));
  const auto attrs = ops::BiasAddGrad::DataFormat(data_format);
  *dx = {dy[0], ops::BiasAddGrad(scope, dy[0], attrs)};
  return scope.status();
}
absl::Status GradientOfBiasAddV1(const Scope& scope, const Operation&,
                                 const std::vector<Output>& dy, std::vector<Output>* dx) {
  *dx = {dy[0], ops::BiasAddGrad(scope, dy[0])};
  return scope.status();
}
// The gradient of each element is the gradient of its channel.
absl::Status GradientOfBiasAddGrad(const Scope& scope, const Operation& op,
                                   const std::vector<Output>& dy, std::vector<Output>* dx) {
  std::string data_format;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "data_format", &data_format));
  const auto attrs = ops::BiasAdd::DataFormat(data_format);
  dx->push_back(ops::BiasAdd(scope, ops::ZerosLike(scope, op.input(0)), dy[0], attrs));
  return scope.status();
}

// ---- Softmax and losses ----

// y = softmax(x): dx = (dy - sum(dy y)) y, with sums over the last dimension.
Output TimesSoftmaxJacobian(const Scope& scope, const Output& y, const Output& dy) {
  const Output sum = ops::Sum(scope, ops::Mul(scope, dy, y), -1, ops::Sum::KeepDims(true));
  return ops::Mul(scope, ops::Sub(scope, dy, sum), y);
}
absl::Status GradientOfSoftmax(const Scope& scope, const Operation& op,
                               const std::vector<Output>& dy, std::vector<Output>* dx) {
  dx->push_back(TimesSoftmaxJacobian(scope, op.output(0), dy[0]));
  return scope.status();
}
absl::Status GradientOfLogSoftmax(const Scope& scope, const Operation& op,
                                  const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output sum = ops::Sum(scope, dy[0], -1, ops::Sum::KeepDims(true));
  const Output softmax = ops::Exp(scope, op.output(0));
  dx->push_back(ops::Sub(scope, dy[0], ops::Mul(scope, sum, softmax)));
  return scope.status();
}
// The sum of the gradients that are present.
Output AddPresent(const Scope& scope, const Output& a, const Output& b) {
  if (IsNoGradient(a)) return b;
  if (IsNoGradient(b)) return a;
  return ops::Add(scope, a, b);
}
// The gradient of the logits. Output 0 is the loss of each row. Output 1, `backprop`, is the
// gradient of the loss with respect to the logits: softmax minus the labels.
Output GradientOfLogits(const Scope& scope, const Operation& op, const Output& softmax,
                        const std::vector<Output>& dy) {
  Output by_loss = NoGradient();
  Output by_backprop = NoGradient();
  if (!IsNoGradient(dy[0])) {
    by_loss = ops::Mul(scope, ops::ExpandDims(scope, dy[0], 1), op.output(1));
  }
  if (!IsNoGradient(dy[1])) by_backprop = TimesSoftmaxJacobian(scope, softmax, dy[1]);
  return AddPresent(scope, by_loss, by_backprop);
}
// `backprop` assumes that each row of labels sums to 1, as in TensorFlow.
absl::Status GradientOfCrossEntropy(const Scope& scope, const Operation& op,
                                    const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output features = op.input(0);
  const Output logits = ops::BroadcastTo(scope, features, ops::Shape(scope, op.output(1)));
  const Output d_logits = GradientOfLogits(scope, op, ops::Softmax(scope, logits), dy);
  Output by_loss = NoGradient();
  Output by_backprop = NoGradient();
  if (!IsNoGradient(dy[0])) {
    by_loss = ops::Mul(scope, ops::ExpandDims(scope, ops::Neg(scope, dy[0]), 1),
                       ops::LogSoftmax(scope, logits));
  }
  if (!IsNoGradient(dy[1])) by_backprop = ops::Neg(scope, dy[1]);
  const Output d_labels = AddPresent(scope, by_loss, by_backprop);
  return Broadcast(scope, op, d_logits, d_labels, dx);
}
absl::Status GradientOfSparseCrossEntropy(const Scope& scope, const Operation& op,
                                          const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output softmax = ops::Softmax(scope, op.input(0));
  *dx = {GradientOfLogits(scope, op, softmax, dy), NoGradient()};
  return scope.status();
}
// Output 1 is the gradient of the sum of the losses. Differentiating it is an error.
absl::Status GradientOfCtcLoss(const Scope& scope, const Operation& op,
                               const std::vector<Output>& dy, std::vector<Output>* dx) {
  if (!IsNoGradient(dy[1])) {
    return errors::Unimplemented("the second derivative of the loss is not supported");
  }
  *dx = {ops::Mul(scope, ops::ExpandDims(scope, dy[0], -1), op.output(1)), NoGradient(),
         NoGradient(), NoGradient()};
  return scope.status();
}
absl::Status GradientOfL2Loss(const Scope& scope, const Operation& op,
                              const std::vector<Output>& dy, std::vector<Output>* dx) {
  dx->push_back(ops::Mul(scope, op.input(0), dy[0]));
  return scope.status();
}

absl::Status GradientOfLrn(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                           std::vector<Output>* dx) {
  int64_t depth_radius = 0;
  float bias = 0;
  float alpha = 0;
  float beta = 0;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "depth_radius", &depth_radius));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "bias", &bias));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "alpha", &alpha));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "beta", &beta));
  const auto attrs = ops::LRNGrad::DepthRadius(depth_radius).Bias(bias).Alpha(alpha).Beta(beta);
  dx->push_back(ops::LRNGrad(scope, dy[0], op.input(0), op.output(0), attrs));
  return scope.status();
}

// ---- Convolutions ----

// A convolution and its two gradients. Each of the three is linear in its two tensors, and the
// other two compute its gradients.
struct ConvOps {
  const char* forward;
  const char* input_gradient;
  const char* filter_gradient;
};
constexpr ConvOps kConv2D = {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"};
constexpr ConvOps kConv3D = {"Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"};
constexpr ConvOps kDepthwise = {"DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput",
                                "DepthwiseConv2dNativeBackpropFilter"};

struct ConvAttrs {
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::string padding;
  std::vector<int64_t> explicit_paddings;
  std::string data_format;
};

// Reads an attribute that only some convolutions have.
template <typename T>
absl::Status GetAttrIfAny(const Operation& op, absl::string_view name, T* value) {
  absl::Status status = GetAttr(op, name, value);
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::Status ReadConvAttrs(const Operation& op, ConvAttrs* attrs) {
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "strides", &attrs->strides));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "dilations", &attrs->dilations));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "padding", &attrs->padding));
  GRADFLOW_RETURN_IF_ERROR(GetAttrIfAny(op, "explicit_paddings", &attrs->explicit_paddings));
  return GetAttrIfAny(op, "data_format", &attrs->data_format);
}

Output Convolve(const Scope& scope, const char* name, const ConvAttrs& attrs,
                const std::vector<Output>& inputs) {
  OpBuilder builder(scope, name);
  for (const Output& input : inputs) builder.Input(input);
  builder.Attr("strides", attrs.strides).Attr("dilations", attrs.dilations);
  builder.Attr("padding", attrs.padding);
  if (!attrs.explicit_paddings.empty()) builder.Attr("explicit_paddings", attrs.explicit_paddings);
  if (!attrs.data_format.empty()) builder.Attr("data_format", attrs.data_format);
  const Operation op = builder.Finish();
  return scope.ok() ? op.output(0) : Output();
}

template <const ConvOps& kOps>
absl::Status GradientOfConv(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                            std::vector<Output>* dx) {
  ConvAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(ReadConvAttrs(op, &attrs));
  const Output x = op.input(0);
  const Output filter = op.input(1);
  *dx = {Convolve(scope, kOps.input_gradient, attrs, {ops::Shape(scope, x), filter, dy[0]}),
         Convolve(scope, kOps.filter_gradient, attrs, {x, ops::Shape(scope, filter), dy[0]})};
  return scope.status();
}
// Input 0 gives the shape of the result and has no gradient. The op is linear in the filter (input
// 1) and in input 2.
template <const ConvOps& kOps>
absl::Status GradientOfConvBackpropInput(const Scope& scope, const Operation& op,
                                         const std::vector<Output>& dy, std::vector<Output>* dx) {
  ConvAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(ReadConvAttrs(op, &attrs));
  const Output filter = op.input(1);
  const Output shape = ops::Shape(scope, filter);
  *dx = {NoGradient(), Convolve(scope, kOps.filter_gradient, attrs, {dy[0], shape, op.input(2)}),
         Convolve(scope, kOps.forward, attrs, {dy[0], filter})};
  return scope.status();
}
// Input 1 gives the shape of the result and has no gradient. The op is linear in inputs 0 and 2.
template <const ConvOps& kOps>
absl::Status GradientOfConvBackpropFilter(const Scope& scope, const Operation& op,
                                          const std::vector<Output>& dy, std::vector<Output>* dx) {
  ConvAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(ReadConvAttrs(op, &attrs));
  const Output x = op.input(0);
  const Output shape = ops::Shape(scope, x);
  *dx = {Convolve(scope, kOps.input_gradient, attrs, {shape, dy[0], op.input(2)}), NoGradient(),
         Convolve(scope, kOps.forward, attrs, {x, dy[0]})};
  return scope.status();
}

// Uses the gradients of Conv2D or Conv3D with a single batch dimension.
absl::Status GradientOfGeneralConv(const Scope& scope, const Operation& op,
                                   const std::vector<Output>& dy, std::vector<Output>* dx) {
  ConvAttrs attrs;
  int64_t batch_dims = 0;
  GRADFLOW_RETURN_IF_ERROR(ReadConvAttrs(op, &attrs));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "batch_dims", &batch_dims));
  const bool volumes = attrs.strides.size() == 5;
  const bool last = attrs.data_format == "CHANNELS_LAST";
  attrs.data_format = volumes ? (last ? "NDHWC" : "NCDHW") : (last ? "NHWC" : "NCHW");
  if (attrs.dilations.empty()) attrs.dilations.assign(attrs.strides.size(), 1);
  // Conv3D has no explicit_paddings.
  if (volumes) attrs.explicit_paddings.clear();
  const auto with_one_batch_dim = [&](const Output& x) -> Output {
    if (batch_dims == 1) return x;
    const Output shape = ops::Shape(scope, x);
    const Output dims = Vector(scope, {static_cast<int32_t>(batch_dims)});
    const Output batch = ops::Prod(scope, ops::Slice(scope, shape, Vector(scope, {0}), dims), 0,
                                   ops::Prod::KeepDims(true));
    const Output rest = ops::Slice(scope, shape, dims, Vector(scope, {-1}));
    return ops::Reshape(scope, x, ops::Concat(scope, {batch, rest}, 0));
  };
  const Output x = with_one_batch_dim(op.input(0));
  const Output gradient = with_one_batch_dim(dy[0]);
  const Output filter = op.input(1);
  const ConvOps& names = volumes ? kConv3D : kConv2D;
  const Output x_gradient =
      Convolve(scope, names.input_gradient, attrs, {ops::Shape(scope, x), filter, gradient});
  *dx = {ops::Reshape(scope, x_gradient, ops::Shape(scope, op.input(0))),
         Convolve(scope, names.filter_gradient, attrs, {x, ops::Shape(scope, filter), gradient})};
  return scope.status();
}

struct DilationGradientAttrs {
  std::vector<int> strides;
  std::vector<int> rates;
  std::string padding;
};
absl::Status ReadDilation(const Operation& op, DilationGradientAttrs* attrs) {
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "strides", &attrs->strides));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "rates", &attrs->rates));
  return GetAttr(op, "padding", &attrs->padding);
}
absl::Status GradientOfDilation2D(const Scope& scope, const Operation& op,
                                  const std::vector<Output>& dy, std::vector<Output>* dx) {
  DilationGradientAttrs a;
  GRADFLOW_RETURN_IF_ERROR(ReadDilation(op, &a));
  const Output x = op.input(0);
  const Output filter = op.input(1);
  *dx = {ops::Dilation2DBackpropInput(scope, x, filter, dy[0], a.strides, a.rates, a.padding),
         ops::Dilation2DBackpropFilter(scope, x, filter, dy[0], a.strides, a.rates, a.padding)};
  return scope.status();
}
// The gradients of Dilation2D move each element of out_backprop to the first maximum of its window.
// The position of the maximum is constant almost everywhere. The adjoint reads the element of `dy`
// at that position. `dy` is an image, or a filter if kOfFilter.
template <bool kOfFilter>
absl::Status GradientOfDilation2DBackprop(const Scope& scope, const Operation& op,
                                          const std::vector<Output>& dy, std::vector<Output>* dx) {
  DilationGradientAttrs a;
  GRADFLOW_RETURN_IF_ERROR(ReadDilation(op, &a));
  const Output x = op.input(0);
  const Output filter = op.input(1);
  const PartialTensorShape& size = filter.node()->output_shape(filter.index());
  if (size.unknown_rank() || size.dim_size(0) < 0 || size.dim_size(1) < 0) {
    return errors::Unimplemented(
        "the gradient needs a filter with a known number of rows and columns");
  }
  const std::vector<int> window = {1, static_cast<int>(size.dim_size(0)),
                                   static_cast<int>(size.dim_size(1)), 1};
  // Patches have the shape [batch, rows, columns, elements of the window, channels].
  const Output shape = ops::Shape(scope, op.input(2));
  const Output front = ops::Slice(scope, shape, Vector(scope, {0}), Vector(scope, {3}));
  const Output channels = ops::Slice(scope, shape, Vector(scope, {3}), Vector(scope, {1}));
  const Output elements = Vector(scope, {window[1] * window[2]});
  const auto patches = [&](const Output& image) -> Output {
    return ops::Reshape(
        scope, ops::ExtractImagePatches(scope, image, window, a.strides, a.rates, a.padding),
        ops::ConcatV2(scope, {front, elements, channels}, 0));
  };
  const auto flat = [&](const Output& f) -> Output {
    return ops::Reshape(scope, f, ops::ConcatV2(scope, {elements, channels}, 0));
  };
  const Output zero = Scalar(scope, x.type(), 0);
  const Output is_padding = ops::Equal(scope, patches(ops::OnesLike(scope, x)), zero);
  const Output minus_infinity = ops::Log(scope, zero);
  const Output sums =
      ops::SelectV2(scope, is_padding, minus_infinity, ops::Add(scope, patches(x), flat(filter)));
  const Output largest = ops::ArgMax(scope, sums, 3);
  const Output is_largest =
      ops::OneHot(scope, largest, ops::Reshape(scope, elements, Vector(scope, {})), true, false,
                  ops::OneHot::Axis(3));
  const Output of_elements = kOfFilter ? flat(dy[0]) : patches(dy[0]);
  *dx = {NoGradient(), NoGradient(),
         ops::Sum(scope, ops::SelectV2(scope, is_largest, of_elements, zero), 3)};
  return scope.status();
}

// ---- Pooling ----

struct PoolingAttrs {
  std::vector<int> ksize;
  std::vector<int> strides;
  std::string padding;
  std::string data_format = "NHWC";
  std::vector<int> explicit_paddings;
};

// Reads the pooling attributes that the op has.
absl::Status ReadPooling(const Operation& op, PoolingAttrs* attrs) {
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "padding", &attrs->padding));
  const auto read = [&](absl::string_view name, auto* value) {
    return FindNodeAttr(op.node()->def(), name) == nullptr ? absl::OkStatus()
                                                           : GetAttr(op, name, value);
  };
  GRADFLOW_RETURN_IF_ERROR(read("ksize", &attrs->ksize));
  GRADFLOW_RETURN_IF_ERROR(read("strides", &attrs->strides));
  GRADFLOW_RETURN_IF_ERROR(read("data_format", &attrs->data_format));
  return read("explicit_paddings", &attrs->explicit_paddings);
}

// The gradient op takes the shape of the input.
template <typename Gradient>
absl::Status GradientOfAvgPool(const Scope& scope, const Operation& op,
                               const std::vector<Output>& dy, std::vector<Output>* dx) {
  PoolingAttrs a;
  GRADFLOW_RETURN_IF_ERROR(ReadPooling(op, &a));
  const auto attrs = typename Gradient::Attrs().DataFormat(a.data_format);
  dx->push_back(
      Gradient(scope, ops::Shape(scope, op.input(0)), dy[0], a.ksize, a.strides, a.padding, attrs));
  return scope.status();
}
// The gradient op is linear in the gradients. Its adjoint is the average.
template <typename Average>
absl::Status GradientOfAvgPoolGrad(const Scope& scope, const Operation& op,
                                   const std::vector<Output>& dy, std::vector<Output>* dx) {
  PoolingAttrs a;
  GRADFLOW_RETURN_IF_ERROR(ReadPooling(op, &a));
  const auto attrs = typename Average::Attrs().DataFormat(a.data_format);
  *dx = {NoGradient(), Average(scope, dy[0], a.ksize, a.strides, a.padding, attrs)};
  return scope.status();
}

absl::Status GradientOfMaxPool(const Scope& scope, const Operation& op,
                               const std::vector<Output>& dy, std::vector<Output>* dx) {
  PoolingAttrs a;
  GRADFLOW_RETURN_IF_ERROR(ReadPooling(op, &a));
  const auto attrs =
      ops::MaxPoolGrad::DataFormat(a.data_format).ExplicitPaddings(a.explicit_paddings);
  dx->push_back(ops::MaxPoolGrad(scope, op.input(0), op.output(0), dy[0], a.ksize, a.strides,
                                 a.padding, attrs));
  return scope.status();
}
absl::Status GradientOfMaxPoolV2(const Scope& scope, const Operation& op,
                                 const std::vector<Output>& dy, std::vector<Output>* dx) {
  PoolingAttrs a;
  GRADFLOW_RETURN_IF_ERROR(ReadPooling(op, &a));
  dx->push_back(ops::MaxPoolGradV2(scope, op.input(0), op.output(0), dy[0], op.input(1),
                                   op.input(2), a.padding,
                                   ops::MaxPoolGradV2::DataFormat(a.data_format)));
  return NoGradientForTheRest(scope, op, dx);
}
absl::Status GradientOfMaxPool3D(const Scope& scope, const Operation& op,
                                 const std::vector<Output>& dy, std::vector<Output>* dx) {
  PoolingAttrs a;
  GRADFLOW_RETURN_IF_ERROR(ReadPooling(op, &a));
  dx->push_back(ops::MaxPool3DGrad(scope, op.input(0), op.output(0), dy[0], a.ksize, a.strides,
                                   a.padding, ops::MaxPool3DGrad::DataFormat(a.data_format)));
  return scope.status();
}
// The positions of maxima are constant almost everywhere. The gradient op and its gradient are
// therefore linear in input 2, and each is the adjoint of the other.
template <typename Adjoint>
absl::Status GradientOfMaxPoolGrad(const Scope& scope, const Operation& op,
                                   const std::vector<Output>& dy, std::vector<Output>* dx) {
  PoolingAttrs a;
  GRADFLOW_RETURN_IF_ERROR(ReadPooling(op, &a));
  if (a.padding == "EXPLICIT") {
    return errors::Unimplemented("no op computes the gradient with explicit padding");
  }
  const auto attrs = typename Adjoint::Attrs().DataFormat(a.data_format);
  *dx = {NoGradient(), NoGradient(),
         Adjoint(scope, op.input(0), op.input(1), dy[0], a.ksize, a.strides, a.padding, attrs)};
  return scope.status();
}
template <typename Adjoint>
absl::Status GradientOfMaxPoolGradV2(const Scope& scope, const Operation& op,
                                     const std::vector<Output>& dy, std::vector<Output>* dx) {
  PoolingAttrs a;
  GRADFLOW_RETURN_IF_ERROR(ReadPooling(op, &a));
  const auto attrs = typename Adjoint::Attrs().DataFormat(a.data_format);
  *dx = {
      NoGradient(), NoGradient(),
      Adjoint(scope, op.input(0), op.input(1), dy[0], op.input(3), op.input(4), a.padding, attrs)};
  return NoGradientForTheRest(scope, op, dx);
}
absl::Status GradientOfMaxPoolWithArgmax(const Scope& scope, const Operation& op,
                                         const std::vector<Output>& dy, std::vector<Output>* dx) {
  PoolingAttrs a;
  bool include_batch = false;
  GRADFLOW_RETURN_IF_ERROR(ReadPooling(op, &a));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "include_batch_in_index", &include_batch));
  const auto attrs = ops::MaxPoolGradWithArgmax::IncludeBatchInIndex(include_batch);
  dx->push_back(ops::MaxPoolGradWithArgmax(scope, op.input(0), OrZeros(scope, op, 0, dy),
                                           op.output(1), a.ksize, a.strides, a.padding, attrs));
  return scope.status();
}
template <typename Adjoint>
absl::Status GradientOfMaxPoolGradWithArgmax(const Scope& scope, const Operation& op,
                                             const std::vector<Output>& dy,
                                             std::vector<Output>* dx) {
  PoolingAttrs a;
  bool include_batch = false;
  GRADFLOW_RETURN_IF_ERROR(ReadPooling(op, &a));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "include_batch_in_index", &include_batch));
  const auto attrs = typename Adjoint::Attrs().IncludeBatchInIndex(include_batch);
  *dx = {NoGradient(),
         Adjoint(scope, op.input(0), dy[0], op.input(2), a.ksize, a.strides, a.padding, attrs)};
  return NoGradientForTheRest(scope, op, dx);
}

// The row and column sequences (outputs 1 and 2) are integers and have no gradients.
absl::Status GradientOfFractionalMaxPool(const Scope& scope, const Operation& op,
                                         const std::vector<Output>& dy, std::vector<Output>* dx) {
  bool overlapping = false;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "overlapping", &overlapping));
  dx->push_back(ops::FractionalMaxPoolGrad(scope, op.input(0), op.output(0),
                                           OrZeros(scope, op, 0, dy), op.output(1), op.output(2),
                                           ops::FractionalMaxPoolGrad::Overlapping(overlapping)));
  return scope.status();
}
absl::Status GradientOfFractionalAvgPool(const Scope& scope, const Operation& op,
                                         const std::vector<Output>& dy, std::vector<Output>* dx) {
  bool overlapping = false;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "overlapping", &overlapping));
  const Output shape = ops::Shape(scope, op.input(0), ops::Shape::OutType(DT_INT64));
  dx->push_back(ops::FractionalAvgPoolGrad(scope, shape, OrZeros(scope, op, 0, dy), op.output(1),
                                           op.output(2),
                                           ops::FractionalAvgPoolGrad::Overlapping(overlapping)));
  return scope.status();
}

// Returns the matrix that averages the `size` rows (or columns) of an image over each window.
// Window i has the rows from sequence[i] to sequence[i + 1] - 1 and, with `overlapping`, also row
// sequence[i + 1] if it exists.
Output AverageOfWindows(const Scope& scope, const Output& sequence, const Output& size,
                        bool overlapping, DataType dtype) {
  const Output zero = ops::Const(scope, int64_t{0});
  const Output one = ops::Const(scope, int64_t{1});
  const Output count = ops::Sub(scope, ops::Shape(scope, sequence), Vector(scope, {1}));
  const Output begin = ops::Slice(scope, sequence, Vector(scope, {0}), count);
  Output end = ops::Slice(scope, sequence, Vector(scope, {1}), count);
  if (overlapping) end = ops::Minimum(scope, ops::Add(scope, end, one), size);
  const Output positions = ops::Range(scope, zero, size, one);
  const auto column = [&](const Output& x) -> Output { return ops::ExpandDims(scope, x, 1); };
  const Output is_in = ops::LogicalAnd(scope, ops::GreaterEqual(scope, positions, column(begin)),
                                       ops::Less(scope, positions, column(end)));
  const Output sizes = column(ops::Cast(scope, ops::Sub(scope, end, begin), dtype));
  return ops::Div(scope, ops::Cast(scope, is_in, dtype), sizes);
}
// The gradient op is linear in the gradients. Its adjoint is the average over the same windows.
absl::Status GradientOfFractionalAvgPoolGrad(const Scope& scope, const Operation& op,
                                             const std::vector<Output>& dy,
                                             std::vector<Output>* dx) {
  bool overlapping = false;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "overlapping", &overlapping));
  const auto average = [&](int input, int dimension) -> Output {
    const Output size = ops::GatherV2(scope, op.input(0), dimension, 0);
    return AverageOfWindows(scope, op.input(input), size, overlapping, BaseType(dy[0].type()));
  };
  *dx = {NoGradient(),
         ops::Einsum(scope, {average(2, 1), average(3, 2), dy[0]}, "ri,cj,bijd->brcd")};
  return NoGradientForTheRest(scope, op, dx);
}

absl::Status GradientOfGlobalNormalization(const Scope& scope, const Operation& op,
                                           const std::vector<Output>& dy, std::vector<Output>* dx) {
  float epsilon = 0;
  bool scale = false;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "variance_epsilon", &epsilon));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "scale_after_normalization", &scale));
  const ops::BatchNormWithGlobalNormalizationGrad gradient(
      scope, op.input(0), op.input(1), op.input(2), op.input(4), dy[0], epsilon, scale);
  *dx = {gradient.dx, gradient.dm, gradient.dv, gradient.db, gradient.dg};
  return scope.status();
}

// Differentiates the formulas of the gradient op.
absl::Status GradientOfGlobalNormalizationGrad(const Scope& scope, const Operation& op,
                                               const std::vector<Output>& dy,
                                               std::vector<Output>* dx) {
  float epsilon = 0;
  bool scales = false;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "variance_epsilon", &epsilon));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "scale_after_normalization", &scales));
  const auto formula = [=](const Scope& s, const std::vector<Output>& xs) -> std::vector<Output> {
    const DataType dtype = xs[0].type();
    const auto sum_rows = [&](const Output& x) -> Output {
      return ops::Sum(s, x, Vector(s, {0, 1, 2}));
    };
    const Output wide_variance = ops::Add(s, xs[2], Scalar(s, dtype, epsilon));
    const Output rstd = ops::Rsqrt(s, wide_variance);
    const Output factor = scales ? Output(ops::Mul(s, rstd, xs[3])) : rstd;
    const Output centered = ops::Sub(s, xs[0], xs[1]);
    const Output sum = sum_rows(xs[4]);
    const Output products = sum_rows(ops::Mul(s, xs[4], centered));
    const Output by_variance = ops::Mul(s, Scalar(s, dtype, -0.5),
                                        ops::Div(s, ops::Mul(s, products, factor), wide_variance));
    const Output by_gamma =
        scales ? Output(ops::Mul(s, products, rstd)) : Output(ops::ZerosLike(s, xs[3]));
    return {ops::Mul(s, xs[4], factor), ops::Neg(s, ops::Mul(s, sum, factor)), by_variance, sum,
            by_gamma};
  };
  std::vector<Output> inputs;
  for (int i = 0; i < op.num_inputs(); ++i) inputs.push_back(op.input(i));
  return DifferentiateFormula(scope, inputs, formula, dy, dx);
}

// ---- Batch normalization ----

struct BatchNormGradientAttrs {
  float epsilon = 0;
  std::string data_format;
  bool is_training = false;
};

// Differentiates output y. In training, the gradient op reads the statistics of the batch, which
// are reserved outputs. In inference, it reads the inputs mean and variance, which then also have
// gradients:
//   y = (x - mean) * scale * rstd + offset, where rstd = 1 / sqrt(variance + epsilon)
//   dy/dmean = -scale * rstd, summed like the gradient of offset
//   dy/dvariance = -(x - mean) * scale * rstd^3 / 2, summed like the gradient of scale
template <typename Gradient>
absl::Status GradientOfBatchNorm(const Scope& scope, const Operation& op,
                                 const std::vector<Output>& dy, std::vector<Output>* dx) {
  BatchNormGradientAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "epsilon", &attrs.epsilon));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "data_format", &attrs.data_format));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "is_training", &attrs.is_training));
  for (size_t i = 1; i < dy.size(); ++i) {
    if (IsNoGradient(dy[i])) continue;
    return errors::Unimplemented("only output 0 (y) can be differentiated, not output ", i);
  }
  const auto options = typename Gradient::Attrs()
                           .Epsilon(attrs.epsilon)
                           .DataFormat(attrs.data_format)
                           .IsTraining(attrs.is_training);
  const Output mean = attrs.is_training ? op.output(3) : op.input(3);
  const Output variance = attrs.is_training ? op.output(4) : op.input(4);
  const Output x = op.input(0);
  const Output scale = op.input(1);
  if constexpr (std::is_same_v<Gradient, ops::FusedBatchNormGradV3>) {
    const Gradient gradient(scope, dy[0], x, scale, mean, variance, op.output(5), options);
    *dx = {gradient.x_backprop, gradient.scale_backprop, gradient.offset_backprop};
  } else {
    const Gradient gradient(scope, dy[0], x, scale, mean, variance, options);
    *dx = {gradient.x_backprop, gradient.scale_backprop, gradient.offset_backprop};
  }
  if (attrs.is_training) return NoGradientForTheRest(scope, op, dx);
  const DataType dtype = variance.type();
  const Output shifted = ops::Add(scope, variance, Scalar(scope, dtype, attrs.epsilon));
  const Output dscale = (*dx)[1];
  const Output doffset = (*dx)[2];
  const Output factor = ops::Mul(scope, scale, ops::Rsqrt(scope, shifted));
  dx->push_back(ops::Neg(scope, ops::Mul(scope, doffset, factor)));
  dx->push_back(ops::Div(
      scope, ops::Mul(scope, Scalar(scope, dtype, -0.5), ops::Mul(scope, scale, dscale)), shifted));
  return scope.status();
}

}  // namespace
}  // namespace gradients

namespace gradients::nn {

void Register(GradientRegistry& registry) {
  registry.Register("Relu", GradientByOutput<ops::ReluGrad>);
  registry.Register("Relu6", GradientByOutput<ops::Relu6Grad>);
  registry.Register("LeakyRelu", GradientOfLeakyRelu);
  registry.Register("Elu", GradientByOutput<ops::EluGrad>);
  registry.Register("Selu", GradientByOutput<ops::SeluGrad>);
  registry.Register("Softplus", GradientByInput<ops::SoftplusGrad>);
  registry.Register("Softsign", GradientByInput<ops::SoftsignGrad>);
  registry.Register("ReluGrad", ReluGradGradient<ops::ReluGrad>);
  registry.Register("Relu6Grad", ReluGradGradient<ops::Relu6Grad>);
  registry.Register("LeakyReluGrad", GradientOfLeakyReluGrad);
  registry.Register("EluGrad", GradientOfEluGrad<ops::EluGrad>);
  registry.Register("SeluGrad", GradientOfEluGrad<ops::SeluGrad>);
  registry.Register("SoftplusGrad", GradientOfSoftplusGrad);
  registry.Register("SoftsignGrad", GradientOfSoftsignGrad);
  registry.Register("BiasAdd", GradientOfBiasAdd);
  registry.Register("BiasAddV1", GradientOfBiasAddV1);
  registry.Register("BiasAddGrad", GradientOfBiasAddGrad);
  registry.Register("Softmax", GradientOfSoftmax);
  registry.Register("LogSoftmax", GradientOfLogSoftmax);
  registry.Register("SoftmaxCrossEntropyWithLogits", GradientOfCrossEntropy);
  registry.Register("SparseSoftmaxCrossEntropyWithLogits", GradientOfSparseCrossEntropy);
  registry.Register("CTCLoss", GradientOfCtcLoss);
  registry.Register("CTCLossV2", GradientOfCtcLoss);
  registry.RegisterNoGradient("CTCGreedyDecoder");
  registry.RegisterNoGradient("CTCBeamSearchDecoder");
  registry.Register("L2Loss", GradientOfL2Loss);
  registry.Register("LRN", GradientOfLrn);
  registry.Register("Conv", GradientOfGeneralConv);
  registry.Register("Conv2D", GradientOfConv<kConv2D>);
  registry.Register("Conv2DBackpropInput", GradientOfConvBackpropInput<kConv2D>);
  registry.Register("Conv2DBackpropInputV2", GradientOfConvBackpropInput<kConv2D>);
  registry.Register("Conv2DBackpropFilter", GradientOfConvBackpropFilter<kConv2D>);
  registry.Register("Conv2DBackpropFilterV2", GradientOfConvBackpropFilter<kConv2D>);
  registry.Register("Conv3D", GradientOfConv<kConv3D>);
  registry.Register("Conv3DBackpropInput", GradientOfConvBackpropInput<kConv3D>);
  registry.Register("Conv3DBackpropInputV2", GradientOfConvBackpropInput<kConv3D>);
  registry.Register("Conv3DBackpropFilter", GradientOfConvBackpropFilter<kConv3D>);
  registry.Register("Conv3DBackpropFilterV2", GradientOfConvBackpropFilter<kConv3D>);
  registry.Register("DepthwiseConv2dNative", GradientOfConv<kDepthwise>);
  registry.Register("DepthwiseConv2dNativeBackpropInput", GradientOfConvBackpropInput<kDepthwise>);
  registry.Register("DepthwiseConv2dNativeBackpropFilter",
                    GradientOfConvBackpropFilter<kDepthwise>);
  registry.Register("Dilation2D", GradientOfDilation2D);
  registry.Register("Dilation2DBackpropInput", GradientOfDilation2DBackprop<false>);
  registry.Register("Dilation2DBackpropFilter", GradientOfDilation2DBackprop<true>);
  registry.RegisterNoGradient("InTopK");
  registry.RegisterNoGradient("InTopKV2");
  registry.Register("AvgPool", GradientOfAvgPool<ops::AvgPoolGrad>);
  registry.Register("AvgPool3D", GradientOfAvgPool<ops::AvgPool3DGrad>);
  registry.Register("AvgPoolGrad", GradientOfAvgPoolGrad<ops::AvgPool>);
  registry.Register("AvgPool3DGrad", GradientOfAvgPoolGrad<ops::AvgPool3D>);
  registry.Register("MaxPool", GradientOfMaxPool);
  registry.Register("MaxPoolV2", GradientOfMaxPoolV2);
  registry.Register("MaxPool3D", GradientOfMaxPool3D);
  registry.Register("MaxPoolGrad", GradientOfMaxPoolGrad<ops::MaxPoolGradGrad>);
  registry.Register("MaxPoolGradGrad", GradientOfMaxPoolGrad<ops::MaxPoolGrad>);
  registry.Register("MaxPoolGradV2", GradientOfMaxPoolGradV2<ops::MaxPoolGradGradV2>);
  registry.Register("MaxPoolGradGradV2", GradientOfMaxPoolGradV2<ops::MaxPoolGradV2>);
  registry.Register("MaxPool3DGrad", GradientOfMaxPoolGrad<ops::MaxPool3DGradGrad>);
  registry.Register("MaxPool3DGradGrad", GradientOfMaxPoolGrad<ops::MaxPool3DGrad>);
  registry.Register("MaxPoolWithArgmax", GradientOfMaxPoolWithArgmax);
  registry.Register("MaxPoolGradWithArgmax",
                    GradientOfMaxPoolGradWithArgmax<ops::MaxPoolGradGradWithArgmax>);
  registry.Register("MaxPoolGradGradWithArgmax",
                    GradientOfMaxPoolGradWithArgmax<ops::MaxPoolGradWithArgmax>);
  registry.Register("FractionalMaxPool", GradientOfFractionalMaxPool);
  registry.Register("FractionalAvgPool", GradientOfFractionalAvgPool);
  registry.Register("FractionalAvgPoolGrad", GradientOfFractionalAvgPoolGrad);
  registry.Register("BatchNormWithGlobalNormalization", GradientOfGlobalNormalization);
  registry.Register("BatchNormWithGlobalNormalizationGrad", GradientOfGlobalNormalizationGrad);
  registry.Register("FusedBatchNorm", GradientOfBatchNorm<ops::FusedBatchNormGrad>);
  registry.Register("FusedBatchNormV2", GradientOfBatchNorm<ops::FusedBatchNormGradV2>);
  registry.Register("FusedBatchNormV3", GradientOfBatchNorm<ops::FusedBatchNormGradV3>);
}

}  // namespace gradients::nn

}  // namespace gradflow
