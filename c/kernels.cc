// Kernels in C.
//
// The registry knows one factory for all of them. The factory finds the kernel of a node in a
// table, by the op, the device, the label and the types, like the registry.
#include "tensorflow/c/kernels.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "gradflow/c/attributes.h"
#include "gradflow/c/buffer.h"
#include "gradflow/c/eager/context.h"
#include "gradflow/c/kernel_list.h"
#include "gradflow/c/status.h"
#include "gradflow/c/tensor.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/context_free_kernel.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/kernel_def.pb.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"

struct TF_KernelBuilder {
  gradflow::KernelRegistration registration;
  void* (*create)(TF_OpKernelConstruction*) = nullptr;
  // One of these is null.
  void (*compute)(void*, TF_OpKernelContext*) = nullptr;
  void (*compute_async)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback*) = nullptr;
  void (*destroy)(void*) = nullptr;
  // Arguments that TF_KernelBuilder_HostMemory() has named.
  std::vector<std::string> host_arguments;
  // True if the table of kernels owns the builder.
  std::atomic<bool> is_registered{false};
};

struct TF_OpKernelConstruction {
  const gradflow::KernelConstruction& construction;
  absl::Status failure;
};

namespace gradflow::capi {
namespace {

// The definitions of the node that a kernel computes.
struct KernelNode {
  NodeDef def;
  OpDef op_def;
};

}  // namespace
}  // namespace gradflow::capi

struct TF_OpKernelContext {
  TF_OpKernelContext(gradflow::KernelContext* run_context, const gradflow::capi::KernelNode& of)
      : context(run_context), node(of), is_set(run_context->num_outputs()) {}

  gradflow::KernelContext* const context;
  const gradflow::capi::KernelNode& node;
  absl::Status failure;
  std::vector<bool> is_set;
  // Outputs of strings, which are copied when the kernel ends.
  std::map<int, TF_Tensor> strings;
};

struct TF_AsyncOpKernelDoneCallback {
  gradflow::AsyncDone done;
  TF_OpKernelContext context;
};

namespace gradflow::capi {
namespace {

absl::Status CheckIndex(absl::string_view what, int i, int count) {
  if (i >= 0 && i < count) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat(what, " ", i, " does not exist; the kernel has ", count));
}

// Returns the status of a run that has ended. Copies outputs of strings.
absl::Status EndRun(TF_OpKernelContext* run) {
  GRADFLOW_RETURN_IF_ERROR(run->failure);
  for (const auto& [i, tensor] : run->strings) {
    GRADFLOW_ASSIGN_OR_RETURN(Tensor copy, TensorFromC(tensor));
    run->context->set_output(i, std::move(copy));
  }
  for (size_t i = 0; i < run->is_set.size(); ++i) {
    if (!run->is_set[i]) return errors::Internal("the kernel did not set output ", i);
  }
  return absl::OkStatus();
}

// The object that a kernel in C has made.
class KernelObject {
 public:
  KernelObject(const TF_KernelBuilder& functions, const KernelConstruction& construction)
      : functions_(functions), node_{construction.def(), construction.op_def()} {}
  ~KernelObject() {
    if (made_ && functions_.destroy != nullptr) functions_.destroy(object_);
  }
  absl::Status Make(const KernelConstruction& construction) {
    TF_OpKernelConstruction c_construction{construction, absl::OkStatus()};
    if (functions_.create != nullptr) object_ = functions_.create(&c_construction);
    made_ = true;
    return c_construction.failure;
  }
  const TF_KernelBuilder& functions() const { return functions_; }
  void* object() const { return object_; }
  const KernelNode& node() const { return node_; }

 private:
  const TF_KernelBuilder& functions_;
  const KernelNode node_;
  void* object_ = nullptr;
  bool made_ = false;
};

class CKernel final : public OpKernel, public ContextFreeKernel {
 public:
  explicit CKernel(std::unique_ptr<KernelObject> object) : object_(std::move(object)) {}
  absl::Status Compute(KernelContext& ctx) const override {
    TF_OpKernelContext run(&ctx, object_->node());
    object_->functions().compute(object_->object(), &run);
    return EndRun(&run);
  }
  void ComputeWithoutContext() const override {
    object_->functions().compute(object_->object(), nullptr);
  }

 private:
  const std::unique_ptr<KernelObject> object_;
};

class CAsyncKernel final : public AsyncOpKernel {
 public:
  explicit CAsyncKernel(std::unique_ptr<KernelObject> object) : object_(std::move(object)) {}
  void ComputeAsync(KernelContext& ctx, AsyncDone done) const override {
    auto* const run =
        new TF_AsyncOpKernelDoneCallback{done, TF_OpKernelContext(&ctx, object_->node())};
    object_->functions().compute_async(object_->object(), &run->context, run);
  }

 private:
  const std::unique_ptr<KernelObject> object_;
};

// The registered kernels by op. Entries are never removed.
struct CKernels {
  Mutex mutex;
  std::map<std::string, std::vector<const TF_KernelBuilder*>, std::less<>> by_op
      ABSL_GUARDED_BY(mutex);
  // The builders that were passed to TF_RegisterKernelBuilder(), even without success. Programs may
  // still pass them to TF_DeleteKernelBuilder().
  std::vector<std::unique_ptr<TF_KernelBuilder>> builders ABSL_GUARDED_BY(mutex);
};
CKernels& AllCKernels() {
  static auto& kernels = *new CKernels;
  return kernels;
}

bool Fits(const KernelRegistration& kernel, const NodeDef& node) {
  std::string label;
  GetNodeAttr(node, "_kernel", &label).IgnoreError();
  // The device of a node may be the name of a type of devices.
  const bool on_device = kernel.device == node.device() ||
                         absl::AsciiStrToUpper(kernel.device) == DeviceType(node.device());
  if (kernel.label != label || !on_device) return false;
  for (const auto& [attr, types] : kernel.type_constraints) {
    const AttrValue* const value = FindNodeAttr(node, attr);
    if (value == nullptr) return false;
    DataTypeVector used;
    if (value->has_list()) {
      for (const int type : value->list().type()) used.push_back(static_cast<DataType>(type));
    } else {
      used.push_back(value->type());
    }
    for (const DataType type : used) {
      if (std::find(types.begin(), types.end(), type) == types.end()) return false;
    }
  }
  return true;
}

absl::StatusOr<std::unique_ptr<OpKernel>> MakeCKernel(const KernelConstruction& construction) {
  const TF_KernelBuilder* found = nullptr;
  {
    CKernels& kernels = AllCKernels();
    const MutexLock lock(&kernels.mutex);
    for (const TF_KernelBuilder* kernel : kernels.by_op[construction.def().op()]) {
      const bool better =
          found == nullptr || kernel->registration.priority > found->registration.priority;
      if (better && Fits(kernel->registration, construction.def())) found = kernel;
    }
  }
  if (found == nullptr) return errors::Internal("the kernel is not in the table");
  auto object = std::make_unique<KernelObject>(*found, construction);
  GRADFLOW_RETURN_IF_ERROR(object->Make(construction));
  if (found->compute_async != nullptr) return std::make_unique<CAsyncKernel>(std::move(object));
  return std::make_unique<CKernel>(std::move(object));
}

// Gives the builder to the table. Returns FAILED_PRECONDITION if the table owns it already.
absl::Status TakeBuilder(TF_KernelBuilder* builder) {
  if (builder == nullptr) return errors::InvalidArgument("the kernel builder is null");
  if (builder->is_registered.exchange(true)) {
    return errors::FailedPrecondition("the kernel builder of op ", builder->registration.op,
                                      " is registered already");
  }
  CKernels& kernels = AllCKernels();
  const MutexLock lock(&kernels.mutex);
  kernels.builders.emplace_back(builder);
  return absl::OkStatus();
}

absl::Status Register(TF_KernelBuilder* builder) {
  if (builder->compute == nullptr && builder->compute_async == nullptr) {
    return errors::InvalidArgument("the kernel of op ", builder->registration.op,
                                   " has no compute function");
  }
  builder->registration.factory = &MakeCKernel;
  CKernels& kernels = AllCKernels();
  // Kernels are made with this mutex, so that no thread misses the kernel in the table.
  const MutexLock lock(&kernels.mutex);
  KernelRegistration registration = builder->registration;
  // Registry::FindKernel() looks for types of devices in upper case.
  registration.device = absl::AsciiStrToUpper(registration.device);
  GRADFLOW_RETURN_IF_ERROR(GlobalRegistry().RegisterKernel(std::move(registration)));
  kernels.by_op[builder->registration.op].push_back(builder);
  return absl::OkStatus();
}

void AddConstraint(absl::string_view attr, DataType type, TF_KernelBuilder* builder) {
  for (auto& [name, types] : builder->registration.type_constraints) {
    if (name == attr) return types.push_back(type);
  }
  builder->registration.type_constraints.emplace_back(attr, DataTypeVector{type});
}

absl::StatusOr<const AttrValue*> FindKernelAttr(TF_OpKernelConstruction* ctx, const char* name) {
  const AttrValue* const value = FindNodeAttr(ctx->construction.def(), OrEmpty(name));
  if (value != nullptr) return value;
  return errors::InvalidArgument("there is no attribute ", internal::Quoted(OrEmpty(name)));
}

// Returns an attribute whose value is of a kind.
absl::StatusOr<const AttrValue*> FindKernelAttr(TF_OpKernelConstruction* ctx, const char* name,
                                                AttrValue::ValueCase kind) {
  GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* value, FindKernelAttr(ctx, name));
  if (value->value_case() != kind) {
    return errors::InvalidArgument("attribute ", OrEmpty(name), " is ", SummarizeAttrValue(*value),
                                   ", which has another type");
  }
  return value;
}

// Returns INVALID_ARGUMENT if an integer does not fit into T.
template <typename T, typename From>
absl::Status CheckRange(const char* name, From value) {
  if constexpr (std::is_same_v<T, int32_t> && std::is_same_v<From, int64_t>) {
    if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max()) {
      return errors::InvalidArgument("attribute ", OrEmpty(name), " has value ", value,
                                     ", which does not fit into 32 bits");
    }
  }
  return absl::OkStatus();
}

template <typename T, typename GetList>
void ReadKernelList(TF_OpKernelConstruction* ctx, const char* name, T* values, int max,
                    TF_Status* status, GetList get) {
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* value, FindKernelAttr(ctx, name, AttrValue::kList));
    const auto& list = get(value->list());
    for (const auto element : list) GRADFLOW_RETURN_IF_ERROR(CheckRange<T>(name, element));
    CopyValues(list, values, max);
    return absl::OkStatus();
  });
}

template <typename T, typename Get>
void ReadKernelAttr(TF_OpKernelConstruction* ctx, const char* name, AttrValue::ValueCase kind,
                    T* out, TF_Status* status, Get get) {
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* value, FindKernelAttr(ctx, name, kind));
    const auto read = get(*value);
    GRADFLOW_RETURN_IF_ERROR(CheckRange<T>(name, read));
    *out = static_cast<T>(read);
    return absl::OkStatus();
  });
}

// Allocates an output, and stores a tensor that shares it.
absl::Status AllocateOutput(TF_OpKernelContext* run, int index, const TensorShape& shape,
                            int forwarded, TF_Tensor** result) {
  KernelContext& context = *run->context;
  if (context.expected_output_dtype(index) == DT_STRING) {
    auto tensor = std::make_unique<TF_Tensor>();
    GRADFLOW_ASSIGN_OR_RETURN(tensor->strings, StringArray::Allocate(shape.num_elements()));
    tensor->string_shape = shape;
    run->strings[index] = *tensor;
    *result = tensor.release();
  } else {
    Tensor* output;
    GRADFLOW_RETURN_IF_ERROR(
        forwarded < 0 ? context.AllocateOutput(index, shape, &output)
                      : context.ForwardInputOrAllocateOutput(forwarded, index, shape, &output));
    GRADFLOW_ASSIGN_OR_RETURN(*result, TensorToC(*output));
  }
  run->is_set[index] = true;
  return absl::OkStatus();
}

TF_StringView ViewOfString(const std::string& text) { return {text.data(), text.size()}; }

}  // namespace

bool IsCKernel(const KernelRegistration& kernel) { return kernel.factory == &MakeCKernel; }

std::vector<CKernelInfo> CKernelsOf(absl::string_view op) {
  std::vector<CKernelInfo> list;
  CKernels& kernels = AllCKernels();
  const MutexLock lock(&kernels.mutex);
  const auto found = kernels.by_op.find(op);
  if (found == kernels.by_op.end()) return list;
  for (const TF_KernelBuilder* kernel : found->second) {
    list.push_back({kernel->registration, kernel->host_arguments});
  }
  return list;
}

}  // namespace gradflow::capi

using gradflow::AttrValue;
using gradflow::Tensor;
using gradflow::TensorShape;
using gradflow::capi::Call;
using gradflow::capi::CallOr;
using gradflow::capi::CallQuietly;
using gradflow::capi::CheckIndex;
using gradflow::capi::FindKernelAttr;
using gradflow::capi::FromC;
using gradflow::capi::OrEmpty;
using gradflow::capi::ReadKernelAttr;
using gradflow::capi::ReadKernelList;
using gradflow::capi::ShapeFromC;
using gradflow::capi::ToC;

// ---- Registration ----

TF_KernelBuilder* TF_NewKernelBuilder(const char* op_name, const char* device_name,
                                      void* (*create_func)(TF_OpKernelConstruction*),
                                      void (*compute_func)(void*, TF_OpKernelContext*),
                                      void (*delete_func)(void*)) {
  return CallOr<TF_KernelBuilder*>(nullptr, [&] {
    auto builder = std::make_unique<TF_KernelBuilder>();
    builder->registration.op = OrEmpty(op_name);
    builder->registration.device = OrEmpty(device_name);
    builder->create = create_func;
    builder->compute = compute_func;
    builder->destroy = delete_func;
    return builder.release();
  });
}

TF_KernelBuilder* TF_NewAsyncKernelBuilder(
    const char* op_name, const char* device_name, void* (*create_func)(TF_OpKernelConstruction*),
    void (*compute_async_func)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback* done),
    void (*delete_func)(void*)) {
  TF_KernelBuilder* const builder =
      TF_NewKernelBuilder(op_name, device_name, create_func, nullptr, delete_func);
  if (builder != nullptr) builder->compute_async = compute_async_func;
  return builder;
}

void TF_KernelBuilder_TypeConstraint(TF_KernelBuilder* kernel_builder, const char* attr_name,
                                     TF_DataType type, TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    if (!gradflow::DataTypeCanBeTensor(FromC(type)) && type != TF_RESOURCE) {
      return gradflow::errors::InvalidArgument("Unexpected type ", static_cast<int>(type));
    }
    gradflow::capi::AddConstraint(OrEmpty(attr_name), FromC(type), kernel_builder);
    return absl::OkStatus();
  });
}

void TF_KernelBuilder_HostMemory(TF_KernelBuilder* kernel_builder, const char* arg_name) {
  CallQuietly([&] { kernel_builder->host_arguments.emplace_back(OrEmpty(arg_name)); });
}

void TF_KernelBuilder_Priority(TF_KernelBuilder* kernel_builder, int32_t priority_number) {
  kernel_builder->registration.priority = priority_number;
}

void TF_KernelBuilder_Label(TF_KernelBuilder* kernel_builder, const char* label) {
  CallQuietly([&] { kernel_builder->registration.label = OrEmpty(label); });
}

void TF_RegisterKernelBuilder(const char*, TF_KernelBuilder* builder, TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(gradflow::capi::TakeBuilder(builder));
    return gradflow::capi::Register(builder);
  });
}

void TF_RegisterKernelBuilderWithKernelDef(const char* serialized_kernel_def, const char*,
                                           TF_KernelBuilder* builder, TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(gradflow::capi::TakeBuilder(builder));
    const std::string bytes = OrEmpty(serialized_kernel_def);
    gradflow::KernelDef def;
    GRADFLOW_RETURN_IF_ERROR(gradflow::capi::ParseMessage(bytes.data(), bytes.size(), &def));
    gradflow::KernelRegistration& registration = builder->registration;
    registration.op = def.op();
    registration.device = def.device_type();
    registration.label = def.label();
    registration.priority = def.priority();
    registration.type_constraints.clear();
    builder->host_arguments.assign(def.host_memory_arg().begin(), def.host_memory_arg().end());
    for (const auto& constraint : def.constraint()) {
      for (const int type : constraint.allowed_values().list().type()) {
        gradflow::capi::AddConstraint(constraint.name(), static_cast<gradflow::DataType>(type),
                                      builder);
      }
    }
    return gradflow::capi::Register(builder);
  });
}

void TF_DeleteKernelBuilder(TF_KernelBuilder* builder) {
  if (builder != nullptr && !builder->is_registered.load()) delete builder;
}

// ---- Construction ----

void TF_OpKernelConstruction_Failure(TF_OpKernelConstruction* ctx, TF_Status* status) {
  ctx->failure.Update(status->status);
}

TF_Buffer* TF_OpKernelConstruction_GetNodeDef(TF_OpKernelConstruction* ctx, TF_Status* status) {
  TF_Buffer* result = nullptr;
  Call(status, [&] { return gradflow::capi::NewBuffer(ctx->construction.def(), &result); });
  return result;
}

void TF_OpKernelConstruction_GetAttrSize(TF_OpKernelConstruction* ctx, const char* attr_name,
                                         int32_t* list_size, int32_t* total_size,
                                         TF_Status* status) {
  *list_size = -1;
  *total_size = -1;
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* value, FindKernelAttr(ctx, attr_name));
    const TF_AttrMetadata metadata =
        gradflow::capi::DescribeAttr(ctx->construction.op_def(), OrEmpty(attr_name), *value);
    *list_size = static_cast<int32_t>(metadata.list_size);
    *total_size = static_cast<int32_t>(metadata.total_size);
    return absl::OkStatus();
  });
}

void TF_OpKernelConstruction_GetAttrType(TF_OpKernelConstruction* ctx, const char* attr_name,
                                         TF_DataType* val, TF_Status* status) {
  ReadKernelAttr(ctx, attr_name, AttrValue::kType, val, status,
                 [](const AttrValue& value) { return value.type(); });
}
void TF_OpKernelConstruction_GetAttrInt32(TF_OpKernelConstruction* ctx, const char* attr_name,
                                          int32_t* val, TF_Status* status) {
  ReadKernelAttr(ctx, attr_name, AttrValue::kI, val, status,
                 [](const AttrValue& value) { return value.i(); });
}
void TF_OpKernelConstruction_GetAttrInt64(TF_OpKernelConstruction* ctx, const char* attr_name,
                                          int64_t* val, TF_Status* status) {
  ReadKernelAttr(ctx, attr_name, AttrValue::kI, val, status,
                 [](const AttrValue& value) { return value.i(); });
}
void TF_OpKernelConstruction_GetAttrFloat(TF_OpKernelConstruction* ctx, const char* attr_name,
                                          float* val, TF_Status* status) {
  ReadKernelAttr(ctx, attr_name, AttrValue::kF, val, status,
                 [](const AttrValue& value) { return value.f(); });
}
void TF_OpKernelConstruction_GetAttrBool(TF_OpKernelConstruction* ctx, const char* attr_name,
                                         TF_Bool* val, TF_Status* status) {
  ReadKernelAttr(ctx, attr_name, AttrValue::kB, val, status,
                 [](const AttrValue& value) { return value.b(); });
}

void TF_OpKernelConstruction_GetAttrString(TF_OpKernelConstruction* ctx, const char* attr_name,
                                           char* val, size_t max_length, TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* value,
                              FindKernelAttr(ctx, attr_name, AttrValue::kS));
    const size_t length = std::min(value->s().size(), max_length);
    if (length > 0) std::memcpy(val, value->s().data(), length);
    return absl::OkStatus();
  });
}

void TF_OpKernelConstruction_GetAttrTensor(TF_OpKernelConstruction* ctx, const char* attr_name,
                                           TF_Tensor** val, TF_Status* status) {
  *val = nullptr;
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* value,
                              FindKernelAttr(ctx, attr_name, AttrValue::kTensor));
    GRADFLOW_ASSIGN_OR_RETURN(*val, gradflow::capi::DecodeTensor(value->tensor()));
    return absl::OkStatus();
  });
}

void TF_OpKernelConstruction_GetAttrTypeList(TF_OpKernelConstruction* ctx, const char* attr_name,
                                             TF_DataType* vals, int max_vals, TF_Status* status) {
  ReadKernelList(
      ctx, attr_name, vals, max_vals, status,
      [](const AttrValue::ListValue& list) -> const auto& { return list.type(); });
}
void TF_OpKernelConstruction_GetAttrInt32List(TF_OpKernelConstruction* ctx, const char* attr_name,
                                              int32_t* vals, int max_vals, TF_Status* status) {
  ReadKernelList(
      ctx, attr_name, vals, max_vals, status,
      [](const AttrValue::ListValue& list) -> const auto& { return list.i(); });
}
void TF_OpKernelConstruction_GetAttrInt64List(TF_OpKernelConstruction* ctx, const char* attr_name,
                                              int64_t* vals, int max_vals, TF_Status* status) {
  ReadKernelList(
      ctx, attr_name, vals, max_vals, status,
      [](const AttrValue::ListValue& list) -> const auto& { return list.i(); });
}
void TF_OpKernelConstruction_GetAttrFloatList(TF_OpKernelConstruction* ctx, const char* attr_name,
                                              float* vals, int max_vals, TF_Status* status) {
  ReadKernelList(
      ctx, attr_name, vals, max_vals, status,
      [](const AttrValue::ListValue& list) -> const auto& { return list.f(); });
}
void TF_OpKernelConstruction_GetAttrBoolList(TF_OpKernelConstruction* ctx, const char* attr_name,
                                             TF_Bool* vals, int max_vals, TF_Status* status) {
  ReadKernelList(
      ctx, attr_name, vals, max_vals, status,
      [](const AttrValue::ListValue& list) -> const auto& { return list.b(); });
}

void TF_OpKernelConstruction_GetAttrStringList(TF_OpKernelConstruction* ctx, const char* attr_name,
                                               char** values, size_t* lengths, int max_values,
                                               void* storage, size_t storage_size,
                                               TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* value,
                              FindKernelAttr(ctx, attr_name, AttrValue::kList));
    return gradflow::capi::CopyStrings(value->list(), values, lengths, max_values, storage,
                                       storage_size);
  });
}

void TF_OpKernelConstruction_GetAttrTensorList(TF_OpKernelConstruction* ctx, const char* attr_name,
                                               TF_Tensor** vals, int max_values,
                                               TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* value,
                              FindKernelAttr(ctx, attr_name, AttrValue::kList));
    return gradflow::capi::DecodeTensors(value->list(), vals, max_values);
  });
}

TF_Buffer* TF_OpKernelConstruction_GetAttrFunction(TF_OpKernelConstruction* ctx,
                                                   const char* attr_name, TF_Status* status) {
  TF_Buffer* result = nullptr;
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* value,
                              FindKernelAttr(ctx, attr_name, AttrValue::kFunc));
    return gradflow::capi::NewBuffer(value->func(), &result);
  });
  return result;
}

bool TF_OpKernelConstruction_HasAttr(TF_OpKernelConstruction* ctx, const char* attr_name,
                                     TF_Status* status) {
  TF_SetStatus(status, TF_OK, "");
  return gradflow::FindNodeAttr(ctx->construction.def(), OrEmpty(attr_name)) != nullptr;
}

TF_StringView TF_OpKernelConstruction_GetName(TF_OpKernelConstruction* ctx) {
  return gradflow::capi::ViewOfString(ctx->construction.def().name());
}

// ---- Runs ----

void TF_RunAsyncOpKernelDoneCallback(TF_AsyncOpKernelDoneCallback* callback) {
  const std::unique_ptr<TF_AsyncOpKernelDoneCallback> owned(callback);
  callback->done(gradflow::CallSafely([&] { return gradflow::capi::EndRun(&callback->context); }));
}

SP_Stream TF_GetStream(TF_OpKernelContext*, TF_Status* status) {
  TF_SetStatus(status, TF_UNIMPLEMENTED, "the CPU has no streams");
  return nullptr;
}

int TF_NumInputs(TF_OpKernelContext* ctx) { return ctx->context->num_inputs(); }
int TF_NumOutputs(TF_OpKernelContext* ctx) { return ctx->context->num_outputs(); }

void TF_GetInput(TF_OpKernelContext* ctx, int i, TF_Tensor** tensor, TF_Status* status) {
  *tensor = nullptr;
  Call(status, [&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(CheckIndex("input", i, ctx->context->num_inputs()));
    const Tensor& input = ctx->context->input(i);
    if (input.dtype() == gradflow::DT_INVALID) {
      return gradflow::errors::InvalidArgument("input ", i, " is not there");
    }
    GRADFLOW_ASSIGN_OR_RETURN(*tensor, gradflow::capi::TensorToC(input));
    return absl::OkStatus();
  });
}

void TF_InputRange(TF_OpKernelContext* ctx, const char* name, TF_InputRange_Args* args) {
  args->start = -1;
  args->stop = -1;
  Call(args->status, [&]() -> absl::Status {
    gradflow::NameRangeMap inputs;
    GRADFLOW_RETURN_IF_ERROR(
        gradflow::NameRangesForNode(ctx->node.def, ctx->node.op_def, &inputs, nullptr));
    const auto found = inputs.find(OrEmpty(name));
    if (found == inputs.end()) {
      return gradflow::errors::InvalidArgument("there is no input ",
                                               gradflow::internal::Quoted(OrEmpty(name)));
    }
    args->start = found->second.first;
    args->stop = found->second.second;
    return absl::OkStatus();
  });
}

TF_DataType TF_InputDatatype(TF_OpKernelContext* ctx, int index) {
  const bool exists = CheckIndex("input", index, ctx->context->num_inputs()).ok();
  return ToC(exists ? ctx->context->input_dtype(index) : gradflow::DT_INVALID);
}

void TF_SetOutput(TF_OpKernelContext* ctx, int i, const TF_Tensor* tensor, TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(CheckIndex("output", i, ctx->context->num_outputs()));
    if (tensor == nullptr) {
      return gradflow::errors::InvalidArgument("the tensor of output ", i, " is null");
    }
    GRADFLOW_ASSIGN_OR_RETURN(Tensor output, gradflow::capi::TensorFromC(*tensor));
    const gradflow::DataType expected = ctx->context->expected_output_dtype(i);
    if (output.dtype() != expected) {
      return gradflow::errors::InvalidArgument("output ", i, " has type ",
                                               gradflow::DataTypeString(output.dtype()),
                                               ", expected ", gradflow::DataTypeString(expected));
    }
    ctx->context->set_output(i, std::move(output));
    ctx->strings.erase(i);
    ctx->is_set[i] = true;
    return absl::OkStatus();
  });
}

TF_Tensor* TF_GetMutableOutput(TF_OpKernelContext* ctx, int i, TF_Status* status) {
  TF_Tensor* result = nullptr;
  Call(status, [&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(CheckIndex("output", i, ctx->context->num_outputs()));
    if (!ctx->is_set[i]) {
      return gradflow::errors::FailedPrecondition("output ", i, " is not set yet");
    }
    const auto strings = ctx->strings.find(i);
    if (strings != ctx->strings.end()) {
      result = new TF_Tensor(strings->second);
      return absl::OkStatus();
    }
    GRADFLOW_ASSIGN_OR_RETURN(result, gradflow::capi::TensorToC(*ctx->context->mutable_output(i)));
    return absl::OkStatus();
  });
  return result;
}

void TF_OpKernelContext_Failure(TF_OpKernelContext* ctx, TF_Status* status) {
  ctx->failure.Update(status->status);
}

TF_DataType TF_ExpectedOutputDataType(TF_OpKernelContext* ctx, int i) {
  const bool exists = CheckIndex("output", i, ctx->context->num_outputs()).ok();
  return ToC(exists ? ctx->context->expected_output_dtype(i) : gradflow::DT_INVALID);
}

bool TF_IsHostMemoryInput(TF_OpKernelContext* ctx, int i, TF_Status* status) {
  return Call(status, [&] { return CheckIndex("input", i, ctx->context->num_inputs()); });
}
bool TF_IsHostMemoryOutput(TF_OpKernelContext* ctx, int i, TF_Status* status) {
  return Call(status, [&] { return CheckIndex("output", i, ctx->context->num_outputs()); });
}

int64_t TF_StepId(TF_OpKernelContext* ctx) { return ctx->context->run().step_id; }
int64_t TF_GetStepId(TF_OpKernelContext* ctx) { return ctx->context->run().step_id; }
uint64_t TF_GetFrameId(TF_OpKernelContext*) { return 0; }
int64_t TF_GetIterId(TF_OpKernelContext*) { return 0; }
int TF_GetDeviceId(TF_OpKernelContext*) { return 0; }
TF_StringView TF_GetDeviceName(TF_OpKernelContext*) {
  return {gradflow::capi::kCpuName, sizeof(gradflow::capi::kCpuName) - 1};
}
int TF_GetGraphDefVersion(TF_OpKernelContext*) { return gradflow::kGraphDefVersion; }
TF_StringView TF_GetOpKernelName(TF_OpKernelContext* ctx) {
  return gradflow::capi::ViewOfString(ctx->node.def.name());
}
TF_StringView TF_GetResourceMgrDefaultContainerName(TF_OpKernelContext*) {
  return {"localhost", 9};
}
TF_StringView TF_GetOpKernelRequestedInput(TF_OpKernelContext* ctx, size_t index) {
  if (index >= static_cast<size_t>(ctx->node.def.input_size())) return {"", 0};
  return gradflow::capi::ViewOfString(ctx->node.def.input(static_cast<int>(index)));
}

TF_Tensor* TF_AllocateOutput(TF_OpKernelContext* context, int index, TF_DataType dtype,
                             const int64_t* dims, int num_dims, size_t, TF_Status* status) {
  TF_Tensor* result = nullptr;
  Call(status, [&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(CheckIndex("output", index, context->context->num_outputs()));
    const gradflow::DataType expected = context->context->expected_output_dtype(index);
    if (FromC(dtype) != expected) {
      return gradflow::errors::InvalidArgument("output ", index, " cannot have type ",
                                               gradflow::DataTypeString(FromC(dtype)),
                                               ", expected ", gradflow::DataTypeString(expected));
    }
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, ShapeFromC(dims, num_dims));
    return gradflow::capi::AllocateOutput(context, index, shape, -1, &result);
  });
  return result;
}

TF_Tensor* TF_ForwardInputOrAllocateOutput(TF_OpKernelContext* context,
                                           const int* candidate_input_indices,
                                           int num_candidate_input_indices, int output_index,
                                           const int64_t* output_dims, int output_num_dims,
                                           int* forwarded_input, TF_Status* status) {
  TF_Tensor* result = nullptr;
  if (forwarded_input != nullptr) *forwarded_input = -1;
  Call(status, [&]() -> absl::Status {
    gradflow::KernelContext& run = *context->context;
    GRADFLOW_RETURN_IF_ERROR(CheckIndex("output", output_index, run.num_outputs()));
    GRADFLOW_RETURN_IF_ERROR(gradflow::capi::CheckArray(
        candidate_input_indices, num_candidate_input_indices, "candidate_input_indices"));
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, ShapeFromC(output_dims, output_num_dims));
    int forwarded = -1;
    for (int i = 0; i < num_candidate_input_indices && forwarded < 0; ++i) {
      const int candidate = candidate_input_indices[i];
      GRADFLOW_RETURN_IF_ERROR(CheckIndex("input", candidate, run.num_inputs()));
      const Tensor& input = run.input(candidate);
      if (input.CanBeReused() && input.dtype() == run.expected_output_dtype(output_index) &&
          input.NumElements() == shape.num_elements() && input.dtype() != gradflow::DT_STRING) {
        forwarded = candidate;
      }
    }
    if (forwarded_input != nullptr) *forwarded_input = forwarded;
    return gradflow::capi::AllocateOutput(context, output_index, shape, forwarded, &result);
  });
  return result;
}

TF_Tensor* TF_AllocateTemp(TF_OpKernelContext* context, TF_DataType dtype, const int64_t* dims,
                           int num_dims, TF_AllocatorAttributes*, TF_Status* status) {
  TF_Tensor* result = nullptr;
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, ShapeFromC(dims, num_dims));
    Tensor tensor;
    GRADFLOW_RETURN_IF_ERROR(context->context->AllocateTemp(FromC(dtype), shape, &tensor));
    GRADFLOW_ASSIGN_OR_RETURN(result, gradflow::capi::TensorToC(std::move(tensor)));
    return absl::OkStatus();
  });
  return result;
}
