// Times the kernels beside their peers and beside the memory, all in one process, and prints one
// table: medians over repetitions that are interleaved at random, so that what else the machine
// does falls on all alike.
//
//   kernels [--all] [--benchmark_filter=REGEX] [--benchmark_repetitions=N] ...
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmarks/kernels/cases.h"
#include "benchmarks/kernels/runners.h"

namespace gradflow::benchmarks {
namespace {

struct Contestant {
  const char* name;
  Runner (*make)(const Case& c, int threads);
};
constexpr Contestant kContestants[] = {
    {"ours", Ours}, {"triad", Triad}, {"copy", Copy}, {"oneDNN", OneDnn}, {"libtorch", Torch}};
constexpr int kThreads[] = {1, 2};

std::string BenchmarkName(const Case& c, int threads, const char* contestant) {
  return absl::StrCat(c.OpName(), "/", c.ShapeName(), "/", threads, "/", contestant);
}

void RunBenchmark(benchmark::State& state, const Case& c, int threads,
                  Runner (*make)(const Case& c, int threads)) {
  const Runner run = make(c, threads);
  if (run == nullptr) {
    state.SkipWithError("not to be had");
    return;
  }
  // Fills pools and caches, and starts threads.
  for (int i = 0; i < 3; ++i) run();
  for (auto _ : state) run();
}

// Collects the times of all repetitions.
class Collector : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.error_occurred || run.run_type == Run::RT_Aggregate) continue;
      std::fprintf(stderr, ".");
      times_[run.run_name.function_name].push_back(run.real_accumulated_time /
                                                   static_cast<double>(run.iterations));
    }
  }
  // Seconds; 0 if it was not run.
  double Median(const std::string& name) {
    std::vector<double>& times = times_[name];
    if (times.empty()) return 0;
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    return times[times.size() / 2];
  }

 private:
  std::map<std::string, std::vector<double>> times_;
};

void PrintRatio(double seconds, double to) {
  if (seconds > 0 && to > 0) {
    std::printf(" %9.2f", seconds / to);
  } else {
    std::printf(" %9s", "-");
  }
}

void PrintTable(const std::vector<Case>& cases, Collector& collector) {
  std::printf("\n%-42s %-22s %7s %7s %9s %9s | as multiples of ours: %9s %9s\n", "op", "shape",
              "threads", "GB/s", "/ triad", "/ copy", "oneDNN", "libtorch");
  for (const Case& c : cases) {
    for (const int threads : kThreads) {
      const auto median = [&](const char* contestant) {
        return collector.Median(BenchmarkName(c, threads, contestant));
      };
      const double ours = median("ours");
      if (ours == 0) continue;
      std::printf("%-42s %-22s %7d %7.2f", c.OpName().c_str(), c.ShapeName().c_str(), threads,
                  c.Bytes() / ours * 1e-9);
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
  // Google Benchmark's defaults suit many small benchmarks; these are few and noisy.
  std::vector<std::string> arguments = {argv[0], "--benchmark_repetitions=11",
                                        "--benchmark_min_time=0.03",
                                        "--benchmark_enable_random_interleaving=true"};
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--all") == 0) {
      all = true;
    } else {
      arguments.emplace_back(argv[i]);
    }
  }
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  if (benchmark::ReportUnrecognizedArguments(count, pointers.data())) return 2;

  const std::vector<Case> cases = Cases(all);
  for (const Case& c : cases) {
    for (const int threads : kThreads) {
      for (const Contestant& contestant : kContestants) {
        benchmark::RegisterBenchmark(BenchmarkName(c, threads, contestant.name).c_str(),
                                     [c, threads, make = contestant.make](benchmark::State& state) {
                                       RunBenchmark(state, c, threads, make);
                                     })
            ->UseRealTime();
      }
    }
  }
  Collector collector;
  benchmark::RunSpecifiedBenchmarks(&collector);
  PrintTable(cases, collector);
  return 0;
}

}  // namespace
}  // namespace gradflow::benchmarks

int main(int argc, char** argv) { return gradflow::benchmarks::Main(argc, argv); }
