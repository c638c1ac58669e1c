#include "gradflow/training/data_parallel.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "gradflow/core/collectives.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/training/micro_batches.h"
#include "gradflow/training/variables.h"

namespace gradflow {
namespace training {

namespace {

// The instance keys of the exchanges of Step(). Nodes have positive keys.
constexpr int64_t kStepInstances = -2;

absl::StatusOr<float> LossOf(const Tensor& loss) {
  if (loss.dtype() == DT_FLOAT && loss.dims() == 0) return loss.scalar<float>()();
  return errors::InvalidArgument("expected a scalar loss of type float, found ",
                                 DataTypeString(loss.dtype()), " of shape ",
                                 loss.shape().DebugString());
}

absl::StatusOr<std::vector<Tensor>> CutRows(const std::vector<Tensor>& batch, int64_t part,
                                            int64_t parts, absl::string_view unit) {
  std::vector<Tensor> rows;
  rows.reserve(batch.size());
  for (const Tensor& tensor : batch) {
    const int64_t all = tensor.dims() == 0 ? 0 : tensor.dim_size(0);
    if (all == 0 || all % parts != 0) {
      return errors::InvalidArgument("the number of rows of a batch must be a multiple of the ",
                                     parts, " ", unit, ", but the shape is ",
                                     tensor.shape().DebugString());
    }
    rows.push_back(tensor.Slice(all / parts * part, all / parts * (part + 1)));
  }
  return rows;
}

ClientSession::FeedType FeedsOf(const std::vector<Output>& inputs,
                                const std::vector<Tensor>& batch) {
  ClientSession::FeedType feeds;
  for (size_t i = 0; i < inputs.size(); ++i) feeds.emplace(inputs[i], batch[i]);
  return feeds;
}

}  // namespace

DataParallel::DataParallel(const Scope& scope, std::shared_ptr<Collectives> collectives,
                           const DataParallelOptions& options)
    : scope_(scope.NewSubScope("data_parallel")),
      collectives_(std::move(collectives)),
      options_(options) {
  if (collectives_ != nullptr) {
    rank_ = collectives_->rank();
    size_ = collectives_->size();
  }
  if (options_.micro_batches != 0 && options_.micro_batches < size_) {
    scope_.UpdateStatus(errors::InvalidArgument("micro_batches must be 0 or at least the ", size_,
                                                " ranks, but is ", options_.micro_batches));
  }
}

Operation DataParallel::Broadcast(const std::vector<Output>& variables) {
  std::vector<Operation> assigned;
  for (const Output& variable : variables) {
    if (size_ == 1) break;
    const absl::StatusOr<VariableInfo> info = InfoOf(variable);
    if (!info.ok()) {
      scope_.UpdateStatus(info.status());
      break;
    }
    if (!info->shape.IsFullyDefined()) {
      scope_.UpdateStatus(errors::InvalidArgument("variable '", errors::Printable(info->name),
                                                  "' must have a known shape, but has ",
                                                  info->shape.DebugString()));
      break;
    }
    const bool sends = rank_ == 0;
    OpBuilder builder(scope_, sends ? "CollectiveBcastSend" : "CollectiveBcastRecv");
    if (sends) builder.Input(ReadVariable(scope_, variable));
    builder.Attr("T", info->dtype)
        .Attr("group_size", int64_t{size_})
        .Attr("group_key", options_.group_key)
        .Attr("instance_key", next_instance_++)
        .Attr("shape", info->shape)
        .Attr("timeout_seconds", options_.timeout_seconds);
    const Operation exchange = builder.Finish();
    assigned.push_back(sends ? exchange : AssignVariable(scope_, variable, Output(exchange, 0)));
  }
  return ops::NoOp(scope_.WithControlDependencies(assigned)).operation;
}

Output DataParallel::AverageOverRanks(const Scope& scope, const Output& value) {
  const Operation sum = OpBuilder(scope, "CollectiveReduce")
                            .Input(value)
                            .Attr("group_size", int64_t{size_})
                            .Attr("group_key", options_.group_key)
                            .Attr("instance_key", next_instance_++)
                            .Attr("merge_op", std::string("Add"))
                            .Attr("final_op", std::string("Div"))
                            .Attr("subdiv_offsets", std::vector<int64_t>{0})
                            .Attr("timeout_seconds", options_.timeout_seconds)
                            .Finish();
  return Output(sum, 0);
}

absl::Status DataParallel::Average(std::vector<Output>* gradients) {
  if (options_.micro_batches != 0) {
    return errors::FailedPrecondition("Average() has no effect on micro-batches: use Minimize()");
  }
  if (size_ == 1) return absl::OkStatus();
  for (Output& gradient : *gradients) {
    if (!IsNoGradient(gradient)) gradient = AverageOverRanks(scope_, gradient);
  }
  return scope_.status();
}

DataParallel::Averaged DataParallel::AddAveraged(const Output& value,
                                                 const PartialTensorShape& shape) {
  return {value, ops::Placeholder(scope_, DT_FLOAT, ops::Placeholder::Shape(shape))};
}

absl::Status DataParallel::Minimize(Optimizer* optimizer, const Output& loss,
                                    const std::vector<Output>& variables, Operation* train,
                                    const GradientBuildOptions& options) {
  std::vector<Output> gradients;
  GRADFLOW_RETURN_IF_ERROR(optimizer->ComputeGradients(loss, variables, &gradients, options));
  if (options_.micro_batches == 0) {
    GRADFLOW_RETURN_IF_ERROR(Average(&gradients));
    GRADFLOW_RETURN_IF_ERROR(optimizer->ApplyGradients(gradients, variables, train));
    minimized_ = {loss.op(), *train};
    return absl::OkStatus();
  }
  if (!gradients_.empty()) {
    return errors::FailedPrecondition("Minimize() was called before, and there are micro-batches");
  }
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (IsNoGradient(gradients[i])) continue;
    if (gradients[i].type() != DT_FLOAT) {
      return errors::InvalidArgument("micro-batches need gradients of type float, but variable ", i,
                                     " has ", DataTypeString(gradients[i].type()));
    }
    GRADFLOW_ASSIGN_OR_RETURN(const VariableInfo info, InfoOf(variables[i]));
    gradients_.push_back(AddAveraged(gradients[i], info.shape));
    gradients[i] = gradients_.back().average;
  }
  return optimizer->ApplyGradients(gradients, variables, train);
}

Operation DataParallel::Update(const std::vector<Output>& variables,
                               const std::vector<Operation>& updates) {
  const bool in_micro_batches = options_.micro_batches != 0;
  std::vector<Operation> before = updates;
  before.insert(before.end(), minimized_.begin(), minimized_.end());
  const Scope after = scope_.WithControlDependencies(before);
  if (!in_micro_batches && size_ == 1) return ops::NoOp(after).operation;
  if (in_micro_batches) updates_.insert(updates_.end(), updates.begin(), updates.end());
  std::vector<Operation> assigned;
  for (const Output& variable : variables) {
    const absl::StatusOr<VariableInfo> info = InfoOf(variable);
    absl::Status status = info.status();
    if (status.ok() && info->dtype != DT_FLOAT) {
      status = errors::InvalidArgument("variable '", errors::Printable(info->name),
                                       "' must be float to be averaged, but is ",
                                       DataTypeString(info->dtype));
    }
    if (!status.ok()) {
      scope_.UpdateStatus(status);
      break;
    }
    if (in_micro_batches) {
      const Output old_value =
          ops::Placeholder(scope_, DT_FLOAT, ops::Placeholder::Shape(info->shape));
      restored_.push_back({variable, old_value, AssignVariable(scope_, variable, old_value)});
      states_.push_back(AddAveraged(ReadVariable(scope_, variable), info->shape));
      assigned.push_back(AssignVariable(scope_, variable, states_.back().average));
    } else {
      const Output average = AverageOverRanks(after, ReadVariable(after, variable));
      assigned.push_back(AssignVariable(scope_, variable, average));
    }
  }
  return ops::NoOp((in_micro_batches ? scope_ : after).WithControlDependencies(assigned)).operation;
}

absl::Status DataParallel::RunMicroBatch(const ClientSession& session,
                                         const std::vector<Output>& inputs,
                                         const std::vector<Tensor>& batch, const Output& loss,
                                         int64_t i, const std::vector<Tensor>& old_state,
                                         Flat* flat, std::vector<TensorShape>* shapes) const {
  // Each micro-batch updates the old state.
  if (!restored_.empty()) {
    ClientSession::FeedType feeds;
    std::vector<Operation> targets;
    for (size_t k = 0; k < restored_.size(); ++k) {
      feeds.emplace(restored_[k].old_value, old_state[k]);
      targets.push_back(restored_[k].restore);
    }
    GRADFLOW_RETURN_IF_ERROR(session.Run(feeds, {}, targets, nullptr));
  }
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<Tensor> rows,
                            CutRows(batch, i, options_.micro_batches, "micro-batches"));
  std::vector<Output> fetches;
  for (const Averaged& gradient : gradients_) fetches.push_back(gradient.value);
  fetches.push_back(loss);
  std::vector<Tensor> values;
  GRADFLOW_RETURN_IF_ERROR(session.Run(FeedsOf(inputs, rows), fetches, updates_, &values));
  GRADFLOW_ASSIGN_OR_RETURN(const float loss_value, LossOf(values.back()));
  values.pop_back();
  if (!states_.empty()) {
    std::vector<Output> reads;
    for (const Averaged& state : states_) reads.push_back(state.value);
    std::vector<Tensor> states;
    GRADFLOW_RETURN_IF_ERROR(session.Run(reads, &states));
    values.insert(values.end(), states.begin(), states.end());
  }
  shapes->clear();
  for (const Tensor& value : values) {
    shapes->push_back(value.shape());
    const auto numbers = value.span<float>();
    flat->insert(flat->end(), numbers.begin(), numbers.end());
  }
  flat->push_back(loss_value);
  return absl::OkStatus();
}

absl::StatusOr<float> DataParallel::StepInMicroBatches(
    const ClientSession& session, const std::vector<Output>& inputs,
    const std::vector<Tensor>& batch, const Output& loss,
    const std::vector<Operation>& targets) const {
  if (gradients_.empty()) {
    return errors::FailedPrecondition("micro-batches need gradients: call Minimize() first");
  }
  std::vector<Tensor> old_state;
  if (!states_.empty()) {
    std::vector<Output> reads;
    for (const Averaged& state : states_) reads.push_back(state.value);
    GRADFLOW_RETURN_IF_ERROR(session.Run(reads, &old_state));
  }
  SumExchange exchange;
  exchange.collectives = collectives_.get();
  exchange.group_key = options_.group_key;
  exchange.instance_key = kStepInstances;
  exchange.timeout = std::chrono::milliseconds(
      static_cast<int64_t>(std::ceil(1000.0 * static_cast<double>(options_.timeout_seconds))));
  std::vector<TensorShape> shapes;
  GRADFLOW_ASSIGN_OR_RETURN(
      const Flat averages,
      AverageOf(options_.micro_batches, exchange, [&](int64_t i) -> absl::StatusOr<Flat> {
        Flat flat;
        GRADFLOW_RETURN_IF_ERROR(
            RunMicroBatch(session, inputs, batch, loss, i, old_state, &flat, &shapes));
        return flat;
      }));
  ClientSession::FeedType feeds;
  const float* next = averages.data();
  for (size_t i = 0; i < shapes.size(); ++i) {
    Tensor value(DT_FLOAT, shapes[i]);
    if (value.NumElements() > 0) std::memcpy(value.raw_data(), next, value.TotalBytes());
    next += value.NumElements();
    const bool is_gradient = i < gradients_.size();
    feeds.emplace((is_gradient ? gradients_[i] : states_[i - gradients_.size()]).average, value);
  }
  GRADFLOW_RETURN_IF_ERROR(session.Run(feeds, {}, targets, nullptr));
  return *next;
}

absl::StatusOr<float> DataParallel::Step(const ClientSession& session,
                                         const std::vector<Output>& inputs,
                                         const std::vector<Tensor>& batch, const Output& loss,
                                         const std::vector<Operation>& targets) const {
  if (inputs.size() != batch.size()) {
    return errors::InvalidArgument("expected ", inputs.size(), " tensors of a batch for as many ",
                                   "inputs, found ", batch.size());
  }
  if (options_.micro_batches != 0) {
    return StepInMicroBatches(session, inputs, batch, loss, targets);
  }
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<Tensor> rows, RowsOfRank(batch, rank_, size_));
  std::vector<Tensor> outputs;
  GRADFLOW_RETURN_IF_ERROR(session.Run(FeedsOf(inputs, rows), {loss}, targets, &outputs));
  return LossOf(outputs[0]);
}

absl::StatusOr<std::vector<Tensor>> RowsOfRank(const std::vector<Tensor>& batch, int rank,
                                               int size) {
  return CutRows(batch, rank, size, "ranks");
}

}  // namespace training
}  // namespace gradflow
