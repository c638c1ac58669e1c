#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/cancelling_tensor.h"
#include "tests/ops/common/error_case.h"
#include "tests/ops/quant/fake_quant_reference.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

OpTester Args(const Tensor& g, const Tensor& x, float min, float max, int num_bits = 8,
              bool narrow = false) {
  return OpTester("FakeQuantWithMinMaxArgsGradient")
      .Inputs({g, x})
      .Attr("min", min)
      .Attr("max", max)
      .Attr("num_bits", num_bits)
      .Attr("narrow_range", narrow);
}

OpTester Vars(const Tensor& g, const Tensor& x, const Tensor& min, const Tensor& max,
              int num_bits = 8, bool narrow = false) {
  return OpTester("FakeQuantWithMinMaxVarsGradient")
      .Inputs({g, x, min, max})
      .Attr("num_bits", num_bits)
      .Attr("narrow_range", narrow);
}
OpTester Vars(const Tensor& g, const Tensor& x, float min, float max, int num_bits = 8,
              bool narrow = false) {
  return Vars(g, x, AsScalar<float>(min), AsScalar<float>(max), num_bits, narrow);
}

OpTester PerChannel(const Tensor& g, const Tensor& x, const Tensor& min, const Tensor& max,
                    int num_bits = 8, bool narrow = false) {
  return OpTester("FakeQuantWithMinMaxVarsPerChannelGradient")
      .Inputs({g, x, min, max})
      .Attr("num_bits", num_bits)
      .Attr("narrow_range", narrow);
}

// A float64 sum and the allowed error of the float sum.
struct Sum {
  void Add(double value) {
    sum += value;
    magnitude += std::abs(value);
  }
  void Check(float found) const { EXPECT_NEAR(found, sum, 4 * std::ldexp(magnitude, -24)); }
  double sum = 0;
  double magnitude = 0;
};

// Checks all three outputs against the formulas: the first output to the bit, the sums within the
// bound. Range c applies to elements c, c + channels, ...
void CheckAgainstFormula(const std::vector<Tensor>& outputs, const Tensor& g, const Tensor& x,
                         const std::vector<QuantRange>& ranges) {
  ASSERT_EQ(outputs.size(), 3u);
  const int64_t channels = ranges.size();
  Tensor backprops(DT_FLOAT, x.shape());
  std::vector<Sum> below(channels);
  std::vector<Sum> above(channels);
  for (int64_t i = 0; i < x.NumElements(); ++i) {
    const int64_t c = i % channels;
    const float gradient = g.flat<float>()(i);
    const float input = x.flat<float>()(i);
    backprops.flat<float>()(i) = ranges[c].Backprop(gradient, input);
    if (ranges[c].Below(input)) below[c].Add(gradient);
    if (ranges[c].Above(input)) above[c].Add(gradient);
  }
  EXPECT_THAT(outputs[0], TensorEq(backprops));
  ASSERT_EQ(outputs[1].NumElements(), channels);
  ASSERT_EQ(outputs[2].NumElements(), channels);
  for (int64_t c = 0; c < channels; ++c) {
    SCOPED_TRACE(absl::StrCat("channel ", c));
    below[c].Check(outputs[1].flat<float>()(c));
    above[c].Check(outputs[2].flat<float>()(c));
  }
}

// ---- Values ----

TEST(FakeQuantGradient, HasKnownValues) {
  // Nudging does not change the range [0, 255].
  const Tensor x = AsTensor<float>({-1, 0, 100, 255, 255.5f, 300});
  const Tensor g = AsTensor<float>({1, 2, 4, 8, 16, 32});
  const Tensor backprops = AsTensor<float>({0, 2, 4, 8, 0, 0});
  EXPECT_THAT(Args(g, x, 0, 255).RunOne(), TensorEq(backprops));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs, Vars(g, x, 0, 255).Run());
  EXPECT_THAT(outputs[0], TensorEq(backprops));
  EXPECT_THAT(outputs[1], TensorEq(AsScalar<float>(1)));
  EXPECT_THAT(outputs[2], TensorEq(AsScalar<float>(48)));

  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> by_channel,
      PerChannel(AsTensor<float>({1, 2, 4, 8, 16, 32}, {2, 3}),
                 AsTensor<float>({-1, 0, 100, 255, 255.5f, 300}, {2, 3}),
                 AsTensor<float>({0, 0, 0}), AsTensor<float>({255, 255, 25.5f}))
          .Run());
  EXPECT_THAT(by_channel[0], TensorEq(AsTensor<float>({0, 2, 0, 8, 0, 0}, {2, 3})));
  EXPECT_THAT(by_channel[1], TensorEq(AsTensor<float>({1, 0, 0})));
  EXPECT_THAT(by_channel[2], TensorEq(AsTensor<float>({0, 16, 36})));
}

TEST(FakeQuantGradient, PassesGradientsWithinTheNudgedRange) {
  const float low = -0.99607849f;
  const float high = 1.00392163f;
  const Tensor x =
      AsTensor<float>({std::nextafter(low, -2.0f), low, -1, 1, high, std::nextafter(high, 2.0f)});
  const Tensor g = AsTensor<float>({1, 1, 1, 1, 1, 1});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs, Vars(g, x, -1, 1).Run());
  EXPECT_THAT(outputs[0], TensorEq(AsTensor<float>({0, 1, 0, 1, 1, 0})));
  EXPECT_THAT(outputs[1], TensorEq(AsScalar<float>(2)));
  EXPECT_THAT(outputs[2], TensorEq(AsScalar<float>(1)));
}

TEST(FakeQuantGradient, FollowsTheFormula) {
  std::mt19937 random(1);
  for (int num_bits = 2; num_bits <= 16; ++num_bits) {
    for (const bool narrow : {false, true}) {
      for (const auto& [min, max] : AllRanges()) {
        SCOPED_TRACE(absl::StrCat(num_bits, narrow ? " narrow" : "", " bits, ", min, " to ", max));
        const QuantRange range(min, max, num_bits, narrow);
        const Tensor x = AsTensor<float>(InterestingInputs(range, 40));
        const Tensor g = RandomTensor(DT_FLOAT, x.shape(), -1, 1, random());
        GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                      Vars(g, x, min, max, num_bits, narrow).Run());
        CheckAgainstFormula(outputs, g, x, {range});
        if (min < max) {
          EXPECT_THAT(Args(g, x, min, max, num_bits, narrow).RunOne(), TensorEq(outputs[0]));
        }
      }
    }
  }
}

TEST(FakeQuantGradient, FollowsTheFormulaPerChannel) {
  std::mt19937 random(2);
  const std::vector<MinMax> all = AllRanges();
  for (const TensorShape& shape :
       {TensorShape({1}), TensorShape({7}), TensorShape({100003}), TensorShape({2, 3}),
        TensorShape({1000, 1}), TensorShape({3001, 3}), TensorShape({513, 7}),
        TensorShape({300, 64}), TensorShape({70, 513}), TensorShape({40, 1000}),
        TensorShape({2, 3, 4, 5}), TensorShape({2, 2, 2, 2, 2, 3}), TensorShape({100000, 9})}) {
    SCOPED_TRACE(shape.DebugString());
    const int64_t channels = shape.dim_size(shape.dims() - 1);
    std::vector<QuantRange> ranges;
    std::vector<float> min;
    std::vector<float> max;
    for (int64_t c = 0; c < channels; ++c) {
      const MinMax range = all[random() % all.size()];
      min.push_back(range.min);
      max.push_back(range.max);
      ranges.emplace_back(range.min, range.max, 4, true);
    }
    const Tensor g = RandomTensor(DT_FLOAT, shape, -1, 2, random());
    const Tensor x = RandomTensor(DT_FLOAT, shape, -8, 8, random());
    GRADFLOW_ASSERT_OK_AND_ASSIGN(
        const std::vector<Tensor> outputs,
        PerChannel(g, x, AsTensor<float>(min), AsTensor<float>(max), 4, true).Run());
    CheckAgainstFormula(outputs, g, x, ranges);
  }
}

// ---- Sums ----

TEST(FakeQuantGradient, SumsManyElementsLikeFloat64) {
  // A float sum of these numbers would be wrong in the third digit.
  const int64_t n = 3000017;
  Tensor g(DT_FLOAT, {n});
  Tensor x(DT_FLOAT, {n});
  std::mt19937 random(3);
  for (int64_t i = 0; i < n; ++i) {
    g.flat<float>()(i) = static_cast<float>(1e4 + (random() / 4294967296.0 - 0.5) * 3.5);
    x.flat<float>()(i) = i % 3 == 0 ? -20.0f : 20.0f;
  }
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                Vars(g, x, -1, 1).RunOnThreads(2));
  CheckAgainstFormula(outputs, g, x, {QuantRange(-1, 1, 8, false)});

  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor g2, g.Slice(0, 3000015).Reshaped({1000005, 3}));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor x2, x.Slice(0, 3000015).Reshaped({1000005, 3}));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> by_channel,
      PerChannel(g2, x2, AsTensor<float>({-1, -6, 0}), AsTensor<float>({1, 6, 1})).RunOnThreads(2));
  CheckAgainstFormula(
      by_channel, g2, x2,
      {QuantRange(-1, 1, 8, false), QuantRange(-6, 6, 8, false), QuantRange(0, 1, 8, false)});
}

TEST(FakeQuantGradient, SumsHaveNoIntermediateOverflow) {
  std::vector<float> g(100, 3e38f);
  for (int i = 0; i < 100; i += 2) g[i + 1] = -3e38f;
  g[0] = 1e38f;
  const Tensor x = AsTensor<float>(std::vector<float>(100, 5));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                Vars(AsTensor<float>(g), x, 0, 1).Run());
  EXPECT_THAT(outputs[2], TensorNear(AsScalar<float>(-2e38f), 0, 1e-6));
}

TEST(FakeQuantGradient, IsLinearInTheGradients) {
  // Sums of integers are exact.
  std::mt19937 random(4);
  const TensorShape shape({700, 12});
  Tensor a(DT_FLOAT, shape);
  Tensor b(DT_FLOAT, shape);
  Tensor both(DT_FLOAT, shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    a.flat<float>()(i) = static_cast<float>(random() % 201) - 100;
    b.flat<float>()(i) = static_cast<float>(random() % 201) - 100;
    both.flat<float>()(i) = a.flat<float>()(i) - 3 * b.flat<float>()(i);
  }
  const Tensor x = RandomTensor(DT_FLOAT, shape, -3, 3);
  const Tensor min = RandomTensor(DT_FLOAT, {12}, -2, 0);
  const Tensor max = RandomTensor(DT_FLOAT, {12}, 0.5, 2);
  const auto check = [&](auto run) {
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> of_a, run(a));
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> of_b, run(b));
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> of_both, run(both));
    for (int o = 0; o < 3; ++o) {
      for (int64_t i = 0; i < of_a[o].NumElements(); ++i) {
        ASSERT_EQ(of_both[o].flat<float>()(i),
                  of_a[o].flat<float>()(i) - 3 * of_b[o].flat<float>()(i));
      }
    }
  };
  check([&](const Tensor& g) { return Vars(g, x, -1, 2).Run(); });
  check([&](const Tensor& g) { return PerChannel(g, x, min, max).Run(); });
}

// The op differentiates as if it only clipped to the range, which is exact for a range without
// nudging.
TEST(FakeQuantGradient, AgreesWithDifferencesOfClipping) {
  const double min = -10;
  const double max = 53.75;
  const Tensor x = RandomTensor(DT_FLOAT, {200}, -40, 90);
  const Tensor g = RandomTensor(DT_FLOAT, {200});
  const auto loss = [&](int64_t moved, double by, double low, double high) {
    double sum = 0;
    for (int64_t i = 0; i < 200; ++i) {
      const double value = x.flat<float>()(i) + (i == moved ? by : 0);
      sum += g.flat<float>()(i) * std::max(std::min(value, high), low);
    }
    return sum;
  };
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                Vars(g, x, static_cast<float>(min), static_cast<float>(max)).Run());
  const double h = 1e-4;
  for (int64_t i = 0; i < 200; ++i) {
    const double difference = (loss(i, h, min, max) - loss(i, -h, min, max)) / (2 * h);
    EXPECT_NEAR(outputs[0].flat<float>()(i), difference, 1e-6);
  }
  EXPECT_NEAR(outputs[1].scalar<float>()(),
              (loss(-1, 0, min + h, max) - loss(-1, 0, min - h, max)) / (2 * h), 1e-6);
  EXPECT_NEAR(outputs[2].scalar<float>()(),
              (loss(-1, 0, min, max + h) - loss(-1, 0, min, max - h)) / (2 * h), 1e-6);
}

// ---- Special numbers and ranges ----

TEST(FakeQuantGradient, NaNInputIsInNoRange) {
  const Tensor x = AsTensor<float>({kNan, -kNan, 0});
  const Tensor g = AsTensor<float>({5, -7, 2});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs, Vars(g, x, -1, 1).Run());
  EXPECT_THAT(outputs[0], TensorEq(AsTensor<float>({0, -0.0f, 2})));
  EXPECT_THAT(outputs[1], TensorEq(AsScalar<float>(0)));
  EXPECT_THAT(outputs[2], TensorEq(AsScalar<float>(0)));
  EXPECT_THAT(Args(g, x, -1, 1).RunOne(), TensorEq(outputs[0]));
  const Tensor low = AsTensor<float>({-1, -1, -1});
  const Tensor high = AsTensor<float>({1, 1, 1});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> by_channel,
                                PerChannel(g, x, low, high).Run());
  EXPECT_THAT(by_channel[0], TensorEq(outputs[0]));
  EXPECT_THAT(by_channel[1], TensorEq(AsTensor<float>({0, 0, 0})));
  EXPECT_THAT(by_channel[2], TensorEq(AsTensor<float>({0, 0, 0})));
}

TEST(FakeQuantGradient, MaskMultipliesInfinityAndNaN) {
  const Tensor x = AsTensor<float>({9, 9, -9, -9, 0, 0});
  const Tensor g = AsTensor<float>({kNan, kInf, -kInf, -3, kInf, kNan});
  const Tensor expected = AsTensor<float>({kNan, kNan, kNan, -0.0f, kInf, kNan});
  EXPECT_THAT(Args(g, x, -1, 1).RunOne(), TensorEq(expected));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs, Vars(g, x, -1, 1).Run());
  EXPECT_THAT(outputs[0], TensorEq(expected));
  EXPECT_THAT(outputs[1], TensorEq(AsScalar<float>(kNan)));
  EXPECT_THAT(outputs[2], TensorEq(AsScalar<float>(kNan)));
}

// The sums add every gradient times its mask, so infinity makes a sum NaN even if the mask is 0.
// Tests every position: full vectors, their remainders, single elements and single rows.
TEST(FakeQuantGradient, SumsMultiplyByTheMask) {
  constexpr int64_t kRows = 21;
  constexpr int64_t kChannels = 19;
  const std::vector<float> low(kChannels, -1);
  const std::vector<float> high(kChannels, 1);
  for (int64_t i = 0; i < kRows * kChannels; ++i) {
    const float bad = i % 3 == 0 ? kNan : i % 3 == 1 ? kInf : -kInf;
    const float x_there = i % 5 == 0 ? -9.0f : i % 5 == 1 ? 9.0f : i % 5 == 2 ? kNan : 0.5f;
    std::vector<float> gradients(kRows * kChannels, 1);
    std::vector<float> inputs(kRows * kChannels, 0);
    gradients[i] = bad;
    inputs[i] = x_there;
    const Tensor g = AsTensor<float>(gradients, {kRows, kChannels});
    const Tensor x = AsTensor<float>(inputs, {kRows, kChannels});
    const float below = x_there < -1 ? bad : kNan;
    const float above = x_there > 1 ? bad : kNan;
    SCOPED_TRACE(absl::StrCat("element ", i));
    OpTester vars = Vars(g, x, -1, 1);
    OpTester per_channel = PerChannel(g, x, AsTensor<float>(low), AsTensor<float>(high));
    if (i % 37 == 0) {
      GRADFLOW_EXPECT_OK(vars.RunEverywhere());
      GRADFLOW_EXPECT_OK(per_channel.RunEverywhere());
    }
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs, vars.Run());
    EXPECT_THAT(outputs[1], TensorEq(AsScalar<float>(below)));
    EXPECT_THAT(outputs[2], TensorEq(AsScalar<float>(above)));
    std::vector<float> channel_below(kChannels, 0);
    std::vector<float> channel_above(kChannels, 0);
    channel_below[i % kChannels] = below;
    channel_above[i % kChannels] = above;
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> by_channel, per_channel.Run());
    EXPECT_THAT(by_channel[1], TensorEq(AsTensor<float>(channel_below)));
    EXPECT_THAT(by_channel[2], TensorEq(AsTensor<float>(channel_above)));
  }
}

// Like SumsMultiplyByTheMask, but with the sums of several blocks, and with a single row.
TEST(FakeQuantGradient, SumsOfSeveralBlocksMultiplyByTheMask) {
  struct Case {
    int64_t rows;
    int64_t channels;
  };
  for (const Case& c : {Case{3001, 129}, Case{70001, 3}, Case{1, 2100}, Case{300, 1100}}) {
    SCOPED_TRACE(absl::StrCat("[", c.rows, ",", c.channels, "]"));
    const int64_t size = c.rows * c.channels;
    for (const int64_t i : {int64_t{0}, size / 2 + 1, size - 1}) {
      std::vector<float> gradients(size, 1);
      gradients[i] = kInf;
      const Tensor g = AsTensor<float>(gradients, {c.rows, c.channels});
      const Tensor x = AsTensor<float>(std::vector<float>(size, 0.5f), {c.rows, c.channels});
      OpTester vars = Vars(g, x, -1, 1);
      OpTester per_channel = PerChannel(g, x, AsTensor<float>(std::vector<float>(c.channels, -1)),
                                        AsTensor<float>(std::vector<float>(c.channels, 1)));
      GRADFLOW_EXPECT_OK(vars.RunEverywhere());
      GRADFLOW_EXPECT_OK(per_channel.RunEverywhere());
      std::vector<float> sums(c.channels, 0);
      sums[i % c.channels] = kNan;
      for (int output : {1, 2}) {
        GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs, vars.Run());
        EXPECT_THAT(outputs[output], TensorEq(AsScalar<float>(kNan)));
        GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> by_channel, per_channel.Run());
        EXPECT_THAT(by_channel[output], TensorEq(AsTensor<float>(sums)));
      }
    }
  }
}

TEST(FakeQuantGradient, SumsBeyondFloatAreInfiniteOnAllTargets) {
  for (const std::vector<float>& g :
       {std::vector<float>{kInf}, std::vector<float>{3e38f, 3e38f},
        std::vector<float>{-3e38f, -3e38f}, std::vector<float>{3.4028235e38f, 1e30f},
        std::vector<float>(200, 1e37f)}) {
    const auto size = static_cast<int64_t>(g.size());
    const Tensor gradients = AsTensor<float>(g, {size, 1});
    const Tensor x = AsTensor<float>(std::vector<float>(g.size(), 9), {size, 1});
    OpTester vars = Vars(gradients, x, -1, 1);
    GRADFLOW_EXPECT_OK(vars.RunEverywhere());
    OpTester per_channel = PerChannel(gradients, x, AsTensor<float>({-1}), AsTensor<float>({1}));
    GRADFLOW_EXPECT_OK(per_channel.RunEverywhere());
    double sum = 0;
    for (const float value : g) sum += value;
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs, vars.Run());
    EXPECT_THAT(outputs[2], TensorEq(AsScalar<float>(static_cast<float>(sum))));
  }
}

TEST(FakeQuantGradient, ZeroRangePassesAllGradients) {
  const Tensor x = AsTensor<float>({-5, 0, 5, kNan});
  const Tensor g = AsTensor<float>({1, -2, kInf, 4});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs, Vars(g, x, 0, 0).Run());
  EXPECT_THAT(outputs[0], TensorEq(g));
  EXPECT_THAT(outputs[1], TensorEq(AsScalar<float>(0)));
  EXPECT_THAT(outputs[2], TensorEq(AsScalar<float>(0)));
  // Channels with a zero range pass all gradients; the other channels do not.
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> by_channel,
      PerChannel(g, x, AsTensor<float>({0, -1, -1, 0}), AsTensor<float>({0, 1, 1, -0.0f})).Run());
  EXPECT_THAT(by_channel[0], TensorEq(AsTensor<float>({1, -2, kNan, 4})));
  EXPECT_THAT(by_channel[1], TensorEq(AsTensor<float>({0, 0, kNan, 0})));
  EXPECT_THAT(by_channel[2], TensorEq(AsTensor<float>({0, 0, kInf, 0})));
  // This includes gradients whose products with 0 are NaN, for each loop order over channels.
  for (const int64_t rows : {1, 5, 40}) {
    const Tensor inf = AsTensor<float>(std::vector<float>(rows * 3, kInf), {rows, 3});
    const Tensor zeros = AsTensor<float>({0, 0, 0});
    OpTester all = PerChannel(inf, inf, zeros, zeros);
    GRADFLOW_EXPECT_OK(all.RunEverywhere());
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> passed, all.Run());
    EXPECT_THAT(passed[0], TensorEq(inf));
    EXPECT_THAT(passed[1], TensorEq(zeros));
    EXPECT_THAT(passed[2], TensorEq(zeros));
  }
}

TEST(FakeQuantGradient, ReversedRangeContainsNoNumber) {
  // The range is nudged to about [1, -1]. A number in between counts both as below and as above.
  const Tensor x = AsTensor<float>({-5, 0, 5});
  const Tensor g = AsTensor<float>({1, 2, 4});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs, Vars(g, x, 1, -1).Run());
  EXPECT_THAT(outputs[0], TensorEq(AsTensor<float>({0, 0, 0})));
  EXPECT_THAT(outputs[1], TensorEq(AsScalar<float>(3)));
  EXPECT_THAT(outputs[2], TensorEq(AsScalar<float>(6)));
}

TEST(FakeQuantGradient, RangeOfOnePointPassesGradientsOfZeros) {
  const Tensor x = AsTensor<float>({-5, -0.0f, 0, 2, 5});
  const Tensor g = AsTensor<float>({1, 2, 4, 8, 16});
  for (const float end : {2.0f, -2.0f}) {
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs, Vars(g, x, end, end).Run());
    EXPECT_THAT(outputs[0], TensorEq(AsTensor<float>({0, 2, 4, 0, 0})));
    EXPECT_THAT(outputs[1], TensorEq(AsScalar<float>(1)));
    EXPECT_THAT(outputs[2], TensorEq(AsScalar<float>(24)));
  }
}

TEST(FakeQuantGradient, GradientsAndInputsMayBeOneTensor) {
  const Tensor x = RandomTensor(DT_FLOAT, {1000, 5}, -3, 3);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs, Vars(x, x, -1, 1).Run());
  CheckAgainstFormula(outputs, x, x, {QuantRange(-1, 1, 8, false)});
  const Tensor min = AsTensor<float>({-1, -1, -1, -1, -1});
  const Tensor max = AsTensor<float>({1, 1, 1, 1, 1});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> by_channel,
                                PerChannel(x, x, min, max).Run());
  EXPECT_THAT(by_channel[0], TensorEq(outputs[0]));
}

TEST(FakeQuantGradient, ReusesTheMemoryOfTheGradients) {
  Tensor inputs[] = {RandomTensor(DT_FLOAT, {50}), RandomTensor(DT_FLOAT, {50}),
                     AsScalar<float>(-1), AsScalar<float>(1)};
  const void* memory = inputs[0].raw_data();
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const OpRegistration* op,
                                GlobalRegistry().LookUpOp("FakeQuantWithMinMaxVarsGradient"));
  NodeDef node;
  node.set_op(op->def().name());
  AddNodeAttr("num_bits", 8, &node);
  AddNodeAttr("narrow_range", false, &node);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const KernelRegistration* kernel,
                                GlobalRegistry().FindKernel(node));
  const DataTypeVector input_types(4, DT_FLOAT);
  const DataTypeVector output_types(3, DT_FLOAT);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<OpKernel> gradient,
      kernel->factory(KernelConstruction(node, op->def(), input_types, output_types)));
  Tensor outputs[3];
  const RunContext run;
  KernelContext context(absl::MakeSpan(inputs), absl::MakeSpan(outputs), output_types, run);
  GRADFLOW_ASSERT_OK(gradient->Compute(context));
  EXPECT_EQ(outputs[0].raw_data(), memory);
}

// ---- Shapes ----

TEST(FakeQuantGradient, EmptyInputHasNoGradient) {
  for (const TensorShape& shape : {TensorShape({0}), TensorShape({0, 3}), TensorShape({2, 0, 3})}) {
    const Tensor empty(DT_FLOAT, shape);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                  Vars(empty, empty, -1, 1).Run());
    EXPECT_THAT(outputs[0], TensorEq(empty));
    EXPECT_THAT(outputs[1], TensorEq(AsScalar<float>(0)));
    EXPECT_THAT(outputs[2], TensorEq(AsScalar<float>(0)));
    EXPECT_THAT(Args(empty, empty, -1, 1).RunOne(), TensorEq(empty));
  }
  const Tensor no_rows(DT_FLOAT, {0, 3});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> outputs,
      PerChannel(no_rows, no_rows, Iota<float>({3}), Iota<float>({3})).Run());
  EXPECT_THAT(outputs[0], TensorEq(no_rows));
  EXPECT_THAT(outputs[1], TensorEq(AsTensor<float>({0, 0, 0})));
  EXPECT_THAT(outputs[2], TensorEq(AsTensor<float>({0, 0, 0})));
  const Tensor no_channels(DT_FLOAT, {3, 0});
  const Tensor none(DT_FLOAT, {0});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> nothing,
                                PerChannel(no_channels, no_channels, none, none).Run());
  EXPECT_THAT(nothing[0], TensorEq(no_channels));
  EXPECT_THAT(nothing[1], TensorEq(none));
  EXPECT_THAT(nothing[2], TensorEq(none));
}

TEST(FakeQuantGradient, InfersShapesFromBothInputs) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<PartialTensorShape> shapes,
                                OpTester("FakeQuantWithMinMaxVarsPerChannelGradient")
                                    .UnknownInput(DT_FLOAT, {2, -1, -1})
                                    .UnknownInput(DT_FLOAT, {-1, 3, -1})
                                    .UnknownInput(DT_FLOAT)
                                    .UnknownInput(DT_FLOAT, {4})
                                    .InferShapes());
  EXPECT_EQ(shapes[0].DebugString(), "[2,3,4]");
  EXPECT_EQ(shapes[1].DebugString(), "[4]");
  EXPECT_EQ(shapes[2].DebugString(), "[4]");
}

// ---- The same bits everywhere ----

TEST(FakeQuantGradient, HasTheSameBitsOnAllThreadsAndTargets) {
  std::mt19937 random(7);
  for (int round = 0; round < 70; ++round) {
    const int64_t channels = 1 + random() % (round % 3 == 0 ? 2000 : 70);
    const int64_t rows = 1 + random() % ((round % 10 == 0 ? 4000000 : 60000) / channels + 1);
    SCOPED_TRACE(absl::StrCat("[", rows, ",", channels, "]"));
    const TensorShape shape({rows, channels});
    // Nearly all inputs are outside of the range on one side, so one sum has the gradients that
    // cancel.
    const Tensor x = round % 2 == 0 ? RandomTensor(DT_FLOAT, shape, -9, -3, round)
                                    : RandomTensor(DT_FLOAT, shape, 2, 9, round);
    const Tensor g = CancellingTensor(
        DT_FLOAT, shape, channels, [&](int64_t i) { return i % channels; }, round);
    const int num_bits = 2 + round % 15;
    OpTester args = Args(g, x, -2, 1, num_bits);
    GRADFLOW_EXPECT_OK(args.RunEverywhere());
    OpTester vars = Vars(g, x, -2, 1, num_bits);
    GRADFLOW_EXPECT_OK(vars.RunEverywhere());
    OpTester per_channel =
        PerChannel(g, x, RandomTensor(DT_FLOAT, {channels}, -2, 1),
                   RandomTensor(DT_FLOAT, {channels}, -1, 2, 5), num_bits, round % 2 == 0);
    GRADFLOW_EXPECT_OK(per_channel.RunEverywhere());
  }
}

// ---- Errors ----

TEST(FakeQuantGradient, RejectsBadShapes) {
  const Tensor scalar = AsScalar<float>(1);
  const Tensor x = Iota<float>({2, 4});
  const Tensor four = Iota<float>({4});
  ExpectErrors({
      {"sizes differ", Args(four, x, -1, 1),
       "gradients has shape [4], expected [2,4] (the same shape as inputs)"},
      {"shapes differ", Args(Iota<float>({4, 2}), x, -1, 1), "gradients has shape [4,2]"},
      {"sizes differ", Vars(x, four, scalar, scalar), "gradients has shape [2,4], expected [4]"},
      {"sizes differ", PerChannel(x, four, four, four), "gradients has shape [2,4], expected [4]"},
      {"min", Vars(x, x, four, scalar), "min has shape [4], expected []"},
      {"max", Vars(x, x, scalar, AsTensor<float>({1})), "max has shape [1], expected []"},
      {"no channels", PerChannel(scalar, scalar, four, four), "inputs has shape [], expected rank"},
      {"scalar min", PerChannel(x, x, scalar, four), "min has shape [], expected [4]"},
      {"short max", PerChannel(x, x, four, Iota<float>({3})), "max has shape [3], expected [4]"},
  });
}

TEST(FakeQuantGradient, RejectsTheInputsOfAdvisories) {
  const Tensor square = RandomTensor(DT_FLOAT, {2, 2});
  const Tensor one = RandomTensor(DT_FLOAT, {1, 1});
  ExpectErrors({
      {"CVE-2022-36005", Vars(square, square, square, square), "min has shape [2,2], expected []"},
      {"CVE-2022-35990", PerChannel(one, one, one, one), "min has shape [1,1], expected [1]"},
  });
}

TEST(FakeQuantGradient, RejectsBadAttributes) {
  const Tensor x = AsTensor<float>({1});
  const Tensor scalar = AsScalar<float>(1);
  std::vector<ErrorCase> cases;
  for (const int num_bits : {-8, 0, 1, 17}) {
    cases.push_back({"num_bits", Args(x, x, -1, 1, num_bits), "expected 2 to 16"});
    cases.push_back({"num_bits", Vars(x, x, scalar, scalar, num_bits), "expected 2 to 16"});
    cases.push_back({"num_bits", PerChannel(x, x, x, x, num_bits), "expected 2 to 16"});
  }
  cases.push_back({"order", Args(x, x, 1, 1), "min is 1, expected less than max, which is 1"});
  cases.push_back({"NaN", Args(x, x, 1, kNan), "max is nan, expected a finite number"});
  for (ErrorCase& c : cases) {
    SCOPED_TRACE(c.what);
    EXPECT_THAT(c.tester.MakeKernel(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
    EXPECT_THAT(c.tester.InferShapes(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
}

TEST(FakeQuantGradient, RejectsRangesThatAreNotFinite) {
  const Tensor x = AsTensor<float>({1, 2});
  EXPECT_THAT(Vars(x, x, kNan, 1).Run(),
              StatusIs(kInvalidArgument, "min is nan, expected a finite number"));
  EXPECT_THAT(Vars(x, x, 0, -kInf).Run(),
              StatusIs(kInvalidArgument, "max is -inf, expected a finite number"));
  EXPECT_THAT(PerChannel(x, x, x, AsTensor<float>({1, kInf})).Run(),
              StatusIs(kInvalidArgument, "max[1] is inf, expected a finite number"));
  // The error reports the first bad element, and checks min before max.
  const Tensor many = Iota<float>({100000});
  Tensor min = Iota<float>({100000});
  min.flat<float>()(70000) = kNan;
  min.flat<float>()(99999) = kInf;
  EXPECT_THAT(PerChannel(many, many, min, min).Run(),
              StatusIs(kInvalidArgument, "min[70000] is nan, expected a finite number"));
}

TEST(FakeQuantGradient, EmptyInputOfManyChannelsHasNoGradient) {
  const Tensor empty(DT_FLOAT, {0, 100000});
  const Tensor range = Iota<float>({100000});
  Tensor zeros(DT_FLOAT, {100000});
  zeros.flat<float>().setZero();
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                PerChannel(empty, empty, range, range).Run());
  EXPECT_THAT(outputs[1], TensorEq(zeros));
  EXPECT_THAT(outputs[2], TensorEq(zeros));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
