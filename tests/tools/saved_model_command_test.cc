// Tests of commands on SavedModels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/io/checkpoint.h"
#include "gradflow/io/npy.h"
#include "gradflow/proto/fingerprint.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/saved_model/model_fixture.h"
#include "tests/tools/command_line_fixture.h"

namespace gradflow {
namespace {

using ::gradflow::testing::AsScalar;
using ::gradflow::testing::AsTensor;
using ::gradflow::testing::IsOk;
using ::gradflow::testing::ProcessResult;
using ::gradflow::testing::ScaleModelText;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class SavedModelCommandTest : public testing::CommandLineFixture {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(Model());
    std::ofstream(Model() + "/saved_model.pbtxt") << ScaleModelText();
    ASSERT_THAT(
        WriteCheckpoint(Model() + "/variables/variables", {{"w_key", AsTensor<float>({2, 3}), ""},
                                                           {"v_key", AsScalar<float>(10), ""}}),
        IsOk());
    ASSERT_THAT(WriteNpy(File("x.npy"), AsTensor<float>({1, 10})), IsOk());
  }

  std::string Model() const { return File("model"); }
  std::string Feed() const { return "x=" + File("x.npy"); }
};

TEST_F(SavedModelCommandTest, RunUsesTheNamesOfTheSignature) {
  ProcessResult result = Gradflow({"run", Model(), "--feed", Feed()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "y: Tensor<type: float shape: [2] values: 2 30>\n");
  result = Gradflow({"run", Model(), "--signature", "add", "--feed", Feed(), "--fetch",
                     "total=" + File("total.npy"), "--tag", "serve"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor total, ReadNpy(File("total.npy")));
  EXPECT_EQ(total.flat<float>()(1), 13);
  // Tensor names of the graph are allowed as well.
  result = Gradflow({"run", Model(), "--feed", "x:0=" + File("x.npy"), "--fetch", "read_v"});
  EXPECT_EQ(result.out, "read_v: Tensor<type: float shape: [] values: 10>\n") << result.err;
}

TEST_F(SavedModelCommandTest, RunFeedsDefaultsAndNamesMissingInputs) {
  const ProcessResult result = Gradflow({"run", Model(), "--signature", "defaults"});
  EXPECT_EQ(result.out, "z: Tensor<type: float shape: [] values: 15>\n") << result.err;
  ExpectFailure(Gradflow({"run", Model()}), "INVALID_ARGUMENT",
                HasSubstr("--feed: signature 'serving_default' needs input 'x', float [2]"));
  ExpectFailure(Gradflow({"run", Model(), "--signature", "odd"}), "NOT_FOUND",
                HasSubstr("there is no signature 'odd'; the model has add, defaults, "
                          "serving_default"));
  ExpectFailure(Gradflow({"run", Model(), "--tag", "gpu"}), "NOT_FOUND",
                HasSubstr("no graph of the SavedModel has the tags {'gpu'}; it has {'serve'}"));
}

TEST_F(SavedModelCommandTest, InspectPrintsTheFingerprint) {
  FingerprintDef fingerprint;
  fingerprint.set_saved_model_checksum(12345678901234567890u);
  fingerprint.set_uuid("odd\nname");
  std::ofstream(Model() + "/fingerprint.pb") << fingerprint.SerializeAsString();
  const ProcessResult result = Gradflow({"inspect", Model()});
  EXPECT_THAT(result.out,
              HasSubstr("fingerprint: checksum 12345678901234567890, UUID odd\\x0aname\n"))
      << result.err;
  std::ofstream(Model() + "/fingerprint.pb") << "text";
  ExpectFailure(Gradflow({"inspect", Model()}), "INVALID_ARGUMENT",
                HasSubstr("expected a FingerprintDef"));
}

TEST_F(SavedModelCommandTest, InspectReadsNoVariablesOutOfTheFolder) {
  const std::string index = Model() + "/variables/variables.index";
  std::filesystem::rename(index, File("other.index"));
  std::filesystem::create_symlink(File("other.index"), index);
  ExpectFailure(Gradflow({"inspect", Model()}), "PERMISSION_DENIED",
                HasSubstr("the files of a SavedModel must be inside its folder"));
}

TEST_F(SavedModelCommandTest, InspectPrintsSignaturesAndVariables) {
  const ProcessResult result = Gradflow({"inspect", Model()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("graphs: 1\n  tags serve\nsignatures:\n  add  \n"),
                    HasSubstr("  serving_default  tensorflow/serving/predict\n    inputs:\n"
                              "      x  float [2]  x:0\n    outputs:\n"
                              "      y  float [2]  scale_call:0\n"),
                    HasSubstr("      n  float []  n:0  (optional)\n"),
                    HasSubstr("variables: 2\n  the_w  float [2]  w_key\n  v  float []  v_key\n"),
                    HasSubstr("functions: 3\n"), Not(HasSubstr("cannot run"))));
}

TEST_F(SavedModelCommandTest, InspectNamesTheSignaturesThatLackOps) {
  std::string text = ScaleModelText();
  text.insert(text.find("library {"), R"(node { name: "odd" op: "OddOp" input: "x" })");
  text.insert(text.find("saver_def"), R"(signature_def { key: "odd" value {
      outputs { key: "y" value { name: "odd:0" dtype: DT_FLOAT } } } })");
  std::ofstream(Model() + "/saved_model.pbtxt") << text;
  std::filesystem::remove_all(Model() + "/variables");
  const ProcessResult result = Gradflow({"inspect", Model()});
  EXPECT_THAT(
      result.out,
      AllOf(
          HasSubstr("      y  float <unknown>  odd:0\n    needs ops that gradflow lacks: OddOp\n"),
          HasSubstr("variables: 2, without values: there is no variables/\n")))
      << result.err;
}

TEST_F(SavedModelCommandTest, FreezeWritesOneGraphOfConstants) {
  ProcessResult result = Gradflow({"freeze", Model(), "-o", File("frozen.pb")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "5 nodes, 0 functions, 1 variables\ninput x: x:0\noutput y: y\n");
  result = Gradflow({"run", File("frozen.pb"), "--feed", Feed()});
  EXPECT_EQ(result.out, "y: Tensor<type: float shape: [2] values: 2 30>\n") << result.err;
  ExpectFailure(
      Gradflow({"freeze", Model(), "--signature", "add", "-o", File("add.pb")}), "UNIMPLEMENTED",
      HasSubstr("the node uses a variable; freezing takes graphs that only read variables"));
  ExpectFailure(Gradflow({"freeze", File("frozen.pb"), "-o", File("again.pb")}), "INVALID_ARGUMENT",
                HasSubstr("freezing a graph needs a checkpoint and --outputs"));
}

TEST_F(SavedModelCommandTest, OtherCommandsTakeTheGraph) {
  EXPECT_EQ(Gradflow({"convert", Model(), File("graph.pbtxt")}).exit_code, 0);
  EXPECT_EQ(Gradflow({"inspect", File("graph.pbtxt")}).exit_code, 0);
  EXPECT_EQ(Gradflow({"view", Model(), "-o", File("page.html")}).exit_code, 0);
  EXPECT_EQ(Gradflow({"bench", Model(), "--feed", Feed(), "--repeat", "1"}).exit_code, 0);
  const ProcessResult result =
      Gradflow({"gradients", Model(), "--of", "y", "-o", File("gradients.pb"), "--check", Feed()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("x: "));
}

TEST_F(SavedModelCommandTest, ItsOptionsNeedASavedModel) {
  ASSERT_EQ(Gradflow({"convert", Model(), File("graph.pb")}).exit_code, 0);
  ExpectFailure(Gradflow({"run", File("graph.pb"), "--tag", "serve"}), "INVALID_ARGUMENT",
                HasSubstr("--tag: "));
  ExpectFailure(Gradflow({"run", File("graph.pb"), "--signature", "add"}), "INVALID_ARGUMENT",
                HasSubstr("--signature: "));
  ExpectFailure(Gradflow({"run", Model(), "--checkpoint", Model()}), "INVALID_ARGUMENT",
                HasSubstr("--checkpoint: a SavedModel has its own variables"));
}

}  // namespace
}  // namespace gradflow
