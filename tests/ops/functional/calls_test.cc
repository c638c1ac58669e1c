// Tests of ops that call functions: their types, traits and shapes. tests/runtime tests their runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "gradflow/core/attributes.h"
#include "gradflow/core/registry.h"
#include "gradflow/graph/graph.h"
#include "gradflow/ops/functional_ops.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/testing/op_tester.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/testing/constants.h"

namespace gradflow::testing {
namespace {

using ::testing::ElementsAre;

NameAttrList Function(const std::string& name) {
  NameAttrList function;
  function.set_name(name);
  return function;
}

std::string Attr(const Operation& op, const std::string& name) {
  return SummarizeAttrValue(*op.node()->attrs().Find(name));
}

TEST(FunctionalOps, DeclareTheirKindOfCall) {
  const struct {
    const char* op;
    FunctionalOp kind;
    bool is_stateful;
  } cases[] = {
      {"PartitionedCall", FunctionalOp::kCall, false},
      {"StatefulPartitionedCall", FunctionalOp::kCall, true},
      {"If", FunctionalOp::kIf, true},
      {"StatelessIf", FunctionalOp::kIf, false},
      {"Case", FunctionalOp::kCase, true},
      {"StatelessCase", FunctionalOp::kCase, false},
      {"While", FunctionalOp::kWhile, true},
      {"StatelessWhile", FunctionalOp::kWhile, false},
      {"For", FunctionalOp::kFor, false},
      {"_Arg", FunctionalOp::kArg, true},
      {"_DeviceArg", FunctionalOp::kArg, true},
      {"_Retval", FunctionalOp::kRetval, true},
      {"_DeviceRetval", FunctionalOp::kRetval, true},
      {"SymbolicGradient", FunctionalOp::kNone, false},
      {"ToBool", FunctionalOp::kNone, false},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.op);
    const OpRegistration* const op = GlobalRegistry().FindOp(test.op);
    ASSERT_NE(op, nullptr);
    EXPECT_EQ(op->functional(), test.kind);
    EXPECT_EQ(op->def().is_stateful(), test.is_stateful);
  }
}

TEST(FunctionalOps, HaveClasses) {
  const Scope root = Scope::NewRootScope();
  const auto x = ops::Placeholder(root, DT_FLOAT);
  const auto i = ops::Const(root, 1);
  const ops::PartitionedCall call(root, {x, i}, {DT_HALF}, Function("f"));
  const ops::StatefulPartitionedCall stateful(root, {x}, {DT_HALF, DT_INT32}, Function("f"),
                                              ops::StatefulPartitionedCall::ConfigProto("c"));
  const ops::StatelessIf branch(root, i, {x}, {DT_FLOAT}, Function("f"), Function("g"));
  const ops::If with_shapes(root, i, {x}, {DT_FLOAT}, Function("f"), Function("g"),
                            ops::If::OutputShapes({PartialTensorShape({2, -1})}));
  const std::vector<NameAttrList> branches = {Function("f"), Function("g")};
  const ops::Case cases(root, i, {x}, {DT_FLOAT}, branches);
  const ops::While loop(root, {x, i}, Function("f"), Function("g"));
  const ops::For count(root, 0, 10, 1, {x}, Function("f"));
  const ops::SymbolicGradient gradient(root, {x}, {DT_FLOAT}, Function("f"));
  GRADFLOW_ASSERT_OK(root.status());

  EXPECT_EQ(Attr(call.operation, "f"), "f");
  EXPECT_EQ(Attr(call.operation, "Tin"), "[DT_FLOAT, DT_INT32]");
  EXPECT_EQ(Attr(call.operation, "Tout"), "[DT_HALF]");
  EXPECT_EQ(call.output.size(), 1u);
  EXPECT_EQ(call[0].type(), DT_HALF);
  EXPECT_EQ(stateful.output.size(), 2u);
  EXPECT_EQ(Attr(stateful.operation, "config_proto"), "\"c\"");
  EXPECT_EQ(Attr(branch.operation, "then_branch"), "f");
  EXPECT_EQ(Attr(branch.operation, "else_branch"), "g");
  EXPECT_EQ(Attr(branch.operation, "Tcond"), "DT_INT32");
  EXPECT_EQ(with_shapes[0].node()->output_shape(0).DebugString(), "[2,?]");
  EXPECT_EQ(Attr(cases.operation, "branches"), "[f, g]");
  EXPECT_EQ(Attr(loop.operation, "T"), "[DT_FLOAT, DT_INT32]");
  EXPECT_EQ(Attr(loop.operation, "parallel_iterations"), "10");
  EXPECT_EQ(loop[1].type(), DT_INT32);
  EXPECT_EQ(count[0].type(), DT_FLOAT);
  EXPECT_EQ(gradient[0].type(), DT_FLOAT);
}

// Adds a node of two floats to two floats, and returns the shapes of its outputs.
absl::StatusOr<std::vector<std::string>> Shapes(const std::string& op, const std::string& attr,
                                                const std::vector<PartialTensorShape>& shapes) {
  Scope root = Scope::NewRootScope();
  ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  ops::Const(root.WithOpName("i"), 1);
  NodeDef node;
  node.set_name("n");
  node.set_op(op);
  const bool has_index = op == "If" || op == "StatelessIf" || op == "Case" || op == "StatelessCase";
  if (has_index) node.add_input("i");
  for (int k = 0; k < 2; ++k) node.add_input("x");
  const OpDef& def = GlobalRegistry().FindOp(op)->def();
  for (const OpDef::AttrDef& attr_def : def.attr()) {
    if (attr_def.type() == "list(type)")
      AddNodeAttr(attr_def.name(), DataTypeVector{DT_FLOAT, DT_FLOAT}, &node);
    if (attr_def.type() == "type") AddNodeAttr(attr_def.name(), DT_INT32, &node);
    if (attr_def.type() == "func") AddNodeAttr(attr_def.name(), Function("f"), &node);
    if (attr_def.type() == "list(func)") {
      *(*node.mutable_attr())[attr_def.name()].mutable_list()->add_func() = Function("f");
    }
  }
  AddNodeAttr(attr, absl::Span<const PartialTensorShape>(shapes), &node);
  const absl::StatusOr<const Node*> added = root.graph()->AddNode(std::move(node));
  if (!added.ok()) return added.status();
  return std::vector<std::string>{(*added)->output_shape(0).DebugString(),
                                  (*added)->output_shape(1).DebugString()};
}

TEST(FunctionalOps, HaveTheShapesOfAnAttribute) {
  const std::vector<std::pair<std::string, std::string>> ops = {
      {"PartitionedCall", "_output_shapes"},
      {"StatefulPartitionedCall", "_output_shapes"},
      {"If", "output_shapes"},
      {"StatelessIf", "output_shapes"},
      {"Case", "output_shapes"},
      {"StatelessCase", "output_shapes"},
      {"While", "output_shapes"},
      {"StatelessWhile", "output_shapes"}};
  for (const auto& [op, attr] : ops) {
    SCOPED_TRACE(op);
    EXPECT_THAT(*Shapes(op, attr, {PartialTensorShape({3}), PartialTensorShape()}),
                ElementsAre("[3]", "<unknown>"));
    EXPECT_THAT(*Shapes(op, attr, {}), ElementsAre("<unknown>", "<unknown>"));
    EXPECT_THAT(
        Shapes(op, attr, {PartialTensorShape({3})}),
        StatusIs(kInvalidArgument, absl::StrCat("node 'n' (", op, "): attribute ", attr,
                                                " lists 1 shapes, but the node has 2 outputs")));
  }
}

TEST(FunctionalOps, CheckTheirScalars) {
  const Scope root = Scope::NewRootScope();
  const auto x = ops::Const(root, {1, 2});
  const std::vector<NameAttrList> branches = {Function("f")};
  ops::Case(root.WithOpName("n"), x, std::initializer_list<Input>{}, DataTypeVector(), branches);
  EXPECT_THAT(
      root.status(),
      StatusIs(kInvalidArgument,
               "node 'n' (Case): Shape must be rank 0 but is rank 1: branch_index has shape [2]"));
  const Scope other = Scope::NewRootScope();
  ops::For(other.WithOpName("n"), 0, ops::Const(other, {1, 2}), 1, std::initializer_list<Input>{},
           Function("f"));
  EXPECT_THAT(other.status(),
              StatusIs(kInvalidArgument,
                       "node 'n' (For): Shape must be rank 0 but is rank 1: limit has shape [2]"));
}

TEST(SymbolicGradient, IsNotSupported) {
  EXPECT_THAT(OpTester("SymbolicGradient")
                  .Input<float>({1})
                  .Attr("Tout", DataTypeVector{DT_FLOAT})
                  .Attr("f", Function("f"))
                  .Run(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       ::testing::HasSubstr("gradflow does not compute gradients while a graph "
                                            "runs; call ExpandSymbolicGradients before the "
                                            "session is created")));
}

}  // namespace
}  // namespace gradflow::testing
