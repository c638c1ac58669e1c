// flatmap.h of tensorflow/core/lib/gtl, at its path in TSL.
#ifndef GRADFLOW_COMPAT_XLA_TSL_LIB_GTL_FLATMAP_H_
#define GRADFLOW_COMPAT_XLA_TSL_LIB_GTL_FLATMAP_H_

#include "tensorflow/core/lib/gtl/flatmap.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_XLA_TSL_LIB_GTL_FLATMAP_H_
