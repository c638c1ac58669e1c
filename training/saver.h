// Saver: writes the variables of a session to checkpoints, and reads them.
//
//   Saver saver(scope, variables);               // adds the nodes, before the session is made
//   ...
//   GRADFLOW_RETURN_IF_ERROR(saver.Save(session, "model/ckpt", step));
//   GRADFLOW_RETURN_IF_ERROR(saver.Restore(session, *LatestCheckpoint("model")));
//
// A checkpoint is written under a new prefix, such as "model/ckpt-1000", and then named in the file
// "model/checkpoint", like the checkpoints of TensorFlow's savers. The checkpoint is completely on
// the disk before "model/checkpoint" names it. If writing fails or the machine crashes, earlier
// checkpoints remain.
//
// Savers in several threads and processes may write to one folder. A lock on the folder orders
// them: each saver waits for the others. Some network file systems have no such locks; there, only
// one saver may write to a folder.
//
// Integers that are not variables, such as the position in the training data, are saved as
// counters:
//
//   SaverOptions options;
//   options.counters = {"input/position"};
//   Saver saver(scope, variables, options);
//   ...
//   GRADFLOW_RETURN_IF_ERROR(saver.Save(session, "model/ckpt", step, {batches->position()}));
#ifndef GRADFLOW_TRAINING_SAVER_H_
#define GRADFLOW_TRAINING_SAVER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"
#include "gradflow/runtime/session/client_session.h"

#pragma GCC visibility push(default)
namespace gradflow {
namespace training {

// Options of a Saver.
struct SaverOptions {
  // The number of checkpoints to keep; 0 for all.
  int max_to_keep = 5;
  // The names of integers that are saved with the variables, as scalars of type int64.
  std::vector<std::string> counters;
};

// Thread safety: none.
class Saver {
 public:
  // Adds the nodes that save and restore the variables. Errors are reported through the scope.
  Saver(const Scope& scope, const std::vector<Output>& variables, const SaverOptions& options = {});

  // Writes the checkpoint `prefix`-`step`. If the folder's file "checkpoint" then names more than
  // max_to_keep checkpoints, removes the oldest, including checkpoints of earlier savers. Never
  // overwrites a checkpoint that the file names: if the name is taken, the new checkpoint gets a
  // suffix, as in "ckpt-1000-1". Removes temporary files that killed processes have left. REQUIRES:
  // the counters are in the order of their names in the options
  absl::Status Save(const ClientSession& session, const std::string& prefix, int64_t step,
                    const std::vector<int64_t>& counters = {});
  // Gives all variables the values of a checkpoint, and stores the counters in *counters, which may
  // be null. Changes no variable if a value is missing, damaged, or has the wrong shape.
  absl::Status Restore(const ClientSession& session, const std::string& prefix,
                       std::vector<int64_t>* counters = nullptr) const;
  // The prefixes of the checkpoints that the last call of Save kept, oldest first. Another saver
  // may have removed some of them since.
  const std::vector<std::string>& checkpoints() const { return checkpoints_; }

 private:
  SaverOptions options_;
  Output prefix_;
  std::vector<Output> counters_;
  std::vector<Output> restored_counters_;
  Operation save_;
  Operation restore_;
  std::vector<std::string> checkpoints_;
};

// Returns the prefix of the latest checkpoint in a folder, according to its file "checkpoint".
// Returns NOT_FOUND if there is no such file.
absl::StatusOr<std::string> LatestCheckpoint(const std::string& folder);

}  // namespace training
}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_TRAINING_SAVER_H_
