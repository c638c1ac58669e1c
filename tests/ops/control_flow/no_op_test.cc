#include "gradflow/testing/kernel_test.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(NoOp, DoesNothing) { EXPECT_THAT(OpTester("NoOp").Run(), IsOkAndHolds(IsEmpty())); }

TEST(NoOp, TakesNoInput) {
  EXPECT_THAT(OpTester("NoOp").Input(AsScalar<float>(1)).Run(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("input")));
}

TEST(ControlTrigger, DoesNothing) {
  EXPECT_THAT(OpTester("ControlTrigger").Run(), IsOkAndHolds(IsEmpty()));
}

TEST(Abort, IsAnError) {
  EXPECT_THAT(OpTester("Abort").Attr("error_msg", "why\n").Run(),
              StatusIs(absl::StatusCode::kAborted, "Abort_op intentional failure; why\\x0a"));
  EXPECT_THAT(OpTester("Abort").Attr("exit_without_error", true).Run(),
              StatusIs(absl::StatusCode::kAborted, "Exit_op intentional exit"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
