#include <cstring>

#include "gradflow/testing/kernel_test.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

TEST(Logical, HaveTheirTruthTables) {
  const Tensor x = AsTensor<bool>({false, true}, {2, 1});
  const Tensor y = AsTensor<bool>({false, true});
  EXPECT_THAT(OpTester("LogicalAnd").Input(x).Input(y).RunOne(),
              TensorEq(AsTensor<bool>({false, false, false, true}, {2, 2})));
  EXPECT_THAT(OpTester("LogicalOr").Input(x).Input(y).RunOne(),
              TensorEq(AsTensor<bool>({false, true, true, true}, {2, 2})));
  EXPECT_THAT(OpTester("LogicalNot").Input(y).RunOne(), TensorEq(AsTensor<bool>({true, false})));
}

// Bools in feeds and files may have bytes other than 0 and 1.
TEST(Logical, AnyByteButZeroIsTrue) {
  Tensor x(DT_BOOL, {3});
  const char bytes[] = {0, 2, static_cast<char>(0x80)};
  std::memcpy(x.raw_data(), bytes, sizeof(bytes));
  const Tensor y = AsTensor<bool>({true, true, true});
  EXPECT_THAT(OpTester("LogicalAnd").Input(x).Input(y).RunOne(),
              TensorEq(AsTensor<bool>({false, true, true})));
  EXPECT_THAT(OpTester("LogicalOr").Input(x).Input(x).RunOne(),
              TensorEq(AsTensor<bool>({false, true, true})));
  EXPECT_THAT(OpTester("LogicalNot").Input(x).RunOne(),
              TensorEq(AsTensor<bool>({true, false, false})));
}

TEST(Logical, RefusesShapesThatDoNotBroadcast) {
  for (const char* op : {"LogicalAnd", "LogicalOr"}) {
    EXPECT_THAT(OpTester(op)
                    .Input(AsTensor<bool>({true, false}))
                    .Input(AsTensor<bool>({true, false, true}))
                    .Run(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("shapes [2] and [3] cannot be broadcast together")));
  }
}

TEST(Logical, RefusesNumbers) {
  EXPECT_THAT(OpTester("LogicalNot").Input(AsTensor<int32_t>({1})).MakeKernel(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bool")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
