// What the benchmark programs share.
#ifndef GRADFLOW_BENCHMARKS_HARNESS_H_
#define GRADFLOW_BENCHMARKS_HARNESS_H_

#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace gradflow::benchmarks {

// A benchmark that cannot run is a mistake in its program, which then says so and ends.
void Check(const absl::Status& status);

// Starts Google Benchmark with defaults for few and noisy benchmarks (interleaved at random, so
// that what else the machine does falls on all alike), which the arguments may change. *flag is
// whether `name`, "--name", is among them. False if an argument is wrong; it has been reported.
bool Initialize(int argc, char** argv, const char* name, bool* flag);

// Collects the time of an iteration and the counters of every repetition.
class Medians : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override;

  // Of an iteration; 0 if the benchmark was not run.
  double Nanoseconds(const std::string& name) const { return Median(name); }
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
