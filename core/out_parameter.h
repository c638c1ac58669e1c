// Checks pointers to the results of public functions. Internal.
//
// A function that returns a status returns INVALID_ARGUMENT for a null pointer, unless null means
// that the caller does not want the result. Other functions end the program with the same text.
// tests/training/out_parameters_test.cc lists all functions of both kinds.
#ifndef GRADFLOW_CORE_OUT_PARAMETER_H_
#define GRADFLOW_CORE_OUT_PARAMETER_H_

#include "absl/status/status.h"

#pragma GCC visibility push(default)
namespace gradflow::internal {

absl::Status NullOut(const char* function, const char* parameter);
[[noreturn]] void EndForNullOut(const char* function, const char* parameter);

// "AddSymbolicGradients: grad_outputs must not be null"
inline absl::Status CheckOut(const void* out, const char* function, const char* parameter) {
  return out != nullptr ? absl::OkStatus() : NullOut(function, parameter);
}
inline void RequireOut(const void* out, const char* function, const char* parameter) {
  if (out == nullptr) EndForNullOut(function, parameter);
}

}  // namespace gradflow::internal
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_OUT_PARAMETER_H_
