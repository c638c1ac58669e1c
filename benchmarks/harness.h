// Helpers that the benchmark programs share.
#ifndef GRADFLOW_BENCHMARKS_HARNESS_H_
#define GRADFLOW_BENCHMARKS_HARNESS_H_

#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace gradflow::benchmarks {

// Prints an error and ends the program: a benchmark that cannot run is a mistake in its program.
void Check(const absl::Status& status);

// Initializes Google Benchmark with defaults for few and noisy benchmarks, which the arguments may
// override: repetitions are interleaved at random, so that other load of the machine affects all
// alike. Sets *flag to true if `name`, such as "--all", is among the arguments. Reports a wrong
// argument and returns false.
bool Initialize(int argc, char** argv, const char* name = nullptr, bool* flag = nullptr);

// Collects the time of an iteration and the counters of every repetition.
class Medians : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override;

  // Returns the time of an iteration; 0 if the benchmark was not run.
  double Nanoseconds(const std::string& name) const { return Median(name); }
  // Returns the CPU time of an iteration: that of the process, if the benchmark measures it.
  double CpuNanoseconds(const std::string& name) const { return Median(name + "#cpu time"); }
  double Counter(const std::string& name, const std::string& counter) const {
    return Median(name + "#" + counter);
  }

 private:
  double Median(const std::string& key) const;

  // By the benchmark's name, and "name#counter".
  std::map<std::string, std::vector<double>> samples_;
};

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_HARNESS_H_
