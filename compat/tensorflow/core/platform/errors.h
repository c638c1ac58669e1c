// errors::InvalidArgument(...), errors::IsInvalidArgument(status) and related functions, and macros
// for early return. The macros return absl::Status; see status.h.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_ERRORS_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_ERRORS_H_

#include <sstream>
#include <type_traits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/lib/strings/strcat.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace errors {

using Code = error::Code;

namespace internal {

// Returns an argument for absl::StrCat: the value itself, or its text if it only has an operator<<.
template <typename T>
decltype(auto) ForStrCat(const T& value) {
  if constexpr (std::is_convertible_v<const T&, absl::AlphaNum>) {
    return (value);
  } else {
    std::ostringstream text;
    text << value;
    return text.str();
  }
}

}  // namespace internal

#define GRADFLOW_COMPAT_ERROR(Name)                                                             \
  template <typename... Args>                                                                   \
  absl::Status Name(const Args&... args) {                                                      \
    return absl::Status(absl::StatusCode::k##Name, absl::StrCat(internal::ForStrCat(args)...)); \
  }                                                                                             \
  inline bool Is##Name(const absl::Status& status) {                                            \
    return status.code() == absl::StatusCode::k##Name;                                          \
  }
GRADFLOW_COMPAT_ERROR(Aborted)
GRADFLOW_COMPAT_ERROR(AlreadyExists)
GRADFLOW_COMPAT_ERROR(Cancelled)
GRADFLOW_COMPAT_ERROR(DataLoss)
GRADFLOW_COMPAT_ERROR(DeadlineExceeded)
GRADFLOW_COMPAT_ERROR(FailedPrecondition)
GRADFLOW_COMPAT_ERROR(Internal)
GRADFLOW_COMPAT_ERROR(InvalidArgument)
GRADFLOW_COMPAT_ERROR(NotFound)
GRADFLOW_COMPAT_ERROR(OutOfRange)
GRADFLOW_COMPAT_ERROR(PermissionDenied)
GRADFLOW_COMPAT_ERROR(ResourceExhausted)
GRADFLOW_COMPAT_ERROR(Unauthenticated)
GRADFLOW_COMPAT_ERROR(Unavailable)
GRADFLOW_COMPAT_ERROR(Unimplemented)
GRADFLOW_COMPAT_ERROR(Unknown)
#undef GRADFLOW_COMPAT_ERROR

// Appends text to the message of a Status or absl::Status. Does nothing if the status is OK.
template <typename S, typename... Args>
void AppendToMessage(S* status, Args... args) {
  const absl::Status old = *status;
  if (old.ok()) return;
  *status =
      absl::Status(old.code(), absl::StrCat(old.message(), "\n\t", internal::ForStrCat(args)...));
}

}  // namespace errors
}  // namespace tensorflow

#define TF_RETURN_IF_ERROR(...)                         \
  do {                                                  \
    if (::absl::Status gradflow_status = (__VA_ARGS__); \
        __builtin_expect(!gradflow_status.ok(), 0)) {   \
      return gradflow_status;                           \
    }                                                   \
  } while (false)

#define TF_RETURN_WITH_CONTEXT_IF_ERROR(expr, ...)                                             \
  do {                                                                                         \
    if (::absl::Status gradflow_status = (expr); __builtin_expect(!gradflow_status.ok(), 0)) { \
      ::tensorflow::errors::AppendToMessage(&gradflow_status, __VA_ARGS__);                    \
      return gradflow_status;                                                                  \
    }                                                                                          \
  } while (false)

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_ERRORS_H_
