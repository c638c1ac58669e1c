// A helper for the tests of several ops: expected errors.
#ifndef GRADFLOW_TESTS_OPS_COMMON_ERROR_CASE_H_
#define GRADFLOW_TESTS_OPS_COMMON_ERROR_CASE_H_

#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {

// The argument or the advisory that the case tests, the op, and the expected message.
struct ErrorCase {
  const char* what;
  OpTester tester;
  const char* error;
};

// Expects these errors both from running the ops and from shape inference.
inline void ExpectErrors(std::vector<ErrorCase> cases) {
  for (ErrorCase& c : cases) {
    SCOPED_TRACE(c.what);
    EXPECT_THAT(c.tester.Run(), StatusIs(kInvalidArgument, ::testing::HasSubstr(c.error)));
    EXPECT_THAT(c.tester.InferShapes(), StatusIs(kInvalidArgument, ::testing::HasSubstr(c.error)));
  }
}

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTS_OPS_COMMON_ERROR_CASE_H_
