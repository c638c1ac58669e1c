// test::CallGradFunction: calls the gradient function of an op, for tests.
#ifndef GRADFLOW_COMPAT_CC_GRADIENTS_GRAD_TESTUTIL_H_
#define GRADFLOW_COMPAT_CC_GRADIENTS_GRAD_TESTUTIL_H_

#include <vector>

#include "tensorflow/cc/framework/grad_op_registry.h"
#include "tensorflow/cc/framework/ops.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace test {

// Adds the gradient of `op` to the graph. Stores the gradients of its inputs in *grad_outputs.
inline Status CallGradFunction(const Scope& scope, const Operation& op,
                               const std::vector<Output>& grad_inputs,
                               std::vector<Output>* grad_outputs) {
  ops::GradFunc fn;
  TF_RETURN_IF_ERROR(
      ops::GradOpRegistry::Global()->Lookup(std::string(op.node()->type_string()), &fn));
  if (fn == nullptr) {
    return errors::NotFound("op '", op.node()->type_string(), "' has no gradient");
  }
  TF_RETURN_IF_ERROR(fn(scope, op, grad_inputs, grad_outputs));
  return scope.status();
}

}  // namespace test
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CC_GRADIENTS_GRAD_TESTUTIL_H_
