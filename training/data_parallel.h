// DataParallel: trains one network on several ranks. Each rank computes the gradients of a part of
// every batch.
//
//     DataParallel parallel(scope, collectives);         // null: one rank
//     Operation train;
//     GRADFLOW_RETURN_IF_ERROR(parallel.Minimize(&adam, loss, model.trainable(), &train));
//     const Operation update = parallel.Update(moving_statistics, model.updates());
//     const Operation same = parallel.Broadcast(all_variables);
//     trainer_options.targets = {train, update};
//     trainer_options.parallel = &parallel;
//     session_options.collectives = collectives;
//     ...
//     if (!resumed) session.Run({}, {}, initializers, nullptr);
//     session.Run({}, {}, {same}, nullptr);
//
// All ranks build the same graph and make the same batches. The trainer feeds each rank its rows of
// a batch, and rank 0 writes the checkpoints. A gradient is averaged as soon as the backward pass
// has computed it, while the pass goes on; small gradients travel together (docs/distributed.md).
// Gradients are added in the order of the ranks, so all ranks compute the same bits, in every run
// with the same number of ranks.
//
// With DataParallelOptions::micro_batches, the bits do not depend on the number of ranks either:
// each batch is cut into this number of micro-batches, whose gradients are added in a fixed tree.
#ifndef GRADFLOW_TRAINING_DATA_PARALLEL_H_
#define GRADFLOW_TRAINING_DATA_PARALLEL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/training/optimizer.h"

#pragma GCC visibility push(default)
namespace gradflow {

class Collectives;

namespace training {

// Options of DataParallel.
struct DataParallelOptions {
  // The time for each exchange; 0 for the default of the Collectives.
  float timeout_seconds = 0;
  // The key of the group of all ranks. Other collective ops of the program must use other keys.
  int64_t group_key = 1;
  // If not 0, each batch is cut into this number of micro-batches, and training computes the same
  // bits on any number of ranks up to this number, also on one rank. The number of rows of a batch
  // must be a multiple of it. An exchange then begins after the backward pass instead of during the
  // pass. Variables and gradients must be float.
  int64_t micro_batches = 0;
};

// Thread safety: none.
class DataParallel {
 public:
  // Adds exchanges to the graph of `scope`. `collectives` may be null for one rank. The session of
  // the graph needs the same object.
  DataParallel(const Scope& scope, std::shared_ptr<Collectives> collectives,
               const DataParallelOptions& options = {});

  // This rank and the number of ranks.
  int rank() const { return rank_; }
  int size() const { return size_; }

  // Adds an operation that gives the variables of all ranks the values of rank 0. The operation
  // does nothing if there is one rank. Reports INVALID_ARGUMENT through the scope if the shape of a
  // variable is not known, or its type is not bool, half, float, double, int32 or int64.
  Operation Broadcast(const std::vector<Output>& variables);
  // Replaces gradients by their averages over the ranks. Skips NoGradient(). Slices are not
  // supported. Returns FAILED_PRECONDITION if there are micro-batches.
  absl::Status Average(std::vector<Output>* gradients);
  // ComputeGradients(), Average() and ApplyGradients() of an optimizer. May be called once if there
  // are micro-batches.
  absl::Status Minimize(Optimizer* optimizer, const Output& loss,
                        const std::vector<Output>& variables, Operation* train,
                        const GradientBuildOptions& options = {});
  // Adds an operation that runs `updates` and then averages the variables that they change over
  // the ranks: moving statistics, whose updates depend on the rows. The variables must be float.
  // REQUIRES: called after Minimize()
  Operation Update(const std::vector<Output>& variables, const std::vector<Operation>& updates);

  // Runs a step: feeds `inputs` with this rank's rows of `batch`, and runs `targets`, the results
  // of Minimize() and Update() and other operations. Returns the loss of the rank's rows, or of the
  // whole batch if there are micro-batches. Returns INVALID_ARGUMENT if the batch cannot be cut.
  absl::StatusOr<float> Step(const ClientSession& session, const std::vector<Output>& inputs,
                             const std::vector<Tensor>& batch, const Output& loss,
                             const std::vector<Operation>& targets) const;

 private:
  // A float tensor of a step with micro-batches: the average over the micro-batches is fed to
  // `average`.
  struct Averaged {
    // A gradient, or the value of a variable after the updates.
    Output value;
    Output average;
  };
  // A variable that Update() averages.
  struct State {
    Output variable;
    // Assigns `old_value`, a placeholder.
    Output old_value;
    Operation restore;
  };

  // A float vector with all averaged tensors of a step, and the loss at the end.
  using Flat = std::vector<float>;

  Output AverageOverRanks(const Scope& scope, const Output& value);
  Averaged AddAveraged(const Output& value, const PartialTensorShape& shape);
  // Runs micro-batch `i`, and appends its tensors to *flat.
  absl::Status RunMicroBatch(const ClientSession& session, const std::vector<Output>& inputs,
                             const std::vector<Tensor>& batch, const Output& loss, int64_t i,
                             const std::vector<Tensor>& old_state, Flat* flat,
                             std::vector<TensorShape>* shapes) const;
  absl::StatusOr<float> StepInMicroBatches(const ClientSession& session,
                                           const std::vector<Output>& inputs,
                                           const std::vector<Tensor>& batch, const Output& loss,
                                           const std::vector<Operation>& targets) const;

  const Scope scope_;
  const std::shared_ptr<Collectives> collectives_;
  const DataParallelOptions options_;
  int rank_ = 0;
  int size_ = 1;
  int64_t next_instance_ = 1;
  // What Update() follows.
  std::vector<Operation> minimized_;
  // For micro-batches.
  std::vector<Averaged> gradients_;
  std::vector<Averaged> states_;
  std::vector<State> restored_;
  std::vector<Operation> updates_;
};

// Returns the rows of rank `rank` of `size` ranks: the tensors of a batch are cut along the first
// dimension. Returns INVALID_ARGUMENT unless the number of rows is a multiple of `size` that is not
// 0; the average of the ranks' gradients would otherwise not be the average of the examples.
absl::StatusOr<std::vector<Tensor>> RowsOfRank(const std::vector<Tensor>& batch, int rank,
                                               int size);

}  // namespace training
}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_TRAINING_DATA_PARALLEL_H_
