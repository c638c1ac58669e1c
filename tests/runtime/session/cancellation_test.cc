// Tests of runs that are stopped by a token, a deadline, a closed session, or an error of another
// node.
#include "gradflow/runtime/session/cancellation.h"

#include <tbb/global_control.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gradflow/core/parallel.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/runtime/toy_ops.h"

namespace gradflow {
namespace {

using ::absl::StatusCode;
using ::gradflow::testing::Int;
using ::gradflow::testing::IsOk;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::ToyCounter;
using ::gradflow::testing::ToyHooks;
using ::gradflow::testing::ToyNode;
using ::gradflow::testing::ToyRegistry;
using ::testing::HasSubstr;

// Indices of the counters of "loop" and "after".
constexpr int kLoops = 0;
constexpr int kAfter = 1;

struct Param {
  int threads;
  // True if the kernel calls ShouldStop() itself, false if only its parallel loop does.
  bool ask;
};

std::ostream& operator<<(std::ostream& out, const Param& param) {
  return out << param.threads << (param.ask ? "Ask" : "Loop");
}

// x -> loop (runs until the run is stopped) -> after; x -> good.
class CancellationTest : public ::testing::TestWithParam<Param> {
 protected:
  CancellationTest() : control_(tbb::global_control::max_allowed_parallelism, 8) {}

  void SetUp() override {
    ToyCounter(kLoops) = 0;
    ToyCounter(kAfter) = 0;
    SessionOptions options;
    options.config.set_inter_op_parallelism_threads(GetParam().threads);
    options.config.set_intra_op_parallelism_threads(GetParam().threads);
    absl::StatusOr<std::unique_ptr<Session>> session = Session::Make(options, ToyRegistry());
    ASSERT_THAT(session, IsOk());
    session_ = *std::move(session);
    GraphDef graph;
    *graph.add_node() = ToyNode("x", "Placeholder", {}, {{"dtype", DT_INT64}});
    *graph.add_node() =
        ToyNode("loop", "LoopForever", {"x"}, {{"counter", kLoops}, {"ask", GetParam().ask}});
    *graph.add_node() = ToyNode("after", "Tick", {"loop"}, {{"counter", kAfter}});
    *graph.add_node() = ToyNode("good", "Neg", {"x"}, {{"T", DT_INT64}});
    GRADFLOW_ASSERT_OK(session_->Create(graph));
  }

  absl::Status Run(const std::vector<std::string>& fetches, const RunOptions& options = {}) {
    outputs_.clear();
    return session_->Run(options, {{"x", Int(3)}}, fetches, {}, &outputs_, nullptr);
  }
  absl::Status Run(const std::vector<std::string>& fetches, const CancellationToken& token) {
    outputs_.clear();
    return session_->Run({}, {{"x", Int(3)}}, fetches, {}, &outputs_, nullptr, token);
  }
  // Expects that a stopped run leaves nothing behind and that the next run is not affected.
  void ExpectCleanSession() {
    EXPECT_EQ(session_->MemoryStats().bytes_in_use, 0);
    EXPECT_EQ(ToyCounter(kAfter), 0);
    GRADFLOW_ASSERT_OK(Run({"good"}));
    EXPECT_EQ(outputs_[0].scalar<int64_t>()(), -3);
  }
  static void WaitForLoops(int number) {
    while (ToyCounter(kLoops) < number) std::this_thread::yield();
  }
  // Runs "after", and cancels the run when "loop" has started. Puts the plan into the cache.
  void RunUntilItLoops() {
    const int loops = ToyCounter(kLoops);
    const CancellationToken token;
    std::thread canceller([&] {
      WaitForLoops(loops + 1);
      token.Cancel();
    });
    EXPECT_THAT(Run({"after"}, token), StatusIs(StatusCode::kCancelled));
    canceller.join();
    ToyCounter(kLoops) = 0;
  }

  const tbb::global_control control_;
  std::unique_ptr<Session> session_;
  std::vector<Tensor> outputs_;
};

INSTANTIATE_TEST_SUITE_P(Threads, CancellationTest,
                         ::testing::Values(Param{1, false}, Param{1, true}, Param{2, false},
                                           Param{3, true}, Param{8, false}),
                         ::testing::PrintToStringParamName());

TEST_P(CancellationTest, StopsAThousandRunsByToken) {
  constexpr int kRuns = 1000;
  std::vector<CancellationToken> tokens(kRuns);
  std::thread canceller([&] {
    for (int i = 0; i < kRuns; ++i) {
      WaitForLoops(i + 1);
      tokens[i].Cancel();
    }
  });
  for (const CancellationToken& token : tokens) {
    EXPECT_THAT(Run({"after"}, token),
                StatusIs(StatusCode::kCancelled,
                         "node 'loop' (LoopForever): stopped, since the run was cancelled"));
    EXPECT_TRUE(token.IsCancelled());
  }
  canceller.join();
  EXPECT_EQ(ToyCounter(kLoops), kRuns);
  ExpectCleanSession();
}

TEST_P(CancellationTest, StartsNothingWithATokenThatIsCancelled) {
  const CancellationToken token;
  token.Cancel();
  // No plan is made either.
  EXPECT_THAT(Run({"after"}, token), StatusIs(StatusCode::kCancelled, "the run was cancelled"));
  RunUntilItLoops();
  EXPECT_THAT(Run({"after"}, token),
              StatusIs(StatusCode::kCancelled,
                       "node 'loop' (LoopForever): not started, since the run was cancelled"));
  EXPECT_EQ(ToyCounter(kLoops), 0);
  ExpectCleanSession();
}

TEST_P(CancellationTest, StopsInsideAKernelAtADeadline) {
  RunUntilItLoops();
  RunOptions options;
  options.set_timeout_in_ms(2);
  for (int i = 1; i <= 3; ++i) {
    EXPECT_THAT(
        Run({"after"}, options),
        StatusIs(StatusCode::kDeadlineExceeded,
                 "node 'loop' (LoopForever): stopped, since the run's timeout of 2 ms is over"));
    EXPECT_EQ(ToyCounter(kLoops), i);
  }
  ExpectCleanSession();
}

TEST_P(CancellationTest, StopsSiblingsOfANodeThatFails) {
  // On one thread, nodes do not run concurrently.
  if (GetParam().threads == 1) return;
  GraphDef graph;
  *graph.add_node() =
      ToyNode("started", "WaitForCounter", {"x"}, {{"counter", kLoops}, {"value", 1}});
  *graph.add_node() = ToyNode("fail", "Fail", {"started"});
  GRADFLOW_ASSERT_OK(session_->Extend(graph));
  EXPECT_THAT(Run({"after", "fail"}),
              StatusIs(StatusCode::kInvalidArgument, "node 'fail' (Fail): failed"));
  ExpectCleanSession();
}

TEST_P(CancellationTest, StopsOnlyTheRunsOfTheToken) {
  const CancellationToken first;
  const CancellationToken second;
  std::atomic<int> done = 0;
  const auto run = [&](const CancellationToken& token) {
    std::vector<Tensor> outputs;
    const absl::Status status =
        session_->Run({}, {{"x", Int(3)}}, {"after"}, {}, &outputs, nullptr, token);
    EXPECT_THAT(status, StatusIs(StatusCode::kCancelled));
    ++done;
  };
  std::thread a([&] { run(first); });
  std::thread b([&] { run(second); });
  WaitForLoops(2);
  first.Cancel();
  a.join();
  EXPECT_EQ(done, 1);
  second.Cancel();
  b.join();
  ExpectCleanSession();
}

TEST_P(CancellationTest, StopsAllRunsWhenTheSessionIsClosed) {
  constexpr int kRuns = 4;
  std::vector<std::thread> callers;
  for (int i = 0; i < kRuns; ++i) {
    callers.emplace_back([&] {
      std::vector<Tensor> outputs;
      EXPECT_THAT(session_->Run({{"x", Int(3)}}, {"after"}, {}, &outputs),
                  StatusIs(StatusCode::kCancelled,
                           "node 'loop' (LoopForever): stopped, since the session was closed"));
    });
  }
  WaitForLoops(kRuns);
  GRADFLOW_EXPECT_OK(session_->Close());
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(session_->MemoryStats().bytes_in_use, 0);
  EXPECT_EQ(ToyCounter(kAfter), 0);
}

// ---- While the plan is made ----

// Graph: two -> minus_two -> folded; x, folded -> sum; x -> made -> last. "folded" and "made" have
// hooks.
class PlanningTest : public ::testing::Test {
 protected:
  PlanningTest() {
    session_ = *Session::Make(SessionOptions(), ToyRegistry());
    GraphDef graph;
    *graph.add_node() = ToyNode("x", "Placeholder", {}, {{"dtype", DT_INT64}});
    *graph.add_node() = ToyNode("two", "Const", {}, {{"value", Int(2)}, {"dtype", DT_INT64}});
    *graph.add_node() = ToyNode("minus_two", "Neg", {"two"}, {{"T", DT_INT64}});
    *graph.add_node() = ToyNode("folded", "Hooked", {"minus_two"});
    *graph.add_node() = ToyNode("sum", "Add", {"x", "folded"}, {{"T", DT_INT64}});
    *graph.add_node() = ToyNode("made", "Hooked", {"x"});
    *graph.add_node() = ToyNode("last", "Neg", {"made"}, {{"T", DT_INT64}});
    GRADFLOW_EXPECT_OK(session_->Create(graph));
  }
  ~PlanningTest() override { ToyHooks() = {}; }

  absl::Status Run(const std::string& fetch) {
    outputs_.clear();
    return session_->Run({{"x", Int(10)}}, {fetch}, {}, &outputs_);
  }
  // A run with options, which token_ can cancel.
  absl::Status Run(const std::string& fetch, const RunOptions& options) {
    outputs_.clear();
    return session_->Run(options, {{"x", Int(10)}}, {fetch}, {}, &outputs_, nullptr, token_);
  }
  int64_t Fetched() const { return outputs_.at(0).scalar<int64_t>()(); }

  // Expects that "folded" is computed once for all later plans, as if nothing had been stopped.
  void ExpectFoldsOnce() {
    int runs = 0;
    ToyHooks().compute = [&](KernelContext&) { ++runs; };
    for (int i = 0; i < 2; ++i) {
      GRADFLOW_ASSERT_OK(Run("sum"));
      EXPECT_EQ(Fetched(), 8);
      GRADFLOW_ASSERT_OK(Run("folded"));
      EXPECT_EQ(Fetched(), -2);
    }
    EXPECT_EQ(runs, 1);
  }

  const CancellationToken token_;
  RunOptions options_;
  std::unique_ptr<Session> session_;
  std::vector<Tensor> outputs_;
};

TEST_F(PlanningTest, StopsFoldingByToken) {
  ToyHooks().compute = [&](KernelContext& ctx) {
    token_.Cancel();
    while (!ctx.ShouldStop()) std::this_thread::yield();
  };
  EXPECT_THAT(Run("sum", options_),
              StatusIs(StatusCode::kCancelled,
                       "node 'folded' (Hooked): stopped, since the run was cancelled"));
  ExpectFoldsOnce();
}

// A folding that ends with its run could be retried forever.
TEST_F(PlanningTest, FinishesFoldingAfterItsRunEnds) {
  const auto take_2_ms = [] {
    const auto end = StopToken::Clock::now() + std::chrono::milliseconds(2);
    while (StopToken::Clock::now() < end) std::this_thread::yield();
  };
  int made = 0;
  int computed = 0;
  ToyHooks().make = [&] {
    ++made;
    take_2_ms();
  };
  ToyHooks().compute = [&](KernelContext& ctx) {
    ++computed;
    take_2_ms();
    EXPECT_FALSE(ctx.ShouldStop());
  };
  options_.set_timeout_in_ms(1);
  // On a busy machine, a run may end before it has made the kernel.
  for (int runs = 0; made == 0 && runs < 1000; ++runs) {
    EXPECT_THAT(Run("sum", options_), StatusIs(StatusCode::kDeadlineExceeded,
                                               HasSubstr("the run's timeout of 1 ms is over")));
  }
  EXPECT_EQ(made, 1);
  EXPECT_EQ(computed, 1);
  GRADFLOW_ASSERT_OK(Run("sum"));
  EXPECT_EQ(Fetched(), 8);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(computed, 1);
}

TEST_F(PlanningTest, StopsFoldingWhenTheSessionIsClosed) {
  ToyHooks().compute = [&](KernelContext& ctx) {
    GRADFLOW_EXPECT_OK(session_->Close());
    while (!ctx.ShouldStop()) std::this_thread::yield();
  };
  EXPECT_THAT(Run("sum"), StatusIs(StatusCode::kCancelled, HasSubstr("the session was closed")));
}

TEST_F(PlanningTest, StopsBetweenKernelsByToken) {
  ToyHooks().make = [&] { token_.Cancel(); };
  EXPECT_THAT(Run("last", options_),
              StatusIs(StatusCode::kCancelled,
                       "node 'last' (Neg): not planned, since the run was cancelled"));
  GRADFLOW_ASSERT_OK(Run("last"));
  EXPECT_EQ(Fetched(), -10);
}

// A run that waits for the plan of another run makes the plan itself if the other run is stopped.
TEST_F(PlanningTest, StopsNoOtherRunThatNeedsThePlan) {
  int runs = 0;
  std::thread other;
  ToyHooks().compute = [&](KernelContext& ctx) {
    if (++runs > 1) return;
    other = std::thread([&] {
      std::vector<Tensor> outputs;
      GRADFLOW_ASSERT_OK(session_->Run({{"x", Int(5)}}, {"sum"}, {}, &outputs));
      EXPECT_EQ(outputs[0].scalar<int64_t>()(), 3);
    });
    token_.Cancel();
    while (!ctx.ShouldStop()) std::this_thread::yield();
  };
  EXPECT_THAT(Run("sum", options_), StatusIs(StatusCode::kCancelled));
  other.join();
  EXPECT_EQ(runs, 2);
}

}  // namespace
}  // namespace gradflow
