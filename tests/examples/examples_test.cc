// The README's program prints the README's output, the demo succeeds and writes its files, and
// label_image names a picture's colour.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gradflow/graph/export.h"
#include "gradflow/io/npy.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/testing/subprocess.h"

namespace gradflow {
namespace {

using ::gradflow::testing::ProcessResult;
using ::gradflow::testing::ReadFile;
using ::gradflow::testing::RunProcess;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The root of the source tree.
const char kSources[] = GRADFLOW_TEST_DATA_DIR "/../..";

TEST(Readme, ShowsTheProgramThatIsBuiltAndItsOutput) {
  const std::string readme = ReadFile(std::string(kSources) + "/README.md");
  const ProcessResult result = RunProcess({GRADFLOW_PROGRAM_gradflow_example_readme});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(readme, HasSubstr("```\n" + result.out + "```\n"));

  // The source additionally has a file comment and NOLINT comments.
  std::string source = ReadFile(std::string(kSources) + "/examples/readme/main.cc");
  source = source.substr(source.find("  Scope root"));
  source = source.substr(0, source.find("\n// Prints"));
  EXPECT_THAT(readme, HasSubstr(source));
}

TEST(QatBlock, EveryGradientAgreesWithFiniteDifferences) {
  const std::filesystem::path program = GRADFLOW_PROGRAM_gradflow_example_qat_block;
  const std::string build = program.parent_path().parent_path().parent_path();
  const std::string out = ::testing::TempDir() + "/qat_block_test";
  std::filesystem::remove_all(out);
  const ProcessResult result =
      RunProcess({"/bin/bash", std::string(kSources) + "/examples/qat_block/demo.sh", build, out});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("Every gradient agrees"));
  EXPECT_THAT(result.out, Not(HasSubstr("TOO FAR")));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor gradient, ReadNpy(out + "/per_tensor.grad_input.npy"));
  EXPECT_EQ(gradient.shape(), TensorShape({4096, 14, 14, 4}));
  EXPECT_THAT(ReadFile(out + "/qat_block.png"), StartsWith("\x89PNG"));
  EXPECT_THAT(ReadFile(out + "/qat_block.html"), StartsWith("<!doctype html>"));
}

TEST(QatBlock, NamesErrors) {
  const char* const program = GRADFLOW_PROGRAM_gradflow_example_qat_block;
  EXPECT_EQ(RunProcess({program}).exit_code, 2);
  const ProcessResult result = RunProcess({program, "prepare", ::testing::TempDir(), "/nowhere"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("/nowhere/t10k-images-idx3-ubyte.gz"));
}

// Writes a classifier of colours, colours.pb, and a picture that is mostly blue, blue.png.
void WriteColours(const std::string& dir) {
  using namespace ops;  // NOLINT
  Scope graph = Scope::NewRootScope();
  auto image = Placeholder(graph.WithOpName("image"), DT_FLOAT, Placeholder::Shape({-1, 4, 6, 3}));
  auto scores = Mean(graph, image, {1, 2});
  Softmax(graph.WithOpName("classes"), scores);
  GraphDef def;
  GRADFLOW_ASSERT_OK(graph.ToGraphDef(&def));
  GRADFLOW_ASSERT_OK(WriteGraphDef(dir + "/colours.pb", def));

  Scope scope = Scope::NewRootScope();
  Tensor picture(DT_UINT8, {8, 8, 3});
  for (int i = 0; i < 64; ++i) {
    for (int c = 0; c < 3; ++c) picture.flat<uint8_t>()(3 * i + c) = c == 2 ? 255 : 0;
  }
  auto write = WriteFile(scope, Tensor(dir + "/blue.png"), EncodePng(scope, picture));
  ClientSession session(scope);
  GRADFLOW_ASSERT_OK(session.Run({}, {}, {write.operation}, nullptr));
}

TEST(LabelImage, PrintsTheBestClasses) {
  const std::string dir = ::testing::TempDir() + "/label_image_test";
  std::filesystem::create_directories(dir);
  ASSERT_NO_FATAL_FAILURE(WriteColours(dir));
  std::ofstream(dir + "/labels.txt") << "red\ngreen\nblue\n";
  const char* const program = GRADFLOW_PROGRAM_gradflow_example_label_image;
  const ProcessResult result = RunProcess(
      {program, dir + "/colours.pb", dir + "/blue.png", "labels=" + dir + "/labels.txt"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  // e / (e + 2) and 1 / (e + 2)
  const std::string blank(40 - 23, ' ');
  EXPECT_EQ(result.out, "  0.5761  " + std::string(23, '#') + blank + "  blue\n" + "  0.2119  " +
                            std::string(8, '#') + std::string(32, ' ') + "  red\n" + "  0.2119  " +
                            std::string(8, '#') + std::string(32, ' ') + "  green\n");
}

TEST(LabelImage, NamesErrors) {
  const char* const program = GRADFLOW_PROGRAM_gradflow_example_label_image;
  EXPECT_EQ(RunProcess({program}).exit_code, 2);
  const ProcessResult option = RunProcess({program, "graph", "image", "size=0"});
  EXPECT_EQ(option.exit_code, 1);
  EXPECT_THAT(option.err, HasSubstr("bad option 'size=0'"));
  EXPECT_THAT(RunProcess({program, "/nowhere.pb", "image"}).err, HasSubstr("/nowhere.pb"));
}

}  // namespace
}  // namespace gradflow
