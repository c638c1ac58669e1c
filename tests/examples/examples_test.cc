// The README's program prints the README's output, and the demo succeeds and writes its files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "gradflow/io/npy.h"
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

}  // namespace
}  // namespace gradflow
