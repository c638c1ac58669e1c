// Losses and metrics, as scalars of the graph. All except L2Regularization are means over a batch.
#ifndef GRADFLOW_TRAINING_LOSSES_H_
#define GRADFLOW_TRAINING_LOSSES_H_

#include <vector>

#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"

#pragma GCC visibility push(default)
namespace gradflow {
namespace training {

// The mean of -log(softmax(logits)[label]). `logits` is [n, classes]; `labels` is an integer [n].
Output SoftmaxCrossEntropy(const Scope& scope, const Output& logits, const Output& labels);
// SoftmaxCrossEntropy with smoothed labels: 1 - smoothing + smoothing / classes for the class of
// the example, and smoothing / classes for each other class. `smoothing` is from 0 to 1.
Output SmoothedSoftmaxCrossEntropy(const Scope& scope, const Output& logits, const Output& labels,
                                   float smoothing);
// The mean of -log(sigmoid(logit)) where the label is 1, and of -log(1 - sigmoid(logit)) where it
// is 0, for classes that are not mutually exclusive. Labels have the type and shape of `logits`,
// and may be probabilities.
Output SigmoidCrossEntropy(const Scope& scope, const Output& logits, const Output& labels);
// The mean of (predictions - targets)^2 over all elements.
Output MeanSquaredError(const Scope& scope, const Output& predictions, const Output& targets);
// The mean of |predictions - targets| over all elements.
Output MeanAbsoluteError(const Scope& scope, const Output& predictions, const Output& targets);
// The mean over all elements: e^2 / 2 where e = |predictions - targets| is at most `delta`, and
// delta * (e - delta / 2) elsewhere.
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
