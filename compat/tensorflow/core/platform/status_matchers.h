// StatusIs, IsOk and IsOkAndHolds; see gradflow/testing/status_matchers.h.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_STATUS_MATCHERS_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_STATUS_MATCHERS_H_

#include "gradflow/testing/status_matchers.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace testing {

using gradflow::testing::IsOk;
using gradflow::testing::IsOkAndHolds;
using gradflow::testing::StatusIs;

}  // namespace testing
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_STATUS_MATCHERS_H_
