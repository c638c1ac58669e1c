#include "gradflow/training/optimizer.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/const_op.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/ops/array_ops.h"
#include "gradflow/ops/math_ops.h"
#include "gradflow/ops/nn_ops.h"
#include "gradflow/ops/no_op.h"

namespace gradflow {
namespace training {
namespace {

// Returns a scope whose ops run after `operations`.
Scope After(const Scope& scope, const std::vector<Operation>& operations) {
  return scope.WithControlDependencies(operations);
}

SparseGradient AsDense(const Output& gradient) {
  SparseGradient dense;
  dense.dense = gradient;
  return dense;
}

Output AsType(const Scope& scope, const Output& value, DataType dtype) {
  return value.type() == dtype ? value : Output(ops::Cast(scope, value, dtype));
}

bool IsEmpty(const SparseGradient& gradient) {
  return !gradient.is_sparse && IsNoGradient(gradient.dense);
}

// Returns slices that hold each index once, with the sum of all its rows.
IndexedSlices SumRows(const Scope& scope, const IndexedSlices& slices) {
  const auto unique = ops::Unique(scope, slices.indices);
  IndexedSlices sums = slices;
  sums.indices = unique.y;
  sums.values =
      ops::UnsortedSegmentSum(scope, slices.values, unique.idx, ops::Size(scope, Output(unique.y)));
  return sums;
}

}  // namespace

absl::Status Optimizer::ComputeGradients(const Output& loss, const std::vector<Output>& variables,
                                         std::vector<Output>* gradients,
                                         const GradientBuildOptions& options) {
  GRADFLOW_RETURN_IF_ERROR(
      internal::CheckOut(gradients, "Optimizer::ComputeGradients", "gradients"));
  for (const Output& variable : variables) GRADFLOW_RETURN_IF_ERROR(InfoOf(variable).status());
  return AddSymbolicGradients(scope_, {loss}, variables, gradients, options);
}

absl::Status Optimizer::ComputeGradients(const Output& loss, const std::vector<Output>& variables,
                                         std::vector<SparseGradient>* gradients,
                                         const GradientBuildOptions& options) {
  GRADFLOW_RETURN_IF_ERROR(
      internal::CheckOut(gradients, "Optimizer::ComputeGradients", "gradients"));
  for (const Output& variable : variables) GRADFLOW_RETURN_IF_ERROR(InfoOf(variable).status());
  const Output ones = ops::OnesLike(scope_, loss);
  GRADFLOW_RETURN_IF_ERROR(scope_.status());
  return AddSparseSymbolicGradients(scope_, {loss}, variables, {ones}, gradients, options);
}

absl::Status Optimizer::ApplyGradients(const std::vector<Output>& gradients,
                                       const std::vector<Output>& variables, Operation* train) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(train, "Optimizer::ApplyGradients", "train"));
  std::vector<SparseGradient> dense;
  for (const Output& gradient : gradients) dense.push_back(AsDense(gradient));
  return ApplyGradients(dense, variables, train);
}

absl::Status Optimizer::ApplyGradients(const std::vector<SparseGradient>& gradients,
                                       const std::vector<Output>& variables, Operation* train) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(train, "Optimizer::ApplyGradients", "train"));
  if (gradients.size() != variables.size()) {
    return errors::InvalidArgument("expected a gradient for each of ", variables.size(),
                                   " variables, found ", gradients.size());
  }
  if (applied_) return errors::FailedPrecondition("an optimizer applies gradients once");
  std::vector<VariableInfo> infos;
  std::set<std::string> names;
  const VariableInfo* first = nullptr;
  for (const Output& variable : variables) {
    GRADFLOW_ASSIGN_OR_RETURN(VariableInfo info, InfoOf(variable));
    if (!names.insert(info.name).second) {
      return errors::InvalidArgument("variable '", info.name, "' is given twice");
    }
    infos.push_back(std::move(info));
  }
  for (size_t i = 0; i < infos.size() && first == nullptr; ++i) {
    if (!IsEmpty(gradients[i])) first = &infos[i];
  }
  if (first == nullptr) return errors::InvalidArgument("no variable has a gradient");
  applied_ = true;
  taken_names_.clear();
  for (int id = 0; id < scope_.graph()->num_nodes(); ++id) {
    const absl::StatusOr<VariableInfo> info = InfoOf(Output(scope_.graph()->node(id), 0));
    if (info.ok()) taken_names_.insert(info->name);
  }
  Begin(*first);
  const Scope scope = scope_.NewSubScope("train");
  std::vector<Operation> updates;
  // Variables change only after all gradients have been computed.
  std::vector<Operation> all;
  for (const SparseGradient& gradient : gradients) {
    if (IsEmpty(gradient)) continue;
    all.emplace_back(gradient.is_sparse ? gradient.slices.values.op() : gradient.dense.op());
    if (gradient.is_sparse) all.emplace_back(gradient.slices.indices.op());
  }
  const Scope after = After(scope, all);
  for (size_t i = 0; i < variables.size(); ++i) {
    if (IsEmpty(gradients[i])) continue;
    updates.push_back(Apply(after, variables[i], infos[i], gradients[i]));
    GRADFLOW_RETURN_IF_ERROR(scope_.status());
  }
  End(scope, &updates);
  GRADFLOW_RETURN_IF_ERROR(scope_.status());
  *train = ops::NoOp(After(scope, updates)).operation;
  return scope_.status();
}

absl::Status Optimizer::Minimize(const Output& loss, const std::vector<Output>& variables,
                                 Operation* train, const GradientBuildOptions& options) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(train, "Optimizer::Minimize", "train"));
  std::vector<SparseGradient> gradients;
  GRADFLOW_RETURN_IF_ERROR(ComputeGradients(loss, variables, &gradients, options));
  return ApplyGradients(gradients, variables, train);
}

Output Optimizer::NewState(const std::string& wanted, const VariableInfo& info, float value) {
  std::string name = wanted;
  for (int i = 1; !taken_names_.insert(name).second; ++i) name = absl::StrCat(wanted, "_", i);
  const Scope scope = scope_.NewSubScope("slots");
  const Output state = NewVariable(scope, name, info.dtype, info.shape, info.is_resource);
  if (!info.shape.IsFullyDefined()) {
    scope_.UpdateStatus(errors::InvalidArgument("variable '", name,
                                                "' is a slot of a variable whose shape is not "
                                                "known: ",
                                                info.shape.DebugString()));
    return state;
  }
  std::vector<int64_t> dims(info.shape.dim_sizes().begin(), info.shape.dim_sizes().end());
  Tensor shape(DT_INT64, {static_cast<int64_t>(dims.size())});
  std::copy(dims.begin(), dims.end(), shape.flat<int64_t>().begin());
  const Output first =
      ops::Fill(scope, ops::Const(scope, Input::Initializer(shape)), ScalarOf(scope, info, value));
  slots_.push_back(state);
  initializers_.push_back(AssignVariable(scope, state, first));
  return state;
}

Output Optimizer::NewSlot(const VariableInfo& info, absl::string_view name, float value) {
  return NewState(absl::StrCat(info.name, "/", name), info, value);
}

Output Optimizer::NewScalar(absl::string_view name, DataType dtype, bool is_resource, float value) {
  VariableInfo info;
  info.dtype = dtype;
  info.shape = TensorShape();
  info.is_resource = is_resource;
  return NewState(std::string(name), info, value);
}

Output Optimizer::ScalarOf(const Scope& scope, const VariableInfo& info, float value) const {
  return AsType(scope, ops::Const(scope, value), info.dtype);
}

Output Optimizer::RateOf(const Scope& scope, const VariableInfo& info) const {
  if (rate_.node() == nullptr) return ScalarOf(scope, info, constant_rate_);
  return AsType(scope, rate_, info.dtype);
}

Operation Optimizer::AddUpdate(const Scope& scope, const VariableInfo& info, absl::string_view name,
                               std::vector<Output> before, const SparseGradient& gradient,
                               const std::vector<Output>& after, absl::string_view bool_attr,
                               bool value) const {
  std::vector<Output> inputs = std::move(before);
  if (gradient.is_sparse) {
    const IndexedSlices sums = SumRows(scope, gradient.slices);
    inputs.insert(inputs.end(), {sums.values, sums.indices});
  } else {
    inputs.push_back(gradient.dense);
  }
  inputs.insert(inputs.end(), after.begin(), after.end());
  OpBuilder builder(scope, absl::StrCat(info.is_resource ? "Resource" : "",
                                        gradient.is_sparse ? "SparseApply" : "Apply", name));
  for (const Output& input : inputs) builder.Input(Input(input));
  builder.Attr("use_locking", true);
  if (!bool_attr.empty()) builder.Attr(bool_attr, value);
  return builder.Finish();
}

Operation GradientDescent::Apply(const Scope& scope, const Output& variable,
                                 const VariableInfo& info, const SparseGradient& gradient) {
  const Output rate = RateOf(scope, info);
  if (!gradient.is_sparse) {
    return AddUpdate(scope, info, "GradientDescent", {variable, rate}, gradient);
  }
  const Output updates = ops::Mul(scope, gradient.slices.values, rate);
  OpBuilder builder(scope, info.is_resource ? "ResourceScatterSub" : "ScatterSub");
  builder.Input(Input(variable)).Input(Input(gradient.slices.indices)).Input(Input(updates));
  if (!info.is_resource) builder.Attr("use_locking", true);
  return builder.Finish();
}

Operation Momentum::Apply(const Scope& scope, const Output& variable, const VariableInfo& info,
                          const SparseGradient& gradient) {
  return AddUpdate(
      scope, info, "Momentum", {variable, NewSlot(info, "Momentum", 0), RateOf(scope, info)},
      gradient, {ScalarOf(scope, info, options_.momentum)}, "use_nesterov", options_.use_nesterov);
}

Operation Adagrad::Apply(const Scope& scope, const Output& variable, const VariableInfo& info,
                         const SparseGradient& gradient) {
  return AddUpdate(
      scope, info, "Adagrad",
      {variable, NewSlot(info, "Adagrad", options_.initial_accumulator_value), RateOf(scope, info)},
      gradient);
}

Operation RMSProp::Apply(const Scope& scope, const Output& variable, const VariableInfo& info,
                         const SparseGradient& gradient) {
  const Output mean_square = NewSlot(info, "RMSProp", 1);
  const Output momentum = NewSlot(info, "RMSProp", 0);
  return AddUpdate(
      scope, info, "RMSProp",
      {variable, mean_square, momentum, RateOf(scope, info), ScalarOf(scope, info, options_.decay),
       ScalarOf(scope, info, options_.momentum), ScalarOf(scope, info, options_.epsilon)},
      gradient);
}

void Adam::Begin(const VariableInfo& info) {
  // The powers have the type of the first variable, as in TensorFlow.
  power_dtype_ = info.dtype;
  beta1_power_ = NewScalar("beta1_power", info.dtype, info.is_resource, options_.beta1);
  beta2_power_ = NewScalar("beta2_power", info.dtype, info.is_resource, options_.beta2);
}

Operation Adam::Apply(const Scope& scope, const Output& variable, const VariableInfo& info,
                      const SparseGradient& gradient) {
  const Output m = NewSlot(info, "Adam", 0);
  const Output v = NewSlot(info, "Adam", 0);
  const auto power = [&](const Output& state) {
    return AsType(scope, ReadVariable(scope, state), info.dtype);
  };
  const Output rate = RateOf(scope, info);
  Scope update_scope = scope;
  if (options_.weight_decay != 0 && (options_.decays == nullptr || options_.decays(info.name))) {
    const Output decay =
        ops::Mul(scope, ops::Mul(scope, rate, ScalarOf(scope, info, options_.weight_decay)),
                 ReadVariable(scope, variable));
    OpBuilder builder(scope, info.is_resource ? "AssignSubVariableOp" : "AssignSub");
    builder.Input(Input(variable)).Input(Input(decay));
    update_scope = After(scope, {builder.Finish()});
  }
  const Output dense = gradient.is_sparse ? ToDense(scope, gradient.slices) : gradient.dense;
  return AddUpdate(update_scope, info, "Adam",
                   {variable, m, v, power(beta1_power_), power(beta2_power_), rate,
                    ScalarOf(scope, info, options_.beta1), ScalarOf(scope, info, options_.beta2),
                    ScalarOf(scope, info, options_.epsilon)},
                   AsDense(dense), {}, "use_nesterov", options_.use_nesterov);
}

void Adam::End(const Scope& scope, std::vector<Operation>* updates) {
  // The powers change only after all updates have read them.
  const Scope after = After(scope, *updates);
  VariableInfo info;
  info.dtype = power_dtype_;
  for (const auto& [state, beta] : {std::make_pair(beta1_power_, options_.beta1),
                                    std::make_pair(beta2_power_, options_.beta2)}) {
    const Output next = ops::Mul(scope, ReadVariable(after, state), ScalarOf(scope, info, beta));
    updates->push_back(AssignVariable(after, state, next));
  }
}

Operation Ftrl::Apply(const Scope& scope, const Output& variable, const VariableInfo& info,
                      const SparseGradient& gradient) {
  const Output squares = NewSlot(info, "Ftrl", options_.initial_accumulator_value);
  const Output linear = NewSlot(info, "Ftrl", 0);
  return AddUpdate(
      scope, info, "Ftrl", {variable, squares, linear}, gradient,
      {RateOf(scope, info), ScalarOf(scope, info, options_.l1), ScalarOf(scope, info, options_.l2),
       ScalarOf(scope, info, options_.learning_rate_power)});
}

std::vector<Output> ClipByGlobalNorm(const Scope& scope, const std::vector<Output>& gradients,
                                     float norm) {
  std::vector<SparseGradient> dense;
  for (const Output& gradient : gradients) dense.push_back(AsDense(gradient));
  std::vector<Output> clipped;
  for (const SparseGradient& gradient : ClipByGlobalNorm(scope, dense, norm)) {
    clipped.push_back(gradient.dense);
  }
  return clipped;
}

std::vector<SparseGradient> ClipByGlobalNorm(const Scope& scope,
                                             const std::vector<SparseGradient>& gradients,
                                             float norm) {
  std::vector<SparseGradient> clipped = gradients;
  // The tensors to scale.
  std::vector<Output*> values;
  DataType dtype = DT_FLOAT;
  for (SparseGradient& gradient : clipped) {
    if (IsEmpty(gradient)) continue;
    values.push_back(gradient.is_sparse ? &gradient.slices.values : &gradient.dense);
    if (values.back()->type() == DT_DOUBLE) dtype = DT_DOUBLE;
  }
  if (values.empty()) return clipped;
  // Accumulates in at least float, because squares of 16-bit floats overflow easily.
  std::vector<Output> halves;
  for (const Output* value : values) {
    halves.push_back(ops::L2Loss(scope, AsType(scope, *value, dtype)));
  }
  const Output total = ops::Sqrt(scope, ops::Mul(scope, ops::AddN(scope, halves),
                                                 AsType(scope, ops::Const(scope, 2.0f), dtype)));
  const Output most = AsType(scope, ops::Const(scope, norm), dtype);
  // norm / max(total, norm), which is 1 if the total is at most the norm. NaN if the total is not
  // finite.
  const Output scale = ops::Add(scope, ops::RealDiv(scope, most, ops::Maximum(scope, total, most)),
                                ops::Sub(scope, total, total));
  for (Output* value : values) {
    *value = ops::Mul(scope, *value, AsType(scope, scale, value->type()));
  }
  return clipped;
}

}  // namespace training
}  // namespace gradflow
