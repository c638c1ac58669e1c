#include "gradflow/training/micro_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/collectives.h"
#include "gradflow/core/status.h"
#include "gradflow/distributed/in_process.h"
#include "gradflow/testing/status_matchers.h"

namespace gradflow::training {
namespace {

using ::testing::ElementsAre;

std::string DebugString(const std::vector<SumRange>& nodes) {
  std::string text;
  for (const SumRange& node : nodes) absl::StrAppend(&text, "[", node.begin, ",", node.end, ")");
  return text;
}

TEST(MicroBatches, NodesCoverTheMicroBatchesOfEachRank) {
  for (int64_t count = 1; count <= 33; ++count) {
    for (int ranks = 1; ranks <= count; ++ranks) {
      int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        for (const SumRange& node : NodesOf(count, MicroBatchesOf(count, rank, ranks))) {
          EXPECT_EQ(node.begin, next) << count << ", " << ranks;
          EXPECT_LT(node.begin, node.end);
          next = node.end;
        }
      }
      EXPECT_EQ(next, count);
    }
  }
}

TEST(MicroBatches, FewNodesCoverARank) {
  EXPECT_EQ(DebugString(NodesOf(8, {0, 8})), "[0,8)");
  EXPECT_EQ(DebugString(NodesOf(8, {2, 5})), "[2,4)[4,5)");
  EXPECT_EQ(DebugString(NodesOf(24, {8, 16})), "[8,16)");
  EXPECT_EQ(DebugString(NodesOf(6, {1, 6})), "[1,2)[2,4)[4,6)");
}

// A vector whose sum depends on the order of the additions.
std::vector<float> VectorOf(int64_t i, int64_t length) {
  std::vector<float> vector;
  for (int64_t k = 0; k < length; ++k) {
    vector.push_back(static_cast<float>((i * 37 + k * 11) % 100) * 0.1f + 1e6f * (i % 3 == 0));
  }
  return vector;
}

TEST(MicroBatches, AverageHasTheSameBitsOnAnyNumberOfRanks) {
  for (const int64_t count : {8, 12, 24}) {
    for (const int64_t length : {1, 7, 64}) {
      const auto run = [&](int64_t i) -> absl::StatusOr<std::vector<float>> {
        return VectorOf(i, length);
      };
      const auto expected = AverageOf(count, SumExchange(), run);
      GRADFLOW_ASSERT_OK(expected.status());
      for (int size = 1; size <= 8; ++size) {
        const auto collectives = InProcessCollectives(size);
        std::vector<absl::StatusOr<std::vector<float>>> results(static_cast<size_t>(size),
                                                                absl::UnknownError("not run"));
        std::vector<std::thread> threads;
        for (int rank = 0; rank < size; ++rank) {
          threads.emplace_back([&, rank] {
            SumExchange exchange;
            exchange.collectives = collectives[rank].get();
            exchange.group_key = 1;
            results[rank] = AverageOf(count, exchange, run);
          });
        }
        for (std::thread& thread : threads) thread.join();
        for (const auto& result : results) {
          GRADFLOW_ASSERT_OK(result.status());
          EXPECT_EQ(*result, *expected) << count << ", " << length << ", " << size;
        }
      }
    }
  }
}

TEST(MicroBatches, AddsInTheTree) {
  // ((0 + 1) + (2 + 3)) + 4
  const auto run = [](int64_t i) -> absl::StatusOr<std::vector<float>> {
    const float values[] = {1e8f, 1.0f, -1e8f, 1.0f, 10.0f};
    return std::vector<float>{values[i]};
  };
  const auto average = AverageOf(5, SumExchange(), run);
  GRADFLOW_ASSERT_OK(average.status());
  EXPECT_THAT(*average, ElementsAre(2.0f));
}

TEST(MicroBatches, ReturnsTheErrorOfAMicroBatch) {
  const auto run = [](int64_t i) -> absl::StatusOr<std::vector<float>> {
    if (i == 3) return absl::InternalError("third");
    return std::vector<float>(static_cast<size_t>(1 + i / 5));
  };
  EXPECT_EQ(AverageOf(4, SumExchange(), run).status(), absl::InternalError("third"));
  EXPECT_EQ(SumOf({4, 6}, run).status(), absl::InternalError("micro-batches have 1 and 2 numbers"));
}

}  // namespace
}  // namespace gradflow::training
