// core::RefCounted, at its path of TensorFlow 1.x.
#ifndef GRADFLOW_COMPAT_CORE_LIB_CORE_REFCOUNT_H_
#define GRADFLOW_COMPAT_CORE_LIB_CORE_REFCOUNT_H_

#include "tensorflow/core/platform/refcount.h"

#endif  // GRADFLOW_COMPAT_CORE_LIB_CORE_REFCOUNT_H_
