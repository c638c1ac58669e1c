// Tests of the text of programs that `gradflow convert GRAPH OUT.cc` writes. tests/programs
// compiles such programs and runs their graphs.
#include "tools/edit/cpp_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/graph/import.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/testing/status_matchers.h"

namespace gradflow::tools {
namespace {

using ::gradflow::testing::StatusIs;
using ::testing::HasSubstr;

GraphDef ParsedGraph(const std::string& text) {
  absl::StatusOr<GraphDef> graph = ParseGraphDefText(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : GraphDef();
}
std::string Program(const GraphDef& graph) {
  absl::StatusOr<std::string> program = CppProgram(graph, "g", GraphLimits());
  EXPECT_TRUE(program.ok()) << program.status();
  return program.value_or("");
}
// Returns the statements that add the nodes.
std::string Statements(const std::string& text) {
  const std::string program = Program(ParsedGraph(text));
  const std::string begin = "// NOLINT\n";
  const size_t first = program.find(begin) + begin.size();
  return program.substr(first, program.find("  return root.status();") - first);
}

std::string ConstNode(const std::string& type, const std::string& tensor,
                      const std::string& name = "c") {
  return absl::StrCat(
      "node { name: '", name, "' op: 'Const' attr { key: 'dtype' value { type: ", type,
      " } } attr { key: 'value' value { tensor { dtype: ", type, " ", tensor, " } } } }\n");
}
std::string PlaceholderNode(const std::string& name, const std::string& type = "DT_FLOAT") {
  return absl::StrCat("node { name: '", name, "' op: 'Placeholder' ",
                      "attr { key: 'dtype' value { type: ", type, " } } }\n");
}
constexpr char kFloatAttr[] = " attr { key: 'T' value { type: DT_FLOAT } }";

struct CppCase {
  std::string nodes;
  std::string statements;
};

TEST(CppProgram, HasOnlyTheFrameForAnEmptyGraph) {
  EXPECT_EQ(Program(GraphDef()), R"(// Builds the graph 'g'. Made by gradflow.
#include <iostream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/const_op.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/graph/scope.h"
#include "gradflow/proto/graph.pb.h"

absl::Status BuildGraph(const gradflow::Scope& root) {
  using namespace gradflow;  // NOLINT
  return root.status();
}

int main(int argc, char** argv) {
  const gradflow::Scope root = gradflow::Scope::NewRootScope();
  absl::Status status = BuildGraph(root);
  gradflow::GraphDef graph;
  if (status.ok()) status = root.ToGraphDef(&graph);
  if (status.ok()) status = gradflow::WriteGraphDef(argc > 1 ? argv[1] : "graph.pb", graph);
  if (status.ok()) return 0;
  std::cerr << status.ToString() << "\n";
  return 1;
}
)");
}

TEST(CppProgram, HasHelpersForTheNodesThatNeedThem) {
  const std::string program = Program(ParsedGraph(
      absl::StrCat(PlaceholderNode("x"), ConstNode("DT_HALF", "tensor_shape { } half_val: 15360"),
                   "node { name: 'y' op: 'Relu' input: 'x'", kFloatAttr,
                   " attr { key: '_m' value { s: 'z' } } }",
                   "library { function { signature { name: 'f' } } } versions { producer: 27 }")));
  const std::string end = "\nint main(";
  EXPECT_EQ(program.substr(0, program.find(end)), R"(// Builds the graph 'g'. Made by gradflow.
#include <iostream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/const_op.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/graph/scope.h"
#include "gradflow/ops/array_ops.h"
#include "gradflow/proto/graph.pb.h"

// Adds a constant with these bytes.
static gradflow::Output Constant(const gradflow::Scope& scope, gradflow::DataType type,
                                 const gradflow::TensorShape& shape, const std::string& bytes) {
  gradflow::TensorProto proto;
  proto.set_dtype(type);
  shape.AsProto(proto.mutable_tensor_shape());
  proto.set_tensor_content(bytes);
  return gradflow::ops::ConstFromProto(scope, proto);
}

static absl::Status AddFunctions(gradflow::Graph* graph) {
  static const char kFunctions[] = R"graph(library {
  function {
    signature {
      name: "f"
    }
  }
}
versions {
  producer: 27
}
)graph";
  absl::StatusOr<gradflow::GraphDef> functions = gradflow::ParseGraphDefText(kFunctions);
  if (!functions.ok()) return functions.status();
  return gradflow::ImportGraphDef({}, *std::move(functions), graph);
}

// Parses a message from its bytes.
template <typename Message>
static Message Parse(const std::string& bytes) {
  Message message;
  message.ParseFromString(bytes);
  return message;
}

absl::Status BuildGraph(const gradflow::Scope& root) {
  using namespace gradflow;  // NOLINT
  root.UpdateStatus(AddFunctions(root.graph()));
  const auto x =
      ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  Constant(root.WithOpName("c"), DT_HALF, TensorShape({}),
            std::string("\000\074", 2));
  OpBuilder(root.WithOpName("y"), "Relu")
          .Input(x)
          .Attr("T", Parse<AttrValue>(std::string("\060\001", 2)))  // DT_FLOAT
          .Attr("_m", Parse<AttrValue>(std::string("\022\001\172", 3)))  // "z"
          .Finish();
  return root.status();
}
)");
}

TEST(CppProgram, WritesNumbersOfConstantsAsLiterals) {
  const std::string name = "(root.WithOpName(\"c\")";
  const std::string two = "tensor_shape { dim { size: 2 } } ";
  const std::vector<CppCase> cases = {
      {ConstNode("DT_FLOAT", "float_val: 1.5"), "ops::Const<float>" + name + ", float{1.5f})"},
      {ConstNode("DT_DOUBLE", "double_val: 0.1"), "ops::Const<double>" + name + ", double{0.1})"},
      {ConstNode("DT_INT32", "int_val: -2147483648"),
       "ops::Const<int32_t>" + name + ", int32_t{-2147483647 - 1})"},
      {ConstNode("DT_INT64", "int64_val: -9223372036854775808"),
       "ops::Const<int64_t>" + name + ", int64_t{-9223372036854775807 - 1})"},
      {ConstNode("DT_INT64", "int64_val: 0"), "ops::Const<int64_t>" + name + ", int64_t{0})"},
      {ConstNode("DT_BOOL", "bool_val: true"), "ops::Const<bool>" + name + ", bool{true})"},
      {ConstNode("DT_BOOL", two + "bool_val: false bool_val: true"),
       "ops::Const" + name + ", std::initializer_list<bool>{false, true}, TensorShape({2}))"},
      {ConstNode("DT_INT32", "tensor_shape { dim { size: 1 } dim { size: 2 } } int_val: [3, -4]"),
       "ops::Const" + name + ", std::initializer_list<int32_t>{3, -4}, TensorShape({1, 2}))"},
      {ConstNode("DT_FLOAT", two + "float_val: [inf, 1]"),
       "Constant" + name + ", DT_FLOAT, TensorShape({2}),\n            " +
           R"(std::string("\000\000\200\177\000\000\200\077", 8)))"},
      {ConstNode("DT_DOUBLE", "double_val: nan"),
       "Constant" + name + ", DT_DOUBLE, TensorShape({}),\n            " +
           R"(std::string("\000\000\000\000\000\000\370\177", 8)))"},
      {ConstNode("DT_UINT8", two + "int_val: [1, 255]"),
       "Constant" + name + ", DT_UINT8, TensorShape({2}),\n            " +
           R"(std::string("\001\377", 2)))"},
      // Empty constants, and strings.
      {ConstNode("DT_FLOAT", "tensor_shape { dim { size: 0 } }"), "OpBuilder" + name + R"(, "Const")
          .Attr("dtype", Parse<AttrValue>(std::string("\060\001", 2)))  // DT_FLOAT
          .Attr("value", Parse<AttrValue>(std::string("\102\006\010\001\022\002\022\000", 8)))  // Tensor<type: float shape: [0] values:>
          .Finish())"},
      {ConstNode("DT_STRING", "string_val: 'a'"), "OpBuilder" + name + R"(, "Const")
          .Attr("dtype", Parse<AttrValue>(std::string("\060\007", 2)))  // DT_STRING
          .Attr("value", Parse<AttrValue>(std::string("\102\005\010\007\102\001\141", 7)))  // Tensor<type: string shape: [] values: "a">
          .Finish())"},
      // The op does not define the attribute.
      {absl::StrCat("node { name: 'c' op: 'Const' attr { key: 'dtype' value { type: DT_BOOL } } ",
                    "attr { key: 'value' value { tensor { dtype: DT_BOOL bool_val: true } } } ",
                    "attr { key: '_n' value { i: 1 } } }"),
       "OpBuilder" + name + R"(, "Const")
          .Attr("_n", Parse<AttrValue>(std::string("\030\001", 2)))  // 1
          .Attr("dtype", Parse<AttrValue>(std::string("\060\012", 2)))  // DT_BOOL
          .Attr("value", Parse<AttrValue>(std::string("\102\005\010\012\132\001\001", 7)))  // Tensor<type: bool shape: [] values: 1>
          .Finish())"},
  };
  for (const CppCase& test : cases) {
    EXPECT_EQ(Statements(test.nodes), "  " + test.statements + ";\n") << test.nodes;
  }
}

// Nine numbers of eight digits take a line of 88 columns. A literal has at most 64 bytes.
TEST(CppProgram, BreaksLongConstantsIntoLines) {
  std::string numbers;
  std::string line;
  for (int i = 0; i < 19; ++i) {
    absl::StrAppend(&numbers, " int_val: ", 10'000'000 + i);
    absl::StrAppend(&line, i == 0 ? "" : i % 9 == 0 ? ",\n      " : ", ", 10'000'000 + i);
  }
  EXPECT_EQ(Statements(ConstNode("DT_INT32", "tensor_shape { dim { size: 19 } }" + numbers)),
            "  ops::Const(root.WithOpName(\"c\"), std::initializer_list<int32_t>{" + line +
                "}, TensorShape({19}));\n");
  const auto is_broken = [](int last) {
    std::string nine;
    for (int i = 0; i < 8; ++i) nine += " int_val: 10000000";
    absl::StrAppend(&nine, " int_val: ", last);
    return absl::StrContains(
        Statements(ConstNode("DT_INT32", "tensor_shape { dim { size: 9 } }" + nine)), "\n      ");
  };
  EXPECT_FALSE(is_broken(99'999'999));
  EXPECT_TRUE(is_broken(100'000'000));
  const auto bytes = [](int size) {
    std::string text = absl::StrCat("tensor_shape { dim { size: ", size, " } } int_val: 7");
    return Statements(ConstNode("DT_UINT8", text));
  };
  std::string sevens;
  for (int i = 0; i < 64; ++i) sevens += "\\007";
  EXPECT_THAT(bytes(64), HasSubstr("std::string(\"" + sevens + "\", 64)"));
  EXPECT_THAT(bytes(65), HasSubstr("std::string(\"" + sevens + "\"\n            \"\\007\", 65)"));
}

TEST(CppProgram, WritesMoreThanAThousandNumbersAsAMessage) {
  const auto repeated = [](int size) {
    return Statements(ConstNode(
        "DT_BOOL", absl::StrCat("tensor_shape { dim { size: ", size, " } } bool_val: true")));
  };
  EXPECT_THAT(repeated(1000), HasSubstr("std::initializer_list<bool>{true, true"));
  EXPECT_THAT(repeated(1001), HasSubstr("OpBuilder(root.WithOpName(\"c\"), \"Const\")"));
}

TEST(CppProgram, NamesOutputsAndOperations) {
  const std::string x = PlaceholderNode("x");
  const std::string axis = ConstNode("DT_INT32", "int_val: 1", "axis");
  const std::string unknown = " attr { key: '_m' value { i: 1 } } }\n";
  // Each kind of producer, with its outputs and the control dependencies on it.
  EXPECT_EQ(
      Statements(absl::StrCat(
          x, axis, "node { name: 'parts' op: 'Split' input: 'axis' input: 'x' ",
          "attr { key: 'num_split' value { i: 3 } }", kFloatAttr, " }\n",
          "node { name: 'top' op: 'TopKV2' input: 'parts:1' input: 'axis' device: '/cpu:0'",
          kFloatAttr, " }\n", "node { name: 'r' op: 'TopKV2' input: 'x' input: 'top:1'", kFloatAttr,
          unknown,
          "node { name: 'sum' op: 'AddN' input: 'parts' input: 'parts:2' input: 'top' input: 'r' "
          "input: 'x' attr { key: 'N' value { i: 5 } }",
          kFloatAttr, " }\n", "node { name: 'i' op: 'Identity' input: 'r:1' input: '^axis' input: ",
          "'^top' input: '^r' attr { key: 'T' value { type: DT_INT32 } } }\n",
          "node { name: 'p' op: 'Print' input: 'x'", kFloatAttr,
          " attr { key: 'U' value { list { } } } attr { key: 'first_n' value { i: 3 } } }\n")),
      R"(  const auto x =
      ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  const Output axis =
      ops::Const<int32_t>(root.WithOpName("axis"), int32_t{1});
  const auto parts =
      ops::Split(root.WithOpName("parts"), axis, x, 3);
  const auto top =
      ops::TopKV2(root.WithOpName("top").WithDevice("/cpu:0"), parts.output[1], axis);
  const Operation r =
      OpBuilder(root.WithOpName("r"), "TopKV2")
          .Input(x)
          .Input(top.indices)
          .Attr("T", Parse<AttrValue>(std::string("\060\001", 2)))  // DT_FLOAT
          .Attr("Tk", Parse<AttrValue>(std::string("\060\003", 2)))  // DT_INT32
          .Attr("_m", Parse<AttrValue>(std::string("\030\001", 2)))  // 1
          .Attr("index_type", Parse<AttrValue>(std::string("\060\003", 2)))  // DT_INT32
          .Attr("sorted", Parse<AttrValue>(std::string("\050\001", 2)))  // true
          .Finish();
  ops::AddN(root.WithOpName("sum"),
          InputList(OutputList{parts.output[0], parts.output[2], top.values, Output(r, 0), x.output}));
  ops::Identity(root.WithOpName("i").WithControlDependencies({axis.op(), top.operation, r}),
          Output(r, 1));
  OpBuilder(root.WithOpName("p"), "Print")
          .Input(x)
          .Input(InputList(OutputList{}))
          .Attr("T", Parse<AttrValue>(std::string("\060\001", 2)))  // DT_FLOAT
          .Attr("U", Parse<AttrValue>(std::string("\012\000", 2)))  // []
          .Attr("first_n", Parse<AttrValue>(std::string("\030\003", 2)))  // 3
          .Attr("message", Parse<AttrValue>(std::string("\022\000", 2)))  // ""
          .Attr("summarize", Parse<AttrValue>(std::string("\030\003", 2)))  // 3
          .Finish();
)");
}

TEST(CppProgram, SetsAttributesThatDifferFromDefaults) {
  const auto attrs = [](const std::string& text) {
    const std::string all = Statements(PlaceholderNode("x") + text);
    return all.substr(all.find(";\n") + 2);
  };
  const std::string quant = "node { name: 'q' op: 'FakeQuantWithMinMaxArgs' input: 'x' ";
  EXPECT_EQ(attrs(quant + "}"), "  ops::FakeQuantWithMinMaxArgs(root.WithOpName(\"q\"), x);\n");
  EXPECT_EQ(attrs(quant + "attr { key: 'num_bits' value { i: 8 } } "
                          "attr { key: 'narrow_range' value { b: true } } "
                          "attr { key: 'min' value { f: -1.5 } } }"),
            "  ops::FakeQuantWithMinMaxArgs(root.WithOpName(\"q\"),\n          x,\n"
            "          ops::FakeQuantWithMinMaxArgs::Attrs().Min(-1.5f).NarrowRange(true));\n");
  const auto checked = [&](const std::string& message) {
    return attrs(absl::StrCat("node { name: 'k' op: 'CheckNumerics' input: 'x'", kFloatAttr,
                              " attr { key: 'message' value { s: '", message, "' } } }"));
  };
  const std::string head = "  ops::CheckNumerics(root.WithOpName(\"k\"), x, ";
  EXPECT_EQ(checked("a?b"), head + "\"a?b\");\n");
  // Two question marks may begin a trigraph. Strings with zero bytes cannot be literals.
  EXPECT_EQ(checked("a?\\?"), head + "\"a\\?\\?\");\n");
  EXPECT_EQ(checked("::gradflow::"), head + "\"::gradflow::\");\n");
  EXPECT_THAT(checked("a\\0b"), HasSubstr("OpBuilder(root.WithOpName(\"k\")"));
  const auto squeezed = [&](const std::string& dims) {
    return attrs(absl::StrCat("node { name: 's' op: 'Squeeze' input: 'x'", kFloatAttr,
                              " attr { key: 'squeeze_dims' value { list { i: ", dims, " } } } }"));
  };
  EXPECT_EQ(squeezed("[0, 1]"),
            "  ops::Squeeze(root.WithOpName(\"s\"), x, ops::Squeeze::Attrs().Axis({0, 1}));"
            "\n");
}

// A call of 91 columns after its indent fits on a line.
TEST(CppProgram, BreaksLongCallsIntoArguments) {
  const auto call = [](int columns) {
    // Two nodes: x, and a node whose name fills the line.
    const size_t rest = std::string("ops::Neg(root.WithOpName(\"\"), x").size();
    const std::string name(columns - rest, 'n');
    const std::string all = Statements(absl::StrCat(PlaceholderNode("x"), "node { name: '", name,
                                                    "' op: 'Neg' input: 'x'", kFloatAttr, " }"));
    return all.substr(all.find(";\n") + 2);
  };
  EXPECT_THAT(call(91), HasSubstr("\"), x);\n"));
  EXPECT_THAT(call(92), HasSubstr("\"),\n          x);\n"));
}

TEST(CppProgram, GivesVariablesUniqueNames) {
  const std::string long_name(60, 'l');
  const std::vector<std::pair<std::string, std::string>> names = {
      {"x", "x"},
      {"layer/mat-mul", "layer_mat_mul"},
      {"layer/mat.mul", "n_layer_mat_mul_2"},
      {"layer-mat/mul", "n_layer_mat_mul_3"},
      {"1st", "n1st"},
      {"NULL", "NULL_node"},
      {"DT_x", "n_DT_x_2"},
      {"root", "n_root_2"},
      {"Scope", "n_Scope_2"},
      {long_name, long_name},
      {long_name + "l", "n_" + long_name + "_2"},
      {long_name.substr(1) + "mm", long_name.substr(1) + "m"}};
  std::string graph;
  std::string controls;
  for (const auto& [name, variable] : names) {
    absl::StrAppend(&graph, "node { name: '", name, "' op: 'NoOp' }\n");
    absl::StrAppend(&controls, " input: '^", name, "'");
  }
  const std::string statements =
      Statements(absl::StrCat(graph, "node { name: 'last' op: 'NoOp'", controls, " }"));
  std::string list;
  for (const auto& [name, variable] : names) {
    EXPECT_THAT(statements,
                HasSubstr(absl::StrCat("  const auto ", variable, " =\n      ops::NoOp(",
                                       "root.WithOpName(\"", name, "\"));\n")));
    absl::StrAppend(&list, list.empty() ? "" : ", ", variable, ".operation");
  }
  EXPECT_THAT(statements, HasSubstr("  ops::NoOp(root.WithOpName(\"last\")."
                                    "WithControlDependencies({" +
                                    list + "}));\n"));
}

TEST(CppProgram, RefusesGraphsThatProgramsCannotContain) {
  const auto error = [](const GraphDef& graph) {
    return CppProgram(graph, "g", GraphLimits()).status();
  };
  EXPECT_THAT(error(ParsedGraph(ConstNode("DT_FLOAT",
                                          "tensor_shape { dim { size: 2 } } "
                                          "float_val: [1, 2, 3]"))),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'c'")));
  EXPECT_THAT(error(ParsedGraph("node { name: 'n' op: 'NoOp' input: '^none' }")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'^none'")));
}

// A string in a function may end a raw string literal. A delimiter has at most 16 characters.
TEST(CppProgram, ChoosesADelimiterThatFunctionsDoNotHave) {
  GraphDef graph;
  const auto add_string = [&](int underscores) {
    OpDef* const signature = graph.mutable_library()->add_function()->mutable_signature();
    signature->set_name(absl::StrCat("f", underscores));
    signature->set_description(")graph" + std::string(underscores, '_'));
  };
  add_string(0);
  EXPECT_THAT(Program(graph), HasSubstr(" = R\"graph_(library {\n"));
  EXPECT_THAT(Program(graph), HasSubstr("\n)graph_\";\n"));
  for (int i = 1; i < 11; ++i) add_string(i);
  EXPECT_THAT(Program(graph), HasSubstr(" = R\"graph___________(library {\n"));
  add_string(11);
  EXPECT_THAT(CppProgram(graph, "g", GraphLimits()).status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       "the functions have strings that end each raw string literal"));
}

// The text of a constant is four times as long as its bytes.
TEST(CppProgram, HasLimitedSize) {
  GraphDef graph = ParsedGraph(ConstNode("DT_UINT8", ""));
  TensorProto& tensor = *(*graph.mutable_node(0)->mutable_attr())["value"].mutable_tensor();
  const auto resize = [&](int64_t message) {
    // The message is 16 bytes larger than the content.
    const int64_t size = message - 16;
    tensor.mutable_tensor_shape()->Clear();
    tensor.mutable_tensor_shape()->add_dim()->set_size(size);
    tensor.set_tensor_content(std::string(size, '\1'));
    EXPECT_EQ(tensor.ByteSizeLong(), message);
    return CppProgram(graph, "g", GraphLimits()).status();
  };
  EXPECT_THAT(resize((16 << 20) + 1), StatusIs(absl::StatusCode::kResourceExhausted,
                                               "node 'c': the constant has 16777217 bytes"));
  EXPECT_THAT(resize(16 << 20), StatusIs(absl::StatusCode::kResourceExhausted,
                                         "the program has more than 67108864 bytes"));
}

}  // namespace
}  // namespace gradflow::tools
