// Tests of FunctionBuilder: the functions that it makes, and their instances.
#include "gradflow/graph/function_builder.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/attributes.h"
#include "gradflow/graph/function_library.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/ops/functional_ops.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/graph/toy_graph_ops.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace {

using ::gradflow::testing::kInvalidArgument;
using ::gradflow::testing::NodeNames;
using ::gradflow::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

NameAttrList Named(const std::string& name) {
  NameAttrList function;
  function.set_name(name);
  return function;
}

TEST(FunctionBuilder, MakesAFunctionThatTheGraphCanInstantiate) {
  const Scope root = Scope::NewRootScope();
  FunctionBuilder square("square");
  const Output x = square.Arg("x", DT_FLOAT);
  square.Result("y", ops::Mul(square.scope(), x, x));
  GRADFLOW_ASSERT_OK(square.AddTo(root));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const FunctionBody* const body,
                                root.graph()->functions().Instantiate(Named("square")));
  EXPECT_THAT(NodeNames(body->graph()), ElementsAre("x", "Mul", "y_RetVal"));
  EXPECT_THAT(body->arg_types(), ElementsAre(DT_FLOAT));
  EXPECT_THAT(body->result_types(), ElementsAre(DT_FLOAT));
  const ops::PartitionedCall call(root, {3.f}, {DT_FLOAT}, Named("square"));
  GRADFLOW_ASSERT_OK(root.status());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<const FunctionBody*> called,
                                CalledFunctions(*call.operation.node()));
  EXPECT_THAT(called, ElementsAre(body));
}

TEST(FunctionBuilder, NamesInputsAsFunctionsDo) {
  FunctionBuilder f("f");
  const Output a = f.Arg("a", DT_FLOAT);
  const Output i = f.Arg("i", DT_INT32);
  const Scope scope = f.scope().NewSubScope("part");
  const ops::Unique unique(scope.WithOpName("u"), a);
  const ops::Split split(scope.WithOpName("s"), 0, a, 3);
  const Output sum = ops::AddN(f.scope().WithControlDependencies({unique.operation, i.op()}),
                               {split[2], unique.y, a});
  ops::Print(f.scope().WithOpName("print"), sum, {unique.idx});
  f.Result("sum", sum);
  f.Result("same", a);
  f.Result("index", unique.idx);
  f.ControlResult(split.operation);
  f.ControlResult(split.operation);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const FunctionDef def, f.Build());

  const OpDef& signature = def.signature();
  EXPECT_EQ(signature.name(), "f");
  EXPECT_TRUE(signature.is_stateful());
  ASSERT_EQ(signature.input_arg_size(), 2);
  EXPECT_EQ(signature.input_arg(1).name(), "i");
  EXPECT_EQ(signature.input_arg(1).type(), DT_INT32);
  ASSERT_EQ(signature.output_arg_size(), 3);
  EXPECT_EQ(signature.output_arg(2).type(), DT_INT32);
  EXPECT_THAT(signature.control_output(), ElementsAre("part/s"));
  EXPECT_EQ(def.control_ret().at("part/s"), "part/s");
  EXPECT_EQ(def.ret().at("sum"), "AddN:sum:0");
  EXPECT_EQ(def.ret().at("same"), "a");
  EXPECT_EQ(def.ret().at("index"), "part/u:idx:0");
  std::vector<std::string> nodes;
  for (const NodeDef& node : def.node_def()) nodes.push_back(node.name());
  EXPECT_THAT(nodes, ElementsAre("part/u", "part/Const/Const", "part/s", "AddN", "print"));
  EXPECT_THAT(def.node_def(0).input(), ElementsAre("a"));
  EXPECT_THAT(def.node_def(2).input(), ElementsAre("part/Const/Const:output:0", "a"));
  EXPECT_THAT(def.node_def(3).input(),
              ElementsAre("part/s:output:2", "part/u:y:0", "a", "^part/u", "^i"));

  Graph graph;
  GRADFLOW_ASSERT_OK(graph.AddFunction(def));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const FunctionBody* const body,
                                graph.functions().Instantiate(Named("f")));
  EXPECT_THAT(body->graph().FindNode("AddN")->def().input(),
              ElementsAre("part/s:2", "part/u", "a", "^part/u", "^i"));
  EXPECT_EQ(body->effects().size(), 2u);
  EXPECT_EQ(body->effects()[1], body->graph().FindNode("print"));
}

TEST(FunctionBuilder, CallsFunctionsOfTheCallersGraph) {
  auto root = std::make_unique<Scope>(Scope::NewRootScope());
  FunctionBuilder twice("twice", *root);
  const Output x = twice.Arg("x", DT_FLOAT);
  twice.Result("y", ops::Add(twice.scope(), x, x));
  GRADFLOW_ASSERT_OK(twice.AddTo(*root));
  const std::shared_ptr<Graph> graph = root->graph_as_shared_ptr();
  FunctionBuilder outer("outer", *root);
  // The builder keeps the graph.
  root.reset();
  const Output z = outer.Arg("z", DT_FLOAT);
  const Operation call =
      OpBuilder(outer.scope().WithOpName("call"), "twice").Input(Input(z)).Finish();
  outer.Result("y", Output(call, 0));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const FunctionDef def, outer.Build());
  EXPECT_EQ(def.ret().at("y"), "call:y:0");
  GRADFLOW_ASSERT_OK(graph->AddFunction(def));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const FunctionBody* const body,
                                graph->functions().Instantiate(Named("outer")));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<const FunctionBody*> called,
                                CalledFunctions(*body->graph().FindNode("call")));
  EXPECT_EQ(called[0]->name(), "twice");
}

TEST(FunctionBuilder, KeepsTheFirstError) {
  const auto error_of = [](auto build) {
    FunctionBuilder f("f");
    build(f);
    return f.Build().status();
  };
  const Scope other = Scope::NewRootScope();
  const Output c = ops::Const(other, 1.f);
  const std::string f = "function 'f': ";
  EXPECT_THAT(
      error_of([&](FunctionBuilder& b) { b.Result("y", c); }),
      StatusIs(kInvalidArgument, f + "result 'y' is of another graph: it must be an argument"));
  EXPECT_THAT(error_of([](FunctionBuilder& b) { b.Result("y", Output()); }),
              StatusIs(kInvalidArgument, f + "result 'y' is empty"));
  EXPECT_THAT(error_of([&](FunctionBuilder& b) { b.ControlResult(c.op()); }),
              StatusIs(kInvalidArgument,
                       f + "a control result is of another graph: it must be an argument"));
  EXPECT_THAT(error_of([](FunctionBuilder& b) {
                b.Arg("x", DT_FLOAT);
                EXPECT_EQ(b.Arg("x", DT_INT32).node(), nullptr);
              }),
              StatusIs(kInvalidArgument, f + "argument 'x': another node has the same name"));
  EXPECT_THAT(error_of([](FunctionBuilder& b) {
                const Output x = b.Arg("x", DT_FLOAT);
                b.Result("y", x);
                b.Result("y", x);
              }),
              StatusIs(kInvalidArgument, f + "the name of output y is already used"));
  EXPECT_THAT(error_of([](FunctionBuilder& b) { b.Arg("a>b", DT_FLOAT); }),
              StatusIs(kInvalidArgument, f + "the name of input 'a>b' is not valid for a node"));
  EXPECT_THAT(error_of([&](FunctionBuilder& b) { ops::Neg(b.scope(), c); }),
              StatusIs(kInvalidArgument, HasSubstr("Neg")));
  EXPECT_THAT(FunctionBuilder("").Build(),
              StatusIs(kInvalidArgument, "function '': it has no name"));
  FunctionBuilder neg("Neg");
  EXPECT_THAT(neg.AddTo(other),
              StatusIs(kInvalidArgument, "function 'Neg': an op has the same name"));
}

}  // namespace
}  // namespace gradflow
