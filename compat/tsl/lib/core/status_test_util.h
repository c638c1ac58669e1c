// TF_EXPECT_OK and TF_ASSERT_OK, at their path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_LIB_CORE_STATUS_TEST_UTIL_H_
#define GRADFLOW_COMPAT_TSL_LIB_CORE_STATUS_TEST_UTIL_H_

#include "tensorflow/core/lib/core/status_test_util.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_LIB_CORE_STATUS_TEST_UTIL_H_
