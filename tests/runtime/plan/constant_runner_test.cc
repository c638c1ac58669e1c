// Tests of ConstantRunner: kernels that run while a plan is made can be stopped, and have a budget.
#include "gradflow/runtime/plan/constant_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "gradflow/core/parallel.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/plan/kernel_cache.h"
#include "gradflow/runtime/plan/passes.h"
#include "gradflow/runtime/plan/plan.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensors.h"

namespace gradflow {
namespace {

using ::gradflow::testing::AsTensor;
using ::gradflow::testing::StatusIs;
using ::testing::HasSubstr;

class FunctionKernel final : public OpKernel {
 public:
  explicit FunctionKernel(std::function<void(KernelContext&)> fn) : fn_(std::move(fn)) {}
  absl::Status Compute(KernelContext& ctx) const override {
    fn_(ctx);
    ctx.set_output(0, ctx.input(0));
    return absl::OkStatus();
  }

 private:
  const std::function<void(KernelContext&)> fn_;
};

class ConstantRunnerTest : public ::testing::Test {
 protected:
  ConstantRunnerTest() : node_(ops::Identity(scope_, ops::Const(scope_, {1.0f})).node()) {
    limits_.cancelled = &cancelled_;
  }

  absl::Status Run(ConstantRunner* runner, std::function<void(KernelContext&)> fn) {
    std::vector<Tensor> inputs = {AsTensor<float>(std::vector<float>(1000))};
    std::vector<Tensor> outputs;
    return runner->Run(*node_, FunctionKernel(std::move(fn)), absl::MakeSpan(inputs), &outputs);
  }

  Scope scope_ = Scope::NewRootScope();
  const Node* node_;
  PlanOptions options_;
  CancelFlag cancelled_;
  RunLimits limits_;
  KernelCache kernels_;
  PlanBudget budget_;
  PassContext context_ = {options_, limits_, &kernels_, &budget_};
};

TEST_F(ConstantRunnerTest, CancellingTheRunStopsTheKernel) {
  ConstantRunner runner(context_, 1 << 20);
  bool stopped = false;
  const absl::Status status = Run(&runner, [&](KernelContext& ctx) {
    cancelled_.Raise();
    stopped = ctx.ShouldStop();
  });
  EXPECT_TRUE(stopped);
  EXPECT_TRUE(runner.is_stopped());
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(
      runner.StopError(node_),
      StatusIs(absl::StatusCode::kCancelled, HasSubstr("'Identity' (Identity): stopped, since")));
}

TEST_F(ConstantRunnerTest, WorkIsLimited) {
  budget_.folding_work = 1'000'000;
  ConstantRunner runner(context_, 1 << 20);
  const auto loop = [](KernelContext& ctx) { ParallelFor(ctx, 40, 1, [](int64_t, int64_t) {}); };
  GRADFLOW_EXPECT_OK(Run(&runner, loop));
  EXPECT_LT(budget_.folding_work, 300'000);
  const auto error = StatusIs(absl::StatusCode::kResourceExhausted, "takes too much work to fold");
  EXPECT_THAT(Run(&runner, loop), error);
  EXPECT_EQ(budget_.folding_work, 0);
  // A constant of the graph pays for a few passes over it.
  runner.AllowConstant(4000);
  GRADFLOW_EXPECT_OK(Run(&runner, [](KernelContext&) {}));
  EXPECT_THAT(Run(&runner, loop), error);
}

TEST_F(ConstantRunnerTest, MemoryIsLimited) {
  ConstantRunner runner(context_, 4096);
  absl::Status allocated;
  const auto allocate = [&](KernelContext& ctx) {
    Tensor scratch;
    allocated = ctx.AllocateTemp(DT_FLOAT, {2000}, &scratch);
  };
  GRADFLOW_EXPECT_OK(Run(&runner, allocate));
  EXPECT_THAT(allocated, StatusIs(absl::StatusCode::kResourceExhausted));
  runner.AllowConstant(4000);
  GRADFLOW_EXPECT_OK(Run(&runner, allocate));
  GRADFLOW_EXPECT_OK(allocated);
  ConstantRunner small(context_, 3000);
  EXPECT_THAT(Run(&small, [](KernelContext&) {}),
              StatusIs(absl::StatusCode::kResourceExhausted, "inputs too large to fold"));
}

}  // namespace
}  // namespace gradflow
