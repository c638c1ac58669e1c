// The fixed tree in which the tensors of micro-batches are added, and its exchange between ranks.
#ifndef GRADFLOW_TRAINING_MICRO_BATCHES_H_
#define GRADFLOW_TRAINING_MICRO_BATCHES_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gradflow {

class Collectives;

namespace training {

// A node of the tree: the sum of micro-batches [begin, end).
struct SumRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// Returns where the tree cuts a range of 2 or more micro-batches: the left part is the largest
// power of two.
int64_t SplitOf(const SumRange& range);

// Returns the micro-batches of a rank. REQUIRES: 1 <= ranks <= count
SumRange MicroBatchesOf(int64_t count, int rank, int ranks);

// Returns the fewest nodes of the tree of `count` micro-batches that cover `part`, in their order.
std::vector<SumRange> NodesOf(int64_t count, const SumRange& part);

// Computes the tensors of a micro-batch, as one vector. All vectors have the same length.
using RunMicroBatch = std::function<absl::StatusOr<std::vector<float>>(int64_t micro_batch)>;

// Returns the sum of micro-batches [range.begin, range.end), added in the tree.
absl::StatusOr<std::vector<float>> SumOf(const SumRange& range, const RunMicroBatch& run);

// The exchange between the ranks.
struct SumExchange {
  // Null for one rank.
  Collectives* collectives = nullptr;
  int64_t group_key = 0;
  // Uses this instance key and the next.
  int64_t instance_key = 0;
  std::chrono::milliseconds timeout{0};
};

// Returns the average of `count` micro-batches, the same on all ranks. Each rank runs its part, and
// sends the sums of its nodes. Rank i adds the i-th chunk of all nodes, and sends the result to the
// other ranks. The bits depend only on the vectors.
absl::StatusOr<std::vector<float>> AverageOf(int64_t count, const SumExchange& exchange,
                                             const RunMicroBatch& run);

}  // namespace training
}  // namespace gradflow

#endif  // GRADFLOW_TRAINING_MICRO_BATCHES_H_
