// Tests of RandomPoisson, RandomPoissonV2, StatelessRandomPoisson, StatelessRandomBinomial and the
// truncated normal distributions. tests/data/tensorflow_values has TensorFlow's numbers for the
// same seeds.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "gradflow/testing/tensor_diff.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

struct MeanAndVariance {
  double mean = 0;
  double variance = 0;
};

// Returns the mean and the variance of column `column` of a matrix.
MeanAndVariance MomentsOf(const Tensor& matrix, int column) {
  const std::vector<double> values = AsDoubles(matrix);
  const int64_t columns = matrix.dim_size(1);
  const double rows = static_cast<double>(matrix.dim_size(0));
  MeanAndVariance moments;
  for (size_t i = column; i < values.size(); i += columns) moments.mean += values[i] / rows;
  for (size_t i = column; i < values.size(); i += columns) {
    moments.variance += std::pow(values[i] - moments.mean, 2) / rows;
  }
  return moments;
}

OpTester Poisson(const Tensor& shape, const Tensor& rate, DataType dtype) {
  return OpTester("RandomPoissonV2")
      .Input(shape)
      .Input(rate)
      .Attr("seed", int64_t{7})
      .Attr("dtype", dtype);
}
OpTester PoissonBySeed(const Tensor& shape, const Tensor& rate, DataType dtype) {
  return OpTester("StatelessRandomPoisson")
      .Input(shape)
      .Input<int64_t>({7, 8})
      .Input(rate)
      .Attr("dtype", dtype);
}

// The mean and the variance equal the rate.
TEST(RandomPoisson, HasTheMomentsOfItsDistribution) {
  const Tensor rates = AsTensor<double>({0.5, 4, 12, 300});
  const int64_t samples = 8001;
  for (const DataType dtype : {DT_HALF, DT_FLOAT, DT_DOUBLE, DT_INT32, DT_INT64}) {
    for (OpTester tester : {Poisson(AsTensor<int32_t>({samples}), rates, dtype),
                            PoissonBySeed(AsTensor<int64_t>({samples, 4}), rates, dtype)}) {
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor output, tester.RunOne());
      EXPECT_THAT(tester.RunOnThreads(7)->at(0), TensorEq(output));
      ASSERT_EQ(output.shape(), TensorShape({samples, 4}));
      for (int i = 0; i < 4; ++i) {
        const double rate = rates.flat<double>()(i);
        const MeanAndVariance moments = MomentsOf(output, i);
        EXPECT_NEAR(moments.mean, rate, 0.05 * (rate + 1));
        EXPECT_NEAR(moments.variance, rate, 0.08 * (rate + 1));
      }
    }
  }
}

// In version 1, the output has the type of the rates.
TEST(RandomPoisson, IsVersion2OfOneType) {
  const Tensor rates = AsTensor<float>({0.5f, 20});
  const Tensor shape = AsTensor<int32_t>({3});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor expected, Poisson(shape, rates, DT_FLOAT).RunOne());
  EXPECT_THAT(OpTester("RandomPoisson").Input(shape).Input(rates).Attr("seed", int64_t{7}).RunOne(),
              TensorEq(expected));
}

TEST(RandomPoisson, HandlesSpecialRates) {
  const Tensor rates = AsTensor<double>({-3, 0, kNan, kInf, 1e30});
  const Tensor shape = AsTensor<int32_t>({5});
  EXPECT_THAT(PoissonBySeed(shape, rates, DT_INT32).RunOne(),
              TensorEq(AsTensor<int32_t>({0, 0, 0, 0, 2147483647})));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor floats,
                                PoissonBySeed(shape, rates, DT_DOUBLE).RunOne());
  EXPECT_TRUE(std::isnan(floats.flat<double>()(2)));
  EXPECT_EQ(floats.flat<double>()(3), kInf);
  EXPECT_NEAR(floats.flat<double>()(4), 1e30, 1e17);
  // The number exceeds the largest half.
  EXPECT_THAT(PoissonBySeed(AsTensor<int32_t>({1}), AsTensor<double>({1e6}), DT_HALF).RunOne(),
              TensorEq(AsTensor<half>({65504})));
  EXPECT_THAT(Poisson(AsTensor<int32_t>({0}), rates, DT_INT64).RunOne(),
              TensorEq(Tensor(DT_INT64, {0, 5})));
  EXPECT_THAT(Poisson(shape, Tensor(DT_DOUBLE, {0}), DT_INT64).RunOne(),
              TensorEq(Tensor(DT_INT64, {5, 0})));
  // The product of the dimensions before the dimension of the rates exceeds int64.
  const int64_t many = int64_t{1} << 40;
  EXPECT_THAT(
      PoissonBySeed(AsTensor<int64_t>({many, many, 0}), Tensor(DT_DOUBLE, {0}), DT_INT64).RunOne(),
      TensorEq(Tensor(DT_INT64, {many, many, 0})));
}

TEST(RandomPoisson, RejectsBadArguments) {
  const Tensor rates = AsTensor<double>({1, 2});
  EXPECT_THAT(
      PoissonBySeed(AsTensor<int32_t>({3}), rates, DT_INT32).Run(),
      StatusIs(kInvalidArgument, HasSubstr("shape must end with the shape of the parameters, "
                                           "but they are [3] and [2]")));
  EXPECT_THAT(Poisson(AsTensor<int32_t>({-1}), rates, DT_INT32).Run(),
              StatusIs(kInvalidArgument, HasSubstr("-1")));
  EXPECT_THAT(Poisson(AsTensor<int64_t>({int64_t{1} << 62}), rates, DT_INT32).Run(),
              StatusIs(kInvalidArgument, HasSubstr("more elements")));
}

OpTester Binomial(const Tensor& shape, const Tensor& counts, const Tensor& probs, DataType dtype) {
  return OpTester("StatelessRandomBinomial")
      .Input(shape)
      .Input<int64_t>({7, 8})
      .Input(counts)
      .Input(probs)
      .Attr("dtype", dtype);
}

// The mean is n p and the variance is n p (1 - p).
TEST(StatelessRandomBinomial, HasTheMomentsOfItsDistribution) {
  const Tensor counts = AsTensor<double>({10, 40, 1000});
  const Tensor probs = AsTensor<double>({0.25, 0.75, 0.9});
  const int64_t samples = 8001;
  for (const DataType dtype : {DT_HALF, DT_FLOAT, DT_DOUBLE, DT_INT32, DT_INT64}) {
    OpTester tester = Binomial(AsTensor<int32_t>({samples, 3}), counts, probs, dtype);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor output, tester.RunOne());
    EXPECT_THAT(tester.RunOnThreads(7)->at(0), TensorEq(output));
    for (int i = 0; i < 3; ++i) {
      const double n = counts.flat<double>()(i);
      const double p = probs.flat<double>()(i);
      const MeanAndVariance moments = MomentsOf(output, i);
      EXPECT_NEAR(moments.mean, n * p, 0.03 * n * p);
      EXPECT_NEAR(moments.variance, n * p * (1 - p), 0.08 * n * p * (1 - p));
    }
  }
}

TEST(StatelessRandomBinomial, BroadcastsItsParameters) {
  const Tensor shape = AsTensor<int32_t>({2, 2, 3});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const Tensor output,
      Binomial(shape, AsTensor<float>({5, 50}, {2, 1}), AsTensor<float>({0, 0.5, 1}), DT_INT32)
          .RunOne());
  for (int s = 0; s < 2; ++s) {
    EXPECT_EQ((output.tensor<int32_t, 3>()(s, 0, 0)), 0);
    EXPECT_EQ((output.tensor<int32_t, 3>()(s, 0, 2)), 5);
    EXPECT_EQ((output.tensor<int32_t, 3>()(s, 1, 2)), 50);
  }
}

TEST(StatelessRandomBinomial, HandlesSpecialParameters) {
  const Tensor counts = AsTensor<double>({-1, kNan, kInf, 10, 10, 1e300});
  const Tensor probs = AsTensor<double>({0.5, 0.5, 0.5, kNan, 7, 0.25});
  const Tensor shape = AsTensor<int32_t>({6});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor floats,
                                Binomial(shape, counts, probs, DT_DOUBLE).RunOne());
  EXPECT_EQ(floats.flat<double>()(0), 0);
  EXPECT_TRUE(std::isnan(floats.flat<double>()(1)));
  EXPECT_EQ(floats.flat<double>()(2), kInf);
  EXPECT_TRUE(std::isnan(floats.flat<double>()(3)));
  EXPECT_EQ(floats.flat<double>()(4), 10);
  EXPECT_NEAR(floats.flat<double>()(5), 2.5e299, 1e297);
  EXPECT_THAT(Binomial(shape, counts, probs, DT_INT32).RunOne(),
              TensorEq(AsTensor<int32_t>({0, 0, 0, 0, 10, 2147483647})));
}

TEST(StatelessRandomBinomial, RejectsBadArguments) {
  const Tensor two = AsTensor<double>({1, 2});
  EXPECT_THAT(Binomial(AsTensor<int32_t>({3}), two, two, DT_INT32).Run(),
              StatusIs(kInvalidArgument, HasSubstr("shape must end with")));
  EXPECT_THAT(Binomial(AsTensor<int32_t>({3}), two, AsTensor<double>({1, 2, 3}), DT_INT32).Run(),
              StatusIs(kInvalidArgument, HasSubstr("broadcast")));
}

OpTester Truncated(const Tensor& shape, const std::vector<Tensor>& parameters) {
  return OpTester("ParameterizedTruncatedNormal")
      .Input(shape)
      .Inputs(parameters)
      .Attr("seed", int64_t{7});
}
OpTester TruncatedBySeed(const Tensor& shape, const std::vector<Tensor>& parameters) {
  return OpTester("StatelessParameterizedTruncatedNormal")
      .Input(shape)
      .Input<int64_t>({7, 8})
      .Inputs(parameters);
}

// Returns the moments of the standard normal distribution between a and b, by integration.
MeanAndVariance MomentsBetween(double a, double b) {
  a = std::max(a, -12.0);
  b = std::min(b, a + 24);
  double weight = 0;
  double sum = 0;
  double square = 0;
  constexpr int kSteps = 200000;
  for (int i = 0; i < kSteps; ++i) {
    const double x = a + (b - a) * (i + 0.5) / kSteps;
    const double density = std::exp(-0.5 * (x * x - (a > 0 ? a * a : 0)));
    weight += density;
    sum += density * x;
    square += density * x * x;
  }
  const double mean = sum / weight;
  return {mean, square / weight - mean * mean};
}

TEST(TruncatedNormal, HasTheMomentsOfItsDistribution) {
  // Bounds that select each method: normal, uniform and exponential proposals, and mirrored ones.
  const std::vector<std::pair<double, double>> bounds = {{-2, 3},     {0.5, 1},     {3, kInf},
                                                         {-kInf, -4}, {-kInf, 0.5}, {-1, 1}};
  const int64_t samples = 12001;
  for (const DataType dtype : {DT_HALF, DT_FLOAT, DT_DOUBLE}) {
    for (const auto& [low, high] : bounds) {
      SCOPED_TRACE(low);
      std::vector<Tensor> parameters;
      // Mean 1 and stddev 2.
      for (const double value : {1.0, 2.0, 1 + 2 * low, 1 + 2 * high}) {
        parameters.push_back(
            *OpTester("Cast").Input(AsScalar<double>(value)).Attr("DstT", dtype).RunOne());
      }
      const MeanAndVariance expected = MomentsBetween(low, high);
      for (OpTester tester : {Truncated(AsTensor<int32_t>({samples, 1}), parameters),
                              TruncatedBySeed(AsTensor<int64_t>({samples, 1}), parameters)}) {
        GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor output, tester.RunOne());
        EXPECT_THAT(tester.RunOnThreads(7)->at(0), TensorEq(output));
        const MeanAndVariance moments = MomentsOf(output, 0);
        const double stddev = std::sqrt(expected.variance);
        EXPECT_NEAR((moments.mean - 1) / 2, expected.mean, 0.05 * stddev + 1e-3);
        EXPECT_NEAR(moments.variance / 4, expected.variance, 0.07 * expected.variance + 1e-3);
        for (const double value : AsDoubles(output)) {
          ASSERT_GE(value, 1 + 2 * low - 0.02);
          ASSERT_LE(value, 1 + 2 * high + 0.02);
        }
      }
    }
  }
}

TEST(TruncatedNormal, HasParametersForEachBatch) {
  const std::vector<Tensor> parameters = {AsTensor<double>({0, 100, 1000}), AsScalar<double>(1),
                                          AsTensor<double>({-1, 99, 999}),
                                          AsTensor<double>({1, 101, 1001})};
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor rows,
                                Truncated(AsTensor<int32_t>({3, 50}), parameters).RunOne());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor columns,
                                TruncatedBySeed(AsTensor<int32_t>({50, 3}), parameters).RunOne());
  for (int b = 0; b < 3; ++b) {
    for (int s = 0; s < 50; ++s) {
      const double mean = parameters[0].flat<double>()(b);
      EXPECT_NEAR(rows.matrix<double>()(b, s), mean, 1);
      EXPECT_NEAR(columns.matrix<double>()(s, b), mean, 1);
    }
  }
}

// The deadline has passed, but a loop of one block does not check it.
TEST(TruncatedNormal, StopsWithinABatch) {
  StopToken stop(nullptr, nullptr, StopToken::Clock::time_point());
  GRADFLOW_EXPECT_OK(
      Truncated(AsTensor<int32_t>({1, 1 << 17}),
                {AsScalar<float>(0), AsScalar<float>(1), AsTensor<float>({-1}), AsScalar<float>(1)})
          .StoppedBy(&stop)
          .RunOnThreads(1)
          .status());
  EXPECT_TRUE(stop.IsStopped());
}

TEST(TruncatedNormal, RejectsBadArguments) {
  const auto scalars = [](float mean, float stddev, float low, float high) {
    return std::vector<Tensor>{AsScalar<float>(mean), AsScalar<float>(stddev), AsScalar<float>(low),
                               AsScalar<float>(high)};
  };
  const Tensor shape = AsTensor<int32_t>({2});
  for (const auto& bad : {scalars(0, 0, -1, 1), scalars(0, kNan, -1, 1), scalars(0, 1, 1, 1),
                          scalars(0, 1, -kInf, kInf), scalars(0, 1, kNan, 1)}) {
    for (OpTester tester : {Truncated(shape, bad), TruncatedBySeed(shape, bad)}) {
      EXPECT_THAT(tester.Run(), StatusIs(kInvalidArgument, HasSubstr("the standard deviation must "
                                                                     "be positive")));
    }
  }
  EXPECT_THAT(TruncatedBySeed(shape, scalars(kNan, 1, -1, 1)).Run(),
              StatusIs(kInvalidArgument, HasSubstr("no number between the bounds")));
  EXPECT_THAT(Truncated(Tensor(DT_INT32, {0}), scalars(0, 1, -1, 1)).Run(),
              StatusIs(kInvalidArgument, HasSubstr("shape must not be empty")));
  std::vector<Tensor> three = scalars(0, 1, -1, 1);
  three[0] = AsTensor<float>({1, 2, 3});
  EXPECT_THAT(
      Truncated(shape, three).Run(),
      StatusIs(kInvalidArgument, HasSubstr("means must be a scalar or a vector of 1 or 2")));
  EXPECT_THAT(TruncatedBySeed(shape, three).Run(),
              StatusIs(kInvalidArgument, HasSubstr("shape must end with")));
  EXPECT_THAT(TruncatedBySeed(AsTensor<int32_t>({0}), scalars(0, 1, -1, 1)).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0})));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
