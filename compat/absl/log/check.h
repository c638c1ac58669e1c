// Abseil's check.h if the system has it, otherwise the CHECK of platform/logging.h.
#ifndef GRADFLOW_COMPAT_ABSL_LOG_CHECK_H_
#define GRADFLOW_COMPAT_ABSL_LOG_CHECK_H_

#if __has_include_next(<absl/log/check.h>)
#include_next <absl/log/check.h>
#else
#include "tensorflow/core/platform/status.h"
#endif

#endif  // GRADFLOW_COMPAT_ABSL_LOG_CHECK_H_
