#include "gradflow/distributed/gloo_collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gradflow/distributed/in_process.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/distributed/random_calls.h"

extern char** environ;

namespace gradflow {
namespace testing {
namespace {

using std::chrono::milliseconds;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr milliseconds kLong = std::chrono::minutes(2);

// A new file for each test and call.
std::string NewAddress() {
  static int number = 0;
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/gradflow_ranks_", getpid(), "_", number++);
  std::remove(path.c_str());
  return absl::StrCat("file:", path);
}

// Ranks on threads of this process. They use connections like the ranks of several processes.
std::vector<std::shared_ptr<Collectives>> Connect(int size, milliseconds timeout = kLong) {
  LaunchOptions options;
  options.address = NewAddress();
  options.size = size;
  options.timeout = timeout;
  std::vector<std::shared_ptr<Collectives>> ranks(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&ranks, options, rank]() mutable {
      options.rank = rank;
      absl::StatusOr<std::shared_ptr<Collectives>> collectives = GlooCollectives(options);
      GRADFLOW_EXPECT_OK(collectives.status());
      if (collectives.ok()) ranks[static_cast<size_t>(rank)] = *std::move(collectives);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ranks;
}

CollectiveCall Sum(const Tensor& input, int group_size, int64_t instance,
                   milliseconds timeout = kLong) {
  CollectiveCall call;
  call.op = "CollectiveReduceV2";
  call.type = CollectiveType::kReduce;
  call.group_size = group_size;
  call.group_key = 1;
  call.instance_key = instance;
  call.timeout = timeout;
  call.input = input;
  call.output = Tensor(input.dtype(), input.shape());
  return call;
}

class GlooRanks : public ::testing::TestWithParam<int> {};

TEST_P(GlooRanks, RandomRoundsHaveTheResultsOfAReference) {
  const int size = GetParam();
  const auto ranks = Connect(size);
  std::vector<absl::Status> statuses(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      statuses[rank] = RunRandomRounds(ranks[rank].get(), 2, /*count=*/60, /*window=*/20, kLong);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) GRADFLOW_EXPECT_OK(status);
}

INSTANTIATE_TEST_SUITE_P(Gloo, GlooRanks, ::testing::Values(2, 3, 4, 8),
                         [](const auto& info) { return absl::StrCat(info.param); });

TEST(Gloo, OneRankNeedsNoAddress) {
  const auto collectives = GlooCollectives(LaunchOptions());
  GRADFLOW_ASSERT_OK(collectives.status());
  EXPECT_EQ((*collectives)->size(), 1);
}

TEST(Gloo, HasTheBitsOfTheInProcessRanks) {
  constexpr int kRanks = 3;
  // Several segments, and chunks that do not divide the tensor.
  constexpr int64_t kElements = 3'300'001;
  const auto gloo = Connect(kRanks);
  const auto reference = InProcessCollectives(kRanks);
  std::vector<StartedCall> calls;
  std::vector<StartedCall> expected;
  for (int rank = 0; rank < kRanks; ++rank) {
    const Tensor input = RandomTensor(DT_FLOAT, {kElements}, -1, 1, 100 + rank);
    calls.push_back(StartCall(gloo[rank].get(), Sum(input, kRanks, 7)));
    expected.push_back(StartCall(reference[rank].get(), Sum(input, kRanks, 7)));
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    GRADFLOW_EXPECT_OK(calls[rank].status.get());
    GRADFLOW_EXPECT_OK(expected[rank].status.get());
    EXPECT_THAT(calls[rank].output, TensorEq(expected[rank].output));
  }
}

TEST(Gloo, ManySmallTensorsTravelTogether) {
  constexpr int kCalls = 300;
  const auto ranks = Connect(2);
  std::vector<StartedCall> calls;
  for (int rank = 0; rank < 2; ++rank) {
    for (int i = 0; i < kCalls; ++i) {
      CollectiveCall call = Sum(AsTensor<int32_t>({i, rank, 1}), 2, i);
      // Tensors of several types and functions.
      if (i % 3 == 1) call.merge = CollectiveMerge::kMax;
      if (i % 3 == 2) {
        call.input = AsTensor<double>({1.0 * i, 2.0 * rank});
        call.output = Tensor(DT_DOUBLE, {2});
        call.final = CollectiveFinal::kDiv;
      }
      calls.push_back(StartCall(ranks[rank].get(), call));
    }
  }
  for (int i = 0; i < 2 * kCalls; ++i) {
    GRADFLOW_EXPECT_OK(calls[i].status.get());
    const int value = i % kCalls;
    EXPECT_THAT(calls[i].output, TensorEq(value % 3 == 0   ? AsTensor<int32_t>({2 * value, 1, 2})
                                          : value % 3 == 1 ? AsTensor<int32_t>({value, 1, 1})
                                                           : AsTensor<double>({1.0 * value, 1.0})));
  }
}

TEST(Gloo, DisagreementIsAnErrorAndTheRanksGoOn) {
  const auto ranks = Connect(2);
  // Without the comparison, these sizes would end a process.
  StartedCall first = StartCall(ranks[0].get(), Sum(Tensor(DT_FLOAT, {1 << 20}), 2, 7));
  StartedCall second = StartCall(ranks[1].get(), Sum(Tensor(DT_FLOAT, {1 << 18}), 2, 7));
  for (StartedCall* call : {&first, &second}) {
    EXPECT_THAT(call->status.get(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("CollectiveReduceV2, group 1, instance 7: rank ")));
  }
  first = StartCall(ranks[0].get(), Sum(AsTensor<float>({1}), 2, 8));
  second = StartCall(ranks[1].get(), Sum(AsTensor<float>({2}), 2, 8));
  for (StartedCall* call : {&first, &second}) {
    GRADFLOW_EXPECT_OK(call->status.get());
    EXPECT_THAT(call->output, TensorEq(AsTensor<float>({3})));
  }
}

TEST(Gloo, MissingRankIsAnErrorAfterTheTimeout) {
  const auto ranks = Connect(3);
  constexpr milliseconds kTimeout(100);
  StartedCall first = StartCall(ranks[0].get(), Sum(AsTensor<float>({1}), 3, 7, kTimeout));
  StartedCall second = StartCall(ranks[2].get(), Sum(AsTensor<float>({1}), 3, 7, kTimeout));
  for (StartedCall* call : {&first, &second}) {
    ASSERT_EQ(call->status.wait_for(kTimeout + std::chrono::seconds(1)), std::future_status::ready);
    EXPECT_THAT(call->status.get(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                             HasSubstr("rank 1 did not arrive within 100 ms")));
  }
}

TEST(Gloo, CancellingEndsTheCallOfEveryRank) {
  const auto ranks = Connect(2);
  StartedCall first = StartCall(ranks[1].get(), Sum(AsTensor<float>({1}), 2, 7));
  ranks[1]->Cancel(first.id);
  EXPECT_THAT(first.status.get(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("the run of rank 1 was stopped")));
  StartedCall second = StartCall(ranks[0].get(), Sum(AsTensor<float>({1}), 2, 7));
  EXPECT_THAT(second.status.get(), StatusIs(absl::StatusCode::kCancelled));
}

TEST(Gloo, LostRankIsAnErrorAndTheOthersGoOn) {
  auto ranks = Connect(3);
  // Makes the connections.
  std::vector<StartedCall> calls;
  for (const auto& rank : ranks) {
    calls.push_back(StartCall(rank.get(), Sum(AsTensor<float>({1}), 3, 1)));
  }
  for (StartedCall& call : calls) GRADFLOW_EXPECT_OK(call.status.get());
  StartedCall waiting = StartCall(ranks[0].get(), Sum(AsTensor<float>({1}), 3, 2));
  ranks[1] = nullptr;
  EXPECT_THAT(waiting.status.get(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("instance 2: rank 1 is lost: ")));
  StartedCall a = StartCall(ranks[0].get(), Sum(AsTensor<float>({1}), 2, 3));
  StartedCall b = StartCall(ranks[2].get(), Sum(AsTensor<float>({2}), 2, 3));
  GRADFLOW_EXPECT_OK(a.status.get());
  GRADFLOW_EXPECT_OK(b.status.get());
  EXPECT_THAT(b.output, TensorEq(AsTensor<float>({3})));
  // Without rank 0, no rank can go on.
  a = StartCall(ranks[2].get(), Sum(AsTensor<float>({1}), 2, 4));
  ranks[0] = nullptr;
  EXPECT_THAT(a.status.get(), StatusIs(absl::StatusCode::kUnavailable));
  b = StartCall(ranks[2].get(), Sum(AsTensor<float>({1}), 2, 5));
  EXPECT_THAT(b.status.get(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST(Gloo, RejectsInvalidOptions) {
  const auto error = [](auto change) {
    LaunchOptions options;
    options.size = 2;
    options.connect_timeout = milliseconds(50);
    options.address = "127.0.0.1:0";
    change(&options);
    return GlooCollectives(options).status();
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(error([](LaunchOptions* o) { o->rank = 2; }),
              StatusIs(kInvalid, "the rank must be in [0, 2), but is 2"));
  EXPECT_THAT(error([](LaunchOptions* o) { o->timeout = milliseconds(0); }),
              StatusIs(kInvalid, "timeouts must be greater than 0"));
  EXPECT_THAT(error([](LaunchOptions* o) { o->address = "nowhere"; }),
              StatusIs(kInvalid, "an address must be host:port, but is 'nowhere'"));
  EXPECT_THAT(error([](LaunchOptions*) {}),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       "not all of the 2 ranks have connected within 50 ms"));
  EXPECT_THAT(error([](LaunchOptions* o) {
                o->rank = 1;
                o->address = "file:/nonexistent/gradflow";
              }),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       "rank 0 has not written /nonexistent/gradflow within 50 ms"));
}

TEST(Gloo, StrangersDoNotDisturbTheRanks) {
  LaunchOptions options;
  options.address = NewAddress();
  options.size = 2;
  options.timeout = kLong;
  absl::StatusOr<std::shared_ptr<Collectives>> first;
  std::thread thread([&] { first = GlooCollectives(options); });
  LaunchOptions wrong = options;
  wrong.rank = 2;
  wrong.size = 3;
  EXPECT_THAT(
      GlooCollectives(wrong).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, "rank 2 expects 3 ranks, but rank 0 expects 2"));
  LaunchOptions right = options;
  right.rank = 1;
  const auto second = GlooCollectives(right);
  thread.join();
  GRADFLOW_EXPECT_OK(first.status());
  GRADFLOW_EXPECT_OK(second.status());
}

// ---- Processes ----

class Process {
 public:
  explicit Process(const std::vector<std::string>& arguments) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    std::vector<char*> argv;
    for (const std::string& argument : arguments) {
      argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    EXPECT_EQ(posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    out_ = fdopen(ends[0], "r");
  }
  ~Process() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      Wait();
    }
    fclose(out_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Returns the next line of output, or "" at the end.
  std::string Line() {
    char line[4096];
    return fgets(line, sizeof(line), out_) == nullptr ? std::string() : std::string(line);
  }
  void Signal(int signal) { kill(pid_, signal); }
  // Waits for the end. Returns the exit status, or -1 if a signal ended the process.
  int Wait() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
  FILE* out_;
};

std::vector<std::unique_ptr<Process>> StartRanks(int size, milliseconds timeout,
                                                 const std::vector<std::string>& mode) {
  const std::string address = NewAddress();
  std::vector<std::unique_ptr<Process>> ranks;
  for (int rank = 0; rank < size; ++rank) {
    std::vector<std::string> arguments = {GRADFLOW_PROGRAM_gradflow_distributed_rank, address,
                                          absl::StrCat(rank), absl::StrCat(size),
                                          absl::StrCat(timeout.count())};
    arguments.insert(arguments.end(), mode.begin(), mode.end());
    ranks.push_back(std::make_unique<Process>(arguments));
  }
  return ranks;
}

TEST(GlooProcesses, RandomRoundsHaveTheResultsOfAReference) {
  for (const int size : {2, 3, 4}) {
    auto ranks = StartRanks(size, kLong, {"random", absl::StrCat(size), "60"});
    for (auto& rank : ranks) {
      EXPECT_EQ(rank->Line(), "");
      EXPECT_EQ(rank->Wait(), 0);
    }
  }
}

// Sends `signal` to each rank in turn while the ranks exchange tensors. The others must report it.
void DisturbRanks(int signal, milliseconds timeout, int bytes, int repeats) {
  constexpr int kRanks = 3;
  std::mt19937 random(static_cast<uint32_t>(bytes + repeats));
  for (int victim = 0; victim < kRanks * repeats; ++victim) {
    auto ranks = StartRanks(kRanks, timeout, {"loop", absl::StrCat(bytes)});
    Process& disturbed = *ranks[static_cast<size_t>(victim % kRanks)];
    const auto steps = static_cast<int>(1 + random() % 20);
    for (int step = 0; step < steps; ++step) {
      ASSERT_THAT(disturbed.Line(), ::testing::StartsWith("step"));
    }
    disturbed.Signal(signal);
    for (int rank = 0; rank < kRanks; ++rank) {
      if (rank == victim % kRanks) continue;
      std::string line = ranks[rank]->Line();
      while (absl::StartsWith(line, "step")) line = ranks[rank]->Line();
      const std::vector<std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 2));
      ASSERT_EQ(words.size(), 3) << "rank " << rank << " ended: " << line << ranks[rank]->Wait();
      EXPECT_EQ(words[0], "error");
      int64_t milliseconds_taken = 0;
      EXPECT_TRUE(absl::SimpleAtoi(words[1], &milliseconds_taken));
      EXPECT_LE(milliseconds_taken, timeout.count() + 1000) << line;
      EXPECT_THAT(words[2],
                  AnyOf(HasSubstr("UNAVAILABLE: CollectiveReduceV2, group 1, instance 7: "),
                        HasSubstr("DEADLINE_EXCEEDED: CollectiveReduceV2, group 1, instance 7: ")));
      EXPECT_EQ(ranks[rank]->Wait(), 1);
    }
  }
}

TEST(GlooProcesses, KilledRankIsAnErrorOnEveryOtherRank) {
  DisturbRanks(SIGKILL, std::chrono::seconds(20), /*bytes=*/1 << 20, /*repeats=*/2);
}

TEST(GlooProcesses, StoppedRankIsAnErrorOnEveryOtherRank) {
  DisturbRanks(SIGSTOP, milliseconds(500), /*bytes=*/1 << 20, /*repeats=*/1);
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
