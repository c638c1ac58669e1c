#include "tensorflow/core/lib/strings/str_util.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "absl/strings/numbers.h"

namespace tensorflow {
namespace str_util {
namespace {

// Calls parse(part, &number) for each part.
template <typename T, typename Parse>
bool SplitAndParse(absl::string_view text, char delimiter, std::vector<T>* result, Parse parse) {
  if (text.empty()) return true;
  std::vector<T> numbers;
  for (const absl::string_view part : absl::StrSplit(text, delimiter)) {
    T number;
    if (!parse(part, &number)) return false;
    numbers.push_back(number);
  }
  *result = std::move(numbers);
  return true;
}

}  // namespace

bool SplitAndParseAsInts(absl::string_view text, char delimiter, std::vector<int32>* result) {
  return SplitAndParse(text, delimiter, result, absl::SimpleAtoi<int32>);
}

bool SplitAndParseAsInts(absl::string_view text, char delimiter, std::vector<int64>* result) {
  return SplitAndParse(text, delimiter, result, absl::SimpleAtoi<int64>);
}

bool SplitAndParseAsFloats(absl::string_view text, char delimiter, std::vector<float>* result) {
  return SplitAndParse(text, delimiter, result, absl::SimpleAtof);
}

void TitlecaseString(std::string* text, absl::string_view delimiters) {
  bool first = true;
  for (char& c : *text) {
    if (first) c = absl::ascii_toupper(static_cast<unsigned char>(c));
    first = delimiters.find(c) != absl::string_view::npos;
  }
}

std::string ArgDefCase(absl::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto letter = static_cast<unsigned char>(c);
    if (absl::ascii_isupper(letter)) {
      if (!result.empty() && result.back() != '_') result += '_';
      result += absl::ascii_tolower(letter);
    } else if (absl::ascii_isalnum(letter)) {
      // A name begins with a letter.
      if (!result.empty() || absl::ascii_isalpha(letter)) result += c;
    } else if (!result.empty() && result.back() != '_') {
      result += '_';
    }
  }
  return result;
}

std::string StringReplace(absl::string_view text, absl::string_view old_part,
                          absl::string_view new_part, bool replace_all) {
  if (old_part.empty()) return std::string(text);
  if (replace_all) return absl::StrReplaceAll(text, {{old_part, new_part}});
  const size_t at = text.find(old_part);
  if (at == absl::string_view::npos) return std::string(text);
  return absl::StrCat(text.substr(0, at), new_part, text.substr(at + old_part.size()));
}

size_t RemoveLeadingWhitespace(absl::string_view* text) {
  const size_t old_size = text->size();
  *text = absl::StripLeadingAsciiWhitespace(*text);
  return old_size - text->size();
}

size_t RemoveTrailingWhitespace(absl::string_view* text) {
  const size_t old_size = text->size();
  *text = absl::StripTrailingAsciiWhitespace(*text);
  return old_size - text->size();
}

size_t RemoveWhitespaceContext(absl::string_view* text) {
  return RemoveLeadingWhitespace(text) + RemoveTrailingWhitespace(text);
}

void StripTrailingWhitespace(std::string* text) { absl::StripTrailingAsciiWhitespace(text); }

bool ConsumeLeadingDigits(absl::string_view* text, uint64* value) {
  const size_t digits = std::min(text->find_first_not_of("0123456789"), text->size());
  uint64 number;
  if (digits == 0 || !absl::SimpleAtoi(text->substr(0, digits), &number)) return false;
  *value = number;
  text->remove_prefix(digits);
  return true;
}

bool ConsumeNonWhitespace(absl::string_view* text, absl::string_view* word) {
  const auto end = std::find_if(text->begin(), text->end(), [](char c) {
    return absl::ascii_isspace(static_cast<unsigned char>(c));
  });
  *word = text->substr(0, static_cast<size_t>(end - text->begin()));
  text->remove_prefix(word->size());
  return !word->empty();
}

}  // namespace str_util
}  // namespace tensorflow
