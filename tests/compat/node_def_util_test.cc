// Tests of NodeDefs: how the builder fills and checks inputs, and types, names, colocation and
// errors of nodes.
#include "tensorflow/core/framework/node_def_util.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/fake_input.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def_builder.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/status_matchers.h"

namespace tensorflow {
namespace node_def_util_test {

using ::tensorflow::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using NodeOut = NodeDefBuilder::NodeOut;

// Returns an op with these inputs and attributes.
OpDef Define(const std::vector<std::string>& inputs, const std::vector<std::string>& attrs = {}) {
  OpDefBuilder builder("Test");
  for (const std::string& attr : attrs) builder.Attr(attr);
  for (const std::string& input : inputs) builder.Input(input);
  OpRegistrationData data;
  TF_EXPECT_OK(builder.Finalize(&data));
  return data.op_def;
}

struct Case {
  std::vector<std::string> inputs;
  std::vector<std::string> attrs;
  std::function<void(NodeDefBuilder*)> build;
  // The node after "{{node n}} = ", or the error before " while building".
  const char* result;
};

void Check(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.result);
    const OpDef op = Define(c.inputs, c.attrs);
    NodeDefBuilder builder("n", &op);
    c.build(&builder);
    EXPECT_EQ(builder.Finalize(nullptr).ok(), absl::string_view(c.result).substr(0, 4) == "Test");
    NodeDef node;
    const absl::Status status = builder.Finalize(&node);
    if (status.ok()) {
      EXPECT_EQ(SummarizeNodeDef(node), absl::StrCat("{{node n}} = ", c.result));
    } else {
      EXPECT_THAT(status, StatusIs(error::INVALID_ARGUMENT,
                                   absl::StrCat(c.result, " while building NodeDef 'n' using ",
                                                SummarizeOpDef(op))));
      EXPECT_EQ(node.name(), "");
    }
  }
}

using Builder = NodeDefBuilder*;

TEST(NodeDefBuilderInputs, AreChecked) {
  const auto one = [](DataType type) { return [type](Builder b) { b->Input("a", 0, type); }; };
  const auto two = [](DataType first, DataType second) {
    return [=](Builder b) { b->Input({{"a", 0, first}, {"b", 1, second}}); };
  };
  const std::vector<std::string> n_t = {"N: int", "T: type"};
  Check({
      {{"f: float"}, {}, one(DT_FLOAT), "Test[](a)"},
      {{"f: float"}, {}, one(DT_FLOAT_REF), "Test[](a)"},
      {{"f: float"}, {}, one(DT_INT32), "Input 'f' passed int32 expected float"},
      {{"r: Ref(float)"}, {}, one(DT_FLOAT_REF), "Test[](a)"},
      {{"r: Ref(float)"}, {}, one(DT_FLOAT), "Input 'r' passed float expected float_ref"},
      {{"r: Ref(T)"}, {"T: type"}, one(DT_FLOAT_REF), "Test[T=DT_FLOAT](a)"},
      {{"r: Ref(T)"}, {"T: type"}, one(DT_FLOAT), "Input 'r' passed float expected ref type"},
      {{"x: T"}, {"T: type"}, one(DT_FLOAT_REF), "Test[T=DT_FLOAT](a)"},
      {{"l: N * float"}, {"N: int"}, one(DT_FLOAT), "Single tensor passed to 'l', expected list"},
      {{"l: L"}, {"L: list(type)"}, one(DT_FLOAT), "Single tensor passed to 'l', expected list"},
      {{"l: N * float"}, {"N: int"}, two(DT_FLOAT, DT_FLOAT_REF), "Test[N=2](a, b:1)"},
      {{"l: N * float"},
       {"N: int"},
       two(DT_FLOAT, DT_INT32),
       "Input 'l' passed int32 expected float"},
      {{"l: Ref(N * float)"}, {"N: int"}, two(DT_FLOAT_REF, DT_FLOAT_REF), "Test[N=2](a, b:1)"},
      {{"l: Ref(N * float)"},
       {"N: int"},
       two(DT_FLOAT_REF, DT_FLOAT),
       "Input 'l' passed float expected float_ref"},
      {{"l: N * T"}, n_t, two(DT_INT32_REF, DT_INT32), "Test[N=2, T=DT_INT32](a, b:1)"},
      {{"l: N * T"}, n_t, two(DT_INT32, DT_FLOAT), "Input 'l' passed float expected int32"},
      {{"l: N * T"}, n_t, [](Builder b) { b->Input(gtl::ArraySlice<NodeOut>()); }, "Test[N=0]()"},
      {{"l: L"},
       {"L: list(type)"},
       two(DT_INT32, DT_FLOAT_REF),
       "Test[L=[DT_INT32, DT_FLOAT]](a, b:1)"},
      {{"f: float"},
       {},
       two(DT_FLOAT, DT_FLOAT),
       "List provided to input 'f' when single Tensor expected"},
      {{"f: float"}, {}, [](Builder b) { b->Input("", 0, DT_FLOAT); }, "Empty input node name"},
      {{"f: float"},
       {},
       [](Builder b) { b->Input("^a", 0, DT_FLOAT); },
       "Non-control input starting with ^: ^a"},
      {{"f: float"},
       {},
       [](Builder b) { b->Input("a^", 1, DT_FLOAT).ControlInput("c"); },
       "Test[](a^:1, ^c)"},
      {{"f: float"}, {}, [](Builder) {}, "0 inputs specified of 1 inputs in Op"},
      {{"f: float"},
       {},
       [](Builder b) { b->Input("a", 0, DT_FLOAT).Input("b", 0, DT_FLOAT); },
       "More Input() calls than the 1 input_args"},
      {{},
       {},
       [](Builder b) { b->Input(FakeInput()); },
       "More Input() calls than the 0 input_args"},
      {{}, {"i: int"}, [](Builder b) { b->Attr("i", 1).Attr("i", 1); }, "Test[i=1]()"},
      {{},
       {"i: int"},
       [](Builder b) { b->Attr("i", 1).Attr("i", 2); },
       "Inconsistent values for attr 'i' 1 vs. 2"},
      {{},
       {"i: int = 3"},
       [](Builder b) { b->Device("/cpu:0"); },
       "Test[i=3, _device=\"/cpu:0\"]()"},
  });
}

TEST(NodeDefBuilderInputs, MayBeFake) {
  const auto fake = [](FakeInputs inputs) { return [inputs](Builder b) { b->Input(inputs); }; };
  const std::vector<std::string> n_t = {"N: int", "T: type"};
  const std::vector<std::string> defaults = {"N: int = 2", "T: type = DT_INT32"};
  const std::vector<std::string> types = {"L: list(type)"};
  Check({
      {{"x: float", "y: Ref(int32)"},
       {},
       [](Builder b) { b->Input(FakeInput()).Input(FakeInput()); },
       "Test[](a, b)"},
      {{"x: float"}, {}, fake(FakeInput(DT_INT32)), "Input 'x' passed int32 expected float"},
      {{"x: T"}, {"T: type"}, fake(FakeInput(DT_HALF)), "Test[T=DT_HALF](a)"},
      {{"x: T"}, {"T: type = DT_BOOL"}, fake(FakeInput()), "Test[T=DT_BOOL](a)"},
      {{"x: Ref(T)"},
       {"T: type"},
       [](Builder b) { b->Attr("T", DT_BOOL).Input(FakeInput()); },
       "Test[T=DT_BOOL](a)"},
      {{"l: N * T"}, defaults, fake(FakeInput()), "Test[N=2, T=DT_INT32](a, a:1)"},
      {{"l: N * T"}, defaults, fake(FakeInput(3)), "Test[N=3, T=DT_INT32](a, a:1, a:2)"},
      {{"l: N * T"}, defaults, fake(FakeInput(DT_BOOL)), "Test[N=2, T=DT_BOOL](a, a:1)"},
      {{"l: N * T"}, n_t, fake(FakeInput(1, DT_BOOL)), "Test[N=1, T=DT_BOOL](a)"},
      {{"l: N * T"}, n_t, fake(FakeInput({DT_BOOL, DT_BOOL})), "Test[N=2, T=DT_BOOL](a, a:1)"},
      {{"l: N * T"}, n_t, fake(FakeInput(0)), "Test[N=0]()"},
      {{"l: N * float"}, {"N: int"}, fake(FakeInput(1)), "Test[N=1](a)"},
      {{"l: Ref(N * float)"}, {"N: int"}, fake(FakeInput(1)), "Test[N=1](a)"},
      {{"l: L"}, types, fake(FakeInput({DT_BOOL, DT_HALF})), "Test[L=[DT_BOOL, DT_HALF]](a, a:1)"},
      {{"l: L"}, types, fake(FakeInput(DataTypeSlice())), "Test[L=[]]()"},
      {{"l: L"}, types, fake(FakeInput(0)), "Test[L=[]]()"},
      {{"l: L"},
       types,
       [](Builder b) {
         b->Attr("L", DataTypeVector{DT_BOOL, DT_HALF}).Input(FakeInput());
       },
       "Test[L=[DT_BOOL, DT_HALF]](a, a:1)"},
  });
  const std::vector<Case> errors = {
      {{"l: N * float"},
       {"N: int"},
       fake(FakeInput()),
       "Could not infer length of input 'l': No "
       "attr named 'N' in NodeDef: {{node n}} = "
       "Test[]()"},
      {{"l: N * T"},
       n_t,
       fake(FakeInput(1)),
       "Could not infer type for input 'l': No attr named 'T'"},
      {{"x: T"},
       {"T: type"},
       fake(FakeInput()),
       "Could not infer type for input 'x': No attr named 'T'"},
      {{"l: L"},
       types,
       fake(FakeInput()),
       "Could not infer list of types for input 'l': No attr named 'L'"},
      {{"l: L"}, types, fake(FakeInput(1)), "No type or type_attr field in arg 'l'"},
  };
  for (const Case& c : errors) {
    const OpDef op = Define(c.inputs, c.attrs);
    NodeDefBuilder builder("n", &op);
    c.build(&builder);
    NodeDef node;
    // The input is also missing.
    EXPECT_THAT(
        builder.Finalize(&node),
        StatusIs(error::INVALID_ARGUMENT,
                 ::testing::AllOf(::testing::StartsWith("2 errors while building NodeDef "
                                                        "'n' using Op<name=Test;"),
                                  HasSubstr(absl::StrCat(":\n", c.result)),
                                  ::testing::EndsWith("\n0 inputs specified of 1 inputs in Op"))));
  }
}

TEST(NodeDefBuilder, KeepsOrMovesItsNode) {
  const OpDef op = Define({}, {});
  NodeDefBuilder builder("n", &op);
  EXPECT_EQ(builder.node_name(), "n");
  EXPECT_EQ(&builder.op_def(), &op);
  NodeDef first, second, third;
  TF_EXPECT_OK(builder.ControlInput("c").Finalize(&first));
  TF_EXPECT_OK(builder.Finalize(&second, /*consume=*/true));
  EXPECT_EQ(first.DebugString(), second.DebugString());
  EXPECT_EQ(builder.node_name(), "");
  OpList none;
  const OpListOpRegistry registry(&none);
  EXPECT_THAT(
      NodeDefBuilder("n", "Op", &registry)
          .Input(FakeInput())
          .Input("a", 0, DT_FLOAT)
          .Finalize(&third),
      StatusIs(error::INVALID_ARGUMENT, "Op type not registered 'Op' while building NodeDef 'n'"));
}

// ---- Types ----

TEST(NodeTypes, NeedOnlyTheAttributesOfTheirSide) {
  OpRegistrationData data;
  TF_ASSERT_OK(OpDefBuilder("Test")
                   .Attr("T: type")
                   .Attr("N: int")
                   .Attr("L: list(type)")
                   .Input("x: T")
                   .Output("y: N * float")
                   .Output("z: L")
                   .Finalize(&data));
  const OpDef& op = data.op_def;
  NodeDef inputs, outputs;
  inputs.set_name("i");
  outputs.set_name("o");
  AddNodeAttr("T", DT_HALF, &inputs);
  AddNodeAttr("N", 2, &outputs);
  AddNodeAttr("L", DataTypeVector{DT_INT32}, &outputs);
  DataTypeVector types;
  TF_EXPECT_OK(InputTypesForNode(inputs, op, &types));
  EXPECT_THAT(types, ElementsAre(DT_HALF));
  EXPECT_FALSE(InputTypesForNode(outputs, op, &types).ok());
  const AttrSlice slices[] = {AttrSlice(outputs), AttrSlice(&outputs.attr())};
  for (const AttrSlice& slice : slices) {
    TF_EXPECT_OK(OutputTypesForNode(slice, op, &types));
    EXPECT_THAT(types, ElementsAre(DT_FLOAT, DT_FLOAT, DT_INT32));
  }
  int count = 0;
  TF_EXPECT_OK(NumOutputsForNode(outputs, op, &count));
  EXPECT_EQ(count, 3);
  EXPECT_FALSE(NumOutputsForNode(inputs, op, &count).ok());

  DataType type = DT_INVALID;
  TF_EXPECT_OK(InputTypeForNode(inputs, op, 0, &type));
  EXPECT_EQ(type, DT_HALF);
  EXPECT_FALSE(InputTypeForNode(outputs, op, 0, &type).ok());
  EXPECT_FALSE(OutputTypeForNode(inputs, op, 0, &type).ok());
  for (int port = 0; port < 3; ++port) {
    TF_EXPECT_OK(OutputTypeForNode(outputs, op, port, &type));
    EXPECT_EQ(type, types[port]);
  }
  for (const int port : {-1, 3}) {
    EXPECT_THAT(
        OutputTypeForNode(outputs, op, port, &type),
        StatusIs(error::INVALID_ARGUMENT, absl::StrCat("Output ", port, " not found for node o")));
  }
  for (const int port : {-1, 1}) {
    EXPECT_THAT(
        InputTypeForNode(inputs, op, port, &type),
        StatusIs(error::INVALID_ARGUMENT, absl::StrCat("Input ", port, " not found for node i")));
  }
  EXPECT_EQ(OpPortIdToArgId(outputs, op.output_arg(), 2), 1);
  EXPECT_EQ(OpPortIdToArgId(inputs, op.output_arg(), 0), -1);
  NameRangeMap ranges;
  TF_EXPECT_OK(NameRangesForNode(AttrSlice(&outputs.attr()), data.op_def, nullptr, &ranges));
}

// Each kind of output reads its attribute.
TEST(NodeTypes, ReadAttributesThatOutputsName) {
  for (const char* output : {"y: T", "y: N * float", "y: L"}) {
    OpRegistrationData data;
    TF_ASSERT_OK(OpDefBuilder("Test")
                     .Attr("T: type")
                     .Attr("N: int")
                     .Attr("L: list(type)")
                     .Output(output)
                     .Finalize(&data));
    NodeDef node;
    AddNodeAttr("T", DT_FLOAT, &node);
    AddNodeAttr("N", 1, &node);
    AddNodeAttr("L", DataTypeVector{DT_FLOAT}, &node);
    DataTypeVector types;
    TF_EXPECT_OK(OutputTypesForNode(node, data.op_def, &types)) << output;
    EXPECT_THAT(types, ElementsAre(DT_FLOAT));
  }
}

// ---- Names and errors ----

TEST(NodeSyntax, ChecksNamesAndInputs) {
  const struct {
    const char* name;
    std::vector<const char*> inputs;
    const char* error;
  } cases[] = {
      {"a", {}, ""},
      {"A0.b_c/d-e", {"x", "y:0", "z:10", "^c", "^d/e"}, ""},
      {".a", {"a>b", "a>b>.c:1"}, ""},
      {"0", {}, ""},
      {"", {}, "Illegal op name ''"},
      {"_a", {}, "Illegal op name '_a'"},
      {"/a", {}, "Illegal op name '/a'"},
      {"a>", {}, "Illegal op name 'a>'"},
      {"a>_b", {}, "Illegal op name 'a>_b'"},
      {"a:0", {}, "Illegal op name 'a:0'"},
      {"a", {"x:00"}, "Illegal op input name 'x:00'"},
      {"a", {"x:1a"}, "Illegal op input name 'x:1a'"},
      {"a", {"x;1"}, "Illegal op input name 'x;1'"},
      {"a", {"^"}, "Illegal op input name '^'"},
      {"a",
       {"^c", "^d:0"},
       "All control inputs must follow all data inputs, but '^d:0' is an input after a control "
       "input"},
  };
  for (const auto& c : cases) {
    NodeDef node;
    node.set_name(c.name);
    for (const char* input : c.inputs) node.add_input(input);
    if (*c.error == 0) {
      TF_EXPECT_OK(ValidateExternalNodeDefSyntax(node)) << c.name;
    } else {
      EXPECT_THAT(ValidateExternalNodeDefSyntax(node),
                  StatusIs(error::INVALID_ARGUMENT,
                           absl::StrCat(c.error, "\n\t [[{{node ", c.name, "}}]]")));
    }
  }
}

TEST(NodeErrors, NameTheNodeAndItsOrigin) {
  NodeDef node;
  node.set_name("n");
  EXPECT_EQ(FormatNodeDefForError(node), "{{node n}}");
  const absl::Status plain = errors::Aborted("no"), formatted = errors::Aborted("no {{node m}}");
  EXPECT_THAT(AttachDef(plain, node), StatusIs(error::ABORTED, "no\n\t [[{{node n}}]]"));
  EXPECT_THAT(AttachDef(formatted, node), StatusIs(error::ABORTED, "no {{node m}}\n\t [[n]]"));
  EXPECT_THAT(AttachDef(formatted, node, /*allow_multiple_formatted_node=*/true),
              StatusIs(error::ABORTED, "no {{node m}}\n\t [[{{node n}}]]"));
  TF_EXPECT_OK(AttachDef(absl::OkStatus(), node));
  for (const char* name : {"x", "y", "z"}) {
    node.mutable_experimental_debug_info()->add_original_node_names(name);
  }
  node.mutable_experimental_debug_info()->add_original_func_names("f");
  node.mutable_experimental_debug_info()->add_original_func_names("");
  EXPECT_EQ(FormatNodeDefForError(node), "{{function_node f}}{{node x}}, {{node y}}, {{node z}}");
}

TEST(NodeErrors, TakeNodesOfGraphs) {
  Graph graph(OpRegistry::Global());
  Node* node = nullptr;
  TF_ASSERT_OK(NodeBuilder("p", "Placeholder").Attr("dtype", DT_FLOAT).Finalize(&graph, &node));
  EXPECT_EQ(FormatNodeForError(*node), "{{node p}}");
  EXPECT_THAT(AttachDef(errors::Aborted("no"), *node),
              StatusIs(error::ABORTED, "no\n\t [[{{node p}}]]"));
  EXPECT_THAT(AttachDef(errors::Aborted("{{node m}}"), *node, true),
              StatusIs(error::ABORTED, "{{node m}}\n\t [[{{node p}}]]"));
  NameRangeMap inputs, outputs;
  const OpDef* op = nullptr;
  TF_ASSERT_OK(OpRegistry::Global()->LookUpOpDef("Placeholder", &op));
  TF_EXPECT_OK(NameRangesForNode(*node, *op, &inputs, &outputs));
  EXPECT_TRUE(inputs.empty());
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs.begin()->second, std::pair(0, 1));
}

TEST(ValidateNodeDef, NamesOneMissingAttribute) {
  const OpDef op = Define({}, {"i: int"});
  NodeDef node;
  node.set_name("n");
  node.set_op("Test");
  EXPECT_THAT(
      ValidateNodeDef(node, op),
      StatusIs(error::INVALID_ARGUMENT, absl::StrCat("NodeDef missing attr 'i' from ",
                                                     SummarizeOpDef(op), "; NodeDef: {{node n}}")));
  AddNodeAttr("i", 1, &node);
  node.add_input("^a");
  node.add_input("^b");
  TF_EXPECT_OK(ValidateNodeDef(node, op));
}

// ---- Changes ----

TEST(NodeChanges, AddToNamesAndFrames) {
  const struct {
    const char* op;
    bool uniquify;
    const char* frame;
  } cases[] = {{"Enter", true, "p/f/s"},
               {"RefEnter", true, "p/f/s"},
               {"Enter", false, "f"},
               {"Exit", true, "f"}};
  for (const auto& c : cases) {
    NodeDef node;
    node.set_name("n");
    node.set_op(c.op);
    AddNodeAttr("frame_name", "f", &node);
    TF_EXPECT_OK(AddPrefixAndSuffixToNode("p/", "/s", &node, c.uniquify));
    EXPECT_EQ(node.name(), "p/n/s");
    EXPECT_EQ(node.attr().at("frame_name").s(), c.frame) << c.op;
  }
  NodeDef node;
  node.set_op("Enter");
  EXPECT_THAT(AddPrefixAndSuffixToNode("p/", "/s", &node),
              StatusIs(error::NOT_FOUND, HasSubstr("frame_name")));
}

TEST(NodeChanges, RenameColocatedNodes) {
  const std::map<absl::string_view, absl::string_view> names = {{"a", "x"}, {"c", "y"}};
  const auto prefix = [](NodeDef* n) {
    return MaybeAddPrefixToColocationConstraints({"a", "b"}, "p/", n);
  };
  const auto rename = [&](NodeDef* n) { return MaybeUpdateColocationConstraintsWithMap(names, n); };
  NodeDef node, none, wrong;
  AddNodeAttr(kColocationAttrName, {"loc:@a", "a", "loc:@c"}, &node);
  AddNodeAttr(kColocationAttrName, 3, &wrong);
  NodeDef other = node;
  TF_EXPECT_OK(prefix(&node));
  EXPECT_EQ(SummarizeAttrValue(node.attr().at("_class")), "[\"loc:@p/a\", \"a\", \"loc:@c\"]");
  TF_EXPECT_OK(rename(&other));
  EXPECT_EQ(SummarizeAttrValue(other.attr().at("_class")), "[\"loc:@x\", \"a\", \"loc:@y\"]");
  for (const auto& change : {std::function<absl::Status(NodeDef*)>(prefix),
                             std::function<absl::Status(NodeDef*)>(rename)}) {
    TF_EXPECT_OK(change(&none));
    EXPECT_EQ(none.attr_size(), 0);
    EXPECT_THAT(change(&wrong), StatusIs(error::INVALID_ARGUMENT, HasSubstr("attribute _class: ")));
  }
}

TEST(NodeChanges, ChangingToNoOpRemovesTypes) {
  NodeDef node;
  node.mutable_experimental_type()->set_type_id(TFT_TENSOR);
  node.add_input("s:x:1");
  ChangeToNoOp(&node);
  EXPECT_FALSE(node.has_experimental_type());
  EXPECT_EQ(node.input(0), "^s:x");
}

}  // namespace node_def_util_test
}  // namespace tensorflow
