// Tests of the helpers for SavedModels: reading without a session, feeds, metrics.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/io/checkpoint.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tensorflow/cc/saved_model/bundle_v2.h"
#include "tensorflow/cc/saved_model/metrics.h"
#include "tensorflow/cc/saved_model/util.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"
#include "tests/testing/folder_fixture.h"

namespace tensorflow {
namespace {

using ::gradflow::testing::AsTensor;
using ::gradflow::testing::IsOk;
using ::gradflow::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;

class SavedModelV2BundleTest : public gradflow::testing::FolderFixture {
 protected:
  // A root with a variable "w" and a child that is the root again.
  SavedModelV2BundleTest() {
    SavedObjectGraph& saved = *model_.add_meta_graphs()->mutable_object_graph_def();
    AddChild("other", 2, saved.add_nodes());
    AddChild("w", 1, saved.mutable_nodes(0));
    saved.add_nodes()->mutable_variable()->set_name("w");
    AddChild("root", 0, saved.add_nodes());
    // The variable has another number here.
    AddChild("other", 1, objects_.add_nodes());
    AddChild("w", 2, objects_.mutable_nodes(0));
    AddChild("root", 0, objects_.add_nodes());
    auto& value = *objects_.add_nodes()->add_attributes();
    value.set_name("VARIABLE_VALUE");
    value.set_full_name("w");
    value.set_checkpoint_key("w_key");
  }

  template <typename Object>
  static void AddChild(const std::string& name, int id, Object* object) {
    auto& child = *object->add_children();
    child.set_local_name(name);
    child.set_node_id(id);
  }

  absl::Status Load() {
    std::ofstream(File("saved_model.pb")) << model_.SerializeAsString();
    const absl::Status written = gradflow::WriteCheckpoint(
        File("variables/variables"),
        {{"w_key", AsTensor<float>({2, 3}), ""},
         {"_CHECKPOINTABLE_OBJECT_GRAPH",
          gradflow::Tensor(gradflow::tstring(objects_.SerializeAsString())), ""}});
    return written.ok() ? SavedModelV2Bundle::Load(folder(), &bundle_) : written;
  }

  absl::StatusOr<std::vector<std::string>> Visit() {
    std::vector<std::string> visited;
    const absl::Status status = bundle_.VisitObjectsToRestore(
        [&](int id, const TrackableObjectGraph::TrackableObject& object) {
          visited.push_back(absl::StrCat(id, " ", object.attributes(0).checkpoint_key()));
          return absl::OkStatus();
        });
    if (!status.ok()) return status;
    return visited;
  }

  SavedModel model_;
  TrackableObjectGraph objects_;
  SavedModelV2Bundle bundle_;
};

TEST_F(SavedModelV2BundleTest, VisitsEachObjectWithTensorsOnce) {
  ASSERT_THAT(Load(), IsOk());
  EXPECT_THAT(*Visit(), ElementsAre("1 w_key"));
  EXPECT_EQ(bundle_.saved_object_graph().nodes(1).variable().name(), "w");
  EXPECT_EQ(bundle_.debug_info(), nullptr);
  Tensor value;
  ASSERT_THAT(bundle_.variable_reader()->Lookup("w_key", &value), IsOk());
  EXPECT_EQ(value.flat<float>()(1), 3);
}

TEST_F(SavedModelV2BundleTest, ReturnsTheErrorOfTheCallback) {
  ASSERT_THAT(Load(), IsOk());
  EXPECT_THAT(
      bundle_.VisitObjectsToRestore([](int, const auto&) { return absl::AbortedError("enough"); }),
      StatusIs(absl::StatusCode::kAborted, "enough"));
}

TEST_F(SavedModelV2BundleTest, ModelsWithoutVariablesLoad) {
  std::ofstream(File("saved_model.pb")) << model_.SerializeAsString();
  ASSERT_THAT(SavedModelV2Bundle::Load(folder(), &bundle_), IsOk());
  EXPECT_EQ(bundle_.variable_reader(), nullptr);
  EXPECT_THAT(*Visit(), ElementsAre());
}

TEST_F(SavedModelV2BundleTest, WrongObjectsAreErrors) {
  AddChild("far", 7, objects_.mutable_nodes(0));
  ASSERT_THAT(Load(), IsOk());
  EXPECT_THAT(Visit(), StatusIs(kPrecondition, HasSubstr("child 'far': there is no object of")));
  objects_.mutable_nodes(0)->mutable_children(2)->set_node_id(2);
  objects_.mutable_nodes(0)->mutable_children(1)->set_node_id(1);
  ASSERT_THAT(Load(), IsOk());
  EXPECT_THAT(Visit(), StatusIs(kPrecondition, HasSubstr("child 'far': the graph has no such")));
  objects_.clear_nodes();
  EXPECT_THAT(Load(), StatusIs(kPrecondition, HasSubstr("the checkpoint has no objects")));
  model_.add_meta_graphs();
  EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("expected one graph, found 2")));
}

TEST_F(SavedModelV2BundleTest, ReadsNoVariablesOutOfTheFolder) {
  ASSERT_THAT(Load(), IsOk());
  const std::string index = File("variables/variables.index");
  std::filesystem::remove(index);
  std::filesystem::create_symlink("/etc/hostname", index);
  EXPECT_THAT(SavedModelV2Bundle::Load(folder(), &bundle_),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(SavedModelV2BundleTest, CountsTheModelsThatAreRead) {
  FingerprintDef fingerprint;
  fingerprint.set_saved_model_checksum(uint64_t{1} << 63);
  fingerprint.set_signature_def_hash(2);
  std::ofstream(File("fingerprint.pb")) << fingerprint.SerializeAsString();
  const int64_t models = metrics::SavedModelReadCount("2").value();
  const int64_t calls = metrics::SavedModelReadApi("cc_load_bundle_v2").value();
  ASSERT_THAT(Load(), IsOk());
  EXPECT_EQ(metrics::SavedModelReadCount("2").value(), models + 1);
  EXPECT_EQ(metrics::SavedModelReadApi("cc_load_bundle_v2").value(), calls + 1);
  EXPECT_EQ(metrics::SavedModelReadPath().value(), folder());
  EXPECT_THAT(metrics::SavedModelReadFingerprint().value(),
              HasSubstr("\"saved_model_checksum\" : 9223372036854775808,"));
  EXPECT_EQ(*metrics::ParseSavedModelPathAndSingleprint(
                metrics::SavedModelReadPathAndSingleprint().value()),
            std::pair(folder(), std::string("0/2/0/0")));
  for (const char* const text : {"", "path", ":1", "path:"}) {
    EXPECT_THAT(metrics::ParseSavedModelPathAndSingleprint(text),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(GetInputValuesTest, TakesRequestsAndDefaults) {
  SignatureDef signature;
  (*signature.mutable_inputs())["x"].set_name("feed_x");
  (*signature.mutable_inputs())["y"].set_name("feed_y");
  Tensor(1).AsProtoField(&(*signature.mutable_defaults())["y"]);
  protobuf::Map<std::string, TensorProto> request;
  std::vector<std::pair<std::string, Tensor>> inputs;
  EXPECT_THAT(saved_model::GetInputValues(signature, request, inputs),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("input 'x' is missing and has no default")));
  Tensor(2).AsProtoField(&request["x"]);
  inputs.clear();
  ASSERT_THAT(saved_model::GetInputValues(signature, request, inputs), IsOk());
  std::map<std::string, int> values;
  for (const auto& [name, tensor] : inputs) values[name] = tensor.scalar<int>()();
  EXPECT_THAT(values, ElementsAre(std::pair("feed_x", 2), std::pair("feed_y", 1)));
  request["odd"] = request["x"];
  EXPECT_THAT(
      saved_model::GetInputValues(signature, request, inputs),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the signature has no input 'odd'")));
}

}  // namespace
}  // namespace tensorflow
