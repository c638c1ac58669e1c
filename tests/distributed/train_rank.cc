#include "tests/distributed/train_rank.h"

#include <algorithm>

#include "gradflow/core/status.h"
#include "gradflow/graph/scope.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/runtime/session/options.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/tensors.h"
#include "gradflow/training/data_parallel.h"
#include "gradflow/training/input.h"
#include "gradflow/training/layers.h"
#include "gradflow/training/losses.h"
#include "gradflow/training/optimizer.h"
#include "gradflow/training/trainer.h"
#include "gradflow/training/variables.h"

namespace gradflow::training {

namespace {

constexpr int64_t kBatch = 48;
constexpr int64_t kFeatures = 5;
constexpr int64_t kClasses = 3;

}  // namespace

absl::StatusOr<std::vector<Tensor>> TrainRank(const std::shared_ptr<Collectives>& collectives,
                                              const RankOptions& rank_options) {
  const Scope scope = Scope::NewRootScope();
  const int rank = collectives == nullptr ? 0 : collectives->rank();
  Model model(scope, /*seed=*/rank);
  const Output x = ops::Placeholder(scope, DT_FLOAT, ops::Placeholder::Shape({-1, kFeatures}));
  const Output labels = ops::Placeholder(scope, DT_INT32, ops::Placeholder::Shape({-1}));
  Output hidden = Dense(scope, &model, "hidden", x, 7);
  if (rank_options.has_statistics) {
    hidden = ops::Relu(scope, BatchNorm(scope, &model, "norm", hidden));
    hidden = FakeQuant(scope, &model, "range", hidden, FakeQuantOptions().Nonnegative(true));
  }
  const Output loss =
      SoftmaxCrossEntropy(scope, Dense(scope, &model, "logits", hidden, kClasses), labels);
  DataParallelOptions parallel_options;
  parallel_options.micro_batches = rank_options.micro_batches;
  DataParallel parallel(scope, collectives, parallel_options);
  Momentum optimizer(scope, MomentumOptions().LearningRate(0.1f));
  Operation train;
  GRADFLOW_RETURN_IF_ERROR(parallel.Minimize(&optimizer, loss, model.trainable(), &train));
  std::vector<Output> statistics;
  for (const Output& variable : model.variables()) {
    const bool is_trainable =
        std::any_of(model.trainable().begin(), model.trainable().end(),
                    [&](const Output& other) { return other.name() == variable.name(); });
    if (!is_trainable) statistics.push_back(variable);
  }
  const Operation update = parallel.Update(statistics, model.updates());
  std::vector<Operation> initializers = model.initializers();
  initializers.insert(initializers.end(), optimizer.initializers().begin(),
                      optimizer.initializers().end());
  std::vector<Output> variables = model.variables();
  variables.insert(variables.end(), optimizer.slots().begin(), optimizer.slots().end());
  const Operation broadcast = parallel.Broadcast(variables);

  TrainerOptions options;
  options.inputs = {x, labels};
  options.loss = loss;
  options.targets = {train, update};
  options.steps = rank_options.steps;
  options.checkpoint_prefix = rank_options.prefix;
  options.checkpoint_every = rank_options.prefix.empty() ? 0 : 2;
  options.parallel = &parallel;
  options.after_step = rank_options.after_step;
  Trainer trainer(scope, variables, options);
  std::vector<Output> reads;
  for (const Output& variable : variables) reads.push_back(ReadVariable(scope, variable));
  GRADFLOW_RETURN_IF_ERROR(scope.status());

  BatchesOptions batches_options;
  batches_options.batch_size = kBatch;
  batches_options.seed = 3;
  Tensor classes(DT_INT32, {4 * kBatch});
  for (int64_t i = 0; i < 4 * kBatch; ++i) {
    classes.span<int32_t>()[i] = static_cast<int32_t>(i * i % kClasses);
  }
  GRADFLOW_ASSIGN_OR_RETURN(
      const std::unique_ptr<Batches> batches,
      Batches::Make({testing::RandomTensor(DT_FLOAT, {4 * kBatch, kFeatures}, -1, 1, 1), classes},
                    batches_options));
  SessionOptions session_options;
  session_options.collectives = collectives;
  session_options.config.set_intra_op_parallelism_threads(1 + rank % 2);
  const ClientSession session(scope, session_options);
  bool resumed = false;
  if (!rank_options.prefix.empty()) {
    GRADFLOW_ASSIGN_OR_RETURN(resumed, trainer.Resume(session, batches.get()));
  }
  if (!resumed) GRADFLOW_RETURN_IF_ERROR(session.Run({}, {}, initializers, nullptr));
  GRADFLOW_RETURN_IF_ERROR(session.Run({}, {}, {broadcast}, nullptr));
  GRADFLOW_RETURN_IF_ERROR(trainer.Run(session, batches.get()).status());
  std::vector<Tensor> outputs;
  GRADFLOW_RETURN_IF_ERROR(session.Run(reads, &outputs));
  return outputs;
}

}  // namespace gradflow::training
