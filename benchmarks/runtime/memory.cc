// The memory of a long chain of large tensors.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <chrono>
#include <memory>
#include <vector>

#include "benchmarks/harness.h"
#include "benchmarks/runtime/cases.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/session.h"

namespace gradflow::benchmarks {
namespace {

constexpr char kName[] = "memory/chain";
constexpr int kOps = 1000;

int64_t PageFaults() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

void RunChain(benchmark::State& state, int mebibytes) {
  const Scope scope = Scope::NewRootScope();
  Output y = ops::Placeholder(scope.WithOpName("x"), DT_FLOAT);
  for (int i = 0; i < kOps - 1; ++i) y = ops::Neg(scope, y);
  ops::Neg(scope.WithOpName("y"), y);
  GraphDef def;
  Check(scope.ToGraphDef(&def));
  const std::unique_ptr<Session> session(NewSession(SessionOptions()));
  Check(session->Create(def));

  const int64_t bytes = int64_t{mebibytes} << 20;
  Tensor x(DT_FLOAT, {bytes / static_cast<int64_t>(sizeof(float))});
  x.flat<float>().setConstant(1);
  const auto run = [&] {
    std::vector<Tensor> outputs;
    Check(session->Run({{"x", x}}, {"y"}, {}, &outputs));
  };
  run();
  session->ResetPeakMemory();
  const int64_t allocations = session->MemoryStats().system_allocations;
  int64_t faults = 0;
  for (auto _ : state) {
    // Counts only page faults of the run: code before and after the loop also touches pages.
    const int64_t before = PageFaults();
    run();
    faults += PageFaults() - before;
  }
  state.counters["faults"] = static_cast<double>(faults);
  const PoolAllocator::Stats stats = session->MemoryStats();
  state.counters["allocations"] = static_cast<double>(stats.system_allocations - allocations);
  // Includes the fed tensor, which the caller owns.
  state.counters["buffers"] =
      1 + static_cast<double>(stats.peak_bytes_in_use) / static_cast<double>(bytes);
}

}  // namespace

void RegisterMemoryCases(int mebibytes) {
  benchmark::RegisterBenchmark(kName,
                               [mebibytes](benchmark::State& state) { RunChain(state, mebibytes); })
      ->UseRealTime()
      ->Iterations(1)
      ->Repetitions(1);
}

void PrintMemoryCases(const Medians& medians, Table* table) {
  if (medians.Nanoseconds(kName) == 0) return;
  const auto add = [&](const char* what, const char* counter, const char* unit, double target) {
    const double value = medians.Counter(kName, counter);
    table->Add(what, "all", value, unit, /*may_be_zero=*/true);
    table->Expect(value, Table::kAtMost, target);
  };
  // A block of the pool is slightly larger than its tensor, because it has a header.
  add("1,000 elementwise ops: peak memory", "buffers", "tensors", 2.001);
  add("  a second run's system allocations", "allocations", "", 0);
  add("  a second run's page faults", "faults", "", 0);
  table->Add("  time of an op", "all", medians.Nanoseconds(kName) * 1e-6 / kOps, "ms");
}

}  // namespace gradflow::benchmarks
