// Abseil's log.h if the system has it, otherwise the LOG of platform/logging.h.
#ifndef GRADFLOW_COMPAT_ABSL_LOG_LOG_H_
#define GRADFLOW_COMPAT_ABSL_LOG_LOG_H_

#if __has_include_next(<absl/log/log.h>)
#include_next <absl/log/log.h>
#else
#include "tensorflow/core/platform/logging.h"
#endif

#endif  // GRADFLOW_COMPAT_ABSL_LOG_LOG_H_
