#include "gradflow/ops/common/plane_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

namespace gradflow {
namespace {

TEST(PlaneBlocks, VisitEveryElementOnceAndCountThem) {
  const RunContext run;
  const int64_t shapes[][3] = {{1, 1, 1},     {2, 3, 4},      {1, 2, 200000}, {3, 2, 65536},
                               {2, 1, 65537}, {300, 20, 400}, {5, 17, 49},    {1, 100, 2},
                               {3, 70, 9},    {200, 50, 49},  {1, 33, 1000}};
  for (const auto& shape : shapes) {
    const int64_t batch = shape[0];
    const int64_t channels = shape[1];
    const int64_t spatial = shape[2];
    SCOPED_TRACE(::testing::Message() << batch << " x " << channels << " x " << spatial);
    const PlaneBlocks blocks(run, batch, channels, spatial);
    std::vector<int> first(batch * channels * spatial);
    std::vector<int> second(first.size());
    std::vector<int> between(channels);
    std::atomic<int64_t> strays{0};
    const auto visit = [&](std::vector<int>& visits, const PlaneBlocks::Tile& tile) {
      const Planes& planes = tile.planes;
      EXPECT_LE(planes.channels, PlaneBlocks::kMaxChannels);
      EXPECT_EQ(planes.images * planes.length, blocks.Count(tile.block));
      for (int64_t image = 0; image < planes.images; ++image) {
        for (int64_t c = 0; c < planes.channels; ++c) {
          const int64_t begin =
              tile.offset + image * planes.image_stride + c * planes.channel_stride;
          for (int64_t i = begin; i < begin + planes.length; ++i) {
            strays += i / spatial % channels != tile.channel + c;
            ++visits[i];
          }
        }
      }
    };
    blocks.InTwoPasses([&](const PlaneBlocks::Tile& tile) { visit(first, tile); },
                       [&](int64_t channel) { ++between[channel]; },
                       [&](const PlaneBlocks::Tile& tile) {
                         for (int64_t c = 0; c < tile.planes.channels; ++c) {
                           EXPECT_EQ(between[tile.channel + c], 1);
                         }
                         visit(second, tile);
                       });
    EXPECT_EQ(strays, 0);
    EXPECT_EQ(std::count(first.begin(), first.end(), 1), batch * channels * spatial);
    EXPECT_EQ(second, first);
    EXPECT_THAT(between, ::testing::Each(1));
  }
}

}  // namespace
}  // namespace gradflow
