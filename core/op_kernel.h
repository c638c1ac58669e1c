// OpKernel: what runs a node on a device; KernelConstruction and KernelContext: what it sees when
// it is made and when it runs.
//
// A kernel is made once for a node of a plan and then run any number of times, also concurrently:
// Compute must not change the kernel. It checks its inputs, whatever the shape function has
// checked, and returns a status; errors say the local fact ("min must be a scalar, but has shape
// [2]"), and the executor adds "node 'name' (Op): ". It does not throw.
#ifndef GRADFLOW_CORE_OP_KERNEL_H_
#define GRADFLOW_CORE_OP_KERNEL_H_

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/types.h"

#pragma GCC visibility push(default)
namespace gradflow {

class NodeDef;
class OpDef;
class ResourceManager;

// What a kernel may read while it is made. Borrows everything.
class KernelConstruction {
 public:
  // The types are those of the node's inputs and outputs, lists laid out.
  KernelConstruction(const NodeDef& node, const OpDef& op_def,
                     absl::Span<const DataType> input_types,
                     absl::Span<const DataType> output_types)
      : node_(node), op_def_(op_def), input_types_(input_types), output_types_(output_types) {}

  // The node and its op's definition.
  const NodeDef& def() const { return node_; }
  const OpDef& op_def() const { return op_def_; }
  // Data inputs and outputs; each element of a list is one.
  int num_inputs() const { return static_cast<int>(input_types_.size()); }
  int num_outputs() const { return static_cast<int>(output_types_.size()); }
  DataType input_type(int i) const { return input_types_[i]; }
  DataType output_type(int i) const { return output_types_[i]; }

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
};

// One run of a kernel: its inputs, and the outputs to be. Used by one thread at a time.
class KernelContext {
 public:
  // `inputs` may be moved from by ForwardInput; `outputs` are default-constructed. All borrowed.
  KernelContext(absl::Span<Tensor> inputs, absl::Span<Tensor> outputs,
                absl::Span<const DataType> output_types,
                const std::shared_ptr<Allocator>& allocator, ResourceManager* resources = nullptr)
      : inputs_(inputs),
        outputs_(outputs),
        output_types_(output_types),
        allocator_(allocator),
        resources_(resources) {}

  // Data inputs and outputs; each element of a list is one.
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  const Tensor& input(int i) const { return inputs_[i]; }
  DataType input_dtype(int i) const { return inputs_[i].dtype(); }
  DataType expected_output_dtype(int i) const { return output_types_[i]; }

  // Makes output i, with elements not initialised, and returns it through *out.
  absl::Status AllocateOutput(int i, const TensorShape& shape, Tensor** out);
  // The same, but over the elements of input `input` if no one else needs them, and they are no
  // strings and have the output's type and number: then *out aliases the input (which stays
  // readable), and each element must be read before it is written.
  absl::Status ForwardInputOrAllocateOutput(int input, int i, const TensorShape& shape,
                                            Tensor** out);
  // Makes `tensor` output i, sharing its elements.
  void set_output(int i, Tensor tensor) { outputs_[i] = std::move(tensor); }
  Tensor* mutable_output(int i) { return &outputs_[i]; }
  // How many characters the strings will have of the next output that is allocated: they count as
  // memory of the session while the output lives. Without it, an output of more strings than the
  // inputs have is taken to repeat them all equally often, and for others there is nothing to
  // expect: their characters are counted when the kernel is done.
  void ExpectStringBytes(double bytes) { expected_string_bytes_ = bytes; }
  // Memory that lives until the tensor is dropped.
  absl::Status AllocateTemp(DataType dtype, const TensorShape& shape, Tensor* out);
  const std::shared_ptr<Allocator>& allocator() const { return allocator_; }

  // What the session keeps for kernels; null if a kernel is run without a session, also while a
  // plan is made.
  ResourceManager* resource_manager() const { return resources_; }

  // From now on adds the bytes of each tensor that is allocated to *total; null for no more.
  void CountAllocatedBytes(int64_t* total) { allocated_bytes_ = total; }

  // Whether the run is to end early: see core/parallel.h, whose loops ask by themselves.
  bool ShouldStop() const { return gradflow::ShouldStop(); }

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
  // Of an output of so many strings, if nothing else is expected.
  double RepeatedStringBytes(int64_t strings) const;

  absl::Span<Tensor> inputs_;
  absl::Span<Tensor> outputs_;
  absl::Span<const DataType> output_types_;
  const std::shared_ptr<Allocator>& allocator_;
  ResourceManager* const resources_;
  int64_t* allocated_bytes_ = nullptr;
  // Negative if nothing is expected.
  double expected_string_bytes_ = -1;
};

class OpKernel {
 public:
  virtual ~OpKernel() = default;
  // Sets every output, or returns an error. Thread-safe.
  virtual absl::Status Compute(KernelContext& ctx) const = 0;
  // Whether a run costs no more than a task switch whatever the input (it only passes handles
  // on, or makes scalars): such a kernel runs on the thread that made its inputs.
  virtual bool IsCheap() const { return false; }
};

// Makes a kernel for a node, or says why there can be none.
using KernelFactory =
    absl::StatusOr<std::unique_ptr<OpKernel>> (*)(const KernelConstruction& construction);

// Whether a kernel class has `absl::Status Init(const KernelConstruction&)`.
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
