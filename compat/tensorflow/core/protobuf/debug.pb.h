// The messages of debug.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_PROTOBUF_DEBUG_PB_H_
#define GRADFLOW_COMPAT_CORE_PROTOBUF_DEBUG_PB_H_

#include "gradflow/proto/debug.pb.h"

namespace tensorflow {

using gradflow::DebugOptions;
using gradflow::DebugTensorWatch;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PROTOBUF_DEBUG_PB_H_
