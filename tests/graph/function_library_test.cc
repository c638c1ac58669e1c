// Tests of FunctionLibrary: instances of functions, their errors and limits, and nodes that call
// them.
#include "gradflow/graph/function_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/registry.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/scope.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/graph/toy_graph_ops.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace {

using ::gradflow::testing::IsOk;
using ::gradflow::testing::kInvalidArgument;
using ::gradflow::testing::NodeNames;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::ToyGraphDef;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;

constexpr char kFloat[] = "attr { key: 'T' value { type: DT_FLOAT } }";

// twice(x: T) -> (y: T) { T: {half, float} = float } = x + x
constexpr char kTwice[] = R"(
  function {
    signature { name: 'twice' input_arg { name: 'x' type_attr: 'T' }
                output_arg { name: 'y' type_attr: 'T' }
                attr { name: 'T' type: 'type' default_value { type: DT_FLOAT }
                       allowed_values { list { type: [ DT_HALF, DT_FLOAT ] } } } }
    node_def { name: 'sum' op: 'AddV2' input: [ 'x', 'x' ]
               attr { key: 'T' value { placeholder: 'T' } } }
    ret { key: 'y' value: 'sum:z:0' } })";

// A graph of functions that the test owns.
class FunctionLibraryTest : public ::testing::Test {
 protected:
  absl::Status Import(const std::string& text, const ImportGraphDefOptions& options = {}) {
    return ImportGraphDef(options, ToyGraphDef(text), &graph_);
  }
  absl::Status ImportFunctions(const std::string& functions) {
    return Import(absl::StrCat("library { ", functions, " }"));
  }
  absl::StatusOr<const FunctionBody*> Instantiate(const std::string& name,
                                                  const std::string& attrs = "") {
    AttrValue value;
    EXPECT_TRUE(ParseAttrValue("func", absl::StrCat("{ name: '", name, "' ", attrs, " }"), &value));
    return graph_.functions().Instantiate(value.func());
  }

  Graph graph_;
};

std::vector<std::string> Names(absl::Span<const Node* const> nodes) {
  std::vector<std::string> names;
  for (const Node* node : nodes) names.push_back(node->name());
  return names;
}

std::vector<std::string> Names(absl::Span<const Node::Source> sources) {
  std::vector<std::string> names;
  for (const auto& [node, output] : sources) {
    names.push_back(absl::StrCat(node->name(), ":", output));
  }
  return names;
}

// Returns the text of a function `f` without arguments and results. `more` is added to the
// function, and `signature` to its signature.
std::string F(const std::string& more, const std::string& signature = "") {
  return absl::StrCat("function { signature { name: 'f' ", signature, " } ", more, " } ");
}

// ---- Instances ----

TEST_F(FunctionLibraryTest, FindsFunctionsByName) {
  EXPECT_EQ(graph_.functions().Find("twice"), nullptr);
  EXPECT_THAT(Instantiate("twice"),
              StatusIs(kNotFound, "function 'twice': the graph has no function of this name"));
  GRADFLOW_ASSERT_OK(ImportFunctions(kTwice));
  ASSERT_NE(graph_.functions().Find("twice"), nullptr);
  EXPECT_EQ(graph_.functions().Find("twice"), &graph_.def().library().function(0));
  EXPECT_EQ(graph_.functions().Find("sum"), nullptr);
}

TEST_F(FunctionLibraryTest, MakesAGraphWithArgumentsAndResults) {
  GRADFLOW_ASSERT_OK(ImportFunctions(kTwice));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const FunctionBody* const body, Instantiate("twice"));
  EXPECT_EQ(body->name(), "twice");
  EXPECT_THAT(NodeNames(body->graph()), ElementsAre("x", "sum", "y_RetVal"));
  EXPECT_THAT(Names(body->args()), ElementsAre("x"));
  EXPECT_EQ(body->args()[0]->type_string(), "_Arg");
  EXPECT_THAT(Names(body->results()), ElementsAre("sum:0"));
  EXPECT_THAT(body->arg_types(), ElementsAre(DT_FLOAT));
  EXPECT_THAT(body->result_types(), ElementsAre(DT_FLOAT));
  EXPECT_THAT(body->effects(), IsEmpty());
  EXPECT_EQ(body->graph().node(2)->type_string(), "_Retval");
  EXPECT_EQ(&body->graph().functions(), &graph_.functions());
  EXPECT_EQ(body->graph().node(1)->output_type(0), DT_FLOAT);
}

TEST_F(FunctionLibraryTest, MakesOneInstanceForEachValueOfTheAttributes) {
  GRADFLOW_ASSERT_OK(ImportFunctions(kTwice));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const FunctionBody* const of_float, Instantiate("twice"));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const FunctionBody* const half,
                                Instantiate("twice", "attr { key: 'T' value { type: DT_HALF } }"));
  EXPECT_THAT(half->arg_types(), ElementsAre(DT_HALF));
  EXPECT_EQ(half->graph().node(1)->output_type(0), DT_HALF);
  // The default value of T, and attributes that the function does not declare, make no other
  // instance.
  for (const std::string& same :
       {std::string(kFloat), std::string("attr { key: '_other' value { i: 1 } }")}) {
    EXPECT_EQ(*Instantiate("twice", same), of_float);
  }
  NodeDef call;
  call.set_op("twice");
  AddNodeAttr("T", DT_HALF, &call);
  EXPECT_EQ(*graph_.functions().Instantiate(call), half);
}

TEST_F(FunctionLibraryTest, MakesOneInstanceForSeveralThreads) {
  GRADFLOW_ASSERT_OK(ImportFunctions(kTwice));
  std::vector<const FunctionBody*> bodies(8);
  std::vector<std::thread> threads;
  for (auto& body : bodies) threads.emplace_back([&] { body = *Instantiate("twice"); });
  for (std::thread& thread : threads) thread.join();
  for (const FunctionBody* body : bodies) EXPECT_EQ(body, bodies[0]);
}

TEST_F(FunctionLibraryTest, NumbersTheTensorsOfLists) {
  GRADFLOW_ASSERT_OK(ImportFunctions(R"(
    function {
      signature { name: 'lists' input_arg { name: 'a' type_attr: 'T' number_attr: 'N' }
                  input_arg { name: 'b' type_list_attr: 'U' } input_arg { name: 'c' type: DT_INT64 }
                  output_arg { name: 'p' type_list_attr: 'U' }
                  output_arg { name: 'q' type_attr: 'T' number_attr: 'N' }
                  output_arg { name: 'r' type_attr: 'T' }
                  attr { name: 'T' type: 'type' } attr { name: 'N' type: 'int' }
                  attr { name: 'U' type: 'list(type)' } }
      node_def { name: 'n' op: 'IdentityN' input: [ 'b', 'a:1' ]
                 attr { key: 'T' value { list { type: [ DT_INT32, DT_STRING, DT_FLOAT ] } } } }
      node_def { name: 'b_1_1' op: 'NoOp' input: '^a' }
      ret { key: 'p' value: 'b' } ret { key: 'q' value: 'a' }
      ret { key: 'r' value: 'n:output:2' } })"));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const FunctionBody* const body, Instantiate("lists", R"(
    attr { key: 'T' value { type: DT_FLOAT } } attr { key: 'N' value { i: 2 } }
    attr { key: 'U' value { list { type: [ DT_INT32, DT_STRING ] } } })"));
  EXPECT_THAT(Names(body->args()), ElementsAre("a_0", "a_1", "b_0", "b_1", "c"));
  EXPECT_THAT(body->arg_types(), ElementsAre(DT_FLOAT, DT_FLOAT, DT_INT32, DT_STRING, DT_INT64));
  EXPECT_THAT(Names(body->results()), ElementsAre("b_0:0", "b_1:0", "a_0:0", "a_1:0", "n:2"));
  EXPECT_THAT(body->result_types(), ElementsAre(DT_INT32, DT_STRING, DT_FLOAT, DT_FLOAT, DT_FLOAT));
  EXPECT_THAT(body->graph().FindNode("n")->def().input(), ElementsAre("b_0", "b_1", "a_1"));
  EXPECT_THAT(body->graph().FindNode("b_1_1")->def().input(), ElementsAre("^a_0"));
  int index = -1;
  for (int i = 0; i < 5; ++i) {
    GRADFLOW_ASSERT_OK(body->args()[i]->GetAttr("index", &index));
    EXPECT_EQ(index, i);
  }
  // An empty list has no nodes.
  GRADFLOW_ASSERT_OK(ImportFunctions(R"(
    function { signature { name: 'none' input_arg { name: 'a' type: DT_FLOAT number_attr: 'N' }
                           attr { name: 'N' type: 'int' } }
               node_def { name: 'n' op: 'NoOp' input: '^a' } })"));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const FunctionBody* const none,
                                Instantiate("none", "attr { key: 'N' value { i: 0 } }"));
  EXPECT_THAT(NodeNames(none->graph()), ElementsAre("n"));
  EXPECT_THAT(none->graph().node(0)->def().input(), IsEmpty());
}

TEST_F(FunctionLibraryTest, RenamesArgumentsAndResultsThatHaveNamesOfNodes) {
  GRADFLOW_ASSERT_OK(ImportFunctions(
      F("node_def { name: 'y_RetVal' op: 'NoOp' } node_def { name: 'x_0' op: 'NoOp' }"
        "ret { key: 'y' value: 'x:0' }",
        "input_arg { name: 'x' type: DT_FLOAT number_attr: 'N' }"
        "output_arg { name: 'y' type: DT_FLOAT }"
        "attr { name: 'N' type: 'int' default_value { i: 1 } }")));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const FunctionBody* const body, Instantiate("f"));
  EXPECT_THAT(NodeNames(body->graph()), ElementsAre("x_0_1", "y_RetVal", "x_0", "y_RetVal_1"));
}

TEST_F(FunctionLibraryTest, CopiesAttributesOfArguments) {
  GRADFLOW_ASSERT_OK(ImportFunctions(
      F("arg_attr { key: 0 value { attr { key: '_user_specified_name' value { s: 'in' } }"
        "                          attr { key: 'index' value { i: 7 } } } }"
        "resource_arg_unique_id { key: 0 value: 5 }",
        "input_arg { name: 'x' type: DT_RESOURCE } input_arg { name: 'z' type: DT_INT32 }")));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const FunctionBody* const body, Instantiate("f"));
  EXPECT_EQ(SummarizeNodeDef(body->args()[0]->def()),
            "{{node x}} = _Arg[T=DT_RESOURCE, _resource_arg_unique_id=5, "
            "_user_specified_name=\"in\", index=0]()");
  EXPECT_EQ(body->args()[1]->def().attr_size(), 2);
}

TEST_F(FunctionLibraryTest, PlacesIntsOnTheDeviceIfTheFunctionAsks) {
  GRADFLOW_ASSERT_OK(ImportFunctions(
      F("attr { key: 'experimental_ints_on_device' value { b: true } } ret { key: 'y' value: 'x' }",
        "input_arg { name: 'x' type: DT_INT32 } input_arg { name: 'z' type: DT_FLOAT }"
        "output_arg { name: 'y' type: DT_INT32 }")));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const FunctionBody* const body, Instantiate("f"));
  EXPECT_EQ(body->args()[0]->type_string(), "_DeviceArg");
  EXPECT_EQ(body->args()[1]->type_string(), "_Arg");
  EXPECT_EQ(body->graph().node(2)->type_string(), "_DeviceRetval");
}

TEST_F(FunctionLibraryTest, ReplacesPlaceholdersInAttributesOfFunctions) {
  GRADFLOW_ASSERT_OK(ImportFunctions(absl::StrCat(kTwice, R"(
    function {
      signature { name: 'outer' input_arg { name: 'x' type_attr: 'S' }
                  output_arg { name: 'y' type_attr: 'S' } attr { name: 'S' type: 'type' } }
      node_def { name: 'call' op: 'PartitionedCall' input: 'x'
                 attr { key: 'Tin' value { list { type: DT_HALF } } }
                 attr { key: 'Tout' value { list { type: DT_HALF } } }
                 attr { key: 'f' value { func { name: 'twice'
                        attr { key: 'T' value { placeholder: 'S' } } } } } }
      ret { key: 'y' value: 'call:output:0' } })")));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const FunctionBody* const body,
                                Instantiate("outer", "attr { key: 'S' value { type: DT_HALF } }"));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<const FunctionBody*> called,
                                CalledFunctions(*body->graph().FindNode("call")));
  EXPECT_EQ(called[0], *Instantiate("twice", "attr { key: 'T' value { type: DT_HALF } }"));
}

TEST_F(FunctionLibraryTest, AcceptsNamesThatBeginWithAnUnderscore) {
  GRADFLOW_ASSERT_OK(ImportFunctions(
      F("node_def { name: '_n' op: 'NoOp' } node_def { name: 'm' op: 'NoOp' input: '^_n' }")));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const FunctionBody* const body, Instantiate("f"));
  EXPECT_THAT(NodeNames(body->graph()), ElementsAre("_n", "m"));
}

TEST_F(FunctionLibraryTest, InfersShapesOnlyIfTheImportDoes) {
  const std::string function =
      "library { " +
      F(R"(node_def { name: 'n' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } }
             attr { key: 'value' value { tensor { dtype: DT_FLOAT
                                                  tensor_shape { dim { size: 3 } } } } } })") +
      "}";
  GRADFLOW_ASSERT_OK(Import(function));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const FunctionBody* const body, Instantiate("f"));
  EXPECT_EQ(body->graph().node(0)->output_shape(0).DebugString(), "[3]");
  ImportGraphDefOptions options;
  options.infer_shapes = false;
  Graph other;
  GRADFLOW_ASSERT_OK(ImportGraphDef(options, ToyGraphDef(function), &other));
  NameAttrList f;
  f.set_name("f");
  EXPECT_TRUE((*other.functions().Instantiate(f))->graph().node(0)->output_shape(0).unknown_rank());
}

// ---- Effects ----

TEST_F(FunctionLibraryTest, EffectsAreControlOutputsAndStatefulNodes) {
  GRADFLOW_ASSERT_OK(ImportFunctions(
      F("node_def { name: 'a' op: 'NoOp' } node_def { name: 'b' op: 'NoOp' }"
        "node_def { name: 'c' op: 'Timestamp' } control_ret { key: 'done' value: 'b' }"
        "control_ret { key: 'more' value: 'x' }",
        "input_arg { name: 'x' type: DT_INT32 } control_output: 'done'")));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const FunctionBody* const body, Instantiate("f"));
  EXPECT_THAT(Names(body->effects()), ElementsAre("b", "c"));
}

TEST_F(FunctionLibraryTest, CallsOfFunctionsWithEffectsAreEffects) {
  const auto call = [](const std::string& name, const std::string& f) {
    return absl::StrCat("node_def { name: '", name, "' op: 'PartitionedCall' ",
                        "attr { key: 'Tin' value { list {} } } ",
                        "attr { key: 'Tout' value { list {} } } attr { key: 'f' value { func { ", f,
                        " } } } } ");
  };
  const auto function = [](const std::string& name, const std::string& nodes) {
    return absl::StrCat("function { signature { name: '", name, "' } ", nodes, " } ");
  };
  GRADFLOW_ASSERT_OK(ImportFunctions(absl::StrCat(
      function("pure", "node_def { name: 'n' op: 'NoOp' }"),
      function("stateful", "node_def { name: 'n' op: 'Timestamp' }"),
      function("indirect", call("n", "name: 'by_name'")),
      function("by_name", "node_def { name: 'n' op: 'stateful' }"),
      // Functions that call each other.
      function("pure_loop", call("n", "name: 'pure_loop2'")),
      function("pure_loop2", call("n", "name: 'pure_loop'") + call("m", "name: 'pure'")),
      function("loop", call("n", "name: 'loop2'")),
      function("loop2", call("n", "name: 'loop'") + call("m", "name: 'indirect'")),
      function("unknown", "node_def { name: 'n' op: 'Unheard' }"),
      function("control", "node_def { name: 'n' op: 'NoOp' } control_ret { key: 'c' value: 'n' }"),
      function("f",
               call("1", "name: 'pure'") + call("2", "name: 'stateful'") +
                   call("3", "name: 'indirect'") + call("4", "name: 'pure_loop'") +
                   call("5", "name: 'loop'") + call("6", "name: 'unknown'") +
                   call("7", "name: 'missing'") + call("8", "name: 'control'") +
                   "node_def { name: '9' op: 'pure' } node_def { name: '10' op: 'by_name' }"))));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const FunctionBody* const body, Instantiate("f"));
  EXPECT_THAT(Names(body->effects()), ElementsAre("2", "3", "5", "6", "7", "8", "10"));
  // While the function "missing" does not exist, calls of it count as effects. Instances that are
  // made after it is added see that it has no effects.
  GRADFLOW_ASSERT_OK(
      ImportFunctions(function("missing", "") + function("g", call("1", "name: 'missing'"))));
  EXPECT_THAT((*Instantiate("g"))->effects(), IsEmpty());
}

// ---- Errors ----

TEST_F(FunctionLibraryTest, RefusesInvalidFunctions) {
  const std::string add =
      "node_def { name: 'n' op: 'AddV2' input: [ 'x', @ ] "
      "attr { key: 'T' value { type: DT_FLOAT } } }";
  const std::string x = "input_arg { name: 'x' type: DT_FLOAT }";
  const std::string y = "output_arg { name: 'y' type: DT_FLOAT }";
  const auto with_input = [&](const std::string& input) {
    return absl::StrReplaceAll(add, {{"@", absl::StrCat("'", input, "'")}});
  };
  const struct {
    const char* name;
    std::string function;
    std::string error;
    absl::StatusCode code = kInvalidArgument;
  } cases[] = {
      {"unknown ops",
       F("node_def { name: 'n' op: 'Foo1' } node_def { name: 'm' op: 'Foo1' } "
         "node_def { name: 'o' op: 'AddV3' }"),
       "node 'n' (Foo1) and 1 more: op 'Foo1' is not registered\n"
       "node 'o' (AddV3): op 'AddV3' is not registered; did you mean 'AddV2'",
       kNotFound},
      {"input from nowhere", F(with_input("z"), x),
       "node 'n' (AddV2): input 'z' names neither an argument of the function nor an output of one "
       "of its nodes"},
      {"output that does not exist", F(with_input("n:z:1"), x),
       "node 'n' (AddV2): input 'n:z:1' names neither"},
      {"argument of output that does not exist", F(with_input("n:w:0"), x),
       "node 'n' (AddV2): input 'n:w:0' names neither"},
      {"node as an input", F(with_input("n"), x), "node 'n' (AddV2): input 'n' names neither"},
      {"negative index", F(with_input("x:-1"), x), "node 'n' (AddV2): input 'x:-1' names neither"},
      {"control input from nowhere",
       F(with_input("x") + "node_def { name: 'm' op: 'NoOp' input: '^q' }", x),
       "node 'm' (NoOp): control input '^q' names no node of the function"},
      {"cycle", F(with_input("n:z:0"), x), "the graph has a cycle: 'n' -> 'n'"},
      {"type", F(with_input("i"), x + "input_arg { name: 'i' type: DT_INT32 }"),
       "node 'n' (AddV2): input y ('i') has type int32, expected float (attribute T)"},
      {"attribute of a node",
       F("node_def { name: 'n' op: 'NoOp' attr { key: 'k' value { i: 1 } } }"),
       "node 'n' (NoOp): unknown attribute 'k'"},
      {"missing attribute of a node",
       F("node_def { name: 'n' op: 'AddV2' input: [ 'x', 'x' ] }", x),
       "node 'n' (AddV2): attribute T (type) is missing"},
      {"placeholder",
       F("node_def { name: 'n' op: 'AddV2' input: [ 'x', 'x' ] "
         "attr { key: 'T' value { placeholder: 'U' } } }",
         x),
       "node 'n' (AddV2): attribute 'T': the placeholder 'U' names no attribute of the function"},
      {"missing result", F("", y), "result 'y': the function does not say what it is"},
      {"result from nowhere", F("ret { key: 'y' value: 'q:z:0' }", y),
       "result 'y': its source 'q:z:0' names neither an argument"},
      {"type of a result",
       F("ret { key: 'y' value: 'x' }", "input_arg { name: 'x' type: DT_INT32 }" + y),
       "node 'y_RetVal' (_Retval): input input ('x') has type int32, expected float"},
      {"length of a result",
       F("ret { key: 'y' value: 'x' }",
         "input_arg { name: 'x' type: DT_FLOAT number_attr: 'N' }"
         "attr { name: 'N' type: 'int' default_value { i: 2 } }" +
             y),
       "result 'y': its source 'x' has 2 tensors, expected 1"},
      {"control output", F("", "control_output: 'c'"),
       "control output 'c': the function does not say which node it is"},
      {"control output from nowhere", F("control_ret { key: 'c' value: 'q' }"),
       "control output 'c': 'q' names no node of the function"},
      {"node like an argument", F("node_def { name: 'x' op: 'NoOp' }", x),
       "node 'x' (NoOp): another node or an argument has the same name"},
      {"argument among the nodes",
       F("node_def { name: 'n' op: '_Arg' attr { key: 'T' value { type: DT_FLOAT } } "
         "attr { key: 'index' value { i: 0 } } }"),
       "node 'n' (_Arg): the nodes of a function must not be its arguments or results"},
      {"argument without a type", F("", "input_arg { name: 'x' }"),
       "in its signature: input x must have one type, but has 0"},
      {"argument of an attribute that is not there",
       F("", "input_arg { name: 'x' type_attr: 'T' }"),
       "in its signature: input x refers to 'T', which is not an attribute"},
      {"reference", F("", "input_arg { name: 'x' type: DT_FLOAT is_ref: true }"),
       "node 'x' (_Arg): attribute T: expected a non-reference type, but found DT_FLOAT_REF"},
      {"missing attribute", F("", "attr { name: 'T' type: 'type' }"),
       "attribute T (type) is missing"},
      {"list that is too long",
       F("",
         "input_arg { name: 'x' type: DT_FLOAT number_attr: 'N' } "
         "attr { name: 'N' type: 'int' default_value { i: 2000000 } }"),
       "argument 'x': the length of x must be from 0 to 1048576, but is 2000000"},
      {"list of negative length",
       F("",
         "input_arg { name: 'x' type: DT_FLOAT number_attr: 'N' } "
         "attr { name: 'N' type: 'int' default_value { i: -1 } }"),
       "argument 'x': the length of x must be from 0 to 1048576, but is -1"},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.name);
    Graph graph;
    GRADFLOW_ASSERT_OK(
        ImportGraphDef({}, ToyGraphDef("library { " + test.function + " }"), &graph));
    NameAttrList f;
    f.set_name("f");
    EXPECT_THAT(graph.functions().Instantiate(f),
                StatusIs(test.code, StartsWith("function 'f': " + test.error)));
  }
}

TEST_F(FunctionLibraryTest, RefusesInvalidAttributeValues) {
  GRADFLOW_ASSERT_OK(ImportFunctions(kTwice));
  EXPECT_THAT(Instantiate("twice", "attr { key: 'T' value { type: DT_INT32 } }"),
              StatusIs(kInvalidArgument,
                       "function 'twice': attribute T must be one of {half, float}, but is int32"));
  EXPECT_THAT(Instantiate("twice", "attr { key: 'T' value { i: 1 } }"),
              StatusIs(kInvalidArgument,
                       "function 'twice': attribute T: expected type, but found 1 (int)"));
}

// A short name of a list stands for all tensors of the list.
TEST_F(FunctionLibraryTest, BoundsTheMemoryOfAnInstance) {
  const std::string name(1000, 'x');
  std::string inputs = absl::StrCat("'", name, "'");
  for (int i = 1; i < 20; ++i) absl::StrAppend(&inputs, ", '", name, "'");
  GRADFLOW_ASSERT_OK(ImportFunctions(
      F(absl::StrCat("node_def { name: 'n' op: 'Pack' input: [ ", inputs,
                     " ] attr { key: 'N' value { i: 1 } } ", kFloat, " }"),
        absl::StrCat("input_arg { name: '", name, "' type: DT_FLOAT number_attr: 'N' } ",
                     "attr { name: 'N' type: 'int' }"))));
  EXPECT_THAT(Instantiate("f", "attr { key: 'N' value { i: 10000 } }"),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       StartsWith("function 'f': node 'n' (Pack): the instances of the functions "
                                  "of the graph need too much memory; 268")));
  EXPECT_THAT(
      Instantiate("f", "attr { key: 'N' value { i: 1000000 } }"),
      StatusIs(absl::StatusCode::kResourceExhausted, StartsWith("function 'f': argument 'x")));
}

TEST_F(FunctionLibraryTest, BoundsTheNumberOfInstances) {
  GRADFLOW_ASSERT_OK(ImportFunctions(F("", "attr { name: 'n' type: 'int' }")));
  absl::Status status;
  int instances = 0;
  for (; status.ok() && instances < 20000; ++instances) {
    status =
        Instantiate("f", absl::StrCat("attr { key: 'n' value { i: ", instances, " } }")).status();
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               HasSubstr("the instances of the functions of the graph need too "
                                         "much memory")));
  EXPECT_GT(instances, 5000);
  EXPECT_LT(instances, 10000);
}

// ---- Nodes that call functions by name ----

TEST_F(FunctionLibraryTest, NodesMayCallFunctionsByName) {
  GRADFLOW_ASSERT_OK(Import(absl::StrCat(
      "library { ", kTwice, " }",
      R"(node { name: 'c' op: 'Placeholder' attr { key: 'dtype' value { type: DT_HALF } } }
         node { name: 'call' op: 'twice' input: 'c' attr { key: 'T' value { type: DT_HALF } } }
         node { name: 'next' op: 'Neg' input: 'call' attr { key: 'T' value { type: DT_HALF } } }
         node { name: 'shaped' op: 'twice' input: 'c' attr { key: 'T' value { type: DT_HALF } }
                attr { key: '_output_shapes' value { list { shape { dim { size: 2 } } } } } })")));
  const Node& call = *graph_.FindNode("call");
  EXPECT_EQ(call.op().functional(), FunctionalOp::kCall);
  EXPECT_EQ(call.output_type(0), DT_HALF);
  EXPECT_TRUE(call.output_shape(0).unknown_rank());
  EXPECT_EQ(graph_.FindNode("shaped")->output_shape(0).DebugString(), "[2]");
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<const FunctionBody*> called,
                                CalledFunctions(call));
  ASSERT_EQ(called.size(), 1u);
  EXPECT_THAT(called[0]->arg_types(), ElementsAre(DT_HALF));
  // Nodes that are added after the import may also call functions by name.
  NodeDef node;
  node.set_name("later");
  node.set_op("twice");
  node.add_input("next");
  AddNodeAttr("T", DT_HALF, &node);
  EXPECT_THAT(graph_.AddNode(std::move(node)), IsOk());
  EXPECT_THAT(Import("node { name: 'wrong' op: 'twice' input: 'c' }"),
              StatusIs(kInvalidArgument,
                       "node 'wrong' (twice): input x ('c') has type half, expected float "
                       "(attribute T)"));
}

TEST_F(FunctionLibraryTest, AFailedImportLeavesNoFunctions) {
  EXPECT_THAT(Import(absl::StrCat("library { ", kTwice, " } node { name: 'n' op: 'twice' }")),
              StatusIs(kInvalidArgument, "node 'n' (twice): expected 1 input (x), but found 0"));
  EXPECT_EQ(graph_.functions().Find("twice"), nullptr);
  // A function with the same name but another signature can then be imported.
  GRADFLOW_ASSERT_OK(Import(
      "library { function { signature { name: 'twice' } } } node { name: 'n' op: 'twice' }"));
  EXPECT_EQ(graph_.FindNode("n")->num_outputs(), 0);
  EXPECT_THAT((*CalledFunctions(*graph_.node(0)))[0]->args(), IsEmpty());
}

TEST_F(FunctionLibraryTest, KeepsAddressesOfFunctionsWhenOthersAreAdded) {
  GRADFLOW_ASSERT_OK(ImportFunctions(kTwice));
  const FunctionDef* const twice = graph_.functions().Find("twice");
  GRADFLOW_ASSERT_OK(ImportFunctions(absl::StrCat(kTwice, F(""))));
  EXPECT_EQ(graph_.def().library().function_size(), 2);
  EXPECT_EQ(graph_.functions().Find("twice"), twice);
  EXPECT_EQ(graph_.functions().Find("f"), &graph_.def().library().function(1));
  EXPECT_THAT(
      ImportFunctions(absl::StrReplaceAll(kTwice, {{"'sum'", "'total'"}, {"sum:", "total:"}})),
      StatusIs(kInvalidArgument, "the graph already has another function 'twice'"));
  EXPECT_EQ(graph_.functions().Find("twice"), twice);
  EXPECT_THAT(Instantiate("twice"), IsOk());
}

TEST_F(FunctionLibraryTest, RefusesCallsInACycleAcrossImports) {
  const auto calls = [](const std::string& name, const std::string& other) {
    return absl::StrCat("function { signature { name: '", name, "' } node_def { name: 'n' op: '",
                        other, "' } }");
  };
  GRADFLOW_ASSERT_OK(ImportFunctions(calls("F", "G")));
  EXPECT_THAT(
      ImportFunctions(calls("G", "F")),
      StatusIs(kInvalidArgument, "a function of the graph calls itself: 'G' -> 'F' -> 'G'"));
  EXPECT_EQ(graph_.functions().Find("G"), nullptr);
  EXPECT_THAT(ImportFunctions(calls("G", "H")), IsOk());
}

TEST_F(FunctionLibraryTest, RefusesCallsOfInvalidSignatures) {
  const std::string library = "library { " + F("", "input_arg { name: 'x' }") + " }";
  EXPECT_THAT(Import(library + " node { name: 'n' op: 'f' }"),
              StatusIs(kInvalidArgument,
                       "node 'n' (f): function 'f': in its signature: input x must have one type, "
                       "but has 0"));
  GRADFLOW_ASSERT_OK(Import(library));
  NodeDef node;
  node.set_name("n");
  node.set_op("f");
  EXPECT_THAT(graph_.AddNode(std::move(node)),
              StatusIs(kInvalidArgument, HasSubstr("input x must have one type, but has 0")));
}

TEST_F(FunctionLibraryTest, AddFunctionAddsOneFunctionOnce) {
  const FunctionDef twice =
      ToyGraphDef(absl::StrCat("library { ", kTwice, " }")).library().function(0);
  GRADFLOW_ASSERT_OK(graph_.AddFunction(twice));
  GRADFLOW_ASSERT_OK(graph_.AddFunction(twice));
  EXPECT_EQ(graph_.def().library().function_size(), 1);
  EXPECT_EQ(graph_.def().versions().producer(), kGraphDefVersion);
  FunctionDef other = twice;
  other.clear_node_def();
  EXPECT_THAT(graph_.AddFunction(other),
              StatusIs(kInvalidArgument, "the graph already has another function 'twice'"));
  other.mutable_signature()->set_name("Neg");
  EXPECT_THAT(graph_.AddFunction(other),
              StatusIs(kInvalidArgument, "function 'Neg': an op has the same name"));
  other.mutable_signature()->clear_name();
  EXPECT_THAT(graph_.AddFunction(other),
              StatusIs(kInvalidArgument, "function 0 of the graph has no name"));
  EXPECT_THAT(Instantiate("twice"), IsOk());
}

// ---- CalledFunctions ----

// pos(f: float) -> (b: bool), neg(x: float) -> (y: float), two(x: float) -> (y: float, z: float),
// step(i: int32, x: float) -> (y: float)
constexpr char kFunctions[] = R"(
  function { signature { name: 'pos' input_arg { name: 'x' type: DT_FLOAT }
                         output_arg { name: 'b' type: DT_BOOL } }
             node_def { name: 'n' op: 'ToBool' input: 'x'
                        attr { key: 'T' value { type: DT_FLOAT } } }
             ret { key: 'b' value: 'n:output:0' } }
  function { signature { name: 'neg' input_arg { name: 'x' type: DT_FLOAT }
                         output_arg { name: 'y' type: DT_FLOAT } }
             node_def { name: 'n' op: 'Neg' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }
             ret { key: 'y' value: 'n:y:0' } }
  function { signature { name: 'two' input_arg { name: 'x' type: DT_FLOAT }
                         output_arg { name: 'y' type: DT_FLOAT }
                         output_arg { name: 'z' type: DT_FLOAT } }
             ret { key: 'y' value: 'x' } ret { key: 'z' value: 'x' } }
  function { signature { name: 'step' input_arg { name: 'i' type: DT_INT32 }
                         input_arg { name: 'x' type: DT_FLOAT }
                         output_arg { name: 'y' type: DT_FLOAT } }
             ret { key: 'y' value: 'x' } }
  function { signature { name: 'broken' } node_def { name: 'n' op: 'Unheard' } })";

class CalledFunctionsTest : public FunctionLibraryTest {
 protected:
  void SetUp() override {
    GRADFLOW_ASSERT_OK(Import(absl::StrCat(
        "library { ", kFunctions, " }",
        R"(node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }
           node { name: 'i' op: 'Placeholder' attr { key: 'dtype' value { type: DT_INT32 } } })")));
  }
  // Adds a node with an attribute for each of `functions`. Returns the names of the functions that
  // the node calls.
  absl::StatusOr<std::vector<std::string>> Called(
      const std::string& op, const std::vector<std::string>& inputs,
      const std::vector<std::pair<std::string, std::string>>& functions,
      const DataTypeVector& outputs = {DT_FLOAT}) {
    NodeDef node;
    node.set_name(absl::StrCat("n", graph_.num_nodes()));
    node.set_op(op);
    DataTypeVector types;
    for (const std::string& input : inputs) {
      node.add_input(input);
      types.push_back(graph_.FindNode(input)->output_type(0));
    }
    const size_t scalars = op == "For" ? 3 : op == "PartitionedCall" || op == "While" ? 0 : 1;
    const DataTypeVector list(types.begin() + static_cast<ptrdiff_t>(scalars), types.end());
    if (op == "If") AddNodeAttr("Tcond", types[0], &node);
    if (op == "For" || op == "While") {
      AddNodeAttr("T", list, &node);
    } else {
      AddNodeAttr("Tin", list, &node);
      AddNodeAttr("Tout", outputs, &node);
    }
    for (const auto& [attr, function] : functions) {
      AttrValue& value = (*node.mutable_attr())[attr];
      (attr == "branches" ? value.mutable_list()->add_func() : value.mutable_func())
          ->set_name(function);
    }
    const absl::StatusOr<const Node*> added = graph_.AddNode(std::move(node));
    if (!added.ok()) return added.status();
    const absl::StatusOr<std::vector<const FunctionBody*>> bodies = CalledFunctions(**added);
    if (!bodies.ok()) return bodies.status();
    std::vector<std::string> names;
    for (const FunctionBody* body : *bodies) names.push_back(body->name());
    return names;
  }
};

TEST_F(CalledFunctionsTest, AreNamedByTheAttributes) {
  EXPECT_THAT(*Called("PartitionedCall", {"x"}, {{"f", "neg"}}), ElementsAre("neg"));
  EXPECT_THAT(*Called("If", {"i", "x"}, {{"then_branch", "neg"}, {"else_branch", "neg"}}),
              ElementsAre("neg", "neg"));
  EXPECT_THAT(*Called("Case", {"i", "x"}, {{"branches", "neg"}, {"branches", "neg"}}),
              ElementsAre("neg", "neg"));
  EXPECT_THAT(*Called("While", {"x"}, {{"cond", "pos"}, {"body", "neg"}}),
              ElementsAre("pos", "neg"));
  EXPECT_THAT(*Called("For", {"i", "i", "i", "x"}, {{"body", "step"}}), ElementsAre("step"));
  EXPECT_THAT(*CalledFunctions(*graph_.FindNode("x")), IsEmpty());
}

TEST_F(CalledFunctionsTest, MustHaveTheTypesOfTheNode) {
  const auto expect = [](const absl::StatusOr<std::vector<std::string>>& called,
                         const std::string& error) {
    EXPECT_THAT(called, StatusIs(kInvalidArgument, error));
  };
  expect(Called("PartitionedCall", {"i"}, {{"f", "neg"}}),
         "attribute f: function 'neg': argument 0 has type float, expected int32");
  expect(Called("PartitionedCall", {"x", "x"}, {{"f", "neg"}}),
         "attribute f: function 'neg': it has 1 argument, expected 2");
  expect(Called("PartitionedCall", {"x"}, {{"f", "pos"}}),
         "attribute f: function 'pos': result 0 has type bool, expected float");
  expect(Called("If", {"i", "x"}, {{"then_branch", "neg"}, {"else_branch", "two"}}),
         "attribute else_branch: function 'two': it has 2 results, expected 1");
  expect(Called("Case", {"i", "x"}, {{"branches", "neg"}, {"branches", "pos"}}),
         "attribute branches[1]: function 'pos': result 0 has type bool, expected float");
  expect(Called("While", {"x"}, {{"cond", "two"}, {"body", "neg"}}),
         "attribute cond: function 'two': it has 2 results, expected 1");
  expect(Called("While", {"x"}, {{"cond", "step"}, {"body", "neg"}}),
         "attribute cond: function 'step': it has 2 arguments, expected 1");
  expect(Called("While", {"x"}, {{"cond", "pos"}, {"body", "pos"}}),
         "attribute body: function 'pos': result 0 has type bool, expected float");
  expect(Called("For", {"i", "i", "i", "x"}, {{"body", "neg"}}),
         "attribute body: function 'neg': it has 1 argument, expected 2");
  EXPECT_THAT(
      Called("PartitionedCall", {"x"}, {{"f", "none"}}),
      StatusIs(kNotFound, "attribute f: function 'none': the graph has no function of this name"));
  EXPECT_THAT(Called("PartitionedCall", {"x"}, {{"f", "broken"}}),
              StatusIs(kNotFound,
                       "attribute f: function 'broken': node 'n' (Unheard): op 'Unheard' is not "
                       "registered"));
}

}  // namespace
}  // namespace gradflow
