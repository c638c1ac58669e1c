// CallSafely: converts exceptions of user code and memory allocation to absl::Status, so that no
// exception leaves a public function.
#ifndef GRADFLOW_CORE_CALL_SAFELY_H_
#define GRADFLOW_CORE_CALL_SAFELY_H_

#include <exception>
#include <new>

#include "absl/base/attributes.h"
#include "absl/status/status.h"
#include "gradflow/core/status.h"

namespace gradflow {

namespace internal {

// Returns the status for the exception that is being handled. Not inline, so that callers are
// small.
ABSL_ATTRIBUTE_NOINLINE inline absl::Status StatusOfException() noexcept {
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      return errors::ResourceExhausted("out of memory");
    } catch (const std::exception& e) {
      return errors::Internal("an exception was thrown: ", errors::Printable(e.what()));
    } catch (...) {
      return errors::Internal("an exception of unknown type was thrown");
    }
  } catch (...) {
    return absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
}

}  // namespace internal

// Returns the status of fn(). Returns RESOURCE_EXHAUSTED if it throws std::bad_alloc. Returns
// INTERNAL with at most 200 bytes of the exception's text if it throws anything else. If there is
// no memory for a message, returns RESOURCE_EXHAUSTED with an empty message, which does not
// allocate.
template <typename F>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline absl::Status CallSafely(F&& fn) noexcept {
  try {
    return fn();
  } catch (...) {
    return internal::StatusOfException();
  }
}

}  // namespace gradflow

#endif  // GRADFLOW_CORE_CALL_SAFELY_H_
