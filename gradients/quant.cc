// Gradients of the ops of ops/quant: rounding counts as the identity (the straight-through
// estimator). The gradient ops of fake quantisation are linear in their first input.
#include <cstdint>
#include <vector>

#include "gradflow/gradients/gradient_helpers.h"
#include "gradflow/gradients/register.h"
#include "gradflow/ops/standard_ops.h"

namespace gradflow {
namespace gradients {
namespace {

// The attributes of the ops of fake quantisation.
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

}  // namespace
}  // namespace gradients

void RegisterQuantGradients(GradientRegistry& registry) {
  using namespace gradients;  // NOLINT(google-build-using-namespace)
  registry.Register("FakeQuantWithMinMaxArgs", GradientOfFakeQuantArgs);
  registry.Register("FakeQuantWithMinMaxVars",
                    GradientOfFakeQuantVars<ops::FakeQuantWithMinMaxVarsGradient>);
  registry.Register("FakeQuantWithMinMaxVarsPerChannel",
                    GradientOfFakeQuantVars<ops::FakeQuantWithMinMaxVarsPerChannelGradient>);
}

}  // namespace gradflow
