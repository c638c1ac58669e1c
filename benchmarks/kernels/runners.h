// The contestants of the kernel benchmarks.
#ifndef GRADFLOW_BENCHMARKS_KERNELS_RUNNERS_H_
#define GRADFLOW_BENCHMARKS_KERNELS_RUNNERS_H_

#include <cstdint>
#include <string>

#include "benchmarks/workload.h"
#include "gradflow/core/tensor_shape.h"

namespace gradflow::benchmarks {

enum class Op {
  kFakeQuant,
  kFakeQuantPerChannel,
  kFakeQuantGradient,
  kFakeQuantPerChannelGradient,
  kBatchNormInference,
  kBatchNormTraining,
  kBatchNormGradInference,
  kBatchNormGradTraining,
};

// An op on inputs of one shape. The dimensions of batch norms are in the order of their format.
struct KernelCase {
  Op op;
  TensorShape shape;
  bool channels_first = false;

  std::string OpName() const;
  // "[32,56,56,64] NHWC"
  std::string ShapeName() const;
  int64_t channels() const { return shape.dim_size(channels_first ? 1 : shape.dims() - 1); }
  // Returns the number of bytes to move: each large input is read once, and each large output is
  // written once.
  double Bytes() const;
};

// Runs the op through a session in steady state, on `threads` threads.
Runner Ours(const KernelCase& c, int threads);
// Computes a = b + s * c over arrays of the case's elements.
Runner Triad(const KernelCase& c, int threads);
// Computes a = b.
Runner Copy(const KernelCase& c, int threads);
// Runners of the peers. Null if a peer is not built in or lacks the op.
Runner OneDnn(const KernelCase& c, int threads);
Runner Torch(const KernelCase& c, int threads);

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_KERNELS_RUNNERS_H_
