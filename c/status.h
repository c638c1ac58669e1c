// TF_Status, and the border between C++ and C: nothing throws past a function of the C API.
#ifndef GRADFLOW_C_STATUS_H_
#define GRADFLOW_C_STATUS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/status.h"
#include "tensorflow/c/tf_status.h"

struct TSL_Status {
  absl::Status status;
  // The message with a terminating zero.
  std::string message;
};

namespace gradflow::capi {

// Stores `status` in *out. Does not throw.
inline void SetStatus(TF_Status* out, absl::Status status) noexcept {
  if (status.ok() && out->status.ok()) return;
  try {
    out->message = std::string(status.message());
  } catch (...) {
    out->message.clear();
  }
  out->status = std::move(status);
}

// Stores the status of fn(), or the error for its exception, in *out. Returns true if it is OK.
template <typename F>
bool Call(TF_Status* out, F&& fn) noexcept {
  absl::Status status = CallSafely(std::forward<F>(fn));
  const bool ok = status.ok();
  SetStatus(out, std::move(status));
  return ok;
}

// Returns fn(), or `otherwise` if it throws.
template <typename T, typename F>
T CallOr(T otherwise, F&& fn) noexcept {
  try {
    return fn();
  } catch (...) {
    return otherwise;
  }
}

// Calls fn(), and ignores exceptions.
template <typename F>
void CallQuietly(F&& fn) noexcept {
  try {
    fn();
  } catch (...) {
  }
}

// Returns `text`, or "" for null.
inline const char* OrEmpty(const char* text) { return text == nullptr ? "" : text; }

}  // namespace gradflow::capi

#endif  // GRADFLOW_C_STATUS_H_
