#include "gradflow/graph/unique_names.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace gradflow::internal {

std::string UniqueNames::Take(absl::string_view name) {
  auto entry = counters_.find(name);
  if (entry == counters_.end()) {
    const bool taken = IsGenerated(name);
    entry = counters_.emplace(name, 0).first;
    if (!taken) return std::string(name);
  }
  std::string unique;
  do {
    unique = absl::StrCat(name, "_", ++entry->second);
  } while (counters_.contains(unique));
  return unique;
}

// Whether `name` is a name_<k> that Take(name) has given or passed over.
bool UniqueNames::IsGenerated(absl::string_view name) const {
  const size_t separator = name.rfind('_');
  if (separator == absl::string_view::npos) return false;
  const absl::string_view digits = name.substr(separator + 1);
  // Only as StrCat writes them: no sign, no space, no leading zero.
  if (digits.empty() || !absl::ascii_isdigit(digits[0]) || digits[0] == '0') return false;
  int number;
  if (!absl::SimpleAtoi(digits, &number)) return false;
  const auto entry = counters_.find(name.substr(0, separator));
  return entry != counters_.end() && number <= entry->second;
}

}  // namespace gradflow::internal
