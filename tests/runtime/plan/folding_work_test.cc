// Tests that a plan does not depend on time, threads or other plans. With fold_batch_norms, the set
// of folded constants affects the bits of results.
//
// Constant folding of a plan stops after a limit of work, PlanBudget::kMaxFoldingWork (300,000,000
// units). A block of a loop counts as 20,000 units, however long it takes.
//
// This program defines its own clock_gettime(), which std::chrono calls. A kernel can therefore
// seem to take an hour.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/graph/graph.h"
#include "gradflow/ops/register.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/runtime/plan/kernel_cache.h"
#include "gradflow/runtime/plan/plan.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/runtime/toy_ops.h"

namespace {

// Seconds that are added to the monotonic clock.
std::atomic<int64_t> seconds_ahead{0};

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (clock == CLOCK_MONOTONIC) time->tv_sec += seconds_ahead.load();
  return result;
}

namespace gradflow {
namespace {

using ::gradflow::testing::AddToy;
using ::gradflow::testing::AsTensor;
using ::gradflow::testing::RandomTensor;
using ::gradflow::testing::TensorEq;
using ::gradflow::testing::ToyNode;

// The hours that seem to pass in each kernel of Work.
std::atomic<int64_t> hours_of_work{0};

// Returns its input after a loop of `blocks` empty blocks.
class WorkKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("blocks", &blocks_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    ParallelFor(ctx, blocks_, 1, [](int64_t, int64_t) {});
    seconds_ahead += 3600 * hours_of_work;
    ctx.set_output(0, ctx.input(0));
    return absl::OkStatus();
  }

 private:
  int64_t blocks_ = 0;
};

const Registry& WorkRegistry() {
  static const Registry* const registry = [] {
    auto* const result = new Registry();
    RegisterStandardOps(*result);
    result->Op("Work")
        .Input("x: float")
        .Output("y: float")
        .Attr("blocks: int")
        .Shape(UnchangedShape);
    result->Kernel("Work", MakeKernel<WorkKernel>);
    return result;
  }();
  return *registry;
}

class FoldingWorkTest : public ::testing::Test {
 protected:
  ~FoldingWorkTest() override {
    hours_of_work = 0;
    seconds_ahead = 0;
  }

  // A convolution and a batch normalization. The constants of the normalization are results of
  // Work.
  static GraphDef BatchNorm(int64_t blocks) {
    GraphDef graph;
    const auto add = [&](NodeDef node) { *graph.add_node() = std::move(node); };
    const auto add_constant = [&](const std::string& name, const Tensor& value) {
      add(ToyNode(name, "Const", {}, {{"value", value}, {"dtype", DT_FLOAT}}));
    };
    add(ToyNode("x", "Placeholder", {}, {{"dtype", DT_FLOAT}}));
    add_constant("w", RandomTensor(DT_FLOAT, {3, 3, 4, 8}, -1, 1, 1));
    add(ToyNode(
        "conv", "Conv2D", {"x", "w"},
        {{"T", DT_FLOAT}, {"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", "SAME"}}));
    std::vector<std::string> inputs = {"conv"};
    for (const char* name : {"scale", "offset", "mean", "variance"}) {
      add_constant(absl::StrCat(name, "_const"),
                   RandomTensor(DT_FLOAT, {8}, 0.5, 1.5, inputs.size()));
      add(ToyNode(name, "Work", {absl::StrCat(name, "_const")}, {{"blocks", blocks}}));
      inputs.emplace_back(name);
    }
    add(ToyNode("y", "FusedBatchNormV3", inputs,
                {{"T", DT_FLOAT}, {"U", DT_FLOAT}, {"is_training", false}}));
    return graph;
  }

  // Runs the graph with fold_batch_norms after running each node of `before`. Returns y.
  static Tensor Run(const GraphDef& graph, int threads, const std::vector<std::string>& before) {
    SessionOptions options;
    options.fold_batch_norms = true;
    options.config.set_intra_op_parallelism_threads(threads);
    options.config.set_inter_op_parallelism_threads(threads);
    auto session = Session::Make(options, WorkRegistry());
    GRADFLOW_EXPECT_OK(session.status());
    if (!session.ok()) return Tensor();
    GRADFLOW_EXPECT_OK((*session)->Create(graph));
    std::vector<Tensor> outputs;
    for (const std::string& name : before) {
      GRADFLOW_EXPECT_OK((*session)->Run({}, {name}, {}, &outputs));
    }
    const Tensor x = RandomTensor(DT_FLOAT, {1, 9, 9, 4}, -1, 1, 7);
    GRADFLOW_EXPECT_OK((*session)->Run({{"x", x}}, {"y"}, {}, &outputs));
    return outputs.empty() ? Tensor() : outputs[0];
  }
};

// A chain of nodes. The limit is reached in the middle of the chain.
TEST_F(FoldingWorkTest, PlansDoNotDependOnTime) {
  Graph graph(WorkRegistry());
  GRADFLOW_ASSERT_OK(
      AddToy(&graph, "n0", "Const", {}, {{"value", AsTensor<float>({1, 2})}, {"dtype", DT_FLOAT}}));
  constexpr int kNodes = 30;
  for (int i = 1; i <= kNodes; ++i) {
    GRADFLOW_ASSERT_OK(AddToy(&graph, absl::StrCat("n", i), "Work", {absl::StrCat("n", i - 1)},
                              {{"blocks", 1000}}));
  }
  const auto nodes = [&] {
    KernelCache kernels;
    const auto plan = Plan::Make(graph, {{}, {absl::StrCat("n", kNodes)}, {}}, &kernels);
    GRADFLOW_EXPECT_OK(plan.status());
    std::vector<std::string> names;
    for (int i = 0; plan.ok() && i < (*plan)->num_nodes(); ++i) {
      names.push_back((*plan)->nodes()[i].node->name());
    }
    return names;
  };
  const std::vector<std::string> expected = nodes();
  // Some nodes are folded, but not all.
  EXPECT_LT(expected.size(), kNodes);
  EXPECT_GT(expected.size(), 2);
  for (const int64_t hours : {1, 24}) {
    hours_of_work = hours;
    EXPECT_EQ(nodes(), expected) << hours;
  }
}

TEST_F(FoldingWorkTest, BitsDoNotDependOnTimeOrThreads) {
  // The first graph is within the limit. The second one exceeds it at its second constant.
  std::vector<Tensor> results;
  for (const int64_t blocks : {10, 10000}) {
    const GraphDef graph = BatchNorm(blocks);
    hours_of_work = 0;
    const Tensor expected = Run(graph, 1, {});
    for (const int64_t hours : {0, 1}) {
      for (const int threads : {1, 2, 8}) {
        hours_of_work = hours;
        EXPECT_THAT(Run(graph, threads, {}), TensorEq(expected))
            << blocks << " blocks, " << hours << " hours, " << threads << " threads";
      }
    }
    results.push_back(expected);
  }
  // Folding changes the bits.
  EXPECT_NE(results[0].tensor_data(), results[1].tensor_data());
}

TEST_F(FoldingWorkTest, BitsDoNotDependOnEarlierPlans) {
  const GraphDef graph = BatchNorm(10000);
  const Tensor expected = Run(graph, 1, {});
  EXPECT_THAT(Run(graph, 1, {"scale", "offset", "mean", "variance"}), TensorEq(expected));
}

}  // namespace
}  // namespace gradflow
