// GoldenTest: runs golden cases (see golden.h) as a parameterized GoogleTest.
//
// gradflow_add_golden_test() in CMake generates such a test. Hand-written:
//
//   TEST_P(GoldenTest, GivesWhatIsExpected) { RunAndCompare(); }
//   INSTANTIATE_TEST_SUITE_P(Accelerator, GoldenTest,
//                            ::testing::ValuesIn(GoldenCases("testdata/accelerator")),
//                            GoldenCaseName);
#ifndef GRADFLOW_TESTING_GOLDEN_TEST_H_
#define GRADFLOW_TESTING_GOLDEN_TEST_H_

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "gradflow/testing/golden.h"

namespace gradflow {
namespace testing {

// A case and the name of its test. The name is the path relative to the searched folder, with '_'
// for characters that GoogleTest does not allow, and a number if needed to make it unique.
struct GoldenCase {
  // The folder of the case.
  std::string folder;
  // The name of the test.
  std::string name;
};

// Returns the cases in a folder. If they cannot be listed, returns one case that fails with the
// reason.
std::vector<GoldenCase> GoldenCases(const std::string& folder);
// For INSTANTIATE_TEST_SUITE_P.
std::string GoldenCaseName(const ::testing::TestParamInfo<GoldenCase>& info);
void PrintTo(const GoldenCase& golden, std::ostream* os);

class GoldenTest : public ::testing::TestWithParam<GoldenCase> {
 protected:
  // Runs the case. Fails unless its outputs are as expected.
  static void RunAndCompare(const GoldenOptions& options = {});
};

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTING_GOLDEN_TEST_H_
