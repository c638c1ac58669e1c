#include <memory>
#include <string>
#include <vector>

#include "gradflow/core/attributes.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/ops/data_flow/run_graph.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Stack, StackPopV2ReturnsWhatStackPushV2PushedLast) {
  const Scope scope = Scope::NewRootScope();
  const Output stack = ops::StackV2(scope, -1, DT_FLOAT);
  const Output first = ops::StackPushV2(scope, stack, 1.f);
  const Output second = ops::StackPushV2(scope.WithControlDependencies(first), stack, 2.f);
  const Output pop = ops::StackPopV2(scope.WithControlDependencies(second), stack, DT_FLOAT);
  const Output pop2 = ops::StackPopV2(scope.WithControlDependencies(pop), stack, DT_FLOAT);
  EXPECT_THAT(RunGraph(scope, {first, pop, pop2}),
              IsOkAndHolds(ElementsAre(TensorEq(AsScalar<float>(1)), TensorEq(AsScalar<float>(2)),
                                       TensorEq(AsScalar<float>(1)))));
}

TEST(Stack, HasItsMaximumTypeAndEnd) {
  const Scope scope = Scope::NewRootScope();
  const Output stack = ops::StackV2(scope, 1, DT_FLOAT, ops::StackV2::StackName("s"));
  const Output first = ops::StackPushV2(scope, stack, 1.f);
  const Output second = ops::StackPushV2(scope.WithControlDependencies(first), stack, 2.f);
  const Output pop = ops::StackPopV2(scope, stack, DT_FLOAT);
  const Output wrong_push = ops::StackPushV2(scope, stack, 1);
  const Output wrong_pop = ops::StackPopV2(scope, stack, DT_INT32);
  const Operation close = ops::StackCloseV2(scope, stack);
  const Output late =
      ops::StackPushV2(scope.WithControlDependencies(std::vector<Operation>{close}), stack, 2.f);
  const struct {
    Output fetch;
    const char* error;
  } cases[] = {
      {second, "Stack[s] overflowed its max_size (1)"},
      {pop, "Stack[s] is empty when calling Pop()"},
      {wrong_push, "Must have type float but got int32"},
      {wrong_pop, "Must have type float but got int32"},
      {late, "Stack[s] has already been closed"},
  };
  for (const auto& test : cases) {
    EXPECT_THAT(RunGraph(scope, {test.fetch}), StatusIs(kInvalidArgument, HasSubstr(test.error)));
  }
}

// The handles of the first version are references.
TEST(Stack, FirstVersionWorksLikeSecond) {
  GraphDef graph;
  const auto add = [&](const char* name, const char* op, const std::vector<std::string>& inputs,
                       const char* type_attr) {
    NodeDef* const node = graph.add_node();
    node->set_name(name);
    node->set_op(op);
    for (const std::string& input : inputs) node->add_input(input);
    if (type_attr != nullptr) AddNodeAttr(type_attr, DT_FLOAT, node);
    return node;
  };
  add("stack", "Stack", {}, "elem_type");
  AddNodeAttr("value", AsScalar<float>(3), add("x", "Const", {}, "dtype"));
  add("push", "StackPush", {"stack", "x"}, "T");
  add("pop", "StackPop", {"stack", "^push"}, "elem_type");
  add("close", "StackClose", {"stack", "^pop"}, nullptr);
  add("late", "StackPop", {"stack", "^close"}, "elem_type");
  const std::unique_ptr<Session> session = *Session::Make(SessionOptions());
  ASSERT_THAT(session->Create(graph), IsOk());
  std::vector<Tensor> outputs;
  ASSERT_THAT(session->Run({}, {"pop"}, {}, &outputs), IsOk());
  EXPECT_THAT(outputs, ElementsAre(TensorEq(AsScalar<float>(3))));
  EXPECT_THAT(session->Run({}, {"late"}, {}, &outputs),
              StatusIs(kInvalidArgument, HasSubstr("has already been closed")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
