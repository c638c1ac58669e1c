// The cost of calls, branches and the iterations of loops, compared with the same nodes outside of
// functions, branches and loops.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmarks/harness.h"
#include "benchmarks/runtime/cases.h"
#include "gradflow/graph/function_builder.h"
#include "gradflow/graph/while_loop.h"
#include "gradflow/ops/functional_ops.h"
#include "gradflow/ops/list_ops.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/session.h"

namespace gradflow::benchmarks {
namespace {

constexpr char kIfs[] = "1,000 Ifs of one node";
constexpr char kCalls[] = "1,000 calls of one node";
constexpr char kLoop[] = "1,000 iterations of a While";
constexpr char kLongLoop[] = "1,000,000 iterations of a While";
constexpr char kPushes[] = "10,000 pushes to a list";
constexpr char kMorePushes[] = "1,000,000 pushes to a list";
constexpr char kOurs[] = "ours";
constexpr char kNodes[] = "nodes alone";
constexpr char kVersion1[] = "Enter and Exit";
// The number of branches or calls in a chain.
constexpr int kChainLength = 1000;
constexpr int kIterations = 1000;
// The nodes of a loop's body, without its counter.
constexpr int kBodyNodes = 8;

NameAttrList Named(const std::string& name) {
  NameAttrList function;
  function.set_name(name);
  return function;
}

GraphDef Finish(const Scope& scope) {
  GraphDef graph;
  Check(scope.ToGraphDef(&graph));
  return graph;
}

// A chain of branches that each negate, or the chain of negations alone.
GraphDef Ifs(bool with_branches) {
  const Scope scope = Scope::NewRootScope();
  for (const char* const name : {"then", "else"}) {
    FunctionBuilder branch(name, scope);
    branch.Result("y", ops::Neg(branch.scope(), branch.Arg("x", DT_FLOAT)));
    Check(branch.AddTo(scope));
  }
  Output last = ops::Placeholder(scope.WithOpName("x"), DT_FLOAT);
  const Output condition = ops::Placeholder(scope.WithOpName("condition"), DT_BOOL);
  for (int i = 0; i < kChainLength; ++i) {
    last = with_branches
               ? ops::If(scope, condition, {last}, {DT_FLOAT}, Named("then"), Named("else"))[0]
               : Output(ops::Neg(scope, last));
  }
  ops::Identity(scope.WithOpName("y"), last);
  return Finish(scope);
}

// A chain of calls that are inlined.
GraphDef Calls() {
  const Scope scope = Scope::NewRootScope();
  FunctionBuilder function("negate", scope);
  function.Result("y", ops::Neg(function.scope(), function.Arg("x", DT_FLOAT)));
  Check(function.AddTo(scope));
  Output last = ops::Placeholder(scope.WithOpName("x"), DT_FLOAT);
  // RunGraph feeds this placeholder; no node reads it.
  ops::Placeholder(scope.WithOpName("condition"), DT_BOOL);
  for (int i = 0; i < kChainLength; ++i) {
    last = ops::PartitionedCall(scope, {last}, {DT_FLOAT}, Named("negate"))[0];
  }
  ops::Identity(scope.WithOpName("y"), last);
  return Finish(scope);
}

// The nodes of an iteration, which advance a counter and a value.
std::pair<Output, Output> AddIteration(const Scope& scope, const Output& i, Output x) {
  for (int n = 0; n < kBodyNodes; ++n) x = ops::Neg(scope, x);
  return {ops::AddV2(scope, i, 1), x};
}

GraphDef Loop(int iterations) {
  const Scope scope = Scope::NewRootScope();
  FunctionBuilder condition("condition", scope);
  const Output count = condition.Arg("i", DT_INT32);
  condition.Arg("x", DT_FLOAT);
  condition.Result("less", ops::Less(condition.scope(), count, iterations));
  Check(condition.AddTo(scope));
  FunctionBuilder body("body", scope);
  const Output first_i = body.Arg("i", DT_INT32);
  const Output first_x = body.Arg("x", DT_FLOAT);
  const auto [i, x] = AddIteration(body.scope(), first_i, first_x);
  body.Result("next_i", i);
  body.Result("next_x", x);
  Check(body.AddTo(scope));
  const auto loop = ops::While(scope,
                               {ops::Placeholder(scope.WithOpName("i"), DT_INT32),
                                ops::Placeholder(scope.WithOpName("x"), DT_FLOAT)},
                               Named("condition"), Named("body"));
  ops::Identity(scope.WithOpName("y"), loop[1]);
  return Finish(scope);
}

// The loop as version 1 control flow.
GraphDef Version1Loop(int iterations) {
  const Scope scope = Scope::NewRootScope();
  OutputList results;
  Check(ops::BuildWhileLoop(
      scope,
      {ops::Placeholder(scope.WithOpName("i"), DT_INT32),
       ops::Placeholder(scope.WithOpName("x"), DT_FLOAT)},
      [=](const Scope& s, const std::vector<Output>& variables, Output* output) {
        *output = ops::Less(s, variables[0], iterations);
        return s.status();
      },
      [](const Scope& s, const std::vector<Output>& variables, std::vector<Output>* outputs) {
        const auto [i, x] = AddIteration(s, variables[0], variables[1]);
        *outputs = {i, x};
        return s.status();
      },
      "loop", &results));
  ops::Identity(scope.WithOpName("y"), results[1]);
  return Finish(scope);
}

// The nodes of all iterations, with the comparisons.
GraphDef Unrolled() {
  const Scope scope = Scope::NewRootScope();
  Output i = ops::Placeholder(scope.WithOpName("i"), DT_INT32);
  Output x = ops::Placeholder(scope.WithOpName("x"), DT_FLOAT);
  std::vector<Operation> comparisons;
  for (int n = 0; n < kIterations; ++n) {
    std::tie(i, x) = AddIteration(scope, i, x);
    comparisons.push_back(Output(ops::Less(scope, i, kIterations)).op());
  }
  ops::Identity(scope.WithOpName("y").WithControlDependencies(comparisons), x);
  return Finish(scope);
}

// Pushes a number to a list in each iteration.
GraphDef Pushes(int pushes) {
  const Scope scope = Scope::NewRootScope();
  FunctionBuilder condition("condition", scope);
  const Output count = condition.Arg("i", DT_INT32);
  condition.Arg("list", DT_VARIANT);
  condition.Result("less", ops::Less(condition.scope(), count, pushes));
  Check(condition.AddTo(scope));
  FunctionBuilder body("body", scope);
  const Output i = body.Arg("i", DT_INT32);
  const Output list = body.Arg("list", DT_VARIANT);
  body.Result("next_i", ops::AddV2(body.scope(), i, 1));
  body.Result("next_list", ops::TensorListPushBack(body.scope(), list, i));
  Check(body.AddTo(scope));
  const Output empty = ops::EmptyTensorList(scope, -1, -1, DT_INT32);
  const auto loop = ops::While(scope, {ops::Placeholder(scope.WithOpName("i"), DT_INT32), empty},
                               Named("condition"), Named("body"));
  // RunGraph feeds this placeholder; no node reads it.
  ops::Placeholder(scope.WithOpName("x"), DT_FLOAT);
  ops::TensorListLength(scope.WithOpName("y"), loop[1]);
  return Finish(scope);
}

void RunGraph(benchmark::State& state, const GraphDef& graph, int threads,
              const std::string& second, const Tensor& value) {
  SessionOptions options;
  options.config.set_intra_op_parallelism_threads(threads);
  options.config.set_inter_op_parallelism_threads(threads);
  const std::unique_ptr<Session> session(NewSession(options));
  Check(session->Create(graph));
  Tensor x(DT_FLOAT, {});
  x.scalar<float>()() = 1;
  const std::vector<std::pair<std::string, Tensor>> feeds = {{"x", x}, {second, value}};
  std::vector<Tensor> outputs;
  Check(session->Run(feeds, {"y"}, {}, &outputs));
  for (auto _ : state) Check(session->Run(feeds, {"y"}, {}, &outputs));
}

std::string NameOf(const char* what, int threads, const char* contestant) {
  return absl::StrCat(what, "/", threads, "/", contestant);
}

}  // namespace

void RegisterFunctionCases() {
  const auto add = [](const char* what, const char* contestant, const GraphDef& graph,
                      const std::string& second, const Tensor& value) {
    for (const int threads : {1, 2}) {
      benchmark::RegisterBenchmark(
          NameOf(what, threads, contestant).c_str(),
          [=](benchmark::State& state) { RunGraph(state, graph, threads, second, value); });
    }
  };
  Tensor condition(DT_BOOL, {});
  condition.scalar<bool>()() = true;
  Tensor start(DT_INT32, {});
  start.scalar<int32_t>()() = 0;
  add(kIfs, kOurs, Ifs(true), "condition", condition);
  add(kIfs, kNodes, Ifs(false), "condition", condition);
  add(kCalls, kOurs, Calls(), "condition", condition);
  add(kLoop, kOurs, Loop(kIterations), "i", start);
  add(kLoop, kNodes, Unrolled(), "i", start);
  add(kLoop, kVersion1, Version1Loop(kIterations), "i", start);
  add(kLongLoop, kOurs, Loop(1'000'000), "i", start);
  add(kPushes, kOurs, Pushes(10'000), "i", start);
  add(kMorePushes, kOurs, Pushes(1'000'000), "i", start);
}

void PrintFunctionCases(const Medians& medians, Table* table) {
  for (const int threads : {1, 2}) {
    const double ifs = medians.Nanoseconds(NameOf(kIfs, threads, kOurs));
    const double nodes = medians.Nanoseconds(NameOf(kIfs, threads, kNodes));
    const double loop = medians.Nanoseconds(NameOf(kLoop, threads, kOurs)) / kIterations;
    const double unrolled = medians.Nanoseconds(NameOf(kLoop, threads, kNodes)) / kIterations;
    const std::string where = absl::StrCat(threads, threads == 1 ? " thread" : " threads");
    const double more = ifs > 0 ? (ifs - nodes) / kChainLength : 0;
    table->Add("an If, beyond the nodes of its branch", where, more, "ns");
    table->Expect(more, Table::kAtMost, 150);
    const double calls = medians.Nanoseconds(NameOf(kCalls, threads, kOurs));
    table->Add("1,000 inlined calls", where, calls, "ns");
    table->Compare("their nodes", calls, nodes, Table::kAtMost, 1.05);
    table->Add(absl::StrCat("iteration of a While of ", kBodyNodes, " nodes"), where, loop, "ns");
    // The ratio leaves out 60 ns that each iteration may cost beyond its nodes.
    table->Compare("its nodes unrolled", loop - 60, unrolled, Table::kAtMost, 1.5);
    const double version1 = medians.Nanoseconds(NameOf(kLoop, threads, kVersion1)) / kIterations;
    table->Add("iteration of Enter and Exit", where, version1, "ns");
    table->Compare("an iteration of a While", version1, loop, Table::kAtMost, 1.1);
    const double longer = medians.Nanoseconds(NameOf(kLongLoop, threads, kOurs)) / 1'000'000;
    table->Add("iteration of 1,000,000", where, longer, "ns");
    table->Compare("an iteration of 1,000", longer, loop, Table::kAtMost, 1.2);
    const double pushes = medians.Nanoseconds(NameOf(kPushes, threads, kOurs)) / 10'000;
    const double more_pushes = medians.Nanoseconds(NameOf(kMorePushes, threads, kOurs)) / 1'000'000;
    table->Add("push to a list, of 1,000,000", where, more_pushes, "ns");
    table->Compare("a push of 10,000", more_pushes, pushes, Table::kAtMost, 2);
  }
}

}  // namespace gradflow::benchmarks
