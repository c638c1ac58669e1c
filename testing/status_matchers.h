// GoogleTest matchers for absl::Status and absl::StatusOr, named as Abseil's later ones:
//
//   EXPECT_THAT(Load(path), IsOk());
//   EXPECT_THAT(Load(path), IsOkAndHolds(3));
//   EXPECT_THAT(Load(path), StatusIs(absl::StatusCode::kNotFound, HasSubstr("no file")));
//   GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tensor, Load(path));
#ifndef GRADFLOW_TESTING_STATUS_MATCHERS_H_
#define GRADFLOW_TESTING_STATUS_MATCHERS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gradflow {
namespace testing {

namespace internal {

inline const absl::Status& GetStatus(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& GetStatus(const absl::StatusOr<T>& status_or) {
  return status_or.status();
}

}  // namespace internal

// An OK status, or a StatusOr with a value.
MATCHER(IsOk, negation ? "is not OK" : "is OK") {
  const absl::Status& status = internal::GetStatus(arg);
  *result_listener << "whose status is " << status;
  return status.ok();
}

// A StatusOr whose value is `value`, or matches it if that is a matcher.
MATCHER_P(IsOkAndHolds, value,
          "is OK and holds a value that " +
              ::testing::DescribeMatcher<typename std::decay_t<arg_type>::value_type>(value,
                                                                                      negation)) {
  if (!arg.ok()) {
    *result_listener << "whose status is " << arg.status();
    return false;
  }
  return ::testing::ExplainMatchResult(value, *arg, result_listener);
}

// A status, or a StatusOr's, with this code.
MATCHER_P(StatusIs, code,
          std::string(negation ? "does not have" : "has") + " the code " +
              absl::StatusCodeToString(code)) {
  const absl::Status& status = internal::GetStatus(arg);
  *result_listener << "whose status is " << status;
  return status.code() == code;
}

// The same, and its message is equal to `message`, or matches it if that is a matcher.
MATCHER_P2(StatusIs, code, message,
           std::string(negation ? "does not have" : "has") + " the code " +
               absl::StatusCodeToString(code) + " with a message that " +
               ::testing::DescribeMatcher<std::string>(message)) {
  const absl::Status& status = internal::GetStatus(arg);
  *result_listener << "whose status is " << status;
  return status.code() == code &&
         ::testing::ExplainMatchResult(message, std::string(status.message()), result_listener);
}

}  // namespace testing
}  // namespace gradflow

// A Status or StatusOr is OK.
#define GRADFLOW_EXPECT_OK(expr) EXPECT_THAT(expr, ::gradflow::testing::IsOk())
#define GRADFLOW_ASSERT_OK(expr) ASSERT_THAT(expr, ::gradflow::testing::IsOk())

// Assigns the value of the StatusOr `rexpr` to `lhs`, or fails and returns from the test.
#define GRADFLOW_ASSERT_OK_AND_ASSIGN(lhs, rexpr) \
  GRADFLOW_ASSERT_OK_AND_ASSIGN_IMPL_(GRADFLOW_TEST_CONCAT_(status_or_, __LINE__), lhs, rexpr)
#define GRADFLOW_ASSERT_OK_AND_ASSIGN_IMPL_(tmp, lhs, rexpr)       \
  auto tmp = (rexpr);                                              \
  ASSERT_TRUE(tmp.ok()) << #rexpr << " returned " << tmp.status(); \
  lhs = *std::move(tmp)
#define GRADFLOW_TEST_CONCAT_(a, b) GRADFLOW_TEST_CONCAT_IMPL_(a, b)
#define GRADFLOW_TEST_CONCAT_IMPL_(a, b) a##b

#endif  // GRADFLOW_TESTING_STATUS_MATCHERS_H_
