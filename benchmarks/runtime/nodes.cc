// The cost per node.
#include <benchmark/benchmark.h>
#include <tbb/flow_graph.h>
#include <tbb/task_arena.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmarks/harness.h"
#include "benchmarks/runtime/cases.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/memory/pool_allocator.h"
#include "gradflow/runtime/plan/kernel_cache.h"
#include "gradflow/runtime/plan/plan.h"
#include "gradflow/runtime/session/session.h"

namespace gradflow::benchmarks {
namespace {

using Runner = std::function<void()>;

// A node of a graph of scalars: the numbers of the values that it reads, and its function of these
// values. Fed values are numbered first, then the values of nodes.
struct ScalarNode {
  enum Op { kNeg, kAdd, kWork };
  Op op;
  int a;
  int b;
};

// A graph. All of its nodes run.
struct ScalarGraph {
  int num_feeds = 0;
  std::vector<ScalarNode> nodes;
};

// Executes 25,000 dependent steps, so that one node takes much longer than its scheduling.
float Work(float x) {
  for (int i = 0; i < 25000; ++i) x = 3.7f * x * (1.0f - x);
  return x;
}

absl::Status WorkCompute(KernelContext& ctx) {
  Tensor* out = nullptr;
  if (absl::Status s = ctx.AllocateOutput(0, ctx.input(0).shape(), &out); !s.ok()) return s;
  out->scalar<float>()() = Work(ctx.input(0).scalar<float>()());
  return absl::OkStatus();
}

ScalarGraph Chain() {
  ScalarGraph graph{1, {}};
  for (int i = 0; i < 10000; ++i) graph.nodes.push_back({ScalarNode::kNeg, i, -1});
  return graph;
}

ScalarGraph Layers() {
  constexpr int kWidth = 100;
  ScalarGraph graph{kWidth, {}};
  for (int layer = 0; layer < 100; ++layer) {
    for (int i = 0; i < kWidth; ++i) {
      const int before = layer * kWidth;
      graph.nodes.push_back({ScalarNode::kAdd, before + i, before + (i + 1) % kWidth});
    }
  }
  return graph;
}

ScalarGraph Independent() {
  ScalarGraph graph{1, {}};
  for (int i = 0; i < 10000; ++i) graph.nodes.push_back({ScalarNode::kNeg, 0, -1});
  return graph;
}

ScalarGraph TwoLongChains() {
  ScalarGraph graph{2, {}};
  for (int i = 0; i < 40; ++i) graph.nodes.push_back({ScalarNode::kWork, i, -1});
  return graph;
}

// Returns a chain of 20 nodes, and 20 nodes that nothing depends on. Two threads finish soonest if
// one of them starts with the chain.
ScalarGraph ChainAmongOthers() {
  ScalarGraph graph{1, {}};
  for (int i = 0; i < 10; ++i) graph.nodes.push_back({ScalarNode::kWork, 0, -1});
  for (int i = 0; i < 20; ++i) graph.nodes.push_back({ScalarNode::kWork, i == 0 ? 0 : 10 + i, -1});
  for (int i = 0; i < 10; ++i) graph.nodes.push_back({ScalarNode::kWork, 0, -1});
  return graph;
}

struct GraphCase {
  const char* name;
  ScalarGraph (*make)();
};
constexpr GraphCase kGraphs[] = {
    {"chain", Chain}, {"layers", Layers}, {"independent", Independent}};
constexpr GraphCase kLongChains = {"two_long_chains", TwoLongChains};
constexpr GraphCase kChainAmongOthers = {"chain_among_others", ChainAmongOthers};

// Returns the nodes that no other node reads. They must be targets, because nodes that no target
// needs are pruned.
std::vector<int> Sinks(const ScalarGraph& graph) {
  std::vector<bool> is_read(graph.num_feeds + graph.nodes.size());
  for (const ScalarNode& node : graph.nodes) {
    is_read[node.a] = true;
    if (node.op == ScalarNode::kAdd) is_read[node.b] = true;
  }
  std::vector<int> sinks;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!is_read[graph.num_feeds + i]) sinks.push_back(static_cast<int>(i));
  }
  return sinks;
}

std::string FeedName(int i) { return absl::StrCat("x", i); }

// Returns the graph, with an added node "sink" that waits for all other nodes.
Scope Build(const ScalarGraph& graph) {
  const Scope scope = Scope::NewRootScope();
  std::vector<Output> values;
  for (int i = 0; i < graph.num_feeds; ++i) {
    values.push_back(ops::Placeholder(scope.WithOpName(FeedName(i)), DT_FLOAT));
  }
  for (const ScalarNode& node : graph.nodes) {
    const Output a = values[node.a];
    switch (node.op) {
      case ScalarNode::kNeg:
        values.push_back(ops::Neg(scope, a));
        break;
      case ScalarNode::kAdd:
        values.push_back(ops::AddV2(scope, a, values[node.b]));
        break;
      case ScalarNode::kWork:
        values.push_back(OpBuilder(scope, "BenchmarkWork").Input(Input(a)).Finish().output(0));
        break;
    }
  }
  std::vector<Operation> sinks;
  for (const int sink : Sinks(graph)) sinks.push_back(values[graph.num_feeds + sink].op());
  ops::NoOp(scope.WithOpName("sink").WithControlDependencies(sinks));
  Check(scope.status());
  return scope;
}

Runner Runs(const ScalarGraph& graph, int threads, bool is_watched) {
  GraphDef def;
  Check(Build(graph).ToGraphDef(&def));
  SessionOptions options;
  options.config.set_intra_op_parallelism_threads(threads);
  options.config.set_inter_op_parallelism_threads(threads);
  // Disables common-subexpression elimination, because the independent nodes are identical.
  options.config.mutable_graph_options()->mutable_optimizer_options()->set_opt_level(
      OptimizerOptions::L0);
  const std::shared_ptr<Session> session(NewSession(options));
  Check(session->Create(def));
  std::vector<std::pair<std::string, Tensor>> feeds;
  for (int i = 0; i < graph.num_feeds; ++i) feeds.emplace_back(FeedName(i), Tensor(0.3f));
  RunOptions run_options;
  if (is_watched) run_options.set_trace_level(RunOptions::FULL_TRACE);
  return [=] {
    RunMetadata metadata;
    Check(
        session->Run(run_options, feeds, {}, {"sink"}, nullptr, is_watched ? &metadata : nullptr));
  };
}

Runner Ours(const ScalarGraph& graph, int threads) { return Runs(graph, threads, false); }
// Runs the graph with statistics of every node.
Runner Watched(const ScalarGraph& graph, int threads) { return Runs(graph, threads, true); }

// Calls the kernels of the plan one after the other. This measures the cost without scheduling.
Runner Kernels(const ScalarGraph& graph, int threads) {
  if (threads > 1) return nullptr;
  struct State {
    explicit State(const Scope& s) : scope(s) {}
    Scope scope;
    KernelCache kernels;
    std::shared_ptr<const Plan> plan;
    std::shared_ptr<Allocator> pool = std::make_shared<PoolAllocator>();
    RunContext run;
    std::vector<Tensor> values;
  };
  const auto state = std::make_shared<State>(Build(graph));
  PlanNames names{{}, {}, {"sink"}};
  for (int i = 0; i < graph.num_feeds; ++i) names.feeds.push_back(FeedName(i));
  // Disables common-subexpression elimination, because the independent nodes are identical.
  auto plan = Plan::Make(*state->scope.graph(), names, &state->kernels, {false, 0});
  Check(plan.status());
  state->plan = *std::move(plan);
  state->run.allocator = &state->pool;
  state->values.resize(state->plan->num_slots());
  for (int i = 0; i < graph.num_feeds; ++i) state->values[i] = Tensor(0.3f);
  return [state] {
    const Plan& plan = *state->plan;
    for (int i = 0; i < plan.num_nodes(); ++i) {
      const Plan::NodeItem& node = plan.nodes()[i];
      const Plan::NodeItem& next = plan.nodes()[i + 1];
      Tensor inputs[2];
      const int num_inputs = next.inputs_begin - node.inputs_begin;
      for (int k = 0; k < num_inputs; ++k) {
        const int slot = plan.inputs()[node.inputs_begin + k];
        // Moves the tensor where a run would also move it.
        const bool last = plan.slot_uses()[slot] == 1 && slot >= plan.num_feeds();
        inputs[k] = last ? std::move(state->values[slot]) : state->values[slot];
      }
      const int num_outputs = next.outputs_begin - node.outputs_begin;
      const auto outputs = absl::MakeSpan(state->values).subspan(node.outputs_begin, num_outputs);
      KernelContext context(absl::MakeSpan(inputs, num_inputs), outputs,
                            plan.slot_types().subspan(node.outputs_begin, num_outputs), state->run);
      Check(node.kernel->Compute(context));
    }
  };
}

void Compute(const ScalarNode& node, int number, std::vector<float>* values) {
  float* const v = values->data();
  switch (node.op) {
    case ScalarNode::kNeg:
      v[number] = -v[node.a];
      return;
    case ScalarNode::kAdd:
      v[number] = v[node.a] + v[node.b];
      return;
    case ScalarNode::kWork:
      v[number] = Work(v[node.a]);
      return;
  }
}

// Computes the same arithmetic without tensors, in order.
Runner Arithmetic(const ScalarGraph& graph, int threads) {
  if (threads > 1) return nullptr;
  auto values = std::make_shared<std::vector<float>>(graph.num_feeds + graph.nodes.size(), 0.3f);
  return [=] {
    int number = graph.num_feeds;
    for (const ScalarNode& node : graph.nodes) Compute(node, number++, values.get());
    benchmark::ClobberMemory();
  };
}

// Computes the same arithmetic with one tbb::flow::graph node for each node.
Runner Flow(const ScalarGraph& graph, int threads) {
  using FlowNode = tbb::flow::continue_node<tbb::flow::continue_msg>;
  struct State {
    std::unique_ptr<tbb::task_arena> arena;
    std::unique_ptr<tbb::flow::graph> graph;
    std::vector<float> values;
    std::vector<ScalarNode> scalar_nodes;
    std::vector<std::unique_ptr<FlowNode>> nodes;
    std::vector<FlowNode*> roots;
    ~State() {
      arena->execute([&] {
        nodes.clear();
        graph.reset();
      });
    }
  };
  const auto state = std::make_shared<State>();
  state->arena = std::make_unique<tbb::task_arena>(threads);
  state->values.assign(graph.num_feeds + graph.nodes.size(), 0.3f);
  state->scalar_nodes = graph.nodes;
  state->arena->execute([&] {
    state->graph = std::make_unique<tbb::flow::graph>();
    const int num_feeds = graph.num_feeds;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const ScalarNode* node = &state->scalar_nodes[i];
      const int number = num_feeds + static_cast<int>(i);
      std::vector<float>* const values = &state->values;
      state->nodes.push_back(std::make_unique<FlowNode>(
          *state->graph, [=](const tbb::flow::continue_msg&) { Compute(*node, number, values); }));
      bool is_root = true;
      const auto connect = [&](int source) {
        if (source < num_feeds) return;
        tbb::flow::make_edge(*state->nodes[source - num_feeds], *state->nodes.back());
        is_root = false;
      };
      connect(node->a);
      if (node->op == ScalarNode::kAdd) connect(node->b);
      if (is_root) state->roots.push_back(state->nodes.back().get());
    }
    auto sink = std::make_unique<FlowNode>(*state->graph, [](const tbb::flow::continue_msg&) {});
    for (const int i : Sinks(graph)) tbb::flow::make_edge(*state->nodes[i], *sink);
    state->nodes.push_back(std::move(sink));
  });
  return [state] {
    state->arena->execute([&] {
      for (FlowNode* root : state->roots) root->try_put(tbb::flow::continue_msg());
      state->graph->wait_for_all();
    });
  };
}

struct Contestant {
  const char* name;
  Runner (*make)(const ScalarGraph& graph, int threads);
};
constexpr Contestant kContestants[] = {
    {"ours", Ours}, {"flow", Flow}, {"kernels", Kernels}, {"arithmetic", Arithmetic}};
constexpr Contestant kWatched = {"watched", Watched};
constexpr int kThreads[] = {1, 2};

std::string Name(const char* graph, int threads, const char* contestant) {
  return absl::StrCat("nodes/", graph, "/", threads, "/", contestant);
}

void Register(const GraphCase& c, const Contestant& contestant, int threads) {
  benchmark::RegisterBenchmark(Name(c.name, threads, contestant.name).c_str(),
                               [=](benchmark::State& state) {
                                 const Runner run = contestant.make(c.make(), threads);
                                 if (run == nullptr) {
                                   state.SkipWithError("not available");
                                   return;
                                 }
                                 // Warms up: fills pools and caches, and starts threads.
                                 for (int i = 0; i < 3; ++i) run();
                                 for (auto _ : state) run();
                               })
      ->UseRealTime();
}

}  // namespace

void RegisterNodeCases() {
  Registry& registry = GlobalRegistry();
  registry.Op("BenchmarkWork").Input("x: float").Output("y: float");
  registry.Kernel("BenchmarkWork", MakeFunctionKernel<WorkCompute>);
  Check(registry.status());
  Register(kGraphs[0], kWatched, 1);
  for (const int threads : kThreads) {
    for (const Contestant& contestant : kContestants) {
      for (const GraphCase& graph : kGraphs) Register(graph, contestant, threads);
    }
    for (const GraphCase& graph : {kLongChains, kChainAmongOthers}) {
      Register(graph, kContestants[0], threads);
      Register(graph, kContestants[1], threads);
    }
  }
}

void PrintNodeCases(const Medians& medians, Table* table) {
  struct Line {
    const char* graph;
    const char* text;
    double target;
  };
  for (const auto& [graph, text, target] :
       {Line{"chain", "chain of 10,000 Neg of a scalar", 1.0},
        Line{"layers", "100 layers of 100 AddV2 of scalars", 1.2},
        Line{"independent", "10,000 independent Neg of a scalar", 1.2}}) {
    for (const int threads : kThreads) {
      const double ours = medians.Nanoseconds(Name(graph, threads, "ours"));
      const double flow = medians.Nanoseconds(Name(graph, threads, "flow"));
      table->Add(text, absl::StrCat(threads), ours * 1e-4, "ns a node");
      table->Compare("tbb::flow::graph", ours, flow, Table::kAtMost, target);
      if (threads > 1) continue;
      for (const auto& [contestant, name] :
           {std::pair{"flow", "tbb::flow::graph"}, std::pair{"kernels", "a loop over the kernels"},
            std::pair{"arithmetic", "a loop over the arithmetic"},
            std::pair{"watched", "with RunOptions::FULL_TRACE"}}) {
        table->Add(absl::StrCat("  ", name), "1",
                   medians.Nanoseconds(Name(graph, 1, contestant)) * 1e-4, "ns a node");
      }
    }
  }
  struct Speedup {
    const char* graph;
    const char* contestant;
    const char* text;
    // 0 for no target.
    double target;
  };
  for (const auto& [graph, contestant, text, target] :
       {Speedup{kLongChains.name, "ours", "two chains of 20 kernels of ~100 us", 1.9},
        Speedup{kLongChains.name, "flow", "  tbb::flow::graph", 0},
        Speedup{kChainAmongOthers.name, "ours", "a chain of 20 amid 20 others, ~100 us each", 1.9},
        Speedup{kChainAmongOthers.name, "flow", "  tbb::flow::graph", 0}}) {
    const double one = medians.Nanoseconds(Name(graph, 1, contestant));
    const double two = medians.Nanoseconds(Name(graph, 2, contestant));
    const double speedup = two == 0 ? 0 : one / two;
    table->Add(text, "1 and 2", speedup, "times faster");
    if (target > 0) table->Expect(speedup, Table::kAtLeast, target);
  }
}

}  // namespace gradflow::benchmarks
