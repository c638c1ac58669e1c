// Gradient checker: compares gradients with central differences, like TensorFlow's gradient
// checker.
//
// The gradients come from AddSymbolicGradients, or from a function that adds them:
//
//   Scope scope = Scope::NewRootScope();
//   Output x = ops::Placeholder(scope, DT_FLOAT);
//   Output y = ops::Tanh(scope, x);
//   const auto gradient = [&](const Scope& s, const OutputList& dys) -> OutputList {
//     return {ops::Mul(s, dys[0], ops::Sub(s, 1.0f, ops::Square(s, y)))};
//   };
//   double max_error;
//   GRADFLOW_ASSERT_OK(ComputeGradientError(scope, x, x_value, y, {2, 3}, gradient, &max_error));
//   EXPECT_LT(max_error, 1e-4);
//
// Ops with a registered gradient op need only one call:
//
//   EXPECT_TRUE(CheckGradient("FakeQuantWithMinMaxVars", {x, min, max}));
//   EXPECT_TRUE(CheckGradient(OpTester("FusedBatchNormV3").Inputs(...).Attr("epsilon", 0.01f)));
#ifndef GRADFLOW_TESTING_GRADIENT_CHECKER_H_
#define GRADFLOW_TESTING_GRADIENT_CHECKER_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"
#include "gradflow/testing/op_tester.h"

namespace gradflow {
namespace testing {

// Adds the gradients of xs to `scope`, given the gradients of ys in `dys` (placeholders). Returns a
// gradient for each x, with the shape of x: the sum over all ys of the gradient of y times the
// derivative of y with respect to x.
using GradientFn = std::function<OutputList(const Scope& scope, const OutputList& dys)>;

// Options of the comparison.
struct GradientOptions {
  // The step of the central differences; 0 for 1e-2 with float and complex64, and 1e-5 with double
  // and complex128. The error of a difference is about (rounding error of y) / delta + delta^2 / 6
  // * (third derivative).
  double delta = 0;
  // The maximum of |gradient - difference| / max(1, largest element of the Jacobian) that
  // CheckGradient allows; 0 for 2e-3 with float and 1e-7 with double.
  double max_error = 0;
  // Makes CheckGradients also check second-order gradients: the gradients of a weighted sum of the
  // gradients.
  bool second_order = false;
};

// The largest error of a gradient and its position.
struct GradientError {
  // |analytic - numeric|; NaN if one of them is NaN.
  double max_error = 0;
  // The largest absolute value of the finite elements of both Jacobians.
  double largest = 0;
  // The derivative of element `y_element` of ys[y] with respect to element `x_element` of xs[x].
  int y = 0;
  int64_t y_element = 0;
  int x = 0;
  int64_t x_element = 0;
  double analytic = 0;
  double numeric = 0;

  // Returns "d y0[3] / d x1[0] is 0.5 by the gradient, 0.25 by differences (error 0.25)".
  std::string DebugString() const;
};

// Compares two Jacobians of ys with respect to xs: the Jacobian from the gradient graph, evaluated
// with each unit vector as dys, and the Jacobian from central differences at `x_values`. The xs and
// ys must be float, double or complex. A complex element counts as two elements, its real and its
// imaginary part. The xs are fed, and need not be placeholders. Takes one run per element of ys and
// two runs per element of xs. Returns INVALID_ARGUMENT if types or the shapes of gradients do not
// match. Otherwise returns errors of runs.
absl::StatusOr<GradientError> FindGradientError(const Scope& scope, const OutputList& xs,
                                                const std::vector<Tensor>& x_values,
                                                const OutputList& ys, const GradientFn& gradient,
                                                const GradientOptions& options = {});

// Stores the largest absolute error in *max_error, at random values of xs in [-1, 1) or at
// `x_init_value`. Same as in TensorFlow, except for the argument `gradient`.
absl::Status ComputeGradientError(const Scope& scope, const OutputList& xs,
                                  const std::vector<TensorShape>& x_shapes, const OutputList& ys,
                                  const std::vector<TensorShape>& y_shapes,
                                  const GradientFn& gradient, double* max_error,
                                  const GradientOptions& options = {});
absl::Status ComputeGradientError(const Scope& scope, const Output& x, const Tensor& x_init_value,
                                  const Output& y, const TensorShape& y_shape,
                                  const GradientFn& gradient, double* max_error,
                                  const GradientOptions& options = {});

// Overloads that check the gradients of AddSymbolicGradients and return its errors. The scope
// remains ok(). The differences are computed on the unmodified graph. For fake quantization, the
// differences therefore include its steps, which its gradient ignores.
absl::Status ComputeGradientError(const Scope& scope, const OutputList& xs,
                                  const std::vector<TensorShape>& x_shapes, const OutputList& ys,
                                  const std::vector<TensorShape>& y_shapes, double* max_error,
                                  const GradientOptions& options = {});
absl::Status ComputeGradientError(const Scope& scope, const Output& x, const Tensor& x_init_value,
                                  const Output& y, const TensorShape& y_shape, double* max_error,
                                  const GradientOptions& options = {});

// A call of an op's gradient op. Names are argument names in the op definitions.
struct GradientOp {
  // The op that computes the gradient.
  std::string op;
  // For each input of the gradient op: "d:y" for the gradient of output y, or the name of an input
  // or output of the op. If an input and an output share a name, it denotes the input.
  std::vector<std::string> inputs;
  // For each output of the gradient op, the input whose gradient it is. The list may be shorter.
  std::vector<std::string> outputs;
  // True if the op rounds, and its gradient treats rounding as the identity. Differences are then
  // computed on the op without rounding: its input is only clamped to the op's bounds. The bounds
  // are found by running the op.
  bool straight_through = false;
};

// Registers the gradient op of `op` for CheckGradient, and replaces a previous gradient op. Also
// registers it for AddSymbolicGradients, unless the program has registered a function there. The
// attributes that both ops have are copied from the op to the gradient op. Not thread-safe.
void RegisterGradientOp(absl::string_view op, const GradientOp& gradient);

// Succeeds if the gradient op of `op` agrees with differences of `op` at these inputs. Gradient ops
// are known for the FakeQuantWithMinMax ops, FusedBatchNorm, V2 and V3 (training), Identity and
// Neg, and for ops that were added by RegisterGradientOp. REQUIRES: inputs are further than delta
// from points where the op is not differentiable
::testing::AssertionResult CheckGradient(const OpTester& op, const GradientOptions& options = {});
::testing::AssertionResult CheckGradient(absl::string_view op, const std::vector<Tensor>& inputs,
                                         const GradientOptions& options = {});

// A function of tensors. Adds its ops to `scope`.
using GraphFunction = std::function<OutputList(const Scope& scope, const OutputList& xs)>;

// Succeeds if the gradients of AddSymbolicGradients agree with differences at these values. Checks
// all float or double outputs with respect to all float or double inputs, and second-order
// gradients if the options request it. Use double if kernels exist for it: float differences have
// only three digits. For second order, the step is 10 times as large, and a max_error of 0 is 30
// times as large. REQUIRES: as CheckGradient.
//
//   EXPECT_TRUE(CheckGradients(OpTester("Tanh").Input<double>({-1, 0.5})));
//   const auto layer = [](const Scope& s, const OutputList& x) -> OutputList {
//     return {ops::Tanh(s, ops::MatMul(s, x[0], x[1]))};
//   };
//   GradientOptions options;
//   options.second_order = true;
//   EXPECT_TRUE(CheckGradients(layer, {inputs, weights}, options));
::testing::AssertionResult CheckGradients(const GraphFunction& function,
                                          const std::vector<Tensor>& inputs,
                                          const GradientOptions& options = {});
::testing::AssertionResult CheckGradients(const OpTester& op, const GradientOptions& options = {});

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTING_GRADIENT_CHECKER_H_
