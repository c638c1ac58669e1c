#include "benchmarks/table.h"

#include <cstdio>

#include "absl/strings/str_format.h"

namespace gradflow::benchmarks {

void Table::Add(absl::string_view what, absl::string_view where, double value,
                absl::string_view unit, bool may_be_zero) {
  skipped_ = value == 0 && !may_be_zero;
  if (skipped_) return;
  lines_.push_back(absl::StrFormat("%-44s %-10s %10.4g %-12s", what, where, value, unit));
}

void Table::Compare(absl::string_view with, double value, double to, Bound bound, double target) {
  if (skipped_ || to == 0) return;
  absl::StrAppendFormat(&lines_.back(), " %9.3g x %-18s", value / to, with);
  AddTarget(value / to, bound, target);
}

void Table::Expect(double value, Bound bound, double target) {
  if (skipped_) return;
  absl::StrAppendFormat(&lines_.back(), " %30s", "");
  AddTarget(value, bound, target);
}

void Table::AddTarget(double value, Bound bound, double target) {
  const bool met = bound == kAtMost ? value <= target : value >= target;
  absl::StrAppendFormat(&lines_.back(), " %s %-4g %s", bound == kAtMost ? "<=" : ">=", target,
                        met ? "" : "MISSED");
}

void Table::Print() const {
  std::printf("\n%-44s %-10s %10s %-12s %9s   %-18s %s\n", "case", "threads", "ours", "", "ratio",
              "to", "target");
  for (const std::string& line : lines_) std::printf("%s\n", line.c_str());
}

}  // namespace gradflow::benchmarks
