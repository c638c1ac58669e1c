// Gradients of the ops of ops/nn.
#include <string>
#include <type_traits>
#include <vector>

#include "gradflow/gradients/gradient_helpers.h"
#include "gradflow/gradients/register.h"
#include "gradflow/ops/standard_ops.h"

namespace gradflow {
namespace gradients {
namespace {

absl::Status GradientOfRelu(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                            std::vector<Output>* dx) {
  const Output y = op.output(0);
  const Output is_positive = ops::Greater(scope, y, Scalar(scope, y.type(), 0));
  dx->push_back(ops::SelectV2(scope, is_positive, dy[0], ops::ZerosLike(scope, dy[0])));
  return scope.status();
}

struct BatchNormAttrs {
  float epsilon = 0;
  std::string data_format;
  bool is_training = false;
};

// Of output y. In training the gradient op reads the statistics of the batch, which are reserved
// outputs, else the inputs mean and variance. These have a gradient then, too:
//   y = (x - mean) * scale * rstd + offset, where rstd = 1 / sqrt(variance + epsilon)
//   dy/dmean = -scale * rstd, summed as the gradient of offset is
//   dy/dvariance = -(x - mean) * scale * rstd^3 / 2, summed as the gradient of scale is
template <typename Gradient>
absl::Status GradientOfBatchNorm(const Scope& scope, const Operation& op,
                                 const std::vector<Output>& dy, std::vector<Output>* dx) {
  BatchNormAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "epsilon", &attrs.epsilon));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "data_format", &attrs.data_format));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "is_training", &attrs.is_training));
  for (size_t i = 1; i < dy.size(); ++i) {
    if (IsNoGradient(dy[i])) continue;
    return errors::Unimplemented("the gradient by output ", i, " is not known, only that by y");
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

void RegisterNnGradients(GradientRegistry& registry) {
  using namespace gradients;  // NOLINT(google-build-using-namespace)
  registry.Register("Relu", GradientOfRelu);
  registry.Register("FusedBatchNorm", GradientOfBatchNorm<ops::FusedBatchNormGrad>);
  registry.Register("FusedBatchNormV2", GradientOfBatchNorm<ops::FusedBatchNormGradV2>);
  registry.Register("FusedBatchNormV3", GradientOfBatchNorm<ops::FusedBatchNormGradV3>);
}

}  // namespace gradflow
