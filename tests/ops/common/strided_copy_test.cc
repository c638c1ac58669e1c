#include "gradflow/ops/common/strided_copy.h"

#include <mutex>

#include "gradflow/testing/kernel_test.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::ElementsAre;
using Operand = StridedLoop::Operand;

TEST(RowMajorStrides, MultipliesFromTheBack) {
  EXPECT_THAT(RowMajorStrides({2, 3, 4}), ElementsAre(12, 4, 1));
  EXPECT_THAT(RowMajorStrides({}), ElementsAre());
  EXPECT_THAT(RowMajorStrides({0, INT64_MAX, INT64_MAX}), ElementsAre(0, 0, 0));
  EXPECT_THAT(RowMajorStrides({2, 0}), ElementsAre(0, 0));
}

TEST(BroadcastStrides, RepeatsOnesAndMissingDimensions) {
  EXPECT_THAT(BroadcastStrides({3, 1}, {2, 3, 4}), ElementsAre(0, 1, 0));
  EXPECT_THAT(BroadcastStrides({2, 1, 4}, {2, 3, 4}), ElementsAre(4, 0, 1));
  EXPECT_THAT(BroadcastStrides({}, {2}), ElementsAre(0));
}

TEST(StridedLoop, JoinsDimensionsWithOneStrideInAllOperands) {
  const StridedLoop loop({2, 1, 3, 4}, {{0, {12, 99, 4, 1}}, {5, {0, 99, 4, 1}}});
  EXPECT_THAT(loop.dims(), ElementsAre(2, 12));
  EXPECT_THAT(loop.operand(0).strides, ElementsAre(12, 1));
  EXPECT_THAT(loop.operand(1).strides, ElementsAre(0, 1));
  EXPECT_EQ(loop.num_elements(), 24);
  const StridedLoop whole({2, 3, 4}, {{0, {12, 4, 1}}});
  EXPECT_THAT(whole.dims(), ElementsAre(24));
  const StridedLoop scalar({1, 1}, {{3, {7, 7}}});
  EXPECT_THAT(scalar.dims(), ElementsAre(1));
  EXPECT_EQ(scalar.num_elements(), 1);
  const StridedLoop empty({INT64_MAX, 0, INT64_MAX}, {{0, {1, 1, 1}}});
  EXPECT_EQ(empty.num_elements(), 0);
}

TEST(StridedLoop, ReachesEveryElementOnce) {
  // Expensive rows are split, and cheap rows are combined into blocks.
  for (const double cost : {0.01, 1.0, 500.0, 1e5}) {
    SCOPED_TRACE(cost);
    const DimVector dims = {3, 5, 77};
    const StridedLoop loop(dims, {{0, {1000, 100, 1}}, {10, {0, -1, 3}}});
    std::mutex mutex;
    std::vector<std::pair<int64_t, int64_t>> reached;
    loop.ForEachRun(RunContext(), cost, [&](const int64_t* offsets, int64_t n) {
      const std::lock_guard<std::mutex> lock(mutex);
      for (int64_t i = 0; i < n; ++i) {
        reached.emplace_back(offsets[0] + i * loop.inner_stride(0),
                             offsets[1] + i * loop.inner_stride(1));
      }
    });
    std::vector<std::pair<int64_t, int64_t>> expected;
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t j = 0; j < 5; ++j) {
        for (int64_t k = 0; k < 77; ++k) {
          expected.emplace_back(1000 * i + 100 * j + k, 10 - j + 3 * k);
        }
      }
    }
    EXPECT_THAT(reached, ::testing::UnorderedElementsAreArray(expected));
  }
}

TEST(StridedLoop, DoesNothingForEmptyTensors) {
  const StridedLoop loop({4, 0}, {{0, {1, 1}}});
  loop.ForEachRun(RunContext(), 1, [](const int64_t*, int64_t) { ADD_FAILURE(); });
}

TEST(CopyStrided, ScattersIntoAPart) {
  Tensor target(DT_INT32, {4, 3});
  target.flat<int32_t>().setZero();
  // Copies into column 1 from bottom to top.
  CopyStrided(RunContext(), {4}, AsTensor<int32_t>({1, 2, 3, 4}), {0, {1}}, &target, {10, {-3}});
  EXPECT_THAT(target, TensorEq(AsTensor<int32_t>({0, 4, 0, 0, 3, 0, 0, 2, 0, 0, 1, 0}, {4, 3})));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
