// Abseil's status_matchers.h if the system has it, otherwise the same matchers of
// gradflow::testing.
#ifndef GRADFLOW_COMPAT_ABSL_STATUS_STATUS_MATCHERS_H_
#define GRADFLOW_COMPAT_ABSL_STATUS_STATUS_MATCHERS_H_

#if __has_include_next(<absl/status/status_matchers.h>)
#include_next <absl/status/status_matchers.h>
#else

#include "gradflow/testing/status_matchers.h"

namespace absl_testing {

using gradflow::testing::IsOk;
using gradflow::testing::IsOkAndHolds;
using gradflow::testing::StatusIs;

}  // namespace absl_testing

#endif

#endif  // GRADFLOW_COMPAT_ABSL_STATUS_STATUS_MATCHERS_H_
