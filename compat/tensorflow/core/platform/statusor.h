// StatusOr and TF_ASSIGN_OR_RETURN. Also TF_ASSERT_OK_AND_ASSIGN, for tests.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_STATUSOR_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_STATUSOR_H_

#include <utility>

#include "gradflow/core/status.h"
#include "tensorflow/core/platform/errors.h"

#define TF_ASSIGN_OR_RETURN(lhs, rexpr) GRADFLOW_ASSIGN_OR_RETURN(lhs, rexpr)

// Assigns the value of `rexpr` to `lhs`. Ends the test if `rexpr` is an error.
#define TF_ASSERT_OK_AND_ASSIGN(lhs, rexpr) \
  GRADFLOW_COMPAT_ASSERT_ASSIGN(GRADFLOW_COMPAT_JOIN(gradflow_status_or_, __COUNTER__), lhs, rexpr)
#define GRADFLOW_COMPAT_JOIN(a, b) GRADFLOW_COMPAT_JOIN_EXPANDED(a, b)
#define GRADFLOW_COMPAT_JOIN_EXPANDED(a, b) a##b
#define GRADFLOW_COMPAT_ASSERT_ASSIGN(value, lhs, rexpr) \
  auto value = (rexpr);                                  \
  ASSERT_TRUE(value.ok()) << value.status();             \
  lhs = *std::move(value)

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_STATUSOR_H_
