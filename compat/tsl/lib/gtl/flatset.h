// flatset.h of tensorflow/core/lib/gtl, at its path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_LIB_GTL_FLATSET_H_
#define GRADFLOW_COMPAT_TSL_LIB_GTL_FLATSET_H_

#include "tensorflow/core/lib/gtl/flatset.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_LIB_GTL_FLATSET_H_
