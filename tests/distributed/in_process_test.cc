#include "gradflow/distributed/in_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/collectives.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/distributed/random_calls.h"

namespace gradflow {
namespace testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

class Ranks : public ::testing::TestWithParam<int> {};

TEST_P(Ranks, RandomRoundsHaveTheResultsOfAReference) {
  const int size = GetParam();
  const std::vector<std::shared_ptr<Collectives>> ranks = InProcessCollectives(size);
  std::vector<absl::Status> statuses(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      statuses[rank] =
          RunRandomRounds(ranks[rank].get(), 1, /*count=*/200, /*window=*/20, kLongTimeout);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) GRADFLOW_EXPECT_OK(status);
}

TEST_P(Ranks, FaultyRoundsHaveTheRightErrors) {
  const int size = GetParam();
  const std::vector<std::shared_ptr<Collectives>> ranks = InProcessCollectives(size);
  std::vector<absl::Status> statuses(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      statuses[rank] =
          RunFaultyRounds(ranks[rank].get(), 4, /*count=*/60, /*window=*/30, kLongTimeout);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) GRADFLOW_EXPECT_OK(status);
}

INSTANTIATE_TEST_SUITE_P(InProcess, Ranks, ::testing::Values(2, 3, 4, 8),
                         [](const auto& info) { return absl::StrCat(info.param); });

TEST(InProcess, ReducesInTheOrderOfTheRanks) {
  const auto ranks = InProcessCollectives(3);
  // (1e8 + 1) - 1e8 is 0 in float, and (1e8 - 1e8) + 1 is 1.
  const float values[] = {1e8f, 1.0f, -1e8f};
  std::vector<StartedCall> calls;
  for (const int rank : {2, 0, 1}) {
    calls.push_back(StartCall(ranks[rank].get(), SumCall(AsTensor<float>({values[rank]}), 3, 7)));
  }
  for (StartedCall& call : calls) {
    GRADFLOW_EXPECT_OK(call.status.get());
    EXPECT_THAT(call.output, TensorEq(AsTensor<float>({0})));
  }
}

TEST(InProcess, OutputMayShareTheInput) {
  const auto ranks = InProcessCollectives(2);
  std::vector<StartedCall> calls;
  for (int rank = 0; rank < 2; ++rank) {
    CollectiveCall call = SumCall(AsTensor<int32_t>({1 + rank, 10}), 2, 7);
    call.output = call.input;
    calls.push_back(StartCall(ranks[rank].get(), std::move(call)));
  }
  for (StartedCall& call : calls) {
    GRADFLOW_EXPECT_OK(call.status.get());
    EXPECT_THAT(call.output, TensorEq(AsTensor<int32_t>({3, 20})));
  }
}

TEST(InProcess, DisagreementIsAnErrorOnEveryRank) {
  const auto ranks = InProcessCollectives(3);
  StartedCall first = StartCall(ranks[1].get(), SumCall(AsTensor<float>({1, 2}), 3, 7));
  StartedCall second = StartCall(ranks[0].get(), SumCall(AsTensor<float>({1, 2, 3}), 3, 7));
  // This rank agrees with the first, but arrives after the error.
  StartedCall third = StartCall(ranks[2].get(), SumCall(AsTensor<float>({1, 2}), 3, 7));
  for (StartedCall* call : {&first, &second, &third}) {
    EXPECT_THAT(call->status.get(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         "CollectiveReduceV2, group 1, instance 7: rank 0 has shape [3], but rank "
                         "1 has shape [2]"));
  }
}

TEST(InProcess, MissingRankIsAnErrorAfterTheTimeout) {
  const auto ranks = InProcessCollectives(3);
  constexpr milliseconds kTimeout(50);
  StartedCall first = StartCall(ranks[0].get(), SumCall(AsTensor<float>({1}), 3, 7, kTimeout));
  StartedCall second = StartCall(ranks[2].get(), SumCall(AsTensor<float>({1}), 3, 7, kTimeout));
  for (StartedCall* call : {&first, &second}) {
    EXPECT_THAT(call->status.get(),
                StatusIs(absl::StatusCode::kDeadlineExceeded,
                         "CollectiveReduceV2, group 1, instance 7: rank 1 did not arrive within 50 "
                         "ms"));
  }
}

TEST(InProcess, TheDefaultTimeoutIsAnOption) {
  InProcessOptions options;
  options.timeout = milliseconds(1);
  const auto ranks = InProcessCollectives(2, options);
  EXPECT_THAT(
      StartCall(ranks[0].get(), SumCall(AsTensor<float>({1}), 2, 7, milliseconds(0))).status.get(),
      StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("within 1 ms")));
}

TEST(InProcess, CancellingEndsTheCallOfEveryRank) {
  const auto ranks = InProcessCollectives(3);
  StartedCall first = StartCall(ranks[0].get(), SumCall(AsTensor<float>({1}), 3, 7));
  StartedCall second = StartCall(ranks[1].get(), SumCall(AsTensor<float>({1}), 3, 7));
  ranks[1]->Cancel(second.id);
  // Calls that have ended are not affected.
  ranks[1]->Cancel(second.id);
  StartedCall third = StartCall(ranks[2].get(), SumCall(AsTensor<float>({1}), 3, 7));
  for (StartedCall* call : {&first, &second, &third}) {
    EXPECT_THAT(call->status.get(),
                StatusIs(absl::StatusCode::kCancelled,
                         "CollectiveReduceV2, group 1, instance 7: the run of rank 1 was stopped"));
  }
}

TEST(InProcess, LostRankIsAnErrorOnEveryOtherRank) {
  auto ranks = InProcessCollectives(3);
  StartedCall waiting = StartCall(ranks[0].get(), SumCall(AsTensor<float>({1}), 3, 7));
  ranks[1] = nullptr;
  StartedCall later = StartCall(ranks[2].get(), SumCall(AsTensor<float>({1}), 3, 8));
  EXPECT_THAT(waiting.status.get(),
              StatusIs(absl::StatusCode::kUnavailable,
                       "CollectiveReduceV2, group 1, instance 7: rank 1 is lost: its Collectives "
                       "were destroyed"));
  EXPECT_THAT(later.status.get(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("rank 1 is lost")));
  // The other ranks can form a group.
  StartedCall a = StartCall(ranks[0].get(), SumCall(AsTensor<float>({1}), 2, 9));
  StartedCall b = StartCall(ranks[2].get(), SumCall(AsTensor<float>({1}), 2, 9));
  GRADFLOW_EXPECT_OK(a.status.get());
  GRADFLOW_EXPECT_OK(b.status.get());
}

TEST(InProcess, CallbackMayDestroyTheLastRank) {
  auto ranks = std::make_shared<std::vector<std::shared_ptr<Collectives>>>(InProcessCollectives(2));
  std::promise<absl::Status> ended;
  Collectives* const rank = (*ranks)[0].get();
  (*ranks)[1] = nullptr;
  rank->Start(rank->NewCallId(), SumCall(AsTensor<float>({1}), 2, 7),
              [&, ranks](absl::Status status) {
                ranks->clear();
                ended.set_value(std::move(status));
              });
  EXPECT_THAT(ended.get_future().get(), StatusIs(absl::StatusCode::kUnavailable));
  // The same on the thread that waits for timeouts.
  auto others =
      std::make_shared<std::vector<std::shared_ptr<Collectives>>>(InProcessCollectives(2));
  std::promise<absl::Status> expired;
  Collectives* const other = (*others)[0].get();
  other->Start(other->NewCallId(), SumCall(AsTensor<float>({1}), 2, 7, milliseconds(1)),
               [&, others](absl::Status status) {
                 others->clear();
                 expired.set_value(std::move(status));
               });
  others = nullptr;
  EXPECT_THAT(expired.get_future().get(), StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST(InProcess, InvalidCallsAreErrors) {
  const auto ranks = InProcessCollectives(2);
  CollectiveCall call = SumCall(AsTensor<float>({1, 2}), 3, 7);
  EXPECT_THAT(
      StartCall(ranks[0].get(), call).status.get(),
      StatusIs(absl::StatusCode::kInvalidArgument, "a group must have 2 to 2 ranks, but has 3"));
  call.group_size = 2;
  call.output = Tensor(DT_FLOAT, {1});
  EXPECT_THAT(StartCall(ranks[0].get(), call).status.get(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the output must have 8 bytes of type float, but has 4 of type float"));
  call.input = call.output = AsTensor<bool>({true});
  EXPECT_THAT(
      StartCall(ranks[0].get(), call).status.get(),
      StatusIs(absl::StatusCode::kInvalidArgument, "tensors of type bool cannot be merged"));
  call.type = CollectiveType::kAllToAll;
  EXPECT_THAT(StartCall(ranks[0].get(), call).status.get(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the number of elements must be a multiple of 2, but is 1"));
  call.type = CollectiveType::kGather;
  call.input = call.output = AsTensor<tstring>({"a"});
  EXPECT_THAT(
      StartCall(ranks[0].get(), call).status.get(),
      StatusIs(absl::StatusCode::kInvalidArgument, "tensors of type string cannot be exchanged"));
  call.group_rank = 2;
  EXPECT_THAT(StartCall(ranks[0].get(), call).status.get(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the rank in the group must be less than 2, but is 2"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
