#include "gradflow/graph/unique_names.h"

#include <initializer_list>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gradflow::internal {

namespace {

// Like StrCat, but the result has no spare capacity, because graphs have millions of names.
std::string Join(std::initializer_list<absl::string_view> parts) {
  char joined[256];
  size_t size = 0;
  for (const absl::string_view part : parts) {
    if (part.size() > sizeof(joined) - size) return absl::StrJoin(parts, "");
    size += part.copy(joined + size, part.size());
  }
  return std::string(joined, size);
}

}  // namespace

std::string UniqueNames::Take(absl::string_view scope, absl::string_view name) {
  const absl::string_view slash = scope.empty() ? "" : "/";
  auto entry = counters_.find(name);
  if (entry == counters_.end()) {
    const int number = NumberOf(name);
    if (number > 0) has_numbered_ = true;
    const bool taken = number > 0 && IsGenerated(name, number);
    entry = counters_.emplace(name, 0).first;
    if (!taken) return Join({scope, name.empty() ? "" : slash, name});
  }
  int& number = entry->second;
  do {
    ++number;
  } while (has_numbered_ && counters_.contains(absl::StrCat(name, "_", number)));
  return Join({scope, slash, name, "_", absl::AlphaNum(number).Piece()});
}

// Returns k if `name` is a name_<k> as Take writes it, otherwise 0.
int UniqueNames::NumberOf(absl::string_view name) {
  const absl::string_view digits = name.substr(name.rfind('_') + 1);
  // StrCat writes no sign, no space and no leading zero.
  if (digits.size() == name.size() || digits.empty() || !absl::ascii_isdigit(digits[0]) ||
      digits[0] == '0') {
    return 0;
  }
  int number;
  return absl::SimpleAtoi(digits, &number) ? number : 0;
}

// Returns true if `name`, which ends in _<number>, was taken or skipped for the name without the
// suffix.
bool UniqueNames::IsGenerated(absl::string_view name, int number) const {
  const auto entry = counters_.find(name.substr(0, name.rfind('_')));
  return entry != counters_.end() && number <= entry->second;
}

}  // namespace gradflow::internal
