// GoogleTest matchers for absl::Status and absl::StatusOr, named like the matchers in later
// versions of Abseil:
//
//   EXPECT_THAT(Load(path), IsOk());
//   EXPECT_THAT(Load(path), IsOkAndHolds(3));
//   EXPECT_THAT(Load(path), StatusIs(absl::StatusCode::kNotFound, HasSubstr("no file")));
//   GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tensor, Load(path));
#ifndef GRADFLOW_TESTING_STATUS_MATCHERS_H_
#define GRADFLOW_TESTING_STATUS_MATCHERS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gradflow {
namespace testing {

// The matcher of IsOk and StatusIs. It is not a template, to save compile time in every test.
class StatusMatcher {
 public:
  // Required by GoogleTest.
  using is_gtest_matcher = void;

  // Called by the functions below.
  explicit StatusMatcher(absl::StatusCode code) : code_(code) {}
  StatusMatcher(absl::StatusCode code, ::testing::Matcher<const std::string&> message)
      : code_(code), message_(std::move(message)) {}
  // Required by GoogleTest.
  bool MatchAndExplain(const absl::Status& status, std::ostream* os) const;
  template <typename T>
  bool MatchAndExplain(const absl::StatusOr<T>& status_or, std::ostream* os) const {
    return MatchAndExplain(status_or.status(), os);
  }
  void DescribeTo(std::ostream* os) const { Describe("is", "has", os); }
  void DescribeNegationTo(std::ostream* os) const { Describe("is not", "does not have", os); }

 private:
  void Describe(const char* is, const char* has, std::ostream* os) const;

  absl::StatusCode code_;
  std::optional<::testing::Matcher<const std::string&>> message_;
};

// Matches an OK Status, or a StatusOr with a value.
inline StatusMatcher IsOk() { return StatusMatcher(absl::StatusCode::kOk); }
// Matches a Status or StatusOr with code `code`.
inline StatusMatcher StatusIs(absl::StatusCode code) { return StatusMatcher(code); }
// Matches a Status or StatusOr with code `code` and a message that equals or matches `message`.
inline StatusMatcher StatusIs(absl::StatusCode code,
                              ::testing::Matcher<const std::string&> message) {
  return StatusMatcher(code, std::move(message));
}

// Matches a StatusOr whose value equals or matches `value`.
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

}  // namespace testing
}  // namespace gradflow

// Expect (assert) that a Status or StatusOr is OK.
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
