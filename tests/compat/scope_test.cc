// Tests of scopes: names, control dependencies, colocation, devices and errors.
#include "tensorflow/cc/framework/scope.h"

#include <string>
#include <vector>

#include "tensorflow/cc/framework/ops.h"
#include "tensorflow/cc/framework/testutil.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/test.h"

namespace tensorflow {
namespace ops {
namespace {

Output Linear(const Scope& scope, Input x, Input w, Input b) {
  auto cop_scopes = scope.GetCompositeOpScopes("linear");
  auto m = MatMul(cop_scopes.child, x, w);
  return Add(cop_scopes.last, m, b);
}

void GetColocationConstraints(const Output& tensor, std::vector<string>* constraints) {
  constraints->clear();
  TF_EXPECT_OK(GetNodeAttr(tensor.op().node()->attrs(), kColocationAttrName, constraints));
}

std::vector<string> ControlInputs(const Output& output) {
  std::vector<string> names;
  for (const Edge* edge : output.node()->in_edges()) {
    if (edge->IsControlEdge()) names.push_back(edge->src()->name());
  }
  return names;
}

TEST(ScopeTest, MakesUniqueNames) {
  Scope root = Scope::NewRootScope();
  EXPECT_EQ(Const(root.WithOpName("a"), 1.f).node()->name(), "a");
  EXPECT_EQ(Const(root.WithOpName("a"), 1.f).node()->name(), "a_1");
  EXPECT_EQ(Const(root.WithOpName("layer", 7), 1.f).node()->name(), "layer7");
  EXPECT_EQ(Const(root, 1.f).node()->name(), "Const");
  EXPECT_EQ(Const(root, 1.f).node()->name(), "Const_1");
  TF_EXPECT_OK(root.status());
}

TEST(ScopeTest, SubScopesNest) {
  Scope root = Scope::NewRootScope();
  Scope conv = root.NewSubScope("conv");
  Scope inner = conv.NewSubScope("inner");
  EXPECT_EQ(Const(inner.WithOpName("w"), 1.f).node()->name(), "conv/inner/w");
  EXPECT_EQ(Const(root.NewSubScope("conv").WithOpName("w"), 1.f).node()->name(), "conv_1/w");
  EXPECT_EQ(root.GetUniqueNameForOp("w"), "w");
  EXPECT_EQ(root.GetUniqueNameForOp("w"), "w_1");
}

TEST(ScopeTest, NamesCompositeOps) {
  Scope root = Scope::NewRootScope();
  auto x = Const(root, {{1.f, 2.f}});
  auto w = Const(root, {{3.f}, {4.f}});
  auto y = Linear(root.WithOpName("fc"), x, w, 5.f);
  TF_ASSERT_OK(root.status());
  EXPECT_EQ(y.node()->name(), "fc");
  Tensor value;
  test::GetTensor(root, y, &value);
  test::ExpectTensorEqual<float>(value, test::AsTensor<float>({16.f}, {1, 1}));
}

TEST(ScopeTest, AddsControlDependencies) {
  Scope root = Scope::NewRootScope();
  auto first = Const(root.WithOpName("first"), 1.f);
  auto second = Const(root.WithOpName("second"), 2.f);
  Scope with_control_deps =
      root.WithControlDependencies(std::vector<Operation>{first.op(), second.op()});
  auto sum = Add(with_control_deps, 1.f, 2.f);
  EXPECT_EQ(ControlInputs(sum.z), (std::vector<string>{"first", "second"}));
  Scope no_control_deps = with_control_deps.WithNoControlDependencies();
  auto difference = Sub(no_control_deps, 3.f, 2.f);
  EXPECT_TRUE(ControlInputs(difference.z).empty());
  EXPECT_EQ(with_control_deps.control_deps().size(), 2u);
  TF_EXPECT_OK(root.status());
}

TEST(ScopeTest, ColocatesNodes) {
  Scope root = Scope::NewRootScope();
  auto c1 = Const(root.WithOpName("c1"), 1);
  auto c2 = Const(root.WithOpName("c2").ColocateWith(c1), 2);
  std::vector<string> constraints;
  GetColocationConstraints(c2, &constraints);
  ASSERT_EQ(constraints.size(), 1u);
  EXPECT_EQ(constraints[0], "loc:@c1");

  auto c3 = Const(root.WithOpName("c3").ColocateWith(c2.op()), 3);
  GetColocationConstraints(c3, &constraints);
  EXPECT_EQ(constraints, (std::vector<string>{"loc:@c1"}));

  Scope colocated = root.ColocateWith(c1);
  auto free = Const(colocated.ClearColocation(), 4);
  EXPECT_FALSE(GetNodeAttr(free.op().node()->attrs(), kColocationAttrName, &constraints).ok());
  EXPECT_FALSE(HasNodeAttr(free.node()->def(), kColocationAttrName));
}

TEST(ScopeTest, SetsDevices) {
  Scope root = Scope::NewRootScope();
  auto c = Const(root.WithDevice("/device:CPU:0"), 1);
  EXPECT_EQ(c.node()->requested_device(), "/device:CPU:0");
  EXPECT_EQ(Const(root, 1).node()->requested_device(), "");
}

TEST(ScopeTest, MakesTypedConstants) {
  Scope root = Scope::NewRootScope();
  auto c1 = ops::Const<int>(root, {1, 2});
  EXPECT_EQ(c1.type(), DT_INT32);
  auto c2 = ops::Const<string>(root, {{"this"}, {"is"}, {"a"}, {"constant"}});
  EXPECT_EQ(c2.type(), DT_STRING);
  Tensor text;
  test::GetTensor(root, c2, &text);
  EXPECT_EQ(text.matrix<tstring>()(3, 0), "constant");
}

TEST(ScopeTest, FirstErrorStaysAndNothingIsAddedAfterIt) {
  Scope root = Scope::NewRootScope();
  MatMul(root.WithOpName("bad"), {{1.f}}, {{1.f}, {2.f}});
  EXPECT_FALSE(root.ok());
  EXPECT_EQ(root.status().code(), error::INVALID_ARGUMENT);
  EXPECT_NE(root.status().message().find("'bad' (MatMul)"), string::npos) << root.status();
  auto after = Const(root.WithOpName("after"), 1);
  EXPECT_EQ(after.node(), nullptr);
  GraphDef graph_def;
  EXPECT_EQ(root.ToGraphDef(&graph_def), root.status());

  Scope other = Scope::NewRootScope();
  other.UpdateStatus(errors::Unavailable("mine"));
  EXPECT_TRUE(errors::IsUnavailable(other.NewSubScope("x").status()));
}

// In TensorFlow, Scope has no move constructor, so a moved-from Scope can still be used.
TEST(ScopeTest, CanBeUsedAfterItIsMovedFrom) {
  Scope root = Scope::NewRootScope();
  Scope moved = root.NewSubScope("s");
  Scope taken = std::move(moved);
  EXPECT_TRUE(moved.ok());
  TF_EXPECT_OK(moved.status());
  EXPECT_EQ(Const(moved.WithOpName("a"), 1.f).node()->name(), "s/a");
  EXPECT_EQ(Const(taken.WithOpName("a"), 1.f).node()->name(), "s/a_1");
}

TEST(ScopeTest, ConvertsToAGraph) {
  Scope root = Scope::NewRootScope();
  Const(root.WithOpName("a"), 1);
  Graph graph(OpRegistry::Global());
  TF_ASSERT_OK(root.ToGraph(&graph));
  EXPECT_NE(graph.FindNode("a"), nullptr);
  EXPECT_EQ(root.graph()->num_nodes(), 1);
}

}  // namespace
}  // namespace ops
}  // namespace tensorflow
