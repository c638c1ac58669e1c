// OpKernel: what runs a node on a device; KernelConstruction and KernelContext: what it sees when
// it is made and when it runs.
//
// A kernel is made once for a node of a plan and then run any number of times, also concurrently:
// Compute must not change the kernel. It checks its inputs, whatever the shape function has
// checked, and returns a status; errors say the local fact ("min must be a scalar, but has shape
// [2]"), and the executor adds "node 'name' (Op): ". It does not throw. A kernel that waits for
// something outside of its thread (a timer, a queue, another machine, a function) is an
// AsyncOpKernel, which holds no thread meanwhile.
#ifndef GRADFLOW_CORE_OP_KERNEL_H_
#define GRADFLOW_CORE_OP_KERNEL_H_

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/run_context.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/types.h"

#pragma GCC visibility push(default)
namespace gradflow {

class NodeDef;
class OpDef;
class PlanRun;
class ResourceManager;

// The information that a kernel may read while it is made. Borrows everything.
class KernelConstruction {
 public:
  // The types are those of the node's inputs and outputs, lists laid out. `constant` is what
  // constant() returns. All are borrowed.
  KernelConstruction(const NodeDef& node, const OpDef& op_def,
                     absl::Span<const DataType> input_types,
                     absl::Span<const DataType> output_types, const Tensor* constant = nullptr)
      : node_(node),
        op_def_(op_def),
        input_types_(input_types),
        output_types_(output_types),
        constant_(constant) {}

  // The node and its op's definition.
  const NodeDef& def() const { return node_; }
  const OpDef& op_def() const { return op_def_; }
  // Data inputs and outputs; each element of a list is one.
  int num_inputs() const { return static_cast<int>(input_types_.size()); }
  int num_outputs() const { return static_cast<int>(output_types_.size()); }
  DataType input_type(int i) const { return input_types_[i]; }
  DataType output_type(int i) const { return output_types_[i]; }
  // Returns the value of a Const if the graph has decoded it before, otherwise null. A kernel that
  // shares it saves a second copy.
  const Tensor* constant() const { return constant_; }

  // NOT_FOUND without such an attribute, INVALID_ARGUMENT for another type.
  template <typename T>
  absl::Status GetAttr(absl::string_view name, T* value) const {
    return GetNodeAttr(node_, name, value);
  }

 private:
  const NodeDef& node_;
  const OpDef& op_def_;
  absl::Span<const DataType> input_types_;
  absl::Span<const DataType> output_types_;
  const Tensor* constant_;
};

// One run of a kernel: its inputs, and the outputs to be. Used by one thread at a time.
class KernelContext {
 public:
  // `inputs` may be moved from by ForwardInput; `outputs` are default-constructed. All borrowed.
  KernelContext(absl::Span<Tensor> inputs, absl::Span<Tensor> outputs,
                absl::Span<const DataType> output_types, const RunContext& run)
      : inputs_(inputs), outputs_(outputs), output_types_(output_types), run_(run) {}

  // Data inputs and outputs; each element of a list is one.
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  // REQUIRES for all of these: the index is that of an input (output). Otherwise end the program.
  const Tensor& input(int i) const {
    internal::RequireIndex("KernelContext::input", i, num_inputs());
    return inputs_[i];
  }
  DataType input_dtype(int i) const { return input(i).dtype(); }
  DataType expected_output_dtype(int i) const {
    internal::RequireIndex("KernelContext::expected_output_dtype", i, num_outputs());
    return output_types_[i];
  }

  // Allocates output i, its elements uninitialised, and returns it through *out.
  absl::Status AllocateOutput(int i, const TensorShape& shape, Tensor** out);
  // Makes output i share the elements of input `input` if nothing else reads them, and they have
  // the output's type and number and are not strings; otherwise allocates it. In the first case
  // *out aliases the input, which stays readable as long as output i is not replaced: read each
  // element before writing it.
  absl::Status ForwardInputOrAllocateOutput(int input, int i, const TensorShape& shape,
                                            Tensor** out);
  // Makes `tensor` output i, sharing its elements.
  void set_output(int i, Tensor tensor) { *mutable_output(i) = std::move(tensor); }
  Tensor* mutable_output(int i) {
    internal::RequireIndex("KernelContext::mutable_output", i, num_outputs());
    return &outputs_[i];
  }
  // Sets the expected number of characters of the strings in the next output that is allocated.
  // They are charged to the session's memory before the kernel makes them. Without this call, each
  // string of an output is expected to be as long as the longest string of the inputs, which is
  // enough for kernels that copy strings, and too much if their lengths differ. What the strings
  // really have replaces this charge when the kernel is done.
  void ExpectStringBytes(double bytes) { expected_string_bytes_ = bytes; }
  // Memory that lives until the tensor is dropped.
  absl::Status AllocateTemp(DataType dtype, const TensorShape& shape, Tensor* out);
  const std::shared_ptr<Allocator>& allocator() const { return *run_.allocator; }

  // The run that this is part of: what loops, resources and functions need.
  const RunContext& run() const { return run_; }
  // Returns the session's resources for kernels; null without a session, also while a plan is made.
  ResourceManager* resource_manager() const { return run_.resources; }

  // Says that output i has no value, since the branch that makes it is not taken: nodes that read
  // it do not run, and their outputs have no value either.
  void SetOutputDead(int i) { dead_outputs_.push_back(i); }
  absl::Span<const int> dead_outputs() const { return dead_outputs_; }

  // ---- For the executor ----

  // Which node of which plan's run this is; null if that does not matter.
  void SetPlanNode(PlanRun* run, int node) {
    plan_run_ = run;
    plan_node_ = node;
  }
  PlanRun* plan_run() const { return plan_run_; }
  int plan_node() const { return plan_node_; }
  // From now on adds the bytes of each tensor that is allocated to *total; null for no more.
  void CountAllocatedBytes(int64_t* total) { allocated_bytes_ = total; }

  // Reports whether the run is to end early. Loops of core/parallel.h ask by themselves.
  bool ShouldStop() const { return run_.ShouldStop(); }

  // ---- Checks, one line each. INVALID_ARGUMENT with the name, expected and found ----

  // "min must be a scalar, but has shape [2,3]"
  absl::Status CheckScalar(int i, absl::string_view name) const;
  absl::Status CheckVector(int i, absl::string_view name) const;
  absl::Status CheckRank(int i, absl::string_view name, int rank) const;
  // "scale must have shape [64], but has shape [32]"
  absl::Status CheckShape(int i, absl::string_view name, const TensorShape& expected) const;
  // "gradients and inputs must have the same shape, but have [2] and [3]"
  absl::Status CheckSameShape(int i, absl::string_view name_i, int j,
                              absl::string_view name_j) const;
  // The elements of an int32 or int64 (or int16) input, widened: sizes or axes. INVALID_ARGUMENT if
  // they are more than a shape has dimensions, kMaxDims.
  absl::StatusOr<DimVector> Ints(int i, absl::string_view name) const;
  // The one element of a scalar int32 or int64 (or int16) input.
  absl::StatusOr<int64_t> ScalarInt(int i, absl::string_view name) const;

 private:
  // Returns the length of the longest string of the inputs.
  size_t LongestString();

  absl::Span<Tensor> inputs_;
  absl::Span<Tensor> outputs_;
  absl::Span<const DataType> output_types_;
  const RunContext& run_;
  int64_t* allocated_bytes_ = nullptr;
  // Negative if nothing is expected.
  double expected_string_bytes_ = -1;
  // Negative if not known yet.
  int64_t longest_string_ = -1;
  absl::InlinedVector<int, 2> dead_outputs_;
  PlanRun* plan_run_ = nullptr;
  int plan_node_ = -1;
};

// ParallelFor() of core/parallel.h in the run of `ctx`.
inline void ParallelFor(const KernelContext& ctx, int64_t total, int64_t block_size,
                        absl::FunctionRef<void(int64_t begin, int64_t end)> fn) {
  ParallelFor(ctx.run(), total, block_size, fn);
}

class AsyncOpKernel;

class OpKernel {
 public:
  virtual ~OpKernel() = default;
  // Sets every output, or returns an error. Thread-safe.
  virtual absl::Status Compute(KernelContext& ctx) const = 0;
  // Returns true if a run costs no more than a task switch for any input (it only passes handles
  // on, or makes scalars). Such a kernel runs on the thread that made its inputs.
  virtual bool IsCheap() const { return false; }
  // This kernel if it is an AsyncOpKernel, or null.
  virtual const AsyncOpKernel* AsAsync() const { return nullptr; }
};

// Ends one run of an AsyncOpKernel. Copies end the same run.
//
// Thread safety: may be copied, called and dropped on any thread, also when the graph's run is long
// over, which then ignores it.
class AsyncDone {
 public:
  // The receiver of the end of a kernel's run.
  class Target {
   public:
    virtual ~Target() = default;
    // Returns false, and does nothing, if it has been called before.
    virtual bool Done(absl::Status status) = 0;
  };

  // Ends `target`.
  explicit AsyncDone(std::shared_ptr<Target> target) : target_(std::move(target)) {}
  // Not movable: one that is moved from would have no target.
  AsyncDone(const AsyncDone&) = default;
  AsyncDone& operator=(const AsyncDone&) = default;

  // Ends the run: with an OK status all outputs are set. Returns false, without effect, if it has
  // ended before.
  bool operator()(absl::Status status) const { return target_->Done(std::move(status)); }

 private:
  std::shared_ptr<Target> target_;
};

// A kernel that may end on another thread than it began on, later, while no thread waits for it.
class AsyncOpKernel : public OpKernel {
 public:
  // Begins the computation, and calls done() when it has ended: from any thread, also before this
  // returns. `ctx` lives as long as a copy of `done` does. When the run is stopped
  // (ctx.run().stop->AddCallback() tells), the kernel should give up and drop `done`, or call it
  // with any status; the graph's run ends without waiting for it. If all copies of `done` are
  // dropped without a call, the node fails with INTERNAL.
  virtual void ComputeAsync(KernelContext& ctx, AsyncDone done) const = 0;

  // For those who run a kernel without an executor: waits for done(), on this thread.
  absl::Status Compute(KernelContext& ctx) const final;
  const AsyncOpKernel* AsAsync() const final { return this; }
};

// Makes a kernel for a node, or says why there can be none.
using KernelFactory =
    absl::StatusOr<std::unique_ptr<OpKernel>> (*)(const KernelConstruction& construction);

// True for a kernel class that has `absl::Status Init(const KernelConstruction&)`.
template <typename K, typename = void>
struct HasInit : std::false_type {};
template <typename K>
struct HasInit<
    K, std::void_t<decltype(std::declval<K&>().Init(std::declval<const KernelConstruction&>()))>>
    : std::true_type {};

// A factory of the kernel class K, whose Init, if it has one, reads and checks attributes.
template <typename K>
absl::StatusOr<std::unique_ptr<OpKernel>> MakeKernel(
    [[maybe_unused]] const KernelConstruction& construction) {
  auto kernel = std::make_unique<K>();
  if constexpr (HasInit<K>::value) {
    if (absl::Status status = kernel->Init(construction); !status.ok()) return status;
  }
  return kernel;
}

// A factory of a kernel without attributes: the function is its Compute.
template <absl::Status (*Function)(KernelContext&), bool Cheap = false>
absl::StatusOr<std::unique_ptr<OpKernel>> MakeFunctionKernel(const KernelConstruction&) {
  class FunctionKernel final : public OpKernel {
   public:
    absl::Status Compute(KernelContext& ctx) const override { return Function(ctx); }
    bool IsCheap() const override { return Cheap; }
  };
  return std::make_unique<FunctionKernel>();
}

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_OP_KERNEL_H_
