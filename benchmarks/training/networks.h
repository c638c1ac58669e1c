// The network of examples/qat_fashion_mnist, without quantization, in gradflow and in libtorch.
#ifndef GRADFLOW_BENCHMARKS_TRAINING_NETWORKS_H_
#define GRADFLOW_BENCHMARKS_TRAINING_NETWORKS_H_

#include "benchmarks/workload.h"
#include "gradflow/core/tensor.h"

namespace gradflow::benchmarks {

// Returns a runner that makes one Adam step with `images`, uint8 [n, 28, 28], and `labels`, int64
// [n].
Runner OurStep(const Tensor& images, const Tensor& labels, int threads);
// The same with libtorch. Null if libtorch is not installed.
Runner TorchStep(const Tensor& images, const Tensor& labels, int threads);

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_TRAINING_NETWORKS_H_
