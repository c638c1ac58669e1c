// file_statistics.h of tensorflow/core/platform, at its path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_PLATFORM_FILE_STATISTICS_H_
#define GRADFLOW_COMPAT_TSL_PLATFORM_FILE_STATISTICS_H_

#include "tensorflow/core/platform/file_statistics.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_PLATFORM_FILE_STATISTICS_H_
