// Tests of NodeDefs and of graphs built node by node.
#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "tensorflow/cc/ops/test_op.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/fake_input.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/graph/default_device.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/test.h"
#include "tensorflow/core/public/session.h"

namespace tensorflow {
namespace {

NodeDef* AddConst(const string& name, const Tensor& value, GraphDef* graph) {
  NodeDef* node = graph->add_node();
  TF_CHECK_OK(NodeDefBuilder(name, "Const")
                  .Attr("dtype", value.dtype())
                  .Attr("value", value)
                  .Finalize(node));
  return node;
}

TEST(NodeDefBuilderTest, GraphOfNodeDefsRuns) {
  GraphDef graph;
  AddConst("a", test::AsTensor<float>({1, 2}, {1, 2}), &graph);
  AddConst("b", test::AsTensor<float>({3, 4}, {1, 2}), &graph);
  TF_ASSERT_OK(NodeDefBuilder("c", "MatMul")
                   .Input("a", 0, DT_FLOAT)
                   .Input(NodeDefBuilder::NodeOut("b", 0, DT_FLOAT))
                   .Attr("transpose_b", true)
                   .ControlInput("b")
                   .Finalize(graph.add_node()));
  TF_ASSERT_OK(NodeDefBuilder("d", "AddN")
                   .Input({{"c", 0, DT_FLOAT}, {"c", 0, DT_FLOAT}})
                   .Device("/cpu:0")
                   .Finalize(graph.add_node()));
  EXPECT_EQ(graph.node(2).attr().at("T").type(), DT_FLOAT);
  EXPECT_EQ(graph.node(2).input(2), "^b");
  graph::SetDefaultDevice("/device:CPU:0", &graph);
  EXPECT_EQ(graph.node(0).device(), "/device:CPU:0");
  EXPECT_EQ(graph.node(3).device(), "/cpu:0");

  std::unique_ptr<Session> session(NewSession(SessionOptions()));
  TF_ASSERT_OK(session->Create(graph));
  std::vector<Tensor> outputs;
  TF_ASSERT_OK(session->Run({}, {"d"}, {"a"}, &outputs));
  test::ExpectTensorEqual<float>(outputs[0], test::AsTensor<float>({22}, {1, 1}));
}

TEST(NodeDefBuilderTest, GraphOnADeviceWithoutKernelsIsRefused) {
  GraphDef graph;
  AddConst("a", test::AsScalar<float>(1), &graph);
  graph::SetDefaultDevice("/gpu:0", &graph);
  std::unique_ptr<Session> session(NewSession({}));
  EXPECT_EQ(session->Create(graph).code(), error::UNIMPLEMENTED);
}

TEST(NodeDefBuilderTest, AcceptsFakeInputs) {
  NodeDef node;
  TF_ASSERT_OK(NodeDefBuilder("n", "AddN").Input(FakeInput(3, DT_INT64)).Finalize(&node));
  ASSERT_EQ(node.input_size(), 3);
  EXPECT_EQ(node.input(0), "a");
  EXPECT_EQ(node.input(2), "a:2");
  EXPECT_EQ(node.attr().at("T").type(), DT_INT64);
  TF_ASSERT_OK(NodeDefBuilder("n", "AddN")
                   .Attr("N", 2)
                   .Attr("T", DT_HALF)
                   .Input(FakeInput())
                   .Finalize(&node));
  EXPECT_EQ(node.input_size(), 2);
  TF_ASSERT_OK(
      NodeDefBuilder("n", "IdentityN").Input(FakeInput({DT_FLOAT, DT_BOOL})).Finalize(&node));
  EXPECT_EQ(node.attr().at("T").list().type_size(), 2);
}

TEST(NodeDefBuilderTest, FaultsAreErrors) {
  NodeDef node;
  const Status unknown = NodeDefBuilder("n", "AddNothing").Finalize(&node);
  EXPECT_EQ(unknown.code(), error::INVALID_ARGUMENT);
  EXPECT_NE(unknown.message().find("Op type not registered 'AddNothing'"), string::npos) << unknown;
  const Status missing = NodeDefBuilder("n", "Add").Input(FakeInput(DT_FLOAT)).Finalize(&node);
  EXPECT_NE(
      missing.message().find("1 inputs specified of 2 inputs in Op while building NodeDef 'n'"),
      string::npos)
      << missing;
  const Status mixed = NodeDefBuilder("n", "Add")
                           .Input(FakeInput(DT_FLOAT))
                           .Input(FakeInput(DT_INT32))
                           .Finalize(&node);
  EXPECT_NE(mixed.message().find("Inconsistent values for attr 'T' DT_FLOAT vs. DT_INT32"),
            string::npos)
      << mixed;
  const Status list =
      NodeDefBuilder("n", "Neg").Input({{"a", 0, DT_FLOAT}, {"b", 0, DT_FLOAT}}).Finalize(&node);
  EXPECT_NE(list.message().find("List provided to input 'x' when single Tensor expected"),
            string::npos)
      << list;
  for (const int count : {-1, (1 << 20) + 1}) {
    const Status counted =
        NodeDefBuilder("n", "AddN").Input(FakeInput(count, DT_FLOAT)).Finalize(&node);
    EXPECT_NE(counted.message().find(absl::StrCat("input 'inputs' cannot have ", count)),
              string::npos)
        << counted;
  }
  EXPECT_EQ(node.name(), "");
}

TEST(NodeBuilderTest, AddsNodesToAGraph) {
  Graph graph(OpRegistry::Global());
  Node* constant;
  TF_ASSERT_OK(NodeBuilder("c", "Const")
                   .Attr("dtype", DT_INT32)
                   .Attr("value", test::AsTensor<int32>({1, 2}))
                   .Finalize(&graph, &constant));
  Node* negated;
  TF_ASSERT_OK(NodeBuilder("n", "Neg").Input(constant).Finalize(&graph, &negated));
  EXPECT_EQ(negated->type_string(), "Neg");
  EXPECT_EQ(negated->output_type(0), DT_INT32);
  EXPECT_EQ(graph.num_nodes(), 2);
  DataType dtype;
  TF_EXPECT_OK(GetNodeAttr(negated->attrs(), "T", &dtype));
  EXPECT_EQ(dtype, DT_INT32);
  TF_EXPECT_OK(GetNodeAttr(AttrSlice(negated->def()), "T", &dtype));
  EXPECT_FALSE(TryGetNodeAttr(negated->def(), "U", &dtype));
  EXPECT_EQ(negated->attrs().Find("T")->type(), DT_INT32);
  EXPECT_EQ(negated->attrs().Find("U"), nullptr);
}

TEST(NodeBuilderTest, MayBeCopied) {
  Graph graph(OpRegistry::Global());
  auto builder = NodeBuilder("c", "Const").Attr("dtype", DT_INT32);
  auto other = builder;
  Node* three;
  TF_ASSERT_OK(builder.Attr("value", test::AsScalar<int32>(3)).Finalize(&graph, &three));
  EXPECT_FALSE(other.Finalize(&graph, nullptr).ok()) << "its value was given to a copy";
  EXPECT_EQ(graph.num_nodes(), 1);
}

// Returns the message of ValidateNodeDef for an AddN node whose attributes or inputs `change` has
// modified.
template <typename Change>
std::string Fault(Change change) {
  NodeDef node;
  TF_CHECK_OK(NodeDefBuilder("n", "AddN").Input(FakeInput(2, DT_FLOAT)).Finalize(&node));
  const OpDef* op_def = nullptr;
  TF_CHECK_OK(OpRegistry::Global()->LookUpOpDef("AddN", &op_def));
  change(&node);
  return std::string(ValidateNodeDef(node, *op_def).message());
}

TEST(ValidateNodeDefTest, TextsAreTensorFlows) {
  using ::testing::HasSubstr;
  EXPECT_EQ(Fault([](NodeDef*) {}), "");
  EXPECT_THAT(Fault([](NodeDef* n) { n->set_op("Neg"); }),
              HasSubstr("NodeDef op 'Neg' does not match Op<name=AddN;"));
  EXPECT_THAT(Fault([](NodeDef* n) { n->clear_attr(); }),
              HasSubstr("NodeDef missing attrs 'N', 'T' from Op<name=AddN;"));
  EXPECT_THAT(
      Fault([](NodeDef* n) { (*n->mutable_attr())["T"].set_i(3); }),
      HasSubstr("AttrValue had value with type 'int' when 'type' expected\n\t for attr 'T'"));
  EXPECT_THAT(Fault([](NodeDef* n) { (*n->mutable_attr())["T"].set_type(DT_STRING); }),
              HasSubstr("Value for attr 'T' of string is not in the list of allowed values: "));
  EXPECT_THAT(Fault([](NodeDef* n) { (*n->mutable_attr())["N"].set_i(0); }),
              HasSubstr("Value for attr 'N' of 0 must be at least minimum 1"));
  EXPECT_THAT(Fault([](NodeDef* n) { n->add_input("more"); }),
              HasSubstr("NodeDef expected inputs 'float, float' do not match 3 inputs specified;"));
  EXPECT_THAT(Fault([](NodeDef* n) { *n->mutable_input(0) = "^c"; }),
              HasSubstr("after control input"));
  EXPECT_THAT(Fault([](NodeDef* n) { n->add_input("^c:1"); }),
              HasSubstr("Control input '^c:1' must not have ':'"));
  EXPECT_THAT(Fault([](NodeDef* n) { (*n->mutable_attr())["U"].set_i(0); }), HasSubstr("'U'"));
}

TEST(DataTypeStringTest, ShowsLists) {
  EXPECT_EQ(DataTypeVectorString({DT_FLOAT, DT_INT32}), "float, int32");
  EXPECT_EQ(DataTypeVectorString(DataTypeVector()), "");
}

// Inputs and attributes have names that clash with C++ keywords and types.
TEST(TestOps, AreBuilt) {
  const Scope root = Scope::NewRootScope();
  const ops::ThrowAway1 first(root, 1, 2.5f, 3, 4, 5, ops::ThrowAway1::Builder(42));
  TF_ASSERT_OK(root.status());
  int64_t builder = 0;
  TF_ASSERT_OK(GetNodeAttr(first.operation.node()->attrs(), "builder", &builder));
  EXPECT_EQ(builder, 42);
  const ops::ThrowAway2 second(root, ops::ThrowAway2::ThrowAway2_(3).Scope(1));
  TF_ASSERT_OK(GetNodeAttr(second.operation.node()->attrs(), "scope", &builder));
  EXPECT_EQ(builder, 1);
}

}  // namespace
}  // namespace tensorflow
