// Tests of connectionist temporal classification. TensorFlow's values are in
// tests/data/tensorflow_values/nn_ctc.txt. Here are a reference that adds up all paths, errors and
// limits.
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

using Labels = std::vector<int32_t>;

// The labels of sequences, as inputs of the op.
OpTester Loss(const char* op, const Tensor& logits, const std::vector<Labels>& labels,
              const std::vector<int32_t>& lengths) {
  std::vector<int64_t> indices;
  std::vector<int32_t> values;
  for (size_t b = 0; b < labels.size(); ++b) {
    for (size_t i = 0; i < labels[b].size(); ++i) {
      indices.push_back(static_cast<int64_t>(b));
      indices.push_back(static_cast<int64_t>(i));
      values.push_back(labels[b][i]);
    }
  }
  OpTester tester(op);
  tester.Input(logits)
      .Input(AsTensor<int64_t>(indices, {static_cast<int64_t>(values.size()), 2}))
      .Input(AsTensor<int32_t>(values))
      .Input(AsTensor<int32_t>(lengths));
  return tester;
}

// Returns the probability of each list of labels: adds up the paths of `steps` steps.
std::map<Labels, double> Probabilities(const Tensor& logits, int64_t b, int64_t steps, int blank) {
  const int64_t batch = logits.dim_size(1);
  const int64_t classes = logits.dim_size(2);
  std::map<Labels, double> probabilities;
  std::vector<int64_t> path(steps, 0);
  while (true) {
    double p = 1;
    Labels labels;
    int64_t last = -1;
    for (int64_t t = 0; t < steps; ++t) {
      const double* const row = logits.span<double>().data() + (t * batch + b) * classes;
      double sum = 0;
      for (int64_t c = 0; c < classes; ++c) sum += std::exp(row[c]);
      p *= std::exp(row[path[t]]) / sum;
      if (path[t] != last && path[t] != blank) labels.push_back(static_cast<int32_t>(path[t]));
      last = path[t];
    }
    probabilities[labels] += p;
    int64_t t = 0;
    while (t < steps && ++path[t] == classes) path[t++] = 0;
    if (t == steps) return probabilities;
  }
}

TEST(CTCLoss, AddsUpAllPaths) {
  const Tensor logits = RandomTensor(DT_DOUBLE, {6, 2, 4}, -2, 2);
  const std::vector<Labels> labels = {{0, 2, 2}, {1}};
  const auto outputs = Loss("CTCLoss", logits, labels, {6, 4}).Run();
  GRADFLOW_ASSERT_OK(outputs.status());
  const double expected[] = {-std::log(Probabilities(logits, 0, 6, 3)[labels[0]]),
                             -std::log(Probabilities(logits, 1, 4, 3)[labels[1]])};
  EXPECT_THAT((*outputs)[0], TensorNear(AsTensor<double>({expected[0], expected[1]})));
  // Differences of the loss of each sequence.
  constexpr double kStep = 1e-5;
  Tensor gradient(DT_DOUBLE, logits.shape());
  for (int64_t i = 0; i < logits.NumElements(); ++i) {
    double sums[2] = {};
    for (const int side : {0, 1}) {
      Tensor moved(DT_DOUBLE, logits.shape());
      std::copy(logits.span<double>().begin(), logits.span<double>().end(),
                moved.span<double>().begin());
      moved.span<double>()[i] += side == 0 ? -kStep : kStep;
      sums[side] = -std::log(Probabilities(moved, 0, 6, 3)[labels[0]]) -
                   std::log(Probabilities(moved, 1, 4, 3)[labels[1]]);
    }
    gradient.span<double>()[i] = (sums[1] - sums[0]) / (2 * kStep);
  }
  EXPECT_THAT((*outputs)[1], TensorNear(gradient, Tolerance::Near(1e-8, 1e-7)));
}

// CTCLossV2 has the blank first.
TEST(CTCLoss, HasTheBlankAtEitherEnd) {
  const Tensor logits = RandomTensor(DT_FLOAT, {9, 3, 5}, -2, 2);
  Tensor rotated(DT_FLOAT, logits.shape());
  for (int64_t row = 0; row < 27; ++row) {
    for (int64_t c = 0; c < 5; ++c) {
      rotated.span<float>()[row * 5 + (c + 1) % 5] = logits.span<float>()[row * 5 + c];
    }
  }
  const auto last = Loss("CTCLoss", logits, {{0, 1}, {3, 3}, {2}}, {9, 8, 5}).Run();
  const auto first = Loss("CTCLossV2", rotated, {{1, 2}, {4, 4}, {3}}, {9, 8, 5}).Run();
  GRADFLOW_ASSERT_OK(last.status());
  GRADFLOW_ASSERT_OK(first.status());
  EXPECT_THAT((*first)[0], TensorNear((*last)[0]));
}

TEST(CTCLoss, HasTheSameBitsOnAnyNumberOfThreads) {
  const Tensor logits = RandomTensor(DT_FLOAT, {50, 40, 20}, -2, 2);
  std::vector<Labels> labels;
  for (int32_t b = 0; b < 40; ++b) labels.push_back({b % 19, (b + 3) % 19, (b + 3) % 19, 0});
  EXPECT_THAT(Loss("CTCLoss", logits, labels, std::vector<int32_t>(40, 50)).RunEverywhere(),
              IsOk());
}

// Without labels but blanks, all steps are blanks.
TEST(CTCLoss, AcceptsBlanksAsLabels) {
  const Tensor logits = RandomTensor(DT_DOUBLE, {3, 1, 4}, -2, 2);
  const auto outputs = Loss("CTCLoss", logits, {{3, 3}}, {3}).Run();
  GRADFLOW_ASSERT_OK(outputs.status());
  EXPECT_THAT((*outputs)[0],
              TensorNear(AsTensor<double>({-std::log(Probabilities(logits, 0, 3, 3)[{}])})));
}

TEST(CTCLoss, ChecksItsInputs) {
  const Tensor logits = RandomTensor(DT_FLOAT, {4, 2, 3}, -2, 2);
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {Loss("CTCLoss", logits, {{0}, {1}}, {4, 5}),
       "sequence_length[1] must be in [0, 4], but is 5"},
      {Loss("CTCLoss", logits, {{0}, {}}, {4, 4}), "sequence 1 has no labels"},
      {Loss("CTCLoss", logits, {{0}, {-1}}, {4, 4}),
       "labels must be in [0, 3), but label 0 of sequence 1 is -1"},
      {Loss("CTCLossV2", logits, {{1}, {3}}, {4, 4}),
       "labels must be in [0, 3), but label 0 of sequence 1 is 3"},
      {Loss("CTCLoss", logits, {{2, 0}, {1}}, {4, 4}),
       "label 1 of sequence 0 is 0 and follows a blank"},
      {Loss("CTCLoss", logits, {{0, 1, 0}, {1}}, {2, 4}),
       "sequence 0 has 2 steps, which are too few for 3 labels"},
      {Loss("CTCLoss", logits, {{0}, {1}, {1}}, {4, 4}),
       "labels_indices must increase and have sequences in [0, 2), but row 2 is [2, 0]"},
      {Loss("CTCLoss", RandomTensor(DT_FLOAT, {0, 2, 3}), {{0}, {1}}, {0, 0}),
       "inputs must not be empty"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(OpTester(c.tester).Run(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
  ExpectErrors({{"batch", Loss("CTCLoss", logits, {{0}, {1}}, {4}), "sequence_length"},
                {"rank", Loss("CTCLoss", RandomTensor(DT_FLOAT, {2, 3}), {{0}, {1}}, {4, 4}),
                 "Shape must be rank 3 but is rank 2: inputs has shape [2,3]"}});
}

// The most probable labels of a wide beam are the most probable labels.
TEST(CTCBeamSearchDecoder, FindsTheMostProbableLabels) {
  const Tensor logits = RandomTensor(DT_DOUBLE, {5, 3, 4}, -2, 2);
  OpTester tester("CTCBeamSearchDecoder");
  tester.Input(logits)
      .Input(AsTensor<int32_t>({5, 5, 5}))
      .Attr("beam_width", 5000)
      .Attr("top_paths", 2)
      .Attr("merge_repeated", false);
  const auto outputs = tester.ShapeIsData().Run();
  GRADFLOW_ASSERT_OK(outputs.status());
  for (int64_t b = 0; b < 3; ++b) {
    std::multimap<double, Labels, std::greater<>> sorted;
    for (const auto& [labels, p] : Probabilities(logits, b, 5, 3)) sorted.emplace(p, labels);
    auto best = sorted.begin();
    for (int p = 0; p < 2; ++p, ++best) {
      Labels found;
      const Tensor& indices = (*outputs)[p];
      for (int64_t i = 0; i < indices.dim_size(0); ++i) {
        if (indices.span<int64_t>()[2 * i] != b) continue;
        found.push_back(static_cast<int32_t>((*outputs)[2 + p].span<int64_t>()[i]));
      }
      EXPECT_EQ(found, best->second) << b << " " << p;
      EXPECT_NEAR((*outputs)[6].span<double>()[2 * b + p], std::log(best->first), 1e-9);
    }
  }
}

TEST(CTCDecoders, CheckTheirInputs) {
  const Tensor logits = RandomTensor(DT_FLOAT, {4, 2, 3});
  const auto op = [&](const char* name, const std::vector<int32_t>& lengths) {
    OpTester tester(name);
    tester.Input(logits).Input(AsTensor<int32_t>(lengths)).ShapeIsData();
    if (tester.node().op() == "CTCBeamSearchDecoder") tester.Attr("beam_width", 2);
    return tester;
  };
  constexpr auto kFailed = absl::StatusCode::kFailedPrecondition;
  for (const char* const name : {"CTCGreedyDecoder", "CTCBeamSearchDecoder"}) {
    OpTester tester = op(name, {4, 5});
    if (tester.node().op() == "CTCBeamSearchDecoder") tester.Attr("top_paths", 1);
    EXPECT_THAT(tester.Run(),
                StatusIs(kFailed, HasSubstr("sequence_length[1] must be at most 4, but is 5")));
  }
  EXPECT_THAT(op("CTCGreedyDecoder", {4, 4}).Attr("blank_index", 3).Run(),
              StatusIs(kInvalidArgument, HasSubstr("blank_index must be in [-3, 3), but is 3")));
  EXPECT_THAT(
      op("CTCBeamSearchDecoder", {4, 4}).Attr("top_paths", 3).Run(),
      StatusIs(kInvalidArgument, HasSubstr("top_paths must be at most beam_width, 2, but is 3")));
  // An empty sequence has one result, the empty one.
  EXPECT_THAT(op("CTCBeamSearchDecoder", {4, 0}).Attr("top_paths", 2).Run(),
              StatusIs(kInvalidArgument, HasSubstr("top_paths is 2, but the beam has 1 results")));
  // NaN has no order.
  Tensor nan(DT_FLOAT, {4, 2, 3});
  std::fill(nan.span<float>().begin(), nan.span<float>().end(), std::nanf(""));
  EXPECT_THAT(OpTester("CTCBeamSearchDecoder")
                  .Input(nan)
                  .Input(AsTensor<int32_t>({4, 4}))
                  .Attr("beam_width", 9)
                  .Attr("top_paths", 1)
                  .ShapeIsData()
                  .Run(),
              IsOk());
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
