#include <cmath>

#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

OpTester Quantized(const char* op, const Tensor& input, const Tensor& min, const Tensor& max) {
  return OpTester(op).Input(input).Input(min).Input(max);
}

const std::vector<float> kNumbers = {-3, -1.25f, -0.5f, 0, 0.3f, 0.75f, 1, 2.5f};

// Results of TensorFlow 2.21 for 3 bits and the range [-1, 2].
TEST(QuantizeAndDequantize, HasTheValuesOfTensorFlow) {
  const Tensor input = AsTensor<float>(kNumbers);
  const Tensor min = AsScalar<float>(-1);
  const Tensor max = AsScalar<float>(2);
  const struct {
    bool range_given;
    bool signed_input;
    bool narrow_range;
    const char* round_mode;
    std::vector<float> output;
  } cases[] = {
      {true,
       true,
       true,
       "HALF_TO_EVEN",
       {-2.0f, -1.3333333730697632f, -0.6666666865348816f, 0.0f, 0.0f, 0.6666666865348816f,
        1.3333333730697632f, 2.0f}},
      {false, true, true, "HALF_TO_EVEN", {-3.0f, -1.0f, -0.0f, 0.0f, 0.0f, 1.0f, 1.0f, 2.0f}},
      {true,
       true,
       true,
       "HALF_UP",
       {-2.0f, -1.3333333730697632f, -0.6666666865348816f, 0.0f, 0.0f, 0.6666666865348816f,
        1.3333333730697632f, 2.0f}},
      {false, true, true, "HALF_UP", {-3.0f, -1.0f, 0.0f, 0.0f, 0.0f, 1.0f, 1.0f, 3.0f}},
      {true,
       true,
       false,
       "HALF_TO_EVEN",
       {-2.6666667461395264f, -1.3333333730697632f, -0.6666666865348816f, 0.0f, 0.0f,
        0.6666666865348816f, 1.3333333730697632f, 2.0f}},
      {false,
       true,
       false,
       "HALF_TO_EVEN",
       {-3.3333332538604736f, -1.6666666269302368f, -0.8333333134651184f, 0.0f, 0.0f,
        0.8333333134651184f, 0.8333333134651184f, 2.5f}},
      {true,
       true,
       false,
       "HALF_UP",
       {-2.6666667461395264f, -1.3333333730697632f, -0.6666666865348816f, 0.0f, 0.0f,
        0.6666666865348816f, 1.3333333730697632f, 2.0f}},
      {false,
       true,
       false,
       "HALF_UP",
       {-3.3333332538604736f, -0.8333333134651184f, -0.8333333134651184f, 0.0f, 0.0f,
        0.8333333134651184f, 0.8333333134651184f, 2.5f}},
      {true,
       false,
       true,
       "HALF_TO_EVEN",
       {0.0f, 0.0f, 0.0f, 0.0f, 0.2857142984867096f, 0.8571429252624512f, 1.1428571939468384f,
        2.0f}},
      {false,
       false,
       true,
       "HALF_TO_EVEN",
       {-2.857142925262451f, -1.4285714626312256f, -0.3571428656578064f, 0.0f, 0.3571428656578064f,
        0.7142857313156128f, 1.0714285373687744f, 2.5f}},
      {true,
       false,
       true,
       "HALF_UP",
       {0.0f, 0.0f, 0.0f, 0.0f, 0.2857142984867096f, 0.8571429252624512f, 1.1428571939468384f,
        2.0f}},
      {false,
       false,
       true,
       "HALF_UP",
       {-2.857142925262451f, -1.0714285373687744f, -0.3571428656578064f, 0.0f, 0.3571428656578064f,
        0.7142857313156128f, 1.0714285373687744f, 2.5f}},
      {true,
       false,
       false,
       "HALF_TO_EVEN",
       {0.0f, 0.0f, 0.0f, 0.0f, 0.2857142984867096f, 0.8571429252624512f, 1.1428571939468384f,
        2.0f}},
      {false,
       false,
       false,
       "HALF_TO_EVEN",
       {-2.857142925262451f, -1.4285714626312256f, -0.3571428656578064f, 0.0f, 0.3571428656578064f,
        0.7142857313156128f, 1.0714285373687744f, 2.5f}},
      {true,
       false,
       false,
       "HALF_UP",
       {0.0f, 0.0f, 0.0f, 0.0f, 0.2857142984867096f, 0.8571429252624512f, 1.1428571939468384f,
        2.0f}},
      {false,
       false,
       false,
       "HALF_UP",
       {-2.857142925262451f, -1.0714285373687744f, -0.3571428656578064f, 0.0f, 0.3571428656578064f,
        0.7142857313156128f, 1.0714285373687744f, 2.5f}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(&c - cases);
    const Tensor expected = AsTensor<float>(c.output);
    for (const char* op : {"QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"}) {
      EXPECT_THAT(Quantized(op, input, min, max)
                      .Attr("num_bits", int64_t{3})
                      .Attr("range_given", c.range_given)
                      .Attr("signed_input", c.signed_input)
                      .Attr("narrow_range", c.narrow_range)
                      .Attr("round_mode", c.round_mode)
                      .RunOne(),
                  TensorEq(expected));
    }
    if (c.round_mode == std::string("HALF_UP")) continue;
    EXPECT_THAT(Quantized("QuantizeAndDequantizeV3", input, min, max)
                    .Input(AsScalar<int32_t>(3))
                    .Attr("range_given", c.range_given)
                    .Attr("signed_input", c.signed_input)
                    .Attr("narrow_range", c.narrow_range)
                    .RunOne(),
                TensorEq(expected));
    if (c.narrow_range) continue;
    EXPECT_THAT(OpTester("QuantizeAndDequantize")
                    .Input(input)
                    .Attr("num_bits", int64_t{3})
                    .Attr("range_given", c.range_given)
                    .Attr("signed_input", c.signed_input)
                    .Attr("input_min", -1.0f)
                    .Attr("input_max", 2.0f)
                    .RunOne(),
                TensorEq(expected));
  }
}

TEST(QuantizeAndDequantize, ComputesInEveryType) {
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16}) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor input = RandomTensor(dtype, {5, 41}, -4, 4);
    const Tensor min = FromDoubles(dtype, {}, {-2});
    const Tensor max = FromDoubles(dtype, {}, {2});
    // The upper side determines the scale: 127 / 2.
    EXPECT_THAT(
        Quantized("QuantizeAndDequantizeV2", input, min, max).Attr("range_given", true).RunOne(),
        TensorWithinUlps(
            UnaryReference(input,
                           [](double x) {
                             return std::nearbyint(std::clamp(x, -128 / 63.5, 2.0) * 63.5) / 63.5;
                           }),
            1));
  }
}

TEST(QuantizeAndDequantize, QuantizesChannels) {
  const Tensor input = AsTensor<float>(kNumbers, {2, 4});
  // Each channel has the result that it would have alone.
  for (const bool given : {true, false}) {
    const Tensor mins = AsTensor<float>({-1, -2});
    const Tensor maxs = AsTensor<float>({2, 1});
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor rows,
                                  Quantized("QuantizeAndDequantizeV2", input, mins, maxs)
                                      .Attr("num_bits", int64_t{3})
                                      .Attr("range_given", given)
                                      .Attr("axis", int64_t{0})
                                      .RunOne());
    GRADFLOW_ASSERT_OK_AND_ASSIGN(
        const Tensor columns,
        Quantized("QuantizeAndDequantizeV4",
                  *OpTester("Transpose").Input(input).Input<int32_t>({1, 0}).RunOne(), mins, maxs)
            .Attr("num_bits", int64_t{3})
            .Attr("range_given", given)
            .Attr("axis", int64_t{1})
            .RunOne());
    EXPECT_THAT(OpTester("Transpose").Input(columns).Input<int32_t>({1, 0}).RunOne(),
                TensorEq(rows));
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(Quantized("QuantizeAndDequantizeV2", input.Slice(i, i + 1),
                            *mins.Slice(i, i + 1).Reshaped({}), *maxs.Slice(i, i + 1).Reshaped({}))
                      .Attr("num_bits", int64_t{3})
                      .Attr("range_given", given)
                      .RunOne(),
                  TensorEq(rows.Slice(i, i + 1)));
    }
  }
}

TEST(QuantizeAndDequantize, FindsTheRangeOfLargeTensors) {
  const Tensor large = RandomTensor(DT_FLOAT, {300, 7, 90}, -1, 5);
  const Tensor none = Tensor(DT_FLOAT, {7});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const Tensor output,
      Quantized("QuantizeAndDequantizeV2", large, none, none).Attr("axis", int64_t{1}).RunOne());
  double error = 0;
  for (int64_t i = 0; i < large.NumElements(); ++i) {
    error = std::max<double>(error, std::fabs(output.flat<float>()(i) - large.flat<float>()(i)));
  }
  EXPECT_LE(error, 5.0 / 127 / 2 * 1.001);
  EXPECT_GE(error, 5.0 / 127 / 2 * 0.9);
}

TEST(QuantizeAndDequantize, TakesNanInfinitiesZerosAndEmptyTensors) {
  const Tensor input = AsTensor<float>({kNan, 1, -kInf, kInf});
  EXPECT_THAT(Quantized("QuantizeAndDequantizeV2", input, AsScalar<float>(-1), AsScalar<float>(1))
                  .Attr("num_bits", int64_t{3})
                  .Attr("range_given", true)
                  .RunOne(),
              TensorEq(AsTensor<float>({kNan, 1, -1.3333333730697632f, 1})));
  const Tensor zero = AsScalar<float>(0);
  EXPECT_THAT(Quantized("QuantizeAndDequantizeV2", Tensor(DT_FLOAT, {0}), zero, zero).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0})));
  EXPECT_THAT(Quantized("QuantizeAndDequantizeV2", AsTensor<float>({0, 0}), zero, zero).RunOne(),
              TensorEq(AsTensor<float>({0, 0})));
  // With one signed bit in a narrow range, 0 is the only integer.
  EXPECT_THAT(Quantized("QuantizeAndDequantizeV2", AsTensor<float>({2.5f}), AsScalar<float>(1),
                        AsScalar<float>(10))
                  .Attr("num_bits", int64_t{1})
                  .Attr("range_given", true)
                  .Attr("narrow_range", true)
                  .RunOne(),
              TensorEq(AsTensor<float>({0})));
}

TEST(QuantizeAndDequantize, RejectsBadArguments) {
  const Tensor input = Iota<float>({2, 3});
  const Tensor one = AsScalar<float>(1);
  const auto quantized = [&](const Tensor& min, const Tensor& max, int64_t axis) {
    return Quantized("QuantizeAndDequantizeV2", input, min, max)
        .Attr("range_given", true)
        .Attr("axis", axis);
  };
  ExpectErrors({
      {"2021-185", quantized(one, one, -100),
       "axis must be -1 or a dimension of input, of shape [2,3], but is -100"},
      {"2022-168", quantized(one, one, INT32_MAX), "axis must be -1 or a dimension of input"},
      {"min", quantized(AsTensor<float>({1}), one, -1),
       "input_min must have shape [], by axis -1 and input of shape [2,3], but has shape [1]"},
      {"max", quantized(AsTensor<float>({1, 1, 1}), one, 1),
       "input_max must have shape [3], by axis 1 and input of shape [2,3], but has shape []"},
      {"bits", quantized(one, one, -1).Attr("num_bits", int64_t{62}),
       "num_bits must be in [1, 61], but is 62"},
      {"unsigned bits",
       quantized(one, one, -1).Attr("num_bits", int64_t{63}).Attr("signed_input", false),
       "num_bits must be in [1, 62], but is 63"},
      {"bits input",
       Quantized("QuantizeAndDequantizeV3", input, one, one).Input(AsScalar<int32_t>(0)),
       "num_bits must be in [1, 61], but is 0"},
      {"bits shape", Quantized("QuantizeAndDequantizeV3", input, one, one).Input<int32_t>({8}),
       "Shape must be rank 0 but is rank 1: num_bits has shape [1]"},
  });
  EXPECT_THAT(quantized(one, AsScalar<float>(0), -1).Run(),
              StatusIs(kInvalidArgument, "Invalid range: input_min 1 > input_max 0"));
  EXPECT_THAT(quantized(AsTensor<float>({0, 2}), AsTensor<float>({1, 1}), 0).Run(),
              StatusIs(kInvalidArgument, "Invalid range: input_min 2 > input_max 1 in channel 1"));
  EXPECT_THAT(quantized(AsScalar<float>(kNan), one, -1).Run(), StatusIs(kInvalidArgument));
}

OpTester Gradient(const Tensor& gradients, const Tensor& input, const Tensor& min,
                  const Tensor& max) {
  return OpTester("QuantizeAndDequantizeV4Grad")
      .Input(gradients)
      .Input(input)
      .Input(min)
      .Input(max);
}

// The expected values are results of TensorFlow 2.21.
TEST(QuantizeAndDequantizeV4Grad, PassesGradientsWithinTheRange) {
  const Tensor dy = Iota<float>({8}, 1);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> whole,
      Gradient(dy, AsTensor<float>(kNumbers), AsScalar<float>(-1), AsScalar<float>(1)).Run());
  EXPECT_THAT(whole[0], TensorEq(AsTensor<float>({0, 0, 3, 4, 5, 6, 7, 0})));
  EXPECT_THAT(whole[1], TensorEq(AsScalar<float>(0)));
  EXPECT_THAT(whole[2], TensorEq(AsScalar<float>(0)));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> columns,
      Gradient(*dy.Reshaped({2, 4}), AsTensor<float>(kNumbers, {2, 4}),
               AsTensor<float>({-1, 0, 0, 0}), AsTensor<float>({0, 1, 1, 1}))
          .Attr("axis", int64_t{1})
          .Run());
  EXPECT_THAT(columns[0], TensorEq(AsTensor<float>({0, 0, 0, 4, 0, 6, 7, 0}, {2, 4})));
  EXPECT_THAT(columns[1], TensorEq(AsTensor<float>({0, 0, 0, 0})));
  for (const DataType dtype : {DT_DOUBLE, DT_HALF, DT_BFLOAT16}) {
    GRADFLOW_ASSERT_OK_AND_ASSIGN(
        const std::vector<Tensor> edges,
        Gradient(FromDoubles(dtype, {3}, {1, 2, 3}), FromDoubles(dtype, {3}, {-1, 1, kNan}),
                 FromDoubles(dtype, {}, {-1}), FromDoubles(dtype, {}, {1}))
            .Run());
    EXPECT_THAT(edges[0], TensorEq(FromDoubles(dtype, {3}, {1, 2, 0})));
  }
}

TEST(QuantizeAndDequantizeV4Grad, MultipliesByTheMask) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> outputs,
      Gradient(AsTensor<float>({kInf, kNan, -1, kInf}), AsTensor<float>({2, 2, 2, 0}),
               AsScalar<float>(-1), AsScalar<float>(1))
          .Run());
  EXPECT_THAT(outputs[0], TensorEq(AsTensor<float>({kNan, kNan, -0.0f, kInf})));
}

TEST(QuantizeAndDequantizeV4Grad, RejectsBadArguments) {
  const Tensor x = AsTensor<float>({1, 1});
  ExpectErrors({
      {"2021-119",
       Gradient(x, x, AsTensor<float>({0}), AsTensor<float>({10})).Attr("axis", int64_t{-100}),
       "axis must be -1 or a dimension of input, of shape [2], but is -100"},
      {"2021-031",
       Gradient(x, x, AsTensor<float>({0}, {1, 1}), AsTensor<float>({0}, {1, 1}))
           .Attr("axis", int64_t{0}),
       "input_min must have shape [2], by axis 0 and input of shape [2], but has shape [1,1]"},
      {"2022-062", Gradient(x, x, Tensor(DT_FLOAT, {0}), AsScalar<float>(-10)),
       "input_min must have shape []"},
      {"gradients", Gradient(Iota<float>({3}), x, AsScalar<float>(0), AsScalar<float>(1)),
       "Dimension 0 in both shapes must be equal, but are 3 and 2: gradients has shape [3], and "
       "input has shape [2]"},
  });
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
