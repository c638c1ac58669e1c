// Tests of gradients with respect to variables: "ReadVariableOp", "ResourceGather",
// "ResourceGatherNd".
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "gradflow/gradients/gradients.h"
#include "gradflow/graph/scope.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"

namespace gradflow::testing {
namespace {

// Returns the gradient of the sum of y with respect to x, after running `init`.
Tensor GradientAfter(const Scope& scope, const Operation& init, const Output& y, const Output& x) {
  std::vector<Output> gradients;
  GRADFLOW_EXPECT_OK(AddSymbolicGradients(scope, {y}, {x}, &gradients));
  if (gradients.empty() || IsNoGradient(gradients[0])) return Tensor();
  ClientSession session(scope);
  GRADFLOW_EXPECT_OK(session.Run({}, {}, {init}, nullptr));
  std::vector<Tensor> outputs;
  GRADFLOW_EXPECT_OK(session.Run({gradients[0]}, &outputs));
  return outputs.empty() ? Tensor() : outputs[0];
}

TEST(VariableGradients, SumOverAllReads) {
  const Scope s = Scope::NewRootScope();
  const auto w = ops::VarHandleOp(s, DT_FLOAT, {2});
  const auto init = ops::AssignVariableOp(s, w, {3.f, 5.f});
  const Output first = ops::ReadVariableOp(s, w, DT_FLOAT);
  const Output second = ops::ReadVariableOp(s, w, DT_FLOAT);
  const Output y = ops::Mul(s, first, second);
  EXPECT_THAT(GradientAfter(s, init, y, first), TensorEq(AsTensor<float>({3, 5})));
  EXPECT_THAT(GradientAfter(s, init, y, w), TensorEq(AsTensor<float>({6, 10})));
}

TEST(VariableGradients, ReachReferences) {
  const Scope s = Scope::NewRootScope();
  const auto w = ops::Variable(s, {2}, DT_FLOAT);
  const auto init = ops::Assign(s, w, {3.f, 5.f});
  const Output y = ops::Mul(s, w, ops::Square(s, ops::RefIdentity(s, w)));
  EXPECT_THAT(GradientAfter(s, init.operation, y, w), TensorEq(AsTensor<float>({27, 75})));
}

TEST(VariableGradients, ReachGatheredRows) {
  const Scope s = Scope::NewRootScope();
  const auto w = ops::VarHandleOp(s, DT_FLOAT, {3, 2});
  const auto init = ops::AssignVariableOp(s, w, ops::Const(s, 2.f, {3, 2}));
  const Output gathered = ops::ResourceGather(s, w, {{2, 0}, {2, 2}}, DT_FLOAT);
  EXPECT_THAT(GradientAfter(s, init, ops::Square(s, gathered), w),
              TensorEq(AsTensor<float>({4, 4, 0, 0, 12, 12}, {3, 2})));
  const Output elements = ops::ResourceGatherNd(s, w, {{2, 1}, {0, 0}, {2, 1}}, DT_FLOAT);
  EXPECT_THAT(GradientAfter(s, init, elements, w),
              TensorEq(AsTensor<float>({1, 0, 0, 0, 0, 2}, {3, 2})));
}

TEST(VariableGradients, ReachGatheredRowsOfBatches) {
  for (const int batch_dims : {1, -1}) {
    const Scope s = Scope::NewRootScope();
    const auto w = ops::VarHandleOp(s, DT_FLOAT, {2, 3, 2});
    const auto init = ops::AssignVariableOp(s, w, ops::Const(s, 2.f, {2, 3, 2}));
    const Output gathered = ops::ResourceGather(s, w, {{2, 2}, {0, 1}}, DT_FLOAT,
                                                ops::ResourceGather::BatchDims(batch_dims));
    EXPECT_THAT(GradientAfter(s, init, ops::Square(s, gathered), w),
                TensorEq(AsTensor<float>({0, 0, 0, 0, 8, 8, 4, 4, 4, 4, 0, 0}, {2, 3, 2})));
  }
}

// Differentiates the square of a read twice.
TEST(VariableGradients, HaveGradients) {
  const Scope s = Scope::NewRootScope();
  const auto w = ops::VarHandleOp(s, DT_FLOAT, {3});
  const auto init = ops::AssignVariableOp(s, w, {3.f, 5.f, -1.f});
  const auto ref = ops::Variable(s, {3}, DT_FLOAT);
  const auto ref_init = ops::Assign(s, ref, {3.f, 5.f, -1.f});
  const struct {
    Output y;
    Output x;
    Operation init;
    std::vector<float> second;
  } cases[] = {
      {ops::ReadVariableOp(s, w, DT_FLOAT), w, init, {18, 30, -6}},
      {ops::ResourceGather(s, w, {2, 2, 0}, DT_FLOAT), w, init, {18, 0, -12}},
      {ops::ResourceGatherNd(s, w, {{2}, {2}, {0}}, DT_FLOAT), w, init, {18, 0, -12}},
      {ops::RefIdentity(s, ref), ref, ref_init.operation, {18, 30, -6}},
  };
  for (const auto& c : cases) {
    std::vector<Output> first;
    GRADFLOW_ASSERT_OK(
        AddSymbolicGradients(s, {ops::Mul(s, c.y, ops::Square(s, c.y))}, {c.x}, &first));
    EXPECT_THAT(GradientAfter(s, c.init, first[0], c.x), TensorEq(AsTensor<float>(c.second)));
  }
}

// An assignment has no gradient.
TEST(VariableGradients, EndAtAssignments) {
  const Scope s = Scope::NewRootScope();
  const auto w = ops::Variable(s, {}, DT_FLOAT);
  const Output x = ops::Const(s, 3.f);
  const auto assigned = ops::Assign(s, w, x);
  std::vector<Output> gradients;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(s, {ops::Square(s, assigned)}, {x}, &gradients));
  EXPECT_TRUE(IsNoGradient(gradients[0]));
}

}  // namespace
}  // namespace gradflow::testing
