#include "gradflow/training/losses.h"

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

// Labels as a type that all ops on them take.
Output Wide(const Scope& scope, const Output& labels) {
  return labels.type() == DT_INT64 ? labels : Output(ops::Cast(scope, labels, DT_INT64));
}

}  // namespace

Output SoftmaxCrossEntropy(const Scope& scope, const Output& logits, const Output& labels) {
  const Scope s = scope.NewSubScope("softmax_cross_entropy");
  if (!s.ok()) return Output();
  const auto loss = ops::SparseSoftmaxCrossEntropyWithLogits(s, logits, Wide(s, labels)).loss;
  return MeanOfAll(s, loss);
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
