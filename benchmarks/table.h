// The table of results of all benchmarks.
#ifndef GRADFLOW_BENCHMARKS_TABLE_H_
#define GRADFLOW_BENCHMARKS_TABLE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace gradflow::benchmarks {

// Lines with a measured value, the value that it is compared with, and its target.
class Table {
 public:
  enum Bound { kAtMost, kAtLeast };
  // Adds a line, such as "chain of Neg", "2 threads", 36, "ns a node". Adds none if no value was
  // measured (0, unless `may_be_zero`).
  void Add(absl::string_view what, absl::string_view where, double value, absl::string_view unit,
           bool may_be_zero = false);
  // Adds value / to, which must be at most (at least) `target`, to the last line.
  void Compare(absl::string_view with, double value, double to, Bound bound, double target);
  // Compare() for the value itself.
  void Expect(double value, Bound bound, double target);
  void Print() const;

 private:
  void AddTarget(double value, Bound bound, double target);

  std::vector<std::string> lines_;
  bool skipped_ = false;
};

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_TABLE_H_
