// The table of results of all benchmarks.
#ifndef GRADFLOW_BENCHMARKS_TABLE_H_
#define GRADFLOW_BENCHMARKS_TABLE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace gradflow::benchmarks {

// Lines with a measured value, a reference value, and a target for their ratio.
class Table {
 public:
  enum Bound { kAtMost, kAtLeast };
  // Adds a line, such as "chain of Neg", "2 threads", 36, "ns a node". Adds nothing if the value is
  // 0, which means that nothing was measured, unless `may_be_zero`.
  void Add(absl::string_view what, absl::string_view where, double value, absl::string_view unit,
           bool may_be_zero = false);
  // Adds the ratio value / to and its target to the last line. The ratio must be at most or at
  // least `target`.
  void Compare(absl::string_view with, double value, double to, Bound bound, double target);
  // Adds a target for the value itself.
  void Expect(double value, Bound bound, double target);
  void Print() const;

 private:
  void AddTarget(double value, Bound bound, double target);

  std::vector<std::string> lines_;
  bool skipped_ = false;
};

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_TABLE_H_
