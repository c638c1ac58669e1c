// Computes convolutions and their gradients on tensors whose last dimension is the depth: in
// general as matrix products of patches with the BLAS, and faster with oneDNN.
#ifndef GRADFLOW_OPS_NN_CONV_ENGINE_H_
#define GRADFLOW_OPS_NN_CONV_ENGINE_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "gradflow/core/blocked_layout.h"
#include "gradflow/core/fused_steps.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/tensor.h"
#include "gradflow/ops/nn/conv_geometry.h"

namespace gradflow {

enum class ConvPass { kForward, kInputGradient, kFilterGradient };

// The tensors of a pass. They have the same type and are row-major, with the depth last:
//   kForward         a: input,        b: filter,       out: output
//   kInputGradient   a: out_backprop, b: filter,       out: gradient of the input
//   kFilterGradient  a: input,        b: out_backprop, out: gradient of the filter
struct ConvTensors {
  const Tensor& a;
  const Tensor& b;
  Tensor* out;
  // True if the filter has the same elements in all runs that pass this buffer.
  bool constant_filter = false;
  // Applied to the output of kForward by FastConv. May be null.
  const FusedSteps* steps = nullptr;
};

// The first error of blocks that run in parallel. Thread-safe.
class SharedStatus {
 public:
  void Update(absl::Status status) {
    if (status.ok()) return;
    MutexLock lock(&mutex_);
    if (status_.ok()) status_ = std::move(status);
  }
  absl::Status Get() {
    MutexLock lock(&mutex_);
    return status_;
  }

 private:
  Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

// Computes a pass for float, double, or int32, which wraps around. Depthwise convolutions have
// separate loops. REQUIRES: no tensor is empty
absl::Status ConvByGemm(KernelContext& ctx, ConvPass pass, const ConvGeometry& geometry,
                        const ConvTensors& tensors);

// Computes passes for float with oneDNN. Keeps primitives and reordered constant filters.
//
// Thread-safe.
class FastConv {
 public:
  virtual ~FastConv() = default;
  // Sets *done to false, without other effects, if oneDNN has no fast code for the sizes or the
  // processor. REQUIRES: no tensor is empty
  virtual absl::Status Run(KernelContext& ctx, const ConvGeometry& geometry,
                           const ConvTensors& tensors, bool* done) = 0;
};

// Returns null if the library is built without oneDNN.
std::unique_ptr<FastConv> MakeFastConv(ConvPass pass);

// Computes convolutions of images in blocked layout with oneDNN. Keeps primitives and the filter,
// which is constant.
//
// Thread-safe.
class BlockedConv {
 public:
  virtual ~BlockedConv() = default;
  // Computes output 0. `image` is its shape, [batch, height, width, depth]. Sets *done to false,
  // without other effects, if oneDNN has no fast code for the sizes.
  // REQUIRES: no tensor is empty, and the tensors of `args` have the sizes of the geometry
  virtual absl::Status Run(KernelContext& ctx, const ConvGeometry& geometry,
                           const BlockedConvArgs& args, const TensorShape& image, bool* done) = 0;
};

// Returns the channels per block of the blocked layout that oneDNN's fast code uses on this
// processor; 0 without fast code.
int64_t OneDnnBlockSize();
// Returns null if oneDNN has no fast code on this processor.
std::unique_ptr<BlockedConv> MakeBlockedConv();

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_CONV_ENGINE_H_
