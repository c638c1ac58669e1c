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

}  // namespace
}  // namespace testing
}  // namespace gradflow
