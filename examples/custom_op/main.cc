// Loads the plugin soft_threshold.so and runs its op in a graph.
//
//   custom_op PLUGIN.so [GRAPH.pb]     GRAPH.pb: also write the graph to this file
#include <iostream>
#include <vector>

#include "gradflow/core/status.h"
#include "gradflow/graph/export.h"
#include "gradflow/io/plugin.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/client_session.h"
#include "shrinkage/shrinkage_ops.h"

namespace {

absl::Status Run(int argc, char** argv) {
  using namespace gradflow::ops;  // NOLINT: short example
  GRADFLOW_RETURN_IF_ERROR(gradflow::LoadLibrary(argv[1]));

  gradflow::Scope root = gradflow::Scope::NewRootScope();
  auto x = Placeholder(root.WithOpName("x"), gradflow::DT_FLOAT);
  // The class is generated from the definition in soft_threshold.cc.
  auto y = SoftThreshold(root.WithOpName("y"), x, SoftThreshold::Threshold(0.5f));
  if (argc > 2) {
    gradflow::GraphDef graph;
    GRADFLOW_RETURN_IF_ERROR(root.ToGraphDef(&graph));
    GRADFLOW_RETURN_IF_ERROR(gradflow::WriteGraphDef(argv[2], graph));
  }

  gradflow::ClientSession session(root);
  std::vector<gradflow::Tensor> outputs;
  GRADFLOW_RETURN_IF_ERROR(session.Run({{x, {-2.f, -0.25f, 0.5f, 1.f}}}, {y}, &outputs));
  std::cout << outputs[0].DebugString(4) << "\n";
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: " << argv[0] << " PLUGIN.so [GRAPH.pb]\n";
    return 2;
  }
  const absl::Status status = Run(argc, argv);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
