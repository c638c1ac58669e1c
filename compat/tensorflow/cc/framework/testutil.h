// test::GetTensor: evaluates outputs of a scope's graph, for tests.
#ifndef GRADFLOW_COMPAT_CC_FRAMEWORK_TESTUTIL_H_
#define GRADFLOW_COMPAT_CC_FRAMEWORK_TESTUTIL_H_

#include <vector>

#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/framework/ops.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/lib/core/status_test_util.h"

namespace tensorflow {
namespace test {

// Evaluate outputs after a run of `assign_vars`, which may give variables their initial values.
// Errors fail the test.
inline void GetTensors(const Scope& scope, const std::vector<Output>& assign_vars,
                       const OutputList& tensors, std::vector<Tensor>* out) {
  const ClientSession session(scope);
  if (!assign_vars.empty()) {
    TF_ASSERT_OK(session.Run(assign_vars, nullptr));
  }
  TF_ASSERT_OK(session.Run(tensors, out));
}
inline void GetTensors(const Scope& scope, OutputList tensors, std::vector<Tensor>* out) {
  GetTensors(scope, {}, tensors, out);
}
inline void GetTensor(const Scope& scope, const std::vector<Output>& assign_vars, Output tensor,
                      Tensor* out) {
  std::vector<Tensor> outputs;
  GetTensors(scope, assign_vars, {tensor}, &outputs);
  if (!outputs.empty()) *out = outputs[0];
}
inline void GetTensor(const Scope& scope, Output tensor, Tensor* out) {
  GetTensor(scope, {}, tensor, out);
}

}  // namespace test
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CC_FRAMEWORK_TESTUTIL_H_
