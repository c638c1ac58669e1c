// Tests that the README's program prints the README's output, that the demos succeed and write
// their files, and that label_image names the color of a picture.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/import.h"
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

  // The source also has a file comment and NOLINT comments.
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

// Returns the arguments of a short training, which ends after 30 steps.
std::vector<std::string> TrainingOf(const std::string& dir) {
  return {GRADFLOW_PROGRAM_gradflow_example_qat_fashion_mnist,
          dir,
          "steps=30",
          "batch=16",
          "checkpoint=5",
          "test=1000",
          "mirror=1"};
}

std::string EmptyFolder(const std::string& name) {
  const std::string dir = ::testing::TempDir() + "/" + name;
  std::filesystem::remove_all(dir);
  return dir;
}

// Returns the bytes of all variables after the last step.
std::string LastVariables(const std::string& dir) {
  return ReadFile(dir + "/ckpt-30.data-00000-of-00001");
}

TEST(QatFashionMnist, HasTheSameBitsOnAnyThreadsAndAfterAKill) {
  const std::string whole = EmptyFolder("qat_train_whole");
  const ProcessResult result = RunProcess(TrainingOf(whole));
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("step 30 of 30, loss "));
  EXPECT_THAT(result.out, HasSubstr("Same class in float and in integers: 1000 of 1000 images"));
  EXPECT_THAT(result.out, HasSubstr("frozen, in int8"));
  EXPECT_THAT(result.out, HasSubstr("Same class in float and in int8: "));
  GRADFLOW_EXPECT_OK(ReadGraphDef(whole + "/frozen.pb").status());
  const std::string expected = LastVariables(whole);
  EXPECT_GT(expected.size(), 100000);

  for (const char* threads : {"threads=1", "threads=8"}) {
    const std::string dir = EmptyFolder("qat_train_threads");
    std::vector<std::string> arguments = TrainingOf(dir);
    arguments.push_back(threads);
    EXPECT_EQ(RunProcess(arguments).exit_code, 0);
    EXPECT_TRUE(LastVariables(dir) == expected) << threads;
  }

  // Kills the training two steps after a checkpoint, and then continues it.
  const std::string dir = EmptyFolder("qat_train_killed");
  const std::vector<std::string> arguments = TrainingOf(dir);
  std::vector<std::string> killed = arguments;
  killed.push_back("kill=12");
  EXPECT_EQ(RunProcess(killed).exit_code, -1);
  EXPECT_FALSE(std::filesystem::exists(dir + "/ckpt-15.index"));
  const ProcessResult resumed = RunProcess(arguments);
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("Continuing after step 10\n"));
  EXPECT_TRUE(LastVariables(dir) == expected);
}

// Writes an IDX file whose bytes repeat with a period.
void WriteIdx(const std::string& path, const std::vector<unsigned char>& dims, int64_t period) {
  int64_t count = 1;
  std::string bytes("\0\0\x8", 3);
  bytes.push_back(static_cast<char>(dims.size()));
  for (const unsigned char dim : dims) {
    bytes.append(3, '\0');
    bytes.push_back(static_cast<char>(dim));
    count *= dim;
  }
  for (int64_t i = 0; i < count; ++i) bytes.push_back(static_cast<char>(i % period));
  ::gradflow::testing::WriteFile(path, bytes);
}

// The recorded epochs do not depend on a stop within an epoch.
TEST(QatFashionMnist, ContinuesItsHistory) {
  const std::string data = EmptyFolder("qat_train_data");
  std::filesystem::create_directories(data);
  for (const std::string kind : {"train", "t10k"}) {
    WriteIdx(absl::StrCat(data, "/", kind, "-images-idx3-ubyte.gz"), {160, 28, 28}, 251);
    WriteIdx(absl::StrCat(data, "/", kind, "-labels-idx1-ubyte.gz"), {160}, 10);
  }
  // An epoch has ten steps.
  const auto arguments = [&](const std::string& dir) -> std::vector<std::string> {
    return {GRADFLOW_PROGRAM_gradflow_example_qat_fashion_mnist,
            dir,
            "epochs=3",
            "batch=16",
            "checkpoint=4",
            "test=100",
            "data=" + data};
  };
  const std::string whole = EmptyFolder("qat_train_history");
  ASSERT_EQ(RunProcess(arguments(whole)).exit_code, 0);
  const std::string history = ReadFile(whole + "/history.txt");
  EXPECT_EQ(std::count(history.begin(), history.end(), '\n'), 3);

  const std::string dir = EmptyFolder("qat_train_history_killed");
  std::vector<std::string> killed = arguments(dir);
  killed.push_back("kill=17");
  EXPECT_EQ(RunProcess(killed).exit_code, -1);
  const ProcessResult resumed = RunProcess(arguments(dir));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("Continuing after step 16\n"));
  EXPECT_EQ(ReadFile(dir + "/history.txt"), history);
  EXPECT_EQ(ReadFile(dir + "/training.png"), ReadFile(whole + "/training.png"));
}

TEST(QatFashionMnist, TrainsInFloatAndNamesErrors) {
  const char* const program = GRADFLOW_PROGRAM_gradflow_example_qat_fashion_mnist;
  EXPECT_EQ(RunProcess({program}).exit_code, 2);
  const std::string dir = EmptyFolder("qat_train_errors");
  EXPECT_THAT(RunProcess({program, dir, "steps=-1"}).err, HasSubstr("bad option 'steps=-1'"));
  EXPECT_THAT(RunProcess({program, dir, "rat=1"}).err, HasSubstr("bad option 'rat=1'"));
  const ProcessResult missing = RunProcess({program, dir, "data=/nowhere"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr("/nowhere/train-images-idx3-ubyte.gz"));
  const ProcessResult result =
      RunProcess({program, dir, "steps=2", "batch=8", "quantize=0", "test=100"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("Test accuracy "));
  EXPECT_THAT(result.out, Not(HasSubstr("integers")));
}

// Writes colors.pb, a classifier of colors, and blue.png, a picture that is mostly blue.
void WriteColors(const std::string& dir) {
  using namespace ops;  // NOLINT
  Scope graph = Scope::NewRootScope();
  auto image = Placeholder(graph.WithOpName("image"), DT_FLOAT, Placeholder::Shape({-1, 4, 6, 3}));
  auto scores = Mean(graph, image, {1, 2});
  Softmax(graph.WithOpName("classes"), scores);
  GraphDef def;
  GRADFLOW_ASSERT_OK(graph.ToGraphDef(&def));
  GRADFLOW_ASSERT_OK(WriteGraphDef(dir + "/colors.pb", def));

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
  ASSERT_NO_FATAL_FAILURE(WriteColors(dir));
  std::ofstream(dir + "/labels.txt") << "red\ngreen\nblue\n";
  const char* const program = GRADFLOW_PROGRAM_gradflow_example_label_image;
  const ProcessResult result =
      RunProcess({program, dir + "/colors.pb", dir + "/blue.png", "labels=" + dir + "/labels.txt"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  // The probabilities are e / (e + 2) and 1 / (e + 2).
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
