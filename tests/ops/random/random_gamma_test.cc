
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "gradflow/testing/tensor_diff.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

OpTester Gamma(const Tensor& shape, const Tensor& alpha) {
  return OpTester("RandomGamma").Input(shape).Input(alpha).Attr("seed", int64_t{7});
}
OpTester GammaBySeed(const Tensor& shape, const Tensor& alpha) {
  return OpTester("StatelessRandomGammaV2").Input(shape).Input<int64_t>({7, 8}).Input(alpha);
}
OpTester GammaByKey(const Tensor& shape, const Tensor& alpha) {
  return OpTester("StatelessRandomGammaV3")
      .Input(shape)
      .Input<uint64_t>({7})
      .Input<uint64_t>({8, 9})
      .Input(AsScalar<int32_t>(1))
      .Input(alpha);
}

// A gamma distribution of scale 1 has mean alpha and variance alpha.
TEST(RandomGamma, HasTheMomentsOfItsDistribution) {
  const std::vector<double> alphas = {0.5, 1, 8};
  const int64_t samples = 20001;
  for (const DataType dtype : {DT_HALF, DT_FLOAT, DT_DOUBLE}) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor alpha =
        *OpTester("Cast").Input(AsTensor<double>(alphas)).Attr("DstT", dtype).RunOne();
    for (OpTester tester : {Gamma(AsTensor<int64_t>({samples}), alpha),
                            GammaBySeed(AsTensor<int64_t>({samples, 3}), alpha),
                            GammaByKey(AsTensor<int64_t>({samples, 3}), alpha)}) {
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor output, tester.RunOne());
      EXPECT_THAT(tester.RunOnThreads(7)->at(0), TensorEq(output));
      EXPECT_EQ(output.shape(), TensorShape({samples, 3}));
      const std::vector<double> values = AsDoubles(output);
      for (int a = 0; a < 3; ++a) {
        double mean = 0;
        double square = 0;
        for (int64_t s = 0; s < samples; ++s) {
          const double value = values[3 * s + a];
          ASSERT_GE(value, 0);
          mean += value / samples;
          square += value * value / samples;
        }
        EXPECT_NEAR(mean, alphas[a], 0.03 * (alphas[a] + 1));
        EXPECT_NEAR(square - mean * mean, alphas[a], 0.07 * (alphas[a] + 1));
      }
    }
  }
}

TEST(RandomGamma, RejectsBadArguments) {
  const Tensor alpha = AsTensor<float>({1, 2});
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {Gamma(AsScalar<int32_t>(2), alpha),
       "Shape must be rank 1 but is rank 0: shape has shape []"},
      {Gamma(AsTensor<int32_t>({-2}), alpha), "shape: dimension -2"},
      {GammaBySeed(AsTensor<int32_t>({2, 3}), alpha),
       "shape must end with the shape of alpha, but they are [2,3] and [2]"},
      {GammaByKey(AsTensor<int32_t>({}), alpha),
       "shape must end with the shape of alpha, but they are [] and [2]"},
      {OpTester("StatelessRandomGammaV2").Input<int32_t>({2}).Input<int32_t>({1}).Input(alpha),
       "seed must have shape [2], but has shape [1]"},
      {Gamma(AsTensor<int64_t>({int64_t{1} << 62}), alpha), "more elements"},
  };
  for (auto c : cases) {
    EXPECT_THAT(c.tester.Run(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
  EXPECT_EQ(Gamma(AsTensor<int32_t>({0}), alpha).RunOne()->shape(), TensorShape({0, 2}));
  EXPECT_EQ(GammaBySeed(AsTensor<int32_t>({3, 0}), Tensor(DT_FLOAT, {0})).RunOne()->shape(),
            TensorShape({3, 0}));
}

TEST(RandomGamma, ReturnsNanForAlphasBelowMinusTwoThirds) {
  for (const DataType dtype : {DT_HALF, DT_FLOAT, DT_DOUBLE}) {
    const auto y = OpTester("StatelessRandomGammaV2")
                       .Input<int32_t>({2, 3})
                       .Input<int64_t>({1, 2})
                       .Input(FromDoubles(dtype, {3}, {-0.75, -2, kNan}))
                       .RunOne();
    EXPECT_THAT(y, TensorEq(FromDoubles(dtype, {2, 3}, std::vector<double>(6, kNan))));
  }
}

TEST(RandomGamma, RefusesAlphasOfAnotherType) {
  EXPECT_THAT(OpTester("RandomGamma")
                  .Attr("S", DT_INT32)
                  .Attr("T", DT_HALF)
                  .RunOn({AsTensor<int32_t>({4}), AsScalar<double>(1)}),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("alpha must be of type half")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
