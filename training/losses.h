// Losses and metrics: means over a batch, as scalars of the graph.
#ifndef GRADFLOW_TRAINING_LOSSES_H_
#define GRADFLOW_TRAINING_LOSSES_H_

#include <vector>

#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"

#pragma GCC visibility push(default)
namespace gradflow {
namespace training {

// The mean of -log(softmax(logits)[label]). `logits` is [n, classes], `labels` is [n], of integers.
Output SoftmaxCrossEntropy(const Scope& scope, const Output& logits, const Output& labels);
// The mean of (predictions - targets)^2 over all elements.
Output MeanSquaredError(const Scope& scope, const Output& predictions, const Output& targets);
// factor * sum(w^2) / 2, over all elements of all tensors.
Output L2Regularization(const Scope& scope, const std::vector<Output>& weights, float factor);
// The fraction of the rows of `logits` whose largest element is at the label, as a float.
Output Accuracy(const Scope& scope, const Output& logits, const Output& labels);

}  // namespace training
}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_TRAINING_LOSSES_H_
