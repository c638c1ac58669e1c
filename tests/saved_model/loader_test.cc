// Tests of loading SavedModels and calling their signatures.
#include "gradflow/saved_model/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/substitute.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/variable.h"
#include "gradflow/proto/trackable_object_graph.pb.h"
#include "gradflow/saved_model/missing_ops.h"
#include "gradflow/saved_model/reader.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/saved_model/model_fixture.h"

namespace gradflow {
namespace {

namespace fs = std::filesystem;

using ::gradflow::testing::AsScalar;
using ::gradflow::testing::AsTensor;
using ::gradflow::testing::IsOk;
using ::gradflow::testing::kAssetNodes;
using ::gradflow::testing::SavedModelFixture;
using ::gradflow::testing::ScaleModelText;
using ::gradflow::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kDenied = absl::StatusCode::kPermissionDenied;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kNotFound = absl::StatusCode::kNotFound;
constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;

std::vector<float> Floats(const Tensor& tensor) {
  const auto span = tensor.span<float>();
  return std::vector<float>(span.begin(), span.end());
}

class LoadSavedModelTest : public SavedModelFixture {
 protected:
  // Calls a signature with x = [1, 10] and returns an output.
  std::vector<float> CallWithX(const std::string& signature, const std::string& output) {
    const auto outputs = Call(signature, {{"x", AsTensor<float>({1, 10})}});
    EXPECT_THAT(outputs, IsOk());
    return outputs.ok() ? Floats(outputs->at(output)) : std::vector<float>();
  }
};

TEST_F(LoadSavedModelTest, RestoresVariablesAndRunsSignatures) {
  WriteScaleModel();
  ASSERT_THAT(Load(), IsOk());
  EXPECT_THAT(bundle_.SignatureNames(), ElementsAre("add", "defaults", "serving_default"));
  EXPECT_THAT(CallWithX("serving_default", "y"), ElementsAre(2, 30));
  std::vector<Tensor> outputs;
  ASSERT_THAT(
      bundle_.session->Run({{"x:0", AsTensor<float>({1, 1})}}, {"scale_call:0"}, {}, &outputs),
      IsOk());
  EXPECT_THAT(Floats(outputs[0]), ElementsAre(2, 3));
}

TEST_F(LoadSavedModelTest, KeepsTheStateBetweenCallsOfAllSignatures) {
  WriteScaleModel();
  ASSERT_THAT(Load(), IsOk());
  EXPECT_THAT(CallWithX("add", "total"), ElementsAre(3, 13));
  EXPECT_THAT(CallWithX("add", "total"), ElementsAre(4, 23));
  EXPECT_THAT(CallWithX("serving_default", "y"), ElementsAre(4, 230));
}

TEST_F(LoadSavedModelTest, ReadsBinaryFiles) {
  WriteScaleModel();
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const SavedModel model, ReadSavedModel(folder()));
  fs::remove(File("saved_model.pbtxt"));
  WriteFile("saved_model.pb", model.SerializeAsString());
  ASSERT_THAT(Load(), IsOk());
  EXPECT_THAT(CallWithX("serving_default", "y"), ElementsAre(2, 30));
}

TEST_F(LoadSavedModelTest, LiteBundlesKeepOnlySignatures) {
  WriteScaleModel();
  SavedModelBundleLite lite;
  ASSERT_THAT(LoadSavedModel(SessionOptions(), RunOptions(), folder(), {"serve"}, &lite), IsOk());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Signature signature, lite.signature("add"));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const SignatureCallable add, signature.MakeCallable());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const NamedTensors outputs, add({{"x", AsTensor<float>({1, 1})}}));
  EXPECT_THAT(Floats(outputs.at("total")), ElementsAre(3, 4));
}

TEST_F(LoadSavedModelTest, DescribesSignatures) {
  WriteScaleModel();
  ASSERT_THAT(Load(), IsOk());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Signature signature, bundle_.signature("serving_default"));
  EXPECT_EQ(signature.name(), "serving_default");
  EXPECT_EQ(signature.method_name(), "tensorflow/serving/predict");
  ASSERT_EQ(signature.inputs().size(), 1u);
  EXPECT_EQ(signature.inputs()[0].name, "x");
  EXPECT_EQ(signature.inputs()[0].tensor_name, "x:0");
  EXPECT_EQ(signature.inputs()[0].dtype, DT_FLOAT);
  EXPECT_EQ(signature.inputs()[0].shape, PartialTensorShape({2}));
  ASSERT_EQ(signature.outputs().size(), 1u);
  EXPECT_EQ(signature.outputs()[0].name, "y");
}

TEST_F(LoadSavedModelTest, UsesDefaultValuesOfInputs) {
  WriteScaleModel();
  ASSERT_THAT(Load(), IsOk());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const NamedTensors by_default, Call("defaults", {}));
  EXPECT_THAT(Floats(by_default.at("z")), ElementsAre(15));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const NamedTensors given,
                                Call("defaults", {{"n", AsScalar<float>(1)}}));
  EXPECT_THAT(Floats(given.at("z")), ElementsAre(11));
}

TEST_F(LoadSavedModelTest, WrongInputsOfSignaturesAreErrors) {
  WriteScaleModel();
  ASSERT_THAT(Load(), IsOk());
  const Tensor x = AsTensor<float>({1, 10});
  EXPECT_THAT(Call("nothing", {}), StatusIs(kNotFound,
                                            "there is no signature 'nothing'; the model has 'add', "
                                            "'defaults', 'serving_default'"));
  EXPECT_THAT(
      Call("serving_default", {}),
      StatusIs(kInvalid, "signature 'serving_default': input 'x' is missing; the inputs are 'x'"));
  EXPECT_THAT(
      Call("serving_default", {{"x", x}, {"t", x}}),
      StatusIs(kInvalid, "signature 'serving_default': there is no input 't'; the inputs are 'x'"));
  EXPECT_THAT(Call("serving_default", {{"x", AsTensor<int32_t>({1, 2})}}),
              StatusIs(kInvalid,
                       "signature 'serving_default': input 'x': expected type float, found int32"));
  EXPECT_THAT(
      Call("serving_default", {{"x", AsTensor<float>({1, 2, 3})}}),
      StatusIs(kInvalid, "signature 'serving_default': input 'x': expected shape [2], found [3]"));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Signature signature, bundle_.signature("serving_default"));
  EXPECT_THAT(signature.MakeCallable({"q"}),
              StatusIs(kNotFound,
                       "signature 'serving_default': there is no output 'q'; the "
                       "outputs are 'y'"));
}

TEST_F(LoadSavedModelTest, CallablesRunOnManyThreads) {
  WriteScaleModel();
  ASSERT_THAT(Load(), IsOk());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Signature signature, bundle_.signature("serving_default"));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const SignatureCallable call, signature.MakeCallable());
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const auto x = static_cast<float>(t * 1000 + i);
        const auto outputs = call({{"x", AsTensor<float>({x, 0})}});
        if (outputs.ok() && Floats(outputs->at("y"))[0] == 2 * x) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 400);
}

TEST_F(LoadSavedModelTest, CallablesTakeTensorsByPosition) {
  WriteScaleModel();
  ASSERT_THAT(Load(), IsOk());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Signature signature, bundle_.signature("serving_default"));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const SignatureCallable call, signature.MakeCallable({"y"}));
  std::vector<Tensor> outputs;
  ASSERT_THAT(call.Run({AsTensor<float>({1, 1})}, &outputs), IsOk());
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_THAT(Floats(outputs[0]), ElementsAre(2, 3));
  EXPECT_THAT(call.Run({}, &outputs),
              StatusIs(kInvalid, HasSubstr("expected 1 fed tensors, found 0")));
}

// ---- Variables ----

TEST_F(LoadSavedModelTest, ModelsWithoutVariablesLoad) {
  WriteText(ScaleModelText());
  ASSERT_THAT(Load(), IsOk());
  EXPECT_THAT(Call("serving_default", {{"x", AsTensor<float>({1, 1})}}),
              StatusIs(kPrecondition, HasSubstr("variable 'the_w' has not been initialized")));
}

TEST_F(LoadSavedModelTest, WrongVariablesInTheCheckpointAreErrors) {
  WriteText(ScaleModelText());
  const Tensor w = AsTensor<float>({2, 3});
  WriteVariables({{"w_key", w, ""}});
  EXPECT_THAT(Load(), StatusIs(kNotFound, HasSubstr("variable 'v' ('v_key' in the checkpoint): ")));
  WriteVariables({{"w_key", AsTensor<float>({1, 2, 3}), ""}, {"v_key", AsScalar<float>(1), ""}});
  EXPECT_THAT(Load(),
              StatusIs(kInvalid, HasSubstr("variable 'the_w' ('w_key' in the checkpoint): "
                                           "expected shape [2], but the checkpoint has [3]")));
  WriteVariables({{"w_key", w, ""}, {"v_key", AsScalar<int32_t>(1), ""}});
  EXPECT_THAT(Load(),
              StatusIs(kInvalid, HasSubstr("variable 'v' ('v_key' in the checkpoint): "
                                           "expected type float, but the checkpoint has int32")));
}

TEST_F(LoadSavedModelTest, VariablesThatHadNoValueHaveNone) {
  std::string text = ScaleModelText();
  text.insert(text.find("saver_def"), "object_graph_def { nodes { } } ");
  WriteText(text);
  TrackableObjectGraph objects;
  auto& value = *objects.add_nodes()->add_attributes();
  value.set_name("VARIABLE_VALUE");
  value.set_full_name("v");
  value.set_checkpoint_key("v_key");
  WriteVariables(
      {{"w_key", AsTensor<float>({2, 3}), ""},
       {"_CHECKPOINTABLE_OBJECT_GRAPH", Tensor(tstring(objects.SerializeAsString())), ""}});
  ASSERT_THAT(Load(), IsOk());
  EXPECT_THAT(CallWithX("serving_default", "y"), ElementsAre(2, 30));
  EXPECT_THAT(Call("defaults", {}),
              StatusIs(kPrecondition, HasSubstr("variable 'v' has not been initialized")));
}

TEST_F(LoadSavedModelTest, RunsTheSaverIfItDoesMoreThanAssign) {
  // The saver doubles a variable.
  const std::string text = absl::StrReplaceAll(
      ScaleModelText(), {{R"(op: "Identity" input: "tensors:tensors:1")",
                          R"(op: "AddV2" input: "tensors:tensors:1" input: "tensors:tensors:1")"},
                         {"copy:output:0", "copy:z:0"}});
  WriteText(text);
  WriteVariables({{"w_key", AsTensor<float>({2, 3}), ""}, {"v_key", AsScalar<float>(10), ""}});
  SessionOptions options;
  options.file_access = FileAccess::None();
  ASSERT_THAT(Load(options), IsOk());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const NamedTensors outputs, Call("defaults", {}));
  EXPECT_THAT(Floats(outputs.at("z")), ElementsAre(25));
}

TEST_F(LoadSavedModelTest, EqualTensorsShareABufferUntilAVariableIsWritten) {
  std::string text = ScaleModelText();
  text = absl::StrReplaceAll(
      text, {{"shape { dim { size: 2 } }", "shape { dim { size: 1000 } }"},
             {R"(node { name: "v" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "shape" value { shape { } } } })",
              R"(node { name: "v" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "shape" value { shape { dim { size: 1000 } } } } })"}});
  WriteText(text);
  Tensor ones(DT_FLOAT, {1000});
  ones.flat<float>().setConstant(1);
  WriteVariables({{"w_key", ones, ""}, {"v_key", ones, ""}});
  ASSERT_THAT(Load(), IsOk());
  const auto value_of = [&](const char* name) {
    return (*bundle_.session->resources()->Lookup<Variable>("", name))->Read().value();
  };
  EXPECT_EQ(value_of("the_w").raw_data(), value_of("v").raw_data());
  ASSERT_THAT(bundle_.session->Run({{"x", ones}}, {"add_call"}, {}, nullptr), IsOk());
  EXPECT_EQ(value_of("the_w").flat<float>()(999), 2);
  EXPECT_EQ(value_of("v").flat<float>()(999), 1);
}

TEST_F(LoadSavedModelTest, ListsVariablesWithTheirTensors) {
  WriteScaleModel();
  MetaGraphDef graph;
  ASSERT_THAT(ReadMetaGraphDefFromSavedModel(folder(), {"serve"}, &graph), IsOk());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<ModelVariable> variables, ModelVariables(graph));
  ASSERT_EQ(variables.size(), 2u);
  EXPECT_EQ(variables[0].node, "w");
  EXPECT_EQ(variables[0].name, "the_w");
  EXPECT_EQ(variables[0].key, "w_key");
  EXPECT_EQ(variables[0].dtype, DT_FLOAT);
  EXPECT_EQ(variables[1].name, "v");
  EXPECT_EQ(variables[1].key, "v_key");
}

TEST_F(LoadSavedModelTest, FreezesOnlyVariablesThatNoSignatureWrites) {
  WriteScaleModel();
  ASSERT_THAT(Load(), IsOk());
  EXPECT_THAT(CallWithX("add", "total"), ElementsAre(3, 13));
  GraphDef assign;
  NodeDef* node = assign.add_node();
  node->set_name("value");
  node->set_op("Placeholder");
  (*node->mutable_attr())["dtype"].set_type(DT_FLOAT);
  node = assign.add_node();
  node->set_name("assign");
  node->set_op("AssignVariableOp");
  node->add_input("v");
  node->add_input("value");
  (*node->mutable_attr())["dtype"].set_type(DT_FLOAT);
  ASSERT_THAT(bundle_.session->Extend(assign), IsOk());
  const Tensor value = AsScalar<float>(1);
  EXPECT_THAT(bundle_.session->Run({{"value", value}}, {}, {"assign"}, nullptr),
              StatusIs(kPrecondition,
                       HasSubstr("variable 'v' is frozen (SessionOptions::freeze_variables)")));
  SessionOptions options;
  options.freeze_variables = false;
  ASSERT_THAT(Load(options), IsOk());
  ASSERT_THAT(bundle_.session->Extend(assign), IsOk());
  EXPECT_THAT(bundle_.session->Run({{"value", value}}, {}, {"assign"}, nullptr), IsOk());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const NamedTensors outputs, Call("defaults", {}));
  EXPECT_THAT(Floats(outputs.at("z")), ElementsAre(6));
}

// ---- Tags, files and malformed models ----

// Calls with a form that the search for writes cannot follow may write every variable.
TEST_F(LoadSavedModelTest, FreezesNoVariableThatAnOddCallMayWrite) {
  constexpr char kCall[] = R"(
      node { name: "odd_call" op: "$0" input: "v" input: "w"
             attr { key: "Tin" value { list { type: DT_RESOURCE type: DT_RESOURCE } } }
             attr { key: "Tout" value { list { } } } attr { key: "f" value { func { name: "$1" } } } } )";
  constexpr char kFunction[] = R"(
      function {
        signature { name: "$0" input_arg { name: "a" type: DT_RESOURCE } input_arg { name: "b" type: DT_RESOURCE }
                    is_stateful: true }
        $1 } )";
  constexpr char kInnerCall[] = R"(
        node_def { name: "call" op: "StatefulPartitionedCall" input: "$0" input: "$1"
                   attr { key: "Tin" value { list { type: DT_RESOURCE type: DT_RESOURCE } } }
                   attr { key: "Tout" value { list { } } } attr { key: "f" value { func { name: "$2" } } } } )";
  constexpr char kWrite[] = R"(
        node_def { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
                   attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 0 } } } }
        node_def { name: "write" op: "AssignVariableOp" input: "$0" input: "zero:output:0"
                   attr { key: "dtype" value { type: DT_FLOAT } } } )";
  using absl::Substitute;
  // Calls that are nested deeply.
  std::string deep;
  for (int i = 0; i < 110; ++i) {
    absl::StrAppend(&deep,
                    Substitute(kFunction, absl::StrCat("deep_", i),
                               Substitute(kInnerCall, "a", "b", absl::StrCat("deep_", i + 1))));
  }
  absl::StrAppend(&deep, Substitute(kFunction, "deep_110", Substitute(kWrite, "a")));
  const std::string recursion =
      Substitute(kFunction, "f", Substitute(kInnerCall, "a", "b", "g")) +
      Substitute(kFunction, "g", Substitute(kInnerCall, "b", "a", "f") + Substitute(kWrite, "b"));
  struct Row {
    const char* name;
    std::string call;
    std::string functions;
  };
  const Row rows[] = {
      {"a recursion that exchanges arguments", Substitute(kCall, "StatefulPartitionedCall", "f"),
       recursion},
      {"deep calls", Substitute(kCall, "StatefulPartitionedCall", "deep_0"), deep},
      // Its first input is not an argument of the function.
      {"an op that is not registered", Substitute(kCall, "OddCall", "write"),
       Substitute(kFunction, "write", Substitute(kWrite, "b"))},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    std::string text = ScaleModelText();
    text.insert(text.find("library {"), row.call);
    text.insert(text.find("library {") + 9, row.functions);
    text.insert(text.find("saver_def"), R"(signature_def { key: "odd" value {
        outputs { key: "y" value { name: "odd_call" dtype: DT_FLOAT } } } })");
    WriteText(text);
    WriteVariables({{"w_key", AsTensor<float>({2, 3}), ""}, {"v_key", AsScalar<float>(10), ""}});
    ASSERT_THAT(Load(), IsOk());
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto variable,
                                  bundle_.session->resources()->Lookup<Variable>("", "v"));
    EXPECT_THAT(variable->Assign(AsScalar<float>(1)), IsOk());
  }
}

TEST_F(LoadSavedModelTest, LimitsTheBytesOfDefaultsTogether) {
  SignatureDef def;
  for (const char* const name : {"a", "b"}) {
    TensorProto& value = (*def.mutable_defaults())[name];
    value.set_dtype(DT_FLOAT);
    value.mutable_tensor_shape()->add_dim()->set_size(150'000'000);
    value.add_float_val(1);
  }
  EXPECT_THAT(Signature::Make("s", def, nullptr),
              StatusIs(kInvalid, HasSubstr("the defaults have more than 1073741824 bytes")));
}

TEST_F(LoadSavedModelTest, LimitsTheTensorsOfMissingOps) {
  GraphDef graph;
  OpList ops;
  OpDef& op = *ops.add_op();
  op.set_name("OddOp");
  OpDef::ArgDef& output = *op.add_output_arg();
  output.set_name("y");
  output.set_type(DT_FLOAT);
  output.set_number_attr("N");
  OpDef::AttrDef& attr = *op.add_attr();
  attr.set_name("N");
  attr.set_type("int");
  attr.set_has_minimum(true);
  attr.set_minimum(1);
  for (const char* const name : {"small", "large", "too_large"}) {
    NodeDef& node = *graph.add_node();
    node.set_name(name);
    node.set_op("OddOp");
    (*node.mutable_attr())["N"].set_i(node.name() == "small" ? 2 : 40'000);
  }
  internal::WrapMissingOps(ops, GlobalRegistry(), &graph);
  EXPECT_EQ(graph.node(0).op(), "PartitionedCall");
  EXPECT_EQ(graph.node(1).op(), "PartitionedCall");
  EXPECT_EQ(graph.node(2).op(), "OddOp");
  EXPECT_EQ(graph.library().function_size(), 2);
}

TEST_F(LoadSavedModelTest, UnknownTagsAreErrorsThatListAllTags) {
  WriteText(ScaleModelText() + R"(meta_graphs { meta_info_def { tags: "train" tags: "gpu" } })");
  EXPECT_THAT(Load(SessionOptions(), {"serve", "tpu"}),
              StatusIs(kNotFound, AllOf(HasSubstr(folder()),
                                        HasSubstr("no graph of the SavedModel has the tags "
                                                  "{'serve', 'tpu'}; it has {'serve'}, "
                                                  "{'gpu', 'train'}"))));
}

TEST_F(LoadSavedModelTest, FindsSavedModels) {
  EXPECT_FALSE(MaybeSavedModelDirectory(folder()));
  EXPECT_FALSE(MaybeSavedModelDirectory(File("nothing")));
  EXPECT_THAT(Load(), StatusIs(kNotFound, HasSubstr("expected a SavedModel, a folder with "
                                                    "saved_model.pb or saved_model.pbtxt")));
  WriteScaleModel();
  EXPECT_TRUE(MaybeSavedModelDirectory(folder()));
}

TEST_F(LoadSavedModelTest, MalformedFilesAreErrors) {
  WriteFile("saved_model.pb", "");
  EXPECT_THAT(Load(),
              StatusIs(kInvalid, HasSubstr("expected a SavedModel, but the file is empty")));
  WriteFile("saved_model.pb", "\x12\x40");
  EXPECT_THAT(Load(), StatusIs(kInvalid, HasSubstr("expected a SavedModel: ")));
  fs::remove(File("saved_model.pb"));
  WriteText("meta_graphs { nodes: 3 }");
  EXPECT_THAT(Load(), StatusIs(kInvalid, HasSubstr("expected a SavedModel as text: ")));
  WriteText("saved_model_schema_version: 7");
  EXPECT_THAT(Load(),
              StatusIs(kInvalid, HasSubstr("expected version 1 of the schema, but found 7")));
}

TEST_F(LoadSavedModelTest, FilesThatLeadOutOfTheFolderAreRefused) {
  WriteScaleModel();
  const fs::path outside = folder() + "_outside";
  fs::create_directories(outside);
  fs::rename(File("variables"), outside / "variables");
  fs::create_directory_symlink(outside / "variables", File("variables"));
  EXPECT_THAT(Load(), StatusIs(kDenied, HasSubstr("must be inside its folder")));
  fs::remove(File("variables"));
  fs::rename(outside / "variables", File("variables"));
  fs::rename(File("saved_model.pbtxt"), outside / "saved_model.pbtxt");
  fs::create_symlink(outside / "saved_model.pbtxt", File("saved_model.pbtxt"));
  EXPECT_THAT(Load(), StatusIs(kDenied, HasSubstr("must be inside its folder")));
  fs::remove_all(outside);
}

TEST_F(LoadSavedModelTest, AssetsMustStayInTheirFolder) {
  for (const char* const name : {"/etc/passwd", "../x", "a/../../x", ""}) {
    std::string text = ScaleModelText();
    text.insert(text.rfind('}'), std::string("asset_file_def { tensor_info { name: \"n:0\" } "
                                             "filename: \"") +
                                     name + "\" }");
    WriteText(text);
    EXPECT_THAT(Load(), StatusIs(kInvalid, HasSubstr("expected a relative path below assets")))
        << name;
  }
}

TEST_F(LoadSavedModelTest, RunsTheInitOpWithThePathsOfAssets) {
  std::string text = ScaleModelText();
  text.insert(text.find("saver_def"), R"(
    collection_def { key: "saved_model_main_op" value { node_list { value: "init" } } }
    signature_def { key: "names" value {
      outputs { key: "text" value { name: "read_text:0" dtype: DT_STRING } } } }
  )");
  text.insert(text.find("library {"), kAssetNodes);
  WriteFile("assets/names.txt", "red, green");
  WriteVariables({{"w_key", AsTensor<float>({2, 3}), ""}, {"v_key", AsScalar<float>(10), ""}});
  // The graph may read the files of the model, but no others.
  SessionOptions options;
  options.file_access = FileAccess::None();
  // TensorFlow 1 lists assets in a collection.
  for (const char* const assets :
       {R"(collection_def { key: "saved_model_assets" value { any_list { value {
             type_url: "type.googleapis.com/tensorflow.AssetFileDef"
             value: "\n\010\n\006path:0\022\tnames.txt" } } } } )",
        R"(asset_file_def { tensor_info { name: "path:0" } filename: "names.txt" } )"}) {
    std::string with_assets = text;
    WriteText(with_assets.insert(text.find("saver_def"), assets));
    ASSERT_THAT(Load(options), IsOk());
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const NamedTensors outputs, Call("names", {}));
    EXPECT_EQ(outputs.at("text").scalar<tstring>()(), "red, green");
  }
  fs::remove(File("assets/names.txt"));
  EXPECT_THAT(Load(options), StatusIs(kNotFound, HasSubstr("initializing the model: ")));
  fs::create_symlink("/etc/hostname", File("assets/names.txt"));
  EXPECT_THAT(Load(options), StatusIs(kDenied, HasSubstr("asset 'names.txt': ")));
}

TEST_F(LoadSavedModelTest, CollectionsOfAssetsAreChecked) {
  for (const char* const value : {R"(type_url: "x/tensorflow.SaverDef")",
                                  R"(type_url: "x/tensorflow.AssetFileDef" value: "\n\010")"}) {
    std::string text = ScaleModelText();
    text.insert(
        text.find("saver_def"),
        absl::StrCat(R"(collection_def { key: "saved_model_assets" value { any_list { value { )",
                     value, " } } } } "));
    WriteText(text);
    EXPECT_THAT(Load(), StatusIs(kInvalid, HasSubstr("'saved_model_assets' has an element that is "
                                                     "not an AssetFileDef")));
  }
}

TEST_F(LoadSavedModelTest, MissingOpsAreErrorsOfTheSignaturesThatNeedThem) {
  std::string text = ScaleModelText();
  text.insert(text.find("library {"), R"(node { name: "odd" op: "OddOp" input: "x" })");
  text.insert(text.find("saver_def"), R"(signature_def { key: "odd" value {
      inputs { key: "x" value { name: "x:0" dtype: DT_FLOAT } }
      outputs { key: "y" value { name: "odd:0" dtype: DT_FLOAT } } } })");
  WriteText(text);
  WriteVariables({{"w_key", AsTensor<float>({2, 3}), ""}, {"v_key", AsScalar<float>(10), ""}});
  ASSERT_THAT(Load(), IsOk());
  EXPECT_THAT(CallWithX("serving_default", "y"), ElementsAre(2, 30));
  EXPECT_THAT(Call("odd", {{"x", AsTensor<float>({1, 1})}}),
              StatusIs(kNotFound, AllOf(HasSubstr("signature 'odd': "), HasSubstr("OddOp"))));
}

TEST_F(LoadSavedModelTest, CallsThatFeedTheResultOfAMissingOpDoNotNeedIt) {
  // x is parsed from examples unless it is fed.
  std::string text = ScaleModelText();
  const std::string placeholder = R"(node { name: "x" op: "Placeholder")";
  const size_t begin = text.find(placeholder);
  text.replace(begin, text.find("node { name: \"n\"") - begin, R"(
    node { name: "bytes" op: "Placeholder" attr { key: "dtype" value { type: DT_STRING } } }
    node { name: "odd" op: "OddOp" input: "bytes" attr { key: "N" value { i: 2 } } }
    node { name: "x" op: "Identity" input: "odd:1" attr { key: "T" value { type: DT_FLOAT } } }
    )");
  text.insert(text.find("tags:"), R"(
    stripped_op_list { op { name: "OddOp" input_arg { name: "bytes" type: DT_STRING }
      output_arg { name: "first" type: DT_INT32 } output_arg { name: "rest" type: DT_FLOAT number_attr: "N" }
      attr { name: "N" type: "int" has_minimum: true minimum: 1 } } }
  )");
  text.insert(text.find("saver_def"), R"(signature_def { key: "parsed" value {
      inputs { key: "bytes" value { name: "bytes:0" dtype: DT_STRING } }
      outputs { key: "y" value { name: "scale_call:0" dtype: DT_FLOAT } } } })");
  WriteText(text);
  WriteVariables({{"w_key", AsTensor<float>({2, 3}), ""}, {"v_key", AsScalar<float>(10), ""}});
  ASSERT_THAT(Load(), IsOk());
  EXPECT_THAT(CallWithX("serving_default", "y"), ElementsAre(2, 30));
  EXPECT_THAT(Call("parsed", {{"bytes", Tensor("text")}}),
              StatusIs(kNotFound,
                       AllOf(HasSubstr("signature 'parsed': "), HasSubstr("node 'odd' (OddOp)"))));
  EXPECT_THAT(MissingOpsOf(bundle_.meta_graph_def, {"scale_call:0"}, {"bytes:0"}),
              ElementsAre("OddOp"));
  EXPECT_THAT(MissingOpsOf(bundle_.meta_graph_def, {"scale_call:0"}, {"x:0"}), IsEmpty());
}

TEST_F(LoadSavedModelTest, SoftPlacementMovesNodesToTheCpu) {
  WriteScaleModel();
  WriteText(absl::StrReplaceAll(
      ScaleModelText(),
      {{"node_def { name: \"mul\"", "node_def { device: \"/device:GPU:0\" name: \"mul\""},
       {"node { name: \"z\"", "node { device: \"/gpu:1\" name: \"z\""}}));
  ASSERT_THAT(Load(), IsOk());
  EXPECT_THAT(Call("defaults", {}), StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("GPU")));
  SessionOptions options;
  options.config.set_allow_soft_placement(true);
  ASSERT_THAT(Load(options), IsOk());
  EXPECT_THAT(CallWithX("serving_default", "y"), ElementsAre(2, 30));
  EXPECT_THAT(Call("defaults", {}), IsOk());
}

TEST_F(LoadSavedModelTest, NullPointersAreErrors) {
  EXPECT_THAT(LoadSavedModel(SessionOptions(), RunOptions(), folder(), {},
                             static_cast<SavedModelBundle*>(nullptr)),
              StatusIs(kInvalid, HasSubstr("LoadSavedModel: bundle must not be null")));
  EXPECT_THAT(LoadSavedModel(SessionOptions(), RunOptions(), folder(), {},
                             static_cast<SavedModelBundleLite*>(nullptr)),
              StatusIs(kInvalid, HasSubstr("LoadSavedModel: bundle must not be null")));
  EXPECT_THAT(ReadMetaGraphDefFromSavedModel(folder(), {}, nullptr),
              StatusIs(kInvalid, HasSubstr("meta_graph must not be null")));
  SavedModel model;
  EXPECT_THAT(TakeMetaGraph(folder(), {}, &model, nullptr),
              StatusIs(kInvalid, HasSubstr("TakeMetaGraph: meta_graph must not be null")));
  EXPECT_THAT(RestoreSession(RunOptions(), MetaGraphDef(), folder(), nullptr),
              StatusIs(kInvalid, HasSubstr("RestoreSession: session must not be null")));
}

}  // namespace
}  // namespace gradflow
