// Tests of UseIntegers: which nodes compute in integers, and that their results are within one step
// of the float graph.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/simd.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/plan/passes.h"
#include "gradflow/runtime/plan/plan.h"
#include "gradflow/runtime/plan/plan_report.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/runtime/session/options.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/runtime/plan/plan_labels.h"

namespace gradflow {
namespace integer_inference_test {
namespace {

using ::gradflow::testing::AsTensor;
using ::gradflow::testing::RandomTensor;
using ::gradflow::testing::TensorEq;
using ::gradflow::testing::TensorNear;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Build = std::function<Output(const Scope& s, const Output& x)>;

// Rounds activations to 256 levels.
Output Quantized(const Scope& s, const Output& x, float min = -4, float max = 4) {
  return ops::FakeQuantWithMinMaxVars(s, x, min, max);
}

Output Random(const Scope& s, const TensorShape& shape, uint32_t seed, double low = -1,
              double high = 1) {
  return ops::Const(s, RandomTensor(DT_FLOAT, shape, low, high, seed));
}

// Rounds random weights, with a range for each output channel.
Output Weights(const Scope& s, const TensorShape& shape, uint32_t seed = 1) {
  const TensorShape channels = {shape.dim_size(shape.dims() - 1)};
  const Output max = Random(s, channels, seed + 1, 0.5, 1);
  return ops::FakeQuantWithMinMaxVarsPerChannel(
      s, Random(s, shape, seed), ops::Neg(s, max), max,
      ops::FakeQuantWithMinMaxVarsPerChannel::NarrowRange(true));
}

Output Conv(const Scope& s, const Output& x, int in, int out, int size = 3, int stride = 1,
            uint32_t seed = 1) {
  return ops::Conv2D(s, x, Weights(s, {size, size, in, out}, seed), {1, stride, stride, 1}, "SAME");
}

class IntegerInferenceTest : public ::testing::Test {
 protected:
  std::vector<std::string> Labels(const std::vector<Output>& fetches) {
    PlanOptions options;
    options.integer_inference = true;
    return PlanLabels(scope_, x_, fetches, options);
  }

  absl::StatusOr<Tensor> Run(const Output& fetch, const Tensor& x, bool integers, int threads = 1,
                             bool tflite_rounding = false) const {
    SessionOptions options;
    options.tflite_rounding = tflite_rounding;
    options.config.set_intra_op_parallelism_threads(threads);
    options.config.set_inter_op_parallelism_threads(threads);
    options.integer_inference = integers;
    ClientSession session(scope_, options);
    std::vector<Tensor> outputs;
    GRADFLOW_RETURN_IF_ERROR(session.Run({{x_, x}}, {fetch}, &outputs));
    return outputs[0];
  }

  // Expects that the results differ by at most `step`, and that they have the same bits on any
  // number of threads and on all instruction sets.
  void ExpectWithin(double step, const Output& fetch, const Tensor& x) const {
    const auto expected = Run(fetch, x, false);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const auto found = Run(fetch, x, true);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(found->shape(), expected->shape());
    int64_t different = 0;
    for (int64_t i = 0; i < found->NumElements(); ++i) {
      const double difference = std::abs(found->flat<float>()(i) - expected->flat<float>()(i));
      ASSERT_LE(difference, step * 1.0001 + 1e-5) << "element " << i;
      if (difference > 0.5 * step) ++different;
    }
    // Only values at the border between two steps may differ.
    if (step > 0) {
      EXPECT_LE(different, 1 + found->NumElements() / 50);
    }
    for (const int threads : {2, 8}) {
      const auto again = Run(fetch, x, true, threads);
      ASSERT_TRUE(again.ok()) << again.status();
      ASSERT_THAT(*again, TensorEq(*found)) << threads << " threads";
    }
    for (const std::string& target : SimdTargets()) {
      ASSERT_TRUE(SetSimdTarget(target));
      const auto again = Run(fetch, x, true);
      SetSimdTarget("");
      ASSERT_TRUE(again.ok()) << again.status();
      ASSERT_THAT(*again, TensorEq(*found)) << target;
    }
  }

  Scope scope_ = Scope::NewRootScope();
  Output x_ = ops::Placeholder(scope_.WithOpName("x"), DT_FLOAT);
};

// The scales of the ranges should not have simple ratios, because many values would be at the
// border between two steps.
struct Case {
  const char* name;
  TensorShape shape;
  // The nodes that the pass adds, in the order of the plan.
  std::vector<std::string> labels;
  // Builds the nodes between two quantizers.
  Build build;
  float min = -4;
  float max = 4;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::vector<Case> Cases() {
  const auto with = [](std::vector<std::string> labels) {
    labels.insert(labels.begin(), "Quantize(FakeQuantWithMinMaxVars)");
    return labels;
  };
  return {
      {"Conv",
       {2, 9, 7, 5},
       with({"IntegerConv2D(Conv2D)"}),
       [](const Scope& s, const Output& x) { return Conv(s, x, 5, 20); }},
      {"Strides",
       {1, 15, 12, 3},
       with({"IntegerConv2D(Conv2D)"}),
       [](const Scope& s, const Output& x) { return Conv(s, x, 3, 8, 5, 2); }},
      {"BiasRelu",
       {2, 9, 7, 16},
       with({"IntegerConv2D(Conv2D, BiasAdd, Relu)"}),
       [](const Scope& s, const Output& x) {
         return ops::Relu(s, ops::BiasAdd(s, Conv(s, x, 16, 32, 1), Random(s, {32}, 3)));
       }},
      {"NormRelu6",
       {1, 8, 8, 8},
       with({"IntegerConv2D(Conv2D, FusedBatchNormV3, Relu6)"}),
       [](const Scope& s, const Output& x) {
         const Output norm =
             ops::FusedBatchNormV3(s, Conv(s, x, 8, 12), Random(s, {12}, 3), Random(s, {12}, 4),
                                   Random(s, {12}, 5), Random(s, {12}, 6, 0.5, 2),
                                   ops::FusedBatchNormV3::IsTraining(false))
                 .y;
         return ops::Relu6(s, norm);
       },
       0,
       6},
      {"ScaleShiftPool",
       {1, 8, 8, 8},
       with({"IntegerConv2D(Conv2D, Mul, AddV2, Relu)", "IntegerMaxPool(MaxPool)"}),
       [](const Scope& s, const Output& x) {
         const Output scaled = ops::AddV2(s, Random(s, {1, 1, 1, 12}, 3),
                                          ops::Mul(s, Conv(s, x, 8, 12), Random(s, {12}, 4)));
         return ops::MaxPool(s, ops::Relu(s, scaled), {1, 2, 2, 1}, {1, 2, 2, 1}, "SAME");
       },
       0,
       3},
      {"Grouped",
       {1, 6, 6, 12},
       with({"IntegerConv2D(Conv2D, Sub)"}),
       [](const Scope& s, const Output& x) {
         return ops::Sub(s, Conv(s, x, 4, 9), Random(s, {}, 4));
       }},
      {"Depthwise",
       {2, 9, 9, 35},
       with({"IntegerDepthwiseConv2dNative(DepthwiseConv2dNative, BiasAdd)"}),
       [](const Scope& s, const Output& x) {
         return ops::BiasAdd(
             s, ops::DepthwiseConv2dNative(s, x, Weights(s, {3, 3, 35, 1}), {1, 1, 1, 1}, "SAME"),
             Random(s, {35}, 3));
       }},
      {"DepthwiseReshaped",
       {1, 9, 9, 6},
       with({"IntegerDepthwiseConv2dNative(DepthwiseConv2dNative)"}),
       [](const Scope& s, const Output& x) {
         const Output weights = ops::Reshape(s, Weights(s, {9, 12}), {3, 3, 6, 2});
         return ops::DepthwiseConv2dNative(s, x, weights, {1, 2, 2, 1}, "VALID",
                                           ops::DepthwiseConv2dNative::Dilations({1, 1, 1, 1}));
       }},
      {"MatMul",
       {7, 50},
       with({"IntegerMatMul(MatMul, BiasAdd)"}),
       [](const Scope& s, const Output& x) {
         return ops::BiasAdd(s, ops::MatMul(s, x, Weights(s, {50, 70})), Random(s, {70}, 3));
       },
       -9,
       8},
      {"MatMulTransposed",
       {3, 33},
       with({"IntegerMatMul(MatMul)"}),
       [](const Scope& s, const Output& x) {
         const Output weights = Quantized(s, Random(s, {21, 33}, 2), -1, 1);
         return ops::MatMul(s, x, weights, ops::MatMul::TransposeB(true));
       }},
      {"AsymmetricWeights",
       {3, 33},
       with({"IntegerMatMul(MatMul)"}),
       [](const Scope& s, const Output& x) {
         return ops::MatMul(s, x, Quantized(s, Random(s, {33, 21}, 2, 0, 2), 0, 2));
       }},
      {"IntegerWeights",
       {3, 33},
       with({"IntegerMatMul(MatMul, Mul)"}),
       [](const Scope& s, const Output& x) {
         const Output weights =
             ops::Cast(s, ops::Const(s, RandomTensor(DT_INT8, {33, 21}, -127, 127, 3)), DT_FLOAT);
         return ops::Mul(s, ops::MatMul(s, x, weights), 0.01f);
       }},
      {"Add",
       {2, 300},
       with({"IntegerAddV2(AddV2, Relu)"}),
       [](const Scope& s, const Output& x) { return ops::Relu(s, ops::AddV2(s, x, x)); },
       -4,
       3.77f},
      {"Mul",
       {2, 300},
       with({"IntegerMul(Mul)"}),
       [](const Scope& s, const Output& x) { return ops::Mul(s, x, x); }},
      {"Sigmoid",
       {2, 300},
       with({"IntegerLookUp(Sigmoid)"}),
       [](const Scope& s, const Output& x) { return ops::Sigmoid(s, x); },
       0,
       1},
      {"Requantize",
       {2, 300},
       with({"IntegerLookUp(FakeQuantWithMinMaxVars)"}),
       [](const Scope&, const Output& x) { return x; },
       -1,
       3},
      {"Gelu",
       {2, 300},
       with({"IntegerLookUp(Mul, Erf, AddV2, Mul, Mul)"}),
       [](const Scope& s, const Output& x) {
         const Output erf = ops::Erf(s, ops::Mul(s, x, 0.70710678f));
         return ops::Mul(s, ops::Mul(s, x, ops::AddV2(s, erf, 1.0f)), 0.5f);
       },
       -0.2f,
       3},
      {"AddRow",
       {6, 30},
       with({"IntegerMean(Mean)", "IntegerAddV2(AddV2)"}),
       [](const Scope& s, const Output& x) {
         const Output row = Quantized(s, ops::Mean(s, x, {0}), -1, 1.17f);
         return ops::AddV2(s, x, row);
       },
       -4,
       3.77f},
      {"MulColumn",
       {6, 30},
       with({"IntegerMean(Mean)", "IntegerMul(Mul)"}),
       [](const Scope& s, const Output& x) {
         const Output column =
             Quantized(s, ops::Mean(s, x, {1}, ops::Mean::KeepDims(true)), -1, 1.17f);
         return ops::Mul(s, column, x);
       },
       -4,
       3.77f},
      {"AvgPool",
       {2, 9, 7, 20},
       with({"IntegerAvgPool(AvgPool)"}),
       [](const Scope& s, const Output& x) {
         return ops::AvgPool(s, x, {1, 3, 3, 1}, {1, 2, 2, 1}, "SAME");
       },
       -3,
       1.77f},
      {"MeanRelu",
       {2, 9, 7, 300},
       with({"IntegerMean(Mean, Relu)", "IntegerReshape(Reshape)"}),
       [](const Scope& s, const Output& x) {
         const Output mean = ops::Mean(s, x, {1, 2}, ops::Mean::KeepDims(true));
         return ops::Reshape(s, ops::Relu(s, mean), {-1, 300});
       },
       -0.5f,
       1},
      {"Softmax",
       {7, 30},
       with({"IntegerSoftmax(Softmax)"}),
       [](const Scope& s, const Output& x) { return ops::Softmax(s, x); },
       0,
       1},
      {"LongSoftmax",
       {3, 700},
       with({"IntegerSoftmax(Softmax)"}),
       [](const Scope& s, const Output& x) { return ops::Softmax(s, x); },
       0,
       0.02f},
      {"Attention",
       {2, 3, 9, 10},
       with({"IntegerBatchMatMulV2(BatchMatMulV2, Mul)", "IntegerSoftmax(Softmax)",
             "IntegerBatchMatMulV2(BatchMatMulV2)"}),
       [](const Scope& s, const Output& x) {
         const Output scores =
             ops::Mul(s, ops::BatchMatMulV2(s, x, x, ops::BatchMatMulV2::AdjY(true)), 0.3f);
         const Output weights = Quantized(s, ops::Softmax(s, Quantized(s, scores, -9, 9)), 0, 1);
         return ops::BatchMatMulV2(s, weights, x);
       }},
      {"MatMulOfActivations",
       {7, 10},
       with({"IntegerMatMul(MatMul)"}),
       [](const Scope& s, const Output& x) {
         return ops::MatMul(s, x, x, ops::MatMul::TransposeA(true));
       },
       -20,
       30},
      {"ConcatOfRanges",
       {3, 20},
       with({"IntegerLookUp(Sigmoid)", "IntegerLookUp(FakeQuantWithMinMaxVars)",
             "IntegerLookUp(FakeQuantWithMinMaxVars)", "IntegerConcatV2(ConcatV2)"}),
       [](const Scope& s, const Output& x) {
         return ops::Concat(s, {Quantized(s, ops::Sigmoid(s, x), 0, 1), x}, 1);
       }},
      {"Resize",
       {2, 3, 4, 5},
       with({"IntegerResizeNearestNeighbor(ResizeNearestNeighbor)", "IntegerPad(Pad)",
             "IntegerTranspose(Transpose)", "ZeroPoint(Pad)"}),
       [](const Scope& s, const Output& x) {
         const Output big = ops::ResizeNearestNeighbor(s, x, {7, 9});
         return ops::Transpose(s, ops::Pad(s, big, {{0, 0}, {1, 0}, {0, 2}, {0, 0}}), {0, 2, 1, 3});
       },
       -3,
       2},
  };
}

class IntegerOps : public IntegerInferenceTest, public ::testing::WithParamInterface<Case> {};

TEST_P(IntegerOps, AreWithinOneStep) {
  const Case& c = GetParam();
  const Output input = Quantized(scope_, x_, -3, 2);
  const Output y = Quantized(scope_, c.build(scope_, input), c.min, c.max);
  GRADFLOW_ASSERT_OK(scope_.status());
  // A product with a matrix of integers, so that something reads the integers.
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor result,
                                Run(y, RandomTensor(DT_FLOAT, c.shape, -4, 4, 1), false));
  const int64_t channels = result.dim_size(result.dims() - 1);
  Tensor identity(DT_FLOAT, {channels, channels});
  for (int64_t i = 0; i < channels * channels; ++i) {
    identity.flat<float>()(i) = i / channels == i % channels ? 1 : 0;
  }
  const Output read = ops::MatMul(scope_, ops::Reshape(scope_, y, {-1, static_cast<int>(channels)}),
                                  ops::Const(scope_, identity));
  std::vector<std::string> labels = Labels({read});
  std::vector<std::string> expected = c.labels;
  expected.insert(expected.end(), {"IntegerReshape(Reshape)", "IntegerMatMul(MatMul)"});
  EXPECT_THAT(labels, ::testing::UnorderedElementsAreArray(expected));
  for (const uint32_t seed : {1u, 2u}) {
    ExpectWithin((c.max - c.min) / 255, read, RandomTensor(DT_FLOAT, c.shape, -4, 4, seed));
  }
}

INSTANTIATE_TEST_SUITE_P(IntegerInference, IntegerOps, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return std::string(info.param.name); });

// A random product with random sizes, ranges, bits and nodes after it.
struct RandomGraph {
  explicit RandomGraph(uint32_t seed) : random(seed) {}
  int Pick(int low, int high) {
    return low + static_cast<int>(random() % static_cast<uint32_t>(high - low + 1));
  }

  Output Quantize(const Scope& s, const Output& x, float min, float max, int bits, bool narrow) {
    switch (Pick(0, 2)) {
      case 0:
        return ops::FakeQuantWithMinMaxArgs(
            s, x,
            ops::FakeQuantWithMinMaxArgs::Min(min).Max(max).NumBits(bits).NarrowRange(narrow));
      case 1:
        return ops::FakeQuantWithMinMaxVars(
            s, x, min, max, ops::FakeQuantWithMinMaxVars::NumBits(bits).NarrowRange(narrow));
      default:
        return ops::QuantizeAndDequantizeV2(
            s, x, min, max,
            ops::QuantizeAndDequantizeV2::SignedInput(min < 0)
                .NumBits(bits)
                .RangeGiven(true)
                .NarrowRange(narrow)
                .RoundMode(Pick(0, 1) == 0 ? "HALF_TO_EVEN" : "HALF_UP"));
    }
  }

  // Returns the result; sets *shape to the shape of x and *step to the step of the result.
  Output Build(const Scope& s, const Output& x, TensorShape* shape, double* step) {
    const int bits = Pick(2, 8);
    const float low = Pick(0, 3) == 0 ? 0.0f : -static_cast<float>(Pick(1, 40)) / 10;
    const Output input = Quantize(s, x, low, static_cast<float>(Pick(5, 40)) / 10, bits, false);
    const bool is_conv = Pick(0, 3) > 0;
    const bool depthwise = is_conv && Pick(0, 2) == 0;
    const int in = Pick(1, 20);
    const int out = depthwise ? in : Pick(1, 40);
    TensorShape weights_shape = {in, out};
    *shape = {Pick(1, 9), in};
    if (is_conv) {
      const int size = Pick(1, 3);
      weights_shape = depthwise ? TensorShape{size, size, in, 1} : TensorShape{size, size, in, out};
      *shape = {Pick(1, 2), Pick(4, 9), Pick(4, 9), in};
    }
    const bool asymmetric = Pick(0, 3) == 0;
    const Output weights = Quantize(s, Random(s, weights_shape, random()),
                                    asymmetric ? -0.4f : -1.0f, 1.0f, Pick(3, 8), Pick(0, 1) == 0);
    Output y;
    if (!is_conv) {
      y = ops::MatMul(s, input, weights);
    } else {
      const int stride = Pick(1, 2);
      const int dilation = stride == 1 ? Pick(1, 2) : 1;
      const char* const padding = Pick(0, 1) == 0 && dilation == 1 ? "VALID" : "SAME";
      y = depthwise ? Output(ops::DepthwiseConv2dNative(
                          s, input, weights, {1, stride, stride, 1}, padding,
                          ops::DepthwiseConv2dNative::Dilations({1, dilation, dilation, 1})))
                    : Output(ops::Conv2D(s, input, weights, {1, stride, stride, 1}, padding,
                                         ops::Conv2D::Dilations({1, dilation, dilation, 1})));
    }
    if (Pick(0, 1) == 0) y = ops::BiasAdd(s, y, Random(s, {out}, random()));
    if (Pick(0, 3) == 0) y = ops::Mul(s, y, Random(s, {out}, random(), -2, 2));
    const int relu = Pick(0, 2);
    if (relu == 1) y = ops::Relu(s, y);
    if (relu == 2) y = ops::Relu6(s, y);
    const int out_bits = Pick(2, 8);
    const float out_low = relu > 0 ? 0.0f : -static_cast<float>(Pick(1, 90)) / 10;
    const float out_high = static_cast<float>(Pick(5, 90)) / 10;
    // QuantizeAndDequantizeV2 may use a longer range.
    *step = 2 * std::max(-out_low, out_high) / ((1 << out_bits) - 2);
    return ops::FakeQuantWithMinMaxVars(s, y, out_low, out_high,
                                        ops::FakeQuantWithMinMaxVars::NumBits(out_bits));
  }

  std::mt19937 random;
};

TEST_F(IntegerInferenceTest, RandomOpsAreWithinOneStep) {
  for (uint32_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    scope_ = Scope::NewRootScope();
    x_ = ops::Placeholder(scope_.WithOpName("x"), DT_FLOAT);
    RandomGraph graph(seed);
    TensorShape shape;
    double step = 0;
    const Output y = graph.Build(scope_, x_, &shape, &step);
    GRADFLOW_ASSERT_OK(scope_.status());
    ASSERT_THAT(Labels({y}), Contains(::testing::StartsWith("Integer")));
    ExpectWithin(step, y, RandomTensor(DT_FLOAT, shape, -5, 5, seed + 1));
    if (HasFatalFailure()) return;
  }
}

TEST_F(IntegerInferenceTest, FloatReadersOfAProductReadFloats) {
  const Output y = ops::Elu(scope_, Conv(scope_, Quantized(scope_, x_), 4, 8));
  EXPECT_THAT(Labels({y}),
              ElementsAre("Quantize(FakeQuantWithMinMaxVars)", "IntegerConv2D(Conv2D)"));
  ExpectWithin(0, y, RandomTensor(DT_FLOAT, {1, 8, 8, 4}, -4, 4));
}

TEST_F(IntegerInferenceTest, PixelsAreIntegers) {
  x_ = ops::Placeholder(scope_.WithOpName("pixels"), DT_UINT8);
  const Output pixels = ops::Mul(scope_, ops::Cast(scope_, x_, DT_FLOAT), 1.0f / 255);
  const Output y = Conv(scope_, ops::Reshape(scope_, pixels, {-1, 8, 8, 1}), 1, 8);
  EXPECT_THAT(Labels({y}), ElementsAre("IntegerReshape(Reshape)", "IntegerConv2D(Conv2D)"));
  ExpectWithin(0, y, RandomTensor(DT_UINT8, {3, 64}, 0, 255));
}

// A residual block with everything between two pools.
TEST_F(IntegerInferenceTest, NetworksStayInIntegers) {
  const Scope& s = scope_;
  const Output image = Quantized(s, x_, 0, 1);
  const auto conv = [&](const Output& x, int in, int out, int size, bool relu, uint32_t seed) {
    Output y = ops::BiasAdd(s, Conv(s, x, in, out, size, 1, seed), Random(s, {out}, seed + 7));
    if (relu) y = ops::Relu(s, y);
    return Quantized(s, y, relu ? 0 : -6, 6);
  };
  const Output a = conv(image, 3, 16, 3, true, 1);
  const Output pool = ops::MaxPool(s, a, {1, 2, 2, 1}, {1, 2, 2, 1}, "VALID");
  const Output b = conv(conv(pool, 16, 24, 1, true, 2), 24, 16, 3, false, 3);
  const Output sum = Quantized(s, ops::Relu(s, ops::AddV2(s, b, pool)), 0, 8);
  const Output padded = ops::Pad(s, sum, {{0, 0}, {1, 1}, {1, 1}, {0, 0}});
  const Output both = ops::Concat(s, {padded, padded}, 3);
  const Output c = conv(both, 32, 8, 3, true, 4);
  const Output logits =
      ops::MatMul(s, ops::Reshape(s, c, {-1, 6 * 6 * 8}), Weights(s, {6 * 6 * 8, 10}, 9));
  EXPECT_THAT(Labels({logits}),
              ElementsAre("Quantize(FakeQuantWithMinMaxVars)",
                          "IntegerConv2D(Conv2D, BiasAdd, Relu)", "IntegerMaxPool(MaxPool)",
                          "IntegerConv2D(Conv2D, BiasAdd, Relu)", "IntegerConv2D(Conv2D, BiasAdd)",
                          "IntegerAddV2(AddV2, Relu)", "ZeroPoint(Pad)", "IntegerPad(Pad)",
                          "IntegerConcatV2(ConcatV2)", "IntegerConv2D(Conv2D, BiasAdd, Relu)",
                          "IntegerReshape(Reshape)", "IntegerMatMul(MatMul)"));
  ExpectWithin(3, logits, RandomTensor(DT_FLOAT, {2, 8, 8, 3}, 0, 1));
}

TEST_F(IntegerInferenceTest, ReportsWhyNodesComputeInFloats) {
  const Scope& s = scope_;
  const Output x = Quantized(s, x_);
  const Output range = ops::ReduceMax(s, x_, {0, 1, 2, 3});
  const Output a = Conv(s.NewSubScope("a"), x_, 4, 4);
  const Output b =
      ops::Conv2D(s.WithOpName("b"), x, Random(s, {1, 1, 4, 4}, 1), {1, 1, 1, 1}, "SAME");
  const Output c = ops::FakeQuantWithMinMaxVars(s.WithOpName("c"), x_, 0.0f, range);
  const Output d =
      ops::FakeQuantWithMinMaxArgs(s.WithOpName("d"), x_, ops::FakeQuantWithMinMaxArgs::NumBits(9));
  const Output e = ops::Softmax(s.WithOpName("e"), x);
  const Output f = ops::Softplus(s.WithOpName("f"), ops::ReduceMax(s.NewSubScope("g"), x, {0}));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const PlanReport report,
      ReportPlan(*s.graph(), {"x"}, {a.name(), b.name(), c.name(), d.name(), e.name(), f.name()},
                 false, true));
  EXPECT_THAT(
      InFloat(report),
      ::testing::UnorderedElementsAre(
          "a/Conv2D: its input is not quantized", "b: its weights are not quantized to 8 bits",
          "c: its range is not constant", "d: it rounds to more than 256 levels",
          "e: no fake-quantization node reads its result", "g/Max: this op has no integer kernel"));
}

// A table may be part of a longer table, so only the last node is reported.
TEST_F(IntegerInferenceTest, ReportsFunctionsAndConcatenationsThatNoQuantizerReads) {
  const Scope& s = scope_;
  const Output x = Quantized(s, x_);
  const Output a = ops::Sigmoid(s.WithOpName("a"), x);
  const Output b = ops::Tanh(s.WithOpName("b"), a);
  const Output used = Quantized(s, ops::Tanh(s.WithOpName("used"), x), -1, 1);
  const Output c = ops::Concat(s.WithOpName("c"), {used, x}, 0);
  const Output d = ops::MatMul(s.WithOpName("d"), used, Weights(s, {4, 4}));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const PlanReport report,
      ReportPlan(*s.graph(), {"x"}, {b.name(), c.name(), d.name()}, false, true));
  EXPECT_THAT(InFloat(report),
              ::testing::UnorderedElementsAre("b: no fake-quantization node reads its result",
                                              "c: no fake-quantization node reads its result"));
}

// An op that fits no table, because its other input is not constant, leaves the table as it is.
TEST_F(IntegerInferenceTest, ReportsATableWhoseReaderCannotContinueIt) {
  const Scope& s = scope_;
  const Output a = ops::Sigmoid(s.WithOpName("a"), Quantized(s, x_));
  const Output b = ops::Add(s.WithOpName("b"), a, x_);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const PlanReport report,
                                ReportPlan(*s.graph(), {"x"}, {b.name()}, false, true));
  EXPECT_THAT(InFloat(report), ElementsAre("a: no fake-quantization node reads its result"));
}

// Results whose steps are far smaller than the steps of the inputs compute in floats.
TEST_F(IntegerInferenceTest, HugeRatiosOfScalesStayInFloat) {
  const TensorShape shape = {2, 4, 4, 3};
  constexpr char kTooLarge[] = "its results exceed the range of its format";
  struct Case {
    Build build;
    // The op that stays in float with the rounding of TensorFlow Lite; empty if all ops compute in
    // integers.
    std::string op;
    // The float factor of a product may be larger.
    bool in_integers_by_default = false;
  };
  const Case cases[] = {
      {[](const Scope& s, const Output& x) { return ops::AddV2(s, x, x); }, "AddV2"},
      {[](const Scope& s, const Output& x) { return ops::Mul(s, x, x); }, "Mul"},
      {[](const Scope& s, const Output& x) {
         return ops::AvgPool(s, x, {1, 2, 2, 1}, {1, 2, 2, 1}, "SAME");
       },
       "AvgPool"},
      {[](const Scope& s, const Output& x) {
         return ops::Mean(s, x, {1, 2}, ops::Mean::KeepDims(true));
       },
       "Mean"},
      {[](const Scope& s, const Output& x) {
         return ops::BatchMatMulV2(s, x, x, ops::BatchMatMulV2::AdjY(true));
       },
       "BatchMatMulV2"},
      {[](const Scope& s, const Output& x) { return ops::Mul(s, ops::Softmax(s, x), 1e20f); },
       "Softmax"},
      {[](const Scope& s, const Output& x) { return ops::Mul(s, ops::Softmax(s, x), -0.0f); }, ""},
      {[](const Scope&, const Output& x) { return x; }, ""},
      {[](const Scope& s, const Output& x) { return ops::Relu(s, x); }, ""},
      {[](const Scope& s, const Output& x) { return Conv(s, x, 3, 3); }, "Conv2D", true},
  };
  for (size_t i = 0; i < std::size(cases); ++i) {
    SCOPED_TRACE(i);
    scope_ = Scope::NewRootScope();
    x_ = ops::Placeholder(scope_.WithOpName("x"), DT_FLOAT);
    const Output input = Quantized(scope_, x_, -1e18f, 1e18f);
    const Output y = Quantized(scope_, cases[i].build(scope_, input), -1e-18f, 1e-18f);
    const Output scores = ops::BatchMatMulV2(scope_, y, y, ops::BatchMatMulV2::AdjY(true));
    const Output result = Quantized(scope_, scores, -1, 1);
    GRADFLOW_ASSERT_OK(scope_.status());
    for (const bool tflite_rounding : {false, true}) {
      GRADFLOW_ASSERT_OK_AND_ASSIGN(
          const PlanReport report,
          ReportPlan(*scope_.graph(), {"x"}, {y.name()}, false, true, tflite_rounding));
      std::vector<std::string> expected;
      if (!cases[i].op.empty() && (tflite_rounding || !cases[i].in_integers_by_default)) {
        expected = {absl::StrCat(cases[i].op, ": ", kTooLarge)};
      }
      EXPECT_EQ(InFloat(report), expected) << tflite_rounding;
    }
    for (const Tensor& x :
         {RandomTensor(DT_FLOAT, shape, -2e18, 2e18), RandomTensor(DT_FLOAT, shape, 0, 0)}) {
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor expected, Run(y, x, false));
      for (const bool tflite_rounding : {false, true}) {
        GRADFLOW_EXPECT_OK(Run(result, x, true, 1, tflite_rounding).status());
        GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor found, Run(y, x, true, 1, tflite_rounding));
        for (int64_t k = 0; k < found.NumElements(); ++k) {
          ASSERT_LE(std::abs(found.flat<float>()(k) - expected.flat<float>()(k)), 2e-18 / 250);
        }
      }
    }
  }
}

// A range of a fake-quantization node no longer tells the scale after a multiplication.
TEST_F(IntegerInferenceTest, BiasesOfScaledIntegersHaveTheirScale) {
  const Output pixels = ops::Mul(scope_, Quantized(scope_, x_, 0, 255), 1.0f / 64);
  const Output sum = ops::BiasAdd(scope_, ops::MatMul(scope_, pixels, Weights(scope_, {5, 7})),
                                  Random(scope_, {7}, 2, -3, 3));
  const Output y = Quantized(scope_, sum, -8, 9);
  const Tensor x = RandomTensor(DT_FLOAT, {6, 5}, 0, 255);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor expected, Run(y, x, false));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor found, Run(y, x, true, 1, true));
  EXPECT_THAT(found, TensorNear(expected, 1.01 * 17 / 255, 0));
}

// A channel that a batch normalization multiplies by 0 has the value of its offset.
TEST_F(IntegerInferenceTest, ChannelsThatAreMultipliedBy0KeepTheirOffset) {
  const Output product = ops::MatMul(scope_, Quantized(scope_, x_), Weights(scope_, {5, 3}));
  const Output scaled = ops::Mul(scope_, product, {1.0f, 0.0f, 0.5f});
  const Output sum = ops::BiasAdd(scope_, scaled, ops::Const(scope_, {0.5f, -1.5f, 0.25f}));
  const Output y = Quantized(scope_, sum, -4, 3.7f);
  const Tensor x = RandomTensor(DT_FLOAT, {6, 5}, -4, 4);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor expected, Run(y, x, false));
  for (const bool tflite_rounding : {false, true}) {
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor found, Run(y, x, true, 1, tflite_rounding));
    EXPECT_THAT(found, TensorNear(expected, 1.01 * 7.7 / 255, 0));
  }
}

// Each product packs its weights, so that copies could exhaust the memory.
TEST_F(IntegerInferenceTest, OnlyOneOfSeveralProductsPacksSharedWeights) {
  const Output weights = Weights(scope_, {4, 4});
  Output y = x_;
  for (int i = 0; i < 3; ++i) y = ops::MatMul(scope_, Quantized(scope_, y), weights);
  int products = 0;
  for (const std::string& label : Labels({y})) products += label == "IntegerMatMul(MatMul)";
  EXPECT_EQ(products, 1);
  ExpectWithin(0.3, y, RandomTensor(DT_FLOAT, {5, 4}, -4, 4));
}

// Nodes that a kernel replaces may have control inputs. The kernel then waits for them.
TEST_F(IntegerInferenceTest, ReplacedNodesKeepTheirControlInputs) {
  // Places in a small network where a node has a control input.
  for (int place = 0; place < 8; ++place) {
    SCOPED_TRACE(place);
    scope_ = Scope::NewRootScope();
    x_ = ops::Placeholder(scope_.WithOpName("x"), DT_FLOAT);
    const Output condition = ops::Placeholder(scope_.WithOpName("condition"), DT_BOOL);
    const Operation check = ops::Assert(scope_, condition, {x_}).operation;
    int next = 0;
    const auto at = [&] {
      return next++ == place ? scope_.WithControlDependencies({check}) : scope_;
    };
    const Output input = ops::FakeQuantWithMinMaxVars(at(), x_, -4.0f, 4.0f);
    const Output weights =
        ops::FakeQuantWithMinMaxVars(at(), Random(scope_, {4, 4}, 1), -1.0f, 1.0f);
    const Output product = ops::MatMul(at(), input, weights);
    const Output relu = ops::Relu(at(), product);
    // Its readers read integers, not its result.
    const Output rounded = ops::FakeQuantWithMinMaxVars(at(), relu, 0.0f, 4.0f);
    const Output same = ops::FakeQuantWithMinMaxVars(at(), rounded, 0.0f, 4.0f);
    const Output sigmoid = ops::Sigmoid(at(), same);
    const Output table = ops::FakeQuantWithMinMaxVars(at(), sigmoid, 0.0f, 1.0f);
    const Output y = ops::MatMul(scope_, table, Weights(scope_, {4, 4}, 3));
    GRADFLOW_ASSERT_OK(scope_.status());
    SessionOptions options;
    options.integer_inference = true;
    ClientSession session(scope_, options);
    for (const bool holds : {true, false}) {
      const Tensor fed = ::gradflow::testing::AsScalar<bool>(holds);
      std::vector<Tensor> outputs;
      const absl::Status status = session.Run(
          {{x_, RandomTensor(DT_FLOAT, {2, 4}, -4, 4, 1)}, {condition, fed}}, {y}, &outputs);
      EXPECT_EQ(status.ok(), holds) << status;
    }
  }
}

TEST_F(IntegerInferenceTest, QuantizersWithoutIntegerReadersStay) {
  const Output y = ops::Softmax(scope_, Quantized(scope_, x_));
  EXPECT_THAT(Labels({y}), IsEmpty());
}

}  // namespace
}  // namespace integer_inference_test
}  // namespace gradflow
