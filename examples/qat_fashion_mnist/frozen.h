// The trained network as integers, and as a graph without variables.
#ifndef GRADFLOW_EXAMPLES_QAT_FASHION_MNIST_FROZEN_H_
#define GRADFLOW_EXAMPLES_QAT_FASHION_MNIST_FROZEN_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/graph/scope.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/training/layers.h"

namespace qat {

// A layer with integer weights. Let s be the sum of the products of integer inputs and weights.
// Output channel c is s * input_step * scale[c] + offset[c]: batch norm and the scale of the
// weights are folded into scale and offset.
struct FrozenLayer {
  // int8: [3, 3, inputs, filters], or [inputs, classes] for the last layer.
  gradflow::Tensor weights;
  float input_step = 0;
  std::vector<float> scale;
  std::vector<float> offset;
  // The step of the output activations, after ReLU and pooling; 0 for the last layer.
  float output_step = 0;
  bool pools = false;
};

// Reads the variables of a quantized network. `scope` is the scope of the session.
absl::StatusOr<std::vector<FrozenLayer>> Freeze(const gradflow::Scope& scope,
                                                const gradflow::ClientSession& session,
                                                gradflow::training::Model* model);

// Makes a graph of the network: from "images", uint8 [n, 28, 28], to "logits" and "classes". Its
// constants are integers, scales and offsets.
absl::Status MakeGraph(const std::vector<FrozenLayer>& layers, gradflow::GraphDef* graph);

}  // namespace qat

#endif  // GRADFLOW_EXAMPLES_QAT_FASHION_MNIST_FROZEN_H_
