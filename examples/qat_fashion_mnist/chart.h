// The picture of a training: loss and accuracy by epoch.
#ifndef GRADFLOW_EXAMPLES_QAT_FASHION_MNIST_CHART_H_
#define GRADFLOW_EXAMPLES_QAT_FASHION_MNIST_CHART_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace qat {

// The result of an epoch: the mean loss of its steps, and the accuracy on the test images.
struct Epoch {
  double loss = 0;
  double accuracy = 0;
};

// Writes a PNG with two curves: the loss in red from 0 to the largest, the accuracy in blue from 80
// to 100 %. There is a horizontal line for each fifth, and a mark for each epoch.
absl::Status WriteChart(const std::string& path, const std::vector<Epoch>& epochs);

}  // namespace qat

#endif  // GRADFLOW_EXAMPLES_QAT_FASHION_MNIST_CHART_H_
