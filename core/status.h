// Macros for early return from functions that return absl::Status, and error factories.
//
// The macros behave like the macros of Abseil's later status_macros.h, which the oldest supported
// Abseil (20220623) lacks.
#ifndef GRADFLOW_CORE_STATUS_H_
#define GRADFLOW_CORE_STATUS_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

// Returns the status of `expr` from the enclosing function unless it is OK.
#define GRADFLOW_RETURN_IF_ERROR(expr)                                    \
  do {                                                                    \
    if (::absl::Status gradflow_status = (expr); !gradflow_status.ok()) { \
      return gradflow_status;                                             \
    }                                                                     \
  } while (false)

// Assigns the value of the StatusOr `rexpr` to `lhs`, or returns its status.
#define GRADFLOW_ASSIGN_OR_RETURN(lhs, rexpr) \
  GRADFLOW_ASSIGN_OR_RETURN_IMPL_(GRADFLOW_CONCAT_(gradflow_status_or_, __LINE__), lhs, rexpr)
#define GRADFLOW_ASSIGN_OR_RETURN_IMPL_(tmp, lhs, rexpr) \
  auto tmp = (rexpr);                                    \
  if (!tmp.ok()) return std::move(tmp).status();         \
  lhs = *std::move(tmp)
#define GRADFLOW_CONCAT_(a, b) GRADFLOW_CONCAT_IMPL_(a, b)
#define GRADFLOW_CONCAT_IMPL_(a, b) a##b

#pragma GCC visibility push(default)
namespace gradflow {

// Factories as in TensorFlow: errors::InvalidArgument("expected ", n, " but found ", m).
namespace errors {

// Return an error of the named code with the message absl::StrCat(args...).
template <typename... Args>
absl::Status InvalidArgument(const Args&... args) {
  return absl::InvalidArgumentError(absl::StrCat(args...));
}
template <typename... Args>
absl::Status NotFound(const Args&... args) {
  return absl::NotFoundError(absl::StrCat(args...));
}
template <typename... Args>
absl::Status AlreadyExists(const Args&... args) {
  return absl::AlreadyExistsError(absl::StrCat(args...));
}
template <typename... Args>
absl::Status FailedPrecondition(const Args&... args) {
  return absl::FailedPreconditionError(absl::StrCat(args...));
}
template <typename... Args>
absl::Status Unimplemented(const Args&... args) {
  return absl::UnimplementedError(absl::StrCat(args...));
}
template <typename... Args>
absl::Status ResourceExhausted(const Args&... args) {
  return absl::ResourceExhaustedError(absl::StrCat(args...));
}
template <typename... Args>
absl::Status Internal(const Args&... args) {
  return absl::InternalError(absl::StrCat(args...));
}

// Makes untrusted text safe for a message. Shortens it to `max_bytes` and "...". Escapes characters
// that a terminal may act on: control characters, marks that change the direction of text, and
// bytes that are not UTF-8 become text such as "\x1b".
std::string Printable(absl::string_view text, size_t max_bytes = 200);
// Like Printable(), but does not shorten the text and keeps line breaks and tabs.
std::string PrintableLines(absl::string_view text);

// Returns `status` with `prefix` prepended to its message. Escapes the message except for line
// breaks.
absl::Status Prefix(absl::string_view prefix, const absl::Status& status);

}  // namespace errors
}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_STATUS_H_
