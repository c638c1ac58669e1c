// Tests of common-subexpression elimination and constant folding, in plans and runs.
#include "gradflow/runtime/plan/passes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/proto/step_stats.pb.h"
#include "gradflow/runtime/executor/executor.h"
#include "gradflow/runtime/memory/pool_allocator.h"
#include "gradflow/runtime/plan/plan.h"
#include "gradflow/runtime/session/session.h"
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
using ::gradflow::testing::ToyCounter;
using ::gradflow::testing::ToyNode;
using ::gradflow::testing::ToyRegistry;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr PlanOptions kNone = {/*eliminate_common_subexpressions=*/false, /*max_folded_bytes=*/0};
constexpr PlanOptions kMerge = {/*eliminate_common_subexpressions=*/true, /*max_folded_bytes=*/0};
constexpr PlanOptions kFold = {/*eliminate_common_subexpressions=*/false};

class NoKernel final : public OpKernel {
 public:
  absl::Status Compute(KernelContext&) const override { return absl::OkStatus(); }
};

class PassesTest : public ::testing::Test {
 protected:
  void Add(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
           const ToyAttrs& attrs = {}) {
    GRADFLOW_ASSERT_OK(AddToy(&graph_, name, op, inputs, attrs));
  }
  void AddInt(const std::string& op, const std::string& name,
              const std::vector<std::string>& inputs) {
    Add(name, op, inputs, {{"T", DT_INT64}});
  }
  void AddConst(const std::string& name, const Tensor& value,
                const std::vector<std::string>& inputs = {}) {
    Add(name, "Const", inputs, {{"value", value}, {"dtype", value.dtype()}});
  }
  void AddPlaceholder(const std::string& name) {
    Add(name, "Placeholder", {}, {{"dtype", DT_INT64}});
  }

  // Returns the names of the nodes that a plan runs.
  std::vector<std::string> NodesOf(const PlanNames& names, const PlanOptions& options) {
    const auto plan = Plan::Make(graph_, names, &kernels_, options);
    EXPECT_THAT(plan, IsOk());
    std::vector<std::string> result;
    for (int i = 0; plan.ok() && i < (*plan)->num_nodes(); ++i) {
      result.push_back((*plan)->nodes()[i].node->name());
    }
    return result;
  }

  absl::StatusOr<std::vector<Tensor>> Run(const PlanNames& names, const std::vector<Tensor>& feeds,
                                          const PlanOptions& options) {
    GRADFLOW_ASSIGN_OR_RETURN(const auto plan, Plan::Make(graph_, names, &kernels_, options));
    std::vector<const Tensor*> fed;
    for (const Tensor& feed : feeds) fed.push_back(&feed);
    std::vector<Tensor> outputs;
    GRADFLOW_RETURN_IF_ERROR(executor_.Run(plan, fed, RunLimits(), &outputs));
    return outputs;
  }
  // Runs and returns the fetched scalars.
  std::vector<int64_t> Ints(const PlanNames& names, const std::vector<Tensor>& feeds,
                            const PlanOptions& options) {
    const auto outputs = Run(names, feeds, options);
    EXPECT_THAT(outputs, IsOk());
    std::vector<int64_t> values;
    if (!outputs.ok()) return values;
    for (const Tensor& output : *outputs) values.push_back(output.scalar<int64_t>()());
    return values;
  }

  Graph graph_{ToyRegistry()};
  KernelCache kernels_;
  const Executor executor_{1, std::make_shared<PoolAllocator>()};
};

// ---- Common-subexpression elimination ----

TEST_F(PassesTest, EliminatesCommonSubexpressions) {
  AddPlaceholder("x");
  AddPlaceholder("y");
  AddInt("Neg", "a", {"x"});
  AddInt("Neg", "b", {"x:0"});
  AddInt("Neg", "c", {"y"});
  Add("mix", "Mix", {"a", "c"});
  Add("mix2", "Mix", {"b", "c"});
  AddInt("Add", "sum", {"mix", "mix2:1"});
  const PlanNames names = {{"x", "y"}, {"sum", "b"}, {}};
  EXPECT_THAT(NodesOf(names, kMerge), ElementsAre("a", "c", "mix", "sum"));
  EXPECT_THAT(NodesOf(names, kNone), ElementsAre("a", "c", "mix", "b", "mix2", "sum"));
  const std::vector<Tensor> feeds = {Int(5), Int(7)};
  EXPECT_EQ(Ints(names, feeds, kMerge), Ints(names, feeds, kNone));
}

TEST_F(PassesTest, KeepsNodesThatDiffer) {
  AddPlaceholder("x");
  Add("f", "Placeholder", {}, {{"dtype", DT_FLOAT}});
  AddInt("Neg", "other_op", {"x"});
  AddInt("Identity", "identity", {"x"});
  Add("other_type", "Identity", {"f"}, {{"T", DT_FLOAT}});
  Add("even2", "Even", {"x"}, {{"n", 2}});
  Add("even4", "Even", {"x"}, {{"n", 4}});
  Add("more_attrs", "Even", {"x"}, {{"n", 2}, {"_note", "mine"}});
  AddInt("Identity", "after", {"x", "^other_op"});
  AddInt("Identity", "after_another", {"x", "^identity"});
  AddInt("Add", "ab", {"identity", "x"});
  AddInt("Add", "ba", {"x", "identity"});
  NodeDef device = ToyNode("device", "Identity", {"x"}, {{"T", DT_INT64}});
  device.set_device("/cpu:0");
  GRADFLOW_ASSERT_OK(graph_.AddNode(std::move(device)));
  // Nodes with side effects, and placeholders, are kept.
  Add("tick", "Tick", {"x"}, {{"counter", 7}});
  Add("tick2", "Tick", {"x"}, {{"counter", 7}});
  AddPlaceholder("x2");
  PlanNames names;
  for (int i = 0; i < graph_.num_nodes(); ++i) names.targets.push_back(graph_.node(i)->name());
  EXPECT_THAT(NodesOf(names, kMerge), names.targets);
}

TEST_F(PassesTest, ComparesConstantsByTheirBits) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  AddConst("zero", Floats({0.f}));
  AddConst("minus_zero", Floats({-0.f}));
  AddConst("zero2", Floats({0.f}));
  AddConst("nan", Floats({nan}));
  AddConst("nan2", Floats({nan}));
  AddConst("zeros", Floats({0.f, 0.f}));
  // Two constants that are too large to be compared are kept.
  Tensor large(DT_FLOAT, {5000});
  for (int i = 0; i < 5000; ++i) large.flat<float>()(i) = static_cast<float>(i);
  AddConst("large", large);
  AddConst("large2", large);
  PlanNames names;
  for (int i = 0; i < graph_.num_nodes(); ++i) names.targets.push_back(graph_.node(i)->name());
  EXPECT_THAT(NodesOf(names, kMerge),
              ElementsAre("zero", "minus_zero", "nan", "zeros", "large", "large2"));
  const auto outputs = Run({{}, {"minus_zero", "zero2"}, {}}, {}, kMerge);
  ASSERT_THAT(outputs, IsOk());
  EXPECT_TRUE(std::signbit((*outputs)[0].flat<float>()(0)));
  EXPECT_FALSE(std::signbit((*outputs)[1].flat<float>()(0)));
}

TEST_F(PassesTest, KeepsControlDependenciesOfEliminatedNodes) {
  AddPlaceholder("x");
  Add("tick", "Tick", {"x"}, {{"counter", 8}});
  AddInt("Neg", "a", {"x", "^tick"});
  AddInt("Neg", "b", {"x", "^tick"});
  Add("after_b", "NoOp", {"^b"});
  Add("after_both", "NoOp", {"^a", "^b"});
  EXPECT_THAT(NodesOf({{"x"}, {}, {"after_b", "after_both", "a"}}, kMerge),
              ElementsAre("tick", "b", "after_b", "after_both"));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto plan,
                                Plan::Make(graph_, {{"x"}, {}, {"after_both"}}, &kernels_, kMerge));
  EXPECT_THAT(plan->pending(), ElementsAre(0, 1, 1));
}

TEST_F(PassesTest, FeedsOfEliminatedNodesReplaceOnlyThose) {
  AddPlaceholder("x");
  Add("mix", "Mix", {"x", "x"});
  Add("mix2", "Mix", {"x", "x"});
  AddInt("Add", "sum", {"mix", "mix:1"});
  AddInt("Add", "sum2", {"mix2", "mix2:1"});
  for (const std::vector<std::string>& fed :
       {std::vector<std::string>{"x", "mix"}, {"x", "mix2:1"}, {"x", "mix:1", "mix2:0"}}) {
    const PlanNames names = {fed, {"sum", "sum2", "mix:1", "mix2", "mix2:1"}, {}};
    const std::vector<Tensor> feeds = {Int(3), Int(100), Int(10000)};
    const std::vector<Tensor> given(feeds.begin(), feeds.begin() + fed.size());
    EXPECT_EQ(Ints(names, given, kMerge), Ints(names, given, kNone));
  }
  EXPECT_THAT(NodesOf({{"x", "mix2:1"}, {"sum", "sum2"}, {}}, kMerge),
              ElementsAre("mix", "sum", "sum2"));
}

TEST_F(PassesTest, ErrorsOfEliminatedNodesNameTheFirst) {
  AddPlaceholder("x");
  Add("fail", "Fail", {"x"});
  Add("fail2", "Fail", {"x"});
  AddInt("Add", "sum", {"fail2", "fail"});
  const PlanNames names = {{"x"}, {"sum"}, {}};
  ASSERT_THAT(NodesOf(names, kMerge), ElementsAre("fail2", "sum"));
  for (const PlanOptions& options : {kMerge, kNone}) {
    EXPECT_THAT(Run(names, {Int(1)}, options),
                StatusIs(StatusCode::kInvalidArgument, "node 'fail2' (Fail): failed"));
  }
  Add("odd", "Even", {"x"}, {{"n", 3}});
  Add("odd2", "Even", {"x"}, {{"n", 3}});
  for (const PlanOptions& options : {kMerge, kNone}) {
    EXPECT_THAT(
        Run({{"x"}, {"odd2", "odd"}, {}}, {Int(1)}, options),
        StatusIs(StatusCode::kInvalidArgument, "node 'odd2' (Even): n must be even, but is 3"));
  }
}

// ---- Constant folding ----

TEST_F(PassesTest, FoldsNodesOfConstants) {
  AddPlaceholder("x");
  AddConst("two", Int(2));
  AddConst("five", Int(5));
  AddInt("Add", "seven", {"two", "five"});
  Add("mix", "Mix", {"seven", "two"});
  AddInt("Neg", "neg", {"mix"});
  AddInt("Add", "y", {"x", "neg"});
  AddInt("Add", "z", {"y", "mix:1"});
  const PlanNames names = {{"x"}, {"z"}, {}};
  EXPECT_THAT(NodesOf(names, kFold), ElementsAre("neg", "y", "mix", "z"));
  KernelCache kernels;
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto plan, Plan::Make(graph_, names, &kernels, kFold));
  EXPECT_THAT(plan->pending(), ElementsAre(0, 1, 0, 2));
  // neg = -(3 * 7 - 2), mix:1 = 7 ^ 2.
  EXPECT_THAT(Ints(names, {Int(100)}, kFold), ElementsAre(100 - 19 + 5));
  EXPECT_THAT(Ints(names, {Int(100)}, kNone), ElementsAre(100 - 19 + 5));

  // Fetches and targets exist even if folded or eliminated.
  const PlanNames all = {{}, {"two", "seven", "mix", "mix:1", "seven"}, {"neg", "five"}};
  EXPECT_EQ(Ints(all, {}, kFold), Ints(all, {}, kNone));
  // The plan owns the values: a run does not change them.
  EXPECT_EQ(Ints(all, {}, PlanOptions()), Ints(all, {}, kNone));
}

TEST_F(PassesTest, RunsAFoldedNodeOncePerPlan) {
  AddConst("x", Floats({1, 2}));
  Add("reuse", "Reuse", {"x"});
  Add("neg", "Neg", {"reuse"}, {{"T", DT_FLOAT}});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto plan,
                                Plan::Make(graph_, {{}, {"neg", "reuse"}, {}}, &kernels_, kFold));
  for (int i = 0; i < 3; ++i) {
    std::vector<Tensor> outputs;
    GRADFLOW_ASSERT_OK(executor_.Run(plan, {}, RunLimits(), &outputs));
    EXPECT_THAT(outputs[0].span<float>(), ElementsAre(-1, -2));
    EXPECT_THAT(outputs[1].span<float>(), ElementsAre(1, 2));
  }
  EXPECT_EQ(plan->num_nodes(), 2);
}

TEST_F(PassesTest, FoldsANodeOnceForAllPlans) {
  AddPlaceholder("x");
  AddConst("two", Int(2));
  AddConst("five", Int(5));
  Add("count", "TickPurely", {"two"}, {{"counter", 12}});
  AddInt("Neg", "a", {"count"});
  AddInt("Neg", "b", {"five"});
  AddInt("Add", "y", {"x", "a"});
  AddInt("Add", "z", {"a", "b"});
  ToyCounter(12) = 0;
  for (const PlanOptions& options : {kFold, PlanOptions()}) {
    EXPECT_THAT(Ints({{"x"}, {"y"}, {}}, {Int(10)}, options), ElementsAre(8));
    EXPECT_THAT(Ints({{"x"}, {"y", "a", "b"}, {}}, {Int(10)}, options), ElementsAre(8, -2, -5));
    EXPECT_THAT(Ints({{}, {"a", "z"}, {"b"}}, {}, options), ElementsAre(-2, -7));
    EXPECT_THAT(NodesOf({{"x"}, {"y"}, {}}, options), ElementsAre("a", "y"));
    EXPECT_EQ(ToyCounter(12), 1);
  }
  // Feeds change the value; no folded value may remain.
  EXPECT_THAT(Ints({{"two", "x"}, {"y"}, {}}, {Int(3), Int(10)}, kFold), ElementsAre(7));
  EXPECT_THAT(Ints({{"count", "x"}, {"y"}, {}}, {Int(4), Int(10)}, kFold), ElementsAre(6));
  EXPECT_THAT(Ints({{"a", "x"}, {"y"}, {}}, {Int(4), Int(10)}, kFold), ElementsAre(14));
  EXPECT_THAT(Ints({{"x"}, {"y"}, {}}, {Int(10)}, kFold), ElementsAre(8));
  // Without folding there is no error.
  EXPECT_THAT(NodesOf({{"x"}, {"y"}, {}}, kNone), ElementsAre("two", "count", "a", "y"));

  // A folding that failed is not retried.
  Add("endless", "LoopForeverPurely", {"two"}, {{"counter", 13}});
  ToyCounter(13) = 0;
  for (int i = 0; i < 3; ++i) NodesOf({{}, {"endless"}, {}}, kFold);
  EXPECT_EQ(ToyCounter(13), 1);
}

TEST_F(PassesTest, KeepsFoldedNodesWithinTheBound) {
  AddConst("c", Int(2));
  for (const char* const name : {"a", "b", "d"}) AddInt("Neg", name, {"c"});
  const auto add = [&](const char* name, int64_t bytes) {
    kernels_.AddFolded(*graph_.FindNode(name), {std::make_shared<NoKernel>(), bytes}, 100);
  };
  const auto has = [&](const char* name) {
    return kernels_.FindFolded(*graph_.FindNode(name)).kernel != nullptr;
  };
  add("a", 40);
  add("b", 60);
  EXPECT_TRUE(has("a") && has("b"));
  add("d", 101);
  EXPECT_TRUE(has("a") && has("b") && !has("d"));
  add("d", 1);
  EXPECT_TRUE(!has("a") && has("b") && has("d"));
  add("a", 100);
  EXPECT_TRUE(has("a") && !has("b") && !has("d"));
}

TEST_F(PassesTest, FoldsNoNodeWithSideEffectsOrUnknownInputs) {
  AddPlaceholder("x");
  AddConst("c", Int(2));
  AddConst("text", Tensor(tstring("text")));
  Add("tick", "Tick", {"c"}, {{"counter", 9}});
  AddInt("Neg", "after_tick", {"c", "^tick"});
  AddInt("Neg", "neg", {"c"});
  AddInt("Neg", "after_neg", {"c", "^neg"});
  AddConst("late", Int(3), {"^tick"});
  AddInt("Neg", "of_late", {"late"});
  AddInt("Add", "unknown", {"c", "x"});
  Add("string", "Identity", {"text"}, {{"T", DT_STRING}});
  const PlanNames names = {
      {}, {}, {"after_tick", "neg", "after_neg", "of_late", "unknown", "string"}};
  EXPECT_THAT(NodesOf(names, kFold),
              ElementsAre("c", "tick", "after_tick", "neg", "after_neg", "late", "of_late", "x",
                          "unknown", "text", "string"));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto plan,
                                Plan::Make(graph_, {{}, {}, {"after_neg"}}, &kernels_, kFold));
  EXPECT_THAT(plan->pending(), ElementsAre(0));
  // A fed constant is not folded.
  EXPECT_THAT(NodesOf({{"c"}, {"neg"}, {}}, kFold), ElementsAre("neg"));
  EXPECT_THAT(Ints({{"c"}, {"neg"}, {}}, {Int(8)}, kFold), ElementsAre(-8));
  EXPECT_EQ(ToyCounter(9), 0);
}

TEST_F(PassesTest, LeavesAFoldingThatFailsToTheRun) {
  AddPlaceholder("x");
  AddConst("c", Int(2));
  Add("fail", "Fail", {"c"}, {{"message", "wrong"}});
  AddInt("Neg", "neg", {"fail"});
  AddInt("Add", "sum", {"c", "neg"});
  Add("fine", "Tick", {"x"}, {{"counter", 10}});
  const PlanNames names = {{"x"}, {"fine", "sum"}, {}};
  for (const PlanOptions& options : {kNone, kMerge, kFold, PlanOptions()}) {
    EXPECT_THAT(NodesOf(names, options), ElementsAre("fine", "c", "fail", "neg", "sum"));
    EXPECT_THAT(Run(names, {Int(1)}, options),
                StatusIs(StatusCode::kInvalidArgument, "node 'fail' (Fail): wrong"));
    // Runs that do not need the failing node succeed.
    EXPECT_THAT(Ints({{"x"}, {"fine"}, {}}, {Int(1)}, options), ElementsAre(1));
  }
  Add("odd", "Even", {"c"}, {{"n", 3}});
  Add("throws", "Even", {"c"}, {{"n", 666}});
  for (const PlanOptions& options : {kNone, PlanOptions()}) {
    EXPECT_THAT(
        Run({{}, {"odd"}, {}}, {}, options),
        StatusIs(StatusCode::kInvalidArgument, "node 'odd' (Even): n must be even, but is 3"));
    EXPECT_THAT(Run({{}, {"throws"}, {}}, {}, options), StatusIs(StatusCode::kInternal));
  }
}

TEST_F(PassesTest, LeavesAFoldingWithMissingOutputsToTheRun) {
  AddConst("c", Int(2));
  Add("first", "SetFirst", {"c"});
  AddInt("Neg", "neg", {"first"});
  const PlanNames names = {{}, {"neg"}, {}};
  for (const PlanOptions& options : {kNone, kFold}) {
    EXPECT_THAT(NodesOf(names, options), ElementsAre("c", "first", "neg"));
    EXPECT_THAT(Run(names, {}, options),
                StatusIs(StatusCode::kInternal, HasSubstr("did not set output 1")));
  }
}

TEST_F(PassesTest, LeavesAFoldingThatTakesLongToTheRun) {
  AddConst("c", Int(2));
  AddInt("Neg", "neg", {"c"});
  for (const bool ask : {false, true}) {
    const std::string name = ask ? "asks" : "loops";
    Add(name, "LoopForeverPurely", {"neg"}, {{"counter", 11}, {"ask", ask}});
    EXPECT_THAT(NodesOf({{}, {name}, {}}, kFold), ElementsAre("neg", name));
  }
}

TEST_F(PassesTest, FoldsWithinItsBoundOfBytes) {
  Tensor large(DT_FLOAT, {1000});
  large.flat<float>().setConstant(1);
  AddConst("large", large);
  AddConst("small", Floats({1}));
  const ToyAttrs attrs = {{"T", DT_FLOAT}};
  Add("a", "Neg", {"large"}, attrs);
  Add("b", "Neg", {"small"}, attrs);
  const PlanNames names = {{}, {"a", "b"}, {}};
  const auto with_bound = [](int64_t bytes) { return PlanOptions{true, bytes}; };
  EXPECT_THAT(NodesOf(names, with_bound(0)), ElementsAre("large", "a", "small", "b"));
  EXPECT_THAT(NodesOf(names, with_bound(1000)), ElementsAre("large", "a", "b"));
  EXPECT_THAT(NodesOf(names, with_bound(5000)), ElementsAre("a", "b"));

  // The limit counts live intermediate values of a chain, and all kept values.
  std::string last = "large";
  std::vector<std::string> all;
  for (int i = 0; i < 20; ++i) {
    const std::string name = absl::StrCat("chain", i);
    Add(name, "Neg", {last}, attrs);
    all.push_back(name);
    last = name;
  }
  EXPECT_THAT(NodesOf({{}, {last}, {}}, with_bound(10000)), ElementsAre(last));
  EXPECT_EQ(NodesOf({{}, all, {}}, with_bound(10000)).size(), all.size());
  KernelCache kernels;
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto plan,
                                Plan::Make(graph_, {{}, all, {}}, &kernels, with_bound(10000)));
  // Two nodes are independent. The third reads the second, and so on.
  EXPECT_THAT(plan->pending().subspan(0, 4), ElementsAre(0, 0, 1, 1));
}

TEST_F(PassesTest, TakesDeepAndWideGraphs) {
  constexpr int kDeep = 200000;
  constexpr int kWide = 20000;
  AddConst("c", Int(1));
  AddPlaceholder("x");
  std::string deep = "c";
  for (int i = 0; i < kDeep; ++i) {
    AddInt("Neg", absl::StrCat("d", i), {deep});
    deep = absl::StrCat("d", i);
  }
  std::string wide = "x";
  for (int i = 0; i < kWide; ++i) {
    AddInt("Neg", absl::StrCat("w", i), {"x"});
    AddInt("Add", absl::StrCat("s", i), {wide, absl::StrCat("w", i)});
    wide = absl::StrCat("s", i);
  }
  // A slow machine may leave some nodes unfolded.
  EXPECT_THAT(NodesOf({{}, {deep}, {}}, PlanOptions()), Contains(deep));
  EXPECT_THAT(Ints({{}, {deep}, {}}, {}, PlanOptions()), ElementsAre(1));
  EXPECT_EQ(NodesOf({{"x"}, {wide}, {}}, PlanOptions()).size(), kWide + 1);
  EXPECT_THAT(Ints({{"x"}, {wide}, {}}, {Int(1)}, PlanOptions()), ElementsAre(1 - kWide));
}

// ---- In a session ----

TEST(OptimizerOptionsTest, SelectThePassesOfASession) {
  const auto nodes_run = [](OptimizerOptions::Level level, bool eliminate = false,
                            bool fold = false, const Tensor& value = Int(2)) {
    GraphDef graph;
    *graph.add_node() = ToyNode("c", "Const", {}, {{"value", value}, {"dtype", DT_INT64}});
    *graph.add_node() = ToyNode("neg", "Neg", {"c"}, {{"T", DT_INT64}});
    *graph.add_node() = ToyNode("neg2", "Neg", {"c"}, {{"T", DT_INT64}});
    SessionOptions options;
    OptimizerOptions& optimizer =
        *options.config.mutable_graph_options()->mutable_optimizer_options();
    optimizer.set_opt_level(level);
    optimizer.set_do_common_subexpression_elimination(eliminate);
    optimizer.set_do_constant_folding(fold);
    auto session = Session::Make(options, ToyRegistry());
    EXPECT_THAT(session, IsOk());
    EXPECT_THAT((*session)->Create(graph), IsOk());
    RunOptions run_options;
    run_options.set_trace_level(RunOptions::FULL_TRACE);
    RunMetadata metadata;
    std::vector<Tensor> outputs;
    EXPECT_THAT((*session)->Run(run_options, {}, {"neg", "neg2"}, {}, &outputs, &metadata), IsOk());
    for (const Tensor& output : outputs) {
      EXPECT_EQ(output.shape(), value.shape());
      for (int64_t i = 0; i < output.NumElements(); ++i) EXPECT_EQ(output.flat<int64_t>()(i), -2);
    }
    return metadata.step_stats().dev_stats(0).node_stats_size();
  };
  EXPECT_EQ(nodes_run(OptimizerOptions::L1), 1);
  EXPECT_EQ(nodes_run(OptimizerOptions::L0), 3);
  EXPECT_EQ(nodes_run(OptimizerOptions::L0, /*eliminate=*/true), 2);
  EXPECT_EQ(nodes_run(OptimizerOptions::L0, /*eliminate=*/false, /*fold=*/true), 2);
  // Folding a constant without elements takes no memory, but still counts as folding.
  EXPECT_EQ(nodes_run(OptimizerOptions::L0, false, false, Tensor(DT_INT64, {0})), 3);

  SessionOptions options;
  options.config.mutable_graph_options()->mutable_optimizer_options()->set_opt_level(
      static_cast<OptimizerOptions::Level>(3));
  EXPECT_THAT(Session::Make(options, ToyRegistry()),
              StatusIs(StatusCode::kInvalidArgument, "opt_level is 3, expected -1 (L0) or 0 (L1)"));
  options = SessionOptions();
  options.config.mutable_graph_options()
      ->mutable_optimizer_options()
      ->set_max_folded_constant_in_bytes(-1);
  EXPECT_THAT(Session::Make(options, ToyRegistry()),
              StatusIs(StatusCode::kInvalidArgument,
                       "max_folded_constant_in_bytes is -1, expected 0 (the default) or more"));
}

// Random graphs with many constants and common subexpressions. An optimized run returns the same
// values as an unoptimized run, or an error that an unoptimized run may return.
TEST_F(PassesTest, ChangesNothingInRandomGraphs) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  int failed = 0;
  int smaller = 0;
  for (int round = 0; round < 300; ++round) {
    Graph graph(ToyRegistry());
    const int size = pick(3, 40);
    const bool may_fail = pick(0, 1) == 0;
    // For each node: its outputs, and whether the node or one of its inputs fails.
    std::vector<int> outputs;
    std::vector<std::vector<int>> needs(size);
    std::vector<bool> is_fail(size);
    std::vector<std::string> feeds;
    const auto name = [](int i) { return absl::StrCat("n", i); };
    for (int i = 0; i < size; ++i) {
      std::vector<std::string> inputs;
      const auto input = [&] {
        const int from = pick(0, i - 1);
        needs[i].push_back(from);
        inputs.push_back(absl::StrCat(name(from), ":", pick(0, outputs[from] - 1)));
      };
      const int kind = i == 0 ? 0 : pick(0, 11);
      std::string op = "Neg";
      ToyAttrs attrs;
      outputs.push_back(1);
      if (kind < 3) {
        op = "Const";
        attrs = {{"value", Int(pick(0, 2))}, {"dtype", DT_INT64}};
      } else if (kind == 3) {
        op = "Placeholder";
        attrs = {{"dtype", DT_INT64}};
        feeds.push_back(name(i));
      } else if (kind < 6) {
        op = "Mix";
        outputs.back() = 2;
        input();
        input();
      } else if (kind < 8) {
        op = "Add";
        attrs = {{"T", DT_INT64}};
        input();
        input();
      } else if (kind == 8 && may_fail) {
        op = "Fail";
        is_fail[i] = true;
        input();
      } else {
        attrs = {{"T", DT_INT64}};
        input();
      }
      if (i > 0 && pick(0, 9) == 0) {
        needs[i].push_back(pick(0, i - 1));
        inputs.push_back("^" + name(needs[i].back()));
      }
      GRADFLOW_ASSERT_OK(AddToy(&graph, name(i), op, inputs, attrs));
    }
    PlanNames names;
    for (int i = pick(1, 6); i > 0; --i) {
      const int from = pick(0, size - 1);
      names.fetches.push_back(absl::StrCat(name(from), ":", pick(0, outputs[from] - 1)));
    }
    names.feeds = feeds;
    if (pick(0, 3) == 0) {
      const std::string fed = name(pick(0, size - 1));
      if (std::find(feeds.begin(), feeds.end(), fed) == feeds.end()) names.feeds.push_back(fed);
    }
    std::vector<Tensor> fed;
    std::vector<const Tensor*> pointers;
    for (size_t i = 0; i < names.feeds.size(); ++i) fed.push_back(Int(pick(0, 3)));
    for (const Tensor& tensor : fed) pointers.push_back(&tensor);

    KernelCache kernels;
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto plain, Plan::Make(graph, names, &kernels, kNone));
    std::vector<Tensor> expected;
    const absl::Status reference = executor_.Run(plain, pointers, RunLimits(), &expected);
    for (const PlanOptions& options : {kMerge, kFold, PlanOptions()}) {
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto plan, Plan::Make(graph, names, &kernels, options));
      smaller += plan->num_nodes() < plain->num_nodes() ? 1 : 0;
      std::vector<Tensor> found;
      const absl::Status status = executor_.Run(plan, pointers, RunLimits(), &found);
      ASSERT_EQ(status.ok(), reference.ok()) << status << reference;
      if (!status.ok()) {
        ++failed;
        // The error comes from a node whose inputs all succeed.
        bool possible = false;
        for (int i = 0; i < size; ++i) {
          possible |= is_fail[i] &&
                      absl::StartsWith(status.message(), absl::StrCat("node '", name(i), "' "));
        }
        EXPECT_TRUE(possible) << status;
        continue;
      }
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].scalar<int64_t>()(), expected[i].scalar<int64_t>()());
      }
    }
  }
  EXPECT_GT(failed, 10);
  EXPECT_GT(smaller, 100);
}

}  // namespace
}  // namespace gradflow
