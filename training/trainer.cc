#include "gradflow/training/trainer.h"

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gradflow/core/status.h"
#include "gradflow/io/checkpoint.h"
#include "gradflow/training/data_parallel.h"

namespace gradflow {
namespace training {
namespace {

using Clock = std::chrono::steady_clock;

// Stores a double in a counter, which is an integer.
int64_t BitsOf(double value) {
  int64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
double FromBits(int64_t bits) {
  double value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// The counters of a checkpoint: first the trainer's, then the results of InputCounters().
enum Counter {
  kStep,
  kPosition,
  kBestMetric,
  kEvaluations,
  kLossSum,
  kLossSteps,
  kTrainerCounters
};
constexpr const char* kCounterNames[] = {"trainer/step",
                                         "trainer/input_position",
                                         "trainer/best_metric_bits",
                                         "trainer/evaluations_since_best",
                                         "trainer/loss_sum_bits",
                                         "trainer/loss_steps",
                                         "trainer/batch_size",
                                         "trainer/examples",
                                         "trainer/shuffle",
                                         "trainer/seed",
                                         "trainer/drop_remainder"};

// Returns the numbers that determine which examples are in the batch at a position.
std::vector<int64_t> InputCounters(const Batches& batches) {
  const BatchesOptions& options = batches.options();
  return {options.batch_size, batches.num_examples(), options.shuffle ? 1 : 0,
          options.shuffle ? static_cast<int64_t>(options.seed) : 0, options.drop_remainder ? 1 : 0};
}

// Returns INVALID_ARGUMENT if the checkpoint was written with other batches.
absl::Status CheckInput(const std::string& prefix, const Batches& batches) {
  GRADFLOW_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(prefix));
  const char* const* name = kCounterNames + kTrainerCounters;
  for (const int64_t found : InputCounters(batches)) {
    GRADFLOW_ASSIGN_OR_RETURN(const Tensor stored, checkpoint.Read(*name));
    const bool is_counter = stored.dtype() == DT_INT64 && stored.NumElements() == 1;
    if (!is_counter || stored.flat<int64_t>()(0) != found) {
      return errors::InvalidArgument("checkpoint '", prefix, "' is from a run with '", *name, "' ",
                                     stored.SummarizeValue(1), ", found ", found);
    }
    ++name;
  }
  return absl::OkStatus();
}

// Records SIGINT during its lifetime, if `is_wanted`.
class InterruptNote {
 public:
  explicit InterruptNote(bool is_wanted) : is_wanted_(is_wanted) {
    if (!is_wanted_) return;
    interrupted_ = 0;
    struct sigaction action = {};
    action.sa_handler = [](int) { interrupted_ = 1; };
    // The handler is reset: a second signal has its usual effect.
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
    sigaction(SIGINT, &action, &before_);
  }
  ~InterruptNote() {
    if (is_wanted_) sigaction(SIGINT, &before_, nullptr);
  }
  InterruptNote(const InterruptNote&) = delete;
  InterruptNote& operator=(const InterruptNote&) = delete;
  bool is_set() const { return is_wanted_ && interrupted_ != 0; }

 private:
  static volatile std::sig_atomic_t interrupted_;
  const bool is_wanted_;
  struct sigaction before_ = {};
};
volatile std::sig_atomic_t InterruptNote::interrupted_ = 0;

// Accumulates steps for a progress line.
class ProgressLine {
 public:
  explicit ProgressLine(const TrainerOptions& options) : options_(options) {}

  void Add(int64_t step, float loss, int64_t examples) {
    if (options_.progress == nullptr) return;
    ++steps_;
    loss_ += loss;
    examples_ += examples;
    const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    if (seconds < options_.progress_seconds && step != options_.steps) return;
    std::string line = absl::StrCat("step ", step);
    if (options_.steps > 0) absl::StrAppend(&line, " of ", options_.steps);
    absl::StrAppendFormat(&line, ", loss %.4f", loss_ / static_cast<double>(steps_));
    if (seconds > 0) {
      absl::StrAppendFormat(&line, ", %.0f examples/s", static_cast<double>(examples_) / seconds);
    }
    if (options_.steps > step) {
      const double rest =
          seconds / static_cast<double>(steps_) * static_cast<double>(options_.steps - step);
      const auto minutes = static_cast<int64_t>(rest / 60);
      absl::StrAppendFormat(&line, ", %d:%02d left", minutes,
                            static_cast<int>(rest - 60 * static_cast<double>(minutes)));
    }
    options_.progress(line);
    *this = ProgressLine(options_);
  }

  ProgressLine& operator=(ProgressLine&& other) noexcept {
    begin_ = other.begin_;
    steps_ = other.steps_;
    examples_ = other.examples_;
    loss_ = other.loss_;
    return *this;
  }

 private:
  const TrainerOptions& options_;
  Clock::time_point begin_ = Clock::now();
  int64_t steps_ = 0;
  int64_t examples_ = 0;
  double loss_ = 0;
};

// Runs a step without other ranks, and returns the loss.
absl::StatusOr<float> Step(const ClientSession& session, const TrainerOptions& options,
                           const std::vector<Tensor>& batch) {
  if (batch.size() != options.inputs.size()) {
    return errors::InvalidArgument("expected ", options.inputs.size(),
                                   " tensors of a batch for as many inputs, found ", batch.size());
  }
  ClientSession::FeedType feeds;
  for (size_t i = 0; i < batch.size(); ++i) feeds.emplace(options.inputs[i], batch[i]);
  std::vector<Tensor> outputs;
  GRADFLOW_RETURN_IF_ERROR(session.Run(feeds, {options.loss}, options.targets, &outputs));
  if (outputs[0].dims() != 0) {
    return errors::InvalidArgument("expected a scalar loss, found shape ",
                                   outputs[0].shape().DebugString());
  }
  return outputs[0].scalar<float>()();
}

}  // namespace

Trainer::Trainer(const Scope& scope, const std::vector<Output>& variables, TrainerOptions options)
    : options_(std::move(options)), best_(-std::numeric_limits<double>::infinity()) {
  if (options_.loss.node() == nullptr || options_.loss.type() != DT_FLOAT) {
    scope.UpdateStatus(errors::InvalidArgument("a trainer needs a loss of type float"));
  }
  if (options_.checkpoint_prefix.empty()) return;
  SaverOptions saver_options;
  saver_options.max_to_keep = options_.max_to_keep;
  saver_options.counters.assign(std::begin(kCounterNames), std::end(kCounterNames));
  saver_ = std::make_unique<Saver>(scope, variables, saver_options);
}

absl::StatusOr<bool> Trainer::Resume(const ClientSession& session, Batches* batches) {
  if (saver_ == nullptr) return errors::FailedPrecondition("the trainer has no checkpoint_prefix");
  const std::string folder =
      std::filesystem::path(options_.checkpoint_prefix).parent_path().string();
  const absl::StatusOr<std::string> latest = LatestCheckpoint(folder);
  if (absl::IsNotFound(latest.status())) return false;
  if (!latest.ok()) return latest.status();
  GRADFLOW_RETURN_IF_ERROR(CheckInput(*latest, *batches));
  std::vector<int64_t> counters;
  GRADFLOW_RETURN_IF_ERROR(saver_->Restore(session, *latest, &counters));
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  for (const Counter i : {kStep, kEvaluations, kLossSteps}) {
    if (counters[i] >= 0 && counters[i] < kMax) continue;
    return errors::InvalidArgument("checkpoint '", *latest, "' has '", kCounterNames[i], "' ",
                                   counters[i]);
  }
  GRADFLOW_RETURN_IF_ERROR(batches->Seek(counters[kPosition]));
  step_ = counters[kStep];
  saved_step_ = step_;
  best_ = FromBits(counters[kBestMetric]);
  evaluations_since_best_ = counters[kEvaluations];
  loss_sum_ = FromBits(counters[kLossSum]);
  loss_steps_ = counters[kLossSteps];
  return true;
}

absl::Status Trainer::Save(const ClientSession& session, const Batches& batches) {
  if (saver_ == nullptr || saved_step_ == step_) return absl::OkStatus();
  if (options_.parallel != nullptr && options_.parallel->rank() != 0) return absl::OkStatus();
  std::vector<int64_t> counters = {
      step_,      batches.position(), BitsOf(best_), evaluations_since_best_, BitsOf(loss_sum_),
      loss_steps_};
  for (const int64_t counter : InputCounters(batches)) counters.push_back(counter);
  GRADFLOW_RETURN_IF_ERROR(saver_->Save(session, options_.checkpoint_prefix, step_, counters));
  saved_step_ = step_;
  return absl::OkStatus();
}

absl::StatusOr<StopReason> Trainer::Run(const ClientSession& session, Batches* batches) {
  GRADFLOW_ASSIGN_OR_RETURN(const StopReason reason, Steps(session, batches));
  GRADFLOW_RETURN_IF_ERROR(Save(session, *batches));
  return reason;
}

absl::StatusOr<StopReason> Trainer::Steps(const ClientSession& session, Batches* batches) {
  const InterruptNote interrupt(options_.stop_on_interrupt);
  ProgressLine progress(options_);
  std::vector<Tensor> batch;
  while (options_.steps == 0 || step_ < options_.steps) {
    if (interrupt.is_set() || stopped_.exchange(false)) return StopReason::kStopped;
    // The run may have resumed from the checkpoint of a finished run.
    if (options_.patience > 0 && evaluations_since_best_ >= options_.patience) {
      return StopReason::kNoImprovement;
    }
    const absl::Status next = batches->Next(&batch);
    if (absl::IsOutOfRange(next)) return StopReason::kEndOfInput;
    GRADFLOW_RETURN_IF_ERROR(next);
    GRADFLOW_ASSIGN_OR_RETURN(const float loss,
                              options_.parallel == nullptr
                                  ? Step(session, options_, batch)
                                  : options_.parallel->Step(session, options_.inputs, batch,
                                                            options_.loss, options_.targets));
    ++step_;
    if (!std::isfinite(loss)) {
      return errors::FailedPrecondition("the loss of step ", step_, " is ", loss);
    }
    loss_sum_ += loss;
    ++loss_steps_;
    progress.Add(step_, loss, batch[0].dim_size(0));
    if (options_.after_step != nullptr) {
      GRADFLOW_RETURN_IF_ERROR(options_.after_step(step_, loss));
    }
    if (options_.evaluate != nullptr && options_.evaluate_every > 0 &&
        step_ % options_.evaluate_every == 0) {
      GRADFLOW_ASSIGN_OR_RETURN(const double metric, options_.evaluate(step_));
      const bool is_better = metric > best_;
      evaluations_since_best_ = is_better ? 0 : evaluations_since_best_ + 1;
      if (is_better) best_ = metric;
      loss_sum_ = 0;
      loss_steps_ = 0;
    }
    if (options_.checkpoint_every > 0 && step_ % options_.checkpoint_every == 0) {
      GRADFLOW_RETURN_IF_ERROR(Save(session, *batches));
    }
  }
  return StopReason::kSteps;
}

}  // namespace training
}  // namespace gradflow
