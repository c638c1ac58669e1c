#include "gradflow/ops/common/simd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "gradflow/ops/common/row_blocks.h"

namespace gradflow {
namespace {

TEST(Simd, AlwaysHasAScalarTarget) {
  ASSERT_FALSE(SimdTargets().empty());
  EXPECT_EQ(SimdTargets().back(), "scalar");
}

TEST(Simd, UsesTheTargetThatIsSet) {
  for (const std::string& target : SimdTargets()) {
    EXPECT_TRUE(SetSimdTarget(target));
    EXPECT_EQ(CurrentSimdTarget(), target);
  }
  EXPECT_FALSE(SetSimdTarget("sse9"));
  EXPECT_EQ(CurrentSimdTarget(), "scalar");
  EXPECT_TRUE(SetSimdTarget(""));
}

TEST(Simd, ObeysTheEnvironment) {
  const char* before = std::getenv("GRADFLOW_SIMD");
  const std::string saved = before == nullptr ? "" : before;
  setenv("GRADFLOW_SIMD", "scalar", 1);
  EXPECT_TRUE(SetSimdTarget(""));
  EXPECT_EQ(CurrentSimdTarget(), "scalar");
  // Unknown instruction sets are ignored.
  setenv("GRADFLOW_SIMD", "sse9", 1);
  EXPECT_TRUE(SetSimdTarget(""));
  EXPECT_EQ(CurrentSimdTarget(), SimdTargets().front());
  setenv("GRADFLOW_SIMD", saved.c_str(), 1);
  EXPECT_TRUE(SetSimdTarget(""));
}

TEST(Simd, AddsLanesAsATree) {
  double lanes[kSumLanes];
  double sum = 0;
  for (int i = 0; i < kSumLanes; ++i) sum += lanes[i] = i * i;
  EXPECT_EQ(SumOfLanes(lanes), sum);
}

TEST(RowBlocks, VisitEveryElementOnceAndCountThem) {
  const RunContext run;
  const int64_t shapes[][2] = {{1, 1},    {1, 7},    {2, 3},     {255, 1},   {257, 1},
                               {1000, 3}, {70, 64},  {33, 256},  {3, 1025},  {600, 512},
                               {5, 1500}, {5, 1025}, {90001, 5}, {1, 40000}, {700, 700}};
  for (const auto& shape : shapes) {
    const int64_t rows = shape[0];
    const int64_t channels = shape[1];
    SCOPED_TRACE(::testing::Message() << rows << " x " << channels);
    const RowBlocks blocks(run, rows, channels);
    EXPECT_EQ(blocks.width(), channels * blocks.repeats());
    std::vector<int> visits(rows * channels);
    std::vector<double> counts(blocks.num_blocks() * blocks.width());
    std::atomic<int64_t> strays{0};
    blocks.ForEachTile([&](const RowBlocks::Tile& tile) {
      EXPECT_LE(tile.columns, RowBlocks::kMaxColumns);
      const auto visit = [&](int64_t offset, int64_t n) {
        for (int64_t j = 0; j < n; ++j) {
          ++visits[offset + j];
          strays += (offset + j) % channels != (tile.column + j) % channels;
          ++counts[tile.block * blocks.width() + tile.column + j];
        }
      };
      for (int64_t r = 0; r < tile.rows; ++r) {
        visit(tile.offset + r * blocks.width(), tile.columns);
      }
      visit(tile.rest_offset, tile.rest_columns);
    });
    EXPECT_EQ(strays, 0);
    EXPECT_EQ(std::count(visits.begin(), visits.end(), 1), rows * channels);
    for (int64_t b = 0; b < blocks.num_blocks(); ++b) {
      for (int64_t j = 0; j < blocks.width(); ++j) {
        ASSERT_EQ(blocks.RowsInBlocks(b, b + 1, j), counts[b * blocks.width() + j]);
      }
    }
    blocks.AddUp(counts.data(), 1);
    for (int64_t c = 0; c < channels; ++c) ASSERT_EQ(counts[c], rows);
  }
}

}  // namespace
}  // namespace gradflow
