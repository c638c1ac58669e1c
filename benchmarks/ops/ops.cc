// Times ops in a session against the memory bandwidth that limits them or against an equivalent
// function of the C library, the BLAS or libtorch, all in one process, and prints a table of
// medians.
//
//   ops [--benchmark_filter=REGEX] [--benchmark_repetitions=N] ...
//
// With one thread, times are CPU times, which other programs disturb less than wall time.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmarks/harness.h"
#include "benchmarks/ops/cases.h"
#include "benchmarks/table.h"

namespace gradflow::benchmarks {
namespace {

constexpr int kThreads[] = {1, 2};

std::string BenchmarkName(const OpCase& c, int threads, const std::string& contestant) {
  return absl::StrCat(c.name, "/", threads, "/", contestant);
}

void RunBenchmark(benchmark::State& state, const OpCase::Make& make, int threads) {
  const Runner run = make(threads);
  if (run == nullptr) {
    state.SkipWithError("not available");
    return;
  }
  // Warms up: fills pools and caches, and starts threads.
  for (int i = 0; i < 3; ++i) run();
  for (auto _ : state) run();
}

int Main(int argc, char** argv) {
  if (!Initialize(argc, argv)) return 2;
  const std::vector<OpCase> cases = Cases();
  for (const OpCase& c : cases) {
    for (const int threads : kThreads) {
      const auto add = [&](const std::string& contestant, const OpCase::Make& make) {
        benchmark::RegisterBenchmark(
            BenchmarkName(c, threads, contestant).c_str(),
            [=](benchmark::State& state) { RunBenchmark(state, make, threads); })
            ->UseRealTime()
            ->MeasureProcessCPUTime();
      };
      add("ours", c.ours);
      add(c.peer_name, c.peer);
    }
  }
  Medians medians;
  benchmark::RunSpecifiedBenchmarks(&medians);
  Table table;
  for (const OpCase& c : cases) {
    for (const int threads : kThreads) {
      const auto median = [&](const std::string& contestant) {
        const std::string name = BenchmarkName(c, threads, contestant);
        return threads == 1 ? medians.CpuNanoseconds(name) : medians.Nanoseconds(name);
      };
      const double ours = median("ours");
      const double peer = median(c.peer_name);
      table.Add(c.name, absl::StrCat(threads), ours / 1e6, "ms");
      if (ours == 0) continue;
      if (c.bound == Table::kAtMost) {
        table.Compare(c.peer_name, ours, peer, c.bound, c.target);
      } else {
        table.Compare(c.peer_name, peer, ours, c.bound, c.target);
      }
    }
  }
  table.Print();
  return 0;
}

}  // namespace
}  // namespace gradflow::benchmarks

int main(int argc, char** argv) { return gradflow::benchmarks::Main(argc, argv); }
