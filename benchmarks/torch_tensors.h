// Views of tensors for libtorch, where it is installed.
#ifndef GRADFLOW_BENCHMARKS_TORCH_TENSORS_H_
#define GRADFLOW_BENCHMARKS_TORCH_TENSORS_H_

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "benchmarks/workload.h"
#include "gradflow/core/tensor.h"

namespace gradflow::benchmarks {

// Returns a view of a tensor of floats or int32, which it keeps alive.
inline at::Tensor TorchTensor(const Tensor& tensor) {
  const auto sizes = tensor.shape().dim_sizes();
  return at::from_blob(
      const_cast<void*>(tensor.raw_data()), at::IntArrayRef(sizes.data(), sizes.size()),
      [tensor](void*) {}, tensor.dtype() == DT_FLOAT ? at::kFloat : at::kInt);
}

// Returns a runner that does not record for differentiation.
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
