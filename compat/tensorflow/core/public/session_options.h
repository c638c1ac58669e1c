// SessionOptions and what they consist of. See gradflow/runtime/options.h for what can be said.
#ifndef GRADFLOW_COMPAT_CORE_PUBLIC_SESSION_OPTIONS_H_
#define GRADFLOW_COMPAT_CORE_PUBLIC_SESSION_OPTIONS_H_

#include "gradflow/runtime/options.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

using gradflow::CallableOptions;
using gradflow::ConfigProto;
using gradflow::GraphOptions;
using gradflow::OptimizerOptions;
using gradflow::RunMetadata;
using gradflow::RunOptions;
using gradflow::SessionOptions;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PUBLIC_SESSION_OPTIONS_H_
