#include "gradflow/training/metrics.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/const_op.h"
#include "gradflow/graph/node.h"
#include "gradflow/ops/array_ops.h"
#include "gradflow/ops/math_ops.h"
#include "gradflow/ops/nn_ops.h"
#include "gradflow/ops/no_op.h"
#include "gradflow/ops/resource_variable_ops.h"
#include "gradflow/training/variables.h"

namespace gradflow {
namespace training {
namespace {

// Returns false, and sets the status of the scope, if an argument is empty.
bool HasArguments(const Scope& scope, const std::vector<Output>& arguments) {
  for (const Output& argument : arguments) {
    if (scope.ok() && argument.node() == nullptr) {
      scope.UpdateStatus(errors::InvalidArgument("an argument of a metric is empty"));
    }
  }
  return scope.ok();
}

Output AsInt64(const Scope& scope, const Output& x) {
  return x.type() == DT_INT64 ? x : Output(ops::Cast(scope, x, DT_INT64));
}

// Returns the sum of all elements.
Output SumOfAll(const Scope& scope, const Output& x) {
  return ops::Sum(scope, ops::Reshape(scope, x, {-1}), 0);
}

// Returns the dimension sizes of a shape as a tensor.
Tensor Dims(const TensorShape& shape) {
  Tensor dims(DT_INT64, {shape.dims()});
  for (int d = 0; d < shape.dims(); ++d) dims.flat<int64_t>()(d) = shape.dim_size(d);
  return dims;
}

// A variable that `reset` sets to zeros.
struct ResettableVariable {
  ResettableVariable(const Scope& scope, const std::string& name, DataType dtype,
                     const TensorShape& shape)
      : variable(NewVariable(scope.WithOpName(name), name, dtype, shape)),
        reset(AssignVariable(scope, variable,
                             ops::Fill(scope, ops::Const(scope, Input::Initializer(Dims(shape))),
                                       ops::Cast(scope, ops::Const(scope, 0), dtype)))) {}
  Operation Add(const Scope& scope, const Output& value) const {
    return ops::AssignAddVariableOp(scope, variable, value).operation;
  }

  Output variable;
  Operation reset;
};

}  // namespace

Output TopKAccuracy(const Scope& scope, const Output& logits, const Output& labels, int64_t k) {
  const Scope s = scope.NewSubScope("top_k_accuracy");
  if (s.ok() && k < 1) s.UpdateStatus(errors::InvalidArgument("expected a positive k, found ", k));
  if (!HasArguments(s, {logits, labels})) return Output();
  const Output hits = ops::InTopKV2(s, logits, AsInt64(s, labels), ops::Const(s, k));
  return ops::Mean(s, ops::Cast(s, hits, DT_FLOAT), 0);
}

Output ConfusionMatrix(const Scope& scope, const Output& labels, const Output& predictions,
                       int64_t num_classes) {
  const Scope s = scope.NewSubScope("confusion_matrix");
  if (s.ok() && num_classes < 1) {
    s.UpdateStatus(errors::InvalidArgument("expected a class, found ", num_classes));
  }
  if (!HasArguments(s, {labels, predictions})) return Output();
  const Output rows = AsInt64(s, labels);
  const Output cells = ops::Stack(s, {rows, AsInt64(s, predictions)}, ops::Stack::Axis(1));
  return ops::ScatterNd(s, cells, ops::OnesLike(s, rows), {num_classes, num_classes});
}

ClassMetrics PrecisionAndRecall(const Scope& scope, const Output& confusion) {
  const Scope s = scope.NewSubScope("precision_and_recall");
  if (!HasArguments(s, {confusion})) return {};
  const Output counts = ops::Cast(s, confusion, DT_FLOAT);
  const Output hits = ops::MatrixDiagPart(s, counts);
  const Output precision = ops::DivNoNan(s, hits, ops::Sum(s, counts, 0));
  const Output recall = ops::DivNoNan(s, hits, ops::Sum(s, counts, 1));
  const Output product = ops::Mul(s, 2.0f, ops::Mul(s, precision, recall));
  return {precision, recall, ops::DivNoNan(s, product, ops::Add(s, precision, recall))};
}

RunningMetric RunningMean(const Scope& scope, const std::string& name, const Output& values) {
  const Scope s = scope.NewSubScope("running_mean");
  if (!HasArguments(s, {values})) return {};
  const ResettableVariable total(s, absl::StrCat(name, "/total"), DT_DOUBLE, TensorShape());
  const ResettableVariable count(s, absl::StrCat(name, "/count"), DT_DOUBLE, TensorShape());
  RunningMetric metric;
  metric.reset = ops::NoOp(s.WithControlDependencies({total.reset, count.reset})).operation;
  const Operation add_total = total.Add(s, SumOfAll(s, ops::Cast(s, values, DT_DOUBLE)));
  const Operation add_count =
      count.Add(s, ops::Cast(s, ops::Size(s, values, ops::Size::OutType(DT_INT64)), DT_DOUBLE));
  metric.update = ops::NoOp(s.WithControlDependencies({add_total, add_count})).operation;
  metric.result = ops::Cast(
      s, ops::DivNoNan(s, ReadVariable(s, total.variable), ReadVariable(s, count.variable)),
      DT_FLOAT);
  return metric;
}

RunningMetric RunningSum(const Scope& scope, const std::string& name, const Output& values) {
  const Scope s = scope.NewSubScope("running_sum");
  if (!HasArguments(s, {values})) return {};
  const PartialTensorShape& known = values.node()->output_shape(values.index());
  TensorShape shape;
  if (!known.AsTensorShape(&shape)) {
    s.UpdateStatus(errors::InvalidArgument(
        "metric '", name, "': expected values of a known shape, found ", known.DebugString()));
    return {};
  }
  const ResettableVariable sum(s, absl::StrCat(name, "/sum"), values.type(), shape);
  return {sum.reset, sum.Add(s, values), ReadVariable(s, sum.variable)};
}

}  // namespace training
}  // namespace gradflow
