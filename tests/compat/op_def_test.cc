// Tests of op definitions: OpDefBuilder, registries and comparisons; and of functions of
// attributes, nodes and GraphDefs.
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
#include "tensorflow/core/framework/tensor.h"
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
  // ValidateOpDef compares names; Finalize does not.
  TF_EXPECT_OK(OpDefBuilder("Test").Input("x: float").Output("x: float").Finalize(&data));
  EXPECT_THAT(ValidateOpDef(data.op_def),
              StatusIs(error::INVALID_ARGUMENT, HasSubstr("already used")));
  TF_EXPECT_OK(OpDefBuilder("Test").SetIsDistributedCommunication().Finalize(&data));
  EXPECT_TRUE(data.op_def.is_distributed_communication());
  EXPECT_EQ(data.op_def.name(), "Test");
}

TEST(OpDefTest, BuilderReportsWhereASpecIsInvalid) {
  const std::pair<const char*, const char*> attrs[] = {
      {"_:string", "Trouble parsing '<name>:'"},
      {"string", "Trouble parsing '<name>:'"},
      {"a:invalid", "Trouble parsing type string at 'invalid'"},
      {"b:", "Trouble parsing type string at ''"},
      {"a:{}", "Trouble parsing type string at '}'"},
      {"a:{float,,string}", "Trouble parsing type string at ',string}'"},
      {"a:{invalid}", "Unrecognized type string 'invalid'"},
      {"a:{'str', float}", "Trouble parsing allowed string at 'float}'"},
      {"a:{ float, 'str' }", "Trouble parsing type string at ''str' }'"},
      {"a:list(int", "Expected ) to close 'list(', not: ''"},
      {"i: int >= a", "Could not parse integer lower limit after '>=', found ' a' instead"},
      {"i: int >= -9223372036854775809",
       "Could not parse integer lower limit after '>=', found ' -9223372036854775809' instead"},
      {"a:float = [1.25]", "Could not parse default value '[1.25]'"},
      {"a:list(float) = ", "Could not parse default value ''"},
      {"a:int extra", "Extra 'extra' unparsed at the end"},
      {"9a: int", "Trouble parsing '<name>:'"},
      {"a_1 int", "Trouble parsing '<name>:'"},
      {"a: 7", "Trouble parsing type string at '7'"},
      {"a: {'x", "Trouble parsing allowed string at ''x'"},
      {"a: {'x\\'y', 3}", "Trouble parsing allowed string at '3}'"},
      {"a: {'x\\'', 3}", "Trouble parsing allowed string at '3}'"},
      {"a: {'', 3}", "Trouble parsing allowed string at '3}'"},
      {"a: {\"x'\" , 'y\"', 3}", "Trouble parsing allowed string at '3}'"},
      {"a: {'x', }y", "Extra 'y' unparsed at the end"},
      {"a: {numbertype, numerictype, realnumbertype, realnumerictype, quantizedtype, int8, foo}",
       "Unrecognized type string 'foo'"},
      {"a: list({float, 9})", "Trouble parsing type string at '9})'"},
      {"a: list({float}", "Expected ) to close 'list(', not: ''"},
      {"a: list( int x", "Expected ) to close 'list(', not: 'x'"},
      {"a: int >= 3 x", "Extra 'x' unparsed at the end"},
      {"a: int >= - 3 = x", "Could not parse default value 'x'"},
      {"a: int >= ", "Could not parse integer lower limit after '>=', found ' ' instead"},
      {"a: int >= -", "Could not parse integer lower limit after '>=', found ' -' instead"},
      {"a: string = 7", "Could not parse default value '7'"},
  };
  OpRegistrationData data;
  for (const auto& [spec, fault] : attrs) {
    EXPECT_THAT(OpDefBuilder("Test").Attr(spec).Finalize(&data),
                StatusIs(error::INVALID_ARGUMENT,
                         absl::StrCat(fault, " from Attr(\"", spec, "\") for Op Test")));
  }
  const std::pair<const char*, const char*> args[] = {
      {"9: int32", "Trouble parsing 'name:'"},
      {"CAPS: int32", "Trouble parsing 'name:'"},
      {"a: 9 * int32", "Trouble parsing either a type or an attr name at '9 * int32'"},
      {"a: t * _", "Extra '* _' unparsed at the end"},
      {"a: n * t extra", "Extra 'extra' unparsed at the end"},
      {"a: Ref(int32", "Did not find closing ')' for 'Ref(', instead found: ''"},
      {"a: Ref", "Reference to unknown attr 'Ref'"},
      {"a: n * y", "Reference to unknown attr 'y'"},
      {"a: n", "Reference to attr 'n' with type int that isn't type or list(type)"},
      {"a: t * int32", "Reference to attr 't' with type type that isn't int"},
      {"a int32", "Trouble parsing 'name:'"},
      {"aB: int32", "Trouble parsing 'name:'"},
      {"a: Ref(9)", "Trouble parsing either a type or an attr name at '9)'"},
      {"a: Ref(n * t", "Did not find closing ')' for 'Ref(', instead found: ''"},
      {"a: Ref(int32) x", "Extra 'x' unparsed at the end"},
      {"a: Ref * t", "Reference to unknown attr 'Ref'"},
      {"a: Wrong(t)", "Extra '(t)' unparsed at the end"},
      {"a: q * t", "Reference to unknown attr 'q'"},
      {"a: s", "Reference to attr 's' with type string that isn't type or list(type)"},
      {"a: n * s", "Reference to attr 's' with type string that isn't type or list(type)"},
      {"a: l * int32", "Reference to attr 'l' with type list(type) that isn't int"},
  };
  for (const auto& [spec, fault] : args) {
    const OpDefBuilder builder =
        OpDefBuilder("Test").Attr("n: int").Attr("t: type").Attr("s: string").Attr("l: list(type)");
    EXPECT_THAT(OpDefBuilder(builder).Input(spec).Finalize(&data),
                StatusIs(error::INVALID_ARGUMENT,
                         absl::StrCat(fault, " from Input(\"", spec, "\") for Op Test")));
    EXPECT_THAT(OpDefBuilder(builder).Output(spec).Finalize(&data),
                StatusIs(error::INVALID_ARGUMENT, HasSubstr(" from Output(\"")));
  }
  EXPECT_THAT(OpDefBuilder("Test").Attr("_").Input("_").Finalize(&data),
              StatusIs(error::INVALID_ARGUMENT,
                       "Trouble parsing '<name>:' from Attr(\"_\") for Op Test\n"
                       "Trouble parsing 'name:' from Input(\"_\") for Op Test"));
}

TEST(OpDefTest, SummarizesDefinitions) {
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

TEST(OpDefTest, ChecksCompatibility) {
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

TEST(OpDefTest, ChecksDeprecation) {
  const OpDef def = Finalize(OpDefBuilder("Test").Deprecated(10, "Use Other"));
  TF_EXPECT_OK(CheckOpDeprecation(def, 9));
  EXPECT_THAT(CheckOpDeprecation(def, 10), StatusIs(error::UNIMPLEMENTED, HasSubstr("Use Other")));
}

TEST(OpDefTest, ChecksAttributeValues) {
  const OpDef def = Finalize(OpDefBuilder("Test").Attr("n: int >= 3"));
  AttrValue value;
  SetAttrValue(3, &value);
  TF_EXPECT_OK(ValidateAttrValue(value, def.attr(0)));
  SetAttrValue(2, &value);
  EXPECT_THAT(ValidateAttrValue(value, def.attr(0)), StatusIs(error::INVALID_ARGUMENT));
  EXPECT_EQ(FindAttr("n", def), &def.attr(0));
  EXPECT_EQ(FindAttr("m", def), nullptr);
}

TEST(OpDefTest, ChecksLengthsOfLists) {
  const auto status = [](const std::string& type, int length) {
    const OpDef def = Finalize(OpDefBuilder("Test").Attr("l: " + type + " >= 2"));
    AttrValue value;
    AttrValue::ListValue* const list = value.mutable_list();
    for (int i = 0; i < length; ++i) {
      if (type == "list(string)") list->add_s("s");
      if (type == "list(int)") list->add_i(1);
      if (type == "list(float)") list->add_f(1);
      if (type == "list(bool)") list->add_b(true);
      if (type == "list(type)") list->add_type(DT_FLOAT);
      if (type == "list(shape)") list->add_shape()->set_unknown_rank(true);
      if (type == "list(tensor)") Tensor(1.0f).AsProtoField(list->add_tensor());
      if (type == "list(func)") list->add_func()->set_name("f");
    }
    return ValidateAttrValue(value, def.attr(0));
  };
  for (const char* type : {"list(string)", "list(int)", "list(float)", "list(bool)", "list(type)",
                           "list(shape)", "list(tensor)", "list(func)"}) {
    SCOPED_TRACE(type);
    TF_EXPECT_OK(status(type, 2));
    TF_EXPECT_OK(status(type, 3));
    EXPECT_THAT(status(type, 1),
                StatusIs(error::INVALID_ARGUMENT,
                         HasSubstr("Length for attr 'l' of 1 must be at least minimum 2")));
  }
}

TEST(OpRegistryTest, MayBePrivate) {
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

TEST(AttrSliceTest, ReadsNodesAndMaps) {
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

TEST(NodeDefUtilTest, ChecksSyntaxOfNames) {
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

TEST(NodeDefUtilTest, FindsArgumentsOfPorts) {
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

// A few bytes describe 2^40 strings.
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
}

// The last string repeats for all missing elements. tensor_content stores all of them.
TEST(AttrValueUtilTest, HashesOfStringsFollowEquality) {
  const auto value = [](std::vector<std::string> strings, const std::string& content = "") {
    AttrValue value;
    value.mutable_tensor()->set_dtype(DT_STRING);
    value.mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(3);
    for (const std::string& s : strings) value.mutable_tensor()->add_string_val(s);
    value.mutable_tensor()->set_tensor_content(content);
    return value;
  };
  const AttrValue values[] = {value({"x"}),      value({"y"}), value({"x", "y"}),
                              value({"y", "x"}), value({""}),  value({"x", "", "y"})};
  for (const AttrValue& a : values) {
    for (const AttrValue& b : values) {
      if (&a == &b) continue;
      EXPECT_FALSE(AreAttrValuesEqual(a, b));
      EXPECT_NE(AttrValueHash(a), AttrValueHash(b));
    }
  }
  const std::pair<AttrValue, AttrValue> equal[] = {
      {value({"x"}), value({"x", "x", "x"})},
      {value({"x", "y"}), value({"x", "y", "y"})},
      {value({}), value({"", "", ""})},
      {value({"x", "y"}), value({}, string("\1\1\1xyy", 6))},
  };
  for (const auto& [a, b] : equal) {
    EXPECT_TRUE(AreAttrValuesEqual(a, b));
    EXPECT_EQ(AttrValueHash(a), AttrValueHash(b));
  }
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

TEST(GraphDefUtilTest, FindsTheOpsOfAGraphAndItsFunctions) {
  GraphDef graph;
  const auto add_function = [&](const char* name, const std::vector<const char*>& ops) {
    FunctionDef* const function = graph.mutable_library()->add_function();
    function->mutable_signature()->set_name(name);
    for (const char* op : ops) function->add_node_def()->set_op(op);
  };
  graph.add_node()->set_op("Outer");
  graph.add_node()->set_op("Neg");
  add_function("Outer", {"Inner", "Add"});
  // The function calls itself.
  add_function("Inner", {"Inner", "Sub", "Neg"});
  add_function("NotCalled", {"Mul"});
  std::set<std::string> used = {"before"};
  OpsUsedByGraph(graph, &used);
  EXPECT_THAT(used, ::testing::ElementsAre("Add", "Neg", "Sub"));

  OpList list;
  list.add_op()->set_name("before");
  TF_ASSERT_OK(StrippedOpListForGraph(graph, *OpRegistry::Global(), &list));
  ASSERT_EQ(list.op_size(), 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(list.op(i).name(), std::vector<std::string>({"Add", "Neg", "Sub"})[i]);
    EXPECT_EQ(list.op(i).description(), "");
    EXPECT_EQ(list.op(i).summary(), "");
    EXPECT_GT(list.op(i).input_arg_size(), 0);
    EXPECT_EQ(list.op(i).input_arg(0).description(), "");
  }
  graph.add_node()->set_op("NoSuchOp");
  EXPECT_THAT(StrippedOpListForGraph(graph, *OpRegistry::Global(), &list),
              StatusIs(error::NOT_FOUND, HasSubstr("NoSuchOp")));
}

TEST(OpDefEqualTest, IgnoresTheOrderOfAttributes) {
  const OpDef a = Finalize(OpDefBuilder("Test").Attr("m: int = 1").Attr("n: {float, int32}"));
  OpDef b = a;
  EXPECT_TRUE(OpDefEqual(a, b));
  b.mutable_attr()->SwapElements(0, 1);
  EXPECT_TRUE(OpDefEqual(a, b));
  EXPECT_TRUE(RepeatedAttrDefEqual(a.attr(), b.attr()));
  EXPECT_EQ(OpDefHash(a), OpDefHash(b));
  EXPECT_EQ(RepeatedAttrDefHash(a.attr()), RepeatedAttrDefHash(b.attr()));
  const auto differs = [&](const OpDef& other) {
    EXPECT_FALSE(OpDefEqual(a, other));
    EXPECT_FALSE(OpDefEqual(other, a));
    EXPECT_NE(OpDefHash(a), OpDefHash(other));
  };
  b.mutable_attr(1)->mutable_default_value()->set_i(2);
  differs(b);
  b.mutable_attr(1)->clear_default_value();
  differs(b);
  b.mutable_attr()->RemoveLast();
  differs(b);
  b.clear_attr();
  differs(b);
  EXPECT_FALSE(RepeatedAttrDefEqual(a.attr(), b.attr()));
  EXPECT_FALSE(RepeatedAttrDefEqual(b.attr(), a.attr()));
  EXPECT_TRUE(RepeatedAttrDefEqual(b.attr(), b.attr()));
  b = a;
  b.mutable_attr(1)->mutable_allowed_values()->mutable_list()->add_type(DT_HALF);
  differs(b);
  b = a;
  b.set_is_stateful(true);
  differs(b);
  // Repeating one attribute is not the same as having two.
  b = a;
  *b.mutable_attr(1) = b.attr(0);
  differs(b);
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
