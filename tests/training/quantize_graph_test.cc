#include "gradflow/training/quantize_graph.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gradflow/core/attributes.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/session/options.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensors.h"

namespace gradflow::training {
namespace quantize_graph_test {
namespace {

using ::gradflow::testing::AsTensor;
using ::gradflow::testing::RandomTensor;
using ::gradflow::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(RangeCalibrator, FindsRangesByEachMethod) {
  struct Case {
    RangeMethod method;
    double percentile;
    float min;
    float max;
  };
  for (const Case& c : {Case{RangeMethod::kMinMax, 0, -3, 8},
                        // 0.9 * [-1, 4] + 0.1 * [-3, 8]
                        Case{RangeMethod::kMovingAverage, 0, -1.2f, 4.4f},
                        // The third of five numbers on both sides, and then of five others.
                        Case{RangeMethod::kPercentile, 50, -0.5f, 4}}) {
    RangeCalibrator calibrator(c.method, c.percentile);
    calibrator.Add(AsTensor<float>({4, 0, -1, 2, 1, kInfinity, NAN}));
    calibrator.Add(AsTensor<float>({8, 6, -3, 5, -1}));
    EXPECT_NEAR(calibrator.min(), c.min, 1e-5);
    EXPECT_NEAR(calibrator.max(), c.max, 1e-5);
  }
}

// Returns the sum of squared errors of rounding to 256 levels of a range that contains 0.
double SquaredError(const Tensor& values, double min, double max) {
  const double scale = (max - min) / 255;
  const double zero = std::round(-min / scale);
  double sum = 0;
  for (const float x : values.flat<float>()) {
    const double level = std::clamp(std::round(x / scale) + zero, 0.0, 255.0);
    sum += std::pow((level - zero) * scale - x, 2);
  }
  return sum;
}

TEST(RangeCalibrator, LeastSquaresLosesLeast) {
  // Most numbers are in [-1, 1.5], and few are far away.
  Tensor values = RandomTensor(DT_FLOAT, {100000}, -1, 1.5, 3);
  values.flat<float>()(7) = 3.5f;
  values.flat<float>()(8) = -2;
  RangeCalibrator calibrator(RangeMethod::kLeastSquares);
  calibrator.Add(values);
  const double found = SquaredError(values, calibrator.min(), calibrator.max());
  EXPECT_LT(found, 0.8 * SquaredError(values, -2, 3.5));
  // No range of a finer grid is much better.
  double best = found;
  for (double min = -2; min < -0.9; min += 0.05) {
    for (double max = 1.4; max < 3.5; max += 0.05) {
      best = std::min(best, SquaredError(values, min, max));
    }
  }
  EXPECT_LT(found, 1.05 * best);
}

TEST(RangeCalibrator, LeastSquaresMergesNumbers) {
  const Tensor small = RandomTensor(DT_FLOAT, {5000}, -0.01, 0.02, 4);
  const Tensor large = RandomTensor(DT_FLOAT, {5000}, 0, 30, 5);
  RangeCalibrator first(RangeMethod::kLeastSquares);
  RangeCalibrator second(RangeMethod::kLeastSquares);
  RangeCalibrator both(RangeMethod::kLeastSquares);
  first.Add(small);
  second.Add(large);
  both.Add(small);
  both.Add(large);
  first.Merge(second);
  EXPECT_EQ(first.min(), both.min());
  EXPECT_EQ(first.max(), both.max());
  EXPECT_NEAR(first.max(), 30, 0.5);
}

TEST(RangeCalibrator, LeastSquaresTakesAnyNumbers) {
  RangeCalibrator calibrator(RangeMethod::kLeastSquares);
  calibrator.Add(AsTensor<float>({0, 0}));
  EXPECT_EQ(calibrator.min(), 0);
  EXPECT_EQ(calibrator.max(), 1);
  calibrator.Add(AsTensor<float>({1e-45f, 3e38f, -3e38f, kInfinity, NAN}));
  EXPECT_LT(calibrator.min(), 0);
  EXPECT_GT(calibrator.max(), 0);
  EXPECT_TRUE(std::isfinite(calibrator.max()));
}

TEST(RangeCalibrator, RangesContain0AndAreNotEmpty) {
  RangeCalibrator calibrator;
  EXPECT_EQ(calibrator.min(), 0);
  EXPECT_EQ(calibrator.max(), 1);
  calibrator.Add(AsTensor<float>({3, 5}));
  EXPECT_EQ(calibrator.min(), 0);
  EXPECT_EQ(calibrator.max(), 5);
}

Output Random(const Scope& s, const TensorShape& shape, uint32_t seed) {
  return ops::Const(s, RandomTensor(DT_FLOAT, shape, -1, 1, seed));
}

// A network with a depthwise convolution, a residual addition and a concatenation.
GraphDef Network() {
  const Scope s = Scope::NewRootScope();
  const Output x = ops::Placeholder(s.WithOpName("x"), DT_FLOAT);
  const Output a =
      ops::Relu(s.WithOpName("a"),
                ops::BiasAdd(s, ops::Conv2D(s, x, Random(s, {3, 3, 3, 8}, 1), {1, 1, 1, 1}, "SAME"),
                             Random(s, {8}, 2)));
  const Output pool = ops::MaxPool(s.WithOpName("pool"), a, {1, 2, 2, 1}, {1, 2, 2, 1}, "VALID");
  const Output b = ops::BiasAdd(
      s.WithOpName("b"),
      ops::DepthwiseConv2dNative(s, pool, Random(s, {3, 3, 8, 1}, 3), {1, 1, 1, 1}, "SAME"),
      Random(s, {8}, 4));
  const Output sum = ops::Relu(s.WithOpName("sum"), ops::AddV2(s, b, pool));
  const Output joined = ops::Concat(s.WithOpName("joined"), {sum, pool}, 3);
  const Output flat = ops::Reshape(s.WithOpName("flat"), joined, {-1, 4 * 4 * 16});
  ops::MatMul(s.WithOpName("logits"), flat, Random(s, {4 * 4 * 16, 10}, 5));
  GraphDef graph;
  EXPECT_TRUE(s.ToGraphDef(&graph).ok());
  return graph;
}

absl::StatusOr<Tensor> LogitsOf(const GraphDef& graph, const Tensor& x, bool integers) {
  SessionOptions options;
  options.integer_inference = integers;
  GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Make(options));
  GRADFLOW_RETURN_IF_ERROR(session->Create(graph));
  std::vector<Tensor> outputs;
  GRADFLOW_RETURN_IF_ERROR(session->Run({{"x", x}}, {"logits"}, {}, &outputs));
  return outputs[0];
}

TEST(GraphQuantizer, QuantizesANetwork) {
  const GraphDef graph = Network();
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GraphQuantizer quantizer, GraphQuantizer::Make(graph));
  EXPECT_EQ(quantizer.num_products(), 3);
  EXPECT_THAT(quantizer.tensors(), UnorderedElementsAre("x", "a", "b", "sum"));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session,
                                Session::Make(SessionOptions()));
  GRADFLOW_ASSERT_OK(session->Create(graph));
  const Tensor x = RandomTensor(DT_FLOAT, {4, 8, 8, 3}, 0, 1, 7);
  std::vector<Tensor> values;
  GRADFLOW_ASSERT_OK(session->Run({{"x", x}}, quantizer.tensors(), {}, &values));
  std::vector<RangeCalibrator> ranges(values.size());
  for (size_t i = 0; i < values.size(); ++i) ranges[i].Add(values[i]);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GraphDef quantized, quantizer.Quantize(ranges));

  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor in_float, LogitsOf(graph, x, false));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor fake, LogitsOf(quantized, x, false));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor in_integers, LogitsOf(quantized, x, true));
  double largest = 0;
  double difference = 0;
  double difference_of_integers = 0;
  for (int64_t i = 0; i < in_float.NumElements(); ++i) {
    const double expected = in_float.flat<float>()(i);
    largest = std::max(largest, std::abs(expected));
    difference = std::max(difference, std::abs(fake.flat<float>()(i) - expected));
    difference_of_integers = std::max<double>(
        difference_of_integers, std::abs(in_integers.flat<float>()(i) - fake.flat<float>()(i)));
  }
  EXPECT_LT(difference, 0.05 * largest);
  EXPECT_LT(difference_of_integers, 0.02 * largest);
  // A quantized graph is not quantized again.
  EXPECT_THAT(GraphQuantizer::Make(quantized).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("already quantizes")));
}

TEST(GraphQuantizer, ConcatenatedTensorsShareARange) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GraphQuantizer quantizer, GraphQuantizer::Make(Network()));
  std::vector<RangeCalibrator> ranges(quantizer.tensors().size());
  for (size_t i = 0; i < ranges.size(); ++i) {
    const std::string& name = quantizer.tensors()[i];
    ranges[i].Add(AsTensor<float>({name == "sum" ? 9.0f : name == "a" ? 4.0f : 2.0f}));
  }
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GraphDef quantized, quantizer.Quantize(ranges));
  std::vector<float> highest;
  for (const NodeDef& node : quantized.node()) {
    Tensor value;
    if (node.name() != "sum/quantized/max" && node.name() != "a/quantized/max") continue;
    GRADFLOW_ASSERT_OK(GetNodeAttr(node, "value", &value));
    highest.push_back(value.scalar<float>()());
  }
  EXPECT_THAT(highest, ElementsAre(9, 9));
}

TEST(GraphQuantizer, RejectsGraphsWithoutProducts) {
  const Scope s = Scope::NewRootScope();
  const Output x = ops::Placeholder(s, DT_FLOAT);
  ops::MatMul(s, x, x);
  GraphDef graph;
  GRADFLOW_ASSERT_OK(s.ToGraphDef(&graph));
  EXPECT_THAT(GraphQuantizer::Make(graph).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the graph has no convolution or matrix product with constant weights; "
                       "freeze it first"));
}

}  // namespace
}  // namespace quantize_graph_test
}  // namespace gradflow::training
