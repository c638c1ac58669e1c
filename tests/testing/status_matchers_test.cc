// Tests of the matchers for statuses: accepted values and messages.
#include "gradflow/testing/status_matchers.h"

#include <gtest/gtest-spi.h>

#include <string>

namespace gradflow {
namespace testing {
namespace {

using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Not;

const absl::Status& NotFound() {
  static const auto* const status = new absl::Status(absl::NotFoundError("no node 'x'"));
  return *status;
}

absl::StatusOr<int> Three() { return 3; }
absl::StatusOr<int> NoNumber() { return NotFound(); }

TEST(IsOk, AcceptsStatusAndStatusOr) {
  EXPECT_THAT(absl::OkStatus(), IsOk());
  EXPECT_THAT(NotFound(), Not(IsOk()));
  EXPECT_THAT(Three(), IsOk());
  EXPECT_THAT(NoNumber(), Not(IsOk()));
  GRADFLOW_EXPECT_OK(Three());
  GRADFLOW_ASSERT_OK(Three());
  EXPECT_NONFATAL_FAILURE(GRADFLOW_EXPECT_OK(NotFound()),
                          "Value of: NotFound()\n"
                          "Expected: is OK\n"
                          "  Actual: NOT_FOUND: no node 'x'");
}

TEST(IsOkAndHolds, AcceptsAValueOrAMatcher) {
  EXPECT_THAT(Three(), IsOkAndHolds(3));
  EXPECT_THAT(Three(), IsOkAndHolds(Gt(2)));
  EXPECT_THAT(Three(), Not(IsOkAndHolds(4)));
  EXPECT_NONFATAL_FAILURE(EXPECT_THAT(Three(), IsOkAndHolds(Gt(4))),
                          "Expected: is OK and holds a value that is > 4");
  EXPECT_NONFATAL_FAILURE(EXPECT_THAT(NoNumber(), IsOkAndHolds(3)),
                          "whose status is NOT_FOUND: no node 'x'");
}

TEST(StatusIs, ShowsTheCodeAndTheMessage) {
  EXPECT_THAT(NotFound(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(NotFound(), StatusIs(absl::StatusCode::kNotFound, "no node 'x'"));
  EXPECT_THAT(NoNumber(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("'x'")));
  EXPECT_NONFATAL_FAILURE(EXPECT_THAT(NotFound(), StatusIs(absl::StatusCode::kInternal)),
                          "Expected: has the code INTERNAL\n"
                          "  Actual: NOT_FOUND: no node 'x'");
  EXPECT_NONFATAL_FAILURE(
      EXPECT_THAT(NotFound(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("'y'"))),
      "Expected: has the code NOT_FOUND with a message that has substring \"'y'\"\n"
      "  Actual: NOT_FOUND: no node 'x'");
}

TEST(AssertOkAndAssign, MovesTheValueOut) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const int three, Three());
  EXPECT_EQ(three, 3);
  EXPECT_FATAL_FAILURE(
      {
        GRADFLOW_ASSERT_OK_AND_ASSIGN(const int number, NoNumber());
        (void)number;
      },
      "NoNumber() returned NOT_FOUND: no node 'x'");
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
