#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/cancelling_tensor.h"
#include "tests/ops/common/error_case.h"
#include "tests/ops/nn/batch_norm_reference.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

struct ForwardOptions {
  std::string op = "FusedBatchNormV3";
  std::string format = "NHWC";
  bool is_training = true;
  float epsilon = 1e-3f;
  float factor = 1;
};

OpTester BatchNorm(const ForwardOptions& options, const Tensor& x, const Tensor& scale,
                   const Tensor& offset, const Tensor& mean, const Tensor& variance) {
  return OpTester(options.op)
      .Inputs({x, scale, offset, mean, variance})
      .Attr("data_format", options.format)
      .Attr("is_training", options.is_training)
      .Attr("epsilon", options.epsilon)
      .Attr("exponential_avg_factor", options.factor);
}

// Parameters of each channel, with arbitrary values.
struct Parameters {
  explicit Parameters(int64_t channels)
      : scale(RandomTensor(DT_FLOAT, {channels}, 0.5, 2, 11)),
        offset(RandomTensor(DT_FLOAT, {channels}, -1, 1, 12)),
        mean(RandomTensor(DT_FLOAT, {channels}, -1, 1, 13)),
        variance(RandomTensor(DT_FLOAT, {channels}, 0.5, 2, 14)) {}
  Tensor scale;
  Tensor offset;
  Tensor mean;
  Tensor variance;
};

OpTester BatchNorm(const ForwardOptions& options, const Tensor& x, const Parameters& p) {
  return BatchNorm(options, x, p.scale, p.offset, p.mean, p.variance);
}

// ---- Values ----

TEST(BatchNorm, HasKnownValues) {
  // Channels {1, 3} and {2, 10}: means 2 and 6, variances 1 and 16.
  const ForwardOptions options = {"FusedBatchNorm", "NHWC", true, 0, 1};
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> outputs,
      BatchNorm(options, AsTensor<float>({1, 2, 3, 10}, {1, 2, 1, 2}), AsTensor<float>({1, 10}),
                AsTensor<float>({0, 5}), EmptyVector(), EmptyVector())
          .Run());
  ASSERT_EQ(outputs.size(), 5u);
  EXPECT_THAT(outputs[0], TensorEq(AsTensor<float>({-1, -5, 1, 15}, {1, 2, 1, 2})));
  EXPECT_THAT(outputs[1], TensorEq(AsTensor<float>({2, 6})));
  EXPECT_THAT(outputs[2], TensorEq(AsTensor<float>({2, 32})));
  EXPECT_THAT(outputs[3], TensorEq(AsTensor<float>({2, 6})));
  EXPECT_THAT(outputs[4], TensorEq(AsTensor<float>({1, 16})));
}

TEST(BatchNorm, AgreesWithFloat64InTraining) {
  for (const ImageSizes& sizes : ManySizes()) {
    for (const std::string format : {"NHWC", "NCHW"}) {
      SCOPED_TRACE(sizes.Shape(format).DebugString() + format);
      const Parameters p(sizes.channels);
      const Tensor x = RandomTensor(DT_FLOAT, sizes.Shape(format), -2, 3);
      const std::vector<double> values = AsDoubles(x);
      const BatchStatistics expected = StatisticsOf(values, sizes, format);
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                    BatchNorm({"FusedBatchNormV3", format}, x, p).Run());
      ASSERT_EQ(outputs.size(), 6u);
      const auto y = Normalize(values, sizes, format, expected, AsDoubles(p.scale),
                               AsDoubles(p.offset), 1e-3f);
      EXPECT_THAT(outputs[0], TensorNear(FromDoubles(DT_FLOAT, x.shape(), y), 3e-7, 3e-7));
      const TensorShape channels({sizes.channels});
      const double m = static_cast<double>(sizes.count());
      std::vector<double> corrected = expected.variance;
      for (double& variance : corrected) variance *= m > 1 ? m / (m - 1) : 1;
      EXPECT_THAT(outputs[1],
                  TensorNear(FromDoubles(DT_FLOAT, channels, expected.mean), 1e-8, 1e-7));
      EXPECT_THAT(outputs[2], TensorNear(FromDoubles(DT_FLOAT, channels, corrected), 0, 1e-7));
      EXPECT_THAT(outputs[3], TensorEq(outputs[1]));
      EXPECT_THAT(outputs[4],
                  TensorNear(FromDoubles(DT_FLOAT, channels, expected.variance), 0, 1e-7));
      EXPECT_THAT(outputs[5], TensorEq(AsScalar<float>(0)));
    }
  }
}

TEST(BatchNorm, AgreesWithFloat64InInference) {
  for (const ImageSizes& sizes : ManySizes()) {
    for (const std::string format : {"NHWC", "NCHW"}) {
      SCOPED_TRACE(sizes.Shape(format).DebugString() + format);
      const Parameters p(sizes.channels);
      const Tensor x = RandomTensor(DT_FLOAT, sizes.Shape(format), -2, 3);
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                    BatchNorm({"FusedBatchNormV2", format, false}, x, p).Run());
      const auto y =
          Normalize(AsDoubles(x), sizes, format, {AsDoubles(p.mean), AsDoubles(p.variance)},
                    AsDoubles(p.scale), AsDoubles(p.offset), 1e-3f);
      EXPECT_THAT(outputs[0], TensorNear(FromDoubles(DT_FLOAT, x.shape(), y), 3e-7, 3e-7));
      for (const int i : {1, 3}) EXPECT_THAT(outputs[i], TensorEq(p.mean));
      for (const int i : {2, 4}) EXPECT_THAT(outputs[i], TensorEq(p.variance));
    }
  }
}

TEST(BatchNorm, FormatsAgree) {
  const ImageSizes sizes = {3, 4, 5, 6, 7};
  const Tensor x = RandomTensor(DT_FLOAT, sizes.Shape("NDHWC"), -1, 5);
  const Parameters p(7);
  for (const bool training : {true, false}) {
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> last,
                                  BatchNorm({"FusedBatchNormV3", "NDHWC", training}, x, p).Run());
    // The result depends on the spatial dimensions only through their product.
    const ImageSizes flat = {3, 1, 4 * 5, 6, 7};
    for (const std::string format : {"NHWC", "NCHW", "NCDHW"}) {
      SCOPED_TRACE(format);
      const ImageSizes& same = format.size() == 5 ? sizes : flat;
      GRADFLOW_ASSERT_OK_AND_ASSIGN(
          const std::vector<Tensor> outputs,
          BatchNorm({"FusedBatchNormV3", format, training}, ToFormat(x, same, "NHWC", format), p)
              .Run());
      EXPECT_THAT(outputs[0], TensorNear(ToFormat(last[0], same, "NHWC", format), 3e-7, 1e-7));
      for (int i = 1; i < 6; ++i) EXPECT_THAT(outputs[i], TensorNear(last[i], 0, 1e-7));
    }
  }
}

TEST(BatchNorm, HalfAndBfloat16AreComputedInFloat) {
  for (const ImageSizes& sizes : {ImageSizes{2, 1, 3, 3, 5}, ImageSizes{3, 1, 20, 30, 70}}) {
    for (const std::string format : {"NHWC", "NCHW"}) {
      for (const DataType dtype : {DT_HALF, DT_BFLOAT16}) {
        for (const bool training : {true, false}) {
          SCOPED_TRACE(absl::StrCat(DataTypeString(dtype), " ", format, training));
          const Parameters p(sizes.channels);
          const Tensor x = RandomTensor(dtype, sizes.Shape(format), -2, 3);
          const ForwardOptions options = {"FusedBatchNormV3", format, training};
          GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                        BatchNorm(options, x, p).Run());
          const Tensor as_float = FromDoubles(DT_FLOAT, x.shape(), AsDoubles(x));
          GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> expected,
                                        BatchNorm(options, as_float, p).Run());
          EXPECT_THAT(outputs[0], TensorEq(FromDoubles(dtype, x.shape(), AsDoubles(expected[0]))));
          for (int i = 1; i < 6; ++i) EXPECT_THAT(outputs[i], TensorEq(expected[i]));
        }
      }
    }
  }
}

// Passes every 16-bit pattern through a kernel with mean 0 and factor 1.
TEST(BatchNorm, ConvertsEveryHalfAndBfloat16) {
  for (const DataType dtype : {DT_HALF, DT_BFLOAT16}) {
    Tensor x(dtype, {1, 256, 256, 1});
    auto* bits = static_cast<uint16_t*>(x.raw_data());
    for (int i = 0; i < 65536; ++i) bits[i] = static_cast<uint16_t>(i);
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor zero = AsTensor<float>({0});
    const Tensor one = AsTensor<float>({1});
    GRADFLOW_ASSERT_OK_AND_ASSIGN(
        const std::vector<Tensor> outputs,
        BatchNorm({"FusedBatchNormV3", "NCHW", false, 0}, *x.Reshaped({1, 1, 256, 256}), one,
                  AsTensor<float>({-0.0f}), zero, one)
            .RunEverywhere({{1}, {}}));
    EXPECT_THAT(*outputs[0].Reshaped(x.shape()), TensorEq(x));
  }
}

// Results lie at and around every tie between two 16-bit numbers, and at the ends of their range.
TEST(BatchNorm, RoundsToHalfAndBfloat16ToNearestEven) {
  for (const DataType dtype : {DT_HALF, DT_BFLOAT16}) {
    Tensor x(dtype, {65536, 1, 1, 1});
    auto* bits = static_cast<uint16_t*>(x.raw_data());
    for (int i = 0; i < 65536; ++i) bits[i] = static_cast<uint16_t>(i);
    const std::vector<double> values = AsDoubles(x);
    for (const float factor : {1.5f, 0.3f, 1.0009766f, 1e-3f, 40.0f}) {
      std::vector<double> expected;
      expected.reserve(values.size());
      for (const double value : values) expected.push_back(static_cast<float>(value) * factor);
      SCOPED_TRACE(absl::StrCat(DataTypeString(dtype), " ", factor));
      GRADFLOW_ASSERT_OK_AND_ASSIGN(
          const std::vector<Tensor> outputs,
          BatchNorm({"FusedBatchNormV3", "NHWC", false, 0}, x, AsTensor<float>({factor}),
                    AsTensor<float>({-0.0f}), AsTensor<float>({0}), AsTensor<float>({1}))
              .RunEverywhere({{1}, {}}));
      EXPECT_THAT(outputs[0], TensorEq(FromDoubles(dtype, x.shape(), expected)));
    }
  }
}

TEST(BatchNorm, StatisticsMayBeBfloat16) {
  const ImageSizes sizes = {2, 1, 3, 3, 5};
  const Tensor x = RandomTensor(DT_BFLOAT16, sizes.Shape("NHWC"), -2, 3);
  const auto vector = [](double low, double high) {
    return RandomTensor(DT_BFLOAT16, {5}, low, high);
  };
  const Tensor scale = vector(0.5, 2);
  const Tensor offset = vector(-1, 1);
  const Tensor mean = vector(-1, 1);
  const Tensor variance = vector(0.5, 2);
  for (const bool training : {true, false}) {
    const ForwardOptions options = {"FusedBatchNormV3", "NHWC", training, 1e-3f,
                                    training ? 0.5f : 1.0f};
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                  BatchNorm(options, x, scale, offset, mean, variance).Run());
    const auto as_float = [](const Tensor& t) {
      return FromDoubles(DT_FLOAT, t.shape(), AsDoubles(t));
    };
    GRADFLOW_ASSERT_OK_AND_ASSIGN(
        const std::vector<Tensor> expected,
        BatchNorm(options, x, as_float(scale), as_float(offset), as_float(mean), as_float(variance))
            .Run());
    EXPECT_THAT(outputs[0], TensorEq(expected[0]));
    for (int i = 1; i < 6; ++i) {
      EXPECT_EQ(outputs[i].dtype(), DT_BFLOAT16);
      EXPECT_THAT(outputs[i],
                  TensorEq(FromDoubles(DT_BFLOAT16, expected[i].shape(), AsDoubles(expected[i]))));
    }
  }
}

// ---- Precision ----

TEST(BatchNorm, KeepsPrecisionWhenMeanIsLarge) {
  const ImageSizes sizes = {8, 1, 40, 40, 3};
  for (const std::string format : {"NHWC", "NCHW"}) {
    for (const double mean : {1e3, 1e4, -1e5}) {
      SCOPED_TRACE(absl::StrCat(format, mean));
      const Tensor x = RandomTensor(DT_FLOAT, sizes.Shape(format), mean - 1.7, mean + 1.7);
      const std::vector<double> values = AsDoubles(x);
      const BatchStatistics expected = StatisticsOf(values, sizes, format);
      const Parameters p(3);
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                    BatchNorm({"FusedBatchNormV3", format}, x, p).Run());
      EXPECT_THAT(outputs[3], TensorNear(FromDoubles(DT_FLOAT, {3}, expected.mean), 0, 6e-8));
      EXPECT_THAT(outputs[4], TensorNear(FromDoubles(DT_FLOAT, {3}, expected.variance), 0, 1e-7));
      const auto y = Normalize(values, sizes, format, expected, AsDoubles(p.scale),
                               AsDoubles(p.offset), 1e-3f);
      // A float mean would not reach this precision.
      EXPECT_THAT(outputs[0], TensorNear(FromDoubles(DT_FLOAT, x.shape(), y), 5e-7, 5e-7));
    }
  }
}

// Checks the statistics of `count` elements of one channel around 1e4.
void ExpectAccurateStatistics(int64_t count, const std::string& format) {
  SCOPED_TRACE(absl::StrCat(count, " elements, ", format));
  const Tensor x = AroundMean(count, 1e4f, ImageSizes{count / 1000, 1, 20, 50, 1}.Shape(format), 1);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> outputs,
      BatchNorm({"FusedBatchNormV3", format}, x, Parameters(1)).RunOnThreads(2));
  long double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += x.flat<float>()(i) - 1e4L;
  const long double mean = sum / count;
  long double squares = 0;
  for (int64_t i = 0; i < count; ++i) {
    const long double deviation = x.flat<float>()(i) - 1e4L - mean;
    squares += deviation * deviation;
  }
  // The only error is the rounding to float.
  const double half_unit = std::ldexp(1.001, -24);
  const double expected_mean = static_cast<double>(1e4L + mean);
  const double expected_variance = static_cast<double>(squares / count);
  EXPECT_NEAR(outputs[3].flat<float>()(0), expected_mean, half_unit * expected_mean);
  EXPECT_NEAR(outputs[4].flat<float>()(0), expected_variance, half_unit * expected_variance);
}

TEST(BatchNorm, StatisticsOfMillionsAreAccurate) {
  for (const std::string format : {"NHWC", "NCHW"}) ExpectAccurateStatistics(3'000'000, format);
}

TEST(BatchNorm, FirstElementMayBeFarFromTheOthers) {
  for (const std::string format : {"NHWC", "NCHW"}) {
    const ImageSizes sizes = {4, 1, 50, 50, 2};
    Tensor x = RandomTensor(DT_FLOAT, sizes.Shape(format), 100, 101);
    x.flat<float>()(0) = 1e6;
    const BatchStatistics expected = StatisticsOf(AsDoubles(x), sizes, format);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                  BatchNorm({"FusedBatchNormV3", format}, x, Parameters(2)).Run());
    EXPECT_THAT(outputs[3], TensorNear(FromDoubles(DT_FLOAT, {2}, expected.mean), 0, 1e-7));
    EXPECT_THAT(outputs[4], TensorNear(FromDoubles(DT_FLOAT, {2}, expected.variance), 0, 1e-7));
  }
}

TEST(BatchNorm, ConstantChannelsHaveNoVariance) {
  const ImageSizes sizes = {4, 1, 30, 30, 3};
  for (const std::string format : {"NHWC", "NCHW"}) {
    Tensor x(DT_FLOAT, sizes.Shape(format));
    x.flat<float>().setConstant(1234.5678f);
    const Parameters p(3);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                  BatchNorm({"FusedBatchNormV3", format}, x, p).Run());
    EXPECT_THAT(outputs[3], TensorEq(AsTensor<float>({1234.5678f, 1234.5678f, 1234.5678f})));
    EXPECT_THAT(outputs[4], TensorEq(AsTensor<float>({0, 0, 0})));
    for (int64_t i = 0; i < x.NumElements(); ++i) {
      ASSERT_EQ(outputs[0].flat<float>()(i), p.offset.flat<float>()(ChannelOf(sizes, format, i)));
    }
  }
}

TEST(BatchNorm, NaNOrInfinityStaysInItsChannel) {
  const ImageSizes sizes = {2, 1, 5, 5, 3};
  for (const std::string format : {"NHWC", "NCHW"}) {
    for (const float bad : {kNan, kInf, -kInf}) {
      // The index of the first element of channel 1, and the index of a later element.
      for (const int64_t place : {format == "NHWC" ? 1 : 25, format == "NHWC" ? 34 : 36}) {
        SCOPED_TRACE(absl::StrCat(format, bad, " at ", place));
        Tensor x = RandomTensor(DT_FLOAT, sizes.Shape(format));
        x.flat<float>()(place) = bad;
        GRADFLOW_ASSERT_OK_AND_ASSIGN(
            const std::vector<Tensor> outputs,
            BatchNorm({"FusedBatchNormV3", format}, x, Parameters(3)).Run());
        for (int64_t c = 0; c < 3; ++c) {
          EXPECT_EQ(std::isfinite(outputs[3].flat<float>()(c)), c != 1);
          EXPECT_EQ(std::isnan(outputs[4].flat<float>()(c)), c == 1);
        }
        EXPECT_THAT(outputs[3].Slice(1, 2), TensorEq(AsTensor<float>({bad})));
        for (int64_t i = 0; i < x.NumElements(); ++i) {
          EXPECT_EQ(std::isnan(outputs[0].flat<float>()(i)), ChannelOf(sizes, format, i) == 1);
        }
      }
    }
  }
}

// ---- Running statistics ----

TEST(BatchNorm, MixesRunningStatistics) {
  const ImageSizes sizes = {2, 1, 3, 3, 4};
  const Tensor x = RandomTensor(DT_FLOAT, sizes.Shape("NHWC"), -2, 3);
  const Parameters p(4);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> batch, BatchNorm({}, x, p).Run());
  for (const float factor : {0.0f, 0.1f, 0.99f}) {
    SCOPED_TRACE(factor);
    for (const std::string op : {"FusedBatchNormV2", "FusedBatchNormV3", "FusedBatchNorm"}) {
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                    BatchNorm({op, "NHWC", true, 1e-3f, factor}, x, p).Run());
      const auto mixed = [&](const Tensor& running, const Tensor& fresh) {
        std::vector<double> values;
        values.reserve(4);
        for (int c = 0; c < 4; ++c) {
          values.push_back((1.0 - factor) * running.flat<float>()(c) +
                           factor * fresh.flat<float>()(c));
        }
        return FromDoubles(DT_FLOAT, {4}, values);
      };
      EXPECT_THAT(outputs[1], TensorNear(mixed(p.mean, batch[1]), 0, 3e-7));
      EXPECT_THAT(outputs[2], TensorNear(mixed(p.variance, batch[2]), 0, 3e-7));
      for (const int i : {0, 3, 4}) EXPECT_THAT(outputs[i], TensorEq(batch[i]));
    }
  }
}

TEST(BatchNorm, RunningStatisticsMayHaveAnyLengthInTraining) {
  const ImageSizes sizes = {2, 1, 3, 3, 4};
  const Tensor x = RandomTensor(DT_FLOAT, sizes.Shape("NHWC"), -2, 3);
  const Parameters p(4);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> expected, BatchNorm({}, x, p).Run());
  for (const int64_t length : {0, 1, 4, 7}) {
    const Tensor any = RandomTensor(DT_FLOAT, {length});
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                  BatchNorm({}, x, p.scale, p.offset, any, any).Run());
    for (int i = 0; i < 6; ++i) EXPECT_THAT(outputs[i], TensorEq(expected[i]));
  }
}

TEST(BatchNorm, OneElementHasNoBesselCorrection) {
  const Tensor x = AsTensor<float>({5, -7}, {1, 1, 1, 2});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                BatchNorm({}, x, Parameters(2)).Run());
  EXPECT_THAT(outputs[0].flat<float>()(0) == Parameters(2).offset.flat<float>()(0) ? outputs[1]
                                                                                   : outputs[2],
              TensorEq(AsTensor<float>({5, -7})));
  EXPECT_THAT(outputs[2], TensorEq(AsTensor<float>({0, 0})));
}

// ---- Empty inputs ----

TEST(BatchNorm, EmptyBatchHasNoStatistics) {
  for (const TensorShape& shape : {TensorShape({0, 3, 3, 2}), TensorShape({2, 0, 3, 2})}) {
    const Tensor x(DT_FLOAT, shape);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(
        const std::vector<Tensor> outputs,
        BatchNorm({"FusedBatchNormV3", "NHWC", true}, x, Parameters(2)).Run());
    EXPECT_THAT(outputs[0], TensorEq(x));
    EXPECT_THAT(outputs[1], TensorEq(AsTensor<float>({kNan, kNan})));
    EXPECT_THAT(outputs[2], TensorEq(AsTensor<float>({kNan, kNan})));
    EXPECT_THAT(outputs[3], TensorEq(AsTensor<float>({0, 0})));
    EXPECT_THAT(outputs[4], TensorEq(AsTensor<float>({0, 0})));
  }
}

TEST(BatchNorm, EmptyBatchPassesOnRunningStatistics) {
  const Parameters p(2);
  for (const TensorShape& shape : {TensorShape({0, 3, 3, 2}), TensorShape({2, 0, 3, 2})}) {
    for (const std::string op : {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"}) {
      const Tensor x(DT_FLOAT, shape);
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                    BatchNorm({op, "NHWC", false}, x, p).Run());
      EXPECT_THAT(outputs[0], TensorEq(x));
      for (const int i : {1, 3}) EXPECT_THAT(outputs[i], TensorEq(p.mean));
      for (const int i : {2, 4}) EXPECT_THAT(outputs[i], TensorEq(p.variance));
    }
  }
}

TEST(BatchNorm, AcceptsTensorsWithoutChannels) {
  for (const std::string format : {"NHWC", "NCHW"}) {
    const Tensor x(DT_FLOAT, ImageSizes{2, 1, 3, 3, 0}.Shape(format));
    for (const bool training : {true, false}) {
      GRADFLOW_ASSERT_OK_AND_ASSIGN(
          const std::vector<Tensor> outputs,
          BatchNorm({"FusedBatchNormV2", format, training}, x, Parameters(0)).Run());
      EXPECT_THAT(outputs[0], TensorEq(x));
      for (int i = 1; i < 5; ++i) EXPECT_THAT(outputs[i], TensorEq(EmptyVector()));
    }
  }
}

TEST(BatchNorm, HugeEmptyTensorsAreEmpty) {
  const Tensor x(DT_FLOAT, {0, int64_t{1} << 31, int64_t{1} << 31, 2});
  if (!x.shape().IsValid()) GTEST_SKIP() << "the shape itself is refused";
  GRADFLOW_EXPECT_OK(BatchNorm({}, x, Parameters(2)).Run());
}

// ---- Determinism ----

void ExpectForwardHasSameBits(const ImageSizes& sizes, const std::string& format, DataType dtype,
                              uint32_t seed) {
  SCOPED_TRACE(absl::StrCat(sizes.Shape(format).DebugString(), format, DataTypeString(dtype)));
  Tensor x = RandomTensor(dtype, sizes.Shape(format), -3, 30, seed);
  if (dtype != DT_HALF) {
    x = CancellingTensor(
        dtype, x.shape(), sizes.channels, [&](int64_t i) { return ChannelOf(sizes, format, i); },
        seed);
  }
  const Parameters p(sizes.channels);
  for (const bool training : {true, false}) {
    OpTester tester = BatchNorm({"FusedBatchNormV3", format, training}, x, p);
    GRADFLOW_EXPECT_OK(tester.RunEverywhere());
  }
}

TEST(BatchNorm, HasTheSameBitsOnAllThreadsAndTargets) {
  std::mt19937 random(5);
  for (int round = 0; round < 100; ++round) {
    const std::string format =
        round % 2 == 0 ? (round % 8 == 0 ? "NDHWC" : "NHWC") : (round % 8 == 1 ? "NCDHW" : "NCHW");
    const DataType dtype = round % 3 == 0 ? DT_FLOAT : round % 3 == 1 ? DT_HALF : DT_BFLOAT16;
    ExpectForwardHasSameBits(RandomSizes(random, round, format), format, dtype, round);
  }
}

TEST(BatchNorm, HasTheSameBitsWithThousandsOfChannels) {
  for (const std::string format : {"NHWC", "NCHW"}) {
    ExpectForwardHasSameBits({2, 1, 1, 3, 5000}, format, DT_FLOAT, 1);
  }
}

// Large enough for non-temporal stores.
TEST(BatchNorm, HasTheSameBitsWithNonTemporalStores) {
  for (const std::string format : {"NHWC", "NCHW"}) {
    ExpectForwardHasSameBits({64, 1, 32, 32, 48}, format, DT_FLOAT, 1);
    ExpectForwardHasSameBits({128, 1, 32, 32, 48}, format, DT_BFLOAT16, 2);
  }
}

// ---- Errors ----

TEST(BatchNorm, RejectsBadShapes) {
  const Tensor x = RandomTensor(DT_FLOAT, {2, 3, 5, 4});
  const Tensor x5 = RandomTensor(DT_FLOAT, {2, 3, 5, 6, 4});
  const Parameters p(4);
  const Tensor three = Iota<float>({3});
  const ForwardOptions infer = {"FusedBatchNormV3", "NHWC", false};
  const ForwardOptions nchw = {"FusedBatchNormV2", "NCHW", true};
  const ForwardOptions mixing = {"FusedBatchNormV3", "NHWC", true, 1e-3f, 0.5f};
  ExpectErrors({
      {"rank 2", BatchNorm({}, RandomTensor(DT_FLOAT, {2, 4}), p),
       "Shape must be rank 4 but is rank 2: x has shape [2,4]"},
      {"rank 5", BatchNorm({}, x5, p),
       "Shape must be rank 4 but is rank 5: x has shape [2,3,5,6,4]"},
      {"rank 4", BatchNorm({"FusedBatchNormV3", "NCDHW"}, x, p),
       "Shape must be rank 5 but is rank 4: x has shape [2,3,5,4]"},
      {"scale", BatchNorm({}, x, three, p.offset, p.mean, p.variance),
       "scale has shape [3], expected [4] (the channels of x [2,3,5,4], NHWC)"},
      {"NCHW", BatchNorm(nchw, x, p),
       "scale has shape [4], expected [3] (the channels of x [2,3,5,4], NCHW)"},
      {"matrix", BatchNorm({}, x, RandomTensor(DT_FLOAT, {4, 1}), p.offset, p.mean, p.variance),
       "Shape must be rank 1 but is rank 2: scale has shape [4,1]"},
      {"scalar", BatchNorm({}, x, p.scale, AsScalar<float>(1), p.mean, p.variance),
       "Shape must be rank 1 but is rank 0: offset has shape []"},
      {"mean", BatchNorm(infer, x, p.scale, p.offset, three, p.variance),
       "mean has shape [3], expected [4]"},
      {"variance", BatchNorm(infer, x, p.scale, p.offset, p.mean, EmptyVector()),
       "variance has shape [0], expected [4]"},
      {"mixed mean", BatchNorm(mixing, x, p.scale, p.offset, EmptyVector(), p.variance),
       "mean has shape [0], expected [4]"},
      {"unused, but no vector", BatchNorm({}, x, p.scale, p.offset, p.mean, x),
       "variance has shape [2,3,5,4], expected [?] (a vector"},
  });
}

TEST(BatchNorm, RejectsBadAttributes) {
  const Tensor x = RandomTensor(DT_FLOAT, {2, 3, 5, 4});
  const Parameters p(4);
  for (const float epsilon : {-1e-6f, kNan, kInf}) {
    OpTester tester = BatchNorm({"FusedBatchNormV3", "NHWC", true, epsilon}, x, p);
    const auto error =
        StatusIs(kInvalidArgument, HasSubstr("expected a finite number that is not negative"));
    EXPECT_THAT(tester.MakeKernel(), error);
    EXPECT_THAT(tester.InferShapes(), error);
  }
  EXPECT_THAT(BatchNorm({"FusedBatchNormV3", "NHCW"}, x, p).Run(),
              StatusIs(kInvalidArgument, HasSubstr("data_format")));
  EXPECT_THAT(BatchNorm({"FusedBatchNormV2", "NDHWC"}, x, p).Run(),
              StatusIs(kInvalidArgument, HasSubstr("data_format")));
}

// CVE-2021-29555 and CVE-2021-29583.
TEST(BatchNorm, SurvivesTheInputsOfAdvisories) {
  const ForwardOptions options = {"FusedBatchNorm", "NHWC", false, 0, 0};
  const Tensor no_channels(DT_FLOAT, {1, 1, 1, 0});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                BatchNorm(options, no_channels, Parameters(0)).Run());
  EXPECT_THAT(outputs[0], TensorEq(no_channels));
  Tensor x(DT_FLOAT, {10, 10, 10, 6});
  x.flat<float>().setZero();
  const Tensor zero = AsTensor<float>({0});
  ExpectErrors({
      {"CVE-2021-29583 (a)", BatchNorm(options, x, zero, zero, zero, zero),
       "scale has shape [1], expected [6] (the channels of x [10,10,10,6], NHWC)"},
      {"CVE-2021-29583 (b)",
       BatchNorm(options, RandomTensor(DT_FLOAT, {10, 10, 10, 1}), Parameters(0)),
       "scale has shape [0], expected [1]"},
  });
}

TEST(BatchNorm, HasNoKernelForOtherTypes) {
  EXPECT_THAT(
      BatchNorm({"FusedBatchNorm"}, RandomTensor(DT_HALF, {1, 1, 1, 1}), RandomTensor(DT_HALF, {1}),
                RandomTensor(DT_HALF, {1}), RandomTensor(DT_HALF, {1}), RandomTensor(DT_HALF, {1}))
          .Run(),
      StatusIs(kInvalidArgument, HasSubstr("T")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
