// Gradients of fake quantization: build the graph with Scope, run it on all cores.
#include <iostream>
#include <vector>

#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/session/client_session.h"

int main() {
  using namespace gradflow;       // NOLINT: short example
  using namespace gradflow::ops;  // NOLINT

  Scope root = Scope::NewRootScope();
  auto x = Placeholder(root.WithOpName("x"), DT_FLOAT);
  auto gradient = Placeholder(root.WithOpName("gradient"), DT_FLOAT);
  auto grad = FakeQuantWithMinMaxVarsGradient(root, gradient, x, -1.0f, 1.0f,
                                              FakeQuantWithMinMaxVarsGradient::NumBits(8));

  ClientSession session(root);
  std::vector<Tensor> outputs;
  absl::Status status = session.Run(
      {{x, {-1.5f, -0.5f, 0.5f, 1.5f}}, {gradient, {1.0f, 2.0f, 3.0f, 4.0f}}},
      {grad.backprops_wrt_input, grad.backprop_wrt_min, grad.backprop_wrt_max}, &outputs);
  if (!status.ok()) {
    std::cerr << status << "\n";
    return 1;
  }
  for (const Tensor& output : outputs) std::cout << output.DebugString(4) << "\n";
}

// Prints:
//   Tensor<type: float shape: [4] values: 0 2 3 0>
//   Tensor<type: float shape: [] values: 1>
//   Tensor<type: float shape: [] values: 4>
