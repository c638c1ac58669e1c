// CheckGradients: checks AddSymbolicGradients for any op or function.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/gradients/gradients.h"
#include "gradflow/graph/const_op.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/node.h"
#include "gradflow/ops/array_ops.h"
#include "gradflow/ops/math_ops.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/testing/gradient_checker.h"
#include "gradflow/testing/gradient_defaults.h"

namespace gradflow {
namespace testing {
namespace {

bool AnyFloat(const OutputList& xs) {
  return std::any_of(xs.begin(), xs.end(),
                     [](const Output& x) { return BaseType(x.type()) == DT_FLOAT; });
}

bool IsCompared(DataType dtype) { return dtype == DT_FLOAT || dtype == DT_DOUBLE; }

// Returns a GradientFn that replaces missing gradients with zeros, and stores errors in *status.
GradientFn GradientOf(const OutputList& xs, const OutputList& ys, absl::Status* status) {
  return [=](const Scope& scope, const OutputList& dys) {
    OutputList dxs;
    const absl::Status added = AddSymbolicGradients(scope, ys, xs, dys, &dxs);
    if (!added.ok()) {
      *status = added;
      return OutputList();
    }
    for (size_t i = 0; i < dxs.size(); ++i) {
      if (IsNoGradient(dxs[i])) dxs[i] = ops::ZerosLike(scope, xs[i]);
    }
    return dxs;
  };
}

::testing::AssertionResult Compare(const Scope& scope, const OutputList& xs,
                                   const std::vector<Tensor>& values, const OutputList& ys,
                                   const char* what, double factor,
                                   const GradientOptions& options) {
  absl::Status status;
  const absl::StatusOr<GradientError> error =
      FindGradientError(scope, xs, values, ys, GradientOf(xs, ys, &status), options);
  if (!status.ok()) return ::testing::AssertionFailure() << what << ": " << status;
  if (!error.ok()) return ::testing::AssertionFailure() << what << ": " << error.status();
  double allowed = options.max_error;
  if (allowed == 0) allowed = factor * DefaultMaxError(AnyFloat(xs));
  allowed *= std::max(1.0, error->largest);
  if (error->max_error <= allowed) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << what << ": " << error->DebugString() << ", allowed " << allowed;
}

// Adds the gradients of a weighted sum of the elements of all ys. The elements of a y have
// different weights, so that no term hides another term.
absl::StatusOr<OutputList> WeightedGradients(const Scope& scope, const OutputList& xs,
                                             const OutputList& ys) {
  std::vector<Output> weights;
  for (const Output& y : ys) {
    const Output size = ops::Cast(scope, ops::Size(scope, y), DT_DOUBLE);
    const Output numbers = ops::Cos(scope, ops::Range(scope, 0.0, size, 1.0));
    weights.push_back(
        ops::Cast(scope, ops::Reshape(scope, numbers, ops::Shape(scope, y)), BaseType(y.type())));
  }
  OutputList gradients;
  GRADFLOW_RETURN_IF_ERROR(AddSymbolicGradients(scope, ys, xs, weights, &gradients));
  gradients.erase(std::remove_if(gradients.begin(), gradients.end(), IsNoGradient),
                  gradients.end());
  return gradients;
}

::testing::AssertionResult Check(const Scope& scope, const OutputList& inputs,
                                 const std::vector<Tensor>& values, const OutputList& outputs,
                                 const GradientOptions& options) {
  if (!scope.ok()) return ::testing::AssertionFailure() << scope.status();
  OutputList xs;
  std::vector<Tensor> x_values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!IsCompared(BaseType(inputs[i].type()))) continue;
    xs.push_back(inputs[i]);
    x_values.push_back(values[i]);
  }
  OutputList ys;
  for (const Output& y : outputs) {
    if (IsCompared(BaseType(y.type()))) ys.push_back(y);
  }
  if (xs.empty() || ys.empty()) {
    return ::testing::AssertionFailure() << "expected inputs and outputs of float or double, found "
                                         << xs.size() << " and " << ys.size();
  }
  const ::testing::AssertionResult first =
      Compare(scope, xs, x_values, ys, "first order", 1, options);
  if (!first || !options.second_order) return first;
  const absl::StatusOr<OutputList> gradients = WeightedGradients(scope, xs, ys);
  if (!gradients.ok()) {
    return ::testing::AssertionFailure() << "second order: " << gradients.status();
  }
  if (gradients->empty()) return first;
  GradientOptions second = options;
  second.delta = 10 * (options.delta != 0 ? options.delta : DefaultDelta(AnyFloat(xs)));
  return Compare(scope, xs, x_values, *gradients, "second order", 30, second);
}

}  // namespace

::testing::AssertionResult CheckGradients(const GraphFunction& function,
                                          const std::vector<Tensor>& inputs,
                                          const GradientOptions& options) {
  const Scope scope = Scope::NewRootScope();
  OutputList xs;
  for (const Tensor& input : inputs) {
    if (!IsCompared(input.dtype())) {
      xs.push_back(ops::Const(scope, input));
    } else {
      xs.push_back(ops::Placeholder(scope, input.dtype(), ops::Placeholder::Shape(input.shape())));
    }
  }
  return Check(scope, xs, inputs, function(scope, xs), options);
}

::testing::AssertionResult CheckGradients(const OpTester& op, const GradientOptions& options) {
  OpTester tester = op;
  if (const absl::Status status = tester.Finalize(); !status.ok()) {
    return ::testing::AssertionFailure() << status;
  }
  std::vector<Tensor> inputs;
  for (int i = 0; i < tester.num_inputs(); ++i) inputs.push_back(tester.input(i));
  const auto function = [&](const Scope& scope, const OutputList& xs) -> OutputList {
    NodeDef def = tester.node();
    def.set_name("op");
    def.clear_input();
    for (const Output& x : xs) def.add_input(x.name());
    const absl::StatusOr<const Node*> node = scope.graph()->AddNode(std::move(def));
    if (!node.ok()) {
      scope.UpdateStatus(node.status());
      return {};
    }
    OutputList ys;
    for (int i = 0; i < (*node)->num_outputs(); ++i) ys.emplace_back(*node, i);
    return ys;
  };
  return CheckGradients(function, inputs, options);
}

}  // namespace testing
}  // namespace gradflow
