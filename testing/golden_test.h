// GoldenTest: golden cases (golden.h) as a parameterised GoogleTest.
//
// gradflow_add_golden_test() in CMake writes the source file of such a test. By hand:
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

// A case by its folder, named after where it is in the folder that was asked for: GoogleTest allows
// letters and digits, other characters are '_'. Where names would be the same, they get numbers.
struct GoldenCase {
  // The case, and its name as a test's.
  std::string folder;
  std::string name;
};

// The cases in a folder. If they cannot be listed, one that fails and says why.
std::vector<GoldenCase> GoldenCases(const std::string& folder);
// For INSTANTIATE_TEST_SUITE_P.
std::string GoldenCaseName(const ::testing::TestParamInfo<GoldenCase>& info);
void PrintTo(const GoldenCase& golden, std::ostream* os);

class GoldenTest : public ::testing::TestWithParam<GoldenCase> {
 protected:
  // Fails unless the case gives what it expects.
  static void RunAndCompare(const GoldenOptions& options = {});
};

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTING_GOLDEN_TEST_H_
