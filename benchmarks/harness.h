// Helpers that the benchmark programs share.
#ifndef GRADFLOW_BENCHMARKS_HARNESS_H_
#define GRADFLOW_BENCHMARKS_HARNESS_H_

#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gradflow::benchmarks {

// Prints an error and ends the program, because a benchmark that cannot run is a bug in the
// program.
void Check(const absl::Status& status);

// Initializes Google Benchmark with defaults for few, noisy benchmarks. Repetitions are interleaved
// at random, so that other load of the machine affects all benchmarks equally. Arguments override
// the defaults. Sets *flag to true if `name`, such as "--all", is among the arguments. Reports an
// invalid argument and returns false. The context of results in JSON contains gradflow's version,
// its SIMD target and the versions of its libraries.
//
// `./dev bench --record` reads the case, the threads and the contestant from a benchmark's name:
// "<case>/<threads>/<contestant>". The contestant is "ours" or a peer of the same case.
bool Initialize(int argc, char** argv, const char* name = nullptr, bool* flag = nullptr);

// Collects the time of an iteration and the counters of every repetition.
class Medians : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override;

  // Returns the median time of an iteration; 0 if the benchmark did not run.
  double Nanoseconds(const std::string& name) const { return Median(name); }
  // Returns the median CPU time of an iteration. If the benchmark measures process time, this is
  // the CPU time of the whole process.
  double CpuNanoseconds(const std::string& name) const { return Median(name + "#cpu time"); }
  double Counter(const std::string& name, const std::string& counter) const {
    return Median(name + "#" + counter);
  }

 private:
  double Median(const std::string& key) const;

  // Keyed by the benchmark's name and by "name#counter".
  std::map<std::string, std::vector<double>> samples_;
};

// Writes times in Google Benchmark's JSON format. Programs that measure times themselves use it, so
// that `./dev bench --record` can read the results of all programs.
class Results {
 public:
  // Removes --benchmark_out=FILE from the arguments. Without it, Write() does nothing.
  Results(int* argc, char** argv);
  // Adds the time of a contestant ("ours" or a peer). Ignores times of 0, which mean that the
  // contestant did not run.
  void Add(absl::string_view name, int threads, absl::string_view contestant, double seconds);
  // Writes the file, or prints an error and ends the program.
  void Write() const;

 private:
  std::string path_;
  std::vector<benchmark::BenchmarkReporter::Run> runs_;
};

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_HARNESS_H_
