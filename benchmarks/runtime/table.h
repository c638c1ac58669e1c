// The medians of all benchmarks, and the table that is printed of them.
#ifndef GRADFLOW_BENCHMARKS_RUNTIME_TABLE_H_
#define GRADFLOW_BENCHMARKS_RUNTIME_TABLE_H_

#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gradflow::benchmarks {

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

// Lines of what was measured, what it is compared with, and what it is to be.
class Table {
 public:
  enum Bound { kAtMost, kAtLeast };
  // "chain of Neg", "2 threads", 36, "ns a node". Without a value that was measured (0, unless
  // `may_be_zero`) there is no line.
  void Add(absl::string_view what, absl::string_view where, double value, absl::string_view unit,
           bool may_be_zero = false);
  // Adds value / to, which is to be at most (at least) `target`, to the last line.
  void Compare(absl::string_view with, double value, double to, Bound bound, double target);
  // The same for the value itself.
  void Expect(double value, Bound bound, double target);
  void Print() const;

 private:
  void AddTarget(double value, Bound bound, double target);

  std::vector<std::string> lines_;
  bool skipped_ = false;
};

// A benchmark that cannot run is a mistake in this program, which then ends.
void Check(const absl::Status& status);

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_RUNTIME_TABLE_H_
