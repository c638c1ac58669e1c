// Training on several ranks, which are sessions of this program.
#include "gradflow/training/data_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/collectives.h"
#include "gradflow/core/status.h"
#include "gradflow/distributed/in_process.h"
#include "gradflow/graph/scope.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"
#include "gradflow/training/input.h"
#include "gradflow/training/optimizer.h"
#include "gradflow/training/saver.h"
#include "gradflow/training/trainer.h"
#include "gradflow/training/variables.h"

namespace gradflow::training {
namespace {

using ::gradflow::testing::AsTensor;
using ::gradflow::testing::RandomTensor;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::TensorEq;
using ::gradflow::testing::TensorNear;
using ::gradflow::testing::Tolerance;
using ::testing::HasSubstr;

constexpr int64_t kSteps = 5;
constexpr int64_t kBatch = 24;

// Trains a linear model on rank `rank`, whose initial weights are the rank, and returns the
// weights. Rank 0 writes checkpoints with `prefix`.
absl::StatusOr<Tensor> TrainRank(const std::shared_ptr<Collectives>& collectives,
                                 const std::string& prefix) {
  const Scope scope = Scope::NewRootScope();
  const Output x = ops::Placeholder(scope, DT_FLOAT, ops::Placeholder::Shape({-1, 3}));
  const Output y = ops::Placeholder(scope, DT_FLOAT, ops::Placeholder::Shape({-1, 1}));
  const Output w = NewVariable(scope, "w", DT_FLOAT, {3, 1});
  const float initial = collectives == nullptr ? 0.0f : static_cast<float>(collectives->rank());
  const Operation initialize = AssignVariable(scope, w, ops::Const(scope, initial, {3, 1}));
  const Output error = ops::Sub(scope, ops::MatMul(scope, x, ReadVariable(scope, w)), y);
  const Output loss = ops::Mean(scope, ops::Square(scope, error), {0, 1});
  GradientDescent descent(scope, GradientDescentOptions().LearningRate(0.1f));
  DataParallel parallel(scope, collectives.get());
  Operation train;
  GRADFLOW_RETURN_IF_ERROR(parallel.Minimize(&descent, loss, {w}, &train));
  const Operation broadcast = parallel.Broadcast({w});
  TrainerOptions options;
  options.inputs = {x, y};
  options.loss = loss;
  options.targets = {train};
  options.steps = kSteps;
  options.checkpoint_prefix = prefix;
  options.collectives = collectives;
  Trainer trainer(scope, {w}, options);
  const Output weights = ReadVariable(scope, w);
  GRADFLOW_RETURN_IF_ERROR(scope.status());

  BatchesOptions batches_options;
  batches_options.batch_size = kBatch;
  batches_options.seed = 3;
  GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<Batches> batches,
                            Batches::Make({RandomTensor(DT_FLOAT, {96, 3}, -1, 1, 1),
                                           RandomTensor(DT_FLOAT, {96, 1}, -1, 1, 2)},
                                          batches_options));
  SessionOptions session_options;
  session_options.collectives = collectives;
  const ClientSession session(scope, session_options);
  GRADFLOW_RETURN_IF_ERROR(session.Run({}, {}, {initialize}, nullptr));
  GRADFLOW_RETURN_IF_ERROR(session.Run({}, {}, {broadcast}, nullptr));
  GRADFLOW_RETURN_IF_ERROR(trainer.Run(session, batches.get()).status());
  std::vector<Tensor> outputs;
  GRADFLOW_RETURN_IF_ERROR(session.Run({weights}, &outputs));
  return outputs[0];
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
  const auto expected = TrainRank(nullptr, NewPrefix("one"));
  GRADFLOW_ASSERT_OK(expected.status());
  const auto collectives = InProcessCollectives(size);
  std::vector<std::string> prefixes;
  std::vector<absl::StatusOr<Tensor>> weights(static_cast<size_t>(size),
                                              absl::UnknownError("did not run"));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) prefixes.push_back(NewPrefix(absl::StrCat(rank)));
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back(
        [&, rank] { weights[rank] = TrainRank(collectives[rank], prefixes[rank]); });
  }
  for (std::thread& thread : threads) thread.join();
  for (int rank = 0; rank < size; ++rank) {
    GRADFLOW_ASSERT_OK(weights[rank].status());
    EXPECT_THAT(*weights[rank], TensorEq(*weights[0]));
    EXPECT_THAT(*weights[rank], TensorNear(*expected, Tolerance::Near(1e-5, 1e-5)));
    const std::string folder = std::filesystem::path(prefixes[rank]).parent_path().string();
    EXPECT_EQ(LatestCheckpoint(folder).ok(), rank == 0);
  }
}

INSTANTIATE_TEST_SUITE_P(DataParallel, DataParallelRanks, ::testing::Values(1, 2, 3, 4, 8),
                         [](const auto& info) { return absl::StrCat(info.param); });

TEST(DataParallel, RowsOfRankNeedsAWholePart) {
  const Tensor batch = AsTensor<float>({1, 2, 3, 4, 5, 6}, {6, 1});
  EXPECT_THAT(RowsOfRank({batch}, 1, 3)->at(0), TensorEq(AsTensor<float>({3, 4}, {2, 1})));
  EXPECT_THAT(RowsOfRank({batch}, 0, 4).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the number of rows of a batch must be a multiple of the 4 ranks, but the "
                       "shape is [6,1]"));
}

TEST(DataParallel, BroadcastNeedsKnownShapes) {
  const auto ranks = InProcessCollectives(2);
  const Scope scope = Scope::NewRootScope();
  const Output w = NewVariable(scope, "w", DT_FLOAT, PartialTensorShape());
  DataParallel parallel(scope, ranks[1].get());
  EXPECT_EQ(parallel.rank(), 1);
  EXPECT_EQ(parallel.size(), 2);
  parallel.Broadcast({w});
  EXPECT_THAT(scope.status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr("variable 'w' must have a known shape")));
}

}  // namespace
}  // namespace gradflow::training
