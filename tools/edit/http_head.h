// The head of an HTTP request: the request line and the header fields, up to the empty line.
//
// A head comes from a sender that is not known yet. HeadBuffer therefore limits the bytes, the
// lines and the length of each line while the head arrives. Boost.Beast parses a complete head.
#ifndef GRADFLOW_TOOLS_EDIT_HTTP_HEAD_H_
#define GRADFLOW_TOOLS_EDIT_HTTP_HEAD_H_

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace gradflow::tools {

inline constexpr size_t kMaxHeadBytes = size_t{64} << 10;
inline constexpr size_t kMaxHeadLineBytes = size_t{16} << 10;
inline constexpr size_t kMaxHeadLines = 100;

// Collects the bytes of a head. They may arrive in any parts.
class HeadBuffer {
 public:
  enum class State { kIncomplete, kComplete, kTooLarge };

  // Appends bytes of the connection and returns the state of the head. The result does not depend
  // on how the bytes are divided. REQUIRES: the state is kIncomplete
  State Add(absl::string_view bytes);

  // Returns the head with its empty line, and the bytes after it. REQUIRES: the state is kComplete
  absl::string_view head() const { return absl::string_view(bytes_).substr(0, line_begin_); }
  absl::string_view rest() const { return absl::string_view(bytes_).substr(line_begin_); }

  bool empty() const { return bytes_.empty(); }
  size_t capacity() const { return bytes_.capacity(); }
  // Removes all bytes and releases their memory.
  void Clear();

 private:
  std::string bytes_;
  size_t lines_ = 0;
  // The start of the current line, and the place where the search for its end continues.
  size_t line_begin_ = 0;
  size_t searched_ = 0;
};

struct HttpHead {
  std::string method;
  std::string target;
  // Names and values, in order.
  std::vector<std::pair<std::string, std::string>> fields;

  // Returns the number of fields with a name. Ignores case.
  size_t Count(absl::string_view name) const;
  // Returns the value of the first field with a name; "" if there is no such field.
  absl::string_view Get(absl::string_view name) const;
};

// The reason why a request is refused.
struct HttpRefusal {
  // The status code of the answer, from 400 on.
  int code = 0;
  std::string reason;
};

// Returns the refusal of a head that exceeds the limits.
HttpRefusal HeadTooLarge();

// Parses a complete head. If the head is malformed, returns the refusal and leaves *head in an
// unspecified state.
std::optional<HttpRefusal> ParseHttpHead(absl::string_view bytes, HttpHead* head);

// Returns the head of an answer that ends its connection. The values must have no line ends.
std::string HttpResponseHead(int code,
                             const std::vector<std::pair<absl::string_view, std::string>>& fields);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_EDIT_HTTP_HEAD_H_
