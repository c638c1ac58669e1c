// Channel blocks: a layout of images of float in which a block of channels of one pixel is
// contiguous, [batch, ceil(depth / block), height, width, block]. Channel c is element c % block of
// block c / block. The elements behind the last channel are 0. Convolutions are faster on it.
//
// A pass of the plan (runtime/plan/channel_blocks.cc) chooses the images that stay in blocks
// between two convolutions. Not for users.
#ifndef GRADFLOW_CORE_CHANNEL_BLOCKS_H_
#define GRADFLOW_CORE_CHANNEL_BLOCKS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "gradflow/core/fused_steps.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"

#pragma GCC visibility push(default)
namespace gradflow {

// An image, or null.
struct BlockedImage {
  const Tensor* tensor = nullptr;
  // False for [batch, height, width, depth].
  bool in_blocks = false;
};

// A convolution, the addition of a bias and of an image, and a rectifier, in this order.
struct BlockedConvArgs {
  BlockedImage input;
  const Tensor* filter = nullptr;
  // A vector with an element for each channel of the output, or null.
  const float* bias = nullptr;
  BlockedImage addend;
  // kRelu or kRelu6; kOther for none.
  StepOp rectifier = StepOp::kOther;
  bool output_in_blocks = false;
};

// A kernel of a convolution that can compute on channel blocks.
class BlockableConv {
 public:
  virtual ~BlockableConv() = default;
  // The depths of the input and the output.
  struct Depths {
    int64_t in = 0;
    int64_t out = 0;
  };
  // Returns the number of channels in a block and sets *depths, or returns 0 if the kernel does not
  // compute on blocks with this filter. The filter must be the constant that the kernel was made
  // with.
  virtual int64_t ChannelBlock(const Tensor& filter, Depths* depths) const = 0;
  // Computes output 0. A rectifier makes 0 of NaN. Sets *done to false and does nothing if the
  // inputs are not valid, or if it has no code for them.
  virtual absl::Status ComputeBlocked(KernelContext& ctx, const BlockedConvArgs& args,
                                      bool* done) const = 0;
};

// Returns the shape in blocks of an image of shape [batch, height, width, depth].
TensorShape ShapeInBlocks(const TensorShape& image, int64_t block);
// Returns the shape of an image of which `blocks` is the shape in blocks.
TensorShape ShapeOfBlocks(const TensorShape& blocks, int64_t depth);

// Copy an image into blocks, or out of them, in parallel. *to has the shape of the result.
void CopyToBlocks(const RunContext& run, const Tensor& image, Tensor* to);
void CopyFromBlocks(const RunContext& run, const Tensor& blocks, Tensor* to);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_CHANNEL_BLOCKS_H_
