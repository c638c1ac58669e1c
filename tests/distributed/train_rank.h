// Trains a small network on a rank, for tests in one process and in several.
#ifndef GRADFLOW_TESTS_DISTRIBUTED_TRAIN_RANK_H_
#define GRADFLOW_TESTS_DISTRIBUTED_TRAIN_RANK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/collectives.h"
#include "gradflow/core/tensor.h"

namespace gradflow::training {

struct RankOptions {
  int64_t micro_batches = 0;
  int64_t steps = 5;
  // Where rank 0 writes a checkpoint every other step; empty for none.
  std::string prefix;
  // True for a network whose moving statistics depend on the rows of a rank.
  bool has_statistics = false;
  std::function<absl::Status(int64_t step, float loss)> after_step;
};

// Trains a network on a rank, and returns all variables. Continues from a checkpoint if there is
// one. The initial weights differ between ranks before they are broadcast. `collectives` may be
// null.
absl::StatusOr<std::vector<Tensor>> TrainRank(const std::shared_ptr<Collectives>& collectives,
                                              const RankOptions& rank_options);

}  // namespace gradflow::training

#endif  // GRADFLOW_TESTS_DISTRIBUTED_TRAIN_RANK_H_
