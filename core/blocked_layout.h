// Blocked layout: float images of shape [batch, ceil(channels / block), height, width, block], such
// as nChw16c. A block of channels of a pixel is contiguous: channel c is element c % block of block
// c / block. The elements after the last channel are 0. Convolutions are faster in this layout.
//
// A plan pass (runtime/plan/blocked_layout.cc) chooses the images that stay blocked between two
// convolutions. Internal.
#ifndef GRADFLOW_CORE_BLOCKED_LAYOUT_H_
#define GRADFLOW_CORE_BLOCKED_LAYOUT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "gradflow/core/fused_steps.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"

#pragma GCC visibility push(default)
namespace gradflow {

// An image. `tensor` is null if there is no image.
struct BlockedImage {
  const Tensor* tensor = nullptr;
  // False for [batch, height, width, channels].
  bool blocked = false;
};

// A convolution, the addition of a bias and of an image, and a ReLU, in this order.
struct BlockedConvArgs {
  BlockedImage input;
  const Tensor* filter = nullptr;
  // A vector with an element for each output channel, or null.
  const float* bias = nullptr;
  BlockedImage addend;
  // kRelu or kRelu6; kOther for no ReLU.
  StepOp relu = StepOp::kOther;
  bool output_blocked = false;
};

// A convolution kernel that can compute in the blocked layout.
class BlockableConv {
 public:
  virtual ~BlockableConv() = default;
  // The numbers of channels of the input and the output.
  struct Depths {
    int64_t in = 0;
    int64_t out = 0;
  };
  // Returns the number of channels in a block and sets *depths. Returns 0 if the kernel does not
  // support the blocked layout with this filter. The filter must be the constant that the kernel
  // was made with.
  virtual int64_t BlockSize(const Tensor& filter, Depths* depths) const = 0;
  // Computes output 0. A ReLU turns NaN into 0. Sets *done to false and does nothing if the inputs
  // are invalid or not supported.
  virtual absl::Status ComputeBlocked(KernelContext& ctx, const BlockedConvArgs& args,
                                      bool* done) const = 0;
};

// Returns the blocked shape of an image of shape [batch, height, width, channels].
TensorShape BlockedShape(const TensorShape& image, int64_t block);
// Inverse of BlockedShape().
TensorShape UnblockedShape(const TensorShape& blocks, int64_t depth);

// Convert an image to or from the blocked layout, in parallel. *to has the shape of the result.
void CopyToBlocked(const RunContext& run, const Tensor& image, Tensor* to);
void CopyFromBlocked(const RunContext& run, const Tensor& blocks, Tensor* to);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_BLOCKED_LAYOUT_H_
