// OpKernel: a kernel with TensorFlow's interface. REGISTER_KERNEL_BUILDER: registers a kernel.
//
//   class ZeroOutOp : public OpKernel {
//    public:
//     explicit ZeroOutOp(OpKernelConstruction* context) : OpKernel(context) {}
//     void Compute(OpKernelContext* context) override { ... }
//   };
//   REGISTER_KERNEL_BUILDER(Name("ZeroOut").Device(DEVICE_CPU), ZeroOutOp);
//
// Kernels run on the CPU. As in TensorFlow, several threads may call Compute concurrently.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_OP_KERNEL_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_OP_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/control_flow.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/eigen_device.h"
#include "tensorflow/core/framework/kernel_def.pb.h"
#include "tensorflow/core/framework/kernel_def_builder.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_requires.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/core/threadpool.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/macros.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace gradflow {
class SessionMetadata;
}  // namespace gradflow

namespace tensorflow {

namespace checkpoint {
class TensorSliceReaderCacheWrapper;
}  // namespace checkpoint

class AsyncOpKernel;
class OpKernel;
class OpKernelContext;
class PersistentTensor;
class RendezvousInterface;
class ResourceMgr;
class ScopedStepContainer;
using gradflow::SessionMetadata;

// The properties of a kernel that all runs share.
namespace compat_internal {

class LibraryKernel;

// Keeps the first error that a kernel reports.
class StatusSink {
 public:
  // Const, because even reading an input that does not exist is an error.
  void SetStatus(const absl::Status& status) const { status_.Update(status); }
  const absl::Status& status() const { return status_; }
  void CtxFailure(const absl::Status& status) { SetStatus(status); }
  void CtxFailureWithWarning(const absl::Status& status) { SetStatus(status); }
  void CtxFailure(const char* file, int line, const absl::Status& status);
  void CtxFailureWithWarning(const char* file, int line, const absl::Status& status) {
    CtxFailure(file, line, status);
  }

 private:
  mutable absl::Status status_;
};
struct KernelInfo {
  NodeDef def;
  DataTypeVector input_types;
  DataTypeVector output_types;
  gradflow::NameRangeMap input_ranges;
  gradflow::NameRangeMap output_ranges;
};
}  // namespace compat_internal

// The argument of a kernel's constructor.
class OpKernelConstruction : public compat_internal::StatusSink {
 public:
  explicit OpKernelConstruction(const gradflow::KernelConstruction& construction);

  const NodeDef& def() const { return info_->def; }
  DeviceType device_type() const { return DeviceType(DEVICE_CPU); }
  int num_inputs() const { return static_cast<int>(info_->input_types.size()); }
  int num_outputs() const { return static_cast<int>(info_->output_types.size()); }
  // Return DT_INVALID and fail the construction if there is no input (output) i.
  DataType input_type(int i) const { return TypeOf("input", info_->input_types, i); }
  DataType output_type(int i) const { return TypeOf("output", info_->output_types, i); }
  const DataTypeVector& input_types() const { return info_->input_types; }
  const DataTypeVector& output_types() const { return info_->output_types; }
  // Returns INVALID_ARGUMENT unless inputs and outputs have exactly these types.
  absl::Status MatchSignature(DataTypeSlice expected_inputs, DataTypeSlice expected_outputs) const;

  template <typename T>
  absl::Status GetAttr(absl::string_view name, T* value) const {
    return GetNodeAttr(info_->def, name, value);
  }
  bool HasAttr(absl::string_view name) const { return HasNodeAttr(info_->def, name); }
  absl::Status allocate_temp(DataType type, const TensorShape& shape, Tensor* out,
                             AllocatorAttributes = {}) const;
  // For TensorFlow 1.x. Also stores the tensor in *out.
  absl::Status allocate_persistent(DataType type, const TensorShape& shape,
                                   PersistentTensor* persistent, Tensor** out) const;
  Env* env() const { return Env::Default(); }
  // The CPU.
  DeviceBase* device() const;
  // Returns null: only the context of a run has the resources of its session.
  ResourceMgr* resource_manager() const { return nullptr; }
  // The newest version, TF_GRAPH_DEF_VERSION, because kernels cannot see the version of their
  // graph.
  int graph_def_version() const;

 private:
  friend class OpKernel;
  DataType TypeOf(absl::string_view kind, const DataTypeVector& types, int i) const;

  std::shared_ptr<const compat_internal::KernelInfo> info_;
};

class OpKernel {
 public:
  explicit OpKernel(OpKernelConstruction* context, bool is_deferred = false)
      : info_(context->info_), is_deferred_(is_deferred) {}
  // Creates a kernel with a different definition of its node, for example without attributes.
  OpKernel(OpKernelConstruction* context, NodeDef&& def, bool is_deferred);
  virtual ~OpKernel() = default;
  OpKernel(const OpKernel&) = delete;
  OpKernel& operator=(const OpKernel&) = delete;

  virtual void Compute(OpKernelContext* context) = 0;
  // Returns this kernel if it is asynchronous, otherwise null.
  virtual AsyncOpKernel* AsAsync() { return nullptr; }
  // Returns true if Compute is expensive enough for a separate task. Inexpensive kernels run inline
  // on the thread that produced their inputs.
  virtual bool IsExpensive() { return true; }
  // Returns the value if the kernel is a constant, otherwise null.
  virtual const Tensor* const_tensor() const { return nullptr; }

  const NodeDef& def() const { return info_->def; }
  const std::string& name() const { return info_->def.name(); }
  const std::string& type_string() const { return info_->def.op(); }
  absl::string_view name_view() const { return name(); }
  absl::string_view type_string_view() const { return type_string(); }
  // Returns the constructor's argument. It has no effect.
  bool is_deferred() const { return is_deferred_; }
  const std::string& requested_device() const { return info_->def.device(); }
  const std::string& requested_input(int i) const { return info_->def.input(i); }
  int num_inputs() const { return static_cast<int>(info_->input_types.size()); }
  int num_outputs() const { return static_cast<int>(info_->output_types.size()); }
  DataType input_type(int i) const { return info_->input_types[i]; }
  DataType output_type(int i) const { return info_->output_types[i]; }
  const DataTypeVector& input_types() const { return info_->input_types; }
  const DataTypeVector& output_types() const { return info_->output_types; }
  // Returns "name:Op" for traces. `verbose` adds the types and shapes of the inputs.
  virtual std::string TraceString(const OpKernelContext& context, bool verbose) const;
  // Return INVALID_ARGUMENT if argument `name` does not exist.
  absl::Status InputRange(absl::string_view name, int* start, int* stop) const;
  absl::Status OutputRange(absl::string_view name, int* start, int* stop) const;

  // ---- TensorFlow 1.x ----

  bool IsLegacyScalar(const TensorShape& shape) const { return shape.dims() == 0; }
  bool IsLegacyVector(const TensorShape& shape) const { return shape.dims() == 1; }
  // Converts an int32 or int64 vector to a shape.
  absl::Status MakeShape(const Tensor& shape, TensorShape* out) const;

 private:
  const std::shared_ptr<const compat_internal::KernelInfo> info_;
  const bool is_deferred_ = false;
};

// An input. Inputs of a reference type have a mutex.
struct TensorValue {
  TensorValue() = default;
  TensorValue(Tensor* t) : tensor(t) {}  // NOLINT: as in TensorFlow
  TensorValue(mutex* mu, Tensor* t) : mutex_if_ref(mu), tensor(t) {}
  Tensor* operator->() const { return tensor; }
  bool is_ref() const { return mutex_if_ref != nullptr; }
  // Return a reference type for a reference. dtype_safe() locks the mutex of the reference.
  DataType dtype() const { return is_ref() ? MakeRefType(tensor->dtype()) : tensor->dtype(); }
  DataType dtype_safe() const {
    if (!is_ref()) return dtype();
    const tf_shared_lock lock(*mutex_if_ref);
    return dtype();
  }

  mutex* mutex_if_ref = nullptr;
  Tensor* tensor = nullptr;
};

// A kernel that may return before its outputs are computed.
class AsyncOpKernel : public OpKernel {
 public:
  using OpKernel::OpKernel;
  using DoneCallback = std::function<void()>;

  // Starts the computation. Calls `done` from any thread when the computation has ended. `context`
  // lives until then. A stopped run does not wait for the kernel.
  virtual void ComputeAsync(OpKernelContext* context, DoneCallback done) = 0;
  // Computes and waits.
  void Compute(OpKernelContext* context) override;
  AsyncOpKernel* AsAsync() override { return this; }
};

// Walks over the tensors of a list argument.
template <typename List, typename Element>
class OpArgIterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = Element;
  using pointer = Element*;
  using reference = Element&;
  using difference_type = ptrdiff_t;

  OpArgIterator(const List* list, int i) : list_(list), i_(i) {}
  decltype(auto) operator*() const { return (*list_)[i_]; }
  pointer operator->() const { return &(*list_)[i_]; }
  OpArgIterator& operator++() { return ++i_, *this; }
  OpArgIterator operator++(int) {
    const OpArgIterator before = *this;
    ++i_;
    return before;
  }
  bool operator!=(const OpArgIterator& other) const { return !(*this == other); }
  bool operator==(const OpArgIterator& other) const {
    return list_ == other.list_ && i_ == other.i_;
  }

 private:
  const List* list_;
  int i_;
};

// The inputs of a list argument.
class OpInputList {
 public:
  using Iterator = OpArgIterator<OpInputList, const Tensor>;

  OpInputList() = default;
  OpInputList(OpKernelContext* context, int start, int stop)
      : context_(context), start_(start), stop_(stop) {}
  int size() const { return stop_ - start_; }
  const Tensor& operator[](int i) const;
  Iterator begin() const { return Iterator(this, 0); }
  Iterator end() const { return Iterator(this, size()); }

 private:
  OpKernelContext* context_ = nullptr;
  int start_ = 0;
  int stop_ = 0;
};

// The references of a list argument; see OpKernelContext::mutable_input.
class OpMutableInputList {
 public:
  OpMutableInputList() = default;
  OpMutableInputList(OpKernelContext* context, int start, int stop)
      : context_(context), start_(start), stop_(stop) {}
  int size() const { return stop_ - start_; }
  Tensor at(int i, bool lock_held);
  mutex* ref_mutex(int i);

 private:
  OpKernelContext* context_ = nullptr;
  int start_ = 0;
  int stop_ = 0;
};

// The outputs of a list argument.
class OpOutputList {
 public:
  using Iterator = OpArgIterator<OpOutputList, Tensor*>;

  OpOutputList() = default;
  OpOutputList(OpKernelContext* context, int start, int stop)
      : context_(context), start_(start), stop_(stop) {}
  int size() const { return stop_ - start_; }
  Tensor* operator[](int i) const;
  Iterator begin() const { return Iterator(this, 0); }
  Iterator end() const { return Iterator(this, size()); }
  bool required(int i) const;
  absl::Status allocate(int i, const TensorShape& shape, Tensor** out);
  void set(int i, const Tensor& tensor);
  void set_ref(int i, mutex* mu, Tensor* tensor);
  DataType expected_output_dtype(int i) const;

 private:
  OpKernelContext* context_ = nullptr;
  int start_ = 0;
  int stop_ = 0;
};

// One run of a kernel.
class OpKernelContext : public compat_internal::StatusSink {
 public:
  // The parts of a context without a session. Borrows everything that it points to.
  struct Params {
    // The inputs: a span, or a pointer to a vector.
    class Inputs {
     public:
      Inputs& operator=(gtl::ArraySlice<TensorValue> values) { return values_ = values, *this; }
      template <typename Container>
      Inputs& operator=(const Container* values) {
        return values_ = *values, *this;
      }
      size_t size() const { return values_.size(); }
      bool empty() const { return values_.empty(); }
      const TensorValue& operator[](size_t i) const { return values_[i]; }

     private:
      gtl::ArraySlice<TensorValue> values_;
    };
    static constexpr int kNeverForward = -2;
    static constexpr int kNoReservation = -1;

    OpKernel* op_kernel = nullptr;
    DeviceBase* device = nullptr;
    ResourceMgr* resource_manager = nullptr;
    Inputs inputs;
    int64_t step_id = 0;
    FrameAndIter frame_iter;
    RendezvousInterface* rendezvous = nullptr;
    CancellationManager* cancellation_manager = nullptr;
    ScopedStepContainer* step_container = nullptr;
    const SessionMetadata* session_metadata = nullptr;
    std::optional<absl::Time> deadline;
    bool is_input_dead = false;
    std::function<void(std::function<void()>)>* runner = nullptr;
    // Null if all outputs are required.
    const bool* output_required_array = nullptr;
    // No effect.
    checkpoint::TensorSliceReaderCacheWrapper* slice_reader_cache = nullptr;
    const AllocatorAttributes* output_attr_array = nullptr;
    const int* forward_from_array = nullptr;
    bool record_tensor_accesses = false;
  };

  OpKernelContext(const OpKernel& kernel, gradflow::KernelContext& context);
  // Creates a context without a session. It allocates from the system, and its loops use all
  // threads.
  explicit OpKernelContext(Params* params);
  OpKernelContext(Params* params, int num_outputs);
  ~OpKernelContext();
  OpKernelContext(const OpKernelContext&) = delete;
  OpKernelContext& operator=(const OpKernelContext&) = delete;

  const OpKernel& op_kernel() const { return *kernel_; }
  DeviceBase* device() const { return device_; }
  // Returns the resources of the session. Returns null without a session and during constant
  // folding.
  ResourceMgr* resource_manager() const;
  int64_t step_id() const { return context_->run().step_id; }
  // The values of the Params. In a session, {0, 0} and null.
  FrameAndIter frame_iter() const { return frame_iter_; }
  RendezvousInterface* rendezvous() const { return rendezvous_; }
  CancellationManager* cancellation_manager() const { return cancellation_manager_; }
  ScopedStepContainer* step_container() const;
  const SessionMetadata* session_metadata() const;
  bool is_input_dead() const;
  // Empty in a session, even if its run has a timeout.
  std::optional<absl::Time> deadline() const;
  // Runs a function. In a session, runs it immediately on the calling thread.
  std::function<void(std::function<void()>)>* runner() const;
  Env* env() const { return device_->env(); }
  Allocator* get_allocator(AllocatorAttributes attributes) {
    return device_->GetAllocator(attributes);
  }
  // gradflow keeps no stack traces.
  std::nullptr_t stack_trace() const { return nullptr; }

  // ---- Inputs ----

  int num_inputs() const { return context_->num_inputs(); }
  // Returns DT_INVALID and fails the run if there is no input i.
  DataType input_dtype(int i) const;
  absl::Status input_dtype(absl::string_view name, DataType* dtype) const;
  // Returns INVALID_ARGUMENT if the inputs or outputs have other types.
  absl::Status MatchSignature(DataTypeSlice expected_inputs, DataTypeSlice expected_outputs) const;
  // Returns true unless the input is absent.
  bool has_input(int i) const;
  // Returns an empty tensor and fails the run if there is no input i.
  const Tensor& input(int i) const;
  // Returns INVALID_ARGUMENT if there is no input i or it is a reference.
  absl::StatusOr<const Tensor*> get_input(int i) const;
  absl::Status input(absl::string_view name, const Tensor** tensor) const;
  absl::Status input_list(absl::string_view name, OpInputList* list);
  // Returns false and fails the run if the inputs have different shapes.
  bool ValidateInputsAreSameShape(OpKernel* op);

  // ---- References to variables. `lock_held`: the caller holds input_ref_mutex(i) ----

  bool input_is_ref(int i) const;
  mutex* input_ref_mutex(int i);
  absl::Status input_ref_mutex(absl::string_view name, mutex** out_mutex);
  // Returns the variable's value. The tensor shares the elements, so readers of the variable see
  // the values that the kernel writes. Returns an uninitialized tensor if the variable has no
  // value.
  Tensor mutable_input(int i, bool lock_held);
  absl::Status mutable_input(absl::string_view name, Tensor* tensor, bool lock_held);
  absl::Status mutable_input_list(absl::string_view name, OpMutableInputList* list);
  // Replaces the variable's value.
  void replace_ref_input(int i, const Tensor& tensor, bool lock_held);
  absl::Status replace_ref_input(absl::string_view name, const Tensor& tensor, bool lock_held);
  // Deletes the tensor of the reference in a context without a session.
  void delete_ref_input(int i, bool lock_held);
  // Makes the output a reference to the variable of the input.
  void forward_ref_input_to_ref_output(int input, int output);

  // ---- Outputs ----

  int num_outputs() const { return context_->num_outputs(); }
  // Returns DT_INVALID and fails the run if there is no output i.
  DataType expected_output_dtype(int i) const;
  // Returns INTERNAL if there is no output i. In that case, set_output fails the run.
  absl::Status allocate_output(int i, const TensorShape& shape, Tensor** out);
  absl::Status allocate_output(absl::string_view name, const TensorShape& shape, Tensor** out);
  absl::Status allocate_output(int i, const TensorShape& shape, Tensor** out, AllocatorAttributes) {
    return allocate_output(i, shape, out);
  }
  absl::Status allocate_output(absl::string_view name, const TensorShape& shape, Tensor** out,
                               AllocatorAttributes) {
    return allocate_output(name, shape, out);
  }
  // Makes the output a reference to the kernel's tensor. Fails the run in a session, where all
  // references refer to variables.
  void set_output_ref(int i, mutex* mu, Tensor* tensor);
  absl::Status set_output_ref(absl::string_view name, mutex* mu, Tensor* tensor);
  // Returns false if no node reads the output. In a session, all outputs are required.
  bool output_required(int i) const;
  // Moves the output out of the context to the caller; null if it has not been set.
  TensorValue release_output(int i);
  absl::Status output_list(absl::string_view name, OpOutputList* list);
  void set_output(int i, const Tensor& tensor);
  absl::Status set_output(absl::string_view name, const Tensor& tensor);
  // Returns null if the output has not been set.
  Tensor* mutable_output(int i) {
    return HasOutput(i) && is_set_[i] ? context_->mutable_output(i) : nullptr;
  }
  absl::Status mutable_output(absl::string_view name, Tensor** tensor);
  // Allocates output i in place in the first candidate input that is not needed elsewhere and has
  // the output's type and number of elements. Otherwise allocates a new buffer. Stores the index of
  // the used candidate, or -1, in *forwarded.
  absl::Status forward_input_or_allocate_output(gtl::ArraySlice<int> candidates, int i,
                                                const TensorShape& shape, Tensor** out,
                                                int* forwarded = nullptr);
  absl::Status forward_input_or_allocate_output(gtl::ArraySlice<absl::string_view> candidates,
                                                absl::string_view name, const TensorShape& shape,
                                                Tensor** out);

  // Takes the memory of an input as a tensor of this type and shape. Returns null if the input is a
  // reference, has another type or number of elements, or is needed elsewhere. Never takes strings.
  std::unique_ptr<Tensor> forward_input(int input, int output, DataType dtype,
                                        const TensorShape& shape, MemoryType,
                                        const AllocatorAttributes&);
  // Overloads for an output. They return false or FAILED_PRECONDITION if forwarding is not
  // possible.
  bool forward_input_to_output_with_shape(int input, int output, const TensorShape& shape,
                                          Tensor** out);
  absl::Status forward_input_to_output_with_shape(absl::string_view input, absl::string_view output,
                                                  const TensorShape& shape, Tensor** out);
  absl::Status forward_input_or_allocate_temp(gtl::ArraySlice<int> candidates, DataType type,
                                              const TensorShape& shape, const AllocatorAttributes&,
                                              Tensor* out);
  absl::Status forward_input_or_allocate_temp(gtl::ArraySlice<int> candidates, DataType type,
                                              const TensorShape& shape, Tensor* out) {
    return forward_input_or_allocate_temp(candidates, type, shape, AllocatorAttributes(), out);
  }

  absl::Status allocate_temp(DataType type, const TensorShape& shape, Tensor* out) {
    return context_->AllocateTemp(type, shape, out);
  }
  absl::Status allocate_temp(DataType type, const TensorShape& shape, Tensor* out,
                             AllocatorAttributes, AllocationAttributes = {}) {
    return context_->AllocateTemp(type, shape, out);
  }
  // For TensorFlow 1.x. Also stores the tensor in *out.
  absl::Status allocate_persistent(DataType type, const TensorShape& shape,
                                   PersistentTensor* persistent, Tensor** out,
                                   AllocatorAttributes = {});
  // No effect: sessions count memory per run, not per kernel.
  bool track_allocations() const { return false; }
  void record_temp_memory_allocation(int64, const Tensor&) {}
  void record_persistent_memory_allocation(int64, int64 = -1) {}
  AllocatorAttributes input_alloc_attr(int) const { return {}; }
  AllocatorAttributes output_alloc_attr(int) const { return {}; }

#ifdef GRADFLOW_EIGEN_VIEWS
  // The device for Eigen expressions: `out.device(context->eigen_cpu_device()) = a + b`. It
  // computes on the calling thread. There are no other devices.
  const Eigen::ThreadPoolDevice& eigen_cpu_device() const { return compat_internal::CpuDevice(); }
  template <typename Device>
  const Device& eigen_device() const {
    return compat_internal::EigenDevice<Device>();
  }
#endif

 private:
  friend class compat_internal::LibraryKernel;
  // The state of a context without a session.
  struct Own;

  bool HasInput(int i) const;
  bool HasOutput(int i) const { return i >= 0 && i < num_outputs(); }
  absl::Status CheckOutput(int i) const;

  std::unique_ptr<Own> own_;
  // Null if the Params contain no kernel.
  const OpKernel* kernel_;
  gradflow::KernelContext* context_;
  std::optional<DeviceBase> own_device_;
  DeviceBase* device_;
  FrameAndIter frame_iter_{0, 0};
  RendezvousInterface* rendezvous_ = nullptr;
  CancellationManager* cancellation_manager_ = nullptr;
  // True for each output that has been set.
  absl::InlinedVector<bool, 8> is_set_;
  // Keeps the session's resources alive.
  mutable std::shared_ptr<ResourceMgr> resources_;
  // The mutexes that input_ref_mutex has returned, and the values that mutable_input has returned,
  // together with their variables.
  struct RefMutex;
  std::vector<std::shared_ptr<RefMutex>> ref_mutexes_;
  std::vector<std::pair<const void*, Tensor>> mutable_values_;
};

// A tensor that a TensorFlow 1.x kernel keeps between its runs.
class PersistentTensor {
 public:
  PersistentTensor() = default;
  explicit PersistentTensor(const Tensor& tensor) : tensor_(tensor) {}
  Tensor* AccessTensor(OpKernelConstruction*) { return &tensor_; }
  Tensor* AccessTensor(OpKernelContext*) { return &tensor_; }
  bool IsInitialized() const { return tensor_.IsInitialized(); }
  int64 NumElements() const { return tensor_.NumElements(); }
  int64 AllocatedBytes() const { return static_cast<int64>(tensor_.AllocatedBytes()); }

 private:
  Tensor tensor_;
};

namespace compat_internal {

// Wraps a tensorflow::OpKernel as a gradflow::OpKernel.
absl::StatusOr<std::unique_ptr<gradflow::OpKernel>> WrapKernel(
    const gradflow::KernelConstruction& construction, OpKernel* (*make)(OpKernelConstruction*));

template <typename K>
OpKernel* NewKernel(OpKernelConstruction* context) {
  return new K(context);
}
template <typename K>
absl::StatusOr<std::unique_ptr<gradflow::OpKernel>> MakeKernel(
    const gradflow::KernelConstruction& construction) {
  return WrapKernel(construction, &NewKernel<K>);
}

}  // namespace compat_internal

// Creates a kernel of a class.
using OpKernelFactory = OpKernel* (*)(OpKernelConstruction*);

struct KernelRegistrar {
  KernelRegistrar(const KernelDefBuilder& builder, absl::string_view class_name,
                  gradflow::KernelFactory factory, OpKernelFactory make);
};

// ---- Kernels without a session ----

// The label of kernels that TensorFlow compiles at run time. gradflow has no such kernels, and
// ignores the label in registrations.
inline constexpr const char* kJitKernelLabel = "JITCompiledKernel";

using DeviceTypeVector = gtl::InlinedVector<DeviceType, 4>;
using PrioritizedDeviceTypeVector = gtl::InlinedVector<std::pair<DeviceType, int32>, 4>;

// Creates a kernel for a node: a kernel that the program has registered for this type of device, or
// a gradflow kernel, which runs on the CPU. Returns NOT_FOUND if there is none, and
// INVALID_ARGUMENT if several kernels match.
absl::StatusOr<std::unique_ptr<OpKernel>> CreateOpKernel(const DeviceType& device_type,
                                                         const NodeDef& node);
template <typename S>
std::unique_ptr<OpKernel> CreateOpKernel(const DeviceType& device_type, DeviceBase*, Allocator*,
                                         const NodeDef& node, int /*graph_def_version*/,
                                         S* status) {
  absl::StatusOr<std::unique_ptr<OpKernel>> kernel = CreateOpKernel(device_type, node);
  *status = kernel.status();
  return kernel.ok() ? *std::move(kernel) : nullptr;
}

// Returns true if CreateOpKernel finds a kernel.
bool KernelDefAvailable(const DeviceType& device_type, const NodeDef& node);
// Finds the definition and the class name of a kernel that the program has registered.
absl::Status FindKernelDef(const DeviceType& device_type, const NodeDef& node,
                           const gradflow::KernelDef** def, std::string* kernel_class_name);
// Stores the elements of `device_types` that have a kernel for the node, by descending priority. A
// node on a machine other than `local_address` may run on all of them.
absl::Status SupportedDeviceTypesForNode(
    const std::vector<DeviceType>& device_types, const NodeDef& node,
    PrioritizedDeviceTypeVector* devices,
    const DeviceNameUtils::ParsedName* local_address = nullptr);
absl::Status SupportedDeviceTypesForNode(const std::vector<DeviceType>& device_types,
                                         const NodeDef& node, DeviceTypeVector* devices);
// Return the kernels that the program has registered.
gradflow::KernelList GetAllRegisteredKernels();
gradflow::KernelList GetFilteredRegisteredKernels(
    const std::function<bool(const gradflow::KernelDef&)>& predicate);
gradflow::KernelList GetRegisteredKernelsForOp(absl::string_view op_name);
std::string KernelsRegisteredForOp(absl::string_view op_name);
void LogAllRegisteredKernels();

namespace register_kernel {
using Name = KernelDefBuilder;
}  // namespace register_kernel

}  // namespace tensorflow

// A trailing semicolon is optional.
#define REGISTER_KERNEL_BUILDER(builder, ...) \
  GRADFLOW_COMPAT_REGISTER_KERNEL(__COUNTER__, builder, __VA_ARGS__)
#define GRADFLOW_COMPAT_REGISTER_KERNEL(counter, builder, ...) \
  GRADFLOW_COMPAT_REGISTER_KERNEL_IMPL(counter, builder, __VA_ARGS__)
#define GRADFLOW_COMPAT_REGISTER_KERNEL_IMPL(counter, builder, ...)                \
  static const ::tensorflow::KernelRegistrar gradflow_kernel_registrar_##counter   \
      TF_ATTRIBUTE_UNUSED(::tensorflow::register_kernel::builder, #__VA_ARGS__,    \
                          &::tensorflow::compat_internal::MakeKernel<__VA_ARGS__>, \
                          &::tensorflow::compat_internal::NewKernel<__VA_ARGS__>);
// Calls macro(name, builder, ...) for a builder such as Name("Relu").Device(DEVICE_CPU).
#define TF_EXTRACT_KERNEL_NAME(macro, builder, ...) \
  GRADFLOW_COMPAT_EXTRACT_NAME(macro, GRADFLOW_COMPAT_NAME_##builder, __VA_ARGS__)
#define GRADFLOW_COMPAT_NAME_Name(name) name,
#define GRADFLOW_COMPAT_EXTRACT_NAME(...) GRADFLOW_COMPAT_CALL_WITH_NAME(__VA_ARGS__)
#define GRADFLOW_COMPAT_CALL_WITH_NAME(macro, name, rest, ...) \
  macro(name, ::tensorflow::register_kernel::Name(name) rest, __VA_ARGS__)
#define REGISTER_SYSTEM_KERNEL_BUILDER(builder, ...) REGISTER_KERNEL_BUILDER(builder, __VA_ARGS__)

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_OP_KERNEL_H_
