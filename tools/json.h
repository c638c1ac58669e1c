// Writes JSON documents with nlohmann-json. Strings may be untrusted.
#ifndef GRADFLOW_TOOLS_JSON_H_
#define GRADFLOW_TOOLS_JSON_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/strings/string_view.h"

namespace gradflow::tools {

// A value that keeps the order of its members. Adding a member takes time linear in the number of
// members. To use it, include <nlohmann/json.hpp>. Pass strings as std::string: an
// absl::string_view would become an array of numbers.
using Json = nlohmann::ordered_json;

// Returns the text of `value`, on one line. In strings, bytes that are not UTF-8 become U+FFFD.
// Numbers that are not finite become null.
std::string JsonText(const Json& value);

// Returns `text` if it has at most `max_bytes`. Otherwise returns its first `max_bytes`, without an
// incomplete character at their end, followed by "... (N bytes)".
std::string LimitedText(absl::string_view text, size_t max_bytes);

// Builds the text of an array from the values or the JSON texts of its elements. Large documents
// are built this way, because a tree of values takes several times the memory of its text.
class JsonArrayText {
 public:
  void Add(const Json& element);
  void AddText(absl::string_view element);
  // Returns the array, with each element on a line. REQUIRES: nothing is called afterwards.
  std::string Finish();

 private:
  std::string text_ = "[";
};

// Builds the text of an object in the same way. The keys must differ; adding a member takes
// constant time.
class JsonObjectText {
 public:
  void Add(absl::string_view key, const Json& value);
  void AddText(absl::string_view key, absl::string_view value);
  // Returns the object. REQUIRES: nothing is called afterwards.
  std::string Finish();

 private:
  std::string text_ = "{";
};

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_JSON_H_
