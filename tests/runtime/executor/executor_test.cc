#include "gradflow/runtime/executor/executor.h"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/tsan.h"
#include "gradflow/runtime/memory/pool_allocator.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/runtime/toy_ops.h"

namespace gradflow {
namespace {

using ::gradflow::testing::AddToy;
using ::gradflow::testing::Floats;
using ::gradflow::testing::Int;
using ::gradflow::testing::IsOk;
using ::gradflow::testing::NumThreadsOfThisProcess;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::ToyAttrs;
using ::gradflow::testing::ToyCaller;
using ::gradflow::testing::ToyCounter;
using ::gradflow::testing::ToyMeetings;
using ::gradflow::testing::ToyRegistry;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Runs graphs of toy ops. The parameter is the number of threads.
class ExecutorTest : public ::testing::TestWithParam<int> {
 protected:
  // Allows more threads than processors, for contention.
  ExecutorTest() : control_(tbb::global_control::max_allowed_parallelism, 8) {}

  void Add(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
           const ToyAttrs& attrs = {}) {
    GRADFLOW_ASSERT_OK(AddToy(&graph_, name, op, inputs, attrs));
  }
  void AddPlaceholder(const std::string& name, DataType dtype = DT_INT64) {
    Add(name, "Placeholder", {}, {{"dtype", dtype}});
  }
  void AddInt(const std::string& op, const std::string& name,
              const std::vector<std::string>& inputs) {
    Add(name, op, inputs, {{"T", DT_INT64}});
  }

  std::shared_ptr<const Plan> MakePlan(const PlanNames& names) {
    absl::StatusOr<std::shared_ptr<const Plan>> plan = Plan::Make(graph_, names, &kernels_);
    EXPECT_THAT(plan, IsOk());
    return plan.ok() ? *std::move(plan) : nullptr;
  }
  absl::Status Run(const PlanNames& names, const std::vector<Tensor>& feeds,
                   std::vector<Tensor>* outputs, RunLimits limits = {}) {
    const std::shared_ptr<const Plan> plan = MakePlan(names);
    if (plan == nullptr) return absl::InternalError("no plan");
    return Run(plan, feeds, outputs, limits);
  }
  absl::Status Run(const std::shared_ptr<const Plan>& plan, const std::vector<Tensor>& feeds,
                   std::vector<Tensor>* outputs, RunLimits limits = {}) {
    std::vector<const Tensor*> pointers;
    for (const Tensor& feed : feeds) pointers.push_back(&feed);
    return executor_.Run(plan, pointers, limits, outputs);
  }
  // Runs and returns the single fetched scalar.
  int64_t RunInt(const PlanNames& names, const std::vector<Tensor>& feeds) {
    std::vector<Tensor> outputs;
    GRADFLOW_EXPECT_OK(Run(names, feeds, &outputs));
    return outputs.size() == 1 ? outputs[0].scalar<int64_t>()() : -1;
  }

  tbb::global_control control_;
  Graph graph_{ToyRegistry()};
  KernelCache kernels_;
  std::shared_ptr<PoolAllocator> pool_ = std::make_shared<PoolAllocator>();
  Executor executor_{GetParam(), pool_};
};

INSTANTIATE_TEST_SUITE_P(Threads, ExecutorTest, ::testing::Values(1, 2, 3, 8));

TEST_P(ExecutorTest, RunsDiamond) {
  AddPlaceholder("x");
  AddInt("Neg", "left", {"x"});
  AddInt("Add", "right", {"x", "x"});
  AddInt("Add", "join", {"left", "right"});
  EXPECT_EQ(RunInt({{"x"}, {"join"}, {}}, {Int(21)}), 21);
}

TEST_P(ExecutorTest, PassesOnEachOutput) {
  AddPlaceholder("a");
  AddPlaceholder("b");
  Add("mix", "Mix", {"a", "b"});
  AddInt("Add", "sum", {"mix:1", "mix"});
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(
      Run({{"a", "b"}, {"mix:1", "sum", "mix:0", "mix:1"}, {}}, {Int(5), Int(3)}, &outputs));
  ASSERT_THAT(outputs, SizeIs(4));
  EXPECT_EQ(outputs[0].scalar<int64_t>()(), 6);
  EXPECT_EQ(outputs[1].scalar<int64_t>()(), 18);
  EXPECT_EQ(outputs[2].scalar<int64_t>()(), 12);
  EXPECT_TRUE(outputs[3].SharesBufferWith(outputs[0]));
}

// A type attribute need not be the type of an input or output.
TEST_P(ExecutorTest, SelectsKernelsByTypesThatAreNotInputTypes) {
  AddPlaceholder("x");
  Add("same", "ByType", {"x"}, {{"S", DT_INT64}});
  Add("negative", "ByType", {"x"}, {{"S", DT_FLOAT}});
  EXPECT_EQ(RunInt({{"x"}, {"same"}, {}}, {Int(5)}), 5);
  EXPECT_EQ(RunInt({{"x"}, {"negative"}, {}}, {Int(5)}), -5);
}

TEST_P(ExecutorTest, RunsTargetsAndControlInputsOnceEach) {
  for (int i = 0; i < 5; ++i) ToyCounter(i) = 0;
  AddPlaceholder("x");
  for (int i = 0; i < 4; ++i) {
    Add(absl::StrCat("tick", i), "Tick", {"x"}, {{"counter", i}});
  }
  Add("group", "NoOp", {"^tick0", "^tick1"});
  Add("last", "Tick", {"x", "^group", "^tick2"}, {{"counter", 4}});
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(Run({{"x"}, {"last"}, {"group", "last", "last"}}, {Int(1)}, &outputs));
  EXPECT_EQ(ToyCounter(0), 1);
  EXPECT_EQ(ToyCounter(1), 1);
  EXPECT_EQ(ToyCounter(2), 1);
  EXPECT_EQ(ToyCounter(3), 0);
  EXPECT_EQ(ToyCounter(4), 1);
}

TEST_P(ExecutorTest, WaitsForControlInputs) {
  AddPlaceholder("x");
  Add("slow", "WaitFor", {"x"}, {{"ms", 2}});
  Add("tick", "Tick", {"slow"}, {{"counter", 0}});
  Add("fail", "Fail", {"x", "^tick"});
  ToyCounter(0) = 0;
  EXPECT_THAT(Run({{"x"}, {"fail"}, {}}, {Int(1)}, nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(ToyCounter(0), 1);
}

TEST_P(ExecutorTest, RunsWideFanOut) {
  constexpr int kWidth = 10000;
  AddPlaceholder("x");
  std::vector<std::string> names;
  for (int i = 0; i < kWidth; ++i) {
    names.push_back(absl::StrCat("n", i));
    AddInt(i % 3 == 0 ? "Identity" : "Neg", names.back(), {"x"});
  }
  Add("sum", "AddN", names, {{"N", kWidth}});
  EXPECT_EQ(RunInt({{"x"}, {"sum"}, {}}, {Int(1)}), (kWidth + 2) / 3 - kWidth * 2 / 3);
}

TEST_P(ExecutorTest, WritesInPlaceOnlyUnsharedTensors) {
  AddPlaceholder("x", DT_FLOAT);
  Add("first", "Reuse", {"x"});       // The caller has x.
  Add("second", "Reuse", {"first"});  // May write over first.
  Add("third", "Reuse", {"second"});  // second is also fetched.
  Add("twice", "Add", {"third", "third"}, {{"T", DT_FLOAT}});
  std::vector<Tensor> outputs;
  const Tensor x = Floats({1, 2, 3});
  GRADFLOW_ASSERT_OK(
      Run({{"x"}, {"first:1", "second:1", "third:1", "second", "twice"}, {}}, {x}, &outputs));
  EXPECT_FALSE(outputs[0].scalar<bool>()());
  EXPECT_TRUE(outputs[1].scalar<bool>()());
  EXPECT_FALSE(outputs[2].scalar<bool>()());
  EXPECT_EQ(outputs[4].flat<float>()(2), 6);
  EXPECT_FALSE(outputs[3].SharesBufferWith(x));
  EXPECT_EQ(x.flat<float>()(2), 3);
}

TEST_P(ExecutorTest, DropsTensorsAtTheirLastUse) {
  constexpr int64_t kElements = 1 << 18;
  AddPlaceholder("x", DT_FLOAT);
  std::string last = "x";
  for (int i = 0; i < 50; ++i) {
    const std::string name = absl::StrCat("n", i);
    Add(name, "Neg", {last}, {{"T", DT_FLOAT}});
    last = name;
  }
  Tensor x(DT_FLOAT, TensorShape({kElements}));
  x.flat<float>().setConstant(2);
  const std::shared_ptr<const Plan> plan = MakePlan({{"x"}, {last}, {}});
  {
    std::vector<Tensor> outputs;
    GRADFLOW_ASSERT_OK(Run(plan, {x}, &outputs));
    EXPECT_EQ(outputs[0].flat<float>()(kElements - 1), 2);
    // All nodes share one buffer.
    EXPECT_LT(pool_->GetStats().peak_bytes_in_use, 2 * kElements * int64_t{sizeof(float)});
  }
  EXPECT_EQ(pool_->GetStats().bytes_in_use, 0);
  const int64_t allocations = pool_->GetStats().system_allocations;
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(Run(plan, {x}, &outputs));
  EXPECT_EQ(pool_->GetStats().system_allocations, allocations);
}

TEST_P(ExecutorTest, ReturnsAFedTensorThatIsFetched) {
  AddPlaceholder("x");
  AddInt("Neg", "y", {"x"});
  std::vector<Tensor> outputs;
  const Tensor fed = Int(4);
  GRADFLOW_ASSERT_OK(Run({{"y"}, {"y", "y:0"}, {}}, {fed}, &outputs));
  ASSERT_THAT(outputs, SizeIs(2));
  EXPECT_TRUE(outputs[0].SharesBufferWith(fed));
  EXPECT_TRUE(outputs[1].SharesBufferWith(fed));
}

TEST_P(ExecutorTest, DoesNothingForAnEmptyPlan) {
  AddPlaceholder("x");
  std::vector<Tensor> outputs = {Int(1)};
  GRADFLOW_ASSERT_OK(Run({{"x"}, {}, {}}, {Int(1)}, &outputs));
  EXPECT_THAT(outputs, IsEmpty());
  GRADFLOW_EXPECT_OK(Run(PlanNames(), {}, nullptr));
}

TEST_P(ExecutorTest, NamesTheNodeThatFails) {
  AddPlaceholder("x");
  Add("a/bad", "Fail", {"x"}, {{"message", "no luck"}});
  AddInt("Neg", "y", {"a/bad"});
  Add("never", "Tick", {"y"}, {{"counter", 0}});
  ToyCounter(0) = 0;
  std::vector<Tensor> outputs = {Int(9)};
  EXPECT_THAT(Run({{"x"}, {"y"}, {"never"}}, {Int(1)}, &outputs),
              StatusIs(absl::StatusCode::kInvalidArgument, "node 'a/bad' (Fail): no luck"));
  EXPECT_EQ(ToyCounter(0), 0);
  ASSERT_THAT(outputs, SizeIs(1));
  EXPECT_EQ(outputs[0].scalar<int64_t>()(), 9);
}

TEST_P(ExecutorTest, FailsForAPlaceholderThatIsNotFed) {
  AddPlaceholder("x");
  AddInt("Neg", "y", {"x"});
  EXPECT_THAT(Run({{}, {"y"}, {}}, {}, nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument, "node 'x' (Placeholder): must be fed"));
}

TEST_P(ExecutorTest, RejectsKernelsThatViolateTheContract) {
  struct Case {
    std::string op;
    ToyAttrs attrs;
    absl::StatusCode code;
    std::string text;
  };
  using absl::StatusCode;
  const Case cases[] = {
      {"SetNothing", {}, StatusCode::kInternal, "did not set output 0"},
      {"SetOtherType",
       {},
       StatusCode::kInternal,
       "set output 0 to a tensor of type int32, expected int64"},
      {"SetUninitialized", {}, StatusCode::kInternal, "uninitialized tensor of type int64"},
      {"Throw", {{"what", "memory"}}, StatusCode::kResourceExhausted, "out of memory"},
      {"Throw", {{"what", "text"}}, StatusCode::kInternal, "an exception was thrown: text"},
      {"Throw", {{"what", "number"}}, StatusCode::kInternal, "exception of unknown type"},
  };
  int number = 0;
  for (const Case& c : cases) {
    const std::string name = absl::StrCat("bad", number++);
    Add(name, c.op, {}, c.attrs);
    AddInt("Neg", name + "/neg", {name});
    const absl::Status status = Run({{}, {name + "/neg"}, {}}, {}, nullptr);
    EXPECT_THAT(status, StatusIs(c.code, HasSubstr(c.text)));
    EXPECT_THAT(status,
                StatusIs(c.code, HasSubstr(absl::StrCat("node '", name, "' (", c.op, "): "))));
  }
}

TEST_P(ExecutorTest, DropsAllTensorsOfAFailedRun) {
  AddPlaceholder("x", DT_FLOAT);
  AddPlaceholder("i");
  std::vector<std::string> waits_for = {"i"};
  PlanNames names{{"x", "i"}, {}, {}};
  for (int n = 0; n < 40; ++n) {
    const std::string name = absl::StrCat("n", n);
    Add(name, "Neg", {"x"}, {{"T", DT_FLOAT}});
    waits_for.push_back("^" + name);
  }
  Add("fail", "Fail", waits_for);
  for (int n = 0; n < 40; ++n) {
    const std::string name = absl::StrCat("n", n);
    Add(name + "/next", "Neg", {name, "^fail"}, {{"T", DT_FLOAT}});
    names.fetches.push_back(name);
    names.fetches.push_back(name + "/next");
  }
  std::vector<Tensor> outputs;
  EXPECT_THAT(Run(names, {Floats({1, 2}), Int(1)}, &outputs),
              StatusIs(absl::StatusCode::kInvalidArgument, "node 'fail' (Fail): failed"));
  EXPECT_EQ(pool_->GetStats().bytes_in_use, 0);
}

TEST_P(ExecutorTest, StartsNoMoreNodesAfterAFailure) {
  constexpr int kNodes = 1000;
  AddPlaceholder("x");
  Add("fail", "Fail", {"x"});
  // The longest path begins at "fail", so "fail" is among the first nodes to run.
  AddInt("Neg", "next", {"fail"});
  AddInt("Neg", "last", {"next"});
  PlanNames names{{"x"}, {"last"}, {}};
  for (int i = 0; i < kNodes; ++i) {
    const std::string name = absl::StrCat("slow", i);
    Add(name, "WaitFor", {"x"}, {{"ms", 5}});
    Add(name + "/tick", "Tick", {name}, {{"counter", 0}});
    names.targets.push_back(name + "/tick");
  }
  ToyCounter(0) = 0;
  EXPECT_THAT(Run(names, {Int(1)}, nullptr), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_LT(ToyCounter(0), kNodes / 2);
}

TEST_P(ExecutorTest, DropsTensorsThatManyReadAtOnce) {
  AddPlaceholder("x");
  std::string last = "x";
  for (int i = 0; i < 20; ++i) {
    std::vector<std::string> readers;
    for (int reader = 0; reader < 8; ++reader) {
      readers.push_back(absl::StrCat("n", i, "/", reader));
      AddInt("Neg", readers.back(), {last});
    }
    last = absl::StrCat("sum", i);
    Add(last, "AddN", readers, {{"N", 8}});
  }
  const std::shared_ptr<const Plan> plan = MakePlan({{"x"}, {last}, {}});
  for (int i = 0; i < 500; ++i) {
    GRADFLOW_ASSERT_OK(Run(plan, {Int(i)}, nullptr));
    ASSERT_EQ(pool_->GetStats().bytes_in_use, 0);
  }
}

// A timeout of a year or more means no deadline, and so does a timeout that is not positive.
TEST(RunLimitsTest, HaveADeadlineOfLessThanAYear) {
  const auto has_deadline = [](std::chrono::milliseconds timeout) {
    RunLimits limits;
    limits.SetTimeout(timeout);
    return limits.deadline != StopToken::Clock::time_point::max();
  };
  const std::chrono::milliseconds step(1);
  const std::chrono::milliseconds year = std::chrono::hours(24 * 365);
  EXPECT_TRUE(has_deadline(step));
  EXPECT_TRUE(has_deadline(year - step));
  EXPECT_FALSE(has_deadline(year));
  EXPECT_FALSE(has_deadline(std::chrono::milliseconds::max()));
  EXPECT_FALSE(has_deadline(step - step));
  EXPECT_FALSE(has_deadline(-step));
}

TEST_P(ExecutorTest, EndsAtItsTimeout) {
  AddPlaceholder("x");
  Add("slow", "WaitFor", {"x"}, {{"ms", 3}});
  Add("next", "Tick", {"slow"}, {{"counter", 0}});
  ToyCounter(0) = 0;
  RunLimits limits;
  limits.SetTimeout(std::chrono::milliseconds(1));
  EXPECT_THAT(Run({{"x"}, {"next"}, {}}, {Int(1)}, nullptr, limits),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("node 'slow' (WaitFor): "),
                             HasSubstr(", since the run's timeout of 1 ms is over"))));
  EXPECT_EQ(ToyCounter(0), 0);
  limits.SetTimeout(std::chrono::milliseconds::max());
  GRADFLOW_EXPECT_OK(Run({{"x"}, {"next"}, {}}, {Int(1)}, nullptr, limits));
  EXPECT_EQ(ToyCounter(0), 1);
}

TEST_P(ExecutorTest, RunsIndependentNodesAndLoopsOnAllItsThreads) {
  Add("a", "Meet", {});
  Add("b", "Meet", {});
  Add("threads", "Threads", {});
  if (GetParam() > 1) {
    ToyMeetings() = 0;
    std::vector<Tensor> outputs;
    GRADFLOW_ASSERT_OK(Run({{}, {"a", "b"}, {}}, {}, &outputs));
    EXPECT_TRUE(outputs[0].scalar<bool>()());
    EXPECT_TRUE(outputs[1].scalar<bool>()());
  }
  const int64_t threads = RunInt({{}, {"threads"}, {}}, {});
  EXPECT_GE(threads, 1);
  EXPECT_LE(threads, GetParam());
}

TEST_P(ExecutorTest, MeasuresNodeCostsInItsFirstRuns) {
  AddPlaceholder("x");
  AddInt("Neg", "a", {"x"});
  AddInt("Add", "b", {"x", "x"});
  Add("bad", "Fail", {"x"}, {{"message", "no luck"}});
  const std::shared_ptr<const Plan> plan = MakePlan({{"x"}, {"a", "b"}, {}});
  const std::shared_ptr<const Plan> failing = MakePlan({{"x"}, {"a", "b", "bad"}, {}});
  const auto has_measured = [](const Plan& p, const Plan::Order& first) {
    return &p.order() != &first;
  };
  const Plan::Order& first = plan->order();
  const Plan::Order& failing_first = failing->order();
  for (int run = 0; run < Plan::kMeasuredRuns; ++run) {
    EXPECT_FALSE(has_measured(*plan, first));
    GRADFLOW_ASSERT_OK(Run(plan, {Int(1)}, nullptr));
    EXPECT_FALSE(Run(failing, {Int(1)}, nullptr).ok());
  }
  // A plan is not measured if one thread runs all nodes.
  EXPECT_EQ(has_measured(*plan, first), GetParam() > 1);
  EXPECT_FALSE(has_measured(*failing, failing_first));
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(Run(plan, {Int(1)}, &outputs));
  EXPECT_EQ(outputs[1].scalar<int64_t>()(), 2);
}

TEST_P(ExecutorTest, HonoursTheLimitsOfNodesAndLoops) {
  AddPlaceholder("x");
  PlanNames nodes{{"x"}, {}, {}};
  for (int i = 0; i < 40; ++i) {
    nodes.fetches.push_back(absl::StrCat("n", i));
    Add(nodes.fetches.back(), "MostAtOnce", {"x"}, {{"counter", 0}});
  }
  AddInt("Neg", "after", {"x"});
  Add("threads", "Threads", {"^after"});
  const std::shared_ptr<const Plan> nodes_plan = MakePlan(nodes);
  const std::shared_ptr<const Plan> loop_plan = MakePlan({{"x"}, {"threads"}, {}});
  const Tensor x = Int(1);
  for (const int other : {1, 2, 4}) {
    ToyCounter(0) = 0;
    std::vector<Tensor> outputs;
    const Executor few_nodes(Parallelism{/*inter_op=*/other, /*intra_op=*/GetParam()}, pool_);
    GRADFLOW_ASSERT_OK(few_nodes.Run(nodes_plan, {&x}, {}, &outputs));
    for (const Tensor& most : outputs) EXPECT_LE(most.scalar<int64_t>()(), other);
    const Executor few_loops(Parallelism{/*inter_op=*/GetParam(), /*intra_op=*/other}, pool_);
    GRADFLOW_ASSERT_OK(few_loops.Run(loop_plan, {&x}, {}, &outputs));
    EXPECT_LE(outputs[0].scalar<int64_t>()(), other);
  }
}

TEST_P(ExecutorTest, LimitsLoopsWhereMoreNodesMayRun) {
  Add("limit", "LoopLimit", {});
  const std::shared_ptr<const Plan> plan = MakePlan({{}, {"limit"}, {}});
  const auto limit = [&](int inter_op, int intra_op) {
    const Executor executor(Parallelism{inter_op, intra_op}, pool_);
    std::vector<Tensor> outputs;
    GRADFLOW_EXPECT_OK(executor.Run(plan, {}, {}, &outputs));
    return outputs.empty() ? -1 : outputs[0].scalar<int64_t>()();
  };
  EXPECT_EQ(limit(2, 2), 0);
  EXPECT_EQ(limit(2, 4), 0);
  EXPECT_EQ(limit(1, 4), 0);
  EXPECT_EQ(limit(4, 2), 2);
}

TEST_P(ExecutorTest, LetsNoNodeWaitForAThreadThatMayRunIt) {
  // Two nodes become ready when `wait` ends. The thread that does not run `wait` is idle until
  // then.
  AddPlaceholder("x");
  Add("tick", "Tick", {"x"}, {{"counter", 1}});
  Add("wait", "WaitForCounter", {"x"}, {{"counter", 1}, {"value", 1}});
  Add("a", "Meet", {"^wait"});
  Add("b", "Meet", {"^wait"});
  const std::shared_ptr<const Plan> plan = MakePlan({{"x"}, {"a", "b"}, {"tick", "wait"}});
  const Executor executor(Parallelism{/*inter_op=*/2, /*intra_op=*/GetParam()}, pool_);
  const Tensor x = Int(1);
  for (int i = 0; i < 20; ++i) {
    ToyCounter(1) = 0;
    ToyMeetings() = 0;
    std::vector<Tensor> outputs;
    GRADFLOW_ASSERT_OK(executor.Run(plan, {&x}, {}, &outputs));
    ASSERT_TRUE(outputs[0].scalar<bool>()());
    ASSERT_TRUE(outputs[1].scalar<bool>()());
  }
}

TEST(Executor, RunsDeepChainsWithoutRecursion) {
  constexpr int kDepth = 100000;
  Graph graph(ToyRegistry());
  GRADFLOW_ASSERT_OK(AddToy(&graph, "x", "Placeholder", {}, {{"dtype", DT_INT64}}));
  std::string last = "x";
  for (int i = 0; i < kDepth; ++i) {
    const std::string name = absl::StrCat("n", i);
    GRADFLOW_ASSERT_OK(
        AddToy(&graph, name, i % 4 == 0 ? "Neg" : "Identity", {last}, {{"T", DT_INT64}}));
    last = name;
  }
  KernelCache kernels;
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto plan, Plan::Make(graph, {{"x"}, {last}, {}}, &kernels));
  const Tensor x = Int(7);
  for (const int threads : {1, 2, 3, 8}) {
    const Executor executor(threads, SystemAllocator());
    std::vector<Tensor> outputs;
    GRADFLOW_ASSERT_OK(executor.Run(plan, {&x}, {}, &outputs));
    EXPECT_EQ(outputs[0].scalar<int64_t>()(), 7);
  }
}

TEST(Executor, StartsNoThreadIfItHasOne) {
  Graph graph(ToyRegistry());
  GRADFLOW_ASSERT_OK(AddToy(&graph, "a", "Threads", {}));
  GRADFLOW_ASSERT_OK(AddToy(&graph, "b", "Threads", {}));
  GRADFLOW_ASSERT_OK(AddToy(&graph, "sum", "AddN", {"a", "b"}, {{"N", 2}}));
  KernelCache kernels;
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto plan, Plan::Make(graph, {{}, {"sum"}, {}}, &kernels));
  const int before = NumThreadsOfThisProcess();
  const Executor executor(1, SystemAllocator());
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(executor.Run(plan, {}, {}, &outputs));
  EXPECT_EQ(outputs[0].scalar<int64_t>()(), 2);
  EXPECT_LE(NumThreadsOfThisProcess(), before);
}

TEST_P(ExecutorTest, RunsWithinTasksOfTheCaller) {
  AddPlaceholder("x");
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) {
    names.push_back(absl::StrCat("n", i));
    AddInt("Neg", names.back(), {"x"});
  }
  Add("sum", "AddN", names, {{"N", 20}});
  const std::shared_ptr<const Plan> plan = MakePlan({{"x"}, {"sum"}, {}});
  std::atomic<int> correct{0};
  static char fork;
  static char join;
  const auto run = [&](int64_t value) {
    TsanAcquire(&fork);
    std::vector<Tensor> outputs;
    const absl::Status status = Run(plan, {Int(value)}, &outputs);
    if (status.ok() && outputs[0].scalar<int64_t>()() == -20 * value) ++correct;
    TsanRelease(&join);
  };
  TsanRelease(&fork);
  tbb::parallel_for(0, 100, run);
  tbb::task_arena(1).execute([&] { tbb::parallel_for(0, 100, run); });
  TsanAcquire(&join);
  EXPECT_EQ(correct, 200);
}

// A helper may run all remaining nodes. Its loops need the thread that called Run.
TEST_P(ExecutorTest, ThreadThatWaitsForAHelperRunsBlocksOfItsLoops) {
  if (GetParam() == 1) return;
  Add("a", "MeetInLoop", {}, {{"n", GetParam()}});
  Add("b", "MeetInLoop", {}, {{"n", GetParam()}});
  const std::shared_ptr<const Plan> plan = MakePlan({{}, {"a", "b"}, {}});
  ToyCaller() = std::this_thread::get_id();
  for (int run = 0; run < 5; ++run) {
    ToyMeetings() = 0;
    std::vector<Tensor> outputs;
    GRADFLOW_ASSERT_OK(Run(plan, {}, &outputs));
    ASSERT_TRUE(outputs[0].scalar<bool>()());
    ASSERT_TRUE(outputs[1].scalar<bool>()());
  }
}

// Workers look for a loop's blocks in each slot of its arena.
TEST_P(ExecutorTest, ArenaOfALoopHasASlotPerThread) {
  if (GetParam() == 1) return;
  Add("slots", "ArenaSlots", {});
  const std::shared_ptr<const Plan> plan = MakePlan({{}, {"slots"}, {}});
  for (int run = 0; run < 2; ++run) {
    std::vector<Tensor> outputs;
    GRADFLOW_ASSERT_OK(Run(plan, {}, &outputs));
    EXPECT_EQ(outputs[0].scalar<int64_t>()(), GetParam());
  }
}

TEST_P(ExecutorTest, RunsLoopsOfMoreCallersThanItHasThreads) {
  Add("threads", "Threads", {});
  const std::shared_ptr<const Plan> plan = MakePlan({{}, {"threads"}, {}});
  EXPECT_TRUE(plan->is_sequential());
  std::atomic<int> correct{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 32; ++caller) {
    callers.emplace_back([&] {
      std::vector<Tensor> outputs;
      const absl::Status status = Run(plan, {}, &outputs);
      if (status.ok() && outputs[0].scalar<int64_t>()() >= 1) ++correct;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(correct, 32);
}

TEST_P(ExecutorTest, ServesMoreCallersThanItHasThreads) {
  AddPlaceholder("x");
  AddInt("Neg", "a", {"x"});
  AddInt("Identity", "b", {"x"});
  Add("mix", "Mix", {"a", "b"});
  AddInt("Add", "y", {"mix", "mix:1"});
  const std::shared_ptr<const Plan> plan = MakePlan({{"x"}, {"y"}, {}});
  constexpr int kCallers = 32;
  constexpr int kRuns = 40;
  std::atomic<int> correct{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      for (int64_t x = caller; x < caller + kRuns; ++x) {
        std::vector<Tensor> outputs;
        const absl::Status status = Run(plan, {Int(x)}, &outputs);
        if (status.ok() && outputs[0].scalar<int64_t>()() == -4 * x + (-x ^ x)) ++correct;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(correct, kCallers * kRuns);
  EXPECT_EQ(pool_->GetStats().bytes_in_use, 0);
}

}  // namespace
}  // namespace gradflow
