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

struct GradientOptions {
  std::string op = "FusedBatchNormGradV3";
  std::string format = "NHWC";
  bool is_training = true;
  float epsilon = 1e-3f;
};

OpTester Grad(const GradientOptions& options, const Tensor& dy, const Tensor& x,
              const Tensor& scale, const Tensor& mean, const Tensor& variance) {
  OpTester tester(options.op);
  tester.Inputs({dy, x, scale, mean, variance});
  if (options.op == "FusedBatchNormGradV3") tester.Input(AsScalar<float>(0));
  return tester.Attr("data_format", options.format)
      .Attr("is_training", options.is_training)
      .Attr("epsilon", options.epsilon);
}

// Evaluates the formulas in float64, with the float statistics of the op.
struct Reference {
  Reference(const GradientOptions& options, const ImageSizes& sizes, const Tensor& dy_tensor,
            const Tensor& x_tensor, const Tensor& scale, const Tensor& mean,
            const Tensor& variance) {
    const std::vector<double> dy = AsDoubles(dy_tensor);
    const std::vector<double> x = AsDoubles(x_tensor);
    const double m = static_cast<double>(sizes.count());
    dx.resize(dy.size());
    sum.resize(sizes.channels);
    sum_magnitude.resize(sizes.channels);
    product.resize(sizes.channels);
    product_magnitude.resize(sizes.channels);
    inverse.resize(sizes.channels);
    for (int64_t c = 0; c < sizes.channels; ++c) {
      inverse[c] = 1 / std::sqrt(AsDoubles(variance)[c] + options.epsilon);
    }
    const std::vector<double> means = AsDoubles(mean);
    const std::vector<double> scales = AsDoubles(scale);
    for (size_t i = 0; i < dy.size(); ++i) {
      const int64_t c = ChannelOf(sizes, options.format, i);
      sum[c] += dy[i];
      sum_magnitude[c] += std::abs(dy[i]);
      product[c] += dy[i] * (x[i] - means[c]);
      product_magnitude[c] += std::abs(dy[i] * (x[i] - means[c]));
    }
    for (size_t i = 0; i < dy.size(); ++i) {
      const int64_t c = ChannelOf(sizes, options.format, i);
      const double inv = inverse[c];
      dx[i] =
          scales[c] * inv *
          (options.is_training ? dy[i] - sum[c] / m - (x[i] - means[c]) * inv * inv * product[c] / m
                               : dy[i]);
    }
  }

  void Check(const std::vector<Tensor>& outputs, DataType dtype, double tolerance) const {
    ASSERT_EQ(outputs.size(), 5u);
    if (tolerance >= 0) {
      EXPECT_THAT(outputs[0],
                  TensorNear(FromDoubles(dtype, outputs[0].shape(), dx), tolerance, tolerance));
    } else {
      EXPECT_THAT(outputs[0], TensorNear(FromDoubles(dtype, outputs[0].shape(), dx)));
    }
    const double bound = 4 * std::ldexp(1, -24);
    ASSERT_EQ(outputs[1].NumElements(), static_cast<int64_t>(sum.size()));
    ASSERT_EQ(outputs[2].NumElements(), static_cast<int64_t>(sum.size()));
    for (size_t c = 0; c < sum.size(); ++c) {
      EXPECT_NEAR(outputs[1].flat<float>()(c), inverse[c] * product[c],
                  bound * inverse[c] * product_magnitude[c]);
      EXPECT_NEAR(outputs[2].flat<float>()(c), sum[c], bound * sum_magnitude[c]);
    }
    EXPECT_THAT(outputs[3], TensorEq(EmptyVector()));
    EXPECT_THAT(outputs[4], TensorEq(EmptyVector()));
  }

  std::vector<double> dx;
  std::vector<double> sum;
  std::vector<double> sum_magnitude;
  std::vector<double> product;
  std::vector<double> product_magnitude;
  std::vector<double> inverse;
};

// The inputs x, dy and scale, and the statistics. In training these are the statistics of x.
struct Problem {
  Problem(const GradientOptions& options, const ImageSizes& sizes, DataType dtype = DT_FLOAT,
          double low = -2, double high = 3, uint32_t seed = 1)
      : x(RandomTensor(dtype, sizes.Shape(options.format), low, high, seed)),
        dy(RandomTensor(dtype, sizes.Shape(options.format), -1, 1.5, seed + 1)),
        scale(RandomTensor(DT_FLOAT, {sizes.channels}, 0.5, 2, seed + 2)),
        mean(RandomTensor(DT_FLOAT, {sizes.channels}, -1, 1, seed + 3)),
        variance(RandomTensor(DT_FLOAT, {sizes.channels}, 0.5, 2, seed + 4)) {
    if (options.is_training && sizes.count() > 0) {
      const BatchStatistics statistics = StatisticsOf(AsDoubles(x), sizes, options.format);
      mean = FromDoubles(DT_FLOAT, {sizes.channels}, statistics.mean);
      variance = FromDoubles(DT_FLOAT, {sizes.channels}, statistics.variance);
    }
  }
  OpTester Tester(const GradientOptions& options) const {
    return Grad(options, dy, x, scale, mean, variance);
  }

  Tensor x;
  Tensor dy;
  Tensor scale;
  Tensor mean;
  Tensor variance;
};

// ---- Values ----

TEST(BatchNormGrad, HasKnownValues) {
  // One channel of {1, 3}: mean 2, variance 1, so that inv is 1.
  GradientOptions options = {"FusedBatchNormGrad", "NHWC", true, 0};
  const TensorShape shape({1, 2, 1, 1});
  const Tensor x = AsTensor<float>({1, 3}, shape);
  const Tensor dy = AsTensor<float>({5, 7}, shape);
  const Tensor scale = AsTensor<float>({10});
  const Tensor mean = AsTensor<float>({2});
  const Tensor variance = AsTensor<float>({1});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                Grad(options, dy, x, scale, mean, variance).Run());
  // Two elements are determined by mean and variance, so their gradients are zero.
  EXPECT_THAT(outputs[0], TensorEq(AsTensor<float>({0, 0}, shape)));
  EXPECT_THAT(outputs[1], TensorEq(AsTensor<float>({2})));
  EXPECT_THAT(outputs[2], TensorEq(AsTensor<float>({12})));
  EXPECT_THAT(outputs[3], TensorEq(EmptyVector()));
  EXPECT_THAT(outputs[4], TensorEq(EmptyVector()));

  options.is_training = false;
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> frozen,
                                Grad(options, dy, x, scale, mean, AsTensor<float>({4})).Run());
  EXPECT_THAT(frozen[0], TensorEq(AsTensor<float>({25, 35}, shape)));
  EXPECT_THAT(frozen[1], TensorEq(AsTensor<float>({1})));
  EXPECT_THAT(frozen[2], TensorEq(AsTensor<float>({12})));
}

TEST(BatchNormGrad, FollowsTheFormula) {
  for (const ImageSizes& sizes : ManySizes()) {
    for (const std::string format : {"NHWC", "NCHW"}) {
      for (const bool training : {true, false}) {
        for (const std::string op : {"FusedBatchNormGrad", "FusedBatchNormGradV2"}) {
          if (sizes.size() > 10000 && op == "FusedBatchNormGradV2") continue;
          SCOPED_TRACE(absl::StrCat(sizes.Shape(format).DebugString(), format, training, op));
          const GradientOptions options = {op, format, training};
          const Problem p(options, sizes);
          GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs, p.Tester(options).Run());
          Reference(options, sizes, p.dy, p.x, p.scale, p.mean, p.variance)
              .Check(outputs, DT_FLOAT, 1e-6);
        }
      }
    }
  }
}

TEST(BatchNormGrad, FormatsAgree) {
  const ImageSizes sizes = {3, 4, 5, 6, 7};
  for (const bool training : {true, false}) {
    const GradientOptions options = {"FusedBatchNormGradV3", "NDHWC", training};
    const Problem p(options, sizes);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> last, p.Tester(options).Run());
    Reference(options, sizes, p.dy, p.x, p.scale, p.mean, p.variance).Check(last, DT_FLOAT, 1e-6);
    // The result depends on the spatial dimensions only through their product.
    const ImageSizes flat = {3, 1, 4 * 5, 6, 7};
    for (const std::string format : {"NHWC", "NCHW", "NCDHW"}) {
      SCOPED_TRACE(format);
      const ImageSizes& same = format.size() == 5 ? sizes : flat;
      GRADFLOW_ASSERT_OK_AND_ASSIGN(
          const std::vector<Tensor> outputs,
          Grad({"FusedBatchNormGradV3", format, training}, ToFormat(p.dy, same, "NHWC", format),
               ToFormat(p.x, same, "NHWC", format), p.scale, p.mean, p.variance)
              .Run());
      EXPECT_THAT(outputs[0], TensorNear(ToFormat(last[0], same, "NHWC", format), 3e-7, 1e-7));
      for (int i = 1; i < 5; ++i) EXPECT_THAT(outputs[i], TensorNear(last[i], 1e-7, 1e-7));
    }
  }
}

TEST(BatchNormGrad, HalfAndBfloat16AreComputedInFloat) {
  for (const ImageSizes& sizes : {ImageSizes{2, 1, 3, 3, 5}, ImageSizes{3, 1, 20, 30, 70}}) {
    for (const std::string format : {"NHWC", "NCHW"}) {
      for (const DataType dtype : {DT_HALF, DT_BFLOAT16}) {
        for (const bool training : {true, false}) {
          SCOPED_TRACE(absl::StrCat(DataTypeString(dtype), " ", format, training));
          const GradientOptions options = {"FusedBatchNormGradV3", format, training};
          const Problem p(options, sizes, dtype);
          GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs, p.Tester(options).Run());
          const auto as_float = [](const Tensor& t) {
            return FromDoubles(DT_FLOAT, t.shape(), AsDoubles(t));
          };
          GRADFLOW_ASSERT_OK_AND_ASSIGN(
              const std::vector<Tensor> expected,
              Grad(options, as_float(p.dy), as_float(p.x), p.scale, p.mean, p.variance).Run());
          EXPECT_THAT(outputs[0],
                      TensorEq(FromDoubles(dtype, p.x.shape(), AsDoubles(expected[0]))));
          for (int i = 1; i < 5; ++i) EXPECT_THAT(outputs[i], TensorEq(expected[i]));
          Reference(options, sizes, p.dy, p.x, p.scale, p.mean, p.variance)
              .Check(outputs, dtype, -1);
        }
      }
    }
  }
}

// ---- Against differences of the forward function ----

// Returns sum(dy * y) in float64.
double Loss(const GradientOptions& options, const ImageSizes& sizes, const std::vector<double>& dy,
            const std::vector<double>& x, const std::vector<double>& scale,
            const std::vector<double>& offset, const BatchStatistics* frozen) {
  const BatchStatistics statistics =
      frozen != nullptr ? *frozen : StatisticsOf(x, sizes, options.format);
  const std::vector<double> y =
      Normalize(x, sizes, options.format, statistics, scale, offset, options.epsilon);
  double sum = 0;
  for (size_t i = 0; i < y.size(); ++i) sum += dy[i] * y[i];
  return sum;
}

TEST(BatchNormGrad, AgreesWithDifferencesOfTheForwardFunction) {
  const double h = 1e-4;
  for (const ImageSizes& sizes : {ImageSizes{2, 1, 3, 4, 3}, ImageSizes{3, 2, 1, 2, 2}}) {
    for (const std::string format : {"NHWC", "NCHW", "NDHWC", "NCDHW"}) {
      if (format.size() == 4 && sizes.depth > 1) continue;
      for (const bool training : {true, false}) {
        SCOPED_TRACE(absl::StrCat(format, training));
        const GradientOptions options = {"FusedBatchNormGradV3", format, training};
        const Problem p(options, sizes);
        GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs, p.Tester(options).Run());
        const BatchStatistics running = {AsDoubles(p.mean), AsDoubles(p.variance)};
        const BatchStatistics* frozen = training ? nullptr : &running;
        std::vector<double> x = AsDoubles(p.x);
        std::vector<double> scale = AsDoubles(p.scale);
        std::vector<double> offset(sizes.channels, 0.5);
        const std::vector<double> dy = AsDoubles(p.dy);
        const auto difference = [&](double& moved) {
          const double before = moved;
          moved = before + h;
          const double above = Loss(options, sizes, dy, x, scale, offset, frozen);
          moved = before - h;
          const double below = Loss(options, sizes, dy, x, scale, offset, frozen);
          moved = before;
          return (above - below) / (2 * h);
        };
        for (size_t i = 0; i < x.size(); ++i) {
          EXPECT_NEAR(outputs[0].flat<float>()(i), difference(x[i]), 2e-6) << "x " << i;
        }
        for (int64_t c = 0; c < sizes.channels; ++c) {
          EXPECT_NEAR(outputs[1].flat<float>()(c), difference(scale[c]), 5e-6) << "scale " << c;
          EXPECT_NEAR(outputs[2].flat<float>()(c), difference(offset[c]), 5e-6) << "offset " << c;
        }
      }
    }
  }
}

TEST(BatchNormGrad, AcceptsTheSavedOutputsOfTheForwardOp) {
  const ImageSizes sizes = {4, 1, 5, 6, 7};
  const Tensor x = RandomTensor(DT_FLOAT, sizes.Shape("NHWC"), -1, 4);
  const Tensor dy = RandomTensor(DT_FLOAT, sizes.Shape("NHWC"));
  const Tensor scale = RandomTensor(DT_FLOAT, {7}, 0.5, 2);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> forward,
                                OpTester("FusedBatchNormV3")
                                    .Inputs({x, scale, scale, EmptyVector(), EmptyVector()})
                                    .Attr("epsilon", 1e-3f)
                                    .Run());
  const GradientOptions options;
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                Grad(options, dy, x, scale, forward[3], forward[4]).Run());
  const BatchStatistics exact = StatisticsOf(AsDoubles(x), sizes, "NHWC");
  Reference(options, sizes, dy, x, scale, FromDoubles(DT_FLOAT, {7}, exact.mean),
            FromDoubles(DT_FLOAT, {7}, exact.variance))
      .Check(outputs, DT_FLOAT, 1e-6);
}

// ---- Precision ----

TEST(BatchNormGrad, KeepsPrecisionWhenMeanIsLarge) {
  const ImageSizes sizes = {8, 1, 60, 60, 3};
  for (const std::string format : {"NHWC", "NCHW"}) {
    for (const double mean : {1e3, 1e4}) {
      SCOPED_TRACE(absl::StrCat(format, mean));
      const GradientOptions options = {"FusedBatchNormGradV3", format};
      Problem p(options, sizes, DT_FLOAT, mean - 1.7, mean + 1.7);
      GRADFLOW_ASSERT_OK_AND_ASSIGN(std::vector<Tensor> outputs, p.Tester(options).Run());
      Reference(options, sizes, p.dy, p.x, p.scale, p.mean, p.variance)
          .Check(outputs, DT_FLOAT, 2e-6);
      // Large gradients do not lose precision either.
      std::swap(p.dy, p.x);
      p.mean = AsTensor<float>({0.25f, 0.25f, 0.25f});
      GRADFLOW_ASSERT_OK_AND_ASSIGN(outputs, p.Tester(options).Run());
      Reference(options, sizes, p.dy, p.x, p.scale, p.mean, p.variance)
          .Check(outputs, DT_FLOAT, 2e-6);
    }
  }
}

TEST(BatchNormGrad, SumsManyElementsLikeFloat64) {
  for (const std::string format : {"NHWC", "NCHW"}) {
    const GradientOptions options = {"FusedBatchNormGradV3", format};
    const ImageSizes sizes = {3, 1, 400, 401, 2};
    Problem p(options, sizes, DT_FLOAT, -1, 1);
    p.dy = RandomTensor(DT_FLOAT, p.x.shape(), 1e4 - 1.7, 1e4 + 1.7, 9);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                  p.Tester(options).RunOnThreads(2));
    Reference(options, sizes, p.dy, p.x, p.scale, p.mean, p.variance)
        .Check(outputs, DT_FLOAT, 3e-6);
  }
}

// Checks the sums over `count` elements of one channel, with x around 1e4 and dy around `mean_dy`.
void ExpectAccurateSums(int64_t count, const std::string& format, float mean_dy) {
  SCOPED_TRACE(absl::StrCat(count, " elements, ", format, ", dy around ", mean_dy));
  const GradientOptions options = {"FusedBatchNormGradV3", format};
  const TensorShape shape = ImageSizes{count / 1000, 1, 20, 50, 1}.Shape(format);
  const Tensor x = AroundMean(count, 1e4f, shape, 1);
  const Tensor dy = AroundMean(count, mean_dy, shape, 2);
  const float mean = 1e4f + 1.0f / 64;
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                Grad(options, dy, x, AsTensor<float>({1}), AsTensor<float>({mean}),
                                     AsTensor<float>({1 - options.epsilon}))
                                    .RunOnThreads(2));
  long double sum = 0;
  long double sum_magnitude = 0;
  long double product = 0;
  long double product_magnitude = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double g = dy.flat<float>()(i);
    const double p = g * (x.flat<float>()(i) - static_cast<double>(mean));
    sum += g;
    sum_magnitude += std::abs(g);
    product += p;
    product_magnitude += std::abs(p);
  }
  const double bound = 4 * std::ldexp(1, -24);
  EXPECT_NEAR(outputs[1].flat<float>()(0), static_cast<double>(product),
              bound * static_cast<double>(product_magnitude));
  EXPECT_NEAR(outputs[2].flat<float>()(0), static_cast<double>(sum),
              bound * static_cast<double>(sum_magnitude));
}

TEST(BatchNormGrad, SumsOfMillionsAreAccurate) {
  for (const std::string format : {"NHWC", "NCHW"}) {
    for (const float mean_dy : {0.0f, 1.0f, 1e4f}) ExpectAccurateSums(3'000'000, format, mean_dy);
  }
}

TEST(BatchNormGrad, IsLinearInTheGradient) {
  for (const bool training : {true, false}) {
    const GradientOptions options = {"FusedBatchNormGradV3", "NHWC", training};
    const ImageSizes sizes = {4, 1, 9, 8, 6};
    const Problem p(options, sizes);
    const Problem q(options, sizes, DT_FLOAT, -2, 3, 77);
    Tensor both(DT_FLOAT, p.dy.shape());
    Tensor twice(DT_FLOAT, p.dy.shape());
    for (int64_t i = 0; i < both.NumElements(); ++i) {
      both.flat<float>()(i) = p.dy.flat<float>()(i) - 3 * q.dy.flat<float>()(i);
      twice.flat<float>()(i) = p.dy.flat<float>()(i) * 2;
    }
    const auto run = [&](const Tensor& dy) {
      return Grad(options, dy, p.x, p.scale, p.mean, p.variance).Run();
    };
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> of_p, run(p.dy));
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> of_q, run(q.dy));
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> of_both, run(both));
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> of_twice, run(twice));
    for (int o = 0; o < 3; ++o) {
      for (int64_t i = 0; i < of_p[o].NumElements(); ++i) {
        const float a = of_p[o].flat<float>()(i);
        EXPECT_NEAR(of_both[o].flat<float>()(i), a - 3 * of_q[o].flat<float>()(i),
                    o == 0 ? 2e-6 : 1e-4);
        // Multiplication by powers of two is exact.
        EXPECT_EQ(of_twice[o].flat<float>()(i), 2 * a);
      }
    }
  }
}

// Many equal terms have rounding errors of the same sign, which would add up.
TEST(BatchNormGrad, SubtractsTheMeanFromEachElement) {
  const struct {
    float x;
    float mean;
    float dy;
  } cases[] = {{1000.1f, 1000.1f, 0.3f}, {1 + 0x1p-23f, 1, 0.1f}, {1000 + 0x1p-14f, 1000, 0.3f}};
  for (const std::string format : {"NHWC", "NCHW"}) {
    for (const bool training : {true, false}) {
      for (const auto& c : cases) {
        SCOPED_TRACE(absl::StrCat(format, ", x = ", c.x, ", training ", training));
        const GradientOptions options = {"FusedBatchNormGradV3", format, training};
        const TensorShape shape = ImageSizes{1, 1, 256, 256, 1}.Shape(format);
        Tensor x(DT_FLOAT, shape);
        x.flat<float>().setConstant(c.x);
        Tensor dy(DT_FLOAT, shape);
        dy.flat<float>().setConstant(c.dy);
        GRADFLOW_ASSERT_OK_AND_ASSIGN(
            const std::vector<Tensor> outputs,
            Grad(options, dy, x, AsTensor<float>({1}), AsTensor<float>({c.mean}),
                 AsTensor<float>({1 - options.epsilon}))
                .Run());
        const double sum =
            65536.0 * c.dy * (static_cast<double>(c.x) - static_cast<double>(c.mean));
        EXPECT_NEAR(outputs[1].flat<float>()(0), sum, sum * 0x1p-22);
      }
    }
  }
}

TEST(BatchNormGrad, OneElementHasNoGradient) {
  const GradientOptions options;
  const Tensor x = AsTensor<float>({5, -7}, {1, 1, 1, 2});
  const Tensor zero = AsTensor<float>({0, 0});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> outputs,
      Grad(options, x, x, AsTensor<float>({1, 2}), AsTensor<float>({5, -7}), zero).Run());
  EXPECT_THAT(outputs[0], TensorNear(AsTensor<float>({0, 0}, {1, 1, 1, 2}), 0, 0));
  EXPECT_THAT(outputs[1], TensorNear(zero, 0, 0));
  EXPECT_THAT(outputs[2], TensorEq(AsTensor<float>({5, -7})));
}

TEST(BatchNormGrad, NaNOrInfinityStaysInItsChannel) {
  const ImageSizes sizes = {2, 1, 5, 5, 3};
  for (const std::string format : {"NHWC", "NCHW"}) {
    for (const float bad : {kNan, kInf}) {
      SCOPED_TRACE(absl::StrCat(format, bad));
      const GradientOptions options = {"FusedBatchNormGradV3", format};
      const Problem p(options, sizes);
      Tensor dy = *p.dy.DeepCopy();
      dy.flat<float>()(format == "NHWC" ? 34 : 36) = bad;
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                    Grad(options, dy, p.x, p.scale, p.mean, p.variance).Run());
      EXPECT_THAT(outputs[2].Slice(1, 2), TensorEq(AsTensor<float>({bad})));
      for (int64_t i = 0; i < dy.NumElements(); ++i) {
        EXPECT_EQ(std::isfinite(outputs[0].flat<float>()(i)), ChannelOf(sizes, format, i) != 1);
      }
    }
  }
}

TEST(BatchNormGrad, InputsMayBeOneTensor) {
  const ImageSizes sizes = {2, 1, 5, 5, 3};
  const GradientOptions options;
  const Problem p(options, sizes);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                Grad(options, p.x, p.x, p.scale, p.mean, p.variance).Run());
  Reference(options, sizes, p.x, p.x, p.scale, p.mean, p.variance).Check(outputs, DT_FLOAT, 1e-6);
  GRADFLOW_ASSERT_OK(Grad(options, p.x, p.x, p.scale, p.scale, p.scale).Run());
}

// ---- Empty inputs ----

TEST(BatchNormGrad, EmptyBatchHasNoGradient) {
  for (const bool training : {true, false}) {
    for (const TensorShape& shape : {TensorShape({0, 3, 3, 2}), TensorShape({2, 0, 3, 2})}) {
      const Tensor x(DT_FLOAT, shape);
      const Tensor two = AsTensor<float>({1, 2});
      GRADFLOW_ASSERT_OK_AND_ASSIGN(
          const std::vector<Tensor> outputs,
          Grad({"FusedBatchNormGradV3", "NHWC", training}, x, x, two, two, two).Run());
      EXPECT_THAT(outputs[0], TensorEq(x));
      EXPECT_THAT(outputs[1], TensorEq(AsTensor<float>({0, 0})));
      EXPECT_THAT(outputs[2], TensorEq(AsTensor<float>({0, 0})));
      EXPECT_THAT(outputs[3], TensorEq(EmptyVector()));
      EXPECT_THAT(outputs[4], TensorEq(EmptyVector()));
    }
  }
}

TEST(BatchNormGrad, EmptyBatchOfManyChannelsHasNoGradient) {
  const Tensor x(DT_FLOAT, {0, 1, 1, 5000});
  Tensor zeros(DT_FLOAT, {5000});
  zeros.flat<float>().setZero();
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> outputs,
      Grad({"FusedBatchNormGradV3", "NHWC"}, x, x, zeros, zeros, zeros).Run());
  EXPECT_THAT(outputs[1], TensorEq(zeros));
  EXPECT_THAT(outputs[2], TensorEq(zeros));
}

TEST(BatchNormGrad, AcceptsTensorsWithoutChannels) {
  for (const std::string format : {"NHWC", "NCHW"}) {
    const Tensor x(DT_FLOAT, ImageSizes{2, 1, 3, 3, 0}.Shape(format));
    GRADFLOW_ASSERT_OK_AND_ASSIGN(
        const std::vector<Tensor> outputs,
        Grad({"FusedBatchNormGradV2", format}, x, x, EmptyVector(), EmptyVector(), EmptyVector())
            .Run());
    EXPECT_THAT(outputs[0], TensorEq(x));
    for (int i = 1; i < 5; ++i) EXPECT_THAT(outputs[i], TensorEq(EmptyVector()));
  }
}

TEST(BatchNormGrad, InfersShapesFromBothInputs) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<PartialTensorShape> shapes,
                                OpTester("FusedBatchNormGradV2")
                                    .UnknownInput(DT_FLOAT, {-1, 3, 5, -1})
                                    .UnknownInput(DT_FLOAT, {2, -1, -1, -1})
                                    .UnknownInput(DT_FLOAT)
                                    .UnknownInput(DT_FLOAT, {4})
                                    .UnknownInput(DT_FLOAT)
                                    .InferShapes());
  EXPECT_EQ(shapes[0].DebugString(), "[2,3,5,4]");
  EXPECT_EQ(shapes[1].DebugString(), "[4]");
  EXPECT_EQ(shapes[2].DebugString(), "[4]");
  EXPECT_EQ(shapes[3].DebugString(), "[0]");
  EXPECT_EQ(shapes[4].DebugString(), "[0]");
}

// ---- Determinism ----

void ExpectGradientHasSameBits(const ImageSizes& sizes, const std::string& format, DataType dtype,
                               uint32_t seed) {
  SCOPED_TRACE(absl::StrCat(sizes.Shape(format).DebugString(), format, DataTypeString(dtype)));
  for (const bool training : {true, false}) {
    const GradientOptions options = {"FusedBatchNormGradV3", format, training};
    Problem p(options, sizes, dtype, -3, 30, seed);
    if (dtype != DT_HALF) {
      p.dy = CancellingTensor(
          dtype, p.x.shape(), sizes.channels,
          [&](int64_t i) { return ChannelOf(sizes, format, i); }, seed);
    }
    OpTester tester = p.Tester(options);
    GRADFLOW_EXPECT_OK(tester.RunEverywhere());
  }
}

TEST(BatchNormGrad, HasTheSameBitsOnAllThreadsAndTargets) {
  std::mt19937 random(6);
  for (int round = 0; round < 100; ++round) {
    const std::string format =
        round % 2 == 0 ? (round % 8 == 0 ? "NDHWC" : "NHWC") : (round % 8 == 1 ? "NCDHW" : "NCHW");
    const DataType dtype = round % 3 == 0 ? DT_FLOAT : round % 3 == 1 ? DT_HALF : DT_BFLOAT16;
    ExpectGradientHasSameBits(RandomSizes(random, round, format), format, dtype, round);
  }
}

TEST(BatchNormGrad, HasTheSameBitsWithThousandsOfChannels) {
  for (const std::string format : {"NHWC", "NCHW"}) {
    ExpectGradientHasSameBits({2, 1, 1, 3, 5000}, format, DT_FLOAT, 1);
  }
}

// Large enough for non-temporal stores.
TEST(BatchNormGrad, HasTheSameBitsWithNonTemporalStores) {
  for (const std::string format : {"NHWC", "NCHW"}) {
    ExpectGradientHasSameBits({64, 1, 32, 32, 48}, format, DT_FLOAT, 1);
    ExpectGradientHasSameBits({128, 1, 32, 32, 48}, format, DT_BFLOAT16, 2);
  }
}

// ---- Errors ----

TEST(BatchNormGrad, RejectsBadShapes) {
  const Tensor x = RandomTensor(DT_FLOAT, {2, 3, 5, 4});
  const Tensor x5 = RandomTensor(DT_FLOAT, {2, 3, 5, 6, 4});
  const Tensor four = Iota<float>({4});
  const Tensor three = Iota<float>({3});
  const GradientOptions v1 = {"FusedBatchNormGrad"};
  const GradientOptions v2 = {"FusedBatchNormGradV2", "NCHW"};
  const GradientOptions v3 = {"FusedBatchNormGradV3", "NCDHW"};
  ExpectErrors({
      {"rank 2",
       Grad(v1, RandomTensor(DT_FLOAT, {2, 4}), RandomTensor(DT_FLOAT, {2, 4}), four, four, four),
       "Shape must be rank 4 but is rank 2: x has shape [2,4]"},
      {"rank 5", Grad(v2, x5, x5, three, three, three), "Shape must be rank 4 but is rank 5: x"},
      {"rank 4", Grad(v3, x, x, three, three, three),
       "Shape must be rank 5 but is rank 4: x has shape [2,3,5,4]"},
      {"dy", Grad(v1, RandomTensor(DT_FLOAT, {2, 3, 5, 3}), x, four, four, four),
       "y_backprop has shape [2,3,5,3], expected [2,3,5,4] (the same shape as x)"},
      {"dy of rank 1", Grad(v1, four, x, four, four, four), "y_backprop has shape [4]"},
      {"scale", Grad(v1, x, x, three, four, four),
       "scale has shape [3], expected [4] (the channels of x [2,3,5,4], NHWC)"},
      {"mean", Grad(v1, x, x, four, AsScalar<float>(1), four),
       "Shape must be rank 1 but is rank 0: reserve_space_1 has shape []"},
      {"variance", Grad(v2, x, x, three, three, four),
       "reserve_space_2 has shape [4], expected [3] (the channels of x [2,3,5,4], NCHW)"},
      {"matrix", Grad(v1, x, x, four, four, RandomTensor(DT_FLOAT, {4, 1})),
       "Shape must be rank 1 but is rank 2: reserve_space_2 has shape [4,1]"},
  });
}

TEST(BatchNormGrad, RejectsTheInputOfAnAdvisory) {
  const Tensor ones = AsTensor<float>({1, 1});
  ExpectErrors({
      {"CVE-2021-41223",
       Grad({"FusedBatchNormGrad", "NCHW", true, 1}, Iota<float>({1, 1, 3, 3}),
            Iota<float>({1, 1, 1, 2}), ones, ones, AsTensor<float>({1, 1, 1})),
       "y_backprop has shape [1,1,3,3], expected [1,1,1,2] (the same shape as x)"},
      {"its vectors",
       Grad({"FusedBatchNormGrad", "NCHW", true, 1}, Iota<float>({1, 1, 1, 2}),
            Iota<float>({1, 1, 1, 2}), ones, ones, AsTensor<float>({1, 1, 1})),
       "scale has shape [2], expected [1] (the channels of x [1,1,1,2], NCHW)"},
  });
}

TEST(BatchNormGrad, RejectsBadAttributes) {
  const GradientOptions options;
  const Problem p(options, {1, 1, 2, 2, 1});
  for (const float epsilon : {-1.0f, kNan, kInf}) {
    OpTester tester = p.Tester({"FusedBatchNormGradV3", "NHWC", true, epsilon});
    const auto error =
        StatusIs(kInvalidArgument, HasSubstr("expected a finite number that is not negative"));
    EXPECT_THAT(tester.MakeKernel(), error);
    EXPECT_THAT(tester.InferShapes(), error);
  }
  EXPECT_THAT(p.Tester({"FusedBatchNormGradV3", "NHW"}).Run(),
              StatusIs(kInvalidArgument, HasSubstr("data_format")));
  EXPECT_THAT(p.Tester({"FusedBatchNormGrad", "NCDHW"}).Run(),
              StatusIs(kInvalidArgument, HasSubstr("data_format")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
