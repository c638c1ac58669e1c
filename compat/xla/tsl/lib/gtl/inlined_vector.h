// inlined_vector.h of tensorflow/core/lib/gtl, at its path in TSL.
#ifndef GRADFLOW_COMPAT_XLA_TSL_LIB_GTL_INLINED_VECTOR_H_
#define GRADFLOW_COMPAT_XLA_TSL_LIB_GTL_INLINED_VECTOR_H_

#include "tensorflow/core/lib/gtl/inlined_vector.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_XLA_TSL_LIB_GTL_INLINED_VECTOR_H_
