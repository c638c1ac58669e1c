// GoogleTest matchers for absl::Status and absl::StatusOr, named as Abseil's later ones:
//
//   EXPECT_THAT(Load(path), IsOk());
//   EXPECT_THAT(Load(path), IsOkAndHolds(3));
//   EXPECT_THAT(Load(path), StatusIs(absl::StatusCode::kNotFound, HasSubstr("no file")));
//   ASSERT_OK_AND_ASSIGN(const Tensor tensor, Load(path));
#ifndef GRADFLOW_TESTS_TESTING_STATUS_MATCHERS_H_
#define GRADFLOW_TESTS_TESTING_STATUS_MATCHERS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gradflow {
namespace testing {

inline const absl::Status& GetStatus(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& GetStatus(const absl::StatusOr<T>& status_or) {
  return status_or.status();
}

MATCHER(IsOk, negation ? "is not OK" : "is OK") {
  *result_listener << "whose status is " << GetStatus(arg);
  return GetStatus(arg).ok();
}

// An OK StatusOr whose value matches.
MATCHER_P(IsOkAndHolds, value, "is OK and holds what is expected") {
  if (!arg.ok()) {
    *result_listener << "whose status is " << arg.status();
    return false;
  }
  return ::testing::ExplainMatchResult(value, *arg, result_listener);
}

MATCHER_P(StatusIs, code, absl::StatusCodeToString(code)) {
  *result_listener << "whose status is " << GetStatus(arg);
  return GetStatus(arg).code() == code;
}

// The message must be equal to `message`, or match it if that is a matcher.
MATCHER_P2(StatusIs, code, message,
           absl::StatusCodeToString(code) + " with a message that " +
               ::testing::DescribeMatcher<std::string>(message)) {
  *result_listener << "whose status is " << GetStatus(arg);
  return GetStatus(arg).code() == code &&
         ::testing::ExplainMatchResult(message, std::string(GetStatus(arg).message()),
                                       result_listener);
}

}  // namespace testing
}  // namespace gradflow

#define EXPECT_OK(expr) EXPECT_THAT(expr, ::gradflow::testing::IsOk())
#define ASSERT_OK(expr) ASSERT_THAT(expr, ::gradflow::testing::IsOk())

// Assigns the value of the StatusOr `rexpr` to `lhs`, or fails and returns from the test.
#define ASSERT_OK_AND_ASSIGN(lhs, rexpr) \
  ASSERT_OK_AND_ASSIGN_IMPL_(GRADFLOW_TEST_CONCAT_(status_or_, __LINE__), lhs, rexpr)
#define ASSERT_OK_AND_ASSIGN_IMPL_(tmp, lhs, rexpr)                \
  auto tmp = (rexpr);                                              \
  ASSERT_TRUE(tmp.ok()) << #rexpr << " returned " << tmp.status(); \
  lhs = *std::move(tmp)
#define GRADFLOW_TEST_CONCAT_(a, b) GRADFLOW_TEST_CONCAT_IMPL_(a, b)
#define GRADFLOW_TEST_CONCAT_IMPL_(a, b) a##b

#endif  // GRADFLOW_TESTS_TESTING_STATUS_MATCHERS_H_
