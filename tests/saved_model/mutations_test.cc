// Tests of SavedModels with random changes. Each loads and runs, or fails with a status.
//
// GRADFLOW_MUTATIONS sets the number of changed models, and GRADFLOW_MUTATION_SEED sets the seed.
// GRADFLOW_FLIP_STEP=1 flips each byte of the graph instead of each eighth byte.
#include <gmock/gmock.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gradflow/proto/trackable_object_graph.pb.h"
#include "gradflow/saved_model/freeze.h"
#include "gradflow/saved_model/reader.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/saved_model/model_fixture.h"
#include "tests/testing/mutate.h"

namespace gradflow {
namespace {

using ::gradflow::testing::AsScalar;
using ::gradflow::testing::AsTensor;
using ::gradflow::testing::IsOk;
using ::gradflow::testing::kAssetNodes;
using ::gradflow::testing::MutateBytes;
using ::gradflow::testing::MutateGraph;
using ::gradflow::testing::MutateMessage;
using ::gradflow::testing::MutateWords;
using ::gradflow::testing::MutationRandom;
using ::gradflow::testing::SavedModelFixture;
using ::testing::ElementsAre;

int64_t FromEnvironment(const char* name, int64_t value) {
  const char* const text = std::getenv(name);
  EXPECT_TRUE(text == nullptr || absl::SimpleAtoi(text, &value)) << name;
  return value;
}

std::string ReadWhole(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

class MutatedModelTest : public SavedModelFixture {
 protected:
  void SetUp() override {
    WriteScaleModel();
    GRADFLOW_ASSERT_OK_AND_ASSIGN(model_, ReadSavedModel(folder()));
    std::filesystem::remove(File("saved_model.pbtxt"));
    AddObjectAndAsset();
    WriteFile("saved_model.pb", model_.SerializeAsString());
    WriteFile(kAsset, kWords);
    WriteObjects(objects_);
    index_ = ReadWhole(File(kIndex));
    data_ = ReadWhole(File(kData));
    limits_.max_constant_bytes = 1 << 20;
    limits_.max_shape_bytes = 1 << 20;
    limits_.max_message_bytes = 16 << 20;
  }

  // Adds a variable that only the objects of the program name, and an init op that reads an asset
  // into a variable.
  void AddObjectAndAsset() {
    MetaGraphDef more;
    ASSERT_TRUE(
        google::protobuf::TextFormat::ParseFromString(absl::StrCat("graph_def {", kAssetNodes, R"(
  node { name: "o" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } }
         attr { key: "shape" value { shape { } } } attr { key: "shared_name" value { s: "object" } } }
  node { name: "object_value" op: "ReadVariableOp" input: "o" attr { key: "dtype" value { type: DT_FLOAT } } }
}
signature_def { key: "object" value { outputs { key: "z" value { name: "object_value:0" dtype: DT_FLOAT } } } }
signature_def { key: "text" value { outputs { key: "z" value { name: "read_text:0" dtype: DT_STRING } } } }
signature_def { key: "__saved_model_init_op" value {
  outputs { key: "__saved_model_init_op" value { name: "init" } } } }
asset_file_def { tensor_info { name: "path:0" } filename: "words.txt" }
object_graph_def { nodes { children { node_id: 1 local_name: "object" } } nodes { variable { name: "object" } } })"),
                                                      &more));
    model_.mutable_meta_graphs(0)->MergeFrom(more);
    objects_.add_nodes()->add_children()->set_node_id(1);
    objects_.mutable_nodes(0)->mutable_children(0)->set_local_name("object");
    auto& value = *objects_.add_nodes()->add_attributes();
    value.set_name("VARIABLE_VALUE");
    value.set_full_name("object");
    value.set_checkpoint_key("object_key");
  }

  // Writes the checkpoint with a list of objects.
  void WriteObjects(const TrackableObjectGraph& objects) {
    WriteVariables(
        {{"w_key", AsTensor<float>({2, 3}), ""},
         {"v_key", AsScalar<float>(10), ""},
         {"object_key", AsScalar<float>(4), ""},
         {"_CHECKPOINTABLE_OBJECT_GRAPH", Tensor(tstring(objects.SerializeAsString())), ""}});
  }

  // Loads the model, and calls, lists and freezes it. Returns the values of serving_default.
  absl::StatusOr<std::vector<float>> UseAll() {
    SessionOptions options;
    options.graph_limits = limits_;
    options.file_access = FileAccess::None();
    options.tensor_memory_limit_bytes = 16 << 20;
    options.config.set_intra_op_parallelism_threads(1);
    options.config.set_inter_op_parallelism_threads(1);
    options.config.set_operation_timeout_in_ms(2000);
    const absl::Status status = Load(options);
    if (!status.ok()) return status;
    ModelVariables(bundle_.meta_graph_def).IgnoreError();
    std::vector<float> values;
    std::vector<std::string> names = bundle_.SignatureNames();
    // The signature "add" changes the values of the others.
    std::reverse(names.begin(), names.end());
    for (const std::string& name : names) {
      NamedTensors inputs;
      if (name == "add" || name == "serving_default") inputs = {{"x", AsTensor<float>({1, 10})}};
      const auto outputs = Call(name, inputs);
      if (!outputs.ok() || name != "serving_default" || outputs->count("y") == 0) continue;
      const Tensor& y = outputs->at("y");
      if (y.dtype() != DT_FLOAT) continue;
      values.assign(y.span<float>().begin(), y.span<float>().end());
    }
    FreezeGraphOptions freeze;
    freeze.limits = limits_;
    FreezeGraph(bundle_.meta_graph_def.graph_def(), {"scale_call"}, bundle_.session.get(), freeze)
        .IgnoreError();
    return values;
  }

  static constexpr char kIndex[] = "variables/variables.index";
  static constexpr char kData[] = "variables/variables.data-00000-of-00001";
  static constexpr char kAsset[] = "assets/words.txt";
  static constexpr char kWords[] = "red\ngreen\n";

  SavedModel model_;
  TrackableObjectGraph objects_;
  std::string index_;
  std::string data_;
  GraphLimits limits_;
};

TEST_F(MutatedModelTest, LoadOrFailWithAStatus) {
  const google::protobuf::LogSilencer silencer;
  const int64_t count = FromEnvironment("GRADFLOW_MUTATIONS", 200);
  MutationRandom random(static_cast<uint64_t>(FromEnvironment("GRADFLOW_MUTATION_SEED", 1)));
  int64_t loaded = 0;
  for (int64_t i = 0; i < count; ++i) {
    SavedModel model = model_;
    std::string bytes;
    std::string index = index_;
    std::string data = data_;
    std::string asset = kWords;
    bool is_text = false;
    switch (random.Below(9)) {
      case 0:
        MutateGraph(&random, model.mutable_meta_graphs(0)->mutable_graph_def());
        break;
      case 1:
      case 2:
        MutateMessage(&random, &model);
        break;
      case 3:
        bytes = model.SerializeAsString();
        MutateBytes(&random, &bytes);
        break;
      case 4:
        MutateBytes(&random, &index);
        break;
      case 5:
        MutateBytes(&random, &data);
        break;
      case 6:
        MutateBytes(&random, &asset);
        break;
      case 7: {
        // The checksums match the changed objects.
        TrackableObjectGraph objects = objects_;
        MutateMessage(&random, &objects);
        WriteObjects(objects);
        index = ReadWhole(File(kIndex));
        data = ReadWhole(File(kData));
        break;
      }
      default:
        is_text = true;
        google::protobuf::TextFormat::PrintToString(model, &bytes);
        MutateWords(&random, "node attr -1 { } : 99999999999999999999 op \"\\377\"", &bytes);
    }
    if (bytes.empty() && !is_text) bytes = model.SerializeAsString();
    std::filesystem::remove(File(is_text ? "saved_model.pb" : "saved_model.pbtxt"));
    WriteFile(is_text ? "saved_model.pbtxt" : "saved_model.pb", bytes);
    WriteFile(kIndex, index);
    WriteFile(kData, data);
    WriteFile(kAsset, asset);
    SCOPED_TRACE(i);
    loaded += UseAll().ok();
  }
  EXPECT_GT(loaded, 0);
  EXPECT_LT(loaded, count);
}

// The file of the graph has no checksum: another byte may make another valid graph.
TEST_F(MutatedModelTest, EachFlippedByteOfTheGraphLoadsOrIsAnError) {
  const google::protobuf::LogSilencer silencer;
  const std::string original = model_.SerializeAsString();
  const auto step = static_cast<size_t>(FromEnvironment("GRADFLOW_FLIP_STEP", 8));
  for (size_t i = 0; i < original.size(); i += step) {
    std::string changed = original;
    changed[i] = static_cast<char>(changed[i] ^ 0x41);
    WriteFile("saved_model.pb", changed);
    SCOPED_TRACE(i);
    UseAll().IgnoreError();
  }
  WriteFile("saved_model.pb", original);
  EXPECT_THAT(UseAll(), IsOk());
}

// The checkpoint has checksums of all its bytes.
TEST_F(MutatedModelTest, EachFlippedByteOfTheCheckpointIsAnErrorOrChangesNothing) {
  for (const auto& [name, original] : {std::pair(kIndex, &index_), std::pair(kData, &data_)}) {
    for (size_t i = 0; i < original->size(); ++i) {
      std::string changed = *original;
      changed[i] = static_cast<char>(changed[i] ^ 0x41);
      WriteFile(name, changed);
      const auto values = UseAll();
      if (values.ok()) {
        EXPECT_THAT(*values, ElementsAre(2, 30)) << name << " " << i;
      }
    }
    WriteFile(name, *original);
  }
  EXPECT_THAT(UseAll(), IsOk());
}

}  // namespace
}  // namespace gradflow
