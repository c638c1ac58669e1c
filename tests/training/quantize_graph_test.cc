#include "gradflow/training/quantize_graph.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/import.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/plan/plan_report.h"
#include "gradflow/runtime/session/options.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"

namespace gradflow::training {
namespace quantize_graph_test {
namespace {

using ::gradflow::testing::AsTensor;
using ::gradflow::testing::RandomTensor;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::TensorNear;
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
  // The scale of such a range would be 0.
  calibrator.Add(AsTensor<float>({1e-45f, 1e-38f}));
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
  // All nodes that can compute in integers do.
  Graph imported;
  GRADFLOW_ASSERT_OK(ImportGraphDef({}, quantized, &imported));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const PlanReport report,
                                ReportPlan(imported, {"x"}, {"logits"}, false, true));
  EXPECT_THAT(report.in_float, ::testing::IsEmpty());
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

// A network whose products are divided by an average pool and a mean.
GraphDef NetworkWithMeans() {
  const Scope s = Scope::NewRootScope();
  const Output x = ops::Placeholder(s.WithOpName("x"), DT_FLOAT);
  const Output a = ops::Relu(s.WithOpName("a"),
                             ops::Conv2D(s, x, Random(s, {3, 3, 3, 8}, 1), {1, 1, 1, 1}, "SAME"));
  const Output pool = ops::AvgPool(s.WithOpName("pool"), a, {1, 2, 2, 1}, {1, 2, 2, 1}, "VALID");
  const Output b = ops::Relu(
      s.WithOpName("b"), ops::Conv2D(s, pool, Random(s, {1, 1, 8, 8}, 2), {1, 1, 1, 1}, "SAME"));
  // The shortcut of a residual block.
  const Output sum = ops::AddV2(s.WithOpName("sum"), b, pool);
  const Output mean = ops::Mean(s.WithOpName("mean"), sum, {1, 2});
  const Output logits = ops::MatMul(s.WithOpName("logits"), mean, Random(s, {8, 10}, 3));
  // Its result gets no range, so it stays in float.
  ops::Mean(s.WithOpName("last"), logits, {1});
  GraphDef graph;
  EXPECT_TRUE(s.ToGraphDef(&graph).ok());
  return graph;
}

// Returns ranges from a run with x.
std::vector<RangeCalibrator> RangesOf(const GraphQuantizer& quantizer, const GraphDef& graph,
                                      const Tensor& x) {
  const auto session = Session::Make(SessionOptions());
  GRADFLOW_EXPECT_OK(session.status());
  GRADFLOW_EXPECT_OK((*session)->Create(graph));
  std::vector<Tensor> values;
  GRADFLOW_EXPECT_OK((*session)->Run({{"x", x}}, quantizer.tensors(), {}, &values));
  std::vector<RangeCalibrator> ranges(values.size());
  for (size_t i = 0; i < values.size(); ++i) ranges[i].Add(values[i]);
  return ranges;
}

float HighestOf(const GraphDef& graph, const std::string& tensor) {
  for (const NodeDef& node : graph.node()) {
    Tensor value;
    if (node.name() != tensor + "/quantized/max") continue;
    GRADFLOW_EXPECT_OK(GetNodeAttr(node, "value", &value));
    return value.scalar<float>()();
  }
  ADD_FAILURE() << tensor << " has no range";
  return 0;
}

TEST(GraphQuantizer, QuantizesAroundMeans) {
  const GraphDef graph = NetworkWithMeans();
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GraphQuantizer quantizer, GraphQuantizer::Make(graph));
  EXPECT_THAT(quantizer.tensors(), UnorderedElementsAre("x", "a", "pool", "b", "sum", "mean"));
  const Tensor x = RandomTensor(DT_FLOAT, {4, 8, 8, 3}, 0, 1, 7);
  const std::vector<RangeCalibrator> ranges = RangesOf(quantizer, graph, x);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GraphDef quantized, quantizer.Quantize(ranges));
  // TensorFlow Lite's average pool has a single range.
  EXPECT_EQ(HighestOf(quantized, "a"), HighestOf(quantized, "pool"));
  EXPECT_LT(HighestOf(quantized, "mean"), HighestOf(quantized, "sum"));
  Graph imported;
  GRADFLOW_ASSERT_OK(ImportGraphDef({}, quantized, &imported));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const PlanReport report,
                                ReportPlan(imported, {"x"}, {"last"}, false, true));
  EXPECT_THAT(report.in_float, ::testing::IsEmpty());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor expected, LogitsOf(graph, x, false));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor found, LogitsOf(quantized, x, true));
  EXPECT_THAT(found, TensorNear(expected, 0.1, 0));
}

TEST(GraphQuantizer, ErrorsHaveTheMeansAndSquaresOfRounding) {
  const Scope s = Scope::NewRootScope();
  const Output x = ops::Placeholder(s.WithOpName("x"), DT_FLOAT);
  // Both ranges are [-127, 127], so weights are rounded to integers. The weights of the second
  // channel are exact.
  const Output w = ops::Const(s, {{127.0f, 0.0f}, {0.25f, 127.0f}, {-1.4f, 1.0f}});
  ops::MatMul(s.WithOpName("logits"), x, w);
  GraphDef graph;
  GRADFLOW_ASSERT_OK(s.ToGraphDef(&graph));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GraphQuantizer quantizer, GraphQuantizer::Make(graph));
  EXPECT_THAT(quantizer.products(), ElementsAre("logits"));
  std::vector<RangeCalibrator> ranges(1);
  ranges[0].Add(AsTensor<float>({0, 255}));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GraphQuantizer::ErrorGraph measured,
                                quantizer.MeasureErrors(ranges));
  ASSERT_EQ(measured.products.size(), 1);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session,
                                Session::Make(SessionOptions()));
  GRADFLOW_ASSERT_OK(session->Create(measured.graph));
  const GraphQuantizer::ErrorTensors& tensors = measured.products[0];
  std::vector<Tensor> values;
  // The last input is rounded to 7.
  const Tensor rows = AsTensor<float>({1, 4, 10, 2, 8, 7.25f}, {2, 3});
  GRADFLOW_ASSERT_OK(session->Run(
      {{"x", rows}}, {tensors.mean, tensors.squared_error, tensors.squared_result}, {}, &values));
  // [4 * 0.25 - 10 * 0.4, 0] and [8 * 0.25 - 7.25 * 1.4 + 7, 0.25].
  const double errors[] = {-3, 0, -1.15, 0.25};
  ASSERT_EQ(values[0].NumElements(), 2);
  EXPECT_NEAR(values[0].flat<float>()(0), (errors[0] + errors[2]) / 2, 1e-4);
  EXPECT_NEAR(values[0].flat<float>()(1), (errors[1] + errors[3]) / 2, 1e-4);
  double squares = 0;
  for (const double error : errors) squares += error * error / 4;
  EXPECT_NEAR(values[1].scalar<float>()(), squares, 1e-3);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor exact, LogitsOf(graph, rows, false));
  double power = 0;
  for (const float y : exact.flat<float>()) power += static_cast<double>(y) * y / 4;
  EXPECT_NEAR(values[2].scalar<float>()(), power, 1e-3 * power);
  // The corrected product has the name of the product.
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GraphDef corrected, quantizer.Quantize(ranges, {values[0]}));
  for (const bool integers : {false, true}) {
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor found, LogitsOf(corrected, rows, integers));
    for (int64_t c = 0; c < 2; ++c) {
      EXPECT_NEAR(found.flat<float>()(c) + found.flat<float>()(2 + c),
                  exact.flat<float>()(c) + exact.flat<float>()(2 + c), 1e-3);
    }
  }
  EXPECT_THAT(quantizer.Quantize(ranges, {values[0], values[0]}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "expected 1 corrections, found 2"));
  EXPECT_THAT(quantizer.Quantize(ranges, {values[1]}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the correction of node 'logits' must be a vector of 2 floats, but is float "
                       "[]"));
  EXPECT_THAT(quantizer.Quantize(ranges, {AsTensor<float>({1, 2, 3})}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the correction of node 'logits' must be a vector of 2 floats, but is float "
                       "[3]"));
}

// TensorFlow Lite stores biases in steps of the product: a tiny step of a channel without weights
// would make a bias exceed 32 bits.
TEST(GraphQuantizer, ChannelsWithoutWeightsHaveUsualSteps) {
  const Scope s = Scope::NewRootScope();
  const Output x = ops::Placeholder(s.WithOpName("x"), DT_FLOAT);
  const Output w = ops::Const(s, {{0.5f, 0.0f}, {-0.25f, 0.0f}});
  const Output y = ops::Relu(s.WithOpName("y"),
                             ops::BiasAdd(s, ops::MatMul(s, x, w), ops::Const(s, {0.25f, 0.75f})));
  ops::MatMul(s.WithOpName("logits"), y, ops::Const(s, {{1.0f}, {0.5f}}));
  GraphDef graph;
  GRADFLOW_ASSERT_OK(s.ToGraphDef(&graph));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GraphQuantizer quantizer, GraphQuantizer::Make(graph));
  const Tensor rows = RandomTensor(DT_FLOAT, {5, 2}, -1, 1);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GraphDef quantized,
                                quantizer.Quantize(RangesOf(quantizer, graph, rows)));
  Graph imported;
  GRADFLOW_ASSERT_OK(ImportGraphDef({}, quantized, &imported));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const PlanReport report,
      ReportPlan(imported, {"x"}, {"logits"}, false, true, /*tflite_rounding=*/true));
  EXPECT_THAT(report.in_float, ::testing::IsEmpty());
}

// TensorFlow Lite's converter reads the ranges of depthwise weights if this is their shape.
TEST(GraphQuantizer, DepthwiseWeightsAreRoundedInTheShapeOfTensorFlowLite) {
  const GraphDef graph = Network();
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GraphQuantizer quantizer, GraphQuantizer::Make(graph));
  const Tensor x = RandomTensor(DT_FLOAT, {4, 8, 8, 3}, 0, 1, 7);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GraphDef quantized,
                                quantizer.Quantize(RangesOf(quantizer, graph, x)));
  std::vector<Tensor> shapes;
  for (const NodeDef& node : quantized.node()) {
    Tensor value;
    if (!absl::EndsWith(node.name(), "/flat/shape")) continue;
    GRADFLOW_ASSERT_OK(GetNodeAttr(node, "value", &value));
    shapes.push_back(value);
  }
  ASSERT_EQ(shapes.size(), 1);
  EXPECT_THAT(shapes[0].span<int64_t>(), ElementsAre(1, 3, 3, 8));
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
