#include <cmath>
#include <limits>

#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

OpTester Quantize(const Tensor& input, const Tensor& min, const Tensor& max, DataType dtype,
                  const char* mode) {
  return OpTester("QuantizeV2")
      .Input(input)
      .Input(min)
      .Input(max)
      .Attr("T", dtype)
      .Attr("mode", mode);
}
OpTester Dequantize(const Tensor& input, const Tensor& min, const Tensor& max, const char* mode) {
  return OpTester("Dequantize").Input(input).Input(min).Input(max).Attr("mode", mode);
}

// Returns a tensor of quantized integers.
Tensor Integers(DataType dtype, const std::vector<int64_t>& values, const TensorShape& shape) {
  Tensor tensor(dtype, shape);
  DispatchType(QuantizedTypes(), dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < values.size(); ++i) {
      tensor.flat<T>()(i).value = static_cast<decltype(T::value)>(values[i]);
    }
  });
  return tensor;
}

// Results of TensorFlow 2.21 for the range [-2, 6], without oneDNN, which computes some of them
// differently.
TEST(QuantizeV2, HasTheValuesOfTensorFlow) {
  const Tensor input = AsTensor<float>({-10, -3, -1.25f, -0.5f, 0, 0.3f, 0.75f, 1, 2.5f, 7});
  const struct {
    DataType dtype;
    const char* mode;
    bool narrow_range;
    const char* round_mode;
    std::vector<int64_t> output;
    float min;
    float max;
  } cases[] = {
      {DT_QINT8,
       "MIN_COMBINED",
       false,
       "HALF_AWAY_FROM_ZERO",
       {-128, -128, -104, -80, -64, -55, -40, -32, 15, 127},
       -2.0f,
       6.0f},
      {DT_QINT8,
       "MIN_FIRST",
       false,
       "HALF_AWAY_FROM_ZERO",
       {-128, -128, -104, -80, -64, -54, -40, -32, 16, 127},
       -2.0f,
       6.0f},
      {DT_QINT8,
       "SCALED",
       false,
       "HALF_AWAY_FROM_ZERO",
       {-128, -64, -26, -11, 0, 6, 16, 21, 53, 127},
       -6.047244071960449f,
       6.0f},
      {DT_QINT8,
       "SCALED",
       false,
       "HALF_TO_EVEN",
       {-128, -64, -26, -11, 0, 6, 16, 21, 53, 127},
       -6.047244071960449f,
       6.0f},
      {DT_QINT8,
       "SCALED",
       true,
       "HALF_AWAY_FROM_ZERO",
       {-127, -64, -26, -11, 0, 6, 16, 21, 53, 127},
       -6.0f,
       6.0f},
      {DT_QINT8,
       "SCALED",
       true,
       "HALF_TO_EVEN",
       {-127, -64, -26, -11, 0, 6, 16, 21, 53, 127},
       -6.0f,
       6.0f},
      {DT_QUINT8,
       "MIN_COMBINED",
       false,
       "HALF_AWAY_FROM_ZERO",
       {0, 0, 24, 48, 64, 73, 88, 96, 143, 255},
       -2.0f,
       6.0f},
      {DT_QUINT8,
       "MIN_FIRST",
       false,
       "HALF_AWAY_FROM_ZERO",
       {0, 0, 24, 48, 64, 74, 88, 96, 144, 255},
       -2.0f,
       6.0f},
      {DT_QUINT8,
       "SCALED",
       false,
       "HALF_AWAY_FROM_ZERO",
       {0, 0, 0, 0, 0, 13, 32, 43, 106, 255},
       0.0f,
       6.0f},
      {DT_QUINT8,
       "SCALED",
       false,
       "HALF_TO_EVEN",
       {0, 0, 0, 0, 0, 13, 32, 42, 106, 255},
       0.0f,
       6.0f},
      {DT_QUINT8,
       "SCALED",
       true,
       "HALF_AWAY_FROM_ZERO",
       {1, 1, 1, 1, 1, 13, 32, 43, 106, 255},
       0.0235294122248888f,
       6.0f},
      {DT_QUINT8,
       "SCALED",
       true,
       "HALF_TO_EVEN",
       {1, 1, 1, 1, 1, 13, 32, 42, 106, 255},
       0.0235294122248888f,
       6.0f},
      {DT_QINT16,
       "MIN_COMBINED",
       false,
       "HALF_AWAY_FROM_ZERO",
       {-32768, -32768, -26624, -20480, -16384, -13927, -10240, -8192, 4095, 32767},
       -2.0f,
       6.0f},
      {DT_QINT16,
       "MIN_FIRST",
       false,
       "HALF_AWAY_FROM_ZERO",
       {-32768, -32768, -26624, -20480, -16384, -13926, -10240, -8192, 4096, 32767},
       -2.0f,
       6.0f},
      {DT_QINT16,
       "SCALED",
       false,
       "HALF_AWAY_FROM_ZERO",
       {-32768, -16384, -6826, -2731, 0, 1638, 4096, 5461, 13653, 32767},
       -6.00018310546875f,
       6.0f},
      {DT_QINT16,
       "SCALED",
       false,
       "HALF_TO_EVEN",
       {-32768, -16384, -6826, -2731, 0, 1638, 4096, 5461, 13653, 32767},
       -6.00018310546875f,
       6.0f},
      {DT_QINT16,
       "SCALED",
       true,
       "HALF_AWAY_FROM_ZERO",
       {-32767, -16384, -6826, -2731, 0, 1638, 4096, 5461, 13653, 32767},
       -6.0f,
       6.0f},
      {DT_QINT16,
       "SCALED",
       true,
       "HALF_TO_EVEN",
       {-32767, -16384, -6826, -2731, 0, 1638, 4096, 5461, 13653, 32767},
       -6.0f,
       6.0f},
      {DT_QUINT16,
       "MIN_COMBINED",
       false,
       "HALF_AWAY_FROM_ZERO",
       {0, 0, 6144, 12288, 16384, 18841, 22528, 24576, 36863, 65535},
       -2.0f,
       6.0f},
      {DT_QUINT16,
       "MIN_FIRST",
       false,
       "HALF_AWAY_FROM_ZERO",
       {0, 0, 6144, 12288, 16384, 18842, 22528, 24576, 36864, 65535},
       -2.0f,
       6.0f},
      {DT_QUINT16,
       "SCALED",
       false,
       "HALF_AWAY_FROM_ZERO",
       {0, 0, 0, 0, 0, 3277, 8192, 10923, 27306, 65535},
       0.0f,
       6.0f},
      {DT_QUINT16,
       "SCALED",
       false,
       "HALF_TO_EVEN",
       {0, 0, 0, 0, 0, 3277, 8192, 10922, 27306, 65535},
       0.0f,
       6.0f},
      {DT_QUINT16,
       "SCALED",
       true,
       "HALF_AWAY_FROM_ZERO",
       {1, 1, 1, 1, 1, 3277, 8192, 10923, 27306, 65535},
       9.155413135886192e-05f,
       6.0f},
      {DT_QUINT16,
       "SCALED",
       true,
       "HALF_TO_EVEN",
       {1, 1, 1, 1, 1, 3277, 8192, 10922, 27306, 65535},
       9.155413135886192e-05f,
       6.0f},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(absl::StrCat(DataTypeString(c.dtype), " ", c.mode, " ", c.round_mode));
    GRADFLOW_ASSERT_OK_AND_ASSIGN(
        const std::vector<Tensor> outputs,
        Quantize(input, AsScalar<float>(-2), AsScalar<float>(6), c.dtype, c.mode)
            .Attr("narrow_range", c.narrow_range)
            .Attr("round_mode", c.round_mode)
            .Run());
    EXPECT_THAT(outputs[0], TensorEq(Integers(c.dtype, c.output, {10})));
    EXPECT_THAT(outputs[1], TensorEq(AsScalar<float>(c.min)));
    EXPECT_THAT(outputs[2], TensorEq(AsScalar<float>(c.max)));
  }
}

TEST(Dequantize, HasTheValuesOfTensorFlow) {
  const struct {
    DataType dtype;
    const char* mode;
    bool narrow_range;
    std::vector<int64_t> input;
    std::vector<float> output;
  } cases[] = {
      {DT_QINT8,
       "MIN_COMBINED",
       false,
       {-128, -127, -3, 0, 5, 127},
       {-2.0f, -1.9686274528503418f, 1.9215688705444336f, 2.015686511993408f, 2.172549247741699f,
        6.0f}},
      {DT_QINT8,
       "MIN_FIRST",
       false,
       {-128, -127, -3, 0, 5, 127},
       {-2.007843255996704f, -1.976470708847046f, 1.9137256145477295f, 2.007843255996704f,
        2.164705991744995f, 5.992156982421875f}},
      {DT_QINT8,
       "SCALED",
       false,
       {-128, -127, -3, 0, 5, 127},
       {-6.047244071960449f, -6.0f, -0.14173227548599243f, 0.0f, 0.23622047901153564f, 6.0f}},
      {DT_QINT8,
       "SCALED",
       true,
       {-128, -127, -3, 0, 5, 127},
       {-6.047244071960449f, -6.0f, -0.14173227548599243f, 0.0f, 0.23622047901153564f, 6.0f}},
      {DT_QUINT8,
       "MIN_COMBINED",
       false,
       {0, 1, 3, 128, 254, 255},
       {-2.0f, -1.9686274528503418f, -1.9058823585510254f, 2.015686511993408f, 5.9686279296875f,
        6.0f}},
      {DT_QUINT8,
       "MIN_FIRST",
       false,
       {0, 1, 3, 128, 254, 255},
       {-2.007843255996704f, -1.976470708847046f, -1.9137256145477295f, 2.007843255996704f,
        5.960784912109375f, 5.992156982421875f}},
      {DT_QUINT8,
       "SCALED",
       false,
       {0, 1, 3, 128, 254, 255},
       {0.0f, 0.0235294122248888f, 0.07058823853731155f, 3.0117647647857666f, 5.976470470428467f,
        6.0f}},
      {DT_QUINT8,
       "SCALED",
       true,
       {0, 1, 3, 128, 254, 255},
       {0.0f, 0.0235294122248888f, 0.07058823853731155f, 3.0117647647857666f, 5.976470470428467f,
        6.0f}},
      {DT_QINT16,
       "MIN_COMBINED",
       false,
       {-32768, -32767, -3, 0, 5, 32767},
       {-2.0f, -1.9998779296875f, 1.99969482421875f, 2.00006103515625f, 2.00067138671875f, 6.0f}},
      {DT_QINT16,
       "MIN_FIRST",
       false,
       {-32768, -32767, -3, 0, 5, 32767},
       {-2.000030517578125f, -1.999908447265625f, 1.999664306640625f, 2.000030517578125f,
        2.000640869140625f, 5.999969482421875f}},
      {DT_QINT16,
       "SCALED",
       false,
       {-32768, -32767, -3, 0, 5, 32767},
       {-6.00018310546875f, -6.0f, -0.0005493331700563431f, 0.0f, 0.0009155552834272385f, 6.0f}},
      {DT_QINT16,
       "SCALED",
       true,
       {-32768, -32767, -3, 0, 5, 32767},
       {-6.00018310546875f, -6.0f, -0.0005493331700563431f, 0.0f, 0.0009155552834272385f, 6.0f}},
      {DT_QUINT16,
       "MIN_COMBINED",
       false,
       {0, 1, 3, 128, 254, 65535},
       {-2.0f, -1.9998779296875f, -1.9996337890625f, -1.984374761581421f, -1.9689936637878418f,
        6.0f}},
      {DT_QUINT16,
       "MIN_FIRST",
       false,
       {0, 1, 3, 128, 254, 65535},
       {-2.000030517578125f, -1.999908447265625f, -1.999664306640625f, -1.984405279159546f,
        -1.9690241813659668f, 5.999969482421875f}},
      {DT_QUINT16,
       "SCALED",
       false,
       {0, 1, 3, 128, 254, 65535},
       {0.0f, 9.155413135886192e-05f, 0.00027466239407658577f, 0.011718928813934326f,
        0.023254748433828354f, 6.0f}},
      {DT_QUINT16,
       "SCALED",
       true,
       {0, 1, 3, 128, 254, 65535},
       {0.0f, 9.155413135886192e-05f, 0.00027466239407658577f, 0.011718928813934326f,
        0.023254748433828354f, 6.0f}},
      {DT_QINT32,
       "MIN_COMBINED",
       false,
       {INT32_MIN, INT32_MIN + 1, -3, 0, 5, INT32_MAX},
       {-2.0f, -2.0f, 2.0f, 2.0f, 2.0f, 6.0f}},
      {DT_QINT32,
       "MIN_FIRST",
       false,
       {INT32_MIN, INT32_MIN + 1, -3, 0, 5, INT32_MAX},
       {-2.0f, -2.0f, 2.0f, 2.0f, 2.0f, 6.0f}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(absl::StrCat(DataTypeString(c.dtype), " ", c.mode));
    EXPECT_THAT(
        Dequantize(Integers(c.dtype, c.input, {6}), AsScalar<float>(-2), AsScalar<float>(6), c.mode)
            .Attr("narrow_range", c.narrow_range)
            .RunOne(),
        TensorWithinUlps(AsTensor<float>(c.output), 1));
  }
}

TEST(QuantizeV2, QuantizesChannels) {
  const Tensor input =
      AsTensor<float>({-10, -3, -1.25f, -0.5f, 0, 0.3f, 0.75f, 1, 2.5f, 7}, {2, 5});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> rows,
      Quantize(input, AsTensor<float>({-2, 0}), AsTensor<float>({6, 1}), DT_QINT8, "SCALED")
          .Attr("axis", int64_t{0})
          .Run());
  EXPECT_THAT(rows[0], TensorEq(Integers(DT_QINT8, {-128, -64, -26, -11, 0, 38, 95, 127, 127, 127},
                                         {2, 5})));
  EXPECT_THAT(rows[1], TensorEq(AsTensor<float>({-6.047244071960449f, -1.0078740119934082f})));
  EXPECT_THAT(rows[2], TensorEq(AsTensor<float>({6, 1})));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> columns,
                                Quantize(*input.Reshaped({5, 2}), AsTensor<float>({-2, 0}),
                                         AsTensor<float>({6, 1}), DT_QUINT8, "MIN_COMBINED")
                                    .Attr("axis", int64_t{1})
                                    .Run());
  EXPECT_THAT(columns[0],
              TensorEq(Integers(DT_QUINT8, {0, 0, 24, 0, 64, 77, 88, 255, 143, 255}, {5, 2})));
  EXPECT_THAT(
      Dequantize(Integers(DT_QINT8, {-128, -127, -3, 0, 5, 127}, {2, 3}), AsTensor<float>({-2, -1}),
                 AsTensor<float>({6, 1}), "SCALED")
          .Attr("axis", int64_t{0})
          .RunOne(),
      TensorEq(AsTensor<float>(
          {-6.047244071960449f, -6, -0.14173227548599243f, 0, 0.03937007859349251f, 1}, {2, 3})));
}

TEST(QuantizeV2, ExtendsTheRange) {
  const auto range = [](float min, float max, float least) {
    return Quantize(AsTensor<float>({0.3f}), AsScalar<float>(min), AsScalar<float>(max), DT_QUINT8,
                    "MIN_COMBINED")
        .Attr("ensure_minimum_range", least)
        .Run();
  };
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> positive, range(1, 5, 0.01f));
  EXPECT_THAT(positive[1], TensorEq(AsScalar<float>(0)));
  EXPECT_THAT(positive[0], TensorEq(Integers(DT_QUINT8, {15}, {1})));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> zero, range(0, 0, 0.01f));
  EXPECT_THAT(zero[2], TensorEq(AsScalar<float>(0.009999999776482582f)));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> small, range(-1e-3f, 1e-3f, 0.5f));
  EXPECT_THAT(small[0], TensorEq(Integers(DT_QUINT8, {154}, {1})));
  EXPECT_THAT(small[2], TensorEq(AsScalar<float>(0.49900001287460327f)));
}

TEST(QuantizeV2, SaturatesAndTreatsNanAsZero) {
  const Tensor input = AsTensor<float>({kNan, kInf, -kInf});
  for (const char* mode : {"MIN_COMBINED", "MIN_FIRST", "SCALED"}) {
    SCOPED_TRACE(mode);
    const Tensor min = AsScalar<float>(-1);
    const Tensor max = AsScalar<float>(1);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> wide,
                                  Quantize(input, min, max, DT_QINT32, mode).Run());
    EXPECT_EQ(wide[0].flat<qint32>()(1).value, INT32_MAX);
    EXPECT_EQ(wide[0].flat<qint32>()(2).value, INT32_MIN);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> zero,
                                  Quantize(AsTensor<float>({0}), min, max, DT_QINT32, mode).Run());
    EXPECT_EQ(wide[0].flat<qint32>()(0), zero[0].flat<qint32>()(0));
  }
}

// More elements than a vector has, so that vectors and the elements after them are quantized.
TEST(QuantizeV2, NarrowTypesSaturateAndTreatNanAsZero) {
  constexpr int64_t kElements = 67;
  const float largest = std::numeric_limits<float>::max();
  const std::vector<float> numbers = {kNan, kInf, -kInf, largest, -largest, 0};
  const struct {
    const char* mode;
    int64_t zero;
  } cases[] = {{"MIN_COMBINED", 0}, {"MIN_FIRST", 0}, {"SCALED", 0}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.mode);
    Tensor input(DT_FLOAT, {kElements});
    std::vector<int64_t> expected;
    const std::vector<int64_t> integers = {c.zero, 127, -128, 127, -128, c.zero};
    for (int64_t i = 0; i < kElements; ++i) {
      const auto k = static_cast<size_t>(i) % numbers.size();
      input.flat<float>()(i) = numbers[k];
      expected.push_back(integers[k]);
    }
    // The lowest integer stands for the lowest number.
    GRADFLOW_ASSERT_OK_AND_ASSIGN(
        const std::vector<Tensor> found,
        Quantize(input, AsScalar<float>(-128), AsScalar<float>(127), DT_QINT8, c.mode).Run());
    EXPECT_THAT(found[0], TensorEq(Integers(DT_QINT8, expected, {kElements})));
  }
}

// A step is 1, so that numbers are their own integers before rounding.
TEST(QuantizeV2, RoundsHalvesOfNarrowTypes) {
  constexpr int64_t kElements = 67;
  const std::vector<float> numbers = {0.5f, 1.5f, -0.5f, -1.5f, 2.5f, -2.5f, 0.49999997f, 126.5f};
  const struct {
    const char* mode;
    const char* round_mode;
    std::vector<int64_t> integers;
  } cases[] = {
      // The distance of 0.49999997 from the lowest number is rounded to the float 128.5.
      {"MIN_COMBINED", "HALF_AWAY_FROM_ZERO", {1, 2, -1, -2, 3, -3, 1, 127}},
      {"MIN_FIRST", "HALF_AWAY_FROM_ZERO", {1, 2, -1, -2, 3, -3, 0, 127}},
      {"SCALED", "HALF_AWAY_FROM_ZERO", {1, 2, -1, -2, 3, -3, 0, 127}},
      {"SCALED", "HALF_TO_EVEN", {0, 2, 0, -2, 2, -2, 0, 126}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.mode, " ", c.round_mode));
    Tensor input(DT_FLOAT, {kElements});
    std::vector<int64_t> expected;
    for (int64_t i = 0; i < kElements; ++i) {
      const auto k = static_cast<size_t>(i) % numbers.size();
      input.flat<float>()(i) = numbers[k];
      expected.push_back(c.integers[k]);
    }
    GRADFLOW_ASSERT_OK_AND_ASSIGN(
        const std::vector<Tensor> found,
        Quantize(input, AsScalar<float>(-128), AsScalar<float>(127), DT_QINT8, c.mode)
            .Attr("round_mode", c.round_mode)
            .Run());
    EXPECT_THAT(found[0], TensorEq(Integers(DT_QINT8, expected, {kElements})));
  }
}

TEST(Dequantize, ReturnsBfloat16) {
  const Tensor input = Integers(DT_QINT8, {-128, -127, -3, 0, 5, 127}, {6});
  EXPECT_THAT(Dequantize(input, AsScalar<float>(-2), AsScalar<float>(6), "SCALED")
                  .Attr("dtype", DT_BFLOAT16)
                  .RunOne(),
              TensorEq(AsTensor<bfloat16>({-6.0625f, -6, -0.1416015625f, 0, 0.236328125f, 6})));
}

TEST(QuantizeV2, QuantizesLargeAndEmptyTensors) {
  const Tensor large = RandomTensor(DT_FLOAT, {40, 3, 1000}, -2, 3);
  const Tensor max = AsTensor<float>({1, 2, 3});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> outputs,
      Quantize(large, AsTensor<float>({0, 0, 0}), max, DT_QUINT8, "SCALED")
          .Attr("axis", int64_t{1})
          .Run());
  for (int64_t i = 0; i < large.NumElements(); ++i) {
    const double channel_max = max.flat<float>()(i / 1000 % 3);
    const double x = std::clamp<double>(large.flat<float>()(i), 0, channel_max);
    ASSERT_NEAR(outputs[0].flat<quint8>()(i).value, x * 255 / channel_max, 0.5001) << i;
  }
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> empty,
                                Quantize(Tensor(DT_FLOAT, {2, 0}), AsTensor<float>({0, 0}),
                                         AsTensor<float>({1, 1}), DT_QINT8, "SCALED")
                                    .Attr("axis", int64_t{0})
                                    .Run());
  EXPECT_EQ(empty[0].NumElements(), 0);
  EXPECT_EQ(empty[1].NumElements(), 2);
}

TEST(QuantizeV2, RejectsBadArguments) {
  const Tensor input = Iota<float>({2, 3});
  const Tensor one = AsScalar<float>(1);
  const auto quantize = [&](const Tensor& min, const Tensor& max, int64_t axis) {
    return Quantize(input, min, max, DT_QINT8, "SCALED").Attr("axis", axis);
  };
  const auto dequantize = [&](const Tensor& min, int64_t axis) {
    return Dequantize(Integers(DT_QINT8, {1, 2}, {2}), min, min, "SCALED").Attr("axis", axis);
  };
  ExpectErrors({
      {"2021-184", quantize(AsTensor<float>({1, 10}), AsTensor<float>({1, 10}), -100),
       "axis must be -1 or a dimension of input, of shape [2,3], but is -100"},
      {"2022-004", dequantize(AsTensor<float>({1}), INT32_MAX),
       "axis must be -1 or a dimension of input, of shape [2], but is 2147483647"},
      {"axis", quantize(one, one, 2), "axis must be -1 or"},
      {"min", quantize(AsTensor<float>({1}), AsTensor<float>({1, 1}), 0),
       "min_range must have shape [2], by axis 0 and input of shape [2,3], but has shape [1]"},
      {"max", quantize(AsTensor<float>({1}), AsTensor<float>({1, 1}), -1),
       "max_range must have shape [], by axis -1 and input of shape [2,3], but has shape [2]"},
      {"round_mode",
       Quantize(input, one, one, DT_QINT8, "MIN_FIRST").Attr("round_mode", "HALF_TO_EVEN"),
       "round_mode HALF_TO_EVEN requires mode SCALED"},
  });
  for (const auto& [min, max] :
       {std::pair(2.0f, 1.0f), std::pair(kNan, 1.0f), std::pair(0.0f, kInf)}) {
    EXPECT_THAT(quantize(AsScalar<float>(min), AsScalar<float>(max), -1).Run(),
                StatusIs(kInvalidArgument,
                         HasSubstr("min_range and max_range must be finite, and min_range at most "
                                   "max_range")));
  }
}

TEST(QuantizeV2, TakesRangesWithoutSize) {
  const Tensor input = AsTensor<float>({0, 1, -1, kNan, kInf});
  for (const char* mode : {"MIN_COMBINED", "MIN_FIRST", "SCALED"}) {
    for (const float max : {0.0f, 1e-45f}) {
      SCOPED_TRACE(mode);
      const auto y = Quantize(input, AsScalar<float>(0), AsScalar<float>(max), DT_QUINT8, mode)
                         .Attr("ensure_minimum_range", 0.0f)
                         .Run();
      GRADFLOW_ASSERT_OK(y.status());
      EXPECT_EQ((*y)[0].flat<quint8>()(0).value, 0);
      EXPECT_EQ((*y)[0].flat<quint8>()(2).value, 0);
      EXPECT_EQ((*y)[0].flat<quint8>()(3).value, 0);
    }
  }
}

// The size of the range exceeds the largest float.
TEST(QuantizeV2, TakesTheLargestRanges) {
  const Tensor input = AsTensor<float>({-3e38f, 0, 1.5e38f, 3e38f, kNan});
  const auto y =
      Quantize(input, AsScalar<float>(-1e38f), AsScalar<float>(3e38f), DT_QUINT8, "MIN_COMBINED")
          .Run();
  GRADFLOW_ASSERT_OK(y.status());
  EXPECT_THAT((*y)[0], TensorEq(Integers(DT_QUINT8, {0, 64, 159, 255, 64}, {5})));
  const float largest = std::numeric_limits<float>::max();
  const auto extended =
      Quantize(input, AsScalar<float>(0), AsScalar<float>(largest), DT_QINT8, "MIN_COMBINED")
          .Attr("ensure_minimum_range", largest)
          .Run();
  GRADFLOW_ASSERT_OK(extended.status());
  EXPECT_THAT((*extended)[2], TensorEq(AsScalar<float>(largest)));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
