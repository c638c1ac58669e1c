// The network in integer arithmetic, as on a small processor.
#ifndef GRADFLOW_EXAMPLES_QAT_FASHION_MNIST_INTEGERS_H_
#define GRADFLOW_EXAMPLES_QAT_FASHION_MNIST_INTEGERS_H_

#include <cstdint>
#include <vector>

#include "examples/qat_fashion_mnist/frozen.h"
#include "gradflow/core/tensor.h"

namespace qat {

// The classes of images, and the largest magnitude of a sum.
struct Prediction {
  std::vector<int> classes;
  int32_t largest_sum = 0;
};

// Classifies images, uint8 [n, 28, 28]. Activations are unsigned 8-bit integers, weights are signed
// 8-bit integers, and sums of their products are 32-bit integers. Only the scale of a sum and its
// rounding to the next activation are computed in float.
Prediction Classify(const std::vector<FrozenLayer>& layers, const gradflow::Tensor& images);

}  // namespace qat

#endif  // GRADFLOW_EXAMPLES_QAT_FASHION_MNIST_INTEGERS_H_
