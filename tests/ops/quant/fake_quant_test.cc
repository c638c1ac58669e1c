#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/cancelling_tensor.h"
#include "tests/ops/common/error_case.h"
#include "tests/ops/quant/fake_quant_reference.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

OpTester Args(const Tensor& inputs, float min, float max, int num_bits = 8, bool narrow = false) {
  return OpTester("FakeQuantWithMinMaxArgs")
      .Input(inputs)
      .Attr("min", min)
      .Attr("max", max)
      .Attr("num_bits", num_bits)
      .Attr("narrow_range", narrow);
}

OpTester Vars(const Tensor& inputs, const Tensor& min, const Tensor& max, int num_bits = 8,
              bool narrow = false) {
  return OpTester("FakeQuantWithMinMaxVars")
      .Input(inputs)
      .Input(min)
      .Input(max)
      .Attr("num_bits", num_bits)
      .Attr("narrow_range", narrow);
}

OpTester PerChannel(const Tensor& inputs, const Tensor& min, const Tensor& max, int num_bits = 8,
                    bool narrow = false) {
  return OpTester("FakeQuantWithMinMaxVarsPerChannel")
      .Input(inputs)
      .Input(min)
      .Input(max)
      .Attr("num_bits", num_bits)
      .Attr("narrow_range", narrow);
}

// ---- Published values ----

struct Golden {
  MinMax range;
  bool narrow;
  std::vector<float> inputs;
  std::vector<float> outputs;
};

std::vector<Golden> Goldens() {
  return {
      // Steps of 1, with zero at 0.
      {{0, 255},
       false,
       {-0.1f, 0.49f, 0.5f, 1.5f, 254.4f, 254.5f, 255.1f, 300},
       {0, 0, 1, 2, 254, 255, 255, 255}},
      // Steps of 0.25.
      {{-10, 53.75},
       false,
       {-10.1f, -10, -9.9f, -9.8f, 0, 0.124f, 0.126f, 53.8f},
       {-10, -10, -10, -9.75f, 0, 0, 0.25f, 53.75f}},
      {{-10, 53.5},
       true,
       {-10.1f, -9.9f, 0, 0.13f, 53.49f, 60},
       {-10, -10, 0, 0.25f, 53.5f, 53.5f}},
      // Published examples of nudging.
      {{-1, 1}, false, {-2, 0, 2}, {-0.99607849f, 0, 1.00392163f}},
      {{-6, 6}, false, {-7, 0, 7}, {-6.02352953f, 0, 5.97647047f}},
      {{12, 123}, false, {-5, 0, 111.5f, 123}, {0, 0, 111, 111}},
      {{-123, -12}, false, {-130, -111, -12, 0, 5}, {-111, -111, -12.1882353f, 0, 0}},
      {{-1, 1}, true, {-2, 0, 2}, {-1, 0, 1}},
  };
}

TEST(FakeQuant, HasKnownValues) {
  for (const Golden& golden : Goldens()) {
    SCOPED_TRACE(absl::StrCat("range ", golden.range.min, " ", golden.range.max));
    const Tensor inputs = AsTensor<float>(golden.inputs);
    const Tensor expected = AsTensor<float>(golden.outputs);
    const auto [min, max] = golden.range;
    EXPECT_THAT(Args(inputs, min, max, 8, golden.narrow).RunOne(), TensorNear(expected, 0, 2e-7));
    EXPECT_THAT(Vars(inputs, AsScalar<float>(min), AsScalar<float>(max), 8, golden.narrow).RunOne(),
                TensorNear(expected, 0, 2e-7));
    const int64_t n = inputs.NumElements();
    EXPECT_THAT(PerChannel(inputs, AsTensor<float>(std::vector<float>(n, min)),
                           AsTensor<float>(std::vector<float>(n, max)), 8, golden.narrow)
                    .RunOne(),
                TensorNear(expected, 0, 2e-7));
  }
}

TEST(FakeQuant, HasTheDocumentedNudgedEndsToTheBit) {
  EXPECT_THAT(Args(AsTensor<float>({-100, 100}), -1, 1).RunOne(),
              TensorEq(AsTensor<float>({-0.99607849f, 1.00392163f})));
  EXPECT_THAT(Args(AsTensor<float>({-100, 100}), -6, 6).RunOne(),
              TensorEq(AsTensor<float>({-6.02352953f, 5.97647047f})));
  EXPECT_THAT(Args(AsTensor<float>({-100, 200}), 12, 123).RunOne(),
              TensorEq(AsTensor<float>({0, 111})));
}

TEST(FakeQuant, UsesTheDefaultsOfItsAttributes) {
  EXPECT_THAT(OpTester("FakeQuantWithMinMaxArgs").Input(AsTensor<float>({-7, 0, 7})).RunOne(),
              TensorEq(AsTensor<float>({-6.02352953f, 0, 5.97647047f})));
}

// ---- The formula, to the bit ----

TEST(FakeQuant, ArgsFollowTheFormulaToTheBit) {
  for (int num_bits = 2; num_bits <= 16; ++num_bits) {
    for (const bool narrow : {false, true}) {
      for (const auto& [min, max] : OrderedRanges()) {
        SCOPED_TRACE(absl::StrCat(num_bits, narrow ? " narrow" : "", " bits, ", min, " to ", max));
        const QuantRange range(min, max, num_bits, narrow);
        const std::vector<float> inputs = InterestingInputs(range, 300);
        std::vector<float> expected;
        expected.reserve(inputs.size());
        for (const float x : inputs) expected.push_back(range.Forward(x, /*divide=*/false));
        EXPECT_THAT(Args(AsTensor<float>(inputs), min, max, num_bits, narrow).RunOne(),
                    TensorEq(AsTensor<float>(expected)));
      }
    }
  }
}

TEST(FakeQuant, VarsFollowTheFormulaToTheBit) {
  for (int num_bits = 2; num_bits <= 16; ++num_bits) {
    for (const bool narrow : {false, true}) {
      for (const auto& [min, max] : AllRanges()) {
        SCOPED_TRACE(absl::StrCat(num_bits, narrow ? " narrow" : "", " bits, ", min, " to ", max));
        const QuantRange range(min, max, num_bits, narrow);
        const std::vector<float> inputs = InterestingInputs(range, 300);
        std::vector<float> expected;
        expected.reserve(inputs.size());
        for (const float x : inputs) expected.push_back(range.Forward(x, /*divide=*/true));
        EXPECT_THAT(Vars(AsTensor<float>(inputs), AsScalar<float>(min), AsScalar<float>(max),
                         num_bits, narrow)
                        .RunOne(),
                    TensorEq(AsTensor<float>(expected)));
      }
    }
  }
}

// Each channel has another range, so that vectors contain several ranges.
TEST(FakeQuant, PerChannelFollowsTheFormulaToTheBit) {
  const std::vector<MinMax> all = AllRanges();
  for (const size_t channels : {size_t{1}, size_t{2}, size_t{5}, all.size()}) {
    for (int num_bits = 2; num_bits <= 16; ++num_bits) {
      const bool narrow = num_bits % 2 == 1;
      SCOPED_TRACE(absl::StrCat(channels, " channels, ", num_bits, " bits"));
      std::vector<float> min;
      std::vector<float> max;
      std::vector<QuantRange> ranges;
      std::vector<std::vector<float>> columns;
      for (size_t c = 0; c < channels; ++c) {
        const MinMax& range = all[(c + num_bits) % all.size()];
        min.push_back(range.min);
        max.push_back(range.max);
        ranges.emplace_back(range.min, range.max, num_bits, narrow);
        columns.push_back(InterestingInputs(ranges.back(), 100));
      }
      const int64_t rows = columns[0].size();
      std::vector<float> inputs;
      std::vector<float> expected;
      for (int64_t r = 0; r < rows; ++r) {
        for (size_t c = 0; c < channels; ++c) {
          inputs.push_back(columns[c][r]);
          expected.push_back(ranges[c].Forward(columns[c][r], /*divide=*/false));
        }
      }
      const TensorShape shape({rows, static_cast<int64_t>(channels)});
      EXPECT_THAT(PerChannel(AsTensor<float>(inputs, shape), AsTensor<float>(min),
                             AsTensor<float>(max), num_bits, narrow)
                      .RunOne(),
                  TensorEq(AsTensor<float>(expected, shape)));
    }
  }
}

// Tests every 4,001st float.
TEST(FakeQuant, FollowsTheFormulaForFloatsOfAllSizes) {
  std::vector<float> inputs;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 4001) {
    const uint32_t word = static_cast<uint32_t>(bits);
    float value;
    std::memcpy(&value, &word, sizeof(value));
    inputs.push_back(value);
  }
  const QuantRange range(-1, 1, 8, false);
  std::vector<float> divided;
  std::vector<float> multiplied;
  for (const float x : inputs) {
    divided.push_back(range.Forward(x, true));
    multiplied.push_back(range.Forward(x, false));
  }
  const Tensor tensor = AsTensor<float>(inputs);
  EXPECT_THAT(Vars(tensor, AsScalar<float>(-1), AsScalar<float>(1)).RunOne(),
              TensorEq(AsTensor<float>(divided)));
  EXPECT_THAT(Args(tensor, -1, 1).RunOne(), TensorEq(AsTensor<float>(multiplied)));
}

TEST(FakeQuant, OpsDifferHalfwayBetweenLevels) {
  const QuantRange range(-1, 1, 8, false);
  std::vector<float> inputs;
  for (int level = -127; level < 128; ++level) inputs.push_back((level + 0.5f) * range.scale);
  const Tensor tensor = AsTensor<float>(inputs);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor divided,
                                Vars(tensor, AsScalar<float>(-1), AsScalar<float>(1)).RunOne());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor multiplied, Args(tensor, -1, 1).RunOne());
  int differ = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const float difference = divided.flat<float>()(i) - multiplied.flat<float>()(i);
    if (difference == 0) continue;
    ++differ;
    EXPECT_NEAR(std::abs(difference), range.scale, 1e-6);
  }
  EXPECT_GT(differ, 0);
  EXPECT_LT(differ, 80);
}

TEST(FakeQuant, MapsZeroToZero) {
  for (const auto& [min, max] : OrderedRanges()) {
    // The formula overflows and returns NaN.
    if (max - min == kInf || max - min < 1e-40f) continue;
    for (int num_bits = 2; num_bits <= 16; ++num_bits) {
      SCOPED_TRACE(absl::StrCat(num_bits, " bits, ", min, " to ", max));
      const Tensor zero = AsTensor<float>({0});
      EXPECT_THAT(Args(zero, min, max, num_bits).RunOne(), TensorEq(zero));
      EXPECT_THAT(Vars(zero, AsScalar<float>(min), AsScalar<float>(max), num_bits).RunOne(),
                  TensorEq(zero));
      EXPECT_THAT(
          PerChannel(zero, AsTensor<float>({min}), AsTensor<float>({max}), num_bits).RunOne(),
          TensorEq(zero));
    }
  }
}

TEST(FakeQuant, ZeroRangeReturnsZeros) {
  const Tensor inputs = AsTensor<float>({-1, 0, 3, kInf, kNan, -kNan});
  const Tensor zeros = AsTensor<float>({0, 0, 0, 0, 0, 0});
  EXPECT_THAT(Vars(inputs, AsScalar<float>(0), AsScalar<float>(0)).RunOne(), TensorEq(zeros));
  EXPECT_THAT(Vars(inputs, AsScalar<float>(-0.0f), AsScalar<float>(0)).RunOne(), TensorEq(zeros));
  // Channels with a zero range are 0; the other channels are computed as usual.
  EXPECT_THAT(PerChannel(inputs, AsTensor<float>({0, 0, 0, -1, 0, -1}),
                         AsTensor<float>({0, 255, 0, 1, 0, 1}))
                  .RunOne(),
              TensorEq(AsTensor<float>({0, 0, 0, 1.00392163f, 0, kNan})));
}

TEST(FakeQuant, KeepsNaN) {
  const Tensor inputs = AsTensor<float>({kNan, 1, -kNan});
  const Tensor expected = AsTensor<float>({kNan, 1, kNan});
  EXPECT_THAT(Args(inputs, 0, 255).RunOne(), TensorEq(expected));
  EXPECT_THAT(Vars(inputs, AsScalar<float>(0), AsScalar<float>(255)).RunOne(), TensorEq(expected));
  EXPECT_THAT(
      PerChannel(inputs, AsTensor<float>({0, 0, 0}), AsTensor<float>({255, 255, 255})).RunOne(),
      TensorEq(expected));
}

TEST(FakeQuant, EqualEndsOtherThanZeroGiveNaN) {
  EXPECT_THAT(Vars(AsTensor<float>({-1, 0, 2, 3}), AsScalar<float>(2), AsScalar<float>(2)).RunOne(),
              TensorEq(AsTensor<float>({kNan, kNan, kNan, kNan})));
}

// ---- Shapes ----

TEST(FakeQuant, TakesAnyShape) {
  for (const TensorShape& shape :
       {TensorShape({}), TensorShape({0}), TensorShape({1}), TensorShape({2, 0, 3}),
        TensorShape({17}), TensorShape({2, 3, 4, 5, 6}), TensorShape({40000})}) {
    SCOPED_TRACE(shape.DebugString());
    const Tensor inputs = RandomTensor(DT_FLOAT, shape, -3, 3);
    const QuantRange range(-2, 2, 4, false);
    Tensor divided(DT_FLOAT, shape);
    Tensor multiplied(DT_FLOAT, shape);
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      divided.flat<float>()(i) = range.Forward(inputs.flat<float>()(i), true);
      multiplied.flat<float>()(i) = range.Forward(inputs.flat<float>()(i), false);
    }
    EXPECT_THAT(Args(inputs, -2, 2, 4).RunOne(), TensorEq(multiplied));
    EXPECT_THAT(Vars(inputs, AsScalar<float>(-2), AsScalar<float>(2), 4).RunOne(),
                TensorEq(divided));
  }
}

TEST(FakeQuant, TakesAnyRankPerChannel) {
  for (const TensorShape& shape :
       {TensorShape({0}), TensorShape({1}), TensorShape({3}), TensorShape({100003}),
        TensorShape({5, 0}), TensorShape({0, 5}), TensorShape({1000, 1}), TensorShape({301, 3}),
        TensorShape({511, 7}), TensorShape({33, 64}), TensorShape({7, 1000}),
        TensorShape({2, 3, 4, 5}), TensorShape({2, 2, 2, 2, 2, 3})}) {
    SCOPED_TRACE(shape.DebugString());
    const int64_t channels = shape.dim_size(shape.dims() - 1);
    const Tensor inputs = RandomTensor(DT_FLOAT, shape, -3, 3);
    const Tensor min = RandomTensor(DT_FLOAT, {channels}, -2, 0, 2);
    const Tensor max = RandomTensor(DT_FLOAT, {channels}, 0.1, 2, 3);
    Tensor expected(DT_FLOAT, shape);
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      const int64_t c = i % channels;
      const QuantRange range(min.flat<float>()(c), max.flat<float>()(c), 5, true);
      expected.flat<float>()(i) = range.Forward(inputs.flat<float>()(i), false);
    }
    EXPECT_THAT(PerChannel(inputs, min, max, 5, true).RunOne(), TensorEq(expected));
  }
}

TEST(FakeQuant, InfersChannelsFromTheRanges) {
  EXPECT_THAT(OpTester("FakeQuantWithMinMaxVarsPerChannel")
                  .UnknownInput(DT_FLOAT, {2, -1})
                  .UnknownInput(DT_FLOAT)
                  .UnknownInput(DT_FLOAT, {4})
                  .InferShape(),
              IsOkAndHolds(::testing::Property(&PartialTensorShape::DebugString, "[2,4]")));
}

// ---- Determinism ----

TEST(FakeQuant, HasTheSameBitsOnAllThreadsAndTargets) {
  std::mt19937 random(7);
  for (int round = 0; round < 70; ++round) {
    const int64_t channels = 1 + random() % (round % 3 == 0 ? 2000 : 70);
    const int64_t rows = 1 + random() % ((round % 10 == 0 ? 4000000 : 100000) / channels + 1);
    SCOPED_TRACE(absl::StrCat("[", rows, ",", channels, "]"));
    const Tensor inputs = RandomTensor(DT_FLOAT, {rows, channels}, -3, 3, round);
    const int num_bits = 2 + round % 15;
    OpTester args = Args(inputs, -2, 1, num_bits);
    GRADFLOW_EXPECT_OK(args.RunEverywhere());
    OpTester vars = Vars(inputs, AsScalar<float>(-2), AsScalar<float>(1), num_bits);
    GRADFLOW_EXPECT_OK(vars.RunEverywhere());
    OpTester per_channel =
        PerChannel(inputs, RandomTensor(DT_FLOAT, {channels}, -2, 1),
                   RandomTensor(DT_FLOAT, {channels}, -1, 2, 5), num_bits, round % 2 == 0);
    GRADFLOW_EXPECT_OK(per_channel.RunEverywhere());
  }
}

TEST(FakeQuant, HasTheSameBitsOnAllTargetsForSpecialNumbers) {
  for (const auto& [min, max] : AllRanges()) {
    SCOPED_TRACE(absl::StrCat(min, " to ", max));
    const Tensor inputs = AsTensor<float>(InterestingInputs(QuantRange(min, max, 8, false)));
    OpTester vars = Vars(inputs, AsScalar<float>(min), AsScalar<float>(max));
    GRADFLOW_EXPECT_OK(vars.RunEverywhere());
    const int64_t n = inputs.NumElements();
    OpTester per_channel = PerChannel(inputs, AsTensor<float>(std::vector<float>(n, min)),
                                      AsTensor<float>(std::vector<float>(n, max)));
    GRADFLOW_EXPECT_OK(per_channel.RunEverywhere());
  }
}

// ---- Errors ----

TEST(FakeQuant, RejectsBadShapes) {
  const Tensor scalar = AsScalar<float>(1);
  const Tensor x = Iota<float>({2, 4});
  const Tensor four = Iota<float>({4});
  ExpectErrors({
      {"min of rank 1", Vars(x, four, scalar), "min has shape [4], expected []"},
      {"max of rank 1", Vars(x, scalar, AsTensor<float>({1})), "max has shape [1], expected []"},
      {"no channels", PerChannel(scalar, four, four), "inputs has shape [], expected rank 1"},
      {"scalar min", PerChannel(x, scalar, four), "min has shape [], expected [4]"},
      {"long min", PerChannel(x, Iota<float>({5}), four),
       "min has shape [5], expected [4] (of rank 1, one for each channel: the last dimension of "
       "inputs [2,4])"},
      {"short max", PerChannel(x, four, Iota<float>({3})), "max has shape [3], expected [4]"},
      {"max of rank 2", PerChannel(x, four, x), "max has shape [2,4], expected [4]"},
  });
}

TEST(FakeQuant, RejectsTheInputsOfAdvisories) {
  const Tensor zeros(DT_FLOAT, {2, 3});
  const Tensor channels(DT_FLOAT, {4});
  for (Tensor tensor : {zeros, channels}) tensor.flat<float>().setZero();
  ExpectErrors({
      {"CVE-2022-35971", Vars(zeros, zeros, zeros), "min has shape [2,3], expected []"},
      {"CVE-2022-36019", PerChannel(channels, Tensor(DT_FLOAT, {4, 0, 0}), channels),
       "min has shape [4,0,0], expected [4]"},
  });
}

TEST(FakeQuant, RejectsBadAttributes) {
  const Tensor x = AsTensor<float>({1});
  const Tensor scalar = AsScalar<float>(1);
  std::vector<ErrorCase> cases;
  for (const int num_bits : {-8, 0, 1, 17, 1 << 30}) {
    const char* error = "expected 2 to 16";
    cases.push_back({"num_bits", Args(x, -1, 1, num_bits), error});
    cases.push_back({"num_bits", Vars(x, scalar, scalar, num_bits), error});
    cases.push_back({"num_bits", PerChannel(x, x, x, num_bits), error});
  }
  cases.push_back({"17 bits", Args(x, -1, 1, 17), "num_bits is 17, expected 2 to 16"});
  cases.push_back({"order", Args(x, 6, -6), "min is 6, expected less than max, which is -6"});
  cases.push_back({"equal", Args(x, 0, 0), "min is 0, expected less than max, which is 0"});
  cases.push_back({"NaN", Args(x, kNan, 1), "min is nan, expected a finite number"});
  cases.push_back({"NaN", Args(x, 1, kNan), "max is nan, expected a finite number"});
  cases.push_back({"infinite", Args(x, -1, kInf), "max is inf, expected a finite number"});
  for (ErrorCase& c : cases) {
    SCOPED_TRACE(c.what);
    EXPECT_THAT(c.tester.MakeKernel(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
    EXPECT_THAT(c.tester.InferShapes(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
}

TEST(FakeQuant, RejectsRangesThatAreNotFinite) {
  const Tensor one = AsScalar<float>(1);
  const Tensor x = AsTensor<float>({1, 2});
  for (const float bad : {kNan, kInf, -kInf}) {
    EXPECT_THAT(Vars(x, AsScalar<float>(bad), one).Run(),
                StatusIs(kInvalidArgument, HasSubstr("expected a finite number")));
    EXPECT_THAT(Vars(Tensor(DT_FLOAT, {0}), one, AsScalar<float>(bad)).Run(),
                StatusIs(kInvalidArgument, HasSubstr("expected a finite number")));
  }
  EXPECT_THAT(Vars(x, one, AsScalar<float>(kInf)).Run(),
              StatusIs(kInvalidArgument, "max is inf, expected a finite number"));
  EXPECT_THAT(PerChannel(x, AsTensor<float>({0, -kInf}), x).Run(),
              StatusIs(kInvalidArgument, "min[1] is -inf, expected a finite number"));
}

TEST(FakeQuant, RejectsOtherTypes) {
  EXPECT_THAT(OpTester("FakeQuantWithMinMaxArgs").Input(Tensor(DT_DOUBLE, {2})).Run(),
              StatusIs(kInvalidArgument, HasSubstr("float")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
