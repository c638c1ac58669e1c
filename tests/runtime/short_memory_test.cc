// Runs for which the memory of the program is too short at some point: this replaces operator new.
#include <atomic>
#include <climits>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/tensor.h"
#include "gradflow/runtime/executor.h"
#include "gradflow/runtime/pool_allocator.h"
#include "tests/runtime/toy_ops.h"
#include "tests/testing/status_matchers.h"

namespace {

// How many calls of operator new succeed from now on.
std::atomic<int> calls_left{INT_MAX};

bool TakeCall() {
  int left = calls_left.load(std::memory_order_relaxed);
  while (left != INT_MAX && left > 0 && !calls_left.compare_exchange_weak(left, left - 1)) {
  }
  return left > 0;
}

}  // namespace

// Not inlined, since the compiler would take free for a mistake.
[[gnu::noinline]] void* operator new(size_t size) {
  void* const memory = TakeCall() ? std::malloc(size == 0 ? 1 : size) : nullptr;
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace gradflow {
namespace {

using ::gradflow::testing::AddToy;
using ::gradflow::testing::Int;
using ::gradflow::testing::ToyRegistry;

class ShortMemoryTest : public ::testing::TestWithParam<int> {
 protected:
  // The status of a run in which only so many calls of operator new succeed.
  absl::Status Run(const Plan& plan, const std::vector<const Tensor*>& feeds, int calls,
                   const RunLimits& limits = {}) {
    calls_left = calls;
    absl::Status status = executor_.Run(plan, feeds, limits, &outputs_);
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

// A graph whose nodes, tensors and errors ask for memory: shapes of many dimensions are on the
// heap, and so are texts.
TEST_P(ShortMemoryTest, EndsRunsWithAnErrorAndKeepsNoTensor) {
  const std::string a_long_name(200, 'n');
  ASSERT_OK(AddToy(&graph_, "x", "Placeholder", {}, {{"dtype", DT_FLOAT}}));
  ASSERT_OK(AddToy(&graph_, "i", "Placeholder", {}, {{"dtype", DT_INT64}}));
  PlanNames good{{"x", "i"}, {}, {}};
  std::vector<std::string> waits_for = {"i"};
  for (int n = 0; n < 12; ++n) {
    const std::string name = absl::StrCat("n", n);
    ASSERT_OK(AddToy(&graph_, name, "Neg", {"x"}, {{"T", DT_FLOAT}}));
    good.fetches.push_back(name);
    waits_for.push_back("^" + name);
  }
  ASSERT_OK(AddToy(&graph_, a_long_name, "Fail", waits_for));
  PlanNames bad = good;
  bad.targets.push_back(a_long_name);
  ASSERT_OK_AND_ASSIGN(const auto good_plan, Plan::Make(graph_, good, &kernels_));
  ASSERT_OK_AND_ASSIGN(const auto bad_plan, Plan::Make(graph_, bad, &kernels_));

  const Tensor x(DT_FLOAT, TensorShape(std::vector<int64_t>(40, 1)));
  const Tensor i = Int(1);
  const std::vector<const Tensor*> feeds = {&x, &i};
  int good_runs = 0;
  int named_errors = 0;
  for (int calls = 0; good_runs < 20; ++calls) {
    ASSERT_LT(calls, 10000);
    outputs_.clear();
    const absl::Status status = Run(*good_plan, feeds, calls);
    good_runs += status.ok();
    if (!status.ok()) {
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    }
    outputs_.clear();
    ASSERT_EQ(pool_->GetStats().bytes_in_use, 0) << calls;
    const absl::Status failed = Run(*bad_plan, feeds, calls);
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
  // With memory again, all is as before.
  EXPECT_OK(Run(*good_plan, feeds, INT_MAX));
}

TEST_P(ShortMemoryTest, EndsRunsAtTheirTimeout) {
  ASSERT_OK(AddToy(&graph_, "x", "Placeholder", {}, {{"dtype", DT_INT64}}));
  ASSERT_OK(AddToy(&graph_, "slow", "WaitFor", {"x"}, {{"ms", 3}}));
  ASSERT_OK(AddToy(&graph_, std::string(200, 'n'), "Neg", {"slow"}, {{"T", DT_INT64}}));
  ASSERT_OK_AND_ASSIGN(const auto plan,
                       Plan::Make(graph_, {{"x"}, {std::string(200, 'n')}, {}}, &kernels_));
  RunLimits limits;
  limits.timeout = std::chrono::milliseconds(1);
  const Tensor x = Int(1);
  bool in_time = false;
  for (int calls = 0; !in_time; ++calls) {
    ASSERT_LT(calls, 1000);
    const absl::Status status = Run(*plan, {&x}, calls, limits);
    in_time = status.code() == absl::StatusCode::kDeadlineExceeded;
    if (!in_time) {
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    }
    ASSERT_EQ(pool_->GetStats().bytes_in_use, 0) << calls;
  }
}

}  // namespace
}  // namespace gradflow
