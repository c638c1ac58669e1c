#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

double Iou(const float* a, const float* b) {
  double common = 1, area_a = 1, area_b = 1;
  for (int k = 0; k < 2; ++k) {
    const double a0 = std::min(a[k], a[k + 2]), a1 = std::max(a[k], a[k + 2]);
    const double b0 = std::min(b[k], b[k + 2]), b1 = std::max(b[k], b[k + 2]);
    common *= std::max(0.0, std::min(a1, b1) - std::max(a0, b0));
    area_a *= a1 - a0;
    area_b *= b1 - b0;
  }
  return area_a <= 0 || area_b <= 0 ? 0 : common / (area_a + area_b - common);
}

// Selects boxes by the definition.
std::vector<int32_t> SelectedBoxes(const Tensor& boxes, const Tensor& scores, size_t limit,
                                   double iou, double score) {
  const auto s = scores.flat<float>();
  std::vector<int32_t> order(static_cast<size_t>(s.size()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t i, int32_t j) { return s(i) > s(j); });
  std::vector<int32_t> selected;
  for (const int32_t i : order) {
    if (selected.size() == limit || !(double{s(i)} > score)) break;
    const float* const box = boxes.flat<float>().data() + 4 * i;
    const bool overlaps = std::any_of(selected.begin(), selected.end(), [&](int32_t j) {
      return Iou(box, boxes.flat<float>().data() + 4 * j) > iou;
    });
    if (!overlaps) selected.push_back(i);
  }
  return selected;
}

Tensor Scalar32(float value) { return AsScalar<float>(value); }

TEST(NonMaxSuppression, AgreesWithItsDefinition) {
  for (const int64_t n : {1, 7, 200}) {
    const Tensor boxes = RandomTensor(DT_FLOAT, {n, 4}, 0, 1);
    const Tensor scores = RandomTensor(DT_FLOAT, {n}, 0, 1, 2);
    for (const int32_t limit : {0, 3, 1000}) {
      for (const float iou : {0.0f, 0.3f, 1.0f}) {
        const std::vector<int32_t> all =
            SelectedBoxes(boxes, scores, static_cast<size_t>(limit), iou, -1);
        EXPECT_THAT(OpTester("NonMaxSuppression")
                        .Inputs({boxes, scores, AsScalar<int32_t>(limit)})
                        .Attr("iou_threshold", iou)
                        .ShapeIsData()
                        .RunOne(),
                    TensorEq(AsTensor<int32_t>(all)));
        EXPECT_THAT(OpTester("NonMaxSuppressionV2")
                        .Inputs({boxes, scores, AsScalar<int32_t>(limit), Scalar32(iou)})
                        .ShapeIsData()
                        .RunOne(),
                    TensorEq(AsTensor<int32_t>(all)));
        const std::vector<int32_t> high =
            SelectedBoxes(boxes, scores, static_cast<size_t>(limit), iou, 0.6f);
        const std::vector<Tensor> inputs = {boxes, scores, AsScalar<int32_t>(limit), Scalar32(iou),
                                            Scalar32(0.6f)};
        EXPECT_THAT(OpTester("NonMaxSuppressionV3").Inputs(inputs).ShapeIsData().RunOne(),
                    TensorEq(AsTensor<int32_t>(high)));
        std::vector<int32_t> padded = high;
        padded.resize(static_cast<size_t>(limit));
        const auto outputs = OpTester("NonMaxSuppressionV4")
                                 .Inputs(inputs)
                                 .Attr("pad_to_max_output_size", true)
                                 .Run();
        ASSERT_TRUE(outputs.ok()) << outputs.status();
        EXPECT_THAT((*outputs)[0], TensorEq(AsTensor<int32_t>(padded)));
        EXPECT_THAT((*outputs)[1], TensorEq(AsScalar<int32_t>(static_cast<int32_t>(high.size()))));
        Tensor overlaps(DT_FLOAT, {n, n});
        for (int64_t i = 0; i < n * n; ++i) {
          overlaps.flat<float>()(i) = static_cast<float>(Iou(
              boxes.flat<float>().data() + 4 * (i / n), boxes.flat<float>().data() + 4 * (i % n)));
        }
        EXPECT_THAT(
            OpTester("NonMaxSuppressionWithOverlaps")
                .Inputs({overlaps, scores, AsScalar<int32_t>(limit), Scalar32(iou), Scalar32(0.6f)})
                .ShapeIsData()
                .RunOne(),
            TensorEq(AsTensor<int32_t>(high)));
      }
    }
  }
}

// Each selected box multiplies the scores of the other boxes by a Gaussian of the overlap.
TEST(NonMaxSuppression, ReducesScoresSoftly) {
  const int64_t n = 20;
  const Tensor boxes = RandomTensor(DT_FLOAT, {n, 4}, 0, 1);
  const Tensor scores = RandomTensor(DT_FLOAT, {n}, 0, 1, 2);
  std::vector<double> left;
  for (const float score : scores.span<float>()) left.push_back(double{score});
  std::vector<int32_t> selected;
  std::vector<double> selected_scores;
  for (;;) {
    const auto best = std::max_element(left.begin(), left.end());
    if (!(*best > 0.2f) || selected.size() == 12) break;
    const int64_t i = best - left.begin();
    selected.push_back(static_cast<int32_t>(i));
    selected_scores.push_back(*best);
    *best = -1;
    for (int64_t j = 0; j < n; ++j) {
      const double o = Iou(boxes.flat<float>().data() + 4 * i, boxes.flat<float>().data() + 4 * j);
      if (left[static_cast<size_t>(j)] > 0)
        left[static_cast<size_t>(j)] *= std::exp(-o * o / (2 * 0.5));
    }
  }
  const auto outputs = OpTester("NonMaxSuppressionV5")
                           .Inputs({boxes, scores, AsScalar<int32_t>(12), Scalar32(0.5f),
                                    Scalar32(0.2f), Scalar32(0.5f)})
                           .ShapeIsData()
                           .Run();
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT((*outputs)[0], TensorEq(AsTensor<int32_t>(selected)));
  EXPECT_THAT((*outputs)[1],
              TensorNear(FromDoubles(DT_FLOAT, (*outputs)[0].shape(), selected_scores)));
}

TEST(NonMaxSuppression, SelectsPerClassAndImage) {
  const int64_t batch = 2, n = 30, classes = 3;
  const Tensor boxes = RandomTensor(DT_FLOAT, {batch, n, classes, 4}, -0.2, 1.2);
  const Tensor scores = RandomTensor(DT_FLOAT, {batch, n, classes}, 0, 1, 2);
  const int64_t size = 8;
  std::vector<double> expected_boxes, expected_scores, expected_classes;
  std::vector<int32_t> counts;
  for (int64_t b = 0; b < batch; ++b) {
    struct Found {
      float score;
      int64_t c, box;
    };
    std::vector<Found> found;
    for (int64_t c = 0; c < classes; ++c) {
      Tensor of_class(DT_FLOAT, {n, 4});
      Tensor class_scores(DT_FLOAT, {n});
      for (int64_t i = 0; i < n; ++i) {
        class_scores.flat<float>()(i) = scores.flat<float>()((b * n + i) * classes + c);
        for (int k = 0; k < 4; ++k) {
          of_class.flat<float>()(4 * i + k) =
              boxes.flat<float>()(((b * n + i) * classes + c) * 4 + k);
        }
      }
      for (const int32_t i : SelectedBoxes(of_class, class_scores, 4, 0.3f, 0.25f)) {
        found.push_back({class_scores.flat<float>()(i), c, i});
      }
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Found& x, const Found& y) { return x.score > y.score; });
    found.resize(std::min<size_t>(found.size(), static_cast<size_t>(size)));
    counts.push_back(static_cast<int32_t>(found.size()));
    for (int64_t i = 0; i < size; ++i) {
      const bool valid = i < static_cast<int64_t>(found.size());
      const Found f = valid ? found[static_cast<size_t>(i)] : Found{0, 0, 0};
      expected_scores.push_back(double{f.score});
      expected_classes.push_back(static_cast<double>(f.c));
      for (int k = 0; k < 4; ++k) {
        const double bound =
            valid ? boxes.flat<float>()(((b * n + f.box) * classes + f.c) * 4 + k) : 0;
        expected_boxes.push_back(std::min(1.0, std::max(0.0, bound)));
      }
    }
  }
  const auto outputs = OpTester("CombinedNonMaxSuppression")
                           .Inputs({boxes, scores, AsScalar<int32_t>(4), AsScalar<int32_t>(size),
                                    Scalar32(0.3f), Scalar32(0.25f)})
                           .Run();
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT(*outputs, ::testing::ElementsAre(
                            TensorEq(FromDoubles(DT_FLOAT, {batch, size, 4}, expected_boxes)),
                            TensorEq(FromDoubles(DT_FLOAT, {batch, size}, expected_scores)),
                            TensorEq(FromDoubles(DT_FLOAT, {batch, size}, expected_classes)),
                            TensorEq(AsTensor<int32_t>(counts))));
}

TEST(NonMaxSuppression, RejectsBadArguments) {
  const Tensor boxes = RandomTensor(DT_FLOAT, {3, 4});
  const Tensor scores = RandomTensor(DT_FLOAT, {3});
  const auto v4 = [&](const Tensor& b, const Tensor& s, int32_t limit, float iou) {
    return OpTester("NonMaxSuppressionV4")
        .Inputs({b, s, AsScalar<int32_t>(limit), Scalar32(iou), Scalar32(0)})
        .Attr("pad_to_max_output_size", true);
  };
  ExpectErrors({
      {"columns", v4(RandomTensor(DT_FLOAT, {3, 3}), scores, 1, 0.5f),
       "boxes must have 4 columns, but has shape [3,3]"},
      {"scores", v4(boxes, RandomTensor(DT_FLOAT, {4}), 1, 0.5f),
       "scores has incompatible shape [4], expected [3], one per box"},
      {"limit", v4(boxes, scores, -1, 0.5f), "max_output_size must not be negative, but is -1"},
  });
  for (const float iou : {-0.1f, 1.1f, kNan}) {
    EXPECT_THAT(
        v4(boxes, scores, 1, iou).Run(),
        StatusIs(kInvalidArgument, ::testing::HasSubstr("iou_threshold must be in [0, 1]")));
  }
  EXPECT_THAT(
      OpTester("NonMaxSuppressionV5")
          .Inputs({boxes, scores, AsScalar<int32_t>(1), Scalar32(0.5f), Scalar32(0), Scalar32(-1)})
          .Run(),
      StatusIs(kInvalidArgument, ::testing::HasSubstr("soft_nms_sigma")));
  EXPECT_THAT(OpTester("NonMaxSuppressionWithOverlaps")
                  .Inputs({RandomTensor(DT_FLOAT, {3, 2}), scores, AsScalar<int32_t>(1),
                           Scalar32(0.5f), Scalar32(0)})
                  .Run(),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("overlaps must be square")));
  const auto combined = [&](const TensorShape& b, const TensorShape& s, int32_t limit) {
    return OpTester("CombinedNonMaxSuppression")
        .Inputs({RandomTensor(DT_FLOAT, b), RandomTensor(DT_FLOAT, s), AsScalar<int32_t>(1),
                 AsScalar<int32_t>(limit), Scalar32(0.5f), Scalar32(0)});
  };
  ExpectErrors({
      {"classes", combined({1, 2, 2, 4}, {1, 2, 3}, 1), "boxes and scores must have shapes"},
      {"boxes", combined({1, 3, 1, 4}, {1, 2, 3}, 1), "boxes and scores must have shapes"},
      {"rank", combined({1, 2, 4}, {1, 2, 3}, 1), "boxes must have rank 4 and scores rank 3"},
      {"limit", combined({1, 2, 1, 4}, {1, 2, 3}, 0), "must be positive"},
  });
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
