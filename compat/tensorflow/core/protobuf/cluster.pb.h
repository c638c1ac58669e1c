// The messages of cluster.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_PROTOBUF_CLUSTER_PB_H_
#define GRADFLOW_COMPAT_CORE_PROTOBUF_CLUSTER_PB_H_

#include "gradflow/proto/cluster.pb.h"

namespace tensorflow {

using gradflow::ClusterDef;
using gradflow::JobDef;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PROTOBUF_CLUSTER_PB_H_
