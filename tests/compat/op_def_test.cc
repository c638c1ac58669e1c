// Definitions of ops: OpDefBuilder, registries, comparisons; functions of attributes, nodes and
// GraphDefs.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/graph_def_util.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def_builder.h"
#include "tensorflow/core/framework/op_def_util.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/status_matchers.h"
#include "tensorflow/core/platform/test.h"
#include "tensorflow/core/util/equal_graph_def.h"

namespace tensorflow {
namespace {

using ::tensorflow::testing::StatusIs;
using ::testing::HasSubstr;

OpDef Finalize(const OpDefBuilder& builder) {
  OpRegistrationData data;
  TF_EXPECT_OK(builder.Finalize(&data));
  return data.op_def;
}

TEST(OpDefTest, BuilderReportsErrors) {
  OpRegistrationData data;
  EXPECT_THAT(OpDefBuilder("Test").Doc("a").Doc("b").Finalize(&data),
              StatusIs(error::INVALID_ARGUMENT, "Extra call to Doc() for Op Test"));
  EXPECT_THAT(OpDefBuilder("Test").Input("x: T").Finalize(&data),
              StatusIs(error::INVALID_ARGUMENT, HasSubstr(" for Op Test")));
  TF_EXPECT_OK(OpDefBuilder("Test").SetIsDistributedCommunication().Finalize(&data));
  EXPECT_TRUE(data.op_def.is_distributed_communication());
  EXPECT_EQ(data.op_def.name(), "Test");
}

TEST(OpDefTest, Summary) {
  const OpDef def = Finalize(OpDefBuilder("Test")
                                 .Input("a: N * T")
                                 .Input("r: Ref(int32)")
                                 .Output("b: L")
                                 .Attr("N: int >= 2 = 3")
                                 .Attr("T: {float, int32}")
                                 .Attr("L: list(type)")
                                 .SetIsStateful());
  EXPECT_EQ(SummarizeOpDef(def),
            "Op<name=Test; signature=a:N*T, r:Ref(int32) -> b:L; attr=N:int,default=3,min=2; "
            "attr=T:type,allowed=[DT_FLOAT, DT_INT32]; attr=L:list(type),min=1; "
            "is_stateful=true>");
}

TEST(OpDefTest, Compatibility) {
  const OpDef base = Finalize(OpDefBuilder("Test").Input("a: T").Attr("T: {float, int32}"));
  const auto compatible = [&](const OpDefBuilder& builder) {
    return OpDefCompatible(base, Finalize(builder));
  };
  TF_EXPECT_OK(compatible(OpDefBuilder("Test").Input("a: T").Attr("T: {int32, float, bool}")));
  TF_EXPECT_OK(
      compatible(OpDefBuilder("Test").Input("a: T").Attr("T: {float, int32}").Attr("n: int = 1")));
  EXPECT_THAT(compatible(OpDefBuilder("Test").Input("a: T").Attr("T: {float}")),
              StatusIs(error::INVALID_ARGUMENT, HasSubstr("Attr 'T' allows fewer values")));
  EXPECT_THAT(
      compatible(OpDefBuilder("Test").Input("a: T").Attr("T: {float, int32}").Attr("n: int")),
      StatusIs(error::INVALID_ARGUMENT, HasSubstr("Attr 'n' added without default")));
  EXPECT_THAT(compatible(OpDefBuilder("Test").Input("b: T").Attr("T: {float, int32}")),
              StatusIs(error::INVALID_ARGUMENT, HasSubstr("Input signature mismatch")));
  EXPECT_THAT(compatible(OpDefBuilder("Test").Input("a: float")),
              StatusIs(error::INVALID_ARGUMENT, HasSubstr("Attr 'T' removed")));
}

TEST(OpDefTest, Deprecation) {
  const OpDef def = Finalize(OpDefBuilder("Test").Deprecated(10, "Use Other"));
  TF_EXPECT_OK(CheckOpDeprecation(def, 9));
  EXPECT_THAT(CheckOpDeprecation(def, 10), StatusIs(error::UNIMPLEMENTED, HasSubstr("Use Other")));
}

TEST(OpDefTest, ValuesOfAttributes) {
  const OpDef def = Finalize(OpDefBuilder("Test").Attr("n: int >= 3"));
  AttrValue value;
  SetAttrValue(3, &value);
  TF_EXPECT_OK(ValidateAttrValue(value, def.attr(0)));
  SetAttrValue(2, &value);
  EXPECT_THAT(ValidateAttrValue(value, def.attr(0)), StatusIs(error::INVALID_ARGUMENT));
  EXPECT_EQ(FindAttr("n", def), &def.attr(0));
  EXPECT_EQ(FindAttr("m", def), nullptr);
}

TEST(OpRegistryTest, OfItsOwn) {
  OpRegistry registry;
  const auto add = [&] {
    registry.Register([](OpRegistrationData* data) {
      return OpDefBuilder("Mine").Output("x: float").Finalize(data);
    });
  };
  add();
  TF_EXPECT_OK(registry.ProcessRegistrations());
  const OpRegistrationData* data = nullptr;
  TF_EXPECT_OK(registry.LookUp("Mine", &data));
  EXPECT_EQ(data->op_def.output_arg_size(), 1);
  EXPECT_EQ(OpRegistry::Global()->LookUp("Mine"), nullptr);
  EXPECT_THAT(registry.LookUp("Relu", &data),
              StatusIs(error::NOT_FOUND, "Op type not registered 'Relu'"));
  add();
  EXPECT_THAT(registry.ProcessRegistrations(), StatusIs(error::ALREADY_EXISTS));
  EXPECT_THAT(registry.DebugString(true), HasSubstr("Op<name=Mine;"));
}

TEST(OpRegistryTest, GlobalHasGradflowsOps) {
  const OpRegistrationData* const relu = OpRegistry::Global()->LookUp("Relu");
  ASSERT_NE(relu, nullptr);
  EXPECT_EQ(relu->op_def.name(), "Relu");
  EXPECT_TRUE(relu->shape_inference_fn != nullptr);
  EXPECT_EQ(OpRegistry::Global()->LookUp("Relu"), relu);
  OpList ops;
  OpRegistry::Global()->Export(/*include_internal=*/false, &ops);
  EXPECT_GT(ops.op_size(), 100);
}

TEST(AttrSliceTest, OfANodeAndOfAMap) {
  NodeDef node;
  node.set_name("n");
  AddNodeAttr("i", 3, &node);
  AddNodeAttr("names", {"a", "b"}, &node);
  NameAttrList function;
  function.set_name("f");
  AddNodeAttr("f", function, &node);
  AddNodeAttr("shapes", std::vector<TensorShape>{TensorShape({2}), TensorShape()}, &node);
  AttrValueMap map = node.attr();
  for (const AttrSlice& attrs : {AttrSlice(node), AttrSlice(&map)}) {
    EXPECT_EQ(attrs.size(), 4);
    int i = 0;
    TF_EXPECT_OK(GetNodeAttr(attrs, "i", &i));
    EXPECT_EQ(i, 3);
    const NameAttrList* found = nullptr;
    TF_EXPECT_OK(GetNodeAttr(attrs, "f", &found));
    EXPECT_EQ(found->name(), "f");
    std::vector<TensorShape> shapes;
    TF_EXPECT_OK(GetNodeAttr(attrs, "shapes", &shapes));
    EXPECT_EQ(shapes[0], TensorShape({2}));
    EXPECT_FALSE(TryGetNodeAttr(attrs, "i", &found));
    EXPECT_THAT(GetNodeAttr(attrs, "none", &found), StatusIs(error::NOT_FOUND));
    EXPECT_EQ(GetNodeAttrString(attrs, "none"), "");
    AttrSlice::Scratch scratch;
    EXPECT_TRUE(attrs.EqualAttrs(AttrSlice(node), &scratch));
  }
  map.erase("i");
  AttrSlice::Scratch scratch;
  EXPECT_FALSE(AttrSlice(&map).EqualAttrs(AttrSlice(node), &scratch));
  EXPECT_EQ(AttrSlice().size(), 0);
}

TEST(NodeDefUtilTest, SyntaxOfNames) {
  NodeDef node;
  node.set_name("scope/n.1-x>y");
  node.add_input("a:12");
  node.add_input("^b/c");
  TF_EXPECT_OK(ValidateExternalNodeDefSyntax(node));
  for (const char* input : {"a:01", "a:", "_a", "a b", "^a:0", ""}) {
    node.set_input(0, input);
    EXPECT_THAT(ValidateExternalNodeDefSyntax(node), StatusIs(error::INVALID_ARGUMENT)) << input;
  }
  node.set_input(0, "^a");
  node.set_input(1, "b");
  EXPECT_THAT(ValidateExternalNodeDefSyntax(node),
              StatusIs(error::INVALID_ARGUMENT, HasSubstr("must follow all data inputs")));
}

TEST(NodeDefUtilTest, ArgumentsOfPorts) {
  const OpDef def = Finalize(OpDefBuilder("Test")
                                 .Input("a: float")
                                 .Input("b: N * float")
                                 .Input("c: int32")
                                 .Attr("N: int"));
  NodeDef node;
  AddNodeAttr("N", 2, &node);
  const std::vector<int> expected = {0, 1, 1, 2, -1};
  for (int port = 0; port < 5; ++port) {
    EXPECT_EQ(OpPortIdToArgId(node, def.input_arg(), port), expected[port]) << port;
  }
  EXPECT_EQ(OpPortIdToArgId(node, def.input_arg(), -1), -1);
  DataType type;
  TF_EXPECT_OK(InputTypeForNode(node, def, 3, &type));
  EXPECT_EQ(type, DT_INT32);
  EXPECT_THAT(InputTypeForNode(node, def, 4, &type), StatusIs(error::INVALID_ARGUMENT));
}

TEST(NodeDefUtilTest, ChangeToNoOpKeepsTheOrder) {
  NodeDef node;
  node.set_op("Add");
  node.add_input("a");
  node.add_input("b:1");
  node.add_input("^c");
  ChangeToNoOp(&node);
  EXPECT_EQ(node.op(), "NoOp");
  EXPECT_EQ(node.input(0), "^a");
  EXPECT_EQ(node.input(1), "^b");
  EXPECT_EQ(node.input(2), "^c");
}

TEST(AttrValueUtilTest, HashesFollowEquality) {
  AttrValue a, b;
  TensorProto content, values;
  content.set_dtype(DT_INT32);
  content.mutable_tensor_shape()->add_dim()->set_size(2);
  values = content;
  values.add_int_val(7);
  content.set_tensor_content(string("\7\0\0\0\7\0\0\0", 8));
  SetAttrValue(content, &a);
  SetAttrValue(values, &b);
  EXPECT_TRUE(AreAttrValuesEqual(a, b));
  EXPECT_EQ(AttrValueHash(a), AttrValueHash(b));
  b.mutable_tensor()->set_int_val(0, 8);
  EXPECT_NE(AttrValueHash(a), AttrValueHash(b));
}

// A few bytes stand for 2^40 strings.
TEST(AttrValueUtilTest, HashesOfStringsTakeNoMemory) {
  AttrValue a;
  TensorProto* const proto = a.mutable_tensor();
  proto->set_dtype(DT_STRING);
  proto->mutable_tensor_shape()->add_dim()->set_size(int64{1} << 40);
  proto->add_string_val("x");
  AttrValue b = a;
  EXPECT_EQ(AttrValueHash(a), AttrValueHash(b));
  b.mutable_tensor()->mutable_tensor_shape()->mutable_dim(0)->set_size(2);
  EXPECT_NE(AttrValueHash(a), AttrValueHash(b));
  // They hash the type and the shape.
  a = b;
  a.mutable_tensor()->set_string_val(0, "y");
  EXPECT_EQ(AttrValueHash(a), AttrValueHash(b));
}

TEST(GraphDefUtilTest, AddsAndStripsDefaults) {
  OpList ops;
  *ops.add_op() = Finalize(OpDefBuilder("Known").Attr("n: int = 3"));
  const OpListOpRegistry registry(&ops);
  GraphDef graph;
  graph.add_node()->set_op("Known");
  graph.add_node()->set_op("Known");
  TF_ASSERT_OK(AddDefaultAttrsToGraphDef(&graph, registry, 1));
  EXPECT_EQ(graph.node(0).attr_size(), 0);
  EXPECT_EQ(graph.node(1).attr().at("n").i(), 3);
  StripDefaultAttributes(registry, graph.mutable_node());
  EXPECT_EQ(graph.node(1).attr_size(), 0);
  graph.add_node()->set_op("Unknown");
  EXPECT_THAT(AddDefaultAttrsToGraphDef(&graph, registry, 0), StatusIs(error::NOT_FOUND));
  TF_EXPECT_OK(AddDefaultAttrsToGraphDef(&graph, registry, 0, /*skip_unknown_ops=*/true));
  EXPECT_THAT(AddDefaultAttrsToGraphDef(&graph, registry, 4), StatusIs(error::INVALID_ARGUMENT));
}

TEST(EqualGraphDefTest, IgnoresOrder) {
  GraphDef a;
  for (const char* name : {"x", "y"}) {
    NodeDef* const node = a.add_node();
    node->set_name(name);
    node->set_op("Op");
    node->add_input("i:0");
    node->add_input("^b");
    node->add_input("^a");
    AddNodeAttr("n", 1, node);
  }
  GraphDef b = a;
  b.mutable_node()->SwapElements(0, 1);
  b.mutable_node(0)->set_input(0, "i");
  b.mutable_node(0)->mutable_input()->SwapElements(1, 2);
  AddNodeAttr("_hidden", 1, b.mutable_node(0));
  string diff;
  EXPECT_TRUE(EqualGraphDef(a, b, &diff)) << diff;
  EXPECT_EQ(GraphDefHash(a), GraphDefHash(b));
  EqualGraphDefOptions all;
  all.ignore_internal_attrs = false;
  EXPECT_FALSE(EqualGraphDef(a, b, &diff, all));
  EXPECT_THAT(diff, HasSubstr("'_hidden'"));
  b.mutable_node(1)->set_input(0, "j");
  EXPECT_FALSE(EqualGraphDef(a, b, &diff));
  EXPECT_THAT(diff, HasSubstr("input 0"));
  EXPECT_NE(GraphDefHash(a), GraphDefHash(b));
  b.mutable_node()->RemoveLast();
  EXPECT_FALSE(EqualGraphDef(a, b, &diff));
}

}  // namespace
}  // namespace tensorflow
