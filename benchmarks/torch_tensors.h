// Views of tensors for libtorch, if it is installed.
#ifndef GRADFLOW_BENCHMARKS_TORCH_TENSORS_H_
#define GRADFLOW_BENCHMARKS_TORCH_TENSORS_H_

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "benchmarks/workload.h"
#include "gradflow/core/tensor.h"

namespace gradflow::benchmarks {

// Returns a view of a float or int32 tensor. The view keeps the tensor alive.
inline at::Tensor TorchTensor(const Tensor& tensor) {
  const auto sizes = tensor.shape().dim_sizes();
  return at::from_blob(
      const_cast<void*>(tensor.raw_data()), at::IntArrayRef(sizes.data(), sizes.size()),
      [tensor](void*) {}, tensor.dtype() == DT_FLOAT ? at::kFloat : at::kInt);
}

// Returns a runner that calls `run` with `threads` threads of libtorch, without recording
// operations for differentiation.
template <typename F>
Runner WithThreads(int threads, F run) {
  return [=] {
    const at::NoGradGuard no_grad;
    if (at::get_num_threads() != threads) at::set_num_threads(threads);
    run();
  };
}

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_TORCH_TENSORS_H_
