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

// Prints an error and ends the program: a benchmark that cannot run is a mistake in its program.
void Check(const absl::Status& status);

// Initializes Google Benchmark with defaults for few and noisy benchmarks, which the arguments may
// override: repetitions are interleaved at random, so that other load of the machine affects all
// alike. Sets *flag to true if `name`, such as "--all", is among the arguments. Reports a wrong
// argument and returns false. The context of results in JSON has gradflow's version, its SIMD
// target and the versions of its libraries.
//
// `./dev bench --record` reads the case, the threads and the contestant from a benchmark's name:
// "<case>/<threads>/<contestant>". The contestant is "ours" or a peer of the same case.
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

// Writes the times of a program that measures them itself in Google Benchmark's JSON format, so
// that
// `./dev bench --record` reads the results of all programs alike.
class Results {
 public:
  // Takes --benchmark_out=FILE from the arguments. Nothing is written without it.
  Results(int* argc, char** argv);
  // Adds the time of a contestant ("ours" or a peer). Adds nothing for 0: the contestant did not
  // run.
  void Add(absl::string_view name, int threads, absl::string_view contestant, double seconds);
  // Writes the file, or prints an error and ends the program.
  void Write() const;

 private:
  std::string path_;
  std::vector<benchmark::BenchmarkReporter::Run> runs_;
};

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_HARNESS_H_
