// OpKernel: computes a node on a device. It reads its attributes from a KernelConstruction when it
// is made, and its inputs from a KernelContext in each run.
//
// A kernel is made once for its node and then run any number of times, even concurrently. Compute
// is therefore thread-safe: it guards any state that it changes. Compute should return errors, not
// throw; the executor turns exceptions into errors. Compute checks its inputs even if the shape
// function has checked them. An error states the local fact ("min must be a scalar, but has shape
// [2]"); the executor adds "node 'name' (Op): ".
//
// A kernel that waits for something outside of its thread (a timer, a queue, another machine, a
// function) is an AsyncOpKernel, which holds no thread while it waits.
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
class ExecutionFrame;
class ResourceManager;

// The information that a kernel may read while it is made. Owns nothing.
class KernelConstruction {
 public:
  // `input_types` and `output_types` have the types of the node's inputs and outputs, with lists
  // flattened. `constant` is the result of constant(). All arguments are borrowed.
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
  // Data inputs and outputs. Each element of a list counts as one.
  int num_inputs() const { return static_cast<int>(input_types_.size()); }
  int num_outputs() const { return static_cast<int>(output_types_.size()); }
  DataType input_type(int i) const { return input_types_[i]; }
  DataType output_type(int i) const { return output_types_[i]; }
  // For a Const, returns its value if the graph has already decoded it, otherwise null. Sharing the
  // tensor saves a copy. For other ops, returns the value of the largest constant input, or null. A
  // kernel may cache data derived from this value. A run may feed another tensor, so the kernel
  // must hold this tensor and compare the input with it by SharesBufferWith().
  const Tensor* constant() const { return constant_; }

  // Reads an attribute. Returns NOT_FOUND if the node has no attribute of this name, and
  // INVALID_ARGUMENT if the attribute has another type.
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

// One run of a kernel: its inputs and outputs. Used by one thread at a time.
class KernelContext {
 public:
  // ForwardInputOrAllocateOutput may take over an element of `inputs`. `outputs` are unset or
  // default-constructed. All arguments are borrowed.
  KernelContext(absl::Span<Tensor> inputs, absl::Span<Tensor> outputs,
                absl::Span<const DataType> output_types, const RunContext& run)
      : inputs_(inputs), outputs_(outputs), output_types_(output_types), run_(run) {}

  // Data inputs and outputs. Each element of a list counts as one.
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  // An index out of range ends the program, here and in mutable_output().
  const Tensor& input(int i) const {
    internal::RequireIndex("KernelContext::input", i, num_inputs());
    return inputs_[i];
  }
  DataType input_dtype(int i) const { return input(i).dtype(); }
  DataType expected_output_dtype(int i) const {
    internal::RequireIndex("KernelContext::expected_output_dtype", i, num_outputs());
    return output_types_[i];
  }

  // Allocates output i with uninitialized elements and returns it in *out.
  absl::Status AllocateOutput(int i, const TensorShape& shape, Tensor** out);
  // Reuses the memory of input `input` for output i if nothing else reads the input, the types and
  // numbers of elements match, and the elements are not strings. Otherwise allocates the output. If
  // *out reuses the input's memory, the input stays readable until output i is replaced: read each
  // element before writing it.
  absl::Status ForwardInputOrAllocateOutput(int input, int i, const TensorShape& shape,
                                            Tensor** out);
  // Makes `tensor` output i, sharing its elements.
  void set_output(int i, Tensor tensor) { *mutable_output(i) = std::move(tensor); }
  Tensor* mutable_output(int i) {
    internal::RequireIndex("KernelContext::mutable_output", i, num_outputs());
    return &outputs_[i];
  }
  // Sets the expected number of characters of the strings in the next output that is allocated. The
  // characters are charged to the session's memory before the kernel makes the strings. By default,
  // each string of an output is expected to be as long as the longest string of the inputs. This
  // default is enough for kernels that copy strings, but charges too much if the lengths differ.
  // The actual number replaces the charge after the kernel has ended.
  void ExpectStringBytes(double bytes) { expected_string_bytes_ = bytes; }
  // Allocates scratch memory. It lives until *out is destroyed.
  absl::Status AllocateTemp(DataType dtype, const TensorShape& shape, Tensor* out);
  const std::shared_ptr<Allocator>& allocator() const { return *run_.allocator; }

  // Returns the state that all kernels of the run share, for loops, resources and functions.
  const RunContext& run() const { return run_; }
  // Returns the session's resources; null without a session, and while constants are folded.
  ResourceManager* resource_manager() const { return run_.resources; }

  // Returns a context with other inputs and the same outputs, for a kernel that delegates to
  // another kernel. Borrows `inputs` and this context's outputs.
  KernelContext WithInputs(absl::Span<Tensor> inputs) const {
    return KernelContext(inputs, outputs_, output_types_, run_);
  }

  // Marks output i dead: it has no value, because the branch that makes it is not taken. Nodes that
  // read a dead output do not run, and their outputs are dead.
  void SetOutputDead(int i) { dead_outputs_.push_back(i); }
  absl::Span<const int> dead_outputs() const { return dead_outputs_; }

  // ---- For the executor ----

  // Sets the frame that executes the node, and the node. Kernels that call functions need them.
  void SetPlanNode(ExecutionFrame* run, int node) {
    frame_ = run;
    plan_node_ = node;
  }
  ExecutionFrame* frame() const { return frame_; }
  int plan_node() const { return plan_node_; }
  // From now on, adds the bytes of each allocated tensor to *total. Null ends the counting.
  void CountAllocatedBytes(int64_t* total) { allocated_bytes_ = total; }

  // ---- For kernels that are busy outside of ParallelFor() ----

  // Returns true if the run must end early. ParallelFor() checks this itself.
  bool ShouldStop() const { return run_.ShouldStop(); }

  // ---- Checks ----

  // These return INVALID_ARGUMENT with the expected and the actual value, and the input's name:
  // "Shape must be rank 0 but is rank 2: min has shape [2,3]"
  absl::Status CheckScalar(int i, absl::string_view name) const;
  absl::Status CheckVector(int i, absl::string_view name) const;
  absl::Status CheckRank(int i, absl::string_view name, int rank) const;
  // "scale must have shape [64], but has shape [32]"
  absl::Status CheckShape(int i, absl::string_view name, const TensorShape& expected) const;
  // "Dimension 0 in both shapes must be equal, but are 2 and 3: gradients has shape [2], ..."
  absl::Status CheckSameShape(int i, absl::string_view name_i, int j,
                              absl::string_view name_j) const;
  // Returns the elements of an int16, int32 or int64 input, widened to int64. For inputs that hold
  // sizes or axes: returns INVALID_ARGUMENT if there are more than kMaxDims elements, the maximum
  // rank of a shape.
  absl::StatusOr<DimVector> Ints(int i, absl::string_view name) const;
  // Returns the element of a scalar int16, int32 or int64 input.
  absl::StatusOr<int64_t> ScalarInt(int i, absl::string_view name) const;

 private:
  // Returns the length of the longest string of the inputs.
  size_t LongestString();

  absl::Span<Tensor> inputs_;
  absl::Span<Tensor> outputs_;
  absl::Span<const DataType> output_types_;
  const RunContext& run_;
  int64_t* allocated_bytes_ = nullptr;
  // Negative if ExpectStringBytes() has not been called for the next output.
  double expected_string_bytes_ = -1;
  // Negative if not known yet.
  int64_t longest_string_ = -1;
  absl::InlinedVector<int, 2> dead_outputs_;
  ExecutionFrame* frame_ = nullptr;
  int plan_node_ = -1;
};

// Calls ParallelFor() (core/parallel.h) in the run of `ctx`.
inline void ParallelFor(const KernelContext& ctx, int64_t total, int64_t block_size,
                        absl::FunctionRef<void(int64_t begin, int64_t end)> fn) {
  ParallelFor(ctx.run(), total, block_size, fn);
}

class AsyncOpKernel;

class OpKernel {
 public:
  virtual ~OpKernel() = default;
  // Sets every output or marks it dead, or returns an error. Thread-safe.
  virtual absl::Status Compute(KernelContext& ctx) const = 0;
  // Returns true if Compute never costs more than a task switch, for example because it only
  // forwards tensors or makes scalars. It then runs on the thread that made the node ready.
  virtual bool IsCheap() const { return false; }
  // Returns this kernel if it is an AsyncOpKernel, otherwise null.
  virtual const AsyncOpKernel* AsAsync() const { return nullptr; }
};

// Ends one run of an AsyncOpKernel. Copies end the same run.
//
// Thread safety: may be copied, called and dropped on any thread, even after the graph's run is
// over. The run then ignores the call.
class AsyncDone {
 public:
  // Receives the status of a kernel's run.
  class Target {
   public:
    virtual ~Target() = default;
    // Returns false and has no effect if it has been called before.
    virtual bool Done(absl::Status status) = 0;
  };

  // Makes a callback that calls target->Done().
  explicit AsyncDone(std::shared_ptr<Target> target) : target_(std::move(target)) {}
  // A move copies, because a moved-from object would have no target.
  AsyncDone(const AsyncDone&) = default;
  AsyncDone& operator=(const AsyncDone&) = default;

  // Ends the run. Returns false and has no effect if the run has already ended. REQUIRES: all
  // outputs are set if `status` is OK
  bool operator()(absl::Status status) const { return target_->Done(std::move(status)); }

 private:
  std::shared_ptr<Target> target_;
};

// A kernel that may end later and on another thread. No thread waits for it.
class AsyncOpKernel : public OpKernel {
 public:
  // Begins the computation. The kernel calls done() when it has ended, from any thread, possibly
  // before ComputeAsync returns. `ctx` lives as long as a copy of `done`. If all copies of `done`
  // are dropped without a call, the node fails with INTERNAL.
  //
  // When the graph's run is stopped, it ends without waiting for the kernel. The kernel should
  // give up and drop `done`, or call it with any status. ctx.run().stop->AddCallback() notifies it.
  virtual void ComputeAsync(KernelContext& ctx, AsyncDone done) const = 0;

  // Runs the kernel without an executor: calls ComputeAsync and waits for done() on this thread.
  absl::Status Compute(KernelContext& ctx) const final;
  const AsyncOpKernel* AsAsync() const final { return this; }
};

// Makes a kernel for a node, or returns an error if the kernel does not support the node.
using KernelFactory =
    absl::StatusOr<std::unique_ptr<OpKernel>> (*)(const KernelConstruction& construction);

// True for a kernel class that has `absl::Status Init(const KernelConstruction&)`.
template <typename K, typename = void>
struct HasInit : std::false_type {};
template <typename K>
struct HasInit<
    K, std::void_t<decltype(std::declval<K&>().Init(std::declval<const KernelConstruction&>()))>>
    : std::true_type {};

// A KernelFactory for the class K. Calls K::Init, if it exists; K::Init reads and checks the
// attributes.
template <typename K>
absl::StatusOr<std::unique_ptr<OpKernel>> MakeKernel(
    [[maybe_unused]] const KernelConstruction& construction) {
  auto kernel = std::make_unique<K>();
  if constexpr (HasInit<K>::value) {
    if (absl::Status status = kernel->Init(construction); !status.ok()) return status;
  }
  return kernel;
}

// A KernelFactory for a kernel without attributes, whose Compute is Function.
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
