#include "gradflow/training/data_parallel.h"

#include <string>
#include <utility>

#include "gradflow/core/collectives.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/training/variables.h"

namespace gradflow {
namespace training {

DataParallel::DataParallel(const Scope& scope, const Collectives* collectives,
                           const DataParallelOptions& options)
    : scope_(scope.NewSubScope("data_parallel")), options_(options) {
  if (collectives == nullptr) return;
  rank_ = collectives->rank();
  size_ = collectives->size();
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

absl::Status DataParallel::Average(std::vector<Output>* gradients) {
  if (size_ == 1) return absl::OkStatus();
  for (Output& gradient : *gradients) {
    if (IsNoGradient(gradient)) continue;
    const Operation sum = OpBuilder(scope_, "CollectiveReduce")
                              .Input(gradient)
                              .Attr("group_size", int64_t{size_})
                              .Attr("group_key", options_.group_key)
                              .Attr("instance_key", next_instance_++)
                              .Attr("merge_op", std::string("Add"))
                              .Attr("final_op", std::string("Div"))
                              .Attr("subdiv_offsets", std::vector<int64_t>{0})
                              .Attr("timeout_seconds", options_.timeout_seconds)
                              .Finish();
    gradient = Output(sum, 0);
  }
  return scope_.status();
}

absl::Status DataParallel::Minimize(Optimizer* optimizer, const Output& loss,
                                    const std::vector<Output>& variables, Operation* train,
                                    const GradientBuildOptions& options) {
  std::vector<Output> gradients;
  GRADFLOW_RETURN_IF_ERROR(optimizer->ComputeGradients(loss, variables, &gradients, options));
  GRADFLOW_RETURN_IF_ERROR(Average(&gradients));
  return optimizer->ApplyGradients(gradients, variables, train);
}

absl::StatusOr<std::vector<Tensor>> RowsOfRank(const std::vector<Tensor>& batch, int rank,
                                               int size) {
  std::vector<Tensor> rows;
  rows.reserve(batch.size());
  for (const Tensor& tensor : batch) {
    const int64_t all = tensor.dims() == 0 ? 0 : tensor.dim_size(0);
    if (all == 0 || all % size != 0) {
      return errors::InvalidArgument("the number of rows of a batch must be a multiple of the ",
                                     size, " ranks, but the shape is ",
                                     tensor.shape().DebugString());
    }
    rows.push_back(tensor.Slice(all / size * rank, all / size * (rank + 1)));
  }
  return rows;
}

}  // namespace training
}  // namespace gradflow
