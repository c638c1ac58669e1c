// Tests of the training loop: when it ends, progress lines, evaluations and checkpoints.
#include "gradflow/training/trainer.h"

#include <csignal>
#include <filesystem>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "gradflow/io/checkpoint.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/session/options.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"
#include "gradflow/training/layers.h"
#include "gradflow/training/losses.h"
#include "gradflow/training/optimizer.h"
#include "gradflow/training/variables.h"
#include "tests/testing/folder_fixture.h"
#include "tests/testing/subprocess.h"

namespace gradflow {
namespace training {
namespace {

using ::gradflow::testing::FolderFixture;
using ::gradflow::testing::RandomTensor;
using ::gradflow::testing::ReadFile;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::TensorEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// Fits a line to 100 noisy points, in batches of 10.
struct Regression {
  explicit Regression(TrainerOptions options = {}, int threads = 2, int64_t epochs = 0) {
    const Output x = ops::Placeholder(scope, DT_FLOAT, ops::Placeholder::Shape({-1, 3}));
    const Output y = ops::Placeholder(scope, DT_FLOAT, ops::Placeholder::Shape({-1, 1}));
    Output h = BatchNorm(scope, &model, "n", Dense(scope, &model, "a", x, 8));
    h = FakeQuant(scope, &model, "q", h);
    loss = MeanSquaredError(scope, Dense(scope, &model, "b", ops::Tanh(scope, h), 1), y);
    Adam adam(scope, AdamOptions().LearningRate(0.02f));
    Operation train;
    GRADFLOW_EXPECT_OK(adam.Minimize(loss, model.trainable(), &train));
    options.inputs = {x, y};
    options.loss = loss;
    options.targets = model.updates();
    options.targets.push_back(train);
    variables = model.variables();
    variables.insert(variables.end(), adam.slots().begin(), adam.slots().end());
    trainer = std::make_unique<Trainer>(scope, variables, options);
    GRADFLOW_EXPECT_OK(scope.status());

    const Tensor points = RandomTensor(DT_FLOAT, {100, 3}, -1, 1);
    Tensor values(DT_FLOAT, {100, 1});
    for (int i = 0; i < 100; ++i) {
      values.matrix<float>()(i, 0) = points.matrix<float>()(i, 0) - points.matrix<float>()(i, 1);
    }
    BatchesOptions batches_options;
    batches_options.batch_size = 10;
    batches_options.epochs = epochs;
    batches = *Batches::Make({points, values}, batches_options);
    SessionOptions session_options;
    session_options.config.set_intra_op_parallelism_threads(threads);
    session = std::make_unique<ClientSession>(scope, session_options);
    GRADFLOW_EXPECT_OK(session->Run({}, {}, model.initializers(), nullptr));
    GRADFLOW_EXPECT_OK(session->Run({}, {}, adam.initializers(), nullptr));
  }
  absl::StatusOr<StopReason> Run() { return trainer->Run(*session, batches.get()); }
  StopReason Ended() {
    const absl::StatusOr<StopReason> reason = Run();
    GRADFLOW_EXPECT_OK(reason.status());
    return reason.value_or(StopReason::kStopped);
  }
  bool Resumed() {
    const absl::StatusOr<bool> resumed = trainer->Resume(*session, batches.get());
    GRADFLOW_EXPECT_OK(resumed.status());
    return resumed.value_or(false);
  }
  // Returns the bytes of all variables.
  std::string State() {
    std::vector<Output> reads;
    for (const Output& variable : variables) reads.push_back(ReadVariable(scope, variable));
    std::vector<Tensor> outputs;
    GRADFLOW_EXPECT_OK(session->Run(reads, &outputs));
    std::string bytes;
    for (const Tensor& value : outputs) absl::StrAppend(&bytes, value.tensor_data());
    return bytes;
  }

  Scope scope = Scope::NewRootScope();
  Model model{scope};
  Output loss;
  std::vector<Output> variables;
  std::unique_ptr<Trainer> trainer;
  std::unique_ptr<Batches> batches;
  std::unique_ptr<ClientSession> session;
};

class TrainerTest : public FolderFixture {};

TEST_F(TrainerTest, EndsAfterItsSteps) {
  std::vector<float> losses;
  std::vector<std::string> lines;
  TrainerOptions options;
  options.steps = 300;
  options.progress_seconds = 0;
  options.progress = [&](const std::string& line) { lines.push_back(line); };
  options.after_step = [&](int64_t step, float loss) {
    losses.push_back(loss);
    EXPECT_EQ(step, static_cast<int64_t>(losses.size()));
    return absl::OkStatus();
  };
  Regression r(options);
  EXPECT_EQ(r.Ended(), StopReason::kSteps);
  EXPECT_EQ(r.trainer->step(), 300);
  EXPECT_EQ(r.batches->position(), 300);
  ASSERT_EQ(losses.size(), 300);
  const auto mean = [&](int begin) {
    return std::accumulate(losses.begin() + begin, losses.begin() + begin + 50, 0.0) / 50;
  };
  EXPECT_LT(mean(250), mean(0) / 3);
  ASSERT_EQ(lines.size(), 300);
  EXPECT_THAT(lines[0], MatchesRegex("step 1 of 300, loss [0-9.]+, [0-9]+ examples/s, "
                                     "[0-9]+:[0-9][0-9] left"));
  EXPECT_THAT(lines.back(), MatchesRegex("step 300 of 300, loss [0-9.]+, [0-9]+ examples/s"));
  // All steps are done.
  EXPECT_EQ(r.Ended(), StopReason::kSteps);
  EXPECT_EQ(losses.size(), 300);
}

TEST_F(TrainerTest, EndsWithTheInputAndWhenStopped) {
  Regression input({}, 2, 3);
  EXPECT_EQ(input.Ended(), StopReason::kEndOfInput);
  EXPECT_EQ(input.trainer->step(), 30);

  Trainer* trainer = nullptr;
  TrainerOptions options;
  options.after_step = [&](int64_t step, float) {
    if (step % 5 == 0) trainer->Stop();
    return step == 12 ? absl::CancelledError("enough") : absl::OkStatus();
  };
  Regression stopped(options);
  trainer = stopped.trainer.get();
  EXPECT_EQ(stopped.Ended(), StopReason::kStopped);
  EXPECT_EQ(stopped.trainer->step(), 5);
  EXPECT_EQ(stopped.Ended(), StopReason::kStopped);
  EXPECT_EQ(stopped.trainer->step(), 10);
  EXPECT_THAT(stopped.Run(), StatusIs(absl::StatusCode::kCancelled, HasSubstr("enough")));
}

TEST_F(TrainerTest, AnInterruptWritesACheckpoint) {
  TrainerOptions options;
  options.checkpoint_prefix = File("ckpt");
  options.stop_on_interrupt = true;
  options.after_step = [](int64_t step, float) {
    if (step == 7) std::raise(SIGINT);
    return absl::OkStatus();
  };
  struct sigaction before = {};
  sigaction(SIGINT, nullptr, &before);
  Regression r(options);
  EXPECT_EQ(r.Ended(), StopReason::kStopped);
  EXPECT_EQ(r.trainer->step(), 7);
  EXPECT_EQ(*LatestCheckpoint(folder()), File("ckpt-7"));
  struct sigaction after = {};
  sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
}

TEST_F(TrainerTest, EndsWithoutImprovement) {
  std::vector<int64_t> evaluated;
  TrainerOptions options;
  options.checkpoint_prefix = File("ckpt");
  options.evaluate_every = 2;
  options.patience = 3;
  options.evaluate = [&](int64_t step) -> absl::StatusOr<double> {
    evaluated.push_back(step);
    return step <= 6 ? static_cast<double>(step) : 6.0;
  };
  {
    Regression r(options);
    EXPECT_EQ(r.trainer->best_metric(), -std::numeric_limits<double>::infinity());
    EXPECT_EQ(r.Ended(), StopReason::kNoImprovement);
    EXPECT_THAT(evaluated, ElementsAre(2, 4, 6, 8, 10, 12));
    EXPECT_EQ(r.trainer->best_metric(), 6);
  }
  // The next process also stops.
  Regression resumed(options);
  EXPECT_TRUE(resumed.Resumed());
  EXPECT_EQ(resumed.trainer->best_metric(), 6);
  EXPECT_EQ(resumed.Ended(), StopReason::kNoImprovement);
  EXPECT_EQ(resumed.trainer->step(), 12);

  options.evaluate = [](int64_t) -> absl::StatusOr<double> { return absl::AbortedError("no"); };
  options.checkpoint_prefix.clear();
  EXPECT_THAT(Regression(options).Run(), StatusIs(absl::StatusCode::kAborted));
}

// Variables have the same bits on any number of threads, and after any number of stops.
TEST_F(TrainerTest, ContinuesWithTheSameBits) {
  TrainerOptions options;
  options.steps = 47;
  Regression whole(options, 1);
  EXPECT_EQ(whole.Ended(), StopReason::kSteps);
  const std::string expected = whole.State();
  for (const int threads : {2, 8}) {
    Regression other(options, threads);
    EXPECT_EQ(other.Ended(), StopReason::kSteps);
    EXPECT_EQ(other.State(), expected);
  }
  options.checkpoint_prefix = File("ckpt");
  options.checkpoint_every = 10;
  // The run dies in step 25 and in step 38.
  int64_t last = 25;
  options.after_step = [&](int64_t step, float) {
    return step < last ? absl::OkStatus() : absl::AbortedError("died");
  };
  for (const int threads : {2, 1, 8}) {
    Regression part(options, threads);
    EXPECT_EQ(part.Resumed(), last != 25);
    EXPECT_EQ(part.trainer->step(), last == 25 ? 0 : last == 38 ? 20 : 30);
    EXPECT_EQ(part.batches->position(), part.trainer->step());
    const absl::Status status = part.Run().status();
    if (last == 1000) {
      GRADFLOW_EXPECT_OK(status);
      EXPECT_EQ(part.State(), expected);
    } else {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kAborted));
    }
    last = last == 25 ? 38 : 1000;
  }
  EXPECT_EQ(*LatestCheckpoint(folder()), File("ckpt-47"));
}

// The mean loss of a period does not depend on stops within the period.
TEST_F(TrainerTest, ContinuesMeans) {
  const Trainer* trainer = nullptr;
  std::vector<double> means;
  TrainerOptions options;
  options.steps = 40;
  options.evaluate_every = 20;
  options.evaluate = [&](int64_t) -> absl::StatusOr<double> {
    means.push_back(trainer->mean_loss());
    return 0.0;
  };
  std::vector<float> losses;
  options.after_step = [&](int64_t, float loss) {
    losses.push_back(loss);
    return absl::OkStatus();
  };
  Regression whole(options);
  trainer = whole.trainer.get();
  EXPECT_EQ(trainer->mean_loss(), 0);
  EXPECT_EQ(whole.Ended(), StopReason::kSteps);
  EXPECT_EQ(trainer->mean_loss(), 0);
  ASSERT_EQ(means.size(), 2);
  EXPECT_NEAR(means[1], std::accumulate(losses.begin() + 20, losses.end(), 0.0) / 20, 1e-9);
  const std::vector<double> expected = std::move(means);
  means.clear();
  options.checkpoint_prefix = File("ckpt");
  options.checkpoint_every = 5;
  for (const int64_t last : {int64_t{28}, int64_t{1000}}) {
    options.after_step = [last](int64_t step, float) {
      return step < last ? absl::OkStatus() : absl::AbortedError("died");
    };
    Regression part(options);
    trainer = part.trainer.get();
    EXPECT_EQ(part.Resumed(), last == 1000);
    EXPECT_EQ(part.Run().ok(), last == 1000);
  }
  EXPECT_EQ(means, expected);
}

// If the order differs, the saved position belongs to other examples.
TEST_F(TrainerTest, ResumesWithTheSameBatchesOnly) {
  TrainerOptions options;
  options.checkpoint_prefix = File("ckpt");
  options.steps = 3;
  {
    Regression r(options);
    EXPECT_EQ(r.Ended(), StopReason::kSteps);
  }
  options.steps = 6;
  Regression r(options);
  const std::string before = r.State();
  const auto resume = [&](int64_t examples, const BatchesOptions& batches_options) {
    const auto batches = *Batches::Make(
        {Tensor(DT_FLOAT, {examples, 3}), Tensor(DT_FLOAT, {examples, 1})}, batches_options);
    return r.trainer->Resume(*r.session, batches.get()).status();
  };
  BatchesOptions same;
  same.batch_size = 10;
  BatchesOptions other = same;
  other.batch_size = 20;
  EXPECT_THAT(resume(100, other),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("ckpt-3' is from a run with 'trainer/batch_size' 10, found "
                                 "20")));
  other = same;
  other.seed = 7;
  EXPECT_THAT(resume(100, other),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'trainer/seed' 0, found 7")));
  other = same;
  other.shuffle = false;
  EXPECT_THAT(resume(100, other), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("'trainer/shuffle' 1, found 0")));
  other = same;
  other.drop_remainder = false;
  EXPECT_THAT(resume(100, other), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("'trainer/drop_remainder' 1, found 0")));
  EXPECT_THAT(resume(110, same), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr("'trainer/examples' 100, found 110")));
  EXPECT_EQ(r.State(), before);
  EXPECT_EQ(r.trainer->step(), 0);
  // The number of epochs and the prefetching do not change batches.
  other = same;
  other.epochs = 9;
  other.prefetch = 0;
  GRADFLOW_EXPECT_OK(resume(100, other));
  EXPECT_EQ(r.trainer->step(), 3);
}

TEST_F(TrainerTest, ReportsErrors) {
  Regression none;
  EXPECT_THAT(none.trainer->Resume(*none.session, none.batches.get()).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no checkpoint_prefix")));

  TrainerOptions options;
  options.checkpoint_prefix = File("ckpt");
  Regression r(options);
  EXPECT_FALSE(r.Resumed());
  ::gradflow::testing::WriteFile(File("checkpoint"), "damaged");
  EXPECT_THAT(r.trainer->Resume(*r.session, r.batches.get()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("names no checkpoint")));
  // The batch has another number of tensors.
  const auto other = *Batches::Make({Tensor(DT_FLOAT, {9})}, {1});
  EXPECT_THAT(r.trainer->Run(*r.session, other.get()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("expected 2 tensors of a batch for as many inputs, found 1")));
  // A loss that is not finite writes no checkpoint.
  Tensor nans(DT_FLOAT, {10, 1});
  for (float& value : nans.span<float>()) value = std::numeric_limits<float>::quiet_NaN();
  const auto bad = *Batches::Make({RandomTensor(DT_FLOAT, {10, 3}, 0, 1), nans}, {10});
  EXPECT_THAT(r.trainer->Run(*r.session, bad.get()).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("loss of step 1 is nan")));
  EXPECT_FALSE(std::filesystem::exists(File("ckpt-1.index")));

  const Scope scope = Scope::NewRootScope();
  const Trainer wrong(scope, {}, {});
  EXPECT_THAT(scope.status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr("a trainer needs a loss of type float")));
}

}  // namespace
}  // namespace training
}  // namespace gradflow
