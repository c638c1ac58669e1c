// Channel blocks: a layout of images of float in which a block of channels of one pixel is
// contiguous, [batch, blocks, height, width, block]. Channel c is element c % block of block
// c / block; the elements behind the last channel are 0. Convolutions are faster on it.
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
  // An element for each channel of the output, or null.
  const float* bias = nullptr;
  BlockedImage addend;
  // kRelu, kRelu6 or, for none, kOther.
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
  // Returns the channels of a block, and sets *depths as the kernel's constant input tells, if that
  // is the filter. Returns 0 if the kernel does not compute on blocks.
  virtual int64_t ChannelBlock(Depths* depths) const = 0;
  // Computes output 0. A rectifier makes 0 of NaN. Sets *done to false, with no other effect, if it
  // does not, also if the inputs are not valid.
  virtual absl::Status ComputeBlocked(KernelContext& ctx, const BlockedConvArgs& args,
                                      bool* done) const = 0;
};

// Returns the shape in blocks of an image of shape [batch, height, width, depth].
TensorShape ShapeInBlocks(const TensorShape& image, int64_t block);
// Returns the shape of an image of which `blocks` is the shape in blocks.
TensorShape ShapeOfBlocks(const TensorShape& blocks, int64_t depth);

// Copy an image into blocks, or out of them, in parallel. `to` has the shape.
void CopyToBlocks(const RunContext& run, const Tensor& image, Tensor* to);
void CopyFromBlocks(const RunContext& run, const Tensor& blocks, Tensor* to);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_CHANNEL_BLOCKS_H_
