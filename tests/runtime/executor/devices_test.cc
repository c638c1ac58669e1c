// Tests of plans with nodes on several devices: where their tensors are allocated, and what traces
// and errors show.
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gradflow/core/allocator.h"
#include "gradflow/proto/step_stats.pb.h"
#include "gradflow/runtime/executor/executor.h"
#include "gradflow/runtime/memory/pool_allocator.h"
#include "gradflow/runtime/plan/plan.h"
#include "gradflow/runtime/trace/trace_recorder.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/runtime/toy_ops.h"

namespace gradflow {
namespace {

using ::absl::StatusCode;
using ::gradflow::testing::Floats;
using ::gradflow::testing::Int;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::ToyNode;
using ::gradflow::testing::ToyRegistry;

// Allocates from the system and counts its blocks.
class CountingAllocator final : public Allocator {
 public:
  void* Allocate(size_t bytes) override {
    ++allocated_;
    return SystemAllocator()->Allocate(bytes);
  }
  void Deallocate(void* block, size_t bytes) override {
    ++freed_;
    SystemAllocator()->Deallocate(block, bytes);
  }
  int allocated() const { return allocated_; }
  int in_use() const { return allocated_ - freed_; }

 private:
  std::atomic<int> allocated_{0};
  std::atomic<int> freed_{0};
};

class DevicesTest : public ::testing::TestWithParam<int> {
 protected:
  void Add(const std::string& name, const std::string& op, const std::string& input, DataType dtype,
           const std::string& device) {
    NodeDef node = op == "Placeholder" ? ToyNode(name, op, {}, {{"dtype", dtype}})
                                       : ToyNode(name, op, {input}, {{"T", dtype}});
    node.set_device(device);
    GRADFLOW_ASSERT_OK(graph_.AddNode(std::move(node)).status());
  }
  std::shared_ptr<const Plan> MakePlan(const PlanNames& names) {
    PlanOptions options;
    options.devices = devices_;
    auto plan = Plan::Make(graph_, names, &kernels_, options);
    GRADFLOW_EXPECT_OK(plan.status());
    return plan.ok() ? *plan : nullptr;
  }

  Graph graph_{ToyRegistry()};
  KernelCache kernels_;
  std::vector<std::string> devices_ = {"/device:CPU:0", "/device:NPU:0"};
  std::shared_ptr<CountingAllocator> cpu_ = std::make_shared<CountingAllocator>();
  std::shared_ptr<CountingAllocator> npu_ = std::make_shared<CountingAllocator>();
  Executor executor_{Parallelism{GetParam(), GetParam()}, cpu_, nullptr, {{"/device:NPU:0", npu_}}};
};

INSTANTIATE_TEST_SUITE_P(Threads, DevicesTest, ::testing::Values(1, 2));

TEST_P(DevicesTest, NodesAllocateFromTheirDevice) {
  Add("x", "Placeholder", "", DT_FLOAT, "");
  Add("a", "Neg", "x", DT_FLOAT, "/device:CPU:0");
  Add("b", "Neg", "a", DT_FLOAT, "/job:localhost/replica:0/task:0/device:NPU:0");
  Add("c", "Neg", "b", DT_FLOAT, "/device:NPU:0");
  Add("d", "Neg", "c", DT_FLOAT, "");
  const auto plan = MakePlan({{"x"}, {"d"}, {}});
  const Tensor x = Floats({1.5f, -2.5f});
  std::vector<Tensor> outputs;
  TraceRecorder trace(*plan);
  GRADFLOW_ASSERT_OK(executor_.Run(plan, {&x}, {}, &outputs, &trace));
  EXPECT_EQ(outputs[0].flat<float>()(1), -2.5f);
  // `b` and `d` do not overwrite a tensor of another device. `c` overwrites the result of `b`.
  EXPECT_EQ(cpu_->allocated(), 2);
  EXPECT_EQ(npu_->allocated(), 1);
  EXPECT_EQ(cpu_->in_use(), 1);
  EXPECT_EQ(npu_->in_use(), 0);

  StepStats stats;
  trace.WriteTo(&stats);
  ASSERT_EQ(stats.dev_stats_size(), 2);
  EXPECT_EQ(stats.dev_stats(0).device(), "/job:localhost/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(stats.dev_stats(1).device(), "/job:localhost/replica:0/task:0/device:NPU:0");
  ASSERT_EQ(stats.dev_stats(1).node_stats_size(), 2);
  EXPECT_EQ(stats.dev_stats(1).node_stats(0).node_name(), "b");
  EXPECT_EQ(stats.dev_stats(1).node_stats(1).node_name(), "c");
  EXPECT_EQ(stats.dev_stats(0).node_stats_size(), 2);
}

TEST_P(DevicesTest, AsynchronousNodesAllocateFromTheirDevice) {
  Add("x", "Placeholder", "", DT_FLOAT, "");
  Add("later", "NegLater", "x", DT_FLOAT, "/device:NPU:0");
  const auto plan = MakePlan({{"x"}, {"later"}, {}});
  const Tensor x = Floats({4});
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(executor_.Run(plan, {&x}, {}, &outputs));
  EXPECT_EQ(outputs[0].flat<float>()(0), -4);
  EXPECT_EQ(npu_->allocated(), 1);
  EXPECT_EQ(cpu_->allocated(), 0);
}

TEST_P(DevicesTest, APlanForOtherDevicesDoesNotRun) {
  Add("x", "Placeholder", "", DT_FLOAT, "");
  Add("y", "Neg", "x", DT_FLOAT, "/device:NPU:0");
  const Tensor x = Floats({1});
  devices_ = {"/device:CPU:0", "/device:NPU:1"};
  const auto other = MakePlan({{"x"}, {"y"}, {}});
  EXPECT_THAT(executor_.Run(other, {&x}, {}, nullptr),
              StatusIs(StatusCode::kFailedPrecondition,
                       "the plan is for device '/device:NPU:1', which the executor does not have"));
  devices_ = {"/device:CPU:0", "/device:NPU:0", "/device:NPU:1"};
  const auto more = MakePlan({{"x"}, {"y"}, {}});
  EXPECT_THAT(executor_.Run(more, {&x}, {}, nullptr),
              StatusIs(StatusCode::kFailedPrecondition,
                       "the plan is for device '/device:NPU:1', which the executor does not have"));
  // A plan for fewer devices runs.
  devices_ = {"/device:CPU:0"};
  const auto fewer = MakePlan({{"x"}, {"y"}, {}});
  GRADFLOW_EXPECT_OK(executor_.Run(fewer, {&x}, {}, nullptr));
  EXPECT_EQ(npu_->allocated(), 0);
}

TEST_P(DevicesTest, ConstantsAreNotFoldedOnOtherDevices) {
  NodeDef two = ToyNode("two", "Const", {}, {{"dtype", DT_INT64}, {"value", Int(2)}});
  GRADFLOW_ASSERT_OK(graph_.AddNode(std::move(two)).status());
  Add("here", "Neg", "two", DT_INT64, "");
  Add("there", "Neg", "two", DT_INT64, "/device:NPU:0");
  const auto plan = MakePlan({{}, {"here", "there"}, {}});
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(executor_.Run(plan, {}, {}, &outputs));
  EXPECT_EQ(outputs[0].scalar<int64_t>()(), -2);
  EXPECT_EQ(outputs[1].scalar<int64_t>()(), -2);
  int folded = 0;
  for (const Plan::NodeItem& node : plan->nodes().first(plan->num_nodes())) {
    // A folded node has no inputs. Its inputs end where those of the next node begin.
    if (node.node->type_string() == "Neg" && node.inputs_begin == (&node + 1)->inputs_begin)
      ++folded;
  }
  EXPECT_EQ(folded, 1);
}

}  // namespace
}  // namespace gradflow
