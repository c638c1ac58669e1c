// iterator_range.h of tensorflow/core/lib/gtl, at its path in TSL.
#ifndef GRADFLOW_COMPAT_XLA_TSL_LIB_GTL_ITERATOR_RANGE_H_
#define GRADFLOW_COMPAT_XLA_TSL_LIB_GTL_ITERATOR_RANGE_H_

#include "tensorflow/core/lib/gtl/iterator_range.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_XLA_TSL_LIB_GTL_ITERATOR_RANGE_H_
