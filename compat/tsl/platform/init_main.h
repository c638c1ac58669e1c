// init_main.h of tensorflow/core/platform, at its path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_PLATFORM_INIT_MAIN_H_
#define GRADFLOW_COMPAT_TSL_PLATFORM_INIT_MAIN_H_

#include "tensorflow/core/platform/init_main.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_PLATFORM_INIT_MAIN_H_
