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

// Returns, as a float, the fraction of the rows of `logits` with fewer than k elements greater than
// the element at the label. `logits` is a float [n, classes]; `labels` is an integer [n]. A row
// counts as wrong if its label is not a class or an element is not finite.
Output TopKAccuracy(const Scope& scope, const Output& logits, const Output& labels, int64_t k);

// Returns the matrix int64 [num_classes, num_classes] whose element (i, j) is the number of
// examples of class i that were predicted as class j. `labels` and `predictions` are integers [n].
// Values outside 0 to num_classes - 1 return INVALID_ARGUMENT when the graph runs.
Output ConfusionMatrix(const Scope& scope, const Output& labels, const Output& predictions,
                       int64_t num_classes);

// The metrics of each class of a confusion matrix: floats [classes], 0 where there is no example.
struct ClassMetrics {
  // The fraction of the examples predicted as the class that belong to it.
  Output precision;
  // The fraction of the examples of the class that were predicted as the class.
  Output recall;
  // 2 * precision * recall / (precision + recall).
  Output f1;
};
ClassMetrics PrecisionAndRecall(const Scope& scope, const Output& confusion);

// A metric that accumulates over several runs in variables.
struct RunningMetric {
  // Sets the variables to zero. Must also run before the first update.
  Operation reset;
  // Adds the values of a run.
  Operation update;
  // Fetch it in a run without updates.
  Output result;
};
// The mean of all elements of `values`, a numeric tensor, over all runs: a float, 0 if there are no
// elements. Accumulates in double. The variables are "<name>/total" and "<name>/count"; no other
// metric may have the same name.
RunningMetric RunningMean(const Scope& scope, const std::string& name, const Output& values);
// The elementwise sum of `values`, whose shape must be known. The variable is "<name>/sum".
RunningMetric RunningSum(const Scope& scope, const std::string& name, const Output& values);

}  // namespace training
}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_TRAINING_METRICS_H_
