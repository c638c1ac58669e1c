#include "gradflow/gradients/derivatives.h"

#include <cstdint>

#include "gradflow/core/call_safely.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/core/status.h"
#include "gradflow/gradients/gradient_helpers.h"
#include "gradflow/graph/node.h"
#include "gradflow/ops/array_ops.h"
#include "gradflow/ops/math_ops.h"

namespace gradflow {
namespace {

constexpr int64_t kMaxRows = 65536;

absl::Status CheckTensors(const Scope& scope, absl::string_view what,
                          const std::vector<Output>& outputs) {
  GRADFLOW_RETURN_IF_ERROR(scope.status());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Node* const node = outputs[i].node();
    if (node != nullptr && &node->graph() == scope.graph() && outputs[i].index() >= 0 &&
        outputs[i].index() < node->num_outputs()) {
      continue;
    }
    return errors::InvalidArgument(what, " ", i, " is not a tensor of the scope's graph");
  }
  return absl::OkStatus();
}

absl::Status CheckVectors(const Scope& scope, const std::vector<Output>& xs,
                          const std::vector<Output>& vs) {
  GRADFLOW_RETURN_IF_ERROR(CheckTensors(scope, "input", xs));
  GRADFLOW_RETURN_IF_ERROR(CheckTensors(scope, "vector", vs));
  if (xs.size() != vs.size()) {
    return errors::InvalidArgument("expected one vector for each of ", xs.size(), " inputs, found ",
                                   vs.size());
  }
  for (size_t i = 0; i < xs.size(); ++i) {
    if (BaseType(xs[i].type()) == BaseType(vs[i].type())) continue;
    return errors::InvalidArgument("vector ", i, " has type ", DataTypeString(vs[i].type()),
                                   ", expected ", DataTypeString(xs[i].type()));
  }
  return absl::OkStatus();
}

absl::Status AddJacobian(const Scope& scope, const Output& y, const Output& x, Output* jacobian,
                         const GradientBuildOptions& options) {
  GRADFLOW_RETURN_IF_ERROR(CheckTensors(scope, "output", {y}));
  GRADFLOW_RETURN_IF_ERROR(CheckTensors(scope, "input", {x}));
  TensorShape shape;
  if (!y.node()->output_shape(y.index()).AsTensorShape(&shape)) {
    return errors::InvalidArgument("the shape of the output must be known, but is ",
                                   y.node()->output_shape(y.index()).DebugString());
  }
  const int64_t n = shape.num_elements();
  if (n > kMaxRows) {
    return errors::InvalidArgument("the output must have at most ", kMaxRows, " elements, but has ",
                                   n);
  }
  const Scope sub_scope = scope.NewSubScope("jacobian");
  const Output y_shape = ops::Shape(sub_scope, y);
  const Output one = gradients::Scalar(sub_scope, BaseType(y.type()), 1);
  const Output zero = gradients::Scalar(sub_scope, BaseType(y.type()), 0);
  std::vector<Output> rows;
  for (int64_t i = 0; i < n; ++i) {
    const Output flat = ops::OneHot(sub_scope, i, static_cast<int32_t>(n), one, zero);
    const Output dy = ops::Reshape(sub_scope, flat, y_shape);
    GRADFLOW_ASSIGN_OR_RETURN(
        const std::vector<Output> dx,
        gradients::AddGradientsIn(sub_scope.NewSubScope("row"), {y}, {x}, {dy}, options));
    if (IsNoGradient(dx[0])) {
      *jacobian = NoGradient();
      return absl::OkStatus();
    }
    rows.push_back(dx[0]);
  }
  const Output all_shape = ops::ConcatV2(sub_scope, {y_shape, ops::Shape(sub_scope, x)}, 0);
  // If y has no elements, no gradient shows whether y depends on x. The Jacobian is then empty.
  const Output all = n > 0 ? Output(ops::Pack(sub_scope, rows))
                           : Output(ops::Fill(sub_scope, all_shape,
                                              gradients::Scalar(sub_scope, BaseType(x.type()), 0)));
  const Output result = ops::Reshape(sub_scope, all, all_shape);
  GRADFLOW_RETURN_IF_ERROR(sub_scope.status());
  *jacobian = result;
  return absl::OkStatus();
}

// Differentiates all `gradients` except NoGradient(). vs[i] is the gradient of gradients[i].
absl::Status DifferentiateAgain(const Scope& scope, const std::vector<Output>& gradients,
                                const std::vector<Output>& inputs, const std::vector<Output>& vs,
                                std::vector<Output>* products,
                                const GradientBuildOptions& options) {
  std::vector<Output> some_gradients;
  std::vector<Output> some_vs;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (IsNoGradient(gradients[i])) continue;
    some_gradients.push_back(gradients[i]);
    some_vs.push_back(vs[i]);
  }
  return AddSymbolicGradients(scope, some_gradients, inputs, some_vs, products, options);
}

absl::Status AddJacobianVectorProduct(const Scope& scope, const std::vector<Output>& ys,
                                      const std::vector<Output>& xs, const std::vector<Output>& vs,
                                      std::vector<Output>* products,
                                      const GradientBuildOptions& options) {
  GRADFLOW_RETURN_IF_ERROR(CheckTensors(scope, "output", ys));
  GRADFLOW_RETURN_IF_ERROR(CheckVectors(scope, xs, vs));
  // The values of `us` do not matter, because gradients are linear in them.
  std::vector<Output> us;
  for (const Output& y : ys) us.push_back(ops::ZerosLike(scope, y));
  std::vector<Output> gradients;
  GRADFLOW_RETURN_IF_ERROR(AddSymbolicGradients(scope, ys, xs, us, &gradients, options));
  return DifferentiateAgain(scope, gradients, us, vs, products, options);
}

absl::Status AddHessianVectorProduct(const Scope& scope, const Output& loss,
                                     const std::vector<Output>& xs, const std::vector<Output>& vs,
                                     std::vector<Output>* products,
                                     const GradientBuildOptions& options) {
  GRADFLOW_RETURN_IF_ERROR(CheckTensors(scope, "output", {loss}));
  GRADFLOW_RETURN_IF_ERROR(CheckVectors(scope, xs, vs));
  std::vector<Output> gradients;
  GRADFLOW_RETURN_IF_ERROR(AddSymbolicGradients(scope, {loss}, xs, &gradients, options));
  return DifferentiateAgain(scope, gradients, xs, vs, products, options);
}

}  // namespace

absl::Status Jacobian(const Scope& scope, const Output& y, const Output& x, Output* jacobian,
                      const GradientBuildOptions& options) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(jacobian, "Jacobian", "jacobian"));
  return CallSafely([&] { return AddJacobian(scope, y, x, jacobian, options); });
}

absl::Status JacobianVectorProduct(const Scope& scope, const std::vector<Output>& ys,
                                   const std::vector<Output>& xs, const std::vector<Output>& vs,
                                   std::vector<Output>* products,
                                   const GradientBuildOptions& options) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(products, "JacobianVectorProduct", "products"));
  return CallSafely([&] { return AddJacobianVectorProduct(scope, ys, xs, vs, products, options); });
}

absl::Status HessianVectorProduct(const Scope& scope, const Output& loss,
                                  const std::vector<Output>& xs, const std::vector<Output>& vs,
                                  std::vector<Output>* products,
                                  const GradientBuildOptions& options) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(products, "HessianVectorProduct", "products"));
  return CallSafely(
      [&] { return AddHessianVectorProduct(scope, loss, xs, vs, products, options); });
}

}  // namespace gradflow
