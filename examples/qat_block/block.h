// The graph of the example: a quantisation-aware batch-norm block, forward and backward.
//
//   images -> x -> FusedBatchNormV3 -> FakeQuantWithMinMaxVars (narrow range) -> y
//                                           ^ upstream, the gradient of a loss by y
//   gradients by x, scale, offset, min and max come back through
//   FakeQuantWithMinMaxVarsGradient and FusedBatchNormGradV3.
//
// A second branch quantises each channel in a range of its own.
#ifndef GRADFLOW_EXAMPLES_QAT_BLOCK_BLOCK_H_
#define GRADFLOW_EXAMPLES_QAT_BLOCK_BLOCK_H_

#include <string>
#include <vector>

#include "gradflow/graph/scope.h"

namespace qat_block {

// Images of 28 x 28 become [14, 14, 4]: each square of four pixels is one pixel of four channels.
inline constexpr int kHeight = 28;
inline constexpr int kWidth = 28;
inline constexpr int kChannels = 4;

// One gradient that the graph computes, by the names of its tensors.
struct Gradient {
  std::string name;      // "per_tensor/input", for people and for files
  std::string gradient;  // the tensor that holds it
  std::string variable;  // the tensor by which the loss is differentiated
  std::string loss;      // the differentiable loss that finite differences are taken of
};

// Adds the block to `scope`.
void BuildBlock(const gradflow::Scope& scope);

// All gradients of the block.
std::vector<Gradient> Gradients();

}  // namespace qat_block

#endif  // GRADFLOW_EXAMPLES_QAT_BLOCK_BLOCK_H_
