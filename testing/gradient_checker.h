// Compares gradients with central differences, as TensorFlow's gradient checker does.
//
// gradflow does not differentiate graphs by itself: what TensorFlow's AddSymbolicGradients would
// add is given as a function that adds the gradient graph.
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
// Ops whose gradient op is known need one call:
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

// Adds the gradients of xs to `scope`, given those of ys (placeholders): for each x the sum over
// all ys of dy * (dy/dx), of the shape of x.
using GradientFn = std::function<OutputList(const Scope& scope, const OutputList& dys)>;

// How gradients are compared with differences.
struct GradientOptions {
  // What is added to an element of x, and taken off it; 0 for 1e-2 with float and 1e-5 with double.
  // A difference of two results has the rounding errors of both, so that the error of a central
  // difference is about (rounding error of y) / delta + delta^2 / 6 * (third derivative).
  double delta = 0;
  // What CheckGradient allows |gradient - difference| / max(1, largest element of the Jacobian) to
  // be; 0 for 2e-3 with float and 1e-8 with double.
  double max_error = 0;
};

// Where a gradient is furthest off.
struct GradientError {
  // |analytic - numeric|; NaN if either is.
  double max_error = 0;
  // The largest absolute value among the finite elements of both Jacobians.
  double largest = 0;
  // Element `y_element` of ys[y] by element `x_element` of xs[x].
  int y = 0;
  int64_t y_element = 0;
  int x = 0;
  int64_t x_element = 0;
  double analytic = 0;
  double numeric = 0;

  // "d y0[3] / d x1[0] is 0.5 by the gradient, 0.25 by differences (error 0.25)"
  std::string DebugString() const;
};

// The Jacobian of ys by xs: what the gradient graph gives for each unit vector in the place of dys,
// against central differences about `x_values`. The xs are float or double and are fed, so they may
// be placeholders or anything else; ys are float or double. Takes a run for each element of ys, and
// two for each element of xs. INVALID_ARGUMENT if types, or the shapes of what the gradient graph
// gives, do not fit; otherwise what a run says.
absl::StatusOr<GradientError> FindGradientError(const Scope& scope, const OutputList& xs,
                                                const std::vector<Tensor>& x_values,
                                                const OutputList& ys, const GradientFn& gradient,
                                                const GradientOptions& options = {});

// As TensorFlow's, but for `gradient`: *max_error gets the largest absolute error. The xs have
// random values in [-1, 1).
absl::Status ComputeGradientError(const Scope& scope, const OutputList& xs,
                                  const std::vector<TensorShape>& x_shapes, const OutputList& ys,
                                  const std::vector<TensorShape>& y_shapes,
                                  const GradientFn& gradient, double* max_error);
absl::Status ComputeGradientError(const Scope& scope, const Output& x, const Tensor& x_init_value,
                                  const Output& y, const TensorShape& y_shape,
                                  const GradientFn& gradient, double* max_error);

// The same by the gradient ops that are known (see CheckGradient), where every node between xs and
// ys has one. Otherwise UNIMPLEMENTED, naming the node; the scope stays good. The differences are
// those of the graph as it is: of fake quantisation with its steps, which its gradient leaves out.
absl::Status ComputeGradientError(const Scope& scope, const OutputList& xs,
                                  const std::vector<TensorShape>& x_shapes, const OutputList& ys,
                                  const std::vector<TensorShape>& y_shapes, double* max_error);
absl::Status ComputeGradientError(const Scope& scope, const Output& x, const Tensor& x_init_value,
                                  const Output& y, const TensorShape& y_shape, double* max_error);

// How an op's gradient op is called. Names are those of arguments in the op definitions.
struct GradientOp {
  // The op that computes the gradient.
  std::string op;
  // For each input of the gradient op: "d:y" for the gradient of output y, or an input or output of
  // the op itself, inputs first where both have a name.
  std::vector<std::string> inputs;
  // For each output of the gradient op, from the first, the input that it is the gradient of.
  std::vector<std::string> outputs;
  // The op rounds, and its gradient takes that for the identity: differences are taken of the
  // op with its bounds, found by running it, in place of rounding.
  bool straight_through = false;
};

// Makes CheckGradient and ComputeGradientError know one more op, or know it otherwise. Attributes
// of the gradient op that the op has, too, are those of the op. Not thread-safe.
void RegisterGradientOp(absl::string_view op, const GradientOp& gradient);

// Whether the gradient op of `op` agrees with differences of it, at these inputs. Known are the
// FakeQuantWithMinMax ops, FusedBatchNorm, V2 and V3 (training), Identity and Neg, and what
// RegisterGradientOp has added. Inputs must be off the places where an op has no derivative by more
// than delta.
::testing::AssertionResult CheckGradient(const OpTester& op, const GradientOptions& options = {});
::testing::AssertionResult CheckGradient(absl::string_view op, const std::vector<Tensor>& inputs,
                                         const GradientOptions& options = {});

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTING_GRADIENT_CHECKER_H_
