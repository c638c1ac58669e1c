// Tests of runs and imports that run out of memory at some point. This program replaces operator
// new.
#include <dlfcn.h>
#include <tbb/task_group.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/import.h"
#include "gradflow/runtime/executor/executor.h"
#include "gradflow/runtime/memory/pool_allocator.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/runtime/toy_ops.h"

namespace {

// The number of future calls of operator new that succeed; INT_MAX for no limit.
std::atomic<int> calls_left{INT_MAX};

// Calls of operator new for more bytes than this fail.
std::atomic<size_t> largest_call{SIZE_MAX};

bool TakeCall(size_t size) {
  if (size > largest_call.load(std::memory_order_relaxed)) return false;
  int left = calls_left.load(std::memory_order_relaxed);
  while (left != INT_MAX && left > 0 && !calls_left.compare_exchange_weak(left, left - 1)) {
  }
  return left > 0;
}

// The number of oneTBB's task allocations that succeed, out of 10.
std::atomic<int> tasks_of_ten{10};
std::atomic<int> refused_tasks{0};

}  // namespace

// Replaces the function that oneTBB's headers call to allocate a task.
void* tbb::detail::r1::allocate(tbb::detail::d1::small_object_pool*& pool, std::size_t bytes) {
  static std::atomic<int> calls{0};
  if (calls.fetch_add(1) % 10 >= tasks_of_ten) {
    ++refused_tasks;
    throw std::bad_alloc();
  }
  using Allocate = void*(tbb::detail::d1::small_object_pool*&, std::size_t);
  static auto* const allocate = reinterpret_cast<Allocate*>(
      dlsym(RTLD_NEXT, "_ZN3tbb6detail2r18allocateERPNS0_2d117small_object_poolEm"));
  return allocate(pool, bytes);
}

// Without inlining, gcc does not warn about a mismatched free.
[[gnu::noinline]] void* operator new(size_t size) {
  void* const memory = TakeCall(size) ? std::malloc(size == 0 ? 1 : size) : nullptr;
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return TakeCall(size) ? std::malloc(size == 0 ? 1 : size) : nullptr;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace gradflow {
namespace {

using ::gradflow::testing::AddToy;
using ::gradflow::testing::Int;
using ::gradflow::testing::ToyNode;
using ::gradflow::testing::ToyRegistry;

class ShortMemoryTest : public ::testing::TestWithParam<int> {
 protected:
  // Returns the status of a run whose calls of operator new fail after the first `calls`.
  absl::Status Run(const std::shared_ptr<const Plan>& plan, const std::vector<const Tensor*>& feeds,
                   int calls, const RunLimits& limits = {},
                   const std::shared_ptr<const FunctionTable>& functions = nullptr) {
    calls_left = calls;
    absl::Status status = executor_.Run(plan, feeds, limits, &outputs_, nullptr, functions);
    calls_left = INT_MAX;
    return status;
  }

  Graph graph_{ToyRegistry()};
  KernelCache kernels_;
  std::shared_ptr<PoolAllocator> pool_ = std::make_shared<PoolAllocator>();
  Executor executor_{GetParam(), pool_};
  std::vector<Tensor> outputs_;
};

INSTANTIATE_TEST_SUITE_P(Threads, ShortMemoryTest, ::testing::Values(1, 3));

// A graph whose nodes, tensors and errors allocate. Shapes of many dimensions and long texts are on
// the heap.
TEST_P(ShortMemoryTest, EndsRunsWithAnErrorAndKeepsNoTensor) {
  const std::string a_long_name(200, 'n');
  GRADFLOW_ASSERT_OK(AddToy(&graph_, "x", "Placeholder", {}, {{"dtype", DT_FLOAT}}));
  GRADFLOW_ASSERT_OK(AddToy(&graph_, "i", "Placeholder", {}, {{"dtype", DT_INT64}}));
  PlanNames good{{"x", "i"}, {}, {}};
  std::vector<std::string> waits_for = {"i"};
  for (int n = 0; n < 12; ++n) {
    const std::string name = absl::StrCat("n", n);
    GRADFLOW_ASSERT_OK(AddToy(&graph_, name, "Neg", {"x"}, {{"T", DT_FLOAT}}));
    good.fetches.push_back(name);
    waits_for.push_back("^" + name);
  }
  GRADFLOW_ASSERT_OK(AddToy(&graph_, a_long_name, "Fail", waits_for));
  PlanNames bad = good;
  bad.targets.push_back(a_long_name);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto good_plan, Plan::Make(graph_, good, &kernels_));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto bad_plan, Plan::Make(graph_, bad, &kernels_));

  const Tensor x(DT_FLOAT, TensorShape(std::vector<int64_t>(40, 1)));
  const Tensor i = Int(1);
  const std::vector<const Tensor*> feeds = {&x, &i};
  int good_runs = 0;
  int named_errors = 0;
  for (int calls = 0; good_runs < 20; ++calls) {
    ASSERT_LT(calls, 10000);
    outputs_.clear();
    const absl::Status status = Run(good_plan, feeds, calls);
    good_runs += status.ok();
    if (!status.ok()) {
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    }
    outputs_.clear();
    ASSERT_EQ(pool_->GetStats().bytes_in_use, 0) << calls;
    const absl::Status failed = Run(bad_plan, feeds, calls);
    EXPECT_FALSE(failed.ok());
    if (failed.code() == absl::StatusCode::kInvalidArgument) {
      EXPECT_EQ(failed.message(), absl::StrCat("node '", a_long_name, "' (Fail): failed"));
      ++named_errors;
    } else {
      EXPECT_EQ(failed.code(), absl::StatusCode::kResourceExhausted) << failed;
    }
    ASSERT_EQ(pool_->GetStats().bytes_in_use, 0) << calls;
  }
  EXPECT_GT(named_errors, 0);
  // With sufficient memory, runs succeed again.
  GRADFLOW_EXPECT_OK(Run(good_plan, feeds, INT_MAX));
}

TEST_P(ShortMemoryTest, EndsCallsOfFunctionsWithAnError) {
  GRADFLOW_ASSERT_OK(AddToy(&graph_, "x", "Placeholder", {}, {{"dtype", DT_INT64}}));
  GRADFLOW_ASSERT_OK(AddToy(&graph_, "neg", "Neg", {"x"}, {{"T", DT_INT64}}));
  GRADFLOW_ASSERT_OK(AddToy(&graph_, "called", "Call", {"x"}, {{"f", "negate"}}));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto body,
                                Plan::Make(graph_, {{"x"}, {"neg"}, {}}, &kernels_));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto plan,
                                Plan::Make(graph_, {{"x"}, {"called"}, {}}, &kernels_));
  const auto functions = std::make_shared<FunctionTable>();
  functions->Add("negate", body);
  const Tensor x = Int(3);
  int good_runs = 0;
  for (int calls = 0; good_runs < 20; ++calls) {
    ASSERT_LT(calls, 10000);
    const absl::Status status = Run(plan, {&x}, calls, {}, functions);
    good_runs += status.ok();
    if (!status.ok()) {
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << calls << ": " << status;
    }
    outputs_.clear();
    ASSERT_EQ(pool_->GetStats().bytes_in_use, 0) << calls;
  }
}

TEST_P(ShortMemoryTest, RunsNodesOnTheirThreadIfThereIsNoMemoryForTasks) {
  constexpr int kWidth = 50;
  GRADFLOW_ASSERT_OK(AddToy(&graph_, "x", "Placeholder", {}, {{"dtype", DT_INT64}}));
  std::vector<std::string> names;
  for (int n = 0; n < kWidth; ++n) {
    names.push_back(absl::StrCat("n", n));
    GRADFLOW_ASSERT_OK(AddToy(&graph_, names.back(), "Tick", {"x"}, {{"counter", n}}));
  }
  GRADFLOW_ASSERT_OK(AddToy(&graph_, "sum", "AddN", names, {{"N", kWidth}}));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto plan,
                                Plan::Make(graph_, {{"x"}, {"sum"}, {}}, &kernels_));
  const Tensor x = Int(3);
  for (const int tasks : {0, 1, 5, 9, 10}) {
    refused_tasks = 0;
    for (int run = 0; run < 20; ++run) {
      tasks_of_ten = tasks;
      const absl::Status status = executor_.Run(plan, {&x}, {}, &outputs_);
      tasks_of_ten = 10;
      GRADFLOW_ASSERT_OK(status);
      EXPECT_EQ(outputs_[0].scalar<int64_t>()(), 3 * kWidth);
    }
    EXPECT_EQ(refused_tasks > 0, tasks < 10 && GetParam() > 1);
  }
}

TEST_P(ShortMemoryTest, EndsRunsAtTheirTimeout) {
  GRADFLOW_ASSERT_OK(AddToy(&graph_, "x", "Placeholder", {}, {{"dtype", DT_INT64}}));
  GRADFLOW_ASSERT_OK(AddToy(&graph_, "slow", "WaitFor", {"x"}, {{"ms", 3}}));
  GRADFLOW_ASSERT_OK(AddToy(&graph_, std::string(200, 'n'), "Neg", {"slow"}, {{"T", DT_INT64}}));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const auto plan, Plan::Make(graph_, {{"x"}, {std::string(200, 'n')}, {}}, &kernels_));
  RunLimits limits;
  limits.SetTimeout(std::chrono::milliseconds(1));
  const Tensor x = Int(1);
  bool in_time = false;
  for (int calls = 0; !in_time; ++calls) {
    ASSERT_LT(calls, 1000);
    const absl::Status status = Run(plan, {&x}, calls, limits);
    in_time = status.code() == absl::StatusCode::kDeadlineExceeded;
    if (!in_time) {
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    }
    ASSERT_EQ(pool_->GetStats().bytes_in_use, 0) << calls;
  }
}

TEST(ShortMemoryGraph, AddsAllNodesOrNone) {
  constexpr int kInputs = 100'000;
  Graph graph(ToyRegistry());
  GRADFLOW_ASSERT_OK(AddToy(&graph, "x", "Placeholder", {}, {{"dtype", DT_INT64}}));
  GraphDef def;
  *def.add_node() = ToyNode("y", "Placeholder", {}, {{"dtype", DT_INT64}});
  *def.add_node() =
      ToyNode("sum", "AddN", std::vector<std::string>(kInputs, "x"), {{"N", kInputs}});
  *def.add_node() = ToyNode("z", "Neg", {"sum"}, {{"T", DT_INT64}});
  // Too few bytes for the input types, and then for the inputs.
  for (const size_t bytes : {100'000, 1'000'000}) {
    GraphDef imported = def;
    NodeDef added = def.node(1);
    largest_call = bytes;
    const absl::Status import = ImportGraphDef({}, std::move(imported), &graph);
    const absl::Status add = graph.AddNode(std::move(added)).status();
    largest_call = SIZE_MAX;
    EXPECT_EQ(import.code(), absl::StatusCode::kResourceExhausted) << import;
    EXPECT_EQ(add.code(), absl::StatusCode::kResourceExhausted) << add;
    EXPECT_EQ(graph.num_nodes(), 1);
    EXPECT_EQ(graph.FindNode("y"), nullptr);
    EXPECT_EQ(graph.FindNode("sum"), nullptr);
  }
  GRADFLOW_ASSERT_OK(ImportGraphDef({}, def, &graph));
  EXPECT_EQ(graph.num_nodes(), 4);
  EXPECT_EQ(graph.def().node_size(), 4);
}

}  // namespace
}  // namespace gradflow
