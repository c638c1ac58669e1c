// Tests of branches and loops that hold asynchronous kernels, that end early, or that have nodes on
// several devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tbb/global_control.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/proto/function.pb.h"
#include "gradflow/runtime/executor/executor.h"
#include "gradflow/runtime/memory/pool_allocator.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/runtime/toy_ops.h"

namespace gradflow {
namespace {

using ::absl::StatusCode;
using ::gradflow::testing::AddToy;
using ::gradflow::testing::Floats;
using ::gradflow::testing::Int;
using ::gradflow::testing::IsOk;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::ToyAttrs;
using ::gradflow::testing::ToyCancelled;
using ::gradflow::testing::ToyHeld;
using ::gradflow::testing::ToyNode;
using ::gradflow::testing::ToyRegistry;
using ::gradflow::testing::ToyWaitForLater;

NameAttrList Function(const std::string& name) {
  NameAttrList function;
  function.set_name(name);
  return function;
}

// Inputs of functions are "x0", "x1", ... or "node:y:0".
class FunctionMaker {
 public:
  FunctionMaker(const std::string& name, const DataTypeVector& args) {
    function_.mutable_signature()->set_name(name);
    for (size_t i = 0; i < args.size(); ++i) {
      OpDef::ArgDef* const arg = function_.mutable_signature()->add_input_arg();
      arg->set_name(absl::StrCat("x", i));
      arg->set_type(args[i]);
    }
  }
  FunctionMaker& Add(const std::string& name, const std::string& op,
                     const std::vector<std::string>& inputs, const ToyAttrs& attrs = {},
                     const std::string& device = "") {
    NodeDef* const node = function_.add_node_def();
    *node = ToyNode(name, op, inputs, attrs);
    node->set_device(device);
    return *this;
  }
  FunctionMaker& Return(DataType dtype, const std::string& value) {
    const int i = function_.signature().output_arg_size();
    OpDef::ArgDef* const result = function_.mutable_signature()->add_output_arg();
    result->set_name(absl::StrCat("r", i));
    result->set_type(dtype);
    (*function_.mutable_ret())[result->name()] = value;
    return *this;
  }
  const FunctionDef& function() const { return function_; }

 private:
  FunctionDef function_;
};

// The parameter is the number of threads.
class CallsTest : public ::testing::TestWithParam<int> {
 protected:
  CallsTest() : control_(tbb::global_control::max_allowed_parallelism, 8) {
    ToyHeld::Get().TakeAll();
    AddNode("x", "Placeholder", {}, {{"dtype", DT_INT64}});
    AddNode("limit", "Placeholder", {}, {{"dtype", DT_INT64}});
    Add(FunctionMaker("less", {DT_INT64, DT_INT64})
            .Add("less", "Less", {"x0", "x1"})
            .Return(DT_BOOL, "less:z:0"));
  }

  void Add(const FunctionMaker& function) {
    GRADFLOW_ASSERT_OK(graph_.AddFunction(function.function()));
  }
  void AddNode(const std::string& name, const std::string& op,
               const std::vector<std::string>& inputs, const ToyAttrs& attrs = {},
               const std::string& device = "") {
    NodeDef node = ToyNode(name, op, inputs, attrs);
    node.set_device(device);
    GRADFLOW_ASSERT_OK(graph_.AddNode(std::move(node)).status());
  }
  // Adds the loop "while": while x < limit, x = body(x, limit).
  void AddLoop(const std::string& body, const std::string& condition = "less") {
    AddNode("while", "While", {"x", "limit"},
            {{"T", DataTypeVector{DT_INT64, DT_INT64}},
             {"cond", Function(condition)},
             {"body", Function(body)}});
  }
  static ToyAttrs One() { return {{"dtype", DT_INT64}, {"value", Int(1)}}; }

  std::shared_ptr<const Plan> MakePlan(const PlanNames& names) {
    PlanOptions options;
    options.devices = devices_;
    auto plan = Plan::Make(graph_, names, &kernels_, options);
    EXPECT_THAT(plan, IsOk());
    return plan.ok() ? *plan : nullptr;
  }
  absl::Status RunLoop(int64_t x, int64_t limit, const RunLimits& limits = {}) {
    if (loop_ == nullptr) loop_ = MakePlan({{"x", "limit"}, {"while"}, {}});
    const Tensor feeds[] = {Int(x), Int(limit)};
    outputs_.clear();
    return executor_->Run(loop_, {&feeds[0], &feeds[1]}, limits, &outputs_);
  }

  tbb::global_control control_;
  Graph graph_{ToyRegistry()};
  KernelCache kernels_;
  std::vector<std::string> devices_;
  std::shared_ptr<PoolAllocator> pool_ = std::make_shared<PoolAllocator>();
  std::unique_ptr<Executor> executor_ = std::make_unique<Executor>(GetParam(), pool_);
  std::shared_ptr<const Plan> loop_;
  std::vector<Tensor> outputs_;
};

INSTANTIATE_TEST_SUITE_P(Threads, CallsTest, ::testing::Values(1, 2, 8));

TEST_P(CallsTest, AsynchronousKernelsRunInEachIteration) {
  Add(FunctionMaker("body", {DT_INT64, DT_INT64})
          .Add("one", "Const", {}, One())
          .Add("first", "Later", {"x0"})
          .Add("second", "Later", {"one:output:0"})
          .Add("sum", "Add", {"first:y:0", "second:y:0"}, {{"T", DT_INT64}})
          .Return(DT_INT64, "sum:z:0")
          .Return(DT_INT64, "x1"));
  // The condition also waits.
  Add(FunctionMaker("less_later", {DT_INT64, DT_INT64})
          .Add("later", "Later", {"x0"})
          .Add("less", "Less", {"later:y:0", "x1"})
          .Return(DT_BOOL, "less:z:0"));
  AddLoop("body", "less_later");
  for (const int64_t limit : {0, 1, 2, 100}) {
    GRADFLOW_ASSERT_OK(RunLoop(0, limit));
    EXPECT_EQ(outputs_[0].scalar<int64_t>()(), limit);
  }
}

// The body runs a loop whose body waits, so a completion must find the right frame.
TEST_P(CallsTest, AsynchronousKernelsRunInLoopsWithinLoops) {
  Add(FunctionMaker("inner", {DT_INT64, DT_INT64})
          .Add("one", "Const", {}, One())
          .Add("later", "Later", {"x0"})
          .Add("sum", "Add", {"later:y:0", "one:output:0"}, {{"T", DT_INT64}})
          .Return(DT_INT64, "sum:z:0")
          .Return(DT_INT64, "x1"));
  const ToyAttrs loop = {{"T", DataTypeVector{DT_INT64, DT_INT64}},
                         {"cond", Function("less")},
                         {"body", Function("inner")}};
  // Two loops that run at once: both count from 0 to x0, and x0 becomes 2 x0 + 1.
  Add(FunctionMaker("body", {DT_INT64, DT_INT64})
          .Add("one", "Const", {}, One())
          .Add("minus", "Neg", {"one:output:0"}, {{"T", DT_INT64}})
          .Add("zero", "Add", {"one:output:0", "minus:y:0"}, {{"T", DT_INT64}})
          .Add("left", "While", {"zero:z:0", "x0"}, loop)
          .Add("right", "While", {"zero:z:0", "x0"}, loop)
          .Add("both", "Add", {"left:output:0", "right:output:0"}, {{"T", DT_INT64}})
          .Add("next", "Add", {"both:z:0", "one:output:0"}, {{"T", DT_INT64}})
          .Return(DT_INT64, "next:z:0")
          .Return(DT_INT64, "x1"));
  AddLoop("body");
  for (int run = 0; run < 5; ++run) {
    GRADFLOW_ASSERT_OK(RunLoop(0, 60));
    EXPECT_EQ(outputs_[0].scalar<int64_t>()(), 63);
  }
}

// The kernel of a stopped run ends when the run and its frames are gone.
TEST_P(CallsTest, AStoppedLoopLeavesItsAsynchronousKernelBehind) {
  Add(FunctionMaker("body", {DT_INT64, DT_INT64})
          .Add("held", "Hold", {"x0"})
          .Return(DT_INT64, "held:y:0")
          .Return(DT_INT64, "x1"));
  AddLoop("body");
  CancelFlag cancelled;
  RunLimits limits;
  limits.cancelled = &cancelled;
  constexpr int kIterations = 5;
  std::vector<std::function<bool()>> left;
  std::thread other([&] {
    for (int i = 0; i < kIterations; ++i) {
      EXPECT_TRUE(ToyHeld::Get().WaitFor(1));
      left = ToyHeld::Get().TakeAll();
      if (i + 1 < kIterations) {
        EXPECT_TRUE(left[0]());
      }
    }
    cancelled.Raise();
  });
  EXPECT_THAT(RunLoop(0, 1, limits),
              StatusIs(StatusCode::kCancelled,
                       "node 'while/held' (Hold): stopped, since the run was cancelled"));
  other.join();
  executor_ = nullptr;
  ASSERT_EQ(left.size(), 1);
  left[0]();
  left.clear();
  loop_ = nullptr;
  EXPECT_EQ(pool_->GetStats().bytes_in_use, 0);
}

// A loop within a loop stops the run, while another loop runs.
TEST_P(CallsTest, AStoppedLoopReleasesItsMemory) {
  const auto loop = [](const std::string& body) {
    return ToyAttrs{{"T", DataTypeVector{DT_INT64, DT_INT64}},
                    {"cond", Function("less")},
                    {"body", Function(body)}};
  };
  Add(FunctionMaker("forever", {DT_INT64, DT_INT64})
          .Add("tick", "Tick", {"x0"}, {{"counter", 0}})
          .Return(DT_INT64, "tick:y:0")
          .Return(DT_INT64, "x1"));
  Add(FunctionMaker("cancel", {DT_INT64, DT_INT64})
          .Add("later", "Later", {"x0"})
          .Add("cancel", "Cancel", {"later:y:0"})
          .Add("forever", "While", {"cancel:y:0", "x1"}, loop("forever"))
          .Return(DT_INT64, "forever:output:0")
          .Return(DT_INT64, "x1"));
  Add(FunctionMaker("body", {DT_INT64, DT_INT64})
          .Add("left", "While", {"x0", "x1"}, loop("cancel"))
          .Add("right", "While", {"x0", "x1"}, loop("cancel"))
          .Add("sum", "Add", {"left:output:0", "right:output:0"}, {{"T", DT_INT64}})
          .Return(DT_INT64, "sum:z:0")
          .Return(DT_INT64, "x1"));
  AddLoop("body");
  for (int run = 0; run < 10; ++run) {
    ToyCancelled() = std::make_unique<CancelFlag>();
    RunLimits limits;
    limits.cancelled = ToyCancelled().get();
    EXPECT_THAT(RunLoop(0, 1, limits), StatusIs(StatusCode::kCancelled));
    ToyWaitForLater();
    EXPECT_EQ(pool_->GetStats().bytes_in_use, 0);
  }
}

TEST_P(CallsTest, FunctionsTakeTensorsOfTheFirstDeviceOnly) {
  const std::string npu = "/device:NPU:0";
  devices_ = {"/device:CPU:0", npu};
  executor_ = std::make_unique<Executor>(Parallelism{GetParam(), GetParam()}, pool_, nullptr,
                                         std::vector<ExecutorDevice>{{npu, SystemAllocator()}});
  Add(FunctionMaker("here", {DT_FLOAT})
          .Add("neg", "Neg", {"x0"}, {{"T", DT_FLOAT}})
          .Return(DT_FLOAT, "neg:y:0"));
  // Nodes within a function may be on other devices.
  Add(FunctionMaker("there_and_back", {DT_FLOAT})
          .Add("there", "Neg", {"x0"}, {{"T", DT_FLOAT}}, npu)
          .Add("neg", "Neg", {"there:y:0"}, {{"T", DT_FLOAT}})
          .Return(DT_FLOAT, "neg:y:0"));
  Add(FunctionMaker("there", {DT_FLOAT})
          .Add("neg", "Neg", {"x0"}, {{"T", DT_FLOAT}}, npu)
          .Return(DT_FLOAT, "neg:y:0"));
  AddNode("f", "Placeholder", {}, {{"dtype", DT_FLOAT}});
  AddNode("taken", "Placeholder", {}, {{"dtype", DT_BOOL}});
  AddNode("foreign", "Neg", {"f"}, {{"T", DT_FLOAT}}, npu);
  const auto attrs = [](const std::string& then_branch, const std::string& else_branch) {
    return ToyAttrs{{"T", DataTypeVector{DT_FLOAT}},
                    {"then_branch", Function(then_branch)},
                    {"else_branch", Function(else_branch)}};
  };
  AddNode("works", "If", {"taken", "f"}, attrs("here", "there_and_back"), npu);
  AddNode("after", "Neg", {"works"}, {{"T", DT_FLOAT}});
  AddNode("input", "If", {"taken", "foreign"}, attrs("here", "there_and_back"));
  AddNode("result", "If", {"taken", "f"}, attrs("here", "there"));
  const auto plan = MakePlan({{"f", "taken"}, {"after"}, {}});
  for (const bool taken : {true, false}) {
    const Tensor f = Floats({1.5f, -2.5f});
    const Tensor fed(taken);
    GRADFLOW_ASSERT_OK(executor_->Run(plan, {&f, &fed}, {}, &outputs_));
    EXPECT_EQ(outputs_[0].flat<float>()(0), taken ? 1.5f : -1.5f);
    EXPECT_EQ(f.flat<float>()(0), 1.5f);
  }
  PlanOptions options;
  options.devices = devices_;
  EXPECT_THAT(
      Plan::Make(graph_, {{"f", "taken"}, {"input"}, {}}, &kernels_, options),
      StatusIs(StatusCode::kUnimplemented,
               "node 'input' (If): input 1 is on device '/device:NPU:0', but functions that "
               "run as separate plans take arguments only on device '/device:CPU:0'"));
  EXPECT_THAT(Plan::Make(graph_, {{"f", "taken"}, {"result"}, {}}, &kernels_, options),
              StatusIs(StatusCode::kUnimplemented,
                       "node 'result/neg' (Neg): the result of a function is on device "
                       "'/device:NPU:0', but functions that run as separate plans return "
                       "results only on device '/device:CPU:0'"));
}

}  // namespace
}  // namespace gradflow
