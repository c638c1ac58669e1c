// The graph of the example: a quantization-aware batch-norm block, forward and backward.
//
//   images -> x -> FusedBatchNormV3 -> FakeQuantWithMinMaxVars (narrow range) -> y
//                                           ^ upstream, the gradient of a loss with respect to y
//   The gradients with respect to x, scale, offset, min and max are computed by
//   FakeQuantWithMinMaxVarsGradient and FusedBatchNormGradV3.
//
// AddSymbolicGradients derives the backward pass. A second backward pass is written by hand
// ("by_hand").
//
// A second branch quantizes each channel with a separate range.
#ifndef GRADFLOW_EXAMPLES_QAT_BLOCK_BLOCK_H_
#define GRADFLOW_EXAMPLES_QAT_BLOCK_BLOCK_H_

#include <string>
#include <vector>

#include "gradflow/graph/scope.h"

namespace qat_block {

// Images of 28 x 28 are converted to [14, 14, 4]: each square of four pixels becomes one pixel with
// four channels.
inline constexpr int kHeight = 28;
inline constexpr int kWidth = 28;
inline constexpr int kChannels = 4;

// A gradient that the graph computes, with the names of its tensors.
struct Gradient {
  std::string name;      // such as "per_tensor/input", in reports and file names
  std::string gradient;  // the tensor that holds the gradient
  std::string by_hand;   // the tensor that holds it in the backward pass written by hand
  std::string variable;  // the loss is differentiated with respect to this tensor
  std::string loss;      // the differentiable loss for finite differences
};

// Adds the block to `scope`.
void BuildBlock(const gradflow::Scope& scope);

// Returns all gradients of the block.
std::vector<Gradient> Gradients();

}  // namespace qat_block

#endif  // GRADFLOW_EXAMPLES_QAT_BLOCK_BLOCK_H_
