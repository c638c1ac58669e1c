// Gradients of the ops of ops/quant. Rounding counts as the identity (straight-through estimator).
// The gradient ops of fake quantization are linear in their first input.
#include <cstdint>
#include <vector>

#include "gradflow/gradients/gradient_helpers.h"
#include "gradflow/gradients/gradient_registry.h"
#include "gradflow/ops/standard_ops.h"

namespace gradflow {
namespace gradients {
namespace {

// The attributes of fake quantization ops.
struct FakeQuantAttrs {
  int64_t num_bits = 8;
  bool narrow_range = false;
};
absl::Status GetFakeQuantAttrs(const Operation& op, FakeQuantAttrs* attrs) {
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "num_bits", &attrs->num_bits));
  return GetAttr(op, "narrow_range", &attrs->narrow_range);
}

absl::Status GradientOfFakeQuantArgs(const Scope& scope, const Operation& op,
                                     const std::vector<Output>& dy, std::vector<Output>* dx) {
  FakeQuantAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(GetFakeQuantAttrs(op, &attrs));
  float min = 0;
  float max = 0;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "min", &min));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "max", &max));
  using Gradient = ops::FakeQuantWithMinMaxArgsGradient;
  dx->push_back(Gradient(
      scope, dy[0], op.input(0),
      Gradient::Min(min).Max(max).NumBits(attrs.num_bits).NarrowRange(attrs.narrow_range)));
  return scope.status();
}
template <typename Gradient>
absl::Status GradientOfFakeQuantVars(const Scope& scope, const Operation& op,
                                     const std::vector<Output>& dy, std::vector<Output>* dx) {
  FakeQuantAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(GetFakeQuantAttrs(op, &attrs));
  const Gradient gradient(
      scope, dy[0], op.input(0), op.input(1), op.input(2),
      typename Gradient::Attrs().NumBits(attrs.num_bits).NarrowRange(attrs.narrow_range));
  *dx = {gradient.backprops_wrt_input, gradient.backprop_wrt_min, gradient.backprop_wrt_max};
  return scope.status();
}

// The gradient ops pass gradients within the range, and sum the gradients below and above it. They
// are linear in the gradients and, almost everywhere, constant in the other inputs.
absl::Status GradientOfFakeQuantArgsGradient(const Scope& scope, const Operation& op,
                                             const std::vector<Output>& dy,
                                             std::vector<Output>* dx) {
  FakeQuantAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(GetFakeQuantAttrs(op, &attrs));
  float min = 0;
  float max = 0;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "min", &min));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "max", &max));
  using Gradient = ops::FakeQuantWithMinMaxArgsGradient;
  *dx = {
      Gradient(scope, dy[0], op.input(1),
               Gradient::Min(min).Max(max).NumBits(attrs.num_bits).NarrowRange(attrs.narrow_range)),
      NoGradient()};
  return scope.status();
}
template <typename Gradient>
absl::Status GradientOfFakeQuantVarsGradient(const Scope& scope, const Operation& op,
                                             const std::vector<Output>& dy,
                                             std::vector<Output>* dx) {
  FakeQuantAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(GetFakeQuantAttrs(op, &attrs));
  const Output x = op.input(1);
  const Output min = op.input(2);
  const Output max = op.input(3);
  const auto within = [&](const Output& g) -> Output {
    const auto options =
        typename Gradient::Attrs().NumBits(attrs.num_bits).NarrowRange(attrs.narrow_range);
    return Gradient(scope, g, x, min, max, options).backprops_wrt_input;
  };
  std::vector<Output> terms;
  if (!IsNoGradient(dy[0])) terms.push_back(within(dy[0]));
  if (!IsNoGradient(dy[1]) || !IsNoGradient(dy[2])) {
    // The middle of [min, max] also lies within the nudged range.
    const Output half = Scalar(scope, DT_FLOAT, 0.5);
    const Output middle = ops::Add(scope, ops::Mul(scope, half, min), ops::Mul(scope, half, max));
    const Output zero = Scalar(scope, DT_FLOAT, 0);
    const Output is_out = ops::Equal(scope, within(ops::OnesLike(scope, op.input(0))), zero);
    const auto add = [&](const Output& is_on_side, const Output& g) {
      if (IsNoGradient(g)) return;
      terms.push_back(ops::SelectV2(scope, ops::LogicalAnd(scope, is_out, is_on_side), g, zero));
    };
    add(ops::Less(scope, x, middle), dy[1]);
    add(ops::Greater(scope, x, middle), dy[2]);
  }
  dx->push_back(terms.size() == 1 ? terms[0] : Output(ops::AddN(scope, terms)));
  return NoGradientForTheRest(scope, op, dx);
}

}  // namespace
}  // namespace gradients

namespace gradients::quant {

void Register(GradientRegistry& registry) {
  registry.Register("FakeQuantWithMinMaxArgs", GradientOfFakeQuantArgs);
  registry.Register("FakeQuantWithMinMaxVars",
                    GradientOfFakeQuantVars<ops::FakeQuantWithMinMaxVarsGradient>);
  registry.Register("FakeQuantWithMinMaxVarsPerChannel",
                    GradientOfFakeQuantVars<ops::FakeQuantWithMinMaxVarsPerChannelGradient>);
  registry.Register("FakeQuantWithMinMaxArgsGradient", GradientOfFakeQuantArgsGradient);
  registry.Register("FakeQuantWithMinMaxVarsGradient",
                    GradientOfFakeQuantVarsGradient<ops::FakeQuantWithMinMaxVarsGradient>);
  registry.Register(
      "FakeQuantWithMinMaxVarsPerChannelGradient",
      GradientOfFakeQuantVarsGradient<ops::FakeQuantWithMinMaxVarsPerChannelGradient>);
  // These ops convert to and from integers, or compute with integers.
  for (const char* const op :
       {"Dequantize", "QuantizeDownAndShrinkRange", "QuantizeV2", "QuantizedAdd",
        "QuantizedAvgPool", "QuantizedBiasAdd", "QuantizedConcat", "QuantizedConv2D",
        "QuantizedMatMul", "QuantizedMaxPool", "QuantizedMul", "QuantizedRelu", "QuantizedRelu6",
        "QuantizedReluX", "QuantizedReshape", "RequantizationRange", "Requantize"}) {
    registry.RegisterNoGradient(op);
  }
}

}  // namespace gradients::quant

}  // namespace gradflow
