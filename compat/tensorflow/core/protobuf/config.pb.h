// The messages of config.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_PROTOBUF_CONFIG_PB_H_
#define GRADFLOW_COMPAT_CORE_PROTOBUF_CONFIG_PB_H_

#include "gradflow/proto/config.pb.h"

namespace tensorflow {

using gradflow::CallableOptions;
using gradflow::ConfigProto;
using gradflow::GPUOptions;
using gradflow::GraphOptions;
using gradflow::OptimizerOptions;
using gradflow::OptimizerOptions_GlobalJitLevel;
using gradflow::OptimizerOptions_GlobalJitLevel_OFF;
using gradflow::OptimizerOptions_Level;
using gradflow::OptimizerOptions_Level_L0;
using gradflow::OptimizerOptions_Level_L1;
using gradflow::RunMetadata;
using gradflow::RunOptions;
using gradflow::SessionMetadata;
using gradflow::TensorConnection;
using gradflow::ThreadPoolOptionProto;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PROTOBUF_CONFIG_PB_H_
