// RE2 if the system has it, otherwise full and partial matching by std::regex.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_REGEXP_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_REGEXP_H_

#include <string>

#include "tensorflow/core/lib/core/stringpiece.h"

#if __has_include(<re2/re2.h>)
#include <re2/re2.h>
#else
#include <regex>

// No captures. An invalid pattern matches nothing.
class RE2 {
 public:
  RE2(const char* pattern) : RE2(std::string(pattern)) {}  // NOLINT: as RE2's
  RE2(const std::string& pattern)                          // NOLINT
  : ok_(Compile(pattern)) {}

  bool ok() const { return ok_; }
  static bool FullMatch(absl::string_view text, const RE2& re) {
    return re.ok_ && std::regex_match(text.begin(), text.end(), re.regex_);
  }
  static bool PartialMatch(absl::string_view text, const RE2& re) {
    return re.ok_ && std::regex_search(text.begin(), text.end(), re.regex_);
  }

 private:
  bool Compile(const std::string& pattern) {
    try {
      regex_.assign(pattern);
      return true;
    } catch (const std::regex_error&) {
      return false;
    }
  }

  std::regex regex_;
  bool ok_;
};
#endif

namespace tensorflow {

using ::RE2;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_REGEXP_H_
