#include <cmath>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

OpTester Draw(const Tensor& logits, const Tensor& num_samples) {
  return OpTester("StatelessMultinomial").Input(logits).Input(num_samples).Input<int64_t>({3, 4});
}

TEST(Multinomial, DrawsByTheProbabilities) {
  const float log3 = std::log(3.0f);
  const Tensor logits = AsTensor<float>({0, log3, -kInf, 7, kNan, 7}, {2, 3});
  const Tensor samples = AsScalar<int32_t>(20001);
  for (OpTester tester :
       {Draw(logits, samples),
        OpTester("Multinomial").Input(logits).Input(samples).Attr("seed2", int64_t{9})}) {
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor output, tester.RunOne());
    int counts[2][3] = {};
    for (int64_t i = 0; i < output.NumElements(); ++i) {
      const int64_t sample = output.flat<int64_t>()(i);
      ASSERT_LT(sample, 3);
      ++counts[i / 20001][sample];
    }
    EXPECT_NEAR(counts[0][0], 5000, 300);
    EXPECT_NEAR(counts[0][1], 15000, 300);
    EXPECT_EQ(counts[0][2], 0);
    EXPECT_NEAR(counts[1][0], 10000, 300);
    EXPECT_EQ(counts[1][1], 0);
  }
}

TEST(Multinomial, HasTheSameSamplesOnAnyNumberOfThreads) {
  OpTester tester = Draw(Tensor(DT_FLOAT, {0, 2}), AsScalar<int32_t>(3));
  EXPECT_EQ(tester.RunOne()->shape(), TensorShape({0, 3}));
  OpTester large = OpTester("StatelessMultinomial")
                       .RandomInput(DT_HALF, {3001, 7})
                       .Input(AsScalar<int32_t>(13))
                       .Input<int32_t>({1, 2})
                       .Attr("output_dtype", DT_INT32);
  GRADFLOW_EXPECT_OK(large.RunEverywhere());
}

TEST(Multinomial, RejectsBadArguments) {
  const Tensor one = AsScalar<int32_t>(1);
  const Tensor logits = AsTensor<float>({1, 2}, {1, 2});
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {Draw(AsTensor<float>({1, 2}), one),
       "Shape must be rank 2 but is rank 1: logits has shape [2]"},
      {Draw(logits, AsTensor<int32_t>({1})),
       "Shape must be rank 0 but is rank 1: num_samples has shape [1]"},
      {Draw(logits, AsScalar<int32_t>(-1)), "num_samples must not be negative, but is -1"},
      {Draw(Tensor(DT_FLOAT, {2, 0}), one), "logits must have at least one column"},
      {Draw(Tensor(DT_FLOAT, {int64_t{1} << 40, 0}), one), "logits must have at most 2147483647"},
      {OpTester("StatelessMultinomial").Input(logits).Input(one).Input<int32_t>({1}),
       "seed must have shape [2], but has shape [1]"},
  };
  for (auto c : cases) {
    EXPECT_THAT(c.tester.Run(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
  EXPECT_THAT(OpTester("Multinomial").Input<int32_t>({1, 2}, {1, 2}).Input(one).MakeKernel(),
              StatusIs(absl::StatusCode::kUnimplemented));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
