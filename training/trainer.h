// Trainer: a training loop with optional checkpoints, evaluations and progress lines:
//
//   TrainerOptions options;
//   options.inputs = {images, labels};        // fed with the tensors of a batch
//   options.loss = loss;
//   options.targets = {train};
//   options.steps = 6000;
//   options.checkpoint_prefix = "model/ckpt";
//   options.checkpoint_every = 600;
//   options.progress = [](const std::string& line) { std::cout << line << std::endl; };
//   Trainer trainer(scope, variables, options);   // adds nodes, before the session is made
//   ...
//   GRADFLOW_ASSIGN_OR_RETURN(const bool resumed, trainer.Resume(session, batches.get()));
//   if (!resumed) session.Run({}, {}, initializers, nullptr);
//   GRADFLOW_ASSIGN_OR_RETURN(const StopReason reason, trainer.Run(session, batches.get()));
//
// A run resumed from a checkpoint computes the same bits as an uninterrupted run, provided that the
// steps change no state other than `variables`.
#ifndef GRADFLOW_TRAINING_TRAINER_H_
#define GRADFLOW_TRAINING_TRAINER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/training/input.h"
#include "gradflow/training/saver.h"

#pragma GCC visibility push(default)
namespace gradflow {
namespace training {

class DataParallel;

// Options of a Trainer.
struct TrainerOptions {
  // ---- A step ----

  // The placeholders that are fed with the tensors of a batch, in this order.
  std::vector<Output> inputs;
  // The loss, a scalar float, and other operations that each step runs.
  Output loss;
  std::vector<Operation> targets;
  // The total number of steps, including the steps before a resumed checkpoint; 0 to run until the
  // input ends.
  int64_t steps = 0;
  // Called after each step with the loss and the number of the step, from 1. An error ends the run.
  std::function<absl::Status(int64_t step, float loss)> after_step;

  // ---- Progress ----

  // Receives a line such as "step 1200 of 6000, loss 0.3121, 4512 examples/s, 0:42 left": at most
  // once every `progress_seconds`, and after the last step. The loss is the mean since the previous
  // line.
  std::function<void(const std::string& line)> progress;
  double progress_seconds = 10;

  // ---- Evaluation ----

  // Returns a metric; larger is better. Called every `evaluate_every` steps, or never if that is 0.
  std::function<absl::StatusOr<double>(int64_t step)> evaluate;
  int64_t evaluate_every = 0;
  // Ends the run after this many consecutive evaluations without a new maximum; 0 for never.
  int64_t patience = 0;

  // ---- Checkpoints ----

  // The prefix for Saver::Save(); empty for no checkpoints. A checkpoint is written every
  // `checkpoint_every` steps, unless that is 0, and at the end of the run.
  std::string checkpoint_prefix;
  int64_t checkpoint_every = 0;
  // The number of checkpoints to keep; 0 for all.
  int max_to_keep = 5;

  // ---- Several ranks ----

  // The ranks that share the training; null for one rank. Must live as long as the trainer. Each
  // rank makes the same batches and is fed its rows of them. Only rank 0 writes checkpoints. All
  // ranks resume from the same folder.
  const DataParallel* parallel = nullptr;

  // ---- Interruption ----

  // If true, SIGINT ends the run as Stop() does, and a second SIGINT ends the process.
  bool stop_on_interrupt = false;
};

// The reason why a run ended.
enum class StopReason {
  // All steps have been run.
  kSteps,
  // The input has no more batches.
  kEndOfInput,
  // The metric has not improved in the last `patience` evaluations.
  kNoImprovement,
  // Stop() was called, or the process received a SIGINT.
  kStopped,
};

// Thread safety: none, except for Stop().
class Trainer {
 public:
  // Adds the nodes that save and restore `variables`, if `checkpoint_prefix` is not empty. Errors
  // are reported through the scope. Checkpoints also store the step number, the input's position
  // and the options that determine its order, the losses since the last evaluation, and the best
  // metric. The names of these values begin with "trainer/".
  Trainer(const Scope& scope, const std::vector<Output>& variables, TrainerOptions options);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Restores the latest checkpoint in the folder of `checkpoint_prefix`, and the position of
  // `batches`. Returns false if there is no checkpoint, and FAILED_PRECONDITION if the prefix is
  // empty. Returns INVALID_ARGUMENT and restores nothing if the checkpoint is from batches with
  // another batch size, seed, order or number of examples.
  absl::StatusOr<bool> Resume(const ClientSession& session, Batches* batches);
  // Runs steps until the training ends, and returns why it ended. May be called again. If a loss is
  // not finite, returns FAILED_PRECONDITION and writes no checkpoint of that step.
  absl::StatusOr<StopReason> Run(const ClientSession& session, Batches* batches);
  // Ends a run after the current step. May be called from any thread.
  void Stop() { stopped_ = true; }

  // The number of steps so far, and the best metric; -infinity before the first evaluation.
  int64_t step() const { return step_; }
  double best_metric() const { return best_; }
  // The mean loss of the steps since the last evaluation; during an evaluation, since the previous
  // evaluation. A resumed run returns the same value as an uninterrupted run. 0 if there are no
  // steps.
  double mean_loss() const {
    return loss_steps_ == 0 ? 0 : loss_sum_ / static_cast<double>(loss_steps_);
  }

 private:
  absl::StatusOr<StopReason> Steps(const ClientSession& session, Batches* batches);
  absl::Status Save(const ClientSession& session, const Batches& batches);

  const TrainerOptions options_;
  std::unique_ptr<Saver> saver_;
  std::atomic<bool> stopped_{false};
  int64_t step_ = 0;
  int64_t saved_step_ = -1;
  double best_;
  int64_t evaluations_since_best_ = 0;
  double loss_sum_ = 0;
  int64_t loss_steps_ = 0;
};

}  // namespace training
}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_TRAINING_TRAINER_H_
