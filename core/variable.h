// Variable: a tensor that outlives a run, a resource of the session.
//
// Readers share the buffer of the value. A writer updates it in place if nobody else holds it, and
// replaces it otherwise, so each reader keeps the whole value that it has read.
//
//   GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<Variable> w, VariableOf(ctx, 0));
//   GRADFLOW_ASSIGN_OR_RETURN(const Tensor value, w->Read());
//
// An update locks its variables while it computes:
//
//   VariableUpdate update;
//   GRADFLOW_RETURN_IF_ERROR(update.Begin(ctx, {0, 1}));   // inputs 0 and 1 are variables
//   Step(update.run(), update.value(0), update.value(1));  // in place
//
// Thread-safe.
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

  // Return what the variable was made of.
  DataType dtype() const { return dtype_; }
  const PartialTensorShape& declared_shape() const { return shape_; }
  const std::string& name() const { return name_; }
  std::string DebugString() const override;

  // Returns true if a value has been assigned.
  bool IsInitialized() const;
  // Returns the value, sharing its buffer; FAILED_PRECONDITION if there is none.
  absl::StatusOr<Tensor> Read() const;
  // Replaces the value. With `same_shape`, returns INVALID_ARGUMENT unless the new value has the
  // shape of the old one, or the declared one if there is none. Returns INVALID_ARGUMENT if the
  // type differs.
  absl::Status Assign(Tensor value, bool same_shape = false);

  // Returns the error that there is no value.
  absl::Status Uninitialized() const;

 private:
  friend class VariableUpdate;

  const DataType dtype_;
  const PartialTensorShape shape_;
  const std::string name_;
  mutable Mutex mutex_;
  // Has type DT_INVALID if there is no value.
  Tensor value_ ABSL_GUARDED_BY(mutex_){Tensor::Unset()};
};

// Returns the handle that input `i`, a resource or a reference, holds.
absl::StatusOr<ResourceHandle> HandleOf(const KernelContext& ctx, int i);
// Returns the variable of input `i`. FAILED_PRECONDITION, with its name, if there is none.
absl::StatusOr<std::shared_ptr<Variable>> VariableOf(const KernelContext& ctx, int i);
// Returns the value of the variable of input `i`. INVALID_ARGUMENT if it has not type `dtype`.
absl::StatusOr<Tensor> ReadVariable(const KernelContext& ctx, int i, DataType dtype);

// Returns the value of the variable that `reference`, the output of a kernel, refers to. INTERNAL
// if it refers to none.
absl::StatusOr<Tensor> ReadReference(const Tensor& reference);

// Returns a tensor with the elements of `value` that nobody else holds, in memory of the run's
// allocator, such that the session's limit counts it. Returns `value` itself if it is there, covers
// its buffer and is the only holder; a copy otherwise.
absl::StatusOr<Tensor> ForVariable(const KernelContext& ctx, const Tensor& value);

// A kernel that reads the variable of input 0, a resource of the type of output 0, and computes by
// a kernel of class K, whose input 0 is the value.
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

// Exclusive access to variables for an update in place. Ends with the scope.
//
// Loops of an update use run(), which does not stop with the run: a value is updated as a whole.
class VariableUpdate {
 public:
  VariableUpdate() = default;
  VariableUpdate(const VariableUpdate&) = delete;
  VariableUpdate& operator=(const VariableUpdate&) = delete;
  ~VariableUpdate();

  // Locks the variables of these inputs, whose types must be `dtype`. Returns FAILED_PRECONDITION
  // if one has no value. Several inputs may be one variable. Until MakeWritable, values are shared
  // with readers.
  absl::Status Begin(const KernelContext& ctx, absl::Span<const int> inputs, DataType dtype);
  absl::Status Begin(const KernelContext& ctx, std::initializer_list<int> inputs, DataType dtype) {
    return Begin(ctx, absl::MakeConstSpan(inputs.begin(), inputs.size()), dtype);
  }
  // Copies the values that are shared, such that they may be overwritten. If this fails, no value
  // has changed.
  absl::Status MakeWritable();
  // Returns the value of the k-th variable of Begin().
  Tensor& value(size_t k) { return *values_[k]; }
  const Variable& variable(size_t k) const { return *variables_[k]; }
  // For loops of the update.
  const RunContext& run() const { return run_; }

 private:
  absl::InlinedVector<std::shared_ptr<Variable>, 4> variables_;
  absl::InlinedVector<Tensor*, 4> values_;
  // In the order of their addresses, each once.
  absl::InlinedVector<Variable*, 4> locked_;
  RunContext run_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_VARIABLE_H_
