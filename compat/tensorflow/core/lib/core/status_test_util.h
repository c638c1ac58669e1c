// TF_EXPECT_OK and TF_ASSERT_OK.
#ifndef GRADFLOW_COMPAT_CORE_LIB_CORE_STATUS_TEST_UTIL_H_
#define GRADFLOW_COMPAT_CORE_LIB_CORE_STATUS_TEST_UTIL_H_

#include <gtest/gtest.h>

#include "absl/status/status_matchers.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/status_matchers.h"

#define TF_EXPECT_OK(statement) EXPECT_EQ(::absl::OkStatus(), ::absl::Status(statement))
#define TF_ASSERT_OK(statement) ASSERT_EQ(::absl::OkStatus(), ::absl::Status(statement))

#endif  // GRADFLOW_COMPAT_CORE_LIB_CORE_STATUS_TEST_UTIL_H_
