// Tests of PlanGraph, the intermediate form of a plan: passes that insert, replace and fuse nodes,
// and how runs, errors, traces and fetches show the result.
#include "gradflow/runtime/plan/plan_graph.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/proto/step_stats.pb.h"
#include "gradflow/runtime/executor/executor.h"
#include "gradflow/runtime/memory/pool_allocator.h"
#include "gradflow/runtime/plan/copied_values.h"
#include "gradflow/runtime/plan/passes.h"
#include "gradflow/runtime/plan/plan.h"
#include "gradflow/runtime/trace/trace_recorder.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/runtime/toy_ops.h"

namespace gradflow {
namespace {

using ::absl::StatusCode;
using ::gradflow::testing::AddToy;
using ::gradflow::testing::Int;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::ToyAttrs;
using ::gradflow::testing::ToyCounter;
using ::gradflow::testing::ToyRegistry;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Value = PlanGraph::Value;

// Returns its input, but fails for the number 13.
class CheckKernel final : public OpKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    if (ctx.input(0).scalar<int64_t>()() == 13) return absl::OutOfRangeError("13 brings no luck");
    ctx.set_output(0, ctx.input(0));
    return absl::OkStatus();
  }
};

// Returns x - y, and y - x as the second output.
class SubtractKernel final : public OpKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    const int64_t x = ctx.input(0).scalar<int64_t>()();
    const int64_t y = ctx.input(1).scalar<int64_t>()();
    if (x == y) return errors::InvalidArgument("x and y are equal");
    ctx.set_output(0, Int(x - y));
    ctx.set_output(1, Int(y - x));
    return absl::OkStatus();
  }
};

bool IsOp(const PlanGraph& graph, int32_t node, absl::string_view op) {
  return graph.label(node) == nullptr && graph.origin(node).type_string() == op;
}

// Inserts a Check on each data edge that starts at a "Neg".
absl::Status InsertChecks(const PassContext&, PlanGraph* graph) {
  std::vector<std::pair<int32_t, int>> edges;
  for (const int32_t node : graph->order()) {
    for (int i = 0; i < graph->num_inputs(node); ++i) {
      const Value source = graph->edge(node, i);
      if (!source.is_feed() && IsOp(*graph, source.node, "Neg")) edges.emplace_back(node, i);
    }
  }
  for (const auto& [node, i] : edges) {
    const Value source = graph->edge(node, i);
    PlanGraph::NewNode check;
    const Node& neg = graph->origin(source.node);
    check.label = {absl::StrCat(neg.name(), "/check"), "Check", {&neg}};
    check.kernel = std::make_shared<CheckKernel>();
    check.output_types = {DT_INT64};
    check.inputs = {source};
    graph->SetEdge(node, i, {graph->AddNode(std::move(check)), 0});
  }
  return absl::OkStatus();
}

// Replaces Add(x, Neg(y)) by x - y unless another node reads the Neg.
absl::Status FuseSubtract(const PassContext&, PlanGraph* graph) {
  const std::vector<int32_t> uses = graph->CountUses();
  const std::vector<int32_t> order(graph->order().begin(), graph->order().end());
  for (const int32_t node : order) {
    if (!IsOp(*graph, node, "Add")) continue;
    const Value right = graph->edge(node, 1);
    if (right.is_feed() || !IsOp(*graph, right.node, "Neg") || uses[right.node] != 1) continue;
    PlanGraph::NewNode fused;
    fused.label = {
        graph->origin(node).name(), "Subtract", {&graph->origin(right.node), &graph->origin(node)}};
    fused.kernel = std::make_shared<SubtractKernel>();
    fused.output_types = {DT_INT64, DT_INT64};
    fused.inputs = {graph->edge(node, 0), graph->edge(right.node, 0)};
    for (const int32_t from : {right.node, node}) {
      for (int i = graph->num_inputs(from); i < graph->num_edges(from); ++i) {
        if (!graph->edge(from, i).is_feed())
          fused.control_inputs.push_back(graph->edge(from, i).node);
      }
    }
    const int32_t by = graph->AddNode(std::move(fused));
    graph->Replace(node, by, {{by, 0}});
  }
  return absl::OkStatus();
}

// Exchanges the outputs of "Mix" nodes.
absl::Status ExchangeOutputs(const PassContext&, PlanGraph* graph) {
  const std::vector<int32_t> order(graph->order().begin(), graph->order().end());
  for (const int32_t node : order) {
    if (!IsOp(*graph, node, "Mix")) continue;
    PlanGraph::NewNode other;
    other.label = {graph->origin(node).name(), "Subtract", {&graph->origin(node)}};
    other.kernel = std::make_shared<SubtractKernel>();
    other.output_types = {DT_INT64, DT_INT64};
    other.inputs = {graph->edge(node, 0), graph->edge(node, 1)};
    const int32_t by = graph->AddNode(std::move(other));
    graph->Replace(node, by, {{by, 1}, {by, 0}});
  }
  return absl::OkStatus();
}

// Makes the first "Neg" read the result of the last "Neg".
absl::Status MakeCycle(const PassContext&, PlanGraph* graph) {
  std::vector<int32_t> negs;
  for (const int32_t node : graph->order()) {
    if (IsOp(*graph, node, "Neg")) negs.push_back(node);
  }
  graph->SetEdge(negs.front(), 0, {negs.back(), 0});
  return absl::OkStatus();
}

// Replaces each input of a "Neg" by the value that it copies.
absl::Status SkipCopies(const PassContext&, PlanGraph* graph) {
  const CopiedValues copied(*graph);
  for (const int32_t node : graph->order()) {
    if (IsOp(*graph, node, "Neg")) graph->SetEdge(node, 0, copied.SourceOf(graph->edge(node, 0)));
  }
  return graph->Prune();
}

absl::Status Refuse(const PassContext&, PlanGraph*) {
  return absl::UnimplementedError("not this plan");
}

// The parameter is the number of threads.
class PlanGraphTest : public ::testing::TestWithParam<int> {
 protected:
  void Add(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
           const ToyAttrs& attrs = {}) {
    GRADFLOW_ASSERT_OK(AddToy(&graph_, name, op, inputs, attrs));
  }
  void AddInt(const std::string& op, const std::string& name,
              const std::vector<std::string>& inputs) {
    Add(name, op, inputs, {{"T", DT_INT64}});
  }
  void AddPlaceholder(const std::string& name) {
    Add(name, "Placeholder", {}, {{"dtype", DT_INT64}});
  }

  absl::StatusOr<std::shared_ptr<const Plan>> Make(const PlanNames& names,
                                                   std::vector<PlanPass> passes) {
    PlanOptions options;
    options.passes = passes;
    return Plan::Make(graph_, names, &kernels_, options);
  }
  // Returns the fetched scalars. Writes the names of the nodes that ran, taken from the trace.
  absl::StatusOr<std::vector<int64_t>> Run(const std::shared_ptr<const Plan>& plan,
                                           const std::vector<int64_t>& feeds,
                                           std::vector<std::string>* ran = nullptr) {
    std::vector<Tensor> tensors;
    for (const int64_t feed : feeds) tensors.push_back(Int(feed));
    std::vector<const Tensor*> pointers;
    for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
    std::vector<Tensor> outputs;
    TraceRecorder trace(*plan);
    GRADFLOW_RETURN_IF_ERROR(
        executor_.Run(plan, pointers, {}, &outputs, ran == nullptr ? nullptr : &trace));
    if (ran != nullptr) {
      StepStats stats;
      trace.WriteTo(&stats);
      for (const auto& node : stats.dev_stats(0).node_stats()) {
        ran->push_back(absl::StrCat(node.node_name(), "|", node.timeline_label()));
      }
    }
    std::vector<int64_t> results;
    for (const Tensor& output : outputs) results.push_back(output.scalar<int64_t>()());
    return results;
  }

  Graph graph_{ToyRegistry()};
  KernelCache kernels_;
  Executor executor_{GetParam(), std::make_shared<PoolAllocator>()};
};

INSTANTIATE_TEST_SUITE_P(Threads, PlanGraphTest, ::testing::Values(1, 2));

TEST_P(PlanGraphTest, CopiedValuesFollowIdentities) {
  AddPlaceholder("x");
  AddInt("Neg", "neg", {"x"});
  AddInt("Identity", "copy_0", {"neg"});
  for (int i = 1; i < 100; ++i) {
    AddInt("Identity", absl::StrCat("copy_", i), {absl::StrCat("copy_", i - 1)});
  }
  AddInt("Neg", "second", {"copy_99"});
  AddInt("Identity", "copy_x", {"x"});
  AddInt("Neg", "third", {"copy_x"});
  AddInt("Add", "sum", {"second", "third"});
  const PlanNames names = {{"x"}, {"sum"}, {}};
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto plan, Make(names, {SkipCopies}));
  std::vector<std::string> ran;
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto results, Run(plan, {5}, &ran));
  EXPECT_THAT(results, ElementsAre(0));
  EXPECT_THAT(ran,
              UnorderedElementsAre("neg|neg = Neg(x)", "second|second = Neg(copy_99)",
                                   "third|third = Neg(copy_x)", "sum|sum = Add(second, third)"));
}

TEST_P(PlanGraphTest, APassInsertsNodes) {
  AddPlaceholder("x");
  AddInt("Neg", "neg", {"x"});
  AddInt("Add", "sum", {"neg", "x"});
  AddInt("Add", "more", {"sum", "neg"});
  const PlanNames names = {{"x"}, {"more", "neg"}, {}};
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto plan, Make(names, {InsertChecks}));
  EXPECT_EQ(plan->num_nodes(), 5);
  std::vector<std::string> ran;
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto results, Run(plan, {4}, &ran));
  EXPECT_THAT(results, ElementsAre(-4, -4));
  EXPECT_THAT(ran, UnorderedElementsAre("neg|neg = Neg(x)", "neg/check|neg/check = Check(neg)",
                                        "neg/check|neg/check = Check(neg)", "sum|sum = Add(neg, x)",
                                        "more|more = Add(sum, neg)"));
  EXPECT_THAT(
      Run(plan, {-13}).status(),
      StatusIs(StatusCode::kOutOfRange, "node 'neg' (Neg), run as Check: 13 brings no luck"));
}

TEST_P(PlanGraphTest, APassFusesNodes) {
  ToyCounter(0) = 0;
  AddPlaceholder("x");
  AddPlaceholder("y");
  Add("tick", "Tick", {"x"}, {{"counter", 0}});
  AddInt("Neg", "neg", {"y", "^tick"});
  AddInt("Add", "sum", {"x", "neg"});
  AddInt("Add", "sum2", {"sum", "sum"});
  AddInt("Neg", "after", {"x", "^sum"});
  const PlanNames names = {{"x", "y"}, {"sum2", "sum", "after"}, {}};
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto plan, Make(names, {FuseSubtract}));
  std::vector<std::string> ran;
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto results, Run(plan, {10, 3}, &ran));
  EXPECT_THAT(results, ElementsAre(14, 7, -10));
  EXPECT_EQ(ToyCounter(0), 1);
  EXPECT_THAT(ran, UnorderedElementsAre(HasSubstr("tick|"), "sum|sum = Subtract(neg, sum)",
                                        HasSubstr("sum2|"), HasSubstr("after|")));
  EXPECT_THAT(Run(plan, {3, 3}).status(),
              StatusIs(StatusCode::kInvalidArgument,
                       "nodes 'neg' (Neg), 'sum' (Add), run as Subtract: x and y are equal"));
  // A fetched part is not fused.
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto part,
                                Make({{"x", "y"}, {"sum", "neg"}, {}}, {FuseSubtract}));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto parts, Run(part, {10, 3}));
  EXPECT_THAT(parts, ElementsAre(7, -3));
}

TEST_P(PlanGraphTest, OutputsAreReplacedOneByOne) {
  AddPlaceholder("x");
  AddPlaceholder("y");
  Add("mix", "Mix", {"x", "y"});
  AddInt("Neg", "neg", {"mix:1"});
  const PlanNames names = {{"x", "y"}, {"mix", "mix:1", "neg"}, {"mix"}};
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto plan, Make(names, {ExchangeOutputs}));
  EXPECT_EQ(plan->num_nodes(), 2);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto results, Run(plan, {10, 3}));
  EXPECT_THAT(results, ElementsAre(-7, 7, -7));
}

TEST_P(PlanGraphTest, PassesRunInTheirOrder) {
  AddPlaceholder("x");
  AddInt("Neg", "neg", {"x"});
  AddInt("Add", "sum", {"x", "neg"});
  const PlanNames names = {{"x"}, {"sum"}, {}};
  // After the check has been inserted, no Add reads a Neg.
  for (const bool check_first : {true, false}) {
    GRADFLOW_ASSERT_OK_AND_ASSIGN(
        const auto plan,
        Make(names, check_first ? std::vector<PlanPass>{InsertChecks, FuseSubtract}
                                : std::vector<PlanPass>{FuseSubtract, InsertChecks}));
    EXPECT_EQ(plan->num_nodes(), check_first ? 3 : 1);
  }
}

TEST_P(PlanGraphTest, ErrorsOfPassesEndThePlan) {
  AddPlaceholder("x");
  AddInt("Neg", "a", {"x"});
  AddInt("Neg", "b", {"a"});
  const PlanNames names = {{"x"}, {"b"}, {}};
  EXPECT_THAT(Make(names, {MakeCycle}).status(),
              StatusIs(StatusCode::kInternal, "node 'a' (Neg): the plan has a cycle"));
  EXPECT_THAT(Make(names, {Refuse}).status(),
              StatusIs(StatusCode::kUnimplemented, "not this plan"));
}

TEST_P(PlanGraphTest, LongLabelsAreShortened) {
  std::vector<PlanOrigin> origins;
  for (int i = 0; i < 6; ++i) {
    AddPlaceholder(absl::StrCat("p", i));
    origins.push_back(graph_.FindNode(absl::StrCat("p", i)));
  }
  const PlanNodeLabel label = {"all", "Together", origins};
  EXPECT_EQ(PlanNodePrefix(origins[0], &label),
            "nodes 'p0' (Placeholder), 'p1' (Placeholder), 'p2' (Placeholder), 'p3' (Placeholder), "
            "2 more, run as Together: ");
}

}  // namespace
}  // namespace gradflow
