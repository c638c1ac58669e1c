// gradflow's messages and messages with TensorFlow's names coexist in a program and read each
// other's bytes.
#include <google/protobuf/descriptor.h>

#include <iostream>
#include <string>

#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "tensorflow/core/framework/graph.pb.h"

int main() {
  const google::protobuf::DescriptorPool& pool =
      *google::protobuf::DescriptorPool::generated_pool();
  for (const char* name : {"tensorflow.GraphDef", "gradflow.GraphDef", "tensorflow.NodeDef",
                           "gradflow.NodeDef", "tensorflow.TensorProto", "gradflow.TensorProto"}) {
    if (pool.FindMessageTypeByName(name) == nullptr) {
      std::cerr << "no message " << name << "\n";
      return 1;
    }
  }
  gradflow::Scope root = gradflow::Scope::NewRootScope();
  gradflow::ops::Placeholder(root.WithOpName("x"), gradflow::DT_FLOAT);
  gradflow::GraphDef ours;
  tensorflow::GraphDef theirs;
  if (!root.ToGraphDef(&ours).ok() || !theirs.ParseFromString(ours.SerializeAsString()) ||
      theirs.node_size() != 1 || theirs.node(0).op() != "Placeholder") {
    std::cerr << "the graph was not read\n";
    return 1;
  }
}
