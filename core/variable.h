// Variable: a tensor that outlives a run. It is a resource of the session.
//
// Readers share the buffer of the value. A writer updates the buffer in place if nothing else holds
// it, and replaces the buffer otherwise. A value that has been read therefore never changes.
//
//   GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<Variable> w, VariableOf(ctx, 0));
//   GRADFLOW_ASSIGN_OR_RETURN(const Tensor value, w->Read());
//
// An update locks its variables while it computes:
//
//   VariableUpdate update;
//   // Inputs 0 and 1 are variables.
//   GRADFLOW_RETURN_IF_ERROR(update.Begin(ctx, {0, 1}, DT_FLOAT));
//   GRADFLOW_RETURN_IF_ERROR(update.MakeWritable());
//   Step(update.run(), update.value(0), update.value(1));  // in place
//
// Thread safety: Variable is thread-safe. A VariableUpdate belongs to one thread.
#ifndef GRADFLOW_CORE_VARIABLE_H_
#define GRADFLOW_CORE_VARIABLE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/resource_handle.h"
#include "gradflow/core/resource_manager.h"
#include "gradflow/core/run_context.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"

#pragma GCC visibility push(default)
namespace gradflow {

class Variable final : public ResourceBase {
 public:
  // A variable without a value. `shape` is the shape that it is declared with; `name` is for
  // messages.
  Variable(DataType dtype, PartialTensorShape shape, std::string name)
      : dtype_(dtype), shape_(std::move(shape)), name_(std::move(name)) {}

  // Return the arguments of the constructor.
  DataType dtype() const { return dtype_; }
  const PartialTensorShape& declared_shape() const { return shape_; }
  const std::string& name() const { return name_; }
  std::string DebugString() const override;

  // Returns true if a value has been assigned.
  bool IsInitialized() const;
  // Returns the value and shares its buffer. Returns FAILED_PRECONDITION if there is no value.
  absl::StatusOr<Tensor> Read() const;
  // Replaces the value. Returns INVALID_ARGUMENT if the type differs. With `same_shape`, also
  // returns INVALID_ARGUMENT if the shape differs from the shape of the old value. If there is no
  // old value, the shape must be compatible with the declared shape.
  absl::Status Assign(Tensor value, bool same_shape = false);

  // Rejects later assignments and updates with FAILED_PRECONDITION. Plans may then use the value as
  // a constant. REQUIRES: the variable has a value
  void Freeze();
  // Returns true if Freeze() was called.
  bool IsFrozen() const;

  // Returns the error of a variable without a value.
  absl::Status Uninitialized() const;
  // Returns the error of a write to a frozen variable.
  absl::Status Frozen() const;

 private:
  friend class VariableUpdate;

  const DataType dtype_;
  const PartialTensorShape shape_;
  const std::string name_;
  mutable Mutex mutex_;
  // Has type DT_INVALID if there is no value.
  Tensor value_ ABSL_GUARDED_BY(mutex_){Tensor::Unset()};
  bool frozen_ ABSL_GUARDED_BY(mutex_) = false;
};

// Returns the handle in input `i`, or INVALID_ARGUMENT if it is neither a resource nor a reference.
absl::StatusOr<ResourceHandle> HandleOf(const KernelContext& ctx, int i);
// Returns the variable of input `i`. Returns FAILED_PRECONDITION with the variable's name if the
// variable does not exist.
absl::StatusOr<std::shared_ptr<Variable>> VariableOf(const KernelContext& ctx, int i);
// Returns the value of the variable of input `i`. Returns INVALID_ARGUMENT if the type is not
// `dtype`.
absl::StatusOr<Tensor> ReadVariable(const KernelContext& ctx, int i, DataType dtype);

// Returns the value of the variable that `reference`, the output of a kernel, refers to. Returns
// INTERNAL if it refers to no variable.
absl::StatusOr<Tensor> ReadReference(const Tensor& reference);

// Returns a tensor that a variable can store: it has the elements of `value`, and no other tensor
// shares its buffer. The buffer comes from the run's allocator, so that the session's limit counts
// it. Returns `value` itself if it already meets these conditions and covers its whole buffer.
// Otherwise returns a copy.
absl::StatusOr<Tensor> ForVariable(const KernelContext& ctx, const Tensor& value);

// A kernel that reads the variable of input 0 and passes its value to a kernel of class K as input
// 0. The variable has the type of output 0.
template <typename K>
class ReadingKernel final : public OpKernel {
 public:
  // Calls Init of the kernel of class K.
  absl::Status Init(const KernelConstruction& construction) { return kernel_.Init(construction); }
  absl::Status Compute(KernelContext& ctx) const override {
    absl::StatusOr<Tensor> value = ReadVariable(ctx, 0, ctx.expected_output_dtype(0));
    if (!value.ok()) return value.status();
    absl::InlinedVector<Tensor, 4> inputs = {*std::move(value)};
    for (int i = 1; i < ctx.num_inputs(); ++i) inputs.emplace_back(Tensor::Borrow(), ctx.input(i));
    KernelContext inner = ctx.WithInputs(absl::MakeSpan(inputs));
    return kernel_.Compute(inner);
  }

 private:
  K kernel_;
};

// Exclusive access to variables for an update in place. The destructor unlocks the variables.
//
// Loops of an update use run(). They finish even if the session's run is stopped, so that a value
// is never updated in part.
class VariableUpdate {
 public:
  VariableUpdate() = default;
  VariableUpdate(const VariableUpdate&) = delete;
  VariableUpdate& operator=(const VariableUpdate&) = delete;
  ~VariableUpdate();

  // Locks the variables of these inputs, whose types must be `dtype`. Returns FAILED_PRECONDITION
  // if a variable has no value or is frozen. Several inputs may refer to the same variable. Readers
  // may share the values until MakeWritable().
  absl::Status Begin(const KernelContext& ctx, absl::Span<const int> inputs, DataType dtype);
  absl::Status Begin(const KernelContext& ctx, std::initializer_list<int> inputs, DataType dtype) {
    return Begin(ctx, absl::MakeConstSpan(inputs.begin(), inputs.size()), dtype);
  }
  // Copies shared values, so that they may be overwritten. On error, no value has changed.
  absl::Status MakeWritable();
  // Returns the value of the k-th variable of Begin().
  Tensor& value(size_t k) { return *values_[k]; }
  const Variable& variable(size_t k) const { return *variables_[k]; }
  // Returns the context for loops of the update.
  const RunContext& run() const { return run_; }

 private:
  absl::InlinedVector<std::shared_ptr<Variable>, 4> variables_;
  absl::InlinedVector<Tensor*, 4> values_;
  // In the order of their addresses, without duplicates.
  absl::InlinedVector<Variable*, 4> locked_;
  RunContext run_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_VARIABLE_H_
