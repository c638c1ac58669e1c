// Tests of metrics over one batch and over several.
#include "gradflow/training/metrics.h"

#include <string>
#include <vector>

#include "gradflow/graph/scope.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"
#include "gradflow/training/losses.h"

namespace gradflow {
namespace training {
namespace {

using ::gradflow::testing::AsScalar;
using ::gradflow::testing::AsTensor;
using ::gradflow::testing::RandomTensor;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::TensorEq;
using ::gradflow::testing::TensorNear;
using ::testing::HasSubstr;

Tensor RunOne(const Scope& scope, const Output& fetch) {
  std::vector<Tensor> outputs;
  GRADFLOW_EXPECT_OK(ClientSession(scope).Run({fetch}, &outputs));
  return outputs.empty() ? Tensor() : outputs[0];
}

TEST(Metrics, TopKAccuracyCountsLargerElements) {
  constexpr int kRows = 200;
  constexpr int kClasses = 7;
  const Tensor logits = RandomTensor(DT_FLOAT, {kRows, kClasses});
  for (const DataType dtype : {DT_INT64, DT_INT32, DT_UINT8}) {
    Tensor labels(DT_INT64, {kRows});
    for (int r = 0; r < kRows; ++r) labels.flat<int64_t>()(r) = r * 31 % kClasses;
    for (int k = 1; k <= kClasses + 1; ++k) {
      int hits = 0;
      for (int r = 0; r < kRows; ++r) {
        int larger = 0;
        for (int c = 0; c < kClasses; ++c) {
          larger +=
              logits.matrix<float>()(r, c) > logits.matrix<float>()(r, labels.flat<int64_t>()(r));
        }
        hits += larger < k;
      }
      const Scope s = Scope::NewRootScope();
      const Output x = ops::Const(s, Input::Initializer(logits));
      const Output y = ops::Cast(s, ops::Const(s, Input::Initializer(labels)), dtype);
      const Tensor expected = AsScalar<float>(static_cast<float>(hits) / kRows);
      EXPECT_THAT(RunOne(s, TopKAccuracy(s, x, y, k)), TensorNear(expected, 1e-6, 0));
      if (k == 1) {
        EXPECT_THAT(RunOne(s, Accuracy(s, x, y)), TensorNear(expected, 1e-6, 0));
      }
    }
  }
}

TEST(Metrics, ConfusionMatrixCountsPairs) {
  const Scope s = Scope::NewRootScope();
  const Output labels = ops::Const(s, {0, 1, 1, 2, 2, 2, 0});
  const Output predictions = ops::Const(s, {0, 1, 2, 2, 2, 0, 0});
  const Output confusion = ConfusionMatrix(s, labels, predictions, 4);
  EXPECT_THAT(RunOne(s, confusion), TensorEq(AsTensor<int64_t>(
                                        {2, 0, 0, 0, 0, 1, 1, 0, 1, 0, 2, 0, 0, 0, 0, 0}, {4, 4})));
  const ClassMetrics metrics = PrecisionAndRecall(s, confusion);
  const float third = 1.0f / 3;
  EXPECT_THAT(RunOne(s, metrics.precision),
              TensorNear(AsTensor<float>({2 * third, 1, 2 * third, 0}), 1e-6, 0));
  EXPECT_THAT(RunOne(s, metrics.recall),
              TensorNear(AsTensor<float>({1, 0.5f, 2 * third, 0}), 1e-6, 0));
  EXPECT_THAT(RunOne(s, metrics.f1),
              TensorNear(AsTensor<float>({0.8f, 2 * third, 2 * third, 0}), 1e-6, 0));
  // No examples.
  const Output none = ops::Const(s, Input::Initializer(Tensor(DT_INT32, {0})));
  EXPECT_THAT(RunOne(s, ConfusionMatrix(s, none, none, 1)),
              TensorEq(AsTensor<int64_t>({0}, {1, 1})));
  // The class does not exist.
  for (const int wrong : {4, -1}) {
    std::vector<Tensor> outputs;
    const Output one = ops::Const(s, {wrong});
    EXPECT_THAT(ClientSession(s).Run({ConfusionMatrix(s, one, one, 4)}, &outputs),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(Metrics, RunOverBatches) {
  const Scope s = Scope::NewRootScope();
  const Output values = ops::Placeholder(s, DT_FLOAT);
  const Output pairs = ops::Placeholder(s, DT_INT64, ops::Placeholder::Shape({2}));
  const RunningMetric mean = RunningMean(s, "eval/mean", values);
  const RunningMetric sum = RunningSum(s, "eval/sum", pairs);
  GRADFLOW_ASSERT_OK(s.status());
  ClientSession session(s);
  const auto results = [&] {
    std::vector<Tensor> outputs;
    GRADFLOW_EXPECT_OK(session.Run({mean.result, sum.result}, &outputs));
    return outputs;
  };
  std::vector<Tensor> outputs;
  EXPECT_THAT(session.Run({mean.result}, &outputs),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  for (int round = 0; round < 2; ++round) {
    GRADFLOW_ASSERT_OK(session.Run({}, {}, {mean.reset, sum.reset}, nullptr));
    EXPECT_THAT(results(), ::testing::ElementsAre(TensorEq(AsScalar<float>(0)),
                                                  TensorEq(AsTensor<int64_t>({0, 0}))));
    const auto add = [&](const Tensor& x, const Tensor& pair) {
      GRADFLOW_EXPECT_OK(
          session.Run({{values, x}, {pairs, pair}}, {}, {mean.update, sum.update}, nullptr));
    };
    // Batches of other sizes are weighted by their number of elements.
    add(AsTensor<float>({1, 2, 3, 4}, {2, 2}), AsTensor<int64_t>({1, 10}));
    add(AsTensor<float>({10}), AsTensor<int64_t>({2, 20}));
    add(Tensor(DT_FLOAT, {0}), AsTensor<int64_t>({3, 30}));
    EXPECT_THAT(results(), ::testing::ElementsAre(TensorEq(AsScalar<float>(4)),
                                                  TensorEq(AsTensor<int64_t>({6, 60}))));
  }
  // The sum is in double, because 2^24 + 1 is not a float.
  GRADFLOW_ASSERT_OK(session.Run({}, {}, {mean.reset}, nullptr));
  for (const float x : {16777216.0f, 1.0f, 1.0f, -16777216.0f}) {
    GRADFLOW_ASSERT_OK(session.Run({{values, AsScalar<float>(x)}}, {}, {mean.update}, nullptr));
  }
  GRADFLOW_ASSERT_OK(session.Run({mean.result}, &outputs));
  EXPECT_THAT(outputs[0], TensorEq(AsScalar<float>(0.5f)));
}

TEST(Metrics, RejectInvalidArguments) {
  const auto is = [](const std::string& text) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text));
  };
  const auto error = [](const auto& add) {
    const Scope s = Scope::NewRootScope();
    add(s, ops::Const(s, {1, 0}), ops::Placeholder(s, DT_FLOAT));
    return s.status();
  };
  EXPECT_THAT(
      error([](const Scope& s, const Output& y, const Output& x) { TopKAccuracy(s, x, y, 0); }),
      is("expected a positive k, found 0"));
  EXPECT_THAT(
      error([](const Scope& s, const Output& y, const Output&) { ConfusionMatrix(s, y, y, 0); }),
      is("expected a class, found 0"));
  EXPECT_THAT(error([](const Scope& s, const Output& y, const Output&) {
                ConfusionMatrix(s, y, Output(), 2);
              }),
              is("an argument of a metric is empty"));
  EXPECT_THAT(
      error([](const Scope& s, const Output&, const Output&) { PrecisionAndRecall(s, Output()); }),
      is("an argument of a metric is empty"));
  EXPECT_THAT(
      error([](const Scope& s, const Output&, const Output&) { RunningMean(s, "m", Output()); }),
      is("an argument of a metric is empty"));
  EXPECT_THAT(error([](const Scope& s, const Output&, const Output& x) { RunningSum(s, "m", x); }),
              is("metric 'm': expected values of a known shape, found <unknown>"));
}

}  // namespace
}  // namespace training
}  // namespace gradflow
