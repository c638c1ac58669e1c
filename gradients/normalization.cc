// Second-order gradients of normalization: the gradients of the gradient ops of batch normalization
// and local response normalization, computed from their formulas.
#include <cstdint>
#include <string>
#include <vector>

#include "gradflow/gradients/gradient_helpers.h"
#include "gradflow/gradients/gradient_registry.h"
#include "gradflow/ops/standard_ops.h"

namespace gradflow {
namespace gradients {
namespace {

// The attributes of a FusedBatchNormGrad op.
struct NormGradAttrs {
  float epsilon = 0;
  std::string data_format;
  bool is_training = false;
};

// Sums and means over all dimensions except the channels, in shapes that broadcast to the images.
class Channels {
 public:
  explicit Channels(const std::string& data_format) {
    const int rank = static_cast<int>(data_format.size());
    const auto channels = static_cast<int>(data_format.find('C'));
    for (int i = 0; i < rank; ++i) {
      if (i != channels) axes_.push_back(i);
    }
    shape_.assign(rank, 1);
    shape_[channels] = -1;
  }

  Output Sum(const Scope& scope, const Output& x) const {
    return ops::Sum(scope, x, Vector(scope, axes_));
  }
  Output Mean(const Scope& scope, const Output& x) const {
    return ops::Mean(scope, x, Vector(scope, axes_));
  }
  // Reshapes a vector of channels so that it broadcasts to the images.
  Output Spread(const Scope& scope, const Output& channels) const {
    return ops::Reshape(scope, channels, Vector(scope, shape_));
  }

 private:
  std::vector<int32_t> axes_;
  std::vector<int32_t> shape_;
};

// The outputs of the gradient op, computed from y_backprop, x, scale, mean and variance. In
// training, mean and variance are the statistics of x, so the result also depends on x through
// them:
//   x_backprop = scale rstd (dy - mean(dy) - xhat mean(dy xhat)), xhat = (x - mean) rstd
// In inference, they are inputs 3 and 4 of the gradient op, and x_backprop = scale rstd dy.
std::vector<Output> BatchNormGradFormula(const Scope& scope, const NormGradAttrs& attrs,
                                         const std::vector<Output>& xs) {
  const Channels channels(attrs.data_format);
  const DataType wide = xs[2].type();
  const auto widen = [&](const Output& x) {
    return x.type() == wide ? x : Output(ops::Cast(scope, x, wide));
  };
  const Output dy = widen(xs[0]);
  const Output x = widen(xs[1]);
  const Output scale = xs[2];
  const Output mean = attrs.is_training ? channels.Mean(scope, x) : xs[3];
  const Output centered = ops::Sub(scope, x, channels.Spread(scope, mean));
  const Output variance =
      attrs.is_training ? channels.Mean(scope, ops::Square(scope, centered)) : xs[4];
  const Output rstd =
      ops::Rsqrt(scope, ops::Add(scope, variance, Scalar(scope, wide, attrs.epsilon)));
  const Output xhat = ops::Mul(scope, centered, channels.Spread(scope, rstd));
  const Output product = ops::Mul(scope, dy, xhat);
  const Output factor = channels.Spread(scope, ops::Mul(scope, scale, rstd));
  Output g = dy;
  if (attrs.is_training) {
    const Output mean_dy = channels.Spread(scope, channels.Mean(scope, dy));
    const Output mean_product = channels.Spread(scope, channels.Mean(scope, product));
    g = ops::Sub(scope, ops::Sub(scope, dy, mean_dy), ops::Mul(scope, xhat, mean_product));
  }
  Output dx = ops::Mul(scope, factor, g);
  if (dx.type() != xs[1].type()) dx = ops::Cast(scope, dx, xs[1].type());
  return {dx, channels.Sum(scope, product), channels.Sum(scope, dy)};
}

absl::Status GradientOfBatchNormGrad(const Scope& scope, const Operation& op,
                                     const std::vector<Output>& dy, std::vector<Output>* dx) {
  NormGradAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "epsilon", &attrs.epsilon));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "data_format", &attrs.data_format));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "is_training", &attrs.is_training));
  std::vector<Output> inputs;
  for (int i = 0; i < (attrs.is_training ? 3 : 5); ++i) inputs.push_back(op.input(i));
  const auto formula = [&](const Scope& s, const std::vector<Output>& xs) {
    return BatchNormGradFormula(s, attrs, xs);
  };
  GRADFLOW_RETURN_IF_ERROR(DifferentiateFormula(scope, inputs, formula, {dy[0], dy[1], dy[2]}, dx));
  return NoGradientForTheRest(scope, op, dx);
}

// y = x norm^-beta, where norm = bias + alpha * (sum of x^2 over a window of channels):
//   dx = dy norm^-beta - 2 alpha beta x * (sum of dy y / norm over the same window)
// Sums over the window are products with a band of ones.
absl::Status GradientOfLrnGrad(const Scope& scope, const Operation& op,
                               const std::vector<Output>& dy, std::vector<Output>* dx) {
  int64_t radius = 0;
  float bias = 0;
  float alpha = 0;
  float beta = 0;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "depth_radius", &radius));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "bias", &bias));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "alpha", &alpha));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "beta", &beta));
  const auto formula = [&](const Scope& s, const std::vector<Output>& xs) -> std::vector<Output> {
    const DataType dtype = xs[1].type();
    const Output shape = ops::Shape(s, xs[1]);
    const Output depth = ops::GatherV2(s, shape, Vector(s, {3}), 0);
    const Output ones = ops::Fill(s, ops::ConcatV2(s, {depth, depth}, 0), Scalar(s, dtype, 1));
    const Output depth64 = ops::Reshape(s, ops::Cast(s, depth, DT_INT64), Vector(s, {}));
    // Limits the width, because the band may be wider than the matrix.
    const Output width = ops::Minimum(s, ops::Const(s, radius), depth64);
    const Output band = ops::MatrixBandPart(s, ones, width, width);
    const Output flat = ops::ConcatV2(s, {Vector(s, {-1}), depth}, 0);
    const auto window = [&](const Output& x) -> Output {
      return ops::Reshape(s, ops::MatMul(s, ops::Reshape(s, x, flat), band), shape);
    };
    const Output norm =
        ops::Add(s, Scalar(s, dtype, bias),
                 ops::Mul(s, Scalar(s, dtype, alpha), window(ops::Square(s, xs[1]))));
    const Output direct = ops::Mul(s, xs[0], ops::Pow(s, norm, Scalar(s, dtype, -beta)));
    const Output sums = window(ops::Div(s, ops::Mul(s, xs[0], xs[2]), norm));
    const Output factor = Scalar(s, dtype, 2.0 * alpha * beta);
    return {ops::Sub(s, direct, ops::Mul(s, factor, ops::Mul(s, xs[1], sums)))};
  };
  return DifferentiateFormula(scope, {op.input(0), op.input(1), op.input(2)}, formula, {dy[0]}, dx);
}

}  // namespace
}  // namespace gradients

namespace gradients::normalization {

void Register(GradientRegistry& registry) {
  for (const char* const op :
       {"FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"}) {
    registry.Register(op, GradientOfBatchNormGrad);
  }
  registry.Register("LRNGrad", GradientOfLrnGrad);
}

}  // namespace gradients::normalization

}  // namespace gradflow
