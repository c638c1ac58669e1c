// str_util: string functions that predate their counterparts in Abseil.
#ifndef GRADFLOW_COMPAT_CORE_LIB_STRINGS_STR_UTIL_H_
#define GRADFLOW_COMPAT_CORE_LIB_STRINGS_STR_UTIL_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {
namespace str_util {

using absl::EndsWith;
using absl::StartsWith;
using absl::StrContains;

// Selects the parts that Split keeps.
using AllowEmpty = absl::AllowEmpty;
using SkipEmpty = absl::SkipEmpty;
using SkipWhitespace = absl::SkipWhitespace;

// Splits at each of the characters `delimiters`.
template <typename Predicate = AllowEmpty>
std::vector<std::string> Split(absl::string_view text, absl::string_view delimiters,
                               Predicate p = Predicate()) {
  // As in TensorFlow, an empty text has no parts.
  if (text.empty()) return {};
  return absl::StrSplit(text, absl::ByAnyChar(delimiters), p);
}
template <typename Predicate = AllowEmpty>
std::vector<std::string> Split(absl::string_view text, char delimiter, Predicate p = Predicate()) {
  return Split(text, absl::string_view(&delimiter, 1), p);
}
// Splits and parses numbers. Returns false if a part is not a number.
bool SplitAndParseAsInts(absl::string_view text, char delimiter, std::vector<int32>* result);
bool SplitAndParseAsInts(absl::string_view text, char delimiter, std::vector<int64>* result);
bool SplitAndParseAsFloats(absl::string_view text, char delimiter, std::vector<float>* result);

// Joins the elements of `list` with `separator`.
template <typename T>
std::string Join(const T& list, absl::string_view separator) {
  return absl::StrJoin(list, separator);
}
// Joins the elements of `list` with `separator`. f(&text, element) appends an element to the text.
template <typename T, typename Formatter>
std::string Join(const T& list, absl::string_view separator, Formatter f) {
  return absl::StrJoin(list, separator, f);
}

inline std::string Lowercase(absl::string_view text) { return absl::AsciiStrToLower(text); }
inline std::string Uppercase(absl::string_view text) { return absl::AsciiStrToUpper(text); }
// Capitalises the first letter after each of `delimiters`.
void TitlecaseString(std::string* text, absl::string_view delimiters);
// "OpName" -> "op_name".
std::string ArgDefCase(absl::string_view text);

inline std::string CEscape(absl::string_view text) { return absl::CEscape(text); }
inline bool CUnescape(absl::string_view source, std::string* dest, std::string* error) {
  return absl::CUnescape(source, dest, error);
}
// Replaces the first occurrence or all occurrences.
std::string StringReplace(absl::string_view text, absl::string_view old_part,
                          absl::string_view new_part, bool replace_all);

// Remove white space and return the number of characters that were removed.
size_t RemoveLeadingWhitespace(absl::string_view* text);
size_t RemoveTrailingWhitespace(absl::string_view* text);
size_t RemoveWhitespaceContext(absl::string_view* text);
void StripTrailingWhitespace(std::string* text);

// Remove a prefix or suffix. If the text lacks it, return false and change nothing.
inline bool ConsumePrefix(absl::string_view* text, absl::string_view prefix) {
  return absl::ConsumePrefix(text, prefix);
}
inline bool ConsumeSuffix(absl::string_view* text, absl::string_view suffix) {
  return absl::ConsumeSuffix(text, suffix);
}
inline absl::string_view StripPrefix(absl::string_view text, absl::string_view prefix) {
  return absl::StripPrefix(text, prefix);
}
inline absl::string_view StripSuffix(absl::string_view text, absl::string_view suffix) {
  return absl::StripSuffix(text, suffix);
}
// Removes decimal digits from the front. Returns false if there are none or they exceed 64 bits.
bool ConsumeLeadingDigits(absl::string_view* text, uint64* value);
// Removes the first word. Returns false if there is none.
bool ConsumeNonWhitespace(absl::string_view* text, absl::string_view* word);

}  // namespace str_util
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_STRINGS_STR_UTIL_H_
