#include "tensorflow/core/framework/op_kernel.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/resource_handle.h"
#include "gradflow/proto/op_def.pb.h"
#include "tensorflow/core/framework/name_ranges.h"
#include "tensorflow/core/framework/tensor_util.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow/core/public/version.h"
#include "tensorflow/core/util/work_sharder.h"

namespace tensorflow {
namespace {

// Returns an error unless the argument is a single tensor.
absl::Status OnlyOne(absl::string_view kind, absl::string_view name, int start, int stop) {
  if (stop == start + 1) return absl::OkStatus();
  return errors::InvalidArgument(kind, " '", name, "' is a list of ", stop - start,
                                 " where one tensor is expected");
}

absl::Status CompareSignatures(const DataTypeVector& inputs, const DataTypeVector& outputs,
                               DataTypeSlice expected_inputs, DataTypeSlice expected_outputs) {
  if (expected_inputs == DataTypeSlice(inputs) && expected_outputs == DataTypeSlice(outputs)) {
    return absl::OkStatus();
  }
  return errors::InvalidArgument("Signature mismatch, have: ", DataTypeSliceString(inputs), "->",
                                 DataTypeSliceString(outputs),
                                 " expected: ", DataTypeSliceString(expected_inputs), "->",
                                 DataTypeSliceString(expected_outputs));
}

// Returns the status of the kernel, or INTERNAL if the kernel did not set an output.
absl::Status FinalStatus(OpKernelContext& context) {
  TF_RETURN_IF_ERROR(context.status());
  for (int i = 0; i < context.num_outputs(); ++i) {
    const Tensor* output = context.mutable_output(i);
    if (output == nullptr || !output->IsInitialized()) {
      return errors::Internal("the kernel has not set output ", i);
    }
    // A reference output holds the handle of its variable.
    if (output->dtype() != gradflow::TypeOfSlot(context.expected_output_dtype(i))) {
      return errors::Internal("the kernel has set output ", i, " to a tensor of type ",
                              DataTypeString(output->dtype()), ", expected ",
                              DataTypeString(context.expected_output_dtype(i)));
    }
  }
  return absl::OkStatus();
}

// Adapts a tensorflow::OpKernel to gradflow::OpKernel.
class KernelAdapter final : public gradflow::OpKernel {
 public:
  explicit KernelAdapter(std::unique_ptr<tensorflow::OpKernel> kernel)
      : kernel_(std::move(kernel)), is_cheap_(!kernel_->IsExpensive()) {}

  absl::Status Compute(gradflow::KernelContext& context) const override {
    OpKernelContext op_context(*kernel_, context);
    kernel_->Compute(&op_context);
    return FinalStatus(op_context);
  }
  bool IsCheap() const override { return is_cheap_; }

 private:
  const std::unique_ptr<tensorflow::OpKernel> kernel_;
  const bool is_cheap_;
};

// Adapts a tensorflow::AsyncOpKernel. REQUIRES: kernel->AsAsync() != nullptr
class AsyncKernelAdapter final : public gradflow::AsyncOpKernel {
 public:
  explicit AsyncKernelAdapter(std::unique_ptr<tensorflow::OpKernel> kernel)
      : kernel_(std::move(kernel)) {}

  void ComputeAsync(gradflow::KernelContext& context, gradflow::AsyncDone done) const override {
    // The callback keeps both contexts alive.
    const auto op_context = std::make_shared<OpKernelContext>(*kernel_, context);
    kernel_->AsAsync()->ComputeAsync(op_context.get(),
                                     [op_context, done] { done(FinalStatus(*op_context)); });
  }

 private:
  const std::unique_ptr<tensorflow::OpKernel> kernel_;
};

}  // namespace

namespace compat_internal {

absl::Status FindInput(const OpKernel& kernel, absl::string_view name, int* i) {
  int stop;
  TF_RETURN_IF_ERROR(kernel.InputRange(name, i, &stop));
  return OnlyOne("input", name, *i, stop);
}

absl::Status FindOutput(const OpKernel& kernel, absl::string_view name, int* i) {
  int stop;
  TF_RETURN_IF_ERROR(kernel.OutputRange(name, i, &stop));
  return OnlyOne("output", name, *i, stop);
}

void StatusSink::CtxFailure(const char* file, int line, const absl::Status& status) {
  VLOG(1) << "OP_REQUIRES failed at " << file << ":" << line << " : " << status;
  SetStatus(status);
}

absl::StatusOr<std::unique_ptr<gradflow::OpKernel>> WrapKernel(
    const gradflow::KernelConstruction& construction, OpKernel* (*make)(OpKernelConstruction*)) {
  OpKernelConstruction context(construction);
  TF_RETURN_IF_ERROR(context.status());
  std::unique_ptr<OpKernel> kernel(make(&context));
  TF_RETURN_IF_ERROR(context.status());
  if (kernel->AsAsync() != nullptr) return std::make_unique<AsyncKernelAdapter>(std::move(kernel));
  return std::make_unique<KernelAdapter>(std::move(kernel));
}

}  // namespace compat_internal

OpKernelConstruction::OpKernelConstruction(const gradflow::KernelConstruction& construction) {
  auto info = std::make_shared<compat_internal::KernelInfo>();
  info->def = construction.def();
  for (int i = 0; i < construction.num_inputs(); ++i) {
    info->input_types.push_back(construction.input_type(i));
  }
  for (int i = 0; i < construction.num_outputs(); ++i) {
    info->output_types.push_back(construction.output_type(i));
  }
  SetStatus(gradflow::NameRangesForNode(info->def, construction.op_def(), &info->input_ranges,
                                        &info->output_ranges));
  info_ = std::move(info);
}

absl::Status OpKernelConstruction::MatchSignature(DataTypeSlice expected_inputs,
                                                  DataTypeSlice expected_outputs) const {
  return CompareSignatures(info_->input_types, info_->output_types, expected_inputs,
                           expected_outputs);
}

absl::Status OpKernelContext::MatchSignature(DataTypeSlice expected_inputs,
                                             DataTypeSlice expected_outputs) const {
  return CompareSignatures(kernel_->input_types(), kernel_->output_types(), expected_inputs,
                           expected_outputs);
}

DataType OpKernelConstruction::TypeOf(absl::string_view kind, const DataTypeVector& types,
                                      int i) const {
  if (i >= 0 && i < static_cast<int>(types.size())) return types[i];
  SetStatus(
      errors::Internal("the kernel asked for the type of ", kind, " ", i, " of ", types.size()));
  return DT_INVALID;
}

absl::Status OpKernelConstruction::allocate_temp(DataType type, const TensorShape& shape,
                                                 Tensor* out, AllocatorAttributes) const {
  absl::StatusOr<Tensor> tensor = Tensor::Allocate(type, shape);
  if (!tensor.ok()) return tensor.status();
  *out = *std::move(tensor);
  return absl::OkStatus();
}

absl::Status OpKernelConstruction::allocate_persistent(DataType type, const TensorShape& shape,
                                                       PersistentTensor* persistent,
                                                       Tensor** out) const {
  Tensor tensor;
  TF_RETURN_IF_ERROR(allocate_temp(type, shape, &tensor));
  *persistent = PersistentTensor(tensor);
  if (out != nullptr) *out = persistent->AccessTensor(static_cast<OpKernelContext*>(nullptr));
  return absl::OkStatus();
}

DeviceBase* OpKernelConstruction::device() const {
  static DeviceBase& cpu = *new DeviceBase(Env::Default());
  return &cpu;
}

int OpKernelConstruction::graph_def_version() const { return TF_GRAPH_DEF_VERSION; }

OpKernel::OpKernel(OpKernelConstruction* context, NodeDef&& def, bool is_deferred)
    : info_([&] {
        auto info = std::make_shared<compat_internal::KernelInfo>(*context->info_);
        info->def = std::move(def);
        return info;
      }()),
      is_deferred_(is_deferred) {}

std::string OpKernel::TraceString(const OpKernelContext& context, bool verbose) const {
  std::string text = absl::StrCat(name(), ":", type_string());
  if (!verbose || context.num_inputs() == 0) return text;
  absl::StrAppend(&text, "#shape=(");
  for (int i = 0; i < context.num_inputs(); ++i) {
    absl::StrAppend(&text, i > 0 ? ";" : "");
    if (i >= num_inputs() || IsRefType(input_type(i)) || !context.has_input(i)) continue;
    absl::StrAppend(&text, DataTypeString(context.input(i).dtype()),
                    context.input(i).shape().DebugString());
  }
  absl::StrAppend(&text, ")#");
  return text;
}

absl::Status OpKernel::InputRange(absl::string_view name, int* start, int* stop) const {
  gradflow::NameRange range;
  TF_RETURN_IF_ERROR(compat_internal::FindRange(info_->input_ranges, "input", name, &range));
  std::tie(*start, *stop) = range;
  return absl::OkStatus();
}

absl::Status OpKernel::OutputRange(absl::string_view name, int* start, int* stop) const {
  gradflow::NameRange range;
  TF_RETURN_IF_ERROR(compat_internal::FindRange(info_->output_ranges, "output", name, &range));
  std::tie(*start, *stop) = range;
  return absl::OkStatus();
}

absl::Status OpKernel::MakeShape(const Tensor& shape, TensorShape* out) const {
  if (!IsLegacyVector(shape.shape())) {
    return errors::InvalidArgument("shape must be a vector of {int32,int64}, got shape ",
                                   shape.shape().DebugString());
  }
  return tensor::MakeShape(shape, out);
}

void AsyncOpKernel::Compute(OpKernelContext* context) {
  Notification done;
  ComputeAsync(context, [&done] { done.Notify(); });
  done.WaitForNotification();
}

const Tensor& OpInputList::operator[](int i) const { return context_->input(start_ + i); }

Tensor OpMutableInputList::at(int i, bool lock_held) {
  return context_->mutable_input(start_ + i, lock_held);
}

mutex* OpMutableInputList::ref_mutex(int i) { return context_->input_ref_mutex(start_ + i); }

Tensor* OpOutputList::operator[](int i) const { return context_->mutable_output(start_ + i); }

absl::Status OpOutputList::allocate(int i, const TensorShape& shape, Tensor** out) {
  return context_->allocate_output(start_ + i, shape, out);
}

void OpOutputList::set(int i, const Tensor& tensor) { context_->set_output(start_ + i, tensor); }

void OpOutputList::set_ref(int i, mutex* mu, Tensor* tensor) {
  context_->set_output_ref(start_ + i, mu, tensor);
}

bool OpOutputList::required(int i) const { return context_->output_required(start_ + i); }

DataType OpOutputList::expected_output_dtype(int i) const {
  return context_->expected_output_dtype(start_ + i);
}

absl::Status OpKernelContext::input(absl::string_view name, const Tensor** tensor) const {
  int i;
  TF_RETURN_IF_ERROR(compat_internal::FindInput(*kernel_, name, &i));
  *tensor = &input(i);
  return absl::OkStatus();
}

absl::Status OpKernelContext::input_list(absl::string_view name, OpInputList* list) {
  int start, stop;
  TF_RETURN_IF_ERROR(kernel_->InputRange(name, &start, &stop));
  *list = OpInputList(this, start, stop);
  return absl::OkStatus();
}

absl::Status OpKernelContext::mutable_input_list(absl::string_view name, OpMutableInputList* list) {
  int start, stop;
  TF_RETURN_IF_ERROR(kernel_->InputRange(name, &start, &stop));
  *list = OpMutableInputList(this, start, stop);
  return absl::OkStatus();
}

bool OpKernelContext::ValidateInputsAreSameShape(OpKernel*) {
  for (int i = 1; i < num_inputs(); ++i) {
    if (!input(0).IsSameSize(input(i))) {
      SetStatus(errors::InvalidArgument(
          "Inputs to operation must have the same size and shape. Input 0: ",
          input(0).shape().DebugString(), " != input ", i, ": ", input(i).shape().DebugString()));
      return false;
    }
  }
  return true;
}

absl::Status OpKernelContext::allocate_output(absl::string_view name, const TensorShape& shape,
                                              Tensor** out) {
  int i;
  TF_RETURN_IF_ERROR(compat_internal::FindOutput(*kernel_, name, &i));
  return allocate_output(i, shape, out);
}

absl::Status OpKernelContext::output_list(absl::string_view name, OpOutputList* list) {
  int start, stop;
  TF_RETURN_IF_ERROR(kernel_->OutputRange(name, &start, &stop));
  *list = OpOutputList(this, start, stop);
  return absl::OkStatus();
}

bool OpKernelContext::HasInput(int i) const {
  if (i >= 0 && i < num_inputs()) return true;
  SetStatus(errors::Internal("the kernel asked for input ", i, " of ", num_inputs()));
  return false;
}

const Tensor& OpKernelContext::input(int i) const {
  static const Tensor& none = *new Tensor();
  return HasInput(i) ? context_->input(i) : none;
}

DataType OpKernelContext::input_dtype(int i) const {
  return HasInput(i) ? kernel_->input_type(i) : DT_INVALID;
}

absl::Status OpKernelContext::input_dtype(absl::string_view name, DataType* dtype) const {
  int i;
  TF_RETURN_IF_ERROR(compat_internal::FindInput(*kernel_, name, &i));
  *dtype = kernel_->input_type(i);
  return absl::OkStatus();
}

absl::StatusOr<const Tensor*> OpKernelContext::get_input(int i) const {
  if (i < 0 || i >= num_inputs() || input_is_ref(i)) {
    return errors::InvalidArgument("Given index was ", i,
                                   ", but index of input must be greater than 0, less than the "
                                   "number of inputs (",
                                   num_inputs(), "), and not a ref.");
  }
  return &context_->input(i);
}

DataType OpKernelContext::expected_output_dtype(int i) const {
  SetStatus(CheckOutput(i));
  return HasOutput(i) ? kernel_->output_type(i) : DT_INVALID;
}

absl::Status OpKernelContext::CheckOutput(int i) const {
  if (HasOutput(i)) return absl::OkStatus();
  return errors::Internal("bad index=", i, ": the kernel has ", num_outputs(), " outputs");
}

absl::Status OpKernelContext::allocate_output(int i, const TensorShape& shape, Tensor** out) {
  TF_RETURN_IF_ERROR(CheckOutput(i));
  TF_RETURN_IF_ERROR(context_->AllocateOutput(i, shape, out));
  is_set_[i] = true;
  return absl::OkStatus();
}

void OpKernelContext::set_output(int i, const Tensor& tensor) {
  SetStatus(CheckOutput(i));
  if (!HasOutput(i)) return;
  context_->set_output(i, tensor);
  is_set_[i] = true;
}

absl::Status OpKernelContext::set_output(absl::string_view name, const Tensor& tensor) {
  int i;
  TF_RETURN_IF_ERROR(compat_internal::FindOutput(*kernel_, name, &i));
  set_output(i, tensor);
  return absl::OkStatus();
}

absl::Status OpKernelContext::mutable_output(absl::string_view name, Tensor** tensor) {
  int i;
  TF_RETURN_IF_ERROR(compat_internal::FindOutput(*kernel_, name, &i));
  *tensor = mutable_output(i);
  return absl::OkStatus();
}

absl::Status OpKernelContext::forward_input_or_allocate_output(gtl::ArraySlice<int> candidates,
                                                               int i, const TensorShape& shape,
                                                               Tensor** out, int* forwarded) {
  if (forwarded != nullptr) *forwarded = -1;
  TF_RETURN_IF_ERROR(CheckOutput(i));
  for (const int candidate : candidates) {
    const Tensor& in = input(candidate);
    if (in.dtype() != expected_output_dtype(i) || in.NumElements() != shape.num_elements() ||
        !in.CanBeReused()) {
      continue;
    }
    TF_RETURN_IF_ERROR(context_->ForwardInputOrAllocateOutput(candidate, i, shape, out));
    is_set_[i] = true;
    if (forwarded != nullptr && (*out)->SharesBufferWith(input(candidate))) *forwarded = candidate;
    return absl::OkStatus();
  }
  return allocate_output(i, shape, out);
}

absl::Status OpKernelContext::forward_input_or_allocate_output(
    gtl::ArraySlice<absl::string_view> candidates, absl::string_view name, const TensorShape& shape,
    Tensor** out) {
  int output;
  TF_RETURN_IF_ERROR(compat_internal::FindOutput(*kernel_, name, &output));
  std::vector<int> inputs(candidates.size());
  for (size_t i = 0; i < candidates.size(); ++i) {
    TF_RETURN_IF_ERROR(compat_internal::FindInput(*kernel_, candidates[i], &inputs[i]));
  }
  return forward_input_or_allocate_output(inputs, output, shape, out);
}

std::unique_ptr<Tensor> OpKernelContext::forward_input(int input, int, DataType dtype,
                                                       const TensorShape& shape, MemoryType,
                                                       const AllocatorAttributes&) {
  if (!HasInput(input) || input_is_ref(input)) return nullptr;
  // The executor has created this tensor so that kernels can reuse it.
  auto& in = const_cast<Tensor&>(context_->input(input));
  auto out = std::make_unique<Tensor>();
  if (in.dtype() != dtype || !DataTypeCanUseMemcpy(dtype) || !in.CanBeReused() ||
      !out->TakeFrom(&in, shape)) {
    return nullptr;
  }
  return out;
}

bool OpKernelContext::forward_input_to_output_with_shape(int input, int output,
                                                         const TensorShape& shape, Tensor** out) {
  SetStatus(CheckOutput(output));
  if (!HasOutput(output)) return false;
  const std::unique_ptr<Tensor> taken = forward_input(input, output, expected_output_dtype(output),
                                                      shape, DEVICE_MEMORY, AllocatorAttributes());
  if (taken == nullptr) return false;
  context_->set_output(output, std::move(*taken));
  is_set_[output] = true;
  *out = context_->mutable_output(output);
  return true;
}

absl::Status OpKernelContext::forward_input_to_output_with_shape(absl::string_view input,
                                                                 absl::string_view output,
                                                                 const TensorShape& shape,
                                                                 Tensor** out) {
  int in, i;
  TF_RETURN_IF_ERROR(compat_internal::FindInput(*kernel_, input, &in));
  TF_RETURN_IF_ERROR(compat_internal::FindOutput(*kernel_, output, &i));
  if (forward_input_to_output_with_shape(in, i, shape, out)) return absl::OkStatus();
  return errors::FailedPrecondition("OpKernel could not forward input '", input, "' to output '",
                                    output, "'");
}

absl::Status OpKernelContext::forward_input_or_allocate_temp(gtl::ArraySlice<int> candidates,
                                                             DataType type,
                                                             const TensorShape& shape,
                                                             const AllocatorAttributes& attributes,
                                                             Tensor* out) {
  for (const int candidate : candidates) {
    const std::unique_ptr<Tensor> taken =
        forward_input(candidate, -1, type, shape, DEVICE_MEMORY, attributes);
    if (taken != nullptr) {
      *out = std::move(*taken);
      return absl::OkStatus();
    }
  }
  return allocate_temp(type, shape, out);
}

absl::Status OpKernelContext::allocate_persistent(DataType type, const TensorShape& shape,
                                                  PersistentTensor* persistent, Tensor** out,
                                                  AllocatorAttributes) {
  Tensor tensor;
  TF_RETURN_IF_ERROR(allocate_temp(type, shape, &tensor));
  *persistent = PersistentTensor(tensor);
  if (out != nullptr) *out = persistent->AccessTensor(this);
  return absl::OkStatus();
}

void Shard(int max_parallelism, thread::ThreadPool* workers, int64 total, int64 cost_per_unit,
           std::function<void(int64, int64)> work) {
  if (total <= 0) return;
  if (max_parallelism > 1) {
    workers->ParallelFor(total, cost_per_unit, work);
  } else {
    const gradflow::RunContext* const run = workers->run();
    const gradflow::RunContext serial =
        gradflow::SerialLoops(run != nullptr ? *run : gradflow::RunContext());
    thread::ThreadPool(&serial).ParallelFor(total, cost_per_unit, work);
  }
}

}  // namespace tensorflow
