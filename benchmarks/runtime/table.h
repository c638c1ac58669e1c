// The table that is printed of all benchmarks.
#ifndef GRADFLOW_BENCHMARKS_RUNTIME_TABLE_H_
#define GRADFLOW_BENCHMARKS_RUNTIME_TABLE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace gradflow::benchmarks {

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

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_RUNTIME_TABLE_H_
