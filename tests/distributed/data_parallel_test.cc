// Training on several ranks, which are sessions of this program.
#include "gradflow/training/data_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/collectives.h"
#include "gradflow/core/status.h"
#include "gradflow/distributed/in_process.h"
#include "gradflow/graph/scope.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"
#include "gradflow/training/saver.h"
#include "gradflow/training/variables.h"
#include "tests/distributed/train_rank.h"

namespace gradflow::training {
namespace {

using ::gradflow::testing::AsTensor;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::TensorEq;
using ::gradflow::testing::TensorNear;
using ::gradflow::testing::Tolerance;
using ::testing::HasSubstr;

// Trains on `size` ranks, on a thread each; 0 for training without Collectives. The ranks must end
// with the same variables; returns them.
absl::StatusOr<std::vector<Tensor>> TrainRanks(
    int size, const RankOptions& options,
    const std::function<void(int rank, RankOptions*)>& change = nullptr) {
  if (size == 0) return TrainRank(nullptr, options);
  const auto collectives = InProcessCollectives(size);
  std::vector<absl::StatusOr<std::vector<Tensor>>> results(static_cast<size_t>(size),
                                                           absl::UnknownError("did not run"));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      RankOptions own = options;
      if (change != nullptr) change(rank, &own);
      results[rank] = TrainRank(collectives[rank], own);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int rank = 0; rank < size; ++rank) {
    GRADFLOW_RETURN_IF_ERROR(
        errors::Prefix(absl::StrCat("rank ", rank, ": "), results[rank].status()));
    for (size_t i = 0; i < results[0]->size(); ++i) {
      EXPECT_THAT((*results[rank])[i], TensorEq((*results[0])[i])) << rank << ", variable " << i;
    }
  }
  return results[0];
}

void ExpectSame(const absl::StatusOr<std::vector<Tensor>>& actual,
                const absl::StatusOr<std::vector<Tensor>>& expected) {
  GRADFLOW_ASSERT_OK(actual.status());
  GRADFLOW_ASSERT_OK(expected.status());
  ASSERT_EQ(actual->size(), expected->size());
  for (size_t i = 0; i < actual->size(); ++i) {
    EXPECT_THAT((*actual)[i], TensorEq((*expected)[i])) << "variable " << i;
  }
}

std::string NewPrefix(const std::string& name) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / absl::StrCat("gradflow_parallel_", name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return (folder / "ckpt").string();
}

class DataParallelRanks : public ::testing::TestWithParam<int> {};

TEST_P(DataParallelRanks, TrainTheModelOfOneRank) {
  const int size = GetParam();
  const auto expected = TrainRanks(0, {});
  GRADFLOW_ASSERT_OK(expected.status());
  const auto path = [&](int rank) { return NewPrefix(absl::StrCat(size, "_", rank)); };
  std::vector<std::string> prefixes;
  for (int rank = 0; rank < size; ++rank) prefixes.push_back(path(rank));
  const auto weights = TrainRanks(
      size, {}, [&](int rank, RankOptions* options) { options->prefix = prefixes[rank]; });
  GRADFLOW_ASSERT_OK(weights.status());
  for (size_t i = 0; i < weights->size(); ++i) {
    EXPECT_THAT((*weights)[i], TensorNear((*expected)[i], Tolerance::Near(1e-3, 1e-3)));
  }
  for (int rank = 0; rank < size; ++rank) {
    const std::string folder = std::filesystem::path(prefixes[rank]).parent_path().string();
    EXPECT_EQ(LatestCheckpoint(folder).ok(), rank == 0);
  }
}

TEST_P(DataParallelRanks, AverageMovingStatistics) {
  RankOptions options;
  options.has_statistics = true;
  // All ranks end with the same variables.
  GRADFLOW_EXPECT_OK(TrainRanks(GetParam(), options).status());
}

TEST_P(DataParallelRanks, ComputeTheSameBitsInMicroBatches) {
  RankOptions options;
  options.has_statistics = true;
  for (const int64_t micro_batches : {8, 24}) {
    options.micro_batches = micro_batches;
    ExpectSame(TrainRanks(GetParam(), options), TrainRanks(0, options));
  }
}

TEST_P(DataParallelRanks, ResumeARunOfAnotherNumberOfRanks) {
  RankOptions options;
  options.has_statistics = true;
  options.micro_batches = 8;
  options.steps = 7;
  const auto expected = TrainRanks(0, options);
  options.prefix = NewPrefix(absl::StrCat("resumed_", GetParam()));
  options.steps = 4;
  GRADFLOW_ASSERT_OK(TrainRanks(3, options).status());
  options.steps = 7;
  ExpectSame(TrainRanks(GetParam(), options), expected);
}

INSTANTIATE_TEST_SUITE_P(DataParallel, DataParallelRanks, ::testing::Values(1, 2, 3, 4, 8),
                         [](const auto& info) { return absl::StrCat(info.param); });

TEST(DataParallel, MicroBatchesComputeTheGradientOfTheBatch) {
  RankOptions options;
  options.micro_batches = 24;
  const auto weights = TrainRanks(0, options);
  const auto expected = TrainRanks(0, {});
  GRADFLOW_ASSERT_OK(weights.status());
  GRADFLOW_ASSERT_OK(expected.status());
  for (size_t i = 0; i < weights->size(); ++i) {
    EXPECT_THAT((*weights)[i], TensorNear((*expected)[i], Tolerance::Near(1e-3, 1e-3)));
  }
}

TEST(DataParallel, RowsOfRankNeedsAWholePart) {
  const Tensor batch = AsTensor<float>({1, 2, 3, 4, 5, 6}, {6, 1});
  EXPECT_THAT(RowsOfRank({batch}, 1, 3)->at(0), TensorEq(AsTensor<float>({3, 4}, {2, 1})));
  EXPECT_THAT(RowsOfRank({batch}, 0, 4).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the number of rows of a batch must be a multiple of the 4 ranks, but the "
                       "shape is [6,1]"));
}

TEST(DataParallel, RejectsInvalidMicroBatches) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  RankOptions options;
  options.micro_batches = 2;
  EXPECT_THAT(TrainRanks(3, options).status(),
              StatusIs(kInvalid, HasSubstr("micro_batches must be 0 or at least the 3 ranks, but "
                                           "is 2")));
  options.micro_batches = 7;
  EXPECT_THAT(TrainRanks(1, options).status(),
              StatusIs(kInvalid, HasSubstr("must be a multiple of the 7 micro-batches, but the "
                                           "shape is [48,5]")));
  const Scope scope = Scope::NewRootScope();
  DataParallelOptions parallel_options;
  parallel_options.micro_batches = 2;
  DataParallel parallel(scope, nullptr, parallel_options);
  std::vector<Output> gradients;
  EXPECT_THAT(parallel.Average(&gradients),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("use Minimize()")));
}

TEST(DataParallel, BroadcastNeedsKnownShapes) {
  const auto ranks = InProcessCollectives(2);
  const Scope scope = Scope::NewRootScope();
  const Output w = NewVariable(scope, "w", DT_FLOAT, PartialTensorShape());
  DataParallel parallel(scope, ranks[1]);
  EXPECT_EQ(parallel.rank(), 1);
  EXPECT_EQ(parallel.size(), 2);
  parallel.Broadcast({w});
  EXPECT_THAT(scope.status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr("variable 'w' must have a known shape")));
}

TEST(DataParallel, UpdateNeedsFloatVariables) {
  const auto ranks = InProcessCollectives(2);
  const Scope scope = Scope::NewRootScope();
  const Output count = NewVariable(scope, "count", DT_INT64, TensorShape());
  DataParallel parallel(scope, ranks[0]);
  parallel.Update({count}, {});
  EXPECT_THAT(scope.status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("variable 'count' must be float to be averaged, but is int64")));
}

}  // namespace
}  // namespace gradflow::training
