// The messages of rewriter_config.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_PROTOBUF_REWRITER_CONFIG_PB_H_
#define GRADFLOW_COMPAT_CORE_PROTOBUF_REWRITER_CONFIG_PB_H_

#include "gradflow/proto/rewriter_config.pb.h"

namespace tensorflow {

using gradflow::AutoParallelOptions;
using gradflow::RewriterConfig;
using gradflow::ScopedAllocatorOptions;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PROTOBUF_REWRITER_CONFIG_PB_H_
