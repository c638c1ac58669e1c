#include "gradflow/training/losses.h"

#include <cmath>

#include "gradflow/core/status.h"
#include "gradflow/graph/const_op.h"
#include "gradflow/ops/array_ops.h"
#include "gradflow/ops/math_ops.h"
#include "gradflow/ops/nn_ops.h"

namespace gradflow {
namespace training {
namespace {

Output MeanOfAll(const Scope& scope, const Output& values) {
  return ops::Mean(scope, ops::Reshape(scope, values, {-1}), 0);
}

// Converts labels to a type that all ops on labels accept.
Output Wide(const Scope& scope, const Output& labels) {
  return labels.type() == DT_INT64 ? labels : Output(ops::Cast(scope, labels, DT_INT64));
}

// A constant of the type of x.
Output Number(const Scope& scope, float value, const Output& x) {
  const Output number = ops::Const(scope, value);
  return x.node() == nullptr || x.type() == DT_FLOAT ? number
                                                     : Output(ops::Cast(scope, number, x.type()));
}

}  // namespace

Output SoftmaxCrossEntropy(const Scope& scope, const Output& logits, const Output& labels) {
  const Scope s = scope.NewSubScope("softmax_cross_entropy");
  if (!s.ok()) return Output();
  const auto loss = ops::SparseSoftmaxCrossEntropyWithLogits(s, logits, Wide(s, labels)).loss;
  return MeanOfAll(s, loss);
}

Output SmoothedSoftmaxCrossEntropy(const Scope& scope, const Output& logits, const Output& labels,
                                   float smoothing) {
  const Scope s = scope.NewSubScope("smoothed_softmax_cross_entropy");
  if (s.ok() && !(smoothing >= 0 && smoothing <= 1)) {
    s.UpdateStatus(errors::InvalidArgument("expected a smoothing of 0 to 1, found ", smoothing));
  }
  if (!s.ok()) return Output();
  // Zero times the infinite loss of a masked class would be NaN.
  if (smoothing == 0) return SoftmaxCrossEntropy(s, logits, labels);
  const Output of_labels = SoftmaxCrossEntropy(s, logits, labels);
  const Output of_all = ops::Neg(s, MeanOfAll(s, ops::LogSoftmax(s, logits)));
  return ops::Add(s, ops::Mul(s, of_labels, Number(s, 1 - smoothing, logits)),
                  ops::Mul(s, of_all, Number(s, smoothing, logits)));
}

Output SigmoidCrossEntropy(const Scope& scope, const Output& logits, const Output& labels) {
  const Scope s = scope.NewSubScope("sigmoid_cross_entropy");
  if (!s.ok()) return Output();
  // max(x, 0) - x * label + log(1 + exp(-|x|)), which does not overflow. Uses selections, because
  // the gradients of the maximum and of |x| at 0 would not add up to the gradient of the loss.
  const Output zeros = ops::ZerosLike(s, logits);
  const Output is_positive = ops::GreaterEqual(s, logits, zeros);
  const Output positive = ops::SelectV2(s, is_positive, logits, zeros);
  const Output negated = ops::SelectV2(s, is_positive, ops::Neg(s, logits), logits);
  const Output linear = ops::Sub(s, positive, ops::Mul(s, logits, labels));
  return MeanOfAll(s, ops::Add(s, linear, ops::Softplus(s, negated)));
}

Output MeanAbsoluteError(const Scope& scope, const Output& predictions, const Output& targets) {
  const Scope s = scope.NewSubScope("mean_absolute_error");
  return MeanOfAll(s, ops::Abs(s, ops::Sub(s, predictions, targets)));
}

Output HuberLoss(const Scope& scope, const Output& predictions, const Output& targets,
                 float delta) {
  const Scope s = scope.NewSubScope("huber_loss");
  if (s.ok() && !(delta > 0 && std::isfinite(delta))) {
    s.UpdateStatus(errors::InvalidArgument("expected a positive, finite delta, found ", delta));
  }
  if (!s.ok()) return Output();
  const Output error = ops::Abs(s, ops::Sub(s, predictions, targets));
  // error - small is 0 up to delta.
  const Output small = ops::Minimum(s, error, Number(s, delta, error));
  const Output halves = ops::Mul(s, ops::Mul(s, small, small), Number(s, 0.5f, error));
  const Output rest = ops::Mul(s, ops::Sub(s, error, small), Number(s, delta, error));
  return MeanOfAll(s, ops::Add(s, halves, rest));
}

Output MeanSquaredError(const Scope& scope, const Output& predictions, const Output& targets) {
  const Scope s = scope.NewSubScope("mean_squared_error");
  return MeanOfAll(s, ops::SquaredDifference(s, predictions, targets));
}

Output L2Regularization(const Scope& scope, const std::vector<Output>& weights, float factor) {
  const Scope s = scope.NewSubScope("l2_regularization");
  if (weights.empty()) {
    s.UpdateStatus(errors::InvalidArgument("a regularization needs a weight"));
    return Output();
  }
  std::vector<Output> halves;
  for (const Output& weight : weights) halves.push_back(ops::L2Loss(s, weight));
  return ops::Mul(s, ops::AddN(s, halves), factor);
}

Output Accuracy(const Scope& scope, const Output& logits, const Output& labels) {
  const Scope s = scope.NewSubScope("accuracy");
  if (!s.ok()) return Output();
  const Output hits = ops::Equal(s, ops::ArgMax(s, logits, 1), Wide(s, labels));
  return MeanOfAll(s, ops::Cast(s, hits, DT_FLOAT));
}

}  // namespace training
}  // namespace gradflow
