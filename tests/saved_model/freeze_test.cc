// Tests of freezing graphs with variables and functions.
#include "gradflow/saved_model/freeze.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/saved_model/model_fixture.h"

namespace gradflow {
namespace {

using ::gradflow::testing::AsScalar;
using ::gradflow::testing::AsTensor;
using ::gradflow::testing::IsOk;
using ::gradflow::testing::SavedModelFixture;
using ::gradflow::testing::ScaleModelText;
using ::gradflow::testing::StatusIs;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

std::vector<float> FloatsOf(const Tensor& tensor) {
  const auto span = tensor.span<float>();
  return std::vector<float>(span.begin(), span.end());
}

std::vector<std::string> OpsOf(const GraphDef& graph) {
  std::vector<std::string> ops;
  for (const NodeDef& node : graph.node()) ops.push_back(node.op());
  return ops;
}

class FreezeGraphTest : public SavedModelFixture {
 protected:
  absl::StatusOr<FrozenGraph> Freeze(const std::string& output,
                                     const FreezeGraphOptions& options = {}) {
    return FreezeGraph(bundle_.meta_graph_def.graph_def(), {output}, bundle_.session.get(),
                       options);
  }
  // Runs a frozen graph in a new session.
  std::vector<float> Run(const FrozenGraph& frozen,
                         const std::vector<std::pair<std::string, Tensor>>& feeds) {
    auto session = Session::Make(SessionOptions());
    EXPECT_THAT(session, IsOk());
    EXPECT_THAT((*session)->Create(frozen.graph), IsOk());
    std::vector<Tensor> outputs;
    EXPECT_THAT((*session)->Run(feeds, frozen.outputs, {}, &outputs), IsOk());
    return outputs.empty() ? std::vector<float>() : FloatsOf(outputs[0]);
  }
};

TEST_F(FreezeGraphTest, ReplacesVariablesAndCalls) {
  WriteScaleModel();
  ASSERT_THAT(Load(), IsOk());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const FrozenGraph frozen, Freeze("scale_call:0"));
  EXPECT_EQ(frozen.num_variables, 1);
  EXPECT_EQ(frozen.graph.library().function_size(), 0);
  EXPECT_THAT(OpsOf(frozen.graph), UnorderedElementsAre("Placeholder", "Const", "Identity", "Mul"));
  EXPECT_THAT(frozen.outputs, ElementsAre("scale_call/mul"));
  EXPECT_THAT(Run(frozen, {{"x", AsTensor<float>({1, 10})}}), ElementsAre(2, 30));
}

TEST_F(FreezeGraphTest, KeepsCallsIfAsked) {
  WriteScaleModel();
  ASSERT_THAT(Load(), IsOk());
  FreezeGraphOptions options;
  options.inline_calls = false;
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const FrozenGraph frozen, Freeze("scale_call", options));
  EXPECT_THAT(OpsOf(frozen.graph), Contains("StatefulPartitionedCall"));
  EXPECT_EQ(frozen.graph.library().function_size(), 1);
  EXPECT_THAT(Run(frozen, {{"x", AsTensor<float>({1, 10})}}), ElementsAre(2, 30));
}

TEST_F(FreezeGraphTest, KeepsVariablesIfAsked) {
  WriteScaleModel();
  ASSERT_THAT(Load(), IsOk());
  FreezeGraphOptions options;
  options.keep_variables = true;
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const FrozenGraph frozen,
      FreezeGraph(bundle_.meta_graph_def.graph_def(), {"scale_call:0"}, nullptr, options));
  EXPECT_EQ(frozen.num_variables, 0);
  EXPECT_THAT(OpsOf(frozen.graph),
              UnorderedElementsAre("Placeholder", "VarHandleOp", "ReadVariableOp", "Mul"));
}

TEST_F(FreezeGraphTest, EndsAtItsInputs) {
  std::string text = ScaleModelText();
  text.replace(text.find("op: \"Placeholder\""), 17, "op: \"OddOp\"");
  WriteText(text);
  WriteVariables({{"w_key", AsTensor<float>({2, 3}), ""}, {"v_key", AsScalar<float>(10), ""}});
  ASSERT_THAT(Load(), IsOk());
  EXPECT_THAT(Freeze("scale_call:0"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("op 'OddOp' is not registered")));
  FreezeGraphOptions options;
  options.inputs = {{"x", "x:0", DT_FLOAT, PartialTensorShape({2})}};
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const FrozenGraph frozen, Freeze("scale_call:0", options));
  EXPECT_THAT(Run(frozen, {{"x", AsTensor<float>({1, 10})}}), ElementsAre(2, 30));
}

TEST_F(FreezeGraphTest, GivesLoopsTheValuesOfVariables) {
  std::string text = ScaleModelText();
  // Multiplies x by w three times.
  text.insert(text.find("library {"), R"(
    node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
           attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }
    node { name: "loop" op: "While" input: "zero" input: "x" input: "w"
           attr { key: "T" value { list { type: DT_INT32 type: DT_FLOAT type: DT_RESOURCE } } }
           attr { key: "cond" value { func { name: "less" } } }
           attr { key: "body" value { func { name: "step" } } } }
    node { name: "read_after" op: "ReadVariableOp" input: "loop:2" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "result" op: "AddV2" input: "loop:1" input: "read_after" attr { key: "T" value { type: DT_FLOAT } } }
  )");
  text.insert(text.find("library {") + 9, R"(
      function {
        signature { name: "less" input_arg { name: "i" type: DT_INT32 } input_arg { name: "y" type: DT_FLOAT }
                    input_arg { name: "w" type: DT_RESOURCE } output_arg { name: "goes_on" type: DT_BOOL } }
        node_def { name: "three" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
                   attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 3 } } } }
        node_def { name: "less" op: "Less" input: "i" input: "three:output:0" attr { key: "T" value { type: DT_INT32 } } }
        ret { key: "goes_on" value: "less:z:0" }
      }
      function {
        signature { name: "step" input_arg { name: "i" type: DT_INT32 } input_arg { name: "y" type: DT_FLOAT }
                    input_arg { name: "w" type: DT_RESOURCE } output_arg { name: "i_out" type: DT_INT32 }
                    output_arg { name: "y_out" type: DT_FLOAT } output_arg { name: "w_out" type: DT_RESOURCE }
                    is_stateful: true }
        node_def { name: "one" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
                   attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
        node_def { name: "next" op: "AddV2" input: "i" input: "one:output:0" attr { key: "T" value { type: DT_INT32 } } }
        node_def { name: "same" op: "Identity" input: "w" attr { key: "T" value { type: DT_RESOURCE } } }
        node_def { name: "read" op: "ReadVariableOp" input: "same:output:0" attr { key: "dtype" value { type: DT_FLOAT } } }
        node_def { name: "mul" op: "Mul" input: "y" input: "read:value:0" attr { key: "T" value { type: DT_FLOAT } } }
        ret { key: "i_out" value: "next:z:0" } ret { key: "y_out" value: "mul:z:0" } ret { key: "w_out" value: "w" }
      }
  )");
  WriteText(text);
  WriteVariables({{"w_key", AsTensor<float>({2, 3}), ""}, {"v_key", AsScalar<float>(10), ""}});
  ASSERT_THAT(Load(), IsOk());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const FrozenGraph frozen, Freeze("result"));
  EXPECT_THAT(OpsOf(frozen.graph), Not(Contains("VarHandleOp")));
  EXPECT_THAT(Run(frozen, {{"x", AsTensor<float>({1, 10})}}), ElementsAre(8 + 2, 270 + 3));
}

TEST_F(FreezeGraphTest, KeepsLoopsOfVersion1) {
  std::string text = ScaleModelText();
  // Multiplies x by w three times.
  text.insert(text.find("library {"), R"(
    node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
           attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }
    node { name: "read_w" op: "ReadVariableOp" input: "w" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "enter_i" op: "Enter" input: "zero" attr { key: "T" value { type: DT_INT32 } }
           attr { key: "frame_name" value { s: "loop" } } }
    node { name: "enter_y" op: "Enter" input: "x" attr { key: "T" value { type: DT_FLOAT } }
           attr { key: "frame_name" value { s: "loop" } } }
    node { name: "enter_w" op: "Enter" input: "read_w" attr { key: "T" value { type: DT_FLOAT } }
           attr { key: "frame_name" value { s: "loop" } } attr { key: "is_constant" value { b: true } } }
    node { name: "merge_i" op: "Merge" input: "enter_i" input: "next_i" attr { key: "T" value { type: DT_INT32 } }
           attr { key: "N" value { i: 2 } } }
    node { name: "merge_y" op: "Merge" input: "enter_y" input: "next_y" attr { key: "T" value { type: DT_FLOAT } }
           attr { key: "N" value { i: 2 } } }
    node { name: "three" op: "Const" input: "^merge_i" attr { key: "dtype" value { type: DT_INT32 } }
           attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 3 } } } }
    node { name: "less" op: "Less" input: "merge_i" input: "three" attr { key: "T" value { type: DT_INT32 } } }
    node { name: "cond" op: "LoopCond" input: "less" }
    node { name: "switch_i" op: "Switch" input: "merge_i" input: "cond" attr { key: "T" value { type: DT_INT32 } } }
    node { name: "switch_y" op: "Switch" input: "merge_y" input: "cond" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "one" op: "Const" input: "^switch_i" attr { key: "dtype" value { type: DT_INT32 } }
           attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
    node { name: "inc" op: "AddV2" input: "switch_i:1" input: "one" attr { key: "T" value { type: DT_INT32 } } }
    node { name: "mul" op: "Mul" input: "switch_y:1" input: "enter_w" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "next_i" op: "NextIteration" input: "inc" attr { key: "T" value { type: DT_INT32 } } }
    node { name: "next_y" op: "NextIteration" input: "mul" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "exit" op: "Exit" input: "switch_y" attr { key: "T" value { type: DT_FLOAT } } }
  )");
  WriteText(text);
  WriteVariables({{"w_key", AsTensor<float>({2, 3}), ""}, {"v_key", AsScalar<float>(10), ""}});
  ASSERT_THAT(Load(), IsOk());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const FrozenGraph frozen, Freeze("exit"));
  EXPECT_EQ(frozen.num_variables, 1);
  EXPECT_THAT(Run(frozen, {{"x", AsTensor<float>({1, 10})}}), ElementsAre(8, 270));
}

TEST_F(FreezeGraphTest, OutputsMayBeVariables) {
  std::string text = ScaleModelText();
  text.insert(text.find("library {"), R"(
    node { name: "ref" op: "VariableV2" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "shape" value { shape { } } } }
    node { name: "assign" op: "Assign" input: "ref" input: "n" attr { key: "T" value { type: DT_FLOAT } } }
  )");
  WriteText(text);
  WriteVariables({{"w_key", AsTensor<float>({2, 3}), ""}, {"v_key", AsScalar<float>(10), ""}});
  SessionOptions options;
  options.freeze_variables = false;
  ASSERT_THAT(Load(options), IsOk());
  ASSERT_THAT(bundle_.session->Run({{"n", AsScalar<float>(7)}}, {}, {"assign"}, nullptr), IsOk());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const FrozenGraph frozen, Freeze("ref:0"));
  EXPECT_THAT(Run(frozen, {}), ElementsAre(7));
  EXPECT_THAT(Freeze("w:0"), StatusIs(absl::StatusCode::kUnimplemented,
                                      HasSubstr("output 'w:0' is the handle of a variable")));
}

TEST_F(FreezeGraphTest, RecursionsAreErrors) {
  std::string text = ScaleModelText();
  text.insert(text.find("library {"), R"(
    node { name: "recursive_call" op: "PartitionedCall" input: "x"
           attr { key: "Tin" value { list { type: DT_FLOAT } } }
           attr { key: "Tout" value { list { type: DT_FLOAT } } }
           attr { key: "f" value { func { name: "recursive" } } } }
  )");
  text.insert(text.find("library {") + 9, R"(
      function {
        signature { name: "recursive" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }
        node_def { name: "again" op: "PartitionedCall" input: "x"
                   attr { key: "Tin" value { list { type: DT_FLOAT } } }
                   attr { key: "Tout" value { list { type: DT_FLOAT } } }
                   attr { key: "f" value { func { name: "recursive" } } } }
        ret { key: "y" value: "again:output:0" }
      }
  )");
  WriteText(text);
  WriteVariables({{"w_key", AsTensor<float>({2, 3}), ""}, {"v_key", AsScalar<float>(10), ""}});
  ASSERT_THAT(Load(), IsOk());
  EXPECT_THAT(Freeze("recursive_call"), StatusIs(absl::StatusCode::kUnimplemented,
                                                 HasSubstr("calls are nested deeper than 100")));
}

TEST_F(FreezeGraphTest, FollowsIdentitiesInAnyOrder) {
  std::string text = ScaleModelText();
  const std::string read = R"(node_def { name: "read" op: "ReadVariableOp" input: "w" attr)";
  // The identity that is last is the first that gets the variable.
  text.replace(text.find(read), read.size(), R"(
        node_def { name: "read" op: "ReadVariableOp" input: "id_1:output:0" attr { key: "dtype" value { type: DT_FLOAT } } }
        node_def { name: "id_1" op: "Identity" input: "id_2:output:0" attr { key: "T" value { type: DT_RESOURCE } } }
        node_def { name: "id_2" op: "Identity" input: "w" attr { key: "T" value { type: DT_RESOURCE } } }
        node_def { name: "unused" op: "ReadVariableOp" input: "w" attr)");
  WriteText(text);
  WriteVariables({{"w_key", AsTensor<float>({2, 3}), ""}, {"v_key", AsScalar<float>(10), ""}});
  ASSERT_THAT(Load(), IsOk());
  for (const bool inline_calls : {false, true}) {
    FreezeGraphOptions options;
    options.inline_calls = inline_calls;
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const FrozenGraph frozen, Freeze("scale_call", options));
    EXPECT_THAT(Run(frozen, {{"x", AsTensor<float>({1, 10})}}), ElementsAre(2, 30));
  }
}

TEST_F(FreezeGraphTest, LimitsTheBytesOfTheResult) {
  WriteScaleModel();
  ASSERT_THAT(Load(), IsOk());
  FreezeGraphOptions options;
  options.inline_calls = false;
  options.inputs = {{"x", "x:0", DT_FLOAT, PartialTensorShape({2})}};
  EXPECT_THAT(Freeze("scale_call", options), IsOk());
  options.limits.max_file_bytes = 100;
  EXPECT_THAT(Freeze("scale_call", options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("max_file_bytes")));
}

TEST_F(FreezeGraphTest, ArgumentsMustBeInFunctions) {
  std::string text = ScaleModelText();
  text.insert(text.find("library {"), R"(
    node { name: "arg" op: "_Arg" attr { key: "T" value { type: DT_FLOAT } }
           attr { key: "index" value { i: 0 } } }
    node { name: "neg" op: "Neg" input: "arg" attr { key: "T" value { type: DT_FLOAT } } }
  )");
  WriteText(text);
  WriteVariables({{"w_key", AsTensor<float>({2, 3}), ""}, {"v_key", AsScalar<float>(10), ""}});
  ASSERT_THAT(Load(), IsOk());
  EXPECT_THAT(Freeze("neg"), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("node 'arg' (_Arg): an argument of a function")));
}

TEST_F(FreezeGraphTest, LimitsTheBytesOfConstants) {
  std::string text = ScaleModelText();
  // Nodes that stand for one variable of 4,000 bytes.
  std::string nodes = R"(
    node { name: "zeros" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 1000 } } } } } })";
  std::string inputs;
  for (int i = 0; i < 100; ++i) {
    absl::StrAppend(&nodes, "node { name: \"big", i,
                    R"(" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } }
                       attr { key: "shape" value { shape { dim { size: 1000 } } } }
                       attr { key: "shared_name" value { s: "big" } } }
                       node { name: "read)",
                    i, R"(" op: "ReadVariableOp" input: "big)", i,
                    R"(" attr { key: "dtype" value { type: DT_FLOAT } } })");
    absl::StrAppend(&inputs, " input: \"read", i, "\"");
  }
  absl::StrAppend(
      &nodes, R"(
    node { name: "assign" op: "AssignVariableOp" input: "big0" input: "zeros"
           attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "sum" op: "AddN")",
      inputs,
      R"( attr { key: "N" value { i: 100 } } attr { key: "T" value { type: DT_FLOAT } } })");
  WriteText(text.insert(text.find("library {"), nodes));
  WriteVariables({{"w_key", AsTensor<float>({2, 3}), ""}, {"v_key", AsScalar<float>(10), ""}});
  SessionOptions session;
  session.freeze_variables = false;
  ASSERT_THAT(Load(session), IsOk());
  ASSERT_THAT(bundle_.session->Run({}, {}, {"assign"}, nullptr), IsOk());
  FreezeGraphOptions options;
  options.limits.max_file_bytes = 500'000;
  EXPECT_THAT(Freeze("sum", options), IsOk());
  options.limits.max_file_bytes = 300'000;
  EXPECT_THAT(Freeze("sum", options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("max_file_bytes")));
}

// Each result of a call with effects waits for each effect.
TEST_F(FreezeGraphTest, LimitsTheControlInputsOfCalls) {
  constexpr int kCount = 100;
  std::string function =
      R"(function { signature { name: "prints" input_arg { name: "x" type: DT_FLOAT })";
  std::string body;
  std::string types;
  for (int i = 0; i < kCount; ++i) {
    absl::StrAppend(&function, R"( output_arg { name: "y)", i, R"(" type: DT_FLOAT })");
    absl::StrAppend(&body, R"( node_def { name: "print)", i, R"(" op: "Print" input: "x" input: "x"
        attr { key: "T" value { type: DT_FLOAT } } attr { key: "U" value { list { type: DT_FLOAT } } } }
        ret { key: "y)",
                    i, R"(" value: "print)", i, R"(:output:0" })");
    absl::StrAppend(&types, " type: DT_FLOAT");
  }
  absl::StrAppend(&function, " is_stateful: true }", body, "}");
  std::string text = ScaleModelText();
  text.insert(text.find("library {") + 9, function);
  text.insert(text.find("library {"),
              absl::StrCat(R"(node { name: "call" op: "StatefulPartitionedCall" input: "x"
                attr { key: "Tin" value { list { type: DT_FLOAT } } }
                attr { key: "Tout" value { list { )",
                           types, R"( } } }
                attr { key: "f" value { func { name: "prints" } } } })"));
  WriteText(text);
  WriteVariables({{"w_key", AsTensor<float>({2, 3}), ""}, {"v_key", AsScalar<float>(10), ""}});
  ASSERT_THAT(Load(), IsOk());
  FreezeGraphOptions options;
  options.limits.max_file_bytes = 400'000;
  EXPECT_THAT(Freeze("call", options), IsOk());
  options.limits.max_file_bytes = 100'000;
  EXPECT_THAT(Freeze("call", options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("max_file_bytes")));
}

// A function is copied for each set of inputs that are variables.
TEST_F(FreezeGraphTest, LimitsTheBytesOfFunctions) {
  std::string text = ScaleModelText();
  text.insert(text.find("library {") + 9, absl::StrCat(R"(
      function {
        signature { name: "big" input_arg { name: "a" type: DT_RESOURCE } input_arg { name: "b" type: DT_RESOURCE }
                    output_arg { name: "y" type: DT_STRING } }
        node_def { name: "y" op: "Const" attr { key: "dtype" value { type: DT_STRING } }
                   attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape { } string_val: ")",
                                                       std::string(20'000, 'y'), R"(" } } } }
        ret { key: "y" value: "y:output:0" }
      })"));
  std::string nodes = R"(
    node { name: "table" op: "HashTableV2" attr { key: "key_dtype" value { type: DT_INT64 } }
           attr { key: "value_dtype" value { type: DT_INT64 } } })";
  std::string sum;
  const std::vector<std::pair<std::string, std::string>> inputs = {
      {"w", "v"}, {"w", "table"}, {"table", "w"}};
  for (size_t i = 0; i < inputs.size(); ++i) {
    absl::StrAppend(&nodes, R"(
    node { name: "call)",
                    i, R"(" op: "PartitionedCall" input: ")", inputs[i].first, R"(" input: ")",
                    inputs[i].second, R"("
           attr { key: "Tin" value { list { type: DT_RESOURCE type: DT_RESOURCE } } }
           attr { key: "Tout" value { list { type: DT_STRING } } }
           attr { key: "f" value { func { name: "big" } } } })");
    absl::StrAppend(&sum, " input: \"call", i, "\"");
  }
  absl::StrAppend(&nodes, R"(
    node { name: "sum" op: "StringJoin")",
                  sum, R"( attr { key: "N" value { i: 3 } } })");
  WriteText(text.insert(text.find("library {"), nodes));
  WriteVariables({{"w_key", AsTensor<float>({2, 3}), ""}, {"v_key", AsScalar<float>(10), ""}});
  ASSERT_THAT(Load(), IsOk());
  FreezeGraphOptions options;
  options.inline_calls = false;
  options.limits.max_file_bytes = 70'000;
  EXPECT_THAT(Freeze("sum", options), IsOk());
  options.limits.max_file_bytes = 50'000;
  EXPECT_THAT(Freeze("sum", options), StatusIs(absl::StatusCode::kInvalidArgument,
                                               HasSubstr("expected functions of at most")));
}

TEST_F(FreezeGraphTest, ErrorsNameTheNode) {
  WriteScaleModel();
  ASSERT_THAT(Load(), IsOk());
  EXPECT_THAT(Freeze("add_call:0"),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("node 'assign' (AssignAddVariableOp): the node uses a variable")));
  EXPECT_THAT(Freeze("nothing"), StatusIs(absl::StatusCode::kNotFound,
                                          HasSubstr("the graph has no output 'nothing'")));
  EXPECT_THAT(Freeze("z:3"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(FreezeGraph(bundle_.meta_graph_def.graph_def(), {"z"}, nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument));
  WriteText(ScaleModelText());
  std::filesystem::remove_all(File("variables"));
  ASSERT_THAT(Load(), IsOk());
  EXPECT_THAT(Freeze("z"), StatusIs(absl::StatusCode::kFailedPrecondition,
                                    HasSubstr("variable 'v' has not been initialized")));
}

}  // namespace
}  // namespace gradflow
