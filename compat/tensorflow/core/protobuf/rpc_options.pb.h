// The messages of rpc_options.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_PROTOBUF_RPC_OPTIONS_PB_H_
#define GRADFLOW_COMPAT_CORE_PROTOBUF_RPC_OPTIONS_PB_H_

#include "gradflow/proto/rpc_options.pb.h"

namespace tensorflow {

using gradflow::RPCOptions;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PROTOBUF_RPC_OPTIONS_PB_H_
