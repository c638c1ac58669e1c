#include <limits>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

absl::Status Check(const Tensor& tensor) {
  return OpTester("CheckNumerics").Input(tensor).Attr("message", "loss").Run().status();
}

template <typename T>
class CheckNumericsTest : public ::testing::Test {};
using Types = ::testing::Types<float, double, half, bfloat16>;
TYPED_TEST_SUITE(CheckNumericsTest, Types);

TYPED_TEST(CheckNumericsTest, ReturnsFiniteTensorsUnchanged) {
  using Limits = std::numeric_limits<TypeParam>;
  const Tensor finite =
      AsTensor<TypeParam>({static_cast<typename Literal<TypeParam>::type>(Limits::max()),
                           static_cast<typename Literal<TypeParam>::type>(Limits::lowest()), 0,
                           -0.f, static_cast<typename Literal<TypeParam>::type>(Limits::min())});
  for (const Tensor& tensor :
       {finite, AsTensor<TypeParam>({}, {0, 3}), AsScalar<TypeParam>(1), Iota<TypeParam>({300})}) {
    EXPECT_THAT(OpTester("CheckNumerics").Input(tensor).Attr("message", "").RunOne(),
                TensorEq(tensor));
  }
}

TYPED_TEST(CheckNumericsTest, ReportsNanAndInfinity) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(Check(AsTensor<TypeParam>({1, nan})),
              StatusIs(kInvalidArgument, "loss : Tensor had NaN values"));
  EXPECT_THAT(Check(AsTensor<TypeParam>({inf, 1})),
              StatusIs(kInvalidArgument, "loss : Tensor had Inf values"));
  EXPECT_THAT(Check(AsTensor<TypeParam>({-inf, 1})),
              StatusIs(kInvalidArgument, "loss : Tensor had Inf values"));
  EXPECT_THAT(Check(AsTensor<TypeParam>({nan, 1, -inf})),
              StatusIs(kInvalidArgument, "loss : Tensor had Inf and NaN values"));
}

TEST(CheckNumerics, EscapesAMessageThatIsNotPrintable) {
  EXPECT_THAT(OpTester("CheckNumerics")
                  .Input(AsTensor<float>({std::numeric_limits<float>::quiet_NaN()}))
                  .Attr("message",
                        "b\x01\xe4"
                        "z")
                  .Run(),
              StatusIs(kInvalidArgument, "b\\x01\\xe4z : Tensor had NaN values"));
}

TEST(CheckNumerics, FindsOneBadNumberInALargeTensor) {
  Tensor large = Iota<float>({1000, 300});
  large.flat<float>()(250001) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(Check(large), StatusIs(kInvalidArgument, "loss : Tensor had NaN values"));
}

TEST(CheckNumericsV2, ReportsTheSignsOfInfinities) {
  const auto check = [](const Tensor& tensor) {
    return OpTester("CheckNumericsV2").Input(tensor).Attr("message", "m").Run();
  };
  const struct {
    std::vector<float> values;
    const char* error;
  } cases[] = {
      {{1, kNan, kInf, -kInf}, "m : Tensor had -Inf, +Inf, and NaN values"},
      {{kInf, -kInf}, "m : Tensor had -Inf and +Inf values"},
      {{kNan, kInf}, "m : Tensor had +Inf and NaN values"},
      {{-kInf}, "m : Tensor had -Inf values"},
      {{kNan}, "m : Tensor had NaN values"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(check(AsTensor<float>(c.values)), StatusIs(kInvalidArgument, c.error));
    EXPECT_THAT(check(AsTensor<half>(c.values)), StatusIs(kInvalidArgument, c.error));
  }
  GRADFLOW_EXPECT_OK(check(AsTensor<double>({1, 2})));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
