// The network of examples/qat_fashion_mnist, without quantization, in gradflow and in libtorch.
#ifndef GRADFLOW_BENCHMARKS_TRAINING_NETWORKS_H_
#define GRADFLOW_BENCHMARKS_TRAINING_NETWORKS_H_

#include "benchmarks/workload.h"
#include "gradflow/core/tensor.h"

namespace gradflow::benchmarks {

// Return runners that take a step of Adam with `images`, uint8 [n, 28, 28], and `labels`, int64
// [n].
Runner OurStep(const Tensor& images, const Tensor& labels, int threads);
// Null where libtorch is not installed.
Runner TorchStep(const Tensor& images, const Tensor& labels, int threads);

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_TRAINING_NETWORKS_H_
