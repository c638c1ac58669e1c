// DataParallel: trains one network on several ranks. Each rank computes the gradients of a part of
// every batch.
//
//   DataParallel parallel(scope, collectives);       // null: one rank
//   Operation train;
//   GRADFLOW_RETURN_IF_ERROR(parallel.Minimize(&adam, loss, variables, &train));
//   const Operation same = parallel.Broadcast(all_variables);
//   ...
//   options.collectives = collectives;               // SessionOptions, TrainerOptions
//   if (!resumed) session.Run({}, {}, initializers, nullptr);
//   session.Run({}, {}, {same}, nullptr);
//
// All ranks build the same graph and make the same batches. The trainer feeds each rank its rows of
// a batch, and rank 0 writes the checkpoints (TrainerOptions::collectives). A gradient is averaged
// as soon as the backward pass has computed it, while the pass goes on; small gradients travel
// together (docs/distributed.md). Gradients are added in the order of the ranks, so all ranks
// compute the same bits, in every run with the same number of ranks.
#ifndef GRADFLOW_TRAINING_DATA_PARALLEL_H_
#define GRADFLOW_TRAINING_DATA_PARALLEL_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"
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
};

// Thread safety: none.
class DataParallel {
 public:
  // Adds exchanges to the graph of `scope`. Reads the number of ranks from `collectives`, which may
  // be null for one rank. The session of the graph needs the same object.
  DataParallel(const Scope& scope, const Collectives* collectives,
               const DataParallelOptions& options = {});

  // This rank and the number of ranks.
  int rank() const { return rank_; }
  int size() const { return size_; }

  // Adds an operation that gives the variables of all ranks the values of rank 0. Returns an empty
  // operation that does nothing if there is one rank. Reports INVALID_ARGUMENT through the scope if
  // the shape of a variable is not known, or its type is not bool, half, float, double, int32 or
  // int64.
  Operation Broadcast(const std::vector<Output>& variables);
  // Replaces gradients by their averages over the ranks. Skips NoGradient(). Slices are not
  // supported.
  absl::Status Average(std::vector<Output>* gradients);
  // ComputeGradients(), Average() and ApplyGradients() of an optimizer.
  absl::Status Minimize(Optimizer* optimizer, const Output& loss,
                        const std::vector<Output>& variables, Operation* train,
                        const GradientBuildOptions& options = {});

 private:
  const Scope scope_;
  const DataParallelOptions options_;
  int rank_ = 0;
  int size_ = 1;
  int64_t next_instance_ = 1;
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
