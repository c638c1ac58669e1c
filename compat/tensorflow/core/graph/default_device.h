// graph::SetDefaultDevice.
#ifndef GRADFLOW_COMPAT_CORE_GRAPH_DEFAULT_DEVICE_H_
#define GRADFLOW_COMPAT_CORE_GRAPH_DEFAULT_DEVICE_H_

#include <string>

#include "tensorflow/core/framework/graph.pb.h"

namespace tensorflow {
namespace graph {

// Places nodes without a device on `device`. Only the CPU is supported: Session::Create rejects
// graphs with nodes on other devices.
inline void SetDefaultDevice(const std::string& device, GraphDef* graph_def) {
  for (NodeDef& node : *graph_def->mutable_node()) {
    if (node.device().empty()) node.set_device(device);
  }
}

}  // namespace graph
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_GRAPH_DEFAULT_DEVICE_H_
