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

// An op on inputs of one shape. The dimensions of batch norm are in the order of its format.
struct Case {
  Op op;
  TensorShape shape;
  bool channels_first = false;

  std::string OpName() const;
  // "[32,56,56,64] NHWC"
  std::string ShapeName() const;
  int64_t channels() const { return shape.dim_size(channels_first ? 1 : shape.dims() - 1); }
  // Returns the bytes that must move: each large input is read once, each large output written
  // once.
  double Bytes() const;
};

// Runs the op through a session in steady state, on `threads` threads.
Runner Ours(const Case& c, int threads);
// Computes a = b + s * c over arrays of the case's elements.
Runner Triad(const Case& c, int threads);
// Computes a = b.
Runner Copy(const Case& c, int threads);
// Run the peers. Null where a peer is not built in or does not have the op.
Runner OneDnn(const Case& c, int threads);
Runner Torch(const Case& c, int threads);

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_KERNELS_RUNNERS_H_
