// SessionOptions and its members. See gradflow/runtime/session/options.h.
#ifndef GRADFLOW_COMPAT_CORE_PUBLIC_SESSION_OPTIONS_H_
#define GRADFLOW_COMPAT_CORE_PUBLIC_SESSION_OPTIONS_H_

#include "gradflow/runtime/session/options.h"
#include "tensorflow/core/platform/types.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace tensorflow {

using gradflow::SessionOptions;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PUBLIC_SESSION_OPTIONS_H_
