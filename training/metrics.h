// Metrics of classifications, and running means over the batches of an evaluation.
//
//   const Output confusion = ConfusionMatrix(scope, labels, ops::ArgMax(scope, logits, 1), 10);
//   const RunningMetric total = RunningSum(scope, "eval/confusion", confusion);
//   const Output recall = PrecisionAndRecall(scope, total.result).recall;
//   ...
//   session.Run({}, {}, {total.reset}, nullptr);
//   while (batches->Next(&batch).ok()) session.Run(feeds, {}, {total.update}, nullptr);
//   session.Run({recall}, &outputs);
//
// Accuracy() is in losses.h.
#ifndef GRADFLOW_TRAINING_METRICS_H_
#define GRADFLOW_TRAINING_METRICS_H_

#include <cstdint>
#include <string>

#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"

#pragma GCC visibility push(default)
namespace gradflow {
namespace training {

// Returns the fraction of the rows of `logits`, [n, classes] of float, in which less than k
// elements are greater than that of the label, as a float. `labels` is [n], of integers. Rows
// whose label is no class, or that have an element that is not finite, count as wrong.
Output TopKAccuracy(const Scope& scope, const Output& logits, const Output& labels, int64_t k);

// Returns the matrix [num_classes, num_classes] of int64 whose element (i, j) is the number of
// examples of class i that were predicted as class j. `labels` and `predictions` are [n], of
// integers; others than 0 to num_classes - 1 are INVALID_ARGUMENT in the run.
Output ConfusionMatrix(const Scope& scope, const Output& labels, const Output& predictions,
                       int64_t num_classes);

// For each class of a confusion matrix, [classes] of float; 0 where there is no example.
struct ClassMetrics {
  // The fraction of the examples predicted as the class that are of it.
  Output precision;
  // The fraction of the examples of the class that are predicted as it.
  Output recall;
  // 2 * precision * recall / (precision + recall).
  Output f1;
};
ClassMetrics PrecisionAndRecall(const Scope& scope, const Output& confusion);

// A metric over several runs, which variables keep.
struct RunningMetric {
  // Sets the variables to zero, also at first.
  Operation reset;
  // Adds the values of a run.
  Operation update;
  // To be fetched in a run without updates.
  Output result;
};
// The mean of all elements of `values`, of a type of numbers, in all runs: a float, 0 without
// elements. It is accumulated in double. `name` names the variables, "<name>/total" and
// "<name>/count", and must not be that of another metric.
RunningMetric RunningMean(const Scope& scope, const std::string& name, const Output& values);
// The sum of `values`, whose shape must be known, element by element. The variable is "<name>/sum".
RunningMetric RunningSum(const Scope& scope, const std::string& name, const Output& values);

}  // namespace training
}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_TRAINING_METRICS_H_
