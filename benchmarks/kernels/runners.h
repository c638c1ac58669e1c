// The contestants of the kernel benchmarks. One call of a Runner is one run of an op.
#ifndef GRADFLOW_BENCHMARKS_KERNELS_RUNNERS_H_
#define GRADFLOW_BENCHMARKS_KERNELS_RUNNERS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"

namespace gradflow::benchmarks {

// Null if there is nothing to run.
using Runner = std::function<void()>;

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

// Returns normally distributed floats, the same on every call. All contestants have them in the
// same kind of memory: that of a session's own tensors, in huge pages where the system has them.
Tensor NormalTensor(const TensorShape& shape, uint32_t seed);

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_KERNELS_RUNNERS_H_
