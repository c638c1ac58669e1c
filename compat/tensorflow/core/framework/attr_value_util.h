// Attribute values: all of node_def_util.h.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_ATTR_VALUE_UTIL_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_ATTR_VALUE_UTIL_H_

#include "tensorflow/core/framework/node_def_util.h"

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_ATTR_VALUE_UTIL_H_
