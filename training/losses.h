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
// Returns that mean with a label of 1 - smoothing + smoothing / classes for the class, and of
// smoothing / classes for each other class. `smoothing` is from 0 to 1.
Output SmoothedSoftmaxCrossEntropy(const Scope& scope, const Output& logits, const Output& labels,
                                   float smoothing);
// The mean of -log(sigmoid(logit)) where the label is 1, and of -log(1 - sigmoid(logit)) where it
// is 0, for classes that do not exclude each other. Labels are of the type and shape of `logits`,
// and may be probabilities.
Output SigmoidCrossEntropy(const Scope& scope, const Output& logits, const Output& labels);
// The mean of (predictions - targets)^2 over all elements.
Output MeanSquaredError(const Scope& scope, const Output& predictions, const Output& targets);
// The mean of |predictions - targets| over all elements.
Output MeanAbsoluteError(const Scope& scope, const Output& predictions, const Output& targets);
// The mean over all elements of e^2 / 2 where e = |predictions - targets| is at most `delta`, and
// of delta * (e - delta / 2) elsewhere.
Output HuberLoss(const Scope& scope, const Output& predictions, const Output& targets,
                 float delta = 1);
// factor * sum(w^2) / 2, over all elements of all tensors.
Output L2Regularization(const Scope& scope, const std::vector<Output>& weights, float factor);
// The fraction of the rows of `logits` whose largest element is at the label, as a float.
Output Accuracy(const Scope& scope, const Output& logits, const Output& labels);

}  // namespace training
}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_TRAINING_LOSSES_H_
