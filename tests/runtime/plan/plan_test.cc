#include "gradflow/runtime/plan/plan.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "gradflow/graph/import.h"
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
using ::gradflow::testing::ToyNode;
using ::gradflow::testing::ToyRegistry;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class PlanTest : public ::testing::Test {
 protected:
  void Add(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
           const ToyAttrs& attrs = {}) {
    GRADFLOW_ASSERT_OK(AddToy(&graph_, name, op, inputs, attrs));
  }
  void AddInt(const std::string& op, const std::string& name,
              const std::vector<std::string>& inputs) {
    Add(name, op, inputs, {{"T", DT_INT64}});
  }
  // x -> a -> mix:0 -> b, y -> mix:1 -> c
  void AddMixGraph() {
    Add("x", "Placeholder", {}, {{"dtype", DT_INT64}});
    Add("y", "Placeholder", {}, {{"dtype", DT_INT64}});
    AddInt("Neg", "a", {"x"});
    Add("mix", "Mix", {"a", "y"});
    AddInt("Neg", "b", {"mix"});
    AddInt("Neg", "c", {"mix:1"});
  }

  absl::StatusOr<std::shared_ptr<const Plan>> Make(const PlanNames& names) {
    return Plan::Make(graph_, names, &kernels_);
  }
  // Returns the names of the nodes that a plan runs.
  std::vector<std::string> NodesOf(const PlanNames& names) {
    const absl::StatusOr<std::shared_ptr<const Plan>> plan = Make(names);
    EXPECT_THAT(plan, IsOk());
    std::vector<std::string> result;
    for (int i = 0; plan.ok() && i < (*plan)->num_nodes(); ++i) {
      result.push_back((*plan)->nodes()[i].node->name());
    }
    return result;
  }

  Graph graph_{ToyRegistry()};
  KernelCache kernels_;
};

TEST_F(PlanTest, KeepsNeededNodesInOrder) {
  AddMixGraph();
  EXPECT_THAT(NodesOf({{}, {"a:0"}, {}}), ElementsAre("x", "a"));
  EXPECT_THAT(NodesOf({{}, {"b"}, {}}), ElementsAre("x", "a", "y", "mix", "b"));
  EXPECT_THAT(NodesOf({{}, {}, {"c"}}), ElementsAre("x", "a", "y", "mix", "c"));
  EXPECT_THAT(NodesOf({{}, {}, {}}), IsEmpty());
}

TEST_F(PlanTest, PrunesAtFeeds) {
  AddMixGraph();
  EXPECT_THAT(NodesOf({{"x", "y"}, {"b"}, {}}), ElementsAre("a", "mix", "b"));
  EXPECT_THAT(NodesOf({{"a"}, {"mix:1"}, {}}), ElementsAre("y", "mix"));
  // If one of two outputs is fed, the other output still needs the node.
  EXPECT_THAT(NodesOf({{"mix:1"}, {"c"}, {}}), ElementsAre("c"));
  EXPECT_THAT(NodesOf({{"mix:1"}, {"b"}, {}}), ElementsAre("x", "a", "y", "mix", "b"));
  EXPECT_THAT(NodesOf({{"mix:1"}, {"mix:1", "c"}, {}}), ElementsAre("c"));
  EXPECT_THAT(NodesOf({{"b"}, {"b"}, {}}), IsEmpty());
  // A target runs even if its output is fed.
  EXPECT_THAT(NodesOf({{"x", "a"}, {}, {"a"}}), ElementsAre("a"));
}

TEST_F(PlanTest, PrunesControlEdgesOfFedPlaceholdersOnly) {
  AddMixGraph();
  Add("after_x", "NoOp", {"^x"});
  Add("after_a", "NoOp", {"^a"});
  EXPECT_THAT(NodesOf({{"x"}, {}, {"after_x"}}), ElementsAre("after_x"));
  EXPECT_THAT(NodesOf({{"x"}, {}, {"x"}}), IsEmpty());
  EXPECT_THAT(NodesOf({{"x", "a"}, {}, {"after_a"}}), ElementsAre("a", "after_a"));
  EXPECT_THAT(NodesOf({{}, {}, {"after_x"}}), ElementsAre("x", "after_x"));
}

TEST_F(PlanTest, CountsEachNeededNodeAndEachUseOnce) {
  AddMixGraph();
  AddInt("Add", "double", {"a", "a", "^b", "^a"});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto plan,
                                Make({{"x", "y"}, {"double", "double:0", "a"}, {"b"}}));
  // a, mix, b, double: "double" waits for a and b, "mix" for a.
  ASSERT_EQ(plan->num_nodes(), 4);
  EXPECT_THAT(plan->pending(), ElementsAre(0, 1, 1, 2));
  EXPECT_THAT(plan->order().roots, ElementsAre(0));
  EXPECT_THAT(plan->order().successors, ElementsAre(1, 3, 2, 3));
  // x, y, a (mix, double twice, fetched), mix:0, mix:1, b, double (fetched).
  EXPECT_THAT(plan->slot_uses(), ElementsAre(1, 1, 4, 1, 0, 0, 1));
  EXPECT_EQ(plan->fetches()[0].slot, 6);
  EXPECT_FALSE(plan->fetches()[0].last);
  EXPECT_TRUE(plan->fetches()[1].last);
}

TEST_F(PlanTest, KnowsWhenNoTwoNodesAreWorthParallelTasks) {
  Add("x", "Placeholder", {}, {{"dtype", DT_INT64}});
  AddInt("Neg", "a", {"x"});
  AddInt("Neg", "b", {"a"});
  AddInt("Identity", "cheap", {"x"});
  AddInt("Identity", "behind", {"b"});
  AddInt("Add", "end", {"behind", "cheap"});
  AddInt("Add", "beside", {"a", "a"});
  Add("after", "Neg", {"beside", "^end"}, {{"T", DT_INT64}});
  Add("then", "Neg", {"x", "^b"}, {{"T", DT_INT64}});
  AddInt("Neg", "last", {"then"});
  const struct {
    std::vector<std::string> fetches;
    bool sequential;
  } cases[] = {
      {{}, true},
      {{"x", "cheap"}, true},
      {{"a"}, true},
      {{"end", "cheap", "b"}, true},
      {{"last", "b"}, true},
      {{"a", "beside"}, true},
      {{"end", "beside"}, false},
      {{"after"}, false},
      {{"end", "last"}, false},
  };
  for (const auto& [fetches, sequential] : cases) {
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto plan, Make({{"x"}, fetches, {}}));
    EXPECT_EQ(plan->is_sequential(), sequential) << ::testing::PrintToString(fetches);
  }
}

TEST_F(PlanTest, PrioritizesByCriticalPathLength) {
  Add("x", "Placeholder", {}, {{"dtype", DT_INT64}});
  // From "start": three paths of 1, 3 and 2 nodes, and one path of cheap nodes.
  AddInt("Neg", "start", {"x"});
  AddInt("Neg", "short", {"start"});
  AddInt("Identity", "cheap", {"start"});
  AddInt("Identity", "cheap2", {"cheap"});
  Add("long", "Mix", {"start", "start"});
  AddInt("Neg", "long2", {"long"});
  AddInt("Neg", "long3", {"long2"});
  AddInt("Add", "middle", {"start", "start"});
  AddInt("Neg", "middle2", {"middle"});
  // Another root with as many nodes.
  AddInt("Add", "other", {"x", "x"});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const auto plan, Make({{"x"}, {"other", "cheap2", "short", "middle2", "long3"}, {}}));
  const auto names = [&](absl::Span<const int32_t> nodes) {
    std::vector<std::string> result;
    for (const int32_t node : nodes) result.push_back(plan->nodes()[node].node->name());
    return result;
  };
  EXPECT_THAT(names(plan->order().roots), ElementsAre("start", "other"));
  const int32_t start = plan->order().roots[0];
  const int32_t begin = plan->nodes()[start].successors_begin;
  EXPECT_THAT(names(absl::MakeConstSpan(plan->order().successors).subspan(begin, 4)),
              ElementsAre("long", "cheap", "short", "middle"));
}

TEST_F(PlanTest, PrioritizesByMeasuredCriticalPath) {
  Add("x", "Placeholder", {}, {{"dtype", DT_INT64}});
  AddInt("Neg", "many", {"x"});
  AddInt("Neg", "many2", {"many"});
  AddInt("Neg", "many3", {"many2"});
  AddInt("Add", "slow", {"x", "x"});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto plan, Make({{"x"}, {"many3", "slow"}, {}}));
  const auto first_root = [&] { return plan->nodes()[plan->order().roots[0]].node->name(); };
  EXPECT_EQ(first_root(), "many");

  // Until Plan::kMeasuredRuns runs have finished, the order does not change.
  const auto measure = [&](bool finished) {
    ASSERT_TRUE(plan->BeginMeasuring());
    for (int node = 0; node < plan->num_nodes(); ++node) {
      plan->SetCost(node, plan->nodes()[node].node->name() == "slow" ? 1000 : 300);
    }
    plan->EndMeasuring(finished);
  };
  for (int run = 1; run < Plan::kMeasuredRuns; ++run) measure(/*finished=*/true);
  measure(/*finished=*/false);
  EXPECT_EQ(first_root(), "many");

  const Plan::Order& before = plan->order();
  measure(/*finished=*/true);
  EXPECT_EQ(first_root(), "slow");
  EXPECT_FALSE(plan->BeginMeasuring());
  // Runs in flight keep their order.
  EXPECT_EQ(plan->nodes()[before.roots[0]].node->name(), "many");
}

TEST_F(PlanTest, AppliesCostsToRunsOfTheMeasuredSize) {
  Add("x", "Placeholder", {}, {{"dtype", DT_INT64}});
  AddInt("Neg", "a", {"x"});
  AddInt("Add", "b", {"x", "x"});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto plan, Make({{"x"}, {"a", "b"}, {}}));
  EXPECT_FALSE(plan->order().Holds(0));
  // A run that did not finish may have measured nothing, so it does not count.
  ASSERT_TRUE(plan->BeginMeasuring());
  plan->EndMeasuring(/*finished=*/false, 1000);
  for (int64_t run = 0; run < Plan::kMeasuredRuns; ++run) {
    ASSERT_TRUE(plan->BeginMeasuring());
    for (int node = 0; node < plan->num_nodes(); ++node) plan->SetCost(node, 100);
    plan->EndMeasuring(/*finished=*/true, 50 - 10 * run);
  }
  EXPECT_TRUE(plan->order().Holds(100));
  EXPECT_FALSE(plan->order().Holds(101));
}

TEST_F(PlanTest, MeasuresNothingWhereOrderDoesNotMatter) {
  AddMixGraph();
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto plan, Make({{"x"}, {"a"}, {}}));
  ASSERT_TRUE(plan->is_sequential());
  EXPECT_FALSE(plan->BeginMeasuring());
}

TEST_F(PlanTest, SharesKernelsBetweenPlans) {
  AddMixGraph();
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto plan, Make({{"x"}, {"a"}, {}}));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto other, Make({{"x", "y"}, {"b"}, {}}));
  EXPECT_EQ(plan->nodes()[0].kernel, other->nodes()[0].kernel);
}

TEST_F(PlanTest, RefusesUnknownNames) {
  AddMixGraph();
  Add("layer1/init", "NoOp", {});
  struct Case {
    PlanNames names;
    StatusCode code;
    std::string text;
  };
  const Case cases[] = {
      {{{"mixx"}, {}, {}},
       StatusCode::kNotFound,
       "feed 'mixx': the graph has no node of this name; did you mean 'mix'"},
      {{{}, {"layer1/ini:0"}, {}},
       StatusCode::kNotFound,
       "fetch 'layer1/ini:0': the graph has no node of this name; did you mean 'layer1/init'?"},
      {{{}, {}, {"layer2/init"}},
       StatusCode::kNotFound,
       "target 'layer2/init': the graph has no node of this name; did you mean 'layer1/init'?"},
      {{{}, {"completely_different"}, {}},
       StatusCode::kNotFound,
       "fetch 'completely_different': the graph has no node of this name"},
      {{{}, {"mix:2"}, {}},
       StatusCode::kInvalidArgument,
       "fetch 'mix:2': node 'mix' (Mix) has only outputs 0 to 1"},
      {{{"a:1"}, {}, {}},
       StatusCode::kInvalidArgument,
       "feed 'a:1': node 'a' (Neg) has only output 0"},
      {{{}, {"layer1/init"}, {}},
       StatusCode::kInvalidArgument,
       "fetch 'layer1/init': node 'layer1/init' (NoOp) has no outputs; it can only be run as a "
       "target"},
      {{{}, {"a:99999999999"}, {}}, StatusCode::kInvalidArgument, "is too large"},
      {{{}, {"a:-1"}, {}}, StatusCode::kNotFound, "fetch 'a:-1': "},
      {{{}, {""}, {}}, StatusCode::kInvalidArgument, "fetch '' names no node"},
      {{{}, {":0"}, {}}, StatusCode::kInvalidArgument, "fetch ':0' names no node"},
      {{{"^a"}, {}, {}}, StatusCode::kInvalidArgument, "expected the name of a tensor"},
      {{{}, {}, {"^a"}}, StatusCode::kInvalidArgument, "expected the name of a node"},
      {{{}, {}, {"a:0"}}, StatusCode::kInvalidArgument, "expected the name of a node"},
      {{{}, {}, {""}}, StatusCode::kInvalidArgument, "expected the name of a node"},
      {{{"a", "y", "a:0"}, {}, {}}, StatusCode::kInvalidArgument, "feed 'a:0' is given twice"},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(Make(c.names), StatusIs(c.code, HasSubstr(c.text)));
  }
}

TEST_F(PlanTest, FindsNearNamesInLargeGraphs) {
  for (int i = 0; i < 20000; ++i) Add("node" + std::to_string(i), "NoOp", {});
  EXPECT_THAT(Make({{}, {}, {"nodf7"}}),
              StatusIs(StatusCode::kNotFound, HasSubstr("did you mean 'node7'")));
  EXPECT_THAT(Make({{}, {}, {std::string(1 << 20, 'x')}}),
              StatusIs(StatusCode::kNotFound, HasSubstr("xxx")));
}

TEST_F(PlanTest, NamesTheNodeWhoseKernelCannotBeMade) {
  Add("x", "Placeholder", {}, {{"dtype", DT_INT64}});
  Add("odd", "Even", {"x"}, {{"n", 3}});
  Add("throws", "Even", {"x"}, {{"n", 666}});
  Add("none", "NoKernel", {});
  EXPECT_THAT(Make({{}, {"odd"}, {}}), StatusIs(StatusCode::kInvalidArgument,
                                                "node 'odd' (Even): n must be even, but is 3"));
  EXPECT_THAT(Make({{}, {"throws"}, {}}),
              StatusIs(StatusCode::kInternal, HasSubstr("node 'throws' (Even): an exception was")));
  EXPECT_THAT(Make({{}, {"none"}, {}}),
              StatusIs(StatusCode::kUnimplemented, StartsWith("node 'none' (NoKernel): ")));
  // A node that does not run need not have a kernel.
  GRADFLOW_EXPECT_OK(Make({{"none"}, {"none"}, {}}));
}

TEST_F(PlanTest, ChecksFedValues) {
  Add("any", "Placeholder", {}, {{"dtype", DT_FLOAT}});
  Add("rows", "Placeholder", {}, {{"dtype", DT_FLOAT}, {"shape", PartialTensorShape({-1, 3})}});
  Add("scalar", "Placeholder", {}, {{"dtype", DT_INT64}, {"shape", PartialTensorShape({})}});
  Add("mix", "Mix", {"scalar", "scalar"});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto plan,
                                Make({{"any", "rows", "scalar", "mix:1"}, {}, {}}));
  const Tensor rows(DT_FLOAT, TensorShape({2, 3}));
  const auto check = [&](const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d) {
    return plan->CheckFeeds({&a, &b, &c, &d});
  };
  const Tensor f = Floats({1});
  const Tensor i = Int(1);
  GRADFLOW_EXPECT_OK(check(f, rows, i, i));
  // A placeholder restricts the shape of its feed; other nodes do not.
  GRADFLOW_EXPECT_OK(check(f, Tensor(DT_FLOAT, {0, 3}), i, Tensor(DT_INT64, {7})));
  EXPECT_THAT(check(i, rows, i, i), StatusIs(StatusCode::kInvalidArgument,
                                             "feed 'any:0': expected type float, found int64"));
  EXPECT_THAT(check(f, rows, i, f), StatusIs(StatusCode::kInvalidArgument,
                                             "feed 'mix:1': expected type int64, found float"));
  EXPECT_THAT(check(f, f, i, i), StatusIs(StatusCode::kInvalidArgument,
                                          "feed 'rows:0': expected shape [?,3], found [1]"));
  EXPECT_THAT(
      check(f, rows, Tensor(DT_INT64, {1}), i),
      StatusIs(StatusCode::kInvalidArgument, "feed 'scalar:0': expected shape [], found [1]"));
  EXPECT_THAT(check(Tensor(DT_FLOAT, {-1}), rows, i, i),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("not initialized")));
  EXPECT_THAT(plan->CheckFeeds({}),
              StatusIs(StatusCode::kInvalidArgument, "expected 4 fed tensors, found 0"));
}

TEST_F(PlanTest, TakesAnyShapeForAScalarPlaceholderOfAnOldGraph) {
  GraphDef old;
  old.mutable_versions()->set_producer(20);
  *old.add_node() =
      ToyNode("x", "Placeholder", {}, {{"dtype", DT_INT64}, {"shape", PartialTensorShape({})}});
  GRADFLOW_ASSERT_OK(ImportGraphDef(ImportGraphDefOptions(), old, &graph_));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto plan, Make({{"x"}, {"x"}, {}}));
  const Tensor vector(DT_INT64, {2});
  GRADFLOW_EXPECT_OK(plan->CheckFeeds({&vector}));
}

TEST_F(PlanTest, OutlivesAdditionsToTheGraph) {
  AddMixGraph();
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto plan, Make({{}, {"a"}, {}}));
  for (int i = 0; i < 1000; ++i) Add("more" + std::to_string(i), "NoOp", {});
  EXPECT_EQ(plan->nodes()[1].node->name(), "a");
  EXPECT_THAT(NodesOf({{}, {"a"}, {"more999"}}), ElementsAre("x", "a", "more999"));
}

}  // namespace
}  // namespace gradflow
