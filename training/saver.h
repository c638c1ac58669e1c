// Saver: writes the variables of a session to checkpoints, and reads them.
//
//   Saver saver(scope, variables);               // adds the nodes, before the session is made
//   ...
//   GRADFLOW_RETURN_IF_ERROR(saver.Save(session, "model/ckpt", step));
//   GRADFLOW_RETURN_IF_ERROR(saver.Restore(session, *LatestCheckpoint("model")));
//
// A checkpoint is written under a prefix of its own, "model/ckpt-1000", and then named in the file
// "model/checkpoint", as TensorFlow's savers do. Its files and their folder are on the disk before
// they are named. If writing fails, or the machine does, the checkpoints before it remain.
//
// Savers of several threads and processes may write to one folder. A lock of the folder orders
// them: one that saves waits for the others. Some network file systems have no such locks; there, a
// folder must have a single writer.
//
// Integers that are no variables, such as the position of an input, are saved as counters:
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
  // The number of checkpoints that are kept; 0 for all.
  int max_to_keep = 5;
  // The names of integers that are saved besides the variables, as scalars of type int64.
  std::vector<std::string> counters;
};

// Thread safety: none.
class Saver {
 public:
  // Adds the nodes that save and restore the variables. Errors are those of the scope.
  Saver(const Scope& scope, const std::vector<Output>& variables, const SaverOptions& options = {});

  // Writes the checkpoint `prefix`-`step`, and removes the oldest ones of those that the file
  // "checkpoint" of this folder names, also those of savers before this one. A checkpoint that the
  // file names is not overwritten: the name of the new one gets a suffix, "ckpt-1000-1". Removes
  // the temporary files that killed processes have left.
  // REQUIRES: the counters are in the order of their names in the options
  absl::Status Save(const ClientSession& session, const std::string& prefix, int64_t step,
                    const std::vector<int64_t>& counters = {});
  // Gives all variables the values of a checkpoint, and stores the counters in *counters, which may
  // be null. If a value is missing or damaged, or has not the shape of its variable, none changes.
  absl::Status Restore(const ClientSession& session, const std::string& prefix,
                       std::vector<int64_t>* counters = nullptr) const;
  // The prefixes of the checkpoints that were kept by the last call of Save, oldest first. Another
  // saver may have removed some since.
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

// Returns the prefix of the latest checkpoint in a folder, by its file "checkpoint". NOT_FOUND if
// there is none.
absl::StatusOr<std::string> LatestCheckpoint(const std::string& folder);

}  // namespace training
}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_TRAINING_SAVER_H_
