#include "gradflow/core/op_def_util.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "gradflow/core/attributes.h"
#include "gradflow/core/op_def_builder.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/core/shorthands.h"

namespace gradflow {
namespace {

using ::gradflow::testing::Finalized;
using ::gradflow::testing::FromText;
using ::gradflow::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

OpDef TestOp() {
  return Finalized(OpDefBuilder("Test")
                       .Input("first: float")
                       .Input("values: N * T")
                       .Input("rest: Ts")
                       .Input("var: Ref(T)")
                       .Output("out: M * int32")
                       .Output("refs: Ref(T)")
                       .Output("last: Ts")
                       .Attr("N: int >= 1")
                       .Attr("M: int >= 0 = 0")
                       .Attr("T: {half, float} = DT_FLOAT")
                       .Attr("Ts: list({int32, int64}) >= 1")
                       .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
                       .Attr("ksize: list(int) >= 4 = [1, 2, 2, 1]"));
}

NodeDef TestNode() {
  NodeDef node = FromText<NodeDef>(R"pb(
    name: "n"
    op: "Test"
    input: [ "a", "b:1", "c", "d", "e", "f", "^g" ]
    attr {
      key: "N"
      value { i: 2 }
    }
    attr {
      key: "M"
      value { i: 3 }
    }
    attr {
      key: "Ts"
      value { list { type: [ DT_INT32, DT_INT64 ] } }
    }
  )pb");
  AddDefaultsToNodeDef(TestOp(), &node);
  return node;
}

// ---- ValidateOpDef ----

TEST(ValidateOpDef, AcceptsInternalAndNamespacedOps) {
  for (const char* name :
       {"A", "MatMul", "Conv2D", "_Arg", "__A", "_a", "Addons>Op", "A>B_2>C", "A_b"}) {
    OpDef op_def;
    op_def.set_name(name);
    GRADFLOW_EXPECT_OK(ValidateOpDef(op_def)) << name;
  }
}

TEST(ValidateOpDef, NamesInconsistencies) {
  const struct {
    const char* op_def;
    const char* text;
  } cases[] = {
      {"name: ''", "must begin with a capital letter"},
      {"name: 'add'", "op 'add': the name must begin with a capital letter"},
      {"name: 'Add-2'", "must begin with a capital letter"},
      {"name: '>Add'", "must begin with a capital letter"},
      {"name: 'A>'", "must begin with a capital letter"},
      {"name: 'A>add'", "must begin with a capital letter"},
      {"name: 'A>>Add'", "must begin with a capital letter"},
      {"name: '_'", "must begin with a capital letter"},
      {"input_arg { name: '2x' type: DT_FLOAT }", "name of input '2x' is not an identifier"},
      {"output_arg { type: DT_FLOAT }", "name of output '' is not an identifier"},
      {"attr { name: '_a' type: 'int' }", "name of attribute '_a' is not an identifier"},
      {"attr { name: 'int8' type: 'int' }", "attribute int8 has the name of a type"},
      {"attr { name: 'a' type: 'int' } attr { name: 'a' type: 'int' }",
       "name of attribute a is already used"},
      {"attr { name: 'a' type: 'int' } input_arg { name: 'a' type: DT_FLOAT }",
       "name of input a is already used"},
      {"input_arg { name: 'a' type: DT_FLOAT } output_arg { name: 'a' type: DT_FLOAT }",
       "name of output a is already used"},
      {"input_arg { name: 'a' }", "input a must have one type, but has 0"},
      {"input_arg { name: 'a' type: DT_FLOAT type_attr: 'T' } attr { name: 'T' type: 'type' }",
       "input a must have one type, but has 2"},
      {"input_arg { name: 'a' type: DT_FLOAT_REF }", "input a has type float_ref"},
      {"input_arg { name: 'a' type: 77 }", "input a has type DataType(77)"},
      {"input_arg { name: 'a' type_attr: 'T' }",
       "input a refers to 'T', which is not an attribute"},
      {"input_arg { name: 'a' type_attr: 'T' } attr { name: 'T' type: 'int' }",
       "input a needs attribute T to be of type type, but it is int"},
      {"input_arg { name: 'a' type_list_attr: 'T' } attr { name: 'T' type: 'type' }",
       "input a needs attribute T to be of type list(type), but it is type"},
      {"input_arg { name: 'a' type: DT_FLOAT number_attr: 'N' } attr { name: 'N' type: 'float' }",
       "input a needs attribute N to be of type int, but it is float"},
      {"input_arg { name: 'a' type: DT_FLOAT number_attr: 'N' } attr { name: 'N' type: 'int' }",
       "attribute N, the length of input a, must have a minimum of at least 0"},
      {"output_arg { name: 'a' number_attr: 'N' type_list_attr: 'T' } "
       "attr { name: 'N' type: 'int' has_minimum: true } attr { name: 'T' type: 'list(type)' }",
       "output a has both a length and a list of types"},
      {"attr { name: 'a' type: 'integer' }", "type 'integer', which is not an attribute type"},
      {"attr { name: 'a' type: 'list(int' }", "type 'list(int', which is not an attribute type"},
      {"attr { name: 'a' type: 'list(list(int))' }", "which is not an attribute type"},
      {"attr { name: 'a' }", "type '', which is not an attribute type"},
      {"attr { name: 'a' type: 'float' has_minimum: true }",
       "attribute a has a minimum, which float cannot have"},
      {"attr { name: 'a' type: 'list(int)' has_minimum: true minimum: -1 }",
       "negative minimum length, -1"},
      {"attr { name: 'a' type: 'int' allowed_values { list { i: 1 } } }",
       "attribute a has allowed values, which int cannot have"},
      {"attr { name: 'a' type: 'type' allowed_values { list { s: 'x' } } }",
       "allowed values of a: expected list(type), but found [\"x\"] (list(string))"},
      {"attr { name: 'a' type: 'type' allowed_values { type: DT_FLOAT } }",
       "allowed values of a: expected list(type), but found DT_FLOAT (type)"},
      {"attr { name: 'a' type: 'int' default_value { f: 1 } }",
       "default of attribute a: expected int, but found 1.0 (float)"},
      {"attr { name: 'a' type: 'int' has_minimum: true minimum: 2 default_value { i: 1 } }",
       "default of attribute a must be at least 2, but is 1"},
      {"attr { name: 'a' type: 'type' allowed_values { list { type: DT_HALF } } "
       "default_value { type: DT_FLOAT } }",
       "default of attribute a must be one of {half}, but is float"},
  };
  for (const auto& c : cases) {
    OpDef op_def = FromText<OpDef>(c.op_def);
    if (op_def.name().empty() && std::string(c.op_def) != "name: ''") op_def.set_name("Op");
    EXPECT_THAT(ValidateOpDef(op_def),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.text)))
        << c.op_def;
  }
}

TEST(ValidateFunctionSignature, AllowsWhatFunctionsHave) {
  OpDef signature = FromText<OpDef>(R"pb(
    name: "while_body_1/x-y"
    input_arg { name: "x" type: DT_FLOAT number_attr: "N" }
    input_arg { name: "Layer_1/conv-2.weights" type: DT_FLOAT }
    output_arg { name: "x" type: DT_FLOAT }
    attr { name: "N" type: "int" }
  )pb");
  GRADFLOW_EXPECT_OK(ValidateFunctionSignature(signature));
  EXPECT_FALSE(ValidateOpDef(signature).ok());
  signature.mutable_output_arg(0)->set_name("N");
  signature.mutable_input_arg(0)->set_number_attr("M");
  EXPECT_THAT(ValidateFunctionSignature(signature),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "input x refers to 'M', which is not an attribute"));
  signature.mutable_input_arg(0)->set_number_attr("N");
  for (const char* name : {"", "/x", "x y", "x:0"}) {
    signature.mutable_input_arg(1)->set_name(name);
    EXPECT_THAT(ValidateFunctionSignature(signature),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         absl::StrCat("the name of input '", name, "' is not valid for a node")));
  }
}

TEST(ValidateOpDef, ReportsSeveralFaultsButNotHundreds) {
  OpDef op_def;
  op_def.set_name("Op");
  for (int i = 0; i < 500; ++i) op_def.add_attr()->set_name("a");
  const absl::Status status = ValidateOpDef(op_def);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               AllOf(HasSubstr("already used; "), HasSubstr("; and 99"))));
  EXPECT_LT(status.message().size(), 2000u);
}

// ---- Defaults ----

TEST(Defaults, AreAddedWhereMissing) {
  NodeDef node;
  SetAttrValue("NCHW", &(*node.mutable_attr())["data_format"]);
  AddDefaultsToNodeDef(TestOp(), &node);
  EXPECT_EQ(SummarizeNodeDef(node),
            "{{node }} = [M=0, T=DT_FLOAT, data_format=\"NCHW\", ksize=[1, 2, 2, 1]]()");
}

TEST(Defaults, AreStrippedWhereEqual) {
  NodeDef node = TestNode();
  SetAttrValue("NCHW", &(*node.mutable_attr())["data_format"]);
  AddNodeAttr("_mine", 3, &node);
  StripDefaultsFromNodeDef(TestOp(), &node);
  node.clear_input();
  EXPECT_EQ(
      SummarizeNodeDef(node),
      "{{node n}} = Test[M=3, N=2, Ts=[DT_INT32, DT_INT64], _mine=3, data_format=\"NCHW\"]()");
}

TEST(Defaults, SurviveStrippingAndAdding) {
  const NodeDef node = TestNode();
  NodeDef copy = node;
  StripDefaultsFromNodeDef(TestOp(), &copy);
  EXPECT_EQ(copy.attr_size(), 3);
  AddDefaultsToNodeDef(TestOp(), &copy);
  EXPECT_EQ(SummarizeNodeDef(copy), SummarizeNodeDef(node));
}

// ---- ValidateNodeDef ----

TEST(ValidateNodeDef, AcceptsNodesOfTheDefinition) {
  NodeDef node = TestNode();
  GRADFLOW_EXPECT_OK(ValidateNodeDef(node, TestOp()));
  AddNodeAttr("_anything", "goes", &node);
  GRADFLOW_EXPECT_OK(ValidateNodeDef(node, TestOp()));
  AddNodeAttr("M", 0, &node);
  GRADFLOW_EXPECT_OK(ValidateNodeDef(node, TestOp()));
}

TEST(ValidateNodeDef, NamesTheAttributeExpectedAndFound) {
  const struct {
    const char* attr;
    // If this is empty, the attribute is removed.
    const char* value;
    const char* text;
  } cases[] = {
      {"N", "", "attribute N (int) is missing"},
      {"N", "i: 0", "attribute N must be at least 1, but is 0"},
      {"N", "i: -9223372036854775808", "must be at least 1, but is -9223372036854775808"},
      {"N", "f: 1.5", "attribute N: expected int, but found 1.5 (float)"},
      {"N", "", "attribute N (int) is missing"},
      {"N", "placeholder: 'x'", "attribute N: expected int, but found $x (placeholder)"},
      {"N", "list {}", "attribute N: expected int, but found []"},
      {"M", "i: 2000000", "length of out must be from 0 to 1048576, but is 2000000"},
      {"T", "type: DT_DOUBLE", "attribute T must be one of {half, float}, but is double"},
      {"T", "type: DT_FLOAT_REF", "expected a non-reference type, but found DT_FLOAT_REF"},
      {"T", "type: 77", "attribute T: expected a type, but found 77, which is not a type"},
      {"Ts", "list {}", "attribute Ts must have at least 1 element, but has 0"},
      {"Ts", "list { type: [ DT_INT32, DT_HALF ] }",
       "attribute Ts must hold only {int32, int64}, but holds half"},
      {"Ts", "type: DT_INT32", "attribute Ts: expected list(type), but found DT_INT32 (type)"},
      {"data_format", "s: 'NWHC'",
       "attribute data_format must be one of {\"NHWC\", \"NCHW\"}, but is \"NWHC\""},
      {"ksize", "list { i: [ 1, 2 ] }", "attribute ksize must have at least 4 elements, but has 2"},
      {"ksize", "list { f: [ 1, 2 ] }", "expected list(int), but found [1.0, 2.0] (list(float))"},
      {"kSize", "i: 1", "unknown attribute 'kSize'; did you mean 'ksize'?"},
      {"dataformat", "i: 1", "unknown attribute 'dataformat'; did you mean 'data_format'?"},
      {"unlike\nall", "i: 1", "unknown attribute 'unlike\\nall'"},
  };
  for (const auto& c : cases) {
    NodeDef node = TestNode();
    if (*c.value == '\0') {
      node.mutable_attr()->erase(c.attr);
    } else {
      (*node.mutable_attr())[c.attr] = FromText<AttrValue>(c.value);
    }
    absl::Status status = ValidateNodeDef(node, TestOp());
    // Errors of output types are found when the types are computed.
    DataTypeVector inputs, outputs;
    if (status.ok()) status = InOutTypesForNode(node, TestOp(), &inputs, &outputs);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.text)))
        << c.attr << " " << c.value;
  }
}

TEST(ValidateNodeDef, ReportsEveryFault) {
  NodeDef node = TestNode();
  node.mutable_attr()->erase("N");
  AddNodeAttr("T", DT_INT8, &node);
  AddNodeAttr("b", 1, &node);
  AddNodeAttr("a", 1, &node);
  EXPECT_THAT(ValidateNodeDef(node, TestOp()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "attribute N (int) is missing; attribute T must be one of {half, float}, "
                       "but is int8; unknown attribute 'a'; unknown attribute 'b'"));
}

TEST(ValidateNodeDef, KeepsMessagesShort) {
  NodeDef node = TestNode();
  for (int i = 0; i < 1000; ++i) AddNodeAttr(std::string(1000, 'x') + std::to_string(i), 1, &node);
  AddNodeAttr("data_format", std::string(1000000, 'y'), &node);
  const absl::Status status = ValidateNodeDef(node, TestOp());
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("yyy...\"")));
  EXPECT_LT(status.message().size(), 2000u);
}

TEST(ValidateNodeDef, CountsDataInputs) {
  NodeDef node = TestNode();
  node.mutable_input()->DeleteSubrange(0, 1);
  EXPECT_THAT(ValidateNodeDef(node, TestOp()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "expected 6 inputs (first, values, rest, var), but found 5"));
  const OpDef source = Finalized(OpDefBuilder("Source"));
  node = FromText<NodeDef>("input: ['^a']");
  GRADFLOW_EXPECT_OK(ValidateNodeDef(node, source));
  node.add_input("b");
  EXPECT_THAT(ValidateNodeDef(node, source),
              StatusIs(absl::StatusCode::kInvalidArgument, "expected 0 inputs, but found 1"));
}

// ---- Arguments ----

TEST(InOutTypesForNode, LaysOutListsOneAfterTheOther) {
  DataTypeVector inputs = {DT_BOOL}, outputs = {DT_BOOL};
  GRADFLOW_ASSERT_OK(InOutTypesForNode(TestNode(), TestOp(), &inputs, &outputs));
  EXPECT_THAT(inputs, ElementsAre(DT_FLOAT, DT_FLOAT, DT_FLOAT, DT_INT32, DT_INT64, DT_FLOAT_REF));
  EXPECT_THAT(outputs, ElementsAre(DT_INT32, DT_INT32, DT_INT32, DT_FLOAT_REF, DT_INT32, DT_INT64));
}

TEST(InOutTypesForNode, RefusesLengthsBeyondAnyNode) {
  const OpDef op_def = Finalized(
      OpDefBuilder("Op").Output("a: N * float").Output("b: N * float").Attr("N: int >= 0"));
  DataTypeVector inputs, outputs;
  for (const int64_t n : {int64_t{-1}, int64_t{1} << 40, std::numeric_limits<int64_t>::max()}) {
    NodeDef node;
    AddNodeAttr("N", n, &node);
    EXPECT_THAT(
        InOutTypesForNode(node, op_def, &inputs, &outputs),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("length of a must be from 0 to")));
  }
  NodeDef node;
  AddNodeAttr("N", 1 << 20, &node);
  EXPECT_THAT(
      InOutTypesForNode(node, op_def, &inputs, &outputs),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("but argument b exceeds this")));
}

TEST(InOutTypesForNode, ReportsTheMissingAttribute) {
  NodeDef node = TestNode();
  node.mutable_attr()->erase("Ts");
  DataTypeVector inputs, outputs;
  EXPECT_THAT(InOutTypesForNode(node, TestOp(), &inputs, &outputs),
              StatusIs(absl::StatusCode::kNotFound, "attribute Ts is missing"));
}

TEST(NameRangesForNode, ReturnsTheRangeOfEachArgument) {
  NameRangeMap inputs, outputs;
  GRADFLOW_ASSERT_OK(NameRangesForNode(TestNode(), TestOp(), &inputs, &outputs));
  EXPECT_THAT(inputs, UnorderedElementsAre(Pair("first", Pair(0, 1)), Pair("values", Pair(1, 3)),
                                           Pair("rest", Pair(3, 5)), Pair("var", Pair(5, 6))));
  EXPECT_THAT(outputs, UnorderedElementsAre(Pair("out", Pair(0, 3)), Pair("refs", Pair(3, 4)),
                                            Pair("last", Pair(4, 6))));
  GRADFLOW_EXPECT_OK(NameRangesForNode(TestNode(), TestOp(), nullptr, nullptr));
}

TEST(NameRangesForNode, AnArgumentWithoutATypeIsAnError) {
  NameRangeMap inputs, outputs;
  OpDef op = TestOp();
  op.mutable_output_arg(0)->clear_type();
  op.mutable_output_arg(0)->clear_type_attr();
  op.mutable_output_arg(0)->clear_type_list_attr();
  EXPECT_THAT(NameRangesForNode(TestNode(), op, &inputs, &outputs),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has no type")));
}

TEST(NameRangesForNode, ReturnsEmptyRangesForEmptyLists) {
  NodeDef node = TestNode();
  AddNodeAttr("M", 0, &node);
  NameRangeMap outputs;
  GRADFLOW_ASSERT_OK(NameRangesForNode(node, TestOp(), nullptr, &outputs));
  EXPECT_EQ(outputs["out"], NameRange(0, 0));
  EXPECT_EQ(outputs["refs"], NameRange(0, 1));
}

// ---- NearNames ----

TEST(NearNames, FindsTheNearestFirst) {
  const std::vector<std::string> names = {"MatMul",  "BatchMatMul", "Mul",   "Sum",
                                          "Sub",     "Softmax",     "Sqrt",  "Square",
                                          "Squeeze", "Shape",       "ShapeN"};
  EXPECT_THAT(NearNames("matmul", names), ElementsAre("MatMul"));
  EXPECT_THAT(NearNames("MatMull", names), ElementsAre("MatMul"));
  EXPECT_THAT(NearNames("Shap", names), ElementsAre("Shape"));
  EXPECT_THAT(NearNames("Shapes", names), ElementsAre("Shape", "ShapeN"));
  EXPECT_THAT(NearNames("Sux", names), ElementsAre("Sub", "Sum"));
  EXPECT_THAT(NearNames("Sux", names, 1), ElementsAre("Sub"));
  EXPECT_THAT(NearNames("Sux", names, 0), IsEmpty());
  EXPECT_THAT(NearNames("Shpae", names), ElementsAre("Shape"));
  EXPECT_THAT(NearNames("Convolution", names), IsEmpty());
  EXPECT_THAT(NearNames("", names), IsEmpty());
  EXPECT_THAT(NearNames("x", {"X", "y", ""}), ElementsAre("X"));
}

// The full dynamic program. NearNames computes only a band of it.
int EditDistance(const std::string& a, const std::string& b) {
  std::vector<std::vector<int>> cost(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = static_cast<int>(i + j);
      } else {
        cost[i][j] = std::min(
            {cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      }
    }
  }
  return cost[a.size()][b.size()];
}

TEST(NearNames, AgreesWithTheFullEditDistance) {
  uint32_t seed = 1;
  const auto random = [&seed](uint32_t limit) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 16) % limit;
  };
  const auto word = [&] {
    std::string text;
    for (uint32_t n = random(16); n > 0; --n) text += static_cast<char>('a' + random(2));
    return text;
  };
  for (int i = 0; i < 5000; ++i) {
    const std::string a = word(), b = word();
    const int limit = std::min<int>(5, static_cast<int>(a.size() + 1) / 3);
    EXPECT_EQ(!NearNames(a, {b}).empty(), EditDistance(a, b) <= limit) << a << " " << b;
  }
}

TEST(NearNames, StaysCheapForManyAndLongNames) {
  std::vector<std::string> names;
  names.reserve(5000);
  for (int i = 0; i < 5000; ++i) names.push_back("SomeRatherLongOperationName" + std::to_string(i));
  EXPECT_THAT(NearNames("SomeRatherLongOperationNme77", names, 1),
              ElementsAre("SomeRatherLongOperationName77"));
  names.assign(100, std::string(1000000, 'x'));
  EXPECT_THAT(NearNames(std::string(1000000, 'x'), names), IsEmpty());
  EXPECT_THAT(NearNames("x", names), IsEmpty());
}

}  // namespace
}  // namespace gradflow
