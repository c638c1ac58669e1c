// StatusOr, and the macro TF_ASSIGN_OR_RETURN.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_STATUSOR_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_STATUSOR_H_

#include "gradflow/core/status.h"
#include "tensorflow/core/platform/errors.h"

#define TF_ASSIGN_OR_RETURN(lhs, rexpr) GRADFLOW_ASSIGN_OR_RETURN(lhs, rexpr)

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_STATUSOR_H_
