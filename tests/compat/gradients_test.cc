// Tests of symbolic gradients with TensorFlow's names.
#include "tensorflow/cc/framework/gradients.h"

#include <vector>

#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/framework/grad_op_registry.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/test.h"

namespace tensorflow {
namespace {

using namespace ops;  // NOLINT(google-build-using-namespace)

Status DoubledGrad(const Scope& scope, const Operation& op, const std::vector<Output>& grad_inputs,
                   std::vector<Output>* grad_outputs) {
  (void)op;
  grad_outputs->push_back(Mul(scope, grad_inputs[0], 2.0f));
  return scope.status();
}
REGISTER_GRADIENT_OP("Floor", DoubledGrad);
REGISTER_NO_GRADIENT_OP("Ceil");

TEST(Gradients, DifferentiatesAProduct) {
  Scope scope = Scope::NewRootScope();
  const auto x = Const(scope, {{1.f, 2.f}, {3.f, 4.f}});
  const auto y = MatMul(scope, x, x);
  std::vector<Output> grad_outputs;
  TF_ASSERT_OK(AddSymbolicGradients(scope, {y}, {x}, {Const(scope, {{1.f, 1.f}, {1.f, 1.f}})},
                                    &grad_outputs));
  ClientSession session(scope);
  std::vector<Tensor> outputs;
  TF_ASSERT_OK(session.Run({grad_outputs[0]}, &outputs));
  test::ExpectTensorEqual<float>(outputs[0], test::AsTensor<float>({7, 11, 9, 13}, {2, 2}));
}

TEST(Gradients, UsesRegisteredFunctions) {
  Scope scope = Scope::NewRootScope();
  const auto x = Const(scope, 1.5f);
  std::vector<Output> grad_outputs;
  TF_ASSERT_OK(AddSymbolicGradients(scope, {Floor(scope, x)}, {x}, &grad_outputs));
  ClientSession session(scope);
  std::vector<Tensor> outputs;
  TF_ASSERT_OK(session.Run({grad_outputs[0]}, &outputs));
  test::ExpectTensorEqual<float>(outputs[0], test::AsScalar(2.f));
  TF_ASSERT_OK(AddSymbolicGradients(scope, {Ceil(scope, x)}, {x}, &grad_outputs));
  EXPECT_EQ(grad_outputs[0], NoGradient());

  GradFunc function;
  TF_ASSERT_OK(GradOpRegistry::Global()->Lookup("Floor", &function));
  EXPECT_TRUE(function != nullptr);
  TF_ASSERT_OK(GradOpRegistry::Global()->Lookup("Ceil", &function));
  EXPECT_TRUE(function == nullptr);
  EXPECT_EQ(GradOpRegistry::Global()->Lookup("NoSuchOp", &function).code(), error::NOT_FOUND);
}

TEST(Gradients, DifferentiatesIntegers) {
  const Scope scope = Scope::NewRootScope();
  const auto x = Const(scope, {{2}});
  const auto y = MatMul(scope, x, Const(scope, {{3}}));
  const auto z = Const(scope.WithOpName("z"), 1);
  std::vector<Output> grad_outputs;
  TF_ASSERT_OK(AddSymbolicGradients(scope, {y}, {x}, {Const(scope, {{5}})}, &grad_outputs));
  std::vector<Tensor> outputs;
  TF_ASSERT_OK(ClientSession(scope).Run({grad_outputs[0]}, &outputs));
  test::ExpectTensorEqual<int>(outputs[0], test::AsTensor<int>({15}, {1, 1}));
  const Status status = AddSymbolicGradients(scope, {y}, {z}, &grad_outputs);
  EXPECT_EQ(status.code(), error::INVALID_ARGUMENT);
  EXPECT_EQ(status.message(),
            "Cannot compute the partial derivative for node 'z' as it's unreachable from the "
            "output node(s).");
}

// Programs may know the names of a graph with gradients, so they are the same as in TensorFlow.
TEST(Gradients, NamesNodesLikeTheScope) {
  const Scope scope = Scope::NewRootScope();
  const auto x = Placeholder(scope, DT_FLOAT);
  const auto y = Neg(scope, x);
  std::vector<Output> grad_outputs;
  TF_ASSERT_OK(AddSymbolicGradients(scope, {y}, {x}, &grad_outputs));
  EXPECT_EQ(grad_outputs[0].node()->name(), "Neg_1");
}

}  // namespace
}  // namespace tensorflow
