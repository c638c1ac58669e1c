// Times the kernels against their peers and the memory bandwidth, all in one process, and prints a
// table of medians. Repetitions are interleaved at random, so that other load of the machine
// affects all contestants equally.
//
//   kernels [--all] [--benchmark_filter=REGEX] [--benchmark_repetitions=N] ...
#include <benchmark/benchmark.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmarks/harness.h"
#include "benchmarks/kernels/cases.h"
#include "benchmarks/kernels/runners.h"

namespace gradflow::benchmarks {
namespace {

struct KernelContestant {
  const char* name;
  Runner (*make)(const KernelCase& c, int threads);
};
constexpr KernelContestant kContestants[] = {
    {"ours", Ours}, {"triad", Triad}, {"copy", Copy}, {"oneDNN", OneDnn}, {"libtorch", Torch}};
constexpr int kThreads[] = {1, 2};

std::string BenchmarkName(const KernelCase& c, int threads, const char* contestant) {
  return absl::StrCat(c.OpName(), "/", c.ShapeName(), "/", threads, "/", contestant);
}

void RunBenchmark(benchmark::State& state, const KernelCase& c, int threads,
                  Runner (*make)(const KernelCase& c, int threads)) {
  const Runner run = make(c, threads);
  if (run == nullptr) {
    state.SkipWithError("not available");
    return;
  }
  // Warms up: fills pools and caches, and starts threads.
  for (int i = 0; i < 3; ++i) run();
  for (auto _ : state) run();
}

void PrintRatio(double time, double to) {
  if (time > 0 && to > 0) {
    std::printf(" %9.2f", time / to);
  } else {
    std::printf(" %9s", "-");
  }
}

void PrintTable(const std::vector<KernelCase>& cases, const Medians& medians) {
  std::printf("\n%-42s %-22s %7s %7s %9s %9s | as multiples of ours: %9s %9s\n", "op", "shape",
              "threads", "GB/s", "/ triad", "/ copy", "oneDNN", "libtorch");
  for (const KernelCase& c : cases) {
    for (const int threads : kThreads) {
      const auto median = [&](const char* contestant) {
        return medians.Nanoseconds(BenchmarkName(c, threads, contestant));
      };
      const double ours = median("ours");
      if (ours == 0) continue;
      std::printf("%-42s %-22s %7d %7.2f", c.OpName().c_str(), c.ShapeName().c_str(), threads,
                  c.Bytes() / ours);
      PrintRatio(ours, median("triad"));
      PrintRatio(ours, median("copy"));
      std::printf(" | %22s", "");
      PrintRatio(median("oneDNN"), ours);
      PrintRatio(median("libtorch"), ours);
      std::printf("\n");
    }
  }
}

int Main(int argc, char** argv) {
  bool all = false;
  if (!Initialize(argc, argv, "--all", &all)) return 2;

  const std::vector<KernelCase> cases = Cases(all);
  for (const KernelCase& c : cases) {
    for (const int threads : kThreads) {
      for (const KernelContestant& contestant : kContestants) {
        benchmark::RegisterBenchmark(BenchmarkName(c, threads, contestant.name).c_str(),
                                     [c, threads, make = contestant.make](benchmark::State& state) {
                                       RunBenchmark(state, c, threads, make);
                                     })
            ->UseRealTime();
      }
    }
  }
  Medians medians;
  benchmark::RunSpecifiedBenchmarks(&medians);
  PrintTable(cases, medians);
  return 0;
}

}  // namespace
}  // namespace gradflow::benchmarks

int main(int argc, char** argv) { return gradflow::benchmarks::Main(argc, argv); }
