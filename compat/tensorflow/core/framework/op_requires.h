// OP_REQUIRES and related macros: end the computation of a kernel with an error.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_OP_REQUIRES_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_OP_REQUIRES_H_

#include "absl/status/status.h"
#include "tensorflow/core/platform/macros.h"

// Fails the run (or the construction of the kernel) and returns, unless `condition` is true.
#define OP_REQUIRES(context, condition, status)            \
  do {                                                     \
    if (!TF_PREDICT_TRUE(condition)) {                     \
      (context)->CtxFailure(__FILE__, __LINE__, (status)); \
      return;                                              \
    }                                                      \
  } while (false)

// Fails the run (or the construction of the kernel) and returns, unless the status is OK.
#define OP_REQUIRES_OK(context, ...)                                         \
  do {                                                                       \
    if (const ::absl::Status gradflow_status = (__VA_ARGS__);                \
        !TF_PREDICT_TRUE(gradflow_status.ok())) {                            \
      (context)->CtxFailureWithWarning(__FILE__, __LINE__, gradflow_status); \
      return;                                                                \
    }                                                                        \
  } while (false)

// Versions for ComputeAsync. They call `callback` before they return.
#define OP_REQUIRES_ASYNC(context, condition, status, callback) \
  do {                                                          \
    if (!TF_PREDICT_TRUE(condition)) {                          \
      (context)->CtxFailure(__FILE__, __LINE__, (status));      \
      (callback)();                                             \
      return;                                                   \
    }                                                           \
  } while (false)
#define OP_REQUIRES_OK_ASYNC(context, value, callback)                                            \
  do {                                                                                            \
    if (const ::absl::Status gradflow_status = (value); !TF_PREDICT_TRUE(gradflow_status.ok())) { \
      (context)->CtxFailureWithWarning(__FILE__, __LINE__, gradflow_status);                      \
      (callback)();                                                                               \
      return;                                                                                     \
    }                                                                                             \
  } while (false)

// Assigns the value of a StatusOr. Fails like OP_REQUIRES_OK on error.
#define OP_REQUIRES_VALUE(lhs, context, rexpr) \
  GRADFLOW_COMPAT_OP_REQUIRES_VALUE(__COUNTER__, lhs, context, rexpr)
#define GRADFLOW_COMPAT_OP_REQUIRES_VALUE(counter, lhs, context, rexpr) \
  GRADFLOW_COMPAT_OP_REQUIRES_VALUE_IMPL(gradflow_status_or_##counter, lhs, context, rexpr)
#define GRADFLOW_COMPAT_OP_REQUIRES_VALUE_IMPL(status_or, lhs, context, rexpr) \
  auto status_or = (rexpr);                                                    \
  OP_REQUIRES_OK(context, status_or.status());                                 \
  lhs = *std::move(status_or)

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_OP_REQUIRES_H_
