// Tests of `gradflow test` as a process: a line for each case, exit status, and updated files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "gradflow/io/npy.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/tools/command_line_fixture.h"

namespace gradflow {
namespace testing {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Works on a copy of the cases of tests/data.
class TestCommandTest : public CommandLineFixture {
 protected:
  void SetUp() override {
    fs::copy(GRADFLOW_TEST_DATA_DIR "/golden_cases", folder(), fs::copy_options::recursive);
  }

  std::string Quant() const { return "'" + File("fake_quant_gradient") + "'"; }
  std::string Norm() const { return "'" + File("layer/batch_norm") + "'"; }
  // Changes an expected output by 1.
  void SpoilQuant() const {
    GRADFLOW_ASSERT_OK(
        WriteNpy(File("fake_quant_gradient/expected/backprop@2.npy"), AsScalar<float>(6)));
  }

  static ProcessResult Test(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "test");
    return Gradflow(std::move(arguments));
  }
};

TEST_F(TestCommandTest, PrintsALineForEachCase) {
  const ProcessResult result = Test({folder()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "ok    " + Quant() + " (3 outputs)\nok    " + Norm() + " (1 output)\n");
  EXPECT_THAT(result.err, IsEmpty());
}

TEST_F(TestCommandTest, ShowsDifferencesAndContinues) {
  SpoilQuant();
  const ProcessResult result = Test({folder()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "FAIL  " + Quant() +
                            ": backprop:2: 1 of 1 element differs: 5, expected 6 (difference 1, "
                            "2097152 ulps)\nok    " +
                            Norm() + " (1 output)\n");
  EXPECT_EQ(result.err, "FAILED_PRECONDITION: 1 of 2 cases failed\n");
}

TEST_F(TestCommandTest, TakesTolerancesFromTheCommandLine) {
  SpoilQuant();
  const std::string quant = File("fake_quant_gradient");
  EXPECT_EQ(Test({quant, "--atol", "1"}).exit_code, 0);
  EXPECT_EQ(Test({quant, "--atol", "0.9"}).exit_code, 1);
  EXPECT_EQ(Test({quant, "--rtol", "0.2"}).exit_code, 0);
  EXPECT_EQ(Test({quant, "--rtol", "0.1"}).err, "FAILED_PRECONDITION: 1 of 1 case failed\n");
  EXPECT_EQ(Test({quant, "--atol", "0.5", "--rtol", "0.1"}).exit_code, 0);
  EXPECT_EQ(Test({quant, "--ulps", "2097152"}).exit_code, 0);
  EXPECT_EQ(Test({quant, "--ulps", "2097151", "--threads", "2"}).exit_code, 1);
}

TEST_F(TestCommandTest, CountsErrorsAsFailures) {
  WriteFile(File("layer/batch_norm/graph.pbtxt"), "node {\n");
  const ProcessResult result = Test({folder()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, AllOf(StartsWith("ok    " + Quant()), HasSubstr("\nFAIL  " + Norm()),
                                HasSubstr("(INVALID_ARGUMENT)\n")));
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 2) << result.out;
  EXPECT_EQ(result.err, "FAILED_PRECONDITION: 1 of 2 cases failed\n");
}

TEST_F(TestCommandTest, UpdateWritesExpectedOutputs) {
  SpoilQuant();
  const ProcessResult result = Test({"--update", folder()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "wrote " + Quant() + " (3 outputs)\nwrote " + Norm() + " (1 output)\n");
  EXPECT_THAT(ReadNpy(File("fake_quant_gradient/expected/backprop@2.npy")),
              TensorEq(AsScalar<float>(5)));
  EXPECT_EQ(Test({folder(), "--ulps", "0"}).exit_code, 0);
}

TEST_F(TestCommandTest, FailsBeforeTheFirstCaseIfAFolderHasNoCase) {
  const ProcessResult result = Test({folder(), File("none")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, AllOf(StartsWith("NOT_FOUND: "), HasSubstr("none")));
}

TEST_F(TestCommandTest, ShowsItsUsageForWrongArguments) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {folder(), "--ulps", "-1"},
      {folder(), "--ulps", "1", "--update"},
      {folder(), "--atol", "1", "--update"},
      {folder(), "--rtol", "1", "--update"},
      {folder(), "--ulps", "1", "--rtol", "1"},
      {folder(), "--update", "--atol", "1"},
      {folder(), "--atol", "x"},
  };
  for (const std::vector<std::string>& arguments : wrong) {
    const ProcessResult result = Test(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.out, IsEmpty());
    EXPECT_THAT(result.err, HasSubstr("Usage: gradflow test"));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
