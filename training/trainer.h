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

// Options of a Trainer.
struct TrainerOptions {
  // ---- A step ----

  // The placeholders that are fed with the tensors of a batch, in their order.
  std::vector<Output> inputs;
  // The loss, a scalar float, and further operations that each step runs.
  Output loss;
  std::vector<Operation> targets;
  // The total number of steps, including those before a resumed checkpoint; 0 to run until the
  // input ends.
  int64_t steps = 0;
  // Called after each step with its number, from 1 on, and its loss. An error ends the run.
  std::function<absl::Status(int64_t step, float loss)> after_step;

  // ---- Progress ----

  // Takes a line such as "step 1200 of 6000, loss 0.3121, 4512 examples/s, 0:42 left", at most
  // every `progress_seconds`. The loss is the mean since the line before.
  std::function<void(const std::string& line)> progress;
  double progress_seconds = 10;

  // ---- Evaluation ----

  // Returns a metric; larger is better. Called after every `evaluate_every` steps.
  std::function<absl::StatusOr<double>(int64_t step)> evaluate;
  int64_t evaluate_every = 0;
  // Ends the run after this many evaluations in a row without a new maximum; 0 for never.
  int64_t patience = 0;

  // ---- Checkpoints ----

  // The prefix that Saver::Save() takes; empty for no checkpoints. One is written after every
  // `checkpoint_every` steps, if that is not 0, and at the end of the run.
  std::string checkpoint_prefix;
  int64_t checkpoint_every = 0;
  int max_to_keep = 5;
  // If true, SIGINT ends the run as Stop() does, and a second SIGINT ends the process.
  bool stop_on_interrupt = false;
};

// Why a run has ended.
enum class StopReason {
  // All steps have been made.
  kSteps,
  // There is no further batch.
  kEndOfInput,
  // The metric has not improved.
  kNoImprovement,
  // Stop() was called, or there was a SIGINT.
  kStopped,
};

// Thread safety: none, except for Stop().
class Trainer {
 public:
  // Adds the nodes that save and restore `variables`, if there is a prefix. Errors are those of the
  // scope. Checkpoints also store the step number, the position of the input and what its order
  // depends on, the losses since the last evaluation, and the best metric, named "trainer/...".
  Trainer(const Scope& scope, const std::vector<Output>& variables, TrainerOptions options);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Restores the latest checkpoint of the prefix's folder, and the position of `batches`. Returns
  // false if there is none. Returns INVALID_ARGUMENT, and restores nothing, if `batches` has
  // another batch size, seed or number of examples than that of the checkpoint, or orders them
  // otherwise.
  absl::StatusOr<bool> Resume(const ClientSession& session, Batches* batches);
  // Makes steps until the run ends, and returns why. May be called again. Returns
  // FAILED_PRECONDITION if a loss is not finite; no checkpoint is written then.
  absl::StatusOr<StopReason> Run(const ClientSession& session, Batches* batches);
  // Ends a run after its step. From any thread.
  void Stop() { stopped_ = true; }

  // The number of steps that have been made, and the best metric; -infinity before the first.
  int64_t step() const { return step_; }
  double best_metric() const { return best_; }
  // The mean loss of the steps since the last evaluation; during an evaluation, since the one
  // before it. A resumed run returns the same as one that was never stopped. 0 if there is no step.
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
