#include "gradflow/core/variable.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/status.h"
#include "gradflow/core/variant.h"

namespace gradflow {
namespace {

// Copies the elements of `value` into memory of the run's allocator.
absl::StatusOr<Tensor> Copy(const RunContext& run, const Tensor& value) {
  GRADFLOW_ASSIGN_OR_RETURN(Tensor copy,
                            Tensor::Allocate(*run.allocator, value.dtype(), value.shape()));
  if (value.dtype() == DT_STRING) {
    GRADFLOW_RETURN_IF_ERROR(copy.ChargeStrings(value.StringBytes()));
    const auto from = value.span<tstring>();
    std::copy(from.begin(), from.end(), copy.span<tstring>().begin());
  } else if (value.dtype() == DT_RESOURCE) {
    const auto from = value.span<ResourceHandle>();
    std::copy(from.begin(), from.end(), copy.span<ResourceHandle>().begin());
  } else if (value.dtype() == DT_VARIANT) {
    const auto from = value.span<Variant>();
    std::copy(from.begin(), from.end(), copy.span<Variant>().begin());
  } else {
    const char* from = static_cast<const char*>(value.raw_data());
    char* to = static_cast<char*>(copy.raw_data());
    ParallelFor(
        run, static_cast<int64_t>(value.TotalBytes()), BlockSizeForCost(0.1),
        [&](int64_t begin, int64_t end) { std::memcpy(to + begin, from + begin, end - begin); });
  }
  return copy;
}

RunContext Unstoppable(const RunContext& run) {
  RunContext unstoppable = run;
  unstoppable.stop = nullptr;
  return unstoppable;
}

}  // namespace

std::string Variable::DebugString() const {
  MutexLock lock(&mutex_);
  if (value_.dtype() == DT_INVALID) {
    return absl::StrCat("variable of type ", DataTypeString(dtype_), ", uninitialized");
  }
  return absl::StrCat("variable of type ", DataTypeString(dtype_), " and shape ",
                      value_.shape().DebugString());
}

bool Variable::IsInitialized() const {
  MutexLock lock(&mutex_);
  return value_.dtype() != DT_INVALID;
}

absl::Status Variable::Uninitialized() const {
  return errors::FailedPrecondition("variable '", errors::Printable(name_),
                                    "' has not been initialized");
}

absl::Status Variable::Frozen() const {
  return errors::FailedPrecondition("variable '", errors::Printable(name_),
                                    "' is frozen (SessionOptions::freeze_variables)");
}

void Variable::Freeze() {
  MutexLock lock(&mutex_);
  frozen_ = true;
}

bool Variable::IsFrozen() const {
  MutexLock lock(&mutex_);
  return frozen_;
}

absl::StatusOr<Tensor> Variable::Read() const {
  {
    MutexLock lock(&mutex_);
    if (value_.dtype() != DT_INVALID) return value_;
  }
  return Uninitialized();
}

absl::Status Variable::Assign(Tensor value, bool same_shape) {
  if (value.dtype() != dtype_) {
    return errors::InvalidArgument("variable '", errors::Printable(name_), "' has type ",
                                   DataTypeString(dtype_), ", but the value has type ",
                                   DataTypeString(value.dtype()));
  }
  // The old value, whose buffer is freed without the lock.
  Tensor old((Tensor::Unset()));
  MutexLock lock(&mutex_);
  if (frozen_) return Frozen();
  if (same_shape) {
    const bool is_new = value_.dtype() == DT_INVALID;
    const bool fits =
        is_new ? shape_.IsCompatibleWith(value.shape()) : value_.shape() == value.shape();
    if (!fits) {
      return errors::InvalidArgument("variable '", errors::Printable(name_), "' has shape ",
                                     is_new ? shape_.DebugString() : value_.shape().DebugString(),
                                     ", but the value has shape ", value.shape().DebugString());
    }
  }
  old = std::exchange(value_, std::move(value));
  return absl::OkStatus();
}

absl::StatusOr<ResourceHandle> HandleOf(const KernelContext& ctx, int i) {
  const Tensor& input = ctx.input(i);
  if (input.dtype() != DT_RESOURCE || input.NumElements() != 1) {
    return errors::InvalidArgument("input ", i, " must be a resource, but is a tensor of type ",
                                   DataTypeString(input.dtype()), " and shape ",
                                   input.shape().DebugString());
  }
  return input.span<ResourceHandle>()[0];
}

absl::StatusOr<std::shared_ptr<Variable>> VariableOf(const KernelContext& ctx, int i) {
  GRADFLOW_ASSIGN_OR_RETURN(const ResourceHandle handle, HandleOf(ctx, i));
  if (handle.resource() != nullptr) {
    if (auto variable = std::dynamic_pointer_cast<Variable>(handle.resource())) return variable;
    return errors::InvalidArgument(handle.DebugString(), " is not a variable");
  }
  if (ctx.resource_manager() == nullptr) {
    return errors::FailedPrecondition("variables need a session");
  }
  absl::StatusOr<std::shared_ptr<Variable>> variable =
      ctx.resource_manager()->Lookup<Variable>(handle.container(), handle.name());
  if (!absl::IsNotFound(variable.status())) return variable;
  return errors::FailedPrecondition("variable '", errors::Printable(handle.name()),
                                    "' has not been initialized");
}

absl::StatusOr<Tensor> ReadVariable(const KernelContext& ctx, int i, DataType dtype) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<Variable> variable, VariableOf(ctx, i));
  if (variable->dtype() != dtype) {
    return errors::InvalidArgument("variable '", errors::Printable(variable->name()), "' has type ",
                                   DataTypeString(variable->dtype()), ", expected ",
                                   DataTypeString(dtype));
  }
  return variable->Read();
}

absl::StatusOr<Tensor> ReadReference(const Tensor& reference) {
  if (reference.dtype() == DT_RESOURCE && reference.NumElements() == 1) {
    const ResourceHandle& handle = reference.span<ResourceHandle>()[0];
    if (auto variable = std::dynamic_pointer_cast<Variable>(handle.resource())) {
      return variable->Read();
    }
  }
  return errors::Internal("an output of reference type refers to no variable");
}

absl::StatusOr<Tensor> ForVariable(const KernelContext& ctx, const Tensor& value) {
  // Other holders of the buffer may write to it: the caller of a run holds fed and fetched tensors.
  if (value.CanBeReused() && value.OwnsBufferOf(**ctx.run().allocator)) return value;
  GRADFLOW_ASSIGN_OR_RETURN(Tensor copy, Copy(ctx.run(), value));
  // Loops of a stopped run skip blocks.
  if (ctx.ShouldStop()) return StoppedError();
  return copy;
}

VariableUpdate::~VariableUpdate() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  for (Variable* variable : locked_) variable->mutex_.Unlock();
}

absl::Status VariableUpdate::Begin(const KernelContext& ctx, absl::Span<const int> inputs,
                                   DataType dtype) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  run_ = Unstoppable(ctx.run());
  for (const int i : inputs) {
    GRADFLOW_ASSIGN_OR_RETURN(std::shared_ptr<Variable> variable, VariableOf(ctx, i));
    if (variable->dtype() != dtype) {
      return errors::InvalidArgument("variable '", errors::Printable(variable->name()),
                                     "' has type ", DataTypeString(variable->dtype()),
                                     ", expected ", DataTypeString(dtype));
    }
    variables_.push_back(std::move(variable));
  }
  absl::InlinedVector<Variable*, 4> order;
  for (const auto& variable : variables_) order.push_back(variable.get());
  std::sort(order.begin(), order.end(), std::less<>());
  order.erase(std::unique(order.begin(), order.end()), order.end());
  locked_.reserve(order.size());
  for (Variable* variable : order) {
    variable->mutex_.Lock();
    locked_.push_back(variable);
  }
  for (const auto& variable : variables_) {
    if (variable->value_.dtype() == DT_INVALID) return variable->Uninitialized();
    if (variable->frozen_) return variable->Frozen();
    values_.push_back(&variable->value_);
  }
  return absl::OkStatus();
}

absl::Status VariableUpdate::MakeWritable() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  absl::InlinedVector<Tensor, 4> copies;
  for (Variable* variable : locked_) {
    const Tensor& value = variable->value_;
    if (value.NumElements() == 0 || value.CanBeReused()) {
      copies.emplace_back(Tensor::Unset());
      continue;
    }
    GRADFLOW_ASSIGN_OR_RETURN(Tensor copy, Copy(run_, value));
    copies.push_back(std::move(copy));
  }
  for (size_t k = 0; k < locked_.size(); ++k) {
    if (copies[k].dtype() != DT_INVALID) locked_[k]->value_ = std::move(copies[k]);
  }
  return absl::OkStatus();
}

}  // namespace gradflow
