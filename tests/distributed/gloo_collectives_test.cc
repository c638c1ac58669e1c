#include "gradflow/distributed/gloo_collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
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
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// A new file for each test and call.
std::string NewAddress() {
  static int number = 0;
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/gradflow_ranks_", getpid(), "_", number++);
  std::remove(path.c_str());
  return absl::StrCat("file:", path);
}

// Ranks on threads of this process. They use connections like the ranks of several processes.
std::vector<std::shared_ptr<Collectives>> Connect(int size, milliseconds timeout = kLongTimeout) {
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

class GlooRanks : public ::testing::TestWithParam<int> {};

TEST_P(GlooRanks, RandomRoundsHaveTheResultsOfAReference) {
  const int size = GetParam();
  const auto ranks = Connect(size);
  std::vector<absl::Status> statuses(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      statuses[rank] =
          RunRandomRounds(ranks[rank].get(), 2, /*count=*/60, /*window=*/20, kLongTimeout);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) GRADFLOW_EXPECT_OK(status);
}

TEST_P(GlooRanks, FaultyRoundsHaveTheRightErrors) {
  const int size = GetParam();
  const auto ranks = Connect(size);
  std::vector<absl::Status> statuses(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      statuses[rank] =
          RunFaultyRounds(ranks[rank].get(), 5, /*count=*/40, /*window=*/40, kLongTimeout);
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
    calls.push_back(StartCall(gloo[rank].get(), SumCall(input, kRanks, 7)));
    expected.push_back(StartCall(reference[rank].get(), SumCall(input, kRanks, 7)));
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
      CollectiveCall call = SumCall(AsTensor<int32_t>({i, rank, 1}), 2, i);
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
  StartedCall first = StartCall(ranks[0].get(), SumCall(Tensor(DT_FLOAT, {1 << 20}), 2, 7));
  StartedCall second = StartCall(ranks[1].get(), SumCall(Tensor(DT_FLOAT, {1 << 18}), 2, 7));
  for (StartedCall* call : {&first, &second}) {
    EXPECT_THAT(call->status.get(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("CollectiveReduceV2, group 1, instance 7: rank ")));
  }
  first = StartCall(ranks[0].get(), SumCall(AsTensor<float>({1}), 2, 8));
  second = StartCall(ranks[1].get(), SumCall(AsTensor<float>({2}), 2, 8));
  for (StartedCall* call : {&first, &second}) {
    GRADFLOW_EXPECT_OK(call->status.get());
    EXPECT_THAT(call->output, TensorEq(AsTensor<float>({3})));
  }
}

TEST(Gloo, MissingRankIsAnErrorAfterTheTimeout) {
  const auto ranks = Connect(3);
  constexpr milliseconds kTimeout(100);
  StartedCall first = StartCall(ranks[0].get(), SumCall(AsTensor<float>({1}), 3, 7, kTimeout));
  StartedCall second = StartCall(ranks[2].get(), SumCall(AsTensor<float>({1}), 3, 7, kTimeout));
  for (StartedCall* call : {&first, &second}) {
    EXPECT_THAT(call->status.get(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                             HasSubstr("rank 1 did not arrive within 100 ms")));
  }
}

TEST(Gloo, CancellingEndsTheCallOfEveryRank) {
  const auto ranks = Connect(2);
  StartedCall first = StartCall(ranks[1].get(), SumCall(AsTensor<float>({1}), 2, 7));
  ranks[1]->Cancel(first.id);
  EXPECT_THAT(first.status.get(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("the run of rank 1 was stopped")));
  StartedCall second = StartCall(ranks[0].get(), SumCall(AsTensor<float>({1}), 2, 7));
  EXPECT_THAT(second.status.get(), StatusIs(absl::StatusCode::kCancelled));
}

TEST(Gloo, LostRankIsAnErrorAndTheOthersGoOn) {
  auto ranks = Connect(3);
  // Makes the connections.
  std::vector<StartedCall> calls;
  for (const auto& rank : ranks) {
    calls.push_back(StartCall(rank.get(), SumCall(AsTensor<float>({1}), 3, 1)));
  }
  for (StartedCall& call : calls) GRADFLOW_EXPECT_OK(call.status.get());
  StartedCall waiting = StartCall(ranks[0].get(), SumCall(AsTensor<float>({1}), 3, 2));
  ranks[1] = nullptr;
  EXPECT_THAT(waiting.status.get(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("instance 2: rank 1 is lost: ")));
  StartedCall a = StartCall(ranks[0].get(), SumCall(AsTensor<float>({1}), 2, 3));
  StartedCall b = StartCall(ranks[2].get(), SumCall(AsTensor<float>({2}), 2, 3));
  GRADFLOW_EXPECT_OK(a.status.get());
  GRADFLOW_EXPECT_OK(b.status.get());
  EXPECT_THAT(b.output, TensorEq(AsTensor<float>({3})));
  // Without rank 0, no rank can go on.
  a = StartCall(ranks[2].get(), SumCall(AsTensor<float>({1}), 2, 4));
  ranks[0] = nullptr;
  EXPECT_THAT(a.status.get(), StatusIs(absl::StatusCode::kUnavailable));
  b = StartCall(ranks[2].get(), SumCall(AsTensor<float>({1}), 2, 5));
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
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("within 50 ms")));
  EXPECT_THAT(error([](LaunchOptions* o) {
                o->rank = 1;
                o->address = "file:/nonexistent/gradflow";
              }),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       "rank 0 has not written /nonexistent/gradflow, within 50 ms"));
}

TEST(Gloo, StrangersDoNotDisturbTheRanks) {
  LaunchOptions options;
  options.address = NewAddress();
  options.size = 2;
  options.timeout = kLongTimeout;
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

std::vector<std::unique_ptr<Process>> StartRanks(
    int size, milliseconds timeout, const std::vector<std::string>& mode,
    const char* program = GRADFLOW_PROGRAM_gradflow_distributed_rank) {
  const std::string address = NewAddress();
  std::vector<std::unique_ptr<Process>> ranks;
  for (int rank = 0; rank < size; ++rank) {
    std::vector<std::string> arguments = {program, address, absl::StrCat(rank), absl::StrCat(size),
                                          absl::StrCat(timeout.count())};
    arguments.insert(arguments.end(), mode.begin(), mode.end());
    ranks.push_back(std::make_unique<Process>(arguments));
  }
  return ranks;
}

// Starts processes that make random calls, and expects that they succeed.
void RunProcesses(int size, const std::string& mode, int count) {
  auto ranks = StartRanks(size, kLongTimeout, {mode, absl::StrCat(size), absl::StrCat(count)});
  for (auto& rank : ranks) {
    EXPECT_EQ(rank->Line(), "connected\n");
    EXPECT_EQ(rank->Line(), "");
    EXPECT_EQ(rank->Wait(), 0);
  }
}

// The number of rounds; a run on request has more.
int NumRounds(int standard) {
  const char* const rounds = std::getenv("GRADFLOW_TEST_ROUNDS");
  return rounds == nullptr ? standard : std::atoi(rounds);
}

TEST(GlooProcesses, RandomRoundsHaveTheResultsOfAReference) {
  for (const int size : {2, 3, 4, 8}) RunProcesses(size, "random", NumRounds(40));
}

TEST(GlooProcesses, FaultyRoundsHaveTheRightErrors) {
  for (const int size : {2, 4}) RunProcesses(size, "faults", NumRounds(40));
}

// The number of faults of each kind, and the time for a report beyond the timeout. The tests are
// often run on machines that are busy, so the time is checked strictly only on request.
int NumFaults(int standard) {
  const char* const faults = std::getenv("GRADFLOW_TEST_FAULTS");
  return faults == nullptr ? standard : std::atoi(faults);
}
milliseconds AllowedDelay() {
  return std::getenv("GRADFLOW_TEST_FAULTS") == nullptr ? std::chrono::seconds(30)
                                                        : std::chrono::seconds(1);
}

// Reads a rank's output until the error that ends it.
void ExpectError(Process* rank, milliseconds timeout,
                 const std::string& call = "CollectiveReduceV2, group 1, instance 7: ") {
  std::string line = rank->Line();
  while (absl::StartsWith(line, "step")) line = rank->Line();
  const std::vector<std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 2));
  ASSERT_EQ(words.size(), 3) << "the rank ended: '" << line << "' " << rank->Wait();
  EXPECT_EQ(words[0], "error");
  int64_t taken = 0;
  EXPECT_TRUE(absl::SimpleAtoi(words[1], &taken));
  EXPECT_LE(milliseconds(taken), timeout + AllowedDelay()) << line;
  EXPECT_THAT(words[2], AllOf(AnyOf(HasSubstr("UNAVAILABLE: "), HasSubstr("DEADLINE_EXCEEDED: ")),
                              HasSubstr(call)));
  EXPECT_EQ(rank->Wait(), 1);
}

// Sends `signal` to a rank after a random number of exchanges of `bytes` bytes. The other ranks
// must report it.
void DisturbRanks(int signal, milliseconds timeout, int bytes, int faults) {
  constexpr int kRanks = 3;
  std::mt19937 random(static_cast<uint32_t>(bytes + faults));
  for (int fault = 0; fault < faults; ++fault) {
    const int victim = fault % kRanks;
    auto ranks = StartRanks(kRanks, timeout, {"loop", absl::StrCat(bytes)});
    Process& disturbed = *ranks[static_cast<size_t>(victim)];
    // 0 disturbs the first exchange, or the ranks that connect for it.
    const auto steps = static_cast<int>(random() % 20);
    for (const auto& rank : ranks) ASSERT_EQ(rank->Line(), "connected\n");
    for (int step = 0; step < steps; ++step) {
      ASSERT_THAT(disturbed.Line(), ::testing::StartsWith("step"));
    }
    disturbed.Signal(signal);
    for (int rank = 0; rank < kRanks; ++rank) {
      if (rank != victim) ExpectError(ranks[static_cast<size_t>(rank)].get(), timeout);
    }
  }
}

TEST(GlooProcesses, KilledRankIsAnErrorOnEveryOtherRank) {
  DisturbRanks(SIGKILL, std::chrono::minutes(1), /*bytes=*/1 << 20, NumFaults(6));
}

TEST(GlooProcesses, StoppedRankIsAnErrorOnEveryOtherRank) {
  DisturbRanks(SIGSTOP, std::chrono::seconds(2), /*bytes=*/1 << 20, NumFaults(2));
}

// ---- Training ----

// Trains to the end on `size` ranks, and returns the digest of the variables.
std::string DigestOfTraining(int size, const std::string& prefix, int steps) {
  auto ranks = StartRanks(size, kLongTimeout, {prefix, absl::StrCat(steps)},
                          GRADFLOW_PROGRAM_gradflow_distributed_train);
  std::string digest;
  for (auto& rank : ranks) {
    std::string line = rank->Line();
    while (absl::StartsWith(line, "step") || line == "connected\n") line = rank->Line();
    EXPECT_THAT(line, ::testing::StartsWith("digest "));
    EXPECT_TRUE(digest.empty() || line == digest) << line << digest;
    digest = line;
    EXPECT_EQ(rank->Wait(), 0);
  }
  return digest;
}

std::string NewPrefix(const std::string& name) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / absl::StrCat("gradflow_train_", name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return (folder / "ckpt").string();
}

// A rank is killed or stopped at a random moment. The others report it. Another number of ranks
// continues from the last checkpoint, and ends with the bits of an undisturbed run.
TEST(GlooTraining, ContinuesWithTheSameBitsAfterAFault) {
  constexpr int kSteps = 20;
  constexpr milliseconds kTimeout = std::chrono::seconds(3);
  const std::string expected = DigestOfTraining(1, NewPrefix("undisturbed"), kSteps);
  std::mt19937 random(7);
  for (int fault = 0; fault < NumFaults(2); ++fault) {
    const auto size = static_cast<int>(2 + random() % 3);
    const auto victim = static_cast<int>(random() % static_cast<uint32_t>(size));
    const int signal = fault % 2 == 0 ? SIGKILL : SIGSTOP;
    const std::string prefix = NewPrefix("disturbed");
    auto ranks = StartRanks(size, kTimeout, {prefix, absl::StrCat(kSteps)},
                            GRADFLOW_PROGRAM_gradflow_distributed_train);
    for (const auto& rank : ranks) ASSERT_EQ(rank->Line(), "connected\n");
    const auto steps = static_cast<int>(random() % (kSteps - 2));
    for (int step = 0; step < steps; ++step) {
      ASSERT_THAT(ranks[victim]->Line(), ::testing::StartsWith("step"));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    ranks[victim]->Signal(signal);
    for (int rank = 0; rank < size; ++rank) {
      if (rank != victim) ExpectError(ranks[rank].get(), kTimeout, "group 1");
    }
    ranks.clear();
    const auto other = static_cast<int>(1 + random() % 4);
    EXPECT_EQ(DigestOfTraining(other, prefix, kSteps), expected)
        << "fault " << fault << ", rank " << victim << " of " << size << ", then " << other;
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
