// histogram.h of tensorflow/core/lib/histogram, at its path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_LIB_HISTOGRAM_HISTOGRAM_H_
#define GRADFLOW_COMPAT_TSL_LIB_HISTOGRAM_HISTOGRAM_H_

#include "tensorflow/core/lib/histogram/histogram.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_LIB_HISTOGRAM_HISTOGRAM_H_
