// Loading, planning and building large graphs.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmarks/harness.h"
#include "benchmarks/runtime/cases.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/import.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/plan/kernel_cache.h"
#include "gradflow/runtime/plan/plan.h"
#include "gradflow/runtime/session/session.h"

namespace gradflow::benchmarks {
namespace {

constexpr char kParse[] = "loading/parse";
constexpr char kImport[] = "loading/import";
constexpr char kPlan[] = "loading/plan";
constexpr char kFirstRun[] = "loading/first_run";
constexpr char kFirstRunOfFewer[] = "loading/first_run_of_fewer";
constexpr char kScope[] = "loading/scope";

int num_nodes = 0;

// Returns a graph of about `nodes` nodes in sub-scopes of 100 nodes, like a network with many
// layers: sums of two earlier nodes, other elementwise ops, and one constant per ten nodes. The
// last node is "end".
Scope BuildGraph(int nodes) {
  const Scope scope = Scope::NewRootScope();
  Output x = ops::Placeholder(scope.WithOpName("x"), DT_FLOAT);
  Output before = x;
  const auto next = [&](const Output& y) {
    before = x;
    x = y;
  };
  for (int made = 1; made < nodes - 1;) {
    const Scope layer = scope.NewSubScope("layer");
    for (int i = 0; i < 10; ++i, made += 10) {
      const Output c = ops::Const(layer, static_cast<float>(made));
      next(ops::AddV2(layer, x, c));
      next(ops::Mul(layer, x, before));
      next(ops::Neg(layer, x));
      next(ops::Sub(layer, x, before));
      next(ops::Relu(layer, x));
      next(ops::AddV2(layer, x, before));
      next(ops::Square(layer, x));
      next(ops::Maximum(layer, x, before));
      next(ops::Identity(layer, x));
    }
  }
  ops::Identity(scope.WithOpName("end"), x);
  Check(scope.status());
  return scope;
}

const std::string& GraphBytes() {
  static const std::string* const bytes =
      new std::string(BuildGraph(num_nodes).graph()->def().SerializeAsString());
  return *bytes;
}

GraphDef ParsedGraph() {
  GraphDef def;
  if (!def.ParseFromString(GraphBytes())) Check(absl::InternalError("the bytes do not parse"));
  return def;
}

// Returns the number of bytes that the program has allocated.
double HeapBytes() {
  const auto info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

double Nodes(const Graph& graph) { return graph.num_nodes(); }

void Parse(benchmark::State& state) {
  GraphBytes();
  for (auto _ : state) {
    auto def = std::make_unique<GraphDef>();
    if (!def->ParseFromString(GraphBytes())) Check(absl::InternalError("the bytes do not parse"));
    state.PauseTiming();
    def = nullptr;
    malloc_trim(0);
    state.ResumeTiming();
  }
}

// Imports a graph from its bytes. Includes the parsing that it is compared with.
void Import(benchmark::State& state) {
  GraphBytes();
  for (auto _ : state) {
    auto graph = std::make_unique<Graph>();
    Check(ImportGraphDef(ImportGraphDefOptions(), ParsedGraph(), graph.get()));
    state.PauseTiming();
    graph = nullptr;
    malloc_trim(0);
    state.ResumeTiming();
  }
}

void MakePlan(benchmark::State& state) {
  GraphDef def = ParsedGraph();
  const double parsed = HeapBytes();
  Graph graph;
  Check(ImportGraphDef(ImportGraphDefOptions(), std::move(def), &graph));
  const double imported = HeapBytes();
  for (auto _ : state) {
    auto kernels = std::make_unique<KernelCache>();
    auto plan = Plan::Make(graph, {{"x"}, {"end"}, {}}, kernels.get());
    state.PauseTiming();
    Check(plan.status());
    const double planned = HeapBytes();
    state.counters["graph_bytes"] = (imported - parsed) / Nodes(graph);
    state.counters["plan_bytes"] = (planned - imported) / Nodes(graph);
    *plan = nullptr;
    kernels = nullptr;
    malloc_trim(0);
    state.ResumeTiming();
  }
}

// Times the first run of a session, which creates kernels and a plan.
void FirstRun(benchmark::State& state, int nodes) {
  const GraphDef def = BuildGraph(nodes).graph()->def();
  for (auto _ : state) {
    state.PauseTiming();
    const std::unique_ptr<Session> session(NewSession(SessionOptions()));
    Check(session->Create(def));
    malloc_trim(0);
    state.ResumeTiming();
    std::vector<Tensor> outputs;
    Check(session->Run({{"x", Tensor(1.0f)}}, {"end"}, {}, &outputs));
  }
}
void FirstRunOfAll(benchmark::State& state) { FirstRun(state, num_nodes); }
void FirstRunOfFewer(benchmark::State& state) { FirstRun(state, num_nodes / 10); }

void BuildThroughScope(benchmark::State& state) {
  for (auto _ : state) {
    auto scope = std::make_unique<Scope>(BuildGraph(num_nodes));
    state.PauseTiming();
    scope = nullptr;
    malloc_trim(0);
    state.ResumeTiming();
  }
}

}  // namespace

void RegisterLoadingCases(int nodes) {
  num_nodes = nodes;
  const struct {
    const char* name;
    void (*run)(benchmark::State&);
  } cases[] = {{kParse, Parse},
               {kImport, Import},
               {kPlan, MakePlan},
               {kFirstRun, FirstRunOfAll},
               {kFirstRunOfFewer, FirstRunOfFewer},
               {kScope, BuildThroughScope}};
  for (const auto& [name, fn] : cases) {
    benchmark::RegisterBenchmark(name, fn)->UseRealTime()->Iterations(1)->Repetitions(3);
  }
}

void PrintLoadingCases(const Medians& medians, Table* table) {
  const auto nanoseconds = [&](const char* name) { return medians.Nanoseconds(name) / num_nodes; };
  const std::string nodes = absl::StrCat(num_nodes, " nodes: ");
  table->Add(nodes + "parse of the GraphDef", "1", nanoseconds(kParse), "ns a node");
  table->Add(nodes + "parse and import", "1", nanoseconds(kImport), "ns a node");
  table->Compare("the parse", nanoseconds(kImport), nanoseconds(kParse), Table::kAtMost, 3);
  const auto add = [&](const char* what, double value, const char* unit, double target) {
    table->Add(nodes + what, "1", value, unit);
    if (target > 0) table->Expect(value, Table::kAtMost, target);
  };
  add("plan", nanoseconds(kPlan), "ns a node", 1000);
  add("plan and first run", nanoseconds(kFirstRun), "ns a node", 0);
  add("the same of a tenth of them", nanoseconds(kFirstRunOfFewer) * 10, "ns a node", 0);
  add("Scope", nanoseconds(kScope), "ns a node", 1500);
  const double graph_bytes = medians.Counter(kPlan, "graph_bytes");
  const double plan_bytes = medians.Counter(kPlan, "plan_bytes");
  add("index beside the GraphDef", graph_bytes, "bytes a node", 0);
  add("plan and kernels", plan_bytes, "bytes a node", 0);
  add("all of it", graph_bytes + plan_bytes, "bytes a node", 400);
}

}  // namespace gradflow::benchmarks
