// test_benchmark.h of tensorflow/core/platform, at its path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_PLATFORM_TEST_BENCHMARK_H_
#define GRADFLOW_COMPAT_TSL_PLATFORM_TEST_BENCHMARK_H_

#include "tensorflow/core/platform/test_benchmark.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_PLATFORM_TEST_BENCHMARK_H_
