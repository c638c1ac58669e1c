// Tests of asynchronous kernels, and of kernels that call functions.
#include <tbb/global_control.h>

#include <algorithm>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/proto/step_stats.pb.h"
#include "gradflow/runtime/executor/executor.h"
#include "gradflow/runtime/memory/pool_allocator.h"
#include "gradflow/runtime/trace/trace_recorder.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/runtime/toy_ops.h"

namespace gradflow {
namespace {

using ::absl::StatusCode;
using ::gradflow::testing::AddToy;
using ::gradflow::testing::Int;
using ::gradflow::testing::IsOk;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::ToyAttrs;
using ::gradflow::testing::ToyCounter;
using ::gradflow::testing::ToyHeld;
using ::gradflow::testing::ToyHooks;
using ::gradflow::testing::ToyRegistry;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Held = std::vector<std::function<bool()>>;

// Long enough for the first nodes to start on a busy machine.
constexpr std::chrono::milliseconds kTimeout(100);

// Runs graphs of toy ops whose nodes may call functions. The parameter is the number of threads.
class AsyncTest : public ::testing::TestWithParam<int> {
 protected:
  AsyncTest() : control_(tbb::global_control::max_allowed_parallelism, 8) {
    Add("x", "Placeholder", {}, {{"dtype", DT_INT64}});
    ToyHeld::Get().TakeAll();
  }

  void Add(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
           const ToyAttrs& attrs = {}) {
    GRADFLOW_ASSERT_OK(AddToy(&graph_, name, op, inputs, attrs));
  }
  std::shared_ptr<const Plan> MakePlan(const PlanNames& names) {
    auto plan = Plan::Make(graph_, names, &kernels_);
    EXPECT_THAT(plan, IsOk());
    return plan.ok() ? *plan : nullptr;
  }
  // Adds a function that maps x to `fetch`.
  void AddFunction(const std::string& name, const std::string& fetch) {
    functions_->Add(name, MakePlan({{"x"}, {fetch}, {}}));
  }
  absl::Status Run(const std::vector<std::string>& fetches, const RunLimits& limits = {},
                   TraceRecorder* trace = nullptr) {
    return Run(MakePlan({{"x"}, fetches, {}}), limits, trace);
  }
  absl::Status Run(const std::shared_ptr<const Plan>& plan, const RunLimits& limits = {},
                   TraceRecorder* trace = nullptr) {
    const Tensor x = Int(x_);
    return executor_->Run(plan, {&x}, limits, &outputs_, trace, functions_);
  }
  int64_t Fetched(int i = 0) const { return outputs_[i].scalar<int64_t>()(); }

  tbb::global_control control_;
  Graph graph_{ToyRegistry()};
  KernelCache kernels_;
  std::shared_ptr<PoolAllocator> pool_ = std::make_shared<PoolAllocator>();
  std::unique_ptr<Executor> executor_ = std::make_unique<Executor>(GetParam(), pool_);
  std::shared_ptr<FunctionTable> functions_ = std::make_shared<FunctionTable>();
  int64_t x_ = 5;
  std::vector<Tensor> outputs_;
};

INSTANTIATE_TEST_SUITE_P(Threads, AsyncTest, ::testing::Values(1, 2, 8));

// ---- Asynchronous kernels ----

TEST_P(AsyncTest, HoldsNoThreadWhileTenThousandNodesAreUnderWay) {
  constexpr int kNodes = 10000;
  std::vector<std::string> names;
  for (int i = 0; i < kNodes; ++i) {
    names.push_back(absl::StrCat("held", i));
    Add(names.back(), "Hold", {"x"});
  }
  Add("sum", "AddN", names, {{"N", kNodes}});
  std::thread other([] {
    EXPECT_TRUE(ToyHeld::Get().WaitFor(kNodes));
    Held held = ToyHeld::Get().TakeAll();
    std::shuffle(held.begin(), held.end(), std::mt19937(7));
    for (const auto& end : held) EXPECT_TRUE(end());
  });
  GRADFLOW_EXPECT_OK(Run({"sum"}));
  other.join();
  EXPECT_EQ(Fetched(), 50000);
}

TEST_P(AsyncTest, RunsOtherNodesMeanwhile) {
  ToyCounter(0) = 0;
  Add("awaited", "Await", {}, {{"counter", 0}});
  Add("neg", "Neg", {"x"}, {{"T", DT_INT64}});
  Add("effect", "Increment", {"neg"}, {{"counter", 0}});
  Add("both", "Add", {"awaited", "effect"}, {{"T", DT_INT64}});
  GRADFLOW_ASSERT_OK(Run({"both"}));
  EXPECT_EQ(Fetched(), -4);
}

TEST_P(AsyncTest, EndsANodeOnce) {
  Add("held", "Hold", {"x"});
  std::vector<bool> ended;
  std::thread other([&] {
    EXPECT_TRUE(ToyHeld::Get().WaitFor(1));
    const Held held = ToyHeld::Get().TakeAll();
    const auto again = held[0];
    ended = {again(), held[0](), again()};
  });
  GRADFLOW_EXPECT_OK(Run({"held"}));
  other.join();
  EXPECT_EQ(ended, (std::vector<bool>{true, false, false}));
}

TEST_P(AsyncTest, FailsWhenTheKernelDropsItsCallback) {
  Add("held", "Hold", {"x"});
  std::thread other([] {
    EXPECT_TRUE(ToyHeld::Get().WaitFor(1));
    ToyHeld::Get().TakeAll();
  });
  EXPECT_THAT(Run({"held"}),
              StatusIs(StatusCode::kInternal,
                       "node 'held' (Hold): the kernel dropped its callback without a call"));
  other.join();
}

// The kernel may use its own tensors after the run has ended, even if the executor is gone.
TEST_P(AsyncTest, ANodeMayEndLongAfterTheDeadlineOfItsRun) {
  Add("neg", "Neg", {"x"}, {{"T", DT_INT64}});
  Add("held", "Hold", {"neg"});
  Add("after", "Neg", {"held"}, {{"T", DT_INT64}});
  RunLimits limits;
  limits.SetTimeout(kTimeout);
  EXPECT_THAT(Run({"after"}, limits),
              StatusIs(StatusCode::kDeadlineExceeded,
                       "node 'held' (Hold): stopped, since the run's timeout of 100 ms is over"));
  ASSERT_EQ(ToyHeld::Get().size(), 1);
  EXPECT_GT(pool_->GetStats().bytes_in_use, 0);
  // The next run is not affected.
  limits = RunLimits();
  std::thread other([] {
    EXPECT_TRUE(ToyHeld::Get().WaitFor(2));
    EXPECT_TRUE(ToyHeld::Get().TakeAll()[1]());
  });
  GRADFLOW_EXPECT_OK(Run({"after"}, limits));
  other.join();
  EXPECT_EQ(Fetched(), 5);
}

// A run may reuse the memory of an earlier run that left other nodes in flight.
TEST_P(AsyncTest, NamesANodeThatIsInFlight) {
  Add("taken", "Placeholder", {}, {{"dtype", DT_BOOL}});
  Add("branch", "Branch", {"x", "taken"});
  Add("held", "Hold", {"branch:1"});
  Add("last", "Hold", {"x"});
  const auto plan = MakePlan({{"x", "taken"}, {}, {"held", "last"}});
  for (const bool taken : {true, false}) {
    const Tensor x = Int(x_);
    const Tensor fed(taken);
    // A slow machine may need more time to start the nodes.
    absl::Status status;
    int timeout = 25;
    do {
      timeout *= 4;
      RunLimits limits;
      limits.SetTimeout(std::chrono::milliseconds(timeout));
      ToyHeld::Get().TakeAll();
      status = executor_->Run(plan, {&x, &fed}, limits, &outputs_);
    } while (timeout < 10000 && absl::StrContains(status.message(), "not started"));
    EXPECT_THAT(status, StatusIs(StatusCode::kDeadlineExceeded,
                                 absl::StrCat("node '", taken ? "held" : "last",
                                              "' (Hold): stopped, since the run's timeout of ",
                                              timeout, " ms is over")));
    ToyHeld::Get().TakeAll();
  }
}

TEST_P(AsyncTest, ANodeMayEndAfterItsExecutor) {
  Add("neg", "Neg", {"x"}, {{"T", DT_INT64}});
  Add("held", "Hold", {"neg"});
  RunLimits limits;
  limits.SetTimeout(kTimeout);
  EXPECT_THAT(Run({"held"}, limits), StatusIs(StatusCode::kDeadlineExceeded));
  executor_ = nullptr;
  ASSERT_EQ(ToyHeld::Get().size(), 1);
  Held held = ToyHeld::Get().TakeAll();
  EXPECT_TRUE(held[0]());
  EXPECT_FALSE(held[0]());
  held.clear();
  EXPECT_EQ(pool_->GetStats().bytes_in_use, 0);
}

TEST_P(AsyncTest, IsCancelledWhileItWaits) {
  for (const bool stops : {false, true}) {
    const std::string name = absl::StrCat("held", stops);
    Add(name, "Hold", {"x"}, {{"stops", stops}});
    CancelFlag cancelled;
    RunLimits limits;
    limits.cancelled = &cancelled;
    std::thread other([&] {
      EXPECT_TRUE(ToyHeld::Get().WaitFor(1));
      cancelled.Raise();
    });
    EXPECT_THAT(Run({name}, limits),
                StatusIs(StatusCode::kCancelled, absl::StrCat("node '", name,
                                                              "' (Hold): stopped, since the run "
                                                              "was cancelled")));
    other.join();
    // A kernel that registered for the stop ends by itself.
    const Held held = ToyHeld::Get().TakeAll();
    ASSERT_EQ(held.size(), 1);
    EXPECT_EQ(held[0](), !stops);
  }
}

// The run holds the callback, and the callback holds the node's `done`, which would keep the run
// alive.
TEST_P(AsyncTest, DropsStopCallbacksOfARunThatIsNotStopped) {
  Add("held", "Hold", {"x"}, {{"stops", true}});
  std::thread other([] {
    EXPECT_TRUE(ToyHeld::Get().WaitFor(1));
    EXPECT_TRUE(ToyHeld::Get().TakeAll()[0]());
  });
  GRADFLOW_EXPECT_OK(Run({"held"}));
  other.join();
  outputs_.clear();
  const std::weak_ptr<PoolAllocator> pool = pool_;
  executor_ = nullptr;
  pool_ = nullptr;
  EXPECT_TRUE(pool.expired());
}

TEST_P(AsyncTest, DoesNotWaitForHeldNodesAfterAnError) {
  Add("held", "Hold", {"x"});
  Add("bad", "Fail", {"x"});
  EXPECT_THAT(Run({"held", "bad"}),
              StatusIs(StatusCode::kInvalidArgument, "node 'bad' (Fail): failed"));
}

// ---- Functions ----

TEST_P(AsyncTest, CallsFunctions) {
  Add("neg", "Neg", {"x"}, {{"T", DT_INT64}});
  AddFunction("negate", "neg");
  Add("called", "Call", {"x"}, {{"f", "negate"}});
  Add("twice", "Call", {"called"}, {{"f", "negate"}});
  Add("sum", "Add", {"called", "called"}, {{"T", DT_INT64}});
  GRADFLOW_ASSERT_OK(Run({"called", "twice", "sum"}));
  EXPECT_EQ(Fetched(0), -5);
  EXPECT_EQ(Fetched(1), 5);
  EXPECT_EQ(Fetched(2), -10);
}

// Calls are refused even if the kernel outlives the run.
TEST_P(AsyncTest, RefusesCallsAfterTheEndOfTheRun) {
  Add("neg", "Neg", {"x"}, {{"T", DT_INT64}});
  AddFunction("negate", "neg");
  Add("called", "Call", {"x"}, {{"f", "negate"}, {"held", true}});
  RunLimits limits;
  limits.SetTimeout(kTimeout);
  EXPECT_THAT(Run({"called"}, limits), StatusIs(StatusCode::kDeadlineExceeded));
  const Held held = ToyHeld::Get().TakeAll();
  ASSERT_EQ(held.size(), 1);
  EXPECT_TRUE(held[0]());
}

// Calls a function when it is destroyed, and keeps the status of the call.
class CallAtTheEnd {
 public:
  CallAtTheEnd(std::string function, KernelContext& ctx, AsyncDone done,
               std::vector<absl::Status>* statuses)
      : function_(std::move(function)), ctx_(ctx), done_(std::move(done)), statuses_(statuses) {}
  CallAtTheEnd(const CallAtTheEnd&) = delete;
  CallAtTheEnd& operator=(const CallAtTheEnd&) = delete;
  ~CallAtTheEnd() { Call(nullptr); }

  // Calls the function with a callback that owns `owned`.
  void Call(std::shared_ptr<CallAtTheEnd> owned) {
    FunctionRunner* const functions = ctx_.run().functions;
    const auto function = functions->Find(function_);
    ASSERT_THAT(function, IsOk());
    functions->RunAsync(*function, ctx_, {ctx_.input(0)},
                        [statuses = statuses_, owned = std::move(owned)](
                            absl::Status status, const std::vector<Tensor>&) {
                          statuses->push_back(std::move(status));
                        });
  }

 private:
  const std::string function_;
  KernelContext& ctx_;
  // Keeps the context alive.
  const AsyncDone done_;
  std::vector<absl::Status>* const statuses_;
};

// When a run ends, it closes its queue, then drops its stop callbacks, and then refuses calls.
// Dropping such a callback may call a function, and the callback of that call may own another call.
TEST_P(AsyncTest, RefusesCallsOfARunThatCloses) {
  Add("neg", "Neg", {"x"}, {{"T", DT_INT64}});
  AddFunction("negate", "neg");
  Add("hooked", "HookedAsync", {"x"});
  std::vector<absl::Status> statuses;
  CancelFlag cancelled;
  std::promise<void> started;
  std::promise<void> dropped;
  std::thread other;
  ToyHooks().compute_async = [&](KernelContext& ctx, const AsyncDone& done) {
    StopToken* const stop = ctx.run().stop;
    // While one thread runs the first callback, no other thread calls the second.
    stop->AddCallback([&] {
      started.set_value();
      dropped.get_future().wait();
    });
    auto inner = std::make_shared<CallAtTheEnd>("negate", ctx, done, &statuses);
    const auto outer =
        std::shared_ptr<CallAtTheEnd>(new CallAtTheEnd("negate", ctx, done, &statuses),
                                      [&, inner = std::move(inner)](CallAtTheEnd* call) mutable {
                                        call->Call(std::move(inner));
                                        delete call;
                                        dropped.set_value();
                                      });
    stop->AddCallback([outer] { ADD_FAILURE() << "the callback was called"; });
    other = std::thread([&cancelled, stop, done] {
      cancelled.Raise();
      stop->Stop();
    });
    started.get_future().wait();
  };
  RunLimits limits;
  limits.cancelled = &cancelled;
  EXPECT_THAT(Run({"hooked"}, limits), StatusIs(StatusCode::kCancelled));
  other.join();
  ToyHooks() = {};
  // The inner call comes last, when the callback of the outer call is destroyed.
  EXPECT_THAT(statuses, ElementsAre(StatusIs(StatusCode::kCancelled, "the run is over"),
                                    StatusIs(StatusCode::kCancelled, "the run is over"),
                                    StatusIs(StatusCode::kCancelled, "the run is over")));
}

// The callback of a refused call may call again, and may own an object that calls again.
TEST_P(AsyncTest, RefusesCallsAtTheMemoryLimit) {
  pool_ = std::make_shared<PoolAllocator>(0, 1000);
  executor_ = std::make_unique<Executor>(GetParam(), pool_);
  Add("neg", "Neg", {"x"}, {{"T", DT_INT64}});
  AddFunction("negate", "neg");
  Add("hooked", "HookedAsync", {"x"});
  std::vector<absl::Status> statuses;
  ToyHooks().compute_async = [&](KernelContext& ctx, const AsyncDone& done) {
    {
      CallAtTheEnd call("negate", ctx, done, &statuses);
      call.Call(std::make_shared<CallAtTheEnd>("negate", ctx, done, &statuses));
    }
    done(absl::OkStatus());
  };
  GRADFLOW_EXPECT_OK(Run({"hooked"}));
  ToyHooks() = {};
  const auto refused = StatusIs(StatusCode::kResourceExhausted,
                                "the function calls in progress, 1, exceed the session's memory "
                                "limit");
  EXPECT_THAT(statuses, ElementsAre(refused, refused, refused));
  outputs_.clear();
  EXPECT_EQ(pool_->GetStats().bytes_in_use, 0);
}

// A kernel calls a function on another thread, and the callback drops the last reference to the
// run. Sanitizers see if the call uses the run afterwards.
TEST_P(AsyncTest, ARefusedCallMayDropItsRun) {
  pool_ = std::make_shared<PoolAllocator>(0, 1000);
  executor_ = std::make_unique<Executor>(GetParam(), pool_);
  Add("neg", "Neg", {"x"}, {{"T", DT_INT64}});
  AddFunction("negate", "neg");
  Add("hooked", "HookedAsync", {"x"});
  absl::Status refused;
  std::promise<void> run_has_ended;
  std::thread other;
  ToyHooks().compute_async = [&](KernelContext& ctx, const AsyncDone& done) {
    other = std::thread([&, last = std::make_unique<AsyncDone>(done)]() mutable {
      const auto function = ctx.run().functions->Find("negate");
      ASSERT_THAT(function, IsOk());
      ctx.set_output(0, ctx.input(0));
      ctx.run().functions->RunAsync(*function, ctx, {ctx.input(0)},
                                    [&](absl::Status status, const std::vector<Tensor>&) {
                                      refused = std::move(status);
                                      (*last)(absl::OkStatus());
                                      run_has_ended.get_future().wait();
                                      last = nullptr;
                                    });
    });
  };
  GRADFLOW_EXPECT_OK(Run({"hooked"}));
  ToyHooks() = {};
  executor_ = nullptr;
  run_has_ended.set_value();
  other.join();
  EXPECT_THAT(refused, StatusIs(StatusCode::kResourceExhausted));
  outputs_.clear();
  EXPECT_EQ(pool_->GetStats().bytes_in_use, 0);
}

TEST_P(AsyncTest, CallsThousandsDeep) {
  Add("deeper", "Recurse", {"x"}, {{"f", "down"}});
  Add("passed", "Later", {"deeper"});
  AddFunction("down", "passed");
  x_ = 5000;
  GRADFLOW_ASSERT_OK(Run({"deeper"}));
  EXPECT_EQ(Fetched(), 5000);
}

TEST_P(AsyncTest, ErrorsNameTheNodesThatCall) {
  Add("bad", "Fail", {"x"}, {{"message", "no luck"}});
  AddFunction("fails", "bad");
  Add("inner", "Call", {"x"}, {{"f", "fails"}});
  AddFunction("calls", "inner");
  Add("outer", "Call", {"x"}, {{"f", "calls"}});
  EXPECT_THAT(Run({"outer"}),
              StatusIs(StatusCode::kInvalidArgument,
                       "node 'outer' (Call): node 'inner' (Call): node 'bad' (Fail): no luck"));
  Add("unknown", "Call", {"x"}, {{"f", "no such"}});
  EXPECT_THAT(Run({"unknown"}), StatusIs(StatusCode::kNotFound,
                                         "node 'unknown' (Call): there is no function 'no such'"));
}

TEST_P(AsyncTest, ErrorsNameTheOutermostFourCalls) {
  Add("bad", "Fail", {"x"}, {{"message", "no luck"}});
  AddFunction("f0", "bad");
  for (int i = 1; i <= 6; ++i) {
    const std::string call = absl::StrCat("call", i);
    Add(call, "Call", {"x"}, {{"f", absl::StrCat("f", i - 1)}});
    AddFunction(absl::StrCat("f", i), call);
  }
  EXPECT_THAT(Run({"call4"}),
              StatusIs(StatusCode::kInvalidArgument,
                       "node 'call4' (Call): node 'call3' (Call): node 'call2' (Call): "
                       "node 'call1' (Call): node 'bad' (Fail): no luck"));
  EXPECT_THAT(Run({"call6"}),
              StatusIs(StatusCode::kInvalidArgument,
                       "node 'call6' (Call): node 'call5' (Call): node 'call4' (Call): "
                       "node 'call3' (Call): (2 more calls) node 'bad' (Fail): no luck"));
}

TEST_P(AsyncTest, ErrorsOfDeepCallsAreShort) {
  // A negative number never ends the recursion.
  Add("deeper", "Recurse", {"x"}, {{"f", "down"}});
  AddFunction("down", "deeper");
  x_ = -1;
  // A slow machine may need more time for the calls.
  absl::Status status;
  for (int timeout = 20; timeout < 20000 && !absl::StrContains(status.message(), " more calls) ");
       timeout *= 4) {
    RunLimits limits;
    limits.SetTimeout(std::chrono::milliseconds(timeout));
    status = Run({"deeper"}, limits);
  }
  EXPECT_THAT(status,
              StatusIs(StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("node 'deeper' (Recurse): node 'deeper' (Recurse): "),
                             HasSubstr(" more calls) node 'deeper' (Recurse): "))));
  EXPECT_LT(status.message().size(), 1000);
}

TEST_P(AsyncTest, LimitsHoldWithinFunctions) {
  Add("held", "Hold", {"x"});
  AddFunction("holds", "held");
  Add("called", "Call", {"x"}, {{"f", "holds"}});
  RunLimits limits;
  limits.SetTimeout(kTimeout);
  EXPECT_THAT(Run({"called"}, limits),
              StatusIs(StatusCode::kDeadlineExceeded,
                       "node 'called' (Call): node 'held' (Hold): stopped, since the run's timeout "
                       "of 100 ms is over"));
  for (const bool ask : {false, true}) {
    ToyCounter(0) = 0;
    const std::string loop = absl::StrCat("loop", ask);
    Add(loop, "LoopForever", {"x"}, {{"counter", 0}, {"ask", ask}});
    AddFunction(loop, loop);
    Add("calls_" + loop, "Call", {"x"}, {{"f", loop}});
    CancelFlag cancelled;
    limits = RunLimits();
    limits.cancelled = &cancelled;
    std::thread other([&] {
      while (ToyCounter(0) == 0) std::this_thread::yield();
      cancelled.Raise();
    });
    // The loop or the waiting run sees the cancellation first. The waiting run names the call,
    // since that is the asynchronous node in flight.
    EXPECT_THAT(Run({"calls_" + loop}, limits),
                StatusIs(StatusCode::kCancelled,
                         AllOf(StartsWith(absl::StrCat("node 'calls_", loop, "' (Call): ")),
                               HasSubstr("was cancelled"))));
    other.join();
  }
}

TEST_P(AsyncTest, TracesNodesOfFunctionsBehindTheirCallers) {
  Add("neg", "Neg", {"x"}, {{"T", DT_INT64}});
  AddFunction("negate", "neg");
  Add("called", "Call", {"x"}, {{"f", "negate"}});
  const auto plan = MakePlan({{"x"}, {"called"}, {}});
  TraceRecorder trace(*plan);
  GRADFLOW_ASSERT_OK(Run(plan, {}, &trace));
  StepStats stats;
  trace.WriteTo(&stats);
  std::vector<std::string> names;
  for (const auto& node : stats.dev_stats(0).node_stats()) names.push_back(node.node_name());
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("called", "called/neg"));
}

TEST_P(AsyncTest, FunctionsUseTheThreadsOfTheRun) {
  ToyCounter(0) = 0;
  std::vector<std::string> nodes;
  for (int i = 0; i < 30; ++i) {
    nodes.push_back(absl::StrCat("n", i));
    Add(nodes.back(), "MostAtOnce", {"x"}, {{"counter", 0}});
  }
  Add("most", "AddN", {"n0"}, {{"N", 1}});
  functions_->Add("busy", MakePlan({{"x"}, nodes, {}}));
  PlanNames names{{"x"}, {}, {}};
  for (int i = 0; i < 3; ++i) {
    names.fetches.push_back(absl::StrCat("call", i));
    Add(names.fetches.back(), "Call", {"x"}, {{"f", "busy"}});
  }
  const auto plan = MakePlan(names);
  GRADFLOW_ASSERT_OK(Run(plan));
  for (int i = 0; i < 3; ++i) EXPECT_LE(Fetched(i), GetParam());
}

// Each function calls the previous one twice, so the number of simultaneous calls grows
// exponentially. Their tensors are small.
TEST_P(AsyncTest, ChargesCallsOfFunctions) {
  pool_ = std::make_shared<PoolAllocator>(0, 1 << 20);
  executor_ = std::make_unique<Executor>(GetParam(), pool_);
  Add("held", "Hold", {"x"}, {{"stops", true}});
  AddFunction("f0", "held");
  for (int i = 1; i <= 12; ++i) {
    const std::string callee = absl::StrCat("f", i - 1);
    const std::string sum = absl::StrCat("sum", i);
    for (const char* side : {"left", "right"}) {
      Add(absl::StrCat(side, i), "Call", {"x"}, {{"f", callee}});
    }
    Add(sum, "Add", {absl::StrCat("left", i), absl::StrCat("right", i)}, {{"T", DT_INT64}});
    AddFunction(absl::StrCat("f", i), sum);
  }
  Add("called", "Call", {"x"}, {{"f", "f12"}});
  RunLimits limits;
  limits.SetTimeout(std::chrono::seconds(20));
  EXPECT_THAT(Run({"called"}, limits),
              StatusIs(StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("the function calls in progress, "),
                             HasSubstr(", exceed the session's memory limit"))));
  ToyHeld::Get().TakeAll();
  // The memory of the calls has been returned.
  EXPECT_LT(pool_->GetStats().bytes_in_use, 1000);
  Add("again", "Neg", {"x"}, {{"T", DT_INT64}});
  GRADFLOW_EXPECT_OK(Run({"again"}));
}

// ---- Branches that are not taken ----

TEST_P(AsyncTest, SkipsNodesOfABranchThatIsNotTaken) {
  ToyCounter(0) = 0;
  Add("flag", "Placeholder", {}, {{"dtype", DT_BOOL}});
  Add("branch", "Branch", {"x", "flag"});
  Add("no", "Tick", {"branch:0"}, {{"counter", 0}});
  Add("no_more", "Add", {"no", "x"}, {{"T", DT_INT64}});
  Add("yes", "Neg", {"branch:1"}, {{"T", DT_INT64}});
  const auto plan = MakePlan({{"x", "flag"}, {"yes"}, {"no_more"}});
  const Tensor x = Int(5);
  const Tensor flag(true);
  GRADFLOW_ASSERT_OK(executor_->Run(plan, {&x, &flag}, {}, &outputs_));
  EXPECT_EQ(Fetched(), -5);
  EXPECT_EQ(ToyCounter(0), 0);
  EXPECT_THAT(
      executor_->Run(MakePlan({{"x", "flag"}, {"no_more"}, {}}), {&x, &flag}, {}, &outputs_),
      StatusIs(StatusCode::kInvalidArgument,
               "fetch 0 has no value: it is in a branch that was not taken"));
}

// Another reader may then compute in place.
TEST_P(AsyncTest, NodesThatAreSkippedReleaseTheirInputs) {
  Add("flag", "Placeholder", {}, {{"dtype", DT_BOOL}});
  Add("branch", "Branch", {"x", "flag"});
  Add("value", "Neg", {"x"}, {{"T", DT_INT64}});
  Add("skipped", "Add", {"branch:0", "value"}, {{"T", DT_INT64}});
  Add("last", "Hooked", {"value", "^skipped"});
  bool in_place = false;
  ToyHooks().compute = [&](KernelContext& ctx) {
    const void* const before = ctx.input(0).raw_data();
    Tensor* out = nullptr;
    GRADFLOW_EXPECT_OK(ctx.ForwardInputOrAllocateOutput(0, 0, TensorShape(), &out));
    in_place = out->raw_data() == before;
  };
  const Tensor x = Int(5);
  const Tensor flag(true);
  GRADFLOW_EXPECT_OK(
      executor_->Run(MakePlan({{"x", "flag"}, {"last"}, {}}), {&x, &flag}, {}, &outputs_));
  ToyHooks() = {};
  EXPECT_TRUE(in_place);
}

}  // namespace
}  // namespace gradflow
