// The messages of meta_graph.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_PROTOBUF_META_GRAPH_PB_H_
#define GRADFLOW_COMPAT_CORE_PROTOBUF_META_GRAPH_PB_H_

#include "gradflow/proto/meta_graph.pb.h"

namespace tensorflow {

using gradflow::AssetFileDef;
using gradflow::CollectionDef;
using gradflow::MetaGraphDef;
using gradflow::SignatureDef;
using gradflow::TensorInfo;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PROTOBUF_META_GRAPH_PB_H_
