// Tests of writing SavedModels. tests/interop/saved_models.py loads such models with TensorFlow.
#include "gradflow/saved_model/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/saved_model/model_fixture.h"

namespace gradflow {
namespace {

namespace fs = std::filesystem;

using ::gradflow::testing::AsScalar;
using ::gradflow::testing::AsTensor;
using ::gradflow::testing::IsOk;
using ::gradflow::testing::SavedModelFixture;
using ::gradflow::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> Values(const Tensor& tensor) {
  const auto span = tensor.span<float>();
  return std::vector<float>(span.begin(), span.end());
}

// A graph with y = w * x, a variable of each kind, and a session that has initialized them.
class SavedModelBuilderTest : public SavedModelFixture {
 protected:
  SavedModelBuilderTest() {
    x_ = ops::Placeholder(root_.WithOpName("x"), DT_FLOAT, ops::Placeholder::Shape({-1, 2}));
    w_ = ops::VarHandleOp(root_.WithOpName("w"), DT_FLOAT, TensorShape({2}));
    b_ = ops::Variable(root_.WithOpName("b"), TensorShape({}), DT_FLOAT);
    const Output read = ops::ReadVariableOp(root_, w_, DT_FLOAT);
    y_ = ops::Add(root_.WithOpName("y"), ops::Mul(root_, x_, read), b_);
    session_ = std::make_unique<ClientSession>(root_);
  }

  void Initialize() {
    const ops::AssignVariableOp assign_w(root_, w_, Input(AsTensor<float>({2, 3})));
    const Output assign_b = ops::Assign(root_, b_, 0.5f);
    std::vector<Tensor> outputs;
    ASSERT_THAT(session_->Run({}, {assign_b}, {assign_w.operation}, &outputs), IsOk());
  }

  std::vector<NewSignature> Signatures() const {
    return {{"serving_default", {{"in", x_}}, {{"out", y_}}}};
  }
  std::string Target() const { return File("made/model"); }

  // Loads a model and calls its signature "serving_default" with [[1, 10]].
  absl::StatusOr<NamedTensors> CallModel(const std::string& folder, const std::string& input) {
    const absl::Status status =
        LoadSavedModel(SessionOptions(), RunOptions(), folder, {"serve"}, &bundle_);
    if (!status.ok()) return status;
    return Call("serving_default", {{input, AsTensor<float>({1, 10}, {1, 2})}});
  }

  Scope root_ = Scope::NewRootScope();
  Output x_, w_, b_, y_;
  std::unique_ptr<ClientSession> session_;
};

TEST_F(SavedModelBuilderTest, WritesModelsThatLoad) {
  Initialize();
  SavedModelBuilder builder(Target());
  ASSERT_THAT(builder.AddGraph(root_, session_->resources(), {"serve"}, Signatures()), IsOk());
  ASSERT_THAT(builder.Save(), IsOk());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const NamedTensors outputs, CallModel(Target(), "in"));
  EXPECT_THAT(Values(outputs.at("out")), ElementsAre(2.5f, 30.5f));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Signature signature, bundle_.signature("serving_default"));
  EXPECT_EQ(signature.inputs()[0].shape, PartialTensorShape({-1, 2}));
  // The saver's nodes also work if they run, as in TensorFlow.
  ASSERT_THAT(bundle_.session->Run({{"saver/filename", Tensor(tstring(File("again")))}},
                                   {"saver/saved:0"}, {}, nullptr),
              IsOk());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Checkpoint again, Checkpoint::Open(File("again")));
  EXPECT_THAT(again.Names(), ElementsAre("b", "w"));
}

TEST_F(SavedModelBuilderTest, WritesInitOpsAssetsAndSeveralGraphs) {
  Initialize();
  WriteFile("words.txt", "red\n");
  const Output path = ops::Const(root_.WithOpName("path"), "unknown");
  const Output text = ops::VarHandleOp(root_.WithOpName("text"), DT_STRING, TensorShape({}));
  const ops::AssignVariableOp init(root_.WithOpName("init"), text, ops::ReadFile(root_, path));
  const Output read = ops::ReadVariableOp(root_, text, DT_STRING);
  ASSERT_THAT(session_->Run({{path, File("words.txt")}}, {}, {init.operation}, nullptr), IsOk());
  SavedModelBuilder builder(Target());
  NewGraphOptions options;
  options.init_op = init.operation;
  options.assets = {{path, File("words.txt")}};
  ASSERT_THAT(builder.AddGraph(root_, session_->resources(), {"serve"},
                               {{"words", {}, {{"text", read}}}}, options),
              IsOk());
  ASSERT_THAT(builder.AddGraph(root_, session_->resources(), {"train", "gpu"}, Signatures()),
              IsOk());
  EXPECT_THAT(builder.AddGraph(root_, session_->resources(), {"gpu", "train"}, Signatures()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("these tags")));
  ASSERT_THAT(builder.Save(), IsOk());
  fs::remove(File("words.txt"));
  ASSERT_THAT(LoadSavedModel(SessionOptions(), RunOptions(), Target(), {"serve"}, &bundle_),
              IsOk());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const NamedTensors outputs, Call("words", {}));
  EXPECT_EQ(outputs.at("text").scalar<tstring>()(), "red\n");
  ASSERT_THAT(LoadSavedModel(SessionOptions(), RunOptions(), Target(), {"train", "gpu"}, &bundle_),
              IsOk());
}

TEST_F(SavedModelBuilderTest, KeepsVariablesOfDifferentContainersApart) {
  const auto in_container = ops::VarHandleOp::Container("other").SharedName("w");
  const Output other = ops::VarHandleOp(root_, DT_FLOAT, TensorShape({2}), in_container);
  const Output alias = ops::VarHandleOp(root_.WithOpName("alias"), DT_FLOAT, TensorShape({2}),
                                        ops::VarHandleOp::SharedName("w"));
  y_ = ops::Add(root_.WithOpName("sum"), y_, ops::ReadVariableOp(root_, other, DT_FLOAT));
  y_ = ops::Add(root_.WithOpName("sums"), y_, ops::ReadVariableOp(root_, alias, DT_FLOAT));
  Initialize();
  const ops::AssignVariableOp assign(root_, other, Input(AsTensor<float>({100, 200})));
  ASSERT_THAT(session_->Run({}, {}, {assign.operation}, nullptr), IsOk());
  SavedModelBuilder builder(Target());
  ASSERT_THAT(builder.AddGraph(root_, session_->resources(), {"serve"}, Signatures()), IsOk());
  ASSERT_THAT(builder.Save(), IsOk());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const NamedTensors outputs, CallModel(Target(), "in"));
  EXPECT_THAT(Values(outputs.at("out")), ElementsAre(104.5f, 233.5f));
  // Each variable is saved once.
  ASSERT_THAT(bundle_.session->Run({{"saver/filename", Tensor(tstring(File("again")))}},
                                   {"saver/saved:0"}, {}, nullptr),
              IsOk());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Checkpoint again, Checkpoint::Open(File("again")));
  EXPECT_THAT(again.Names(), ElementsAre("b", "other/w", "w"));

  const Output clash =
      ops::VarHandleOp(root_, DT_FLOAT, TensorShape({2}), ops::VarHandleOp::SharedName("other/w"));
  const ops::AssignVariableOp assign_clash(root_, clash, Input(AsTensor<float>({1, 2})));
  ASSERT_THAT(session_->Run({}, {}, {assign_clash.operation}, nullptr), IsOk());
  SavedModelBuilder second(Target());
  EXPECT_THAT(second.AddGraph(root_, session_->resources(), {"serve"}, Signatures()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("two variables would have the name 'other/w'")));
}

TEST_F(SavedModelBuilderTest, WritesALoadedModelWithItsNewValues) {
  WriteScaleModel();
  ASSERT_THAT(Load(), IsOk());
  ASSERT_THAT(Call("add", {{"x", AsTensor<float>({1, 1})}}), IsOk());
  SavedModelBuilder builder(Target());
  ASSERT_THAT(builder.AddModel(folder(), bundle_.meta_graph_def, bundle_.session->resources()),
              IsOk());
  ASSERT_THAT(builder.Save(), IsOk());
  ASSERT_THAT(LoadSavedModel(SessionOptions(), RunOptions(), Target(), {"serve"}, &bundle_),
              IsOk());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const NamedTensors outputs,
                                Call("serving_default", {{"x", AsTensor<float>({1, 10})}}));
  EXPECT_THAT(Values(outputs.at("y")), ElementsAre(3, 40));
}

TEST_F(SavedModelBuilderTest, ReplacesModelsOnlyIfAsked) {
  Initialize();
  SavedModelBuilder builder(Target());
  EXPECT_THAT(builder.Save(), StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_THAT(builder.AddGraph(root_, session_->resources(), {"serve"}, Signatures()), IsOk());
  ASSERT_THAT(builder.Save(), IsOk());
  EXPECT_THAT(builder.Save(),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr(Target() + "': ")));
  WriteFile("made/model/old.txt", "old");
  ASSERT_THAT(builder.Save(/*replace=*/true), IsOk());
  EXPECT_FALSE(fs::exists(File("made/model/old.txt")));
  // The folder holds the model and no temporary files.
  EXPECT_EQ(std::distance(fs::directory_iterator(File("made")), {}), 1);
  WriteFile("other/notes.txt", "mine");
  SavedModelBuilder other(File("other"));
  ASSERT_THAT(other.AddGraph(root_, session_->resources(), {"serve"}, Signatures()), IsOk());
  EXPECT_THAT(other.Save(/*replace=*/true),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("only a folder with a SavedModel can be replaced")));
  EXPECT_TRUE(fs::exists(File("other/notes.txt")));
}

TEST_F(SavedModelBuilderTest, ErrorsLeaveTheBuilderUnchanged) {
  SavedModelBuilder builder(Target());
  EXPECT_THAT(builder.AddGraph(root_, session_->resources(), {"serve"}, Signatures()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("variable 'w' has not been initialized")));
  Initialize();
  EXPECT_THAT(builder.AddGraph(root_, session_->resources(), {"serve"},
                               {{"s", {{"in", Output()}}, {{"out", y_}}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("signature 's', 'in': expected an output of a node")));
  EXPECT_THAT(builder.AddGraph(root_, session_->resources(), {"serve"}, Signatures()), IsOk());
}

}  // namespace
}  // namespace gradflow
