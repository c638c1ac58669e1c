// Functions of eager/c_api_experimental.h that have no other file, and shape inference.
#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "gradflow/c/buffer.h"
#include "gradflow/c/eager/context.h"
#include "gradflow/c/eager/execute.h"
#include "gradflow/c/eager/op.h"
#include "gradflow/c/eager/tensor_handle.h"
#include "gradflow/c/status.h"
#include "gradflow/c/tensor.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/c/eager/c_api_experimental.h"

struct TFE_Executor {
  bool is_async;
};

namespace gradflow::capi {
namespace {

constexpr char kOneProcess[] = "gradflow has no clusters: it runs in one process";

// True if the executor that this thread has set is asynchronous. Empty if the thread has set none.
thread_local std::optional<bool> thread_is_async;

// Returns the number of tensors of all arguments.
int CountTensors(const NameRangeMap& ranges) {
  int count = 0;
  for (const auto& [name, range] : ranges) count = std::max(count, range.second);
  return count;
}

// Runs the shape function of an op on shapes and known tensors.
absl::Status InferShapesOf(const TFE_Op& op, const TF_ShapeAndTypeList& input_shapes,
                           TF_Tensor** input_tensors, TF_ShapeAndTypeList** output_shapes) {
  const OpRegistration* const registration = GlobalRegistry().FindOp(op.attrs.op);
  if (registration == nullptr) {
    return errors::Unimplemented("functions have no shape functions: ", op.attrs.op);
  }
  NodeDef node;
  node.set_name(op.attrs.op);
  node.set_op(op.attrs.op);
  for (const auto& [name, value] : op.attrs.values) node.mutable_attr()->insert({name, value});
  AddDefaultsToNodeDef(registration->def(), &node);
  NameRangeMap input_ranges;
  NameRangeMap output_ranges;
  GRADFLOW_RETURN_IF_ERROR(
      NameRangesForNode(node, registration->def(), &input_ranges, &output_ranges));
  const int num_inputs = CountTensors(input_ranges);
  const int num_outputs = CountTensors(output_ranges);
  if (input_shapes.num_items != num_inputs) {
    return errors::InvalidArgument("op ", op.attrs.op, " has ", num_inputs,
                                   " inputs, but there are ", input_shapes.num_items, " shapes");
  }
  std::vector<PartialTensorShape> shapes;
  std::vector<Tensor> tensors(input_shapes.num_items, Tensor(Tensor::Unset{}));
  for (int i = 0; i < input_shapes.num_items; ++i) {
    const TF_ShapeAndType& item = input_shapes.items[i];
    GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape,
                              PartialShapeFromC(item.dims, item.num_dims));
    if (input_tensors != nullptr && input_tensors[i] != nullptr) {
      GRADFLOW_ASSIGN_OR_RETURN(tensors[i], TensorFromC(*input_tensors[i]));
      if (shape.unknown_rank()) shape = PartialTensorShape(tensors[i].shape());
    }
    shapes.push_back(std::move(shape));
  }
  std::vector<const PartialTensorShape*> pointers;
  for (const PartialTensorShape& shape : shapes) pointers.push_back(&shape);
  DataTypeVector types;
  for (const Tensor& tensor : tensors) types.push_back(tensor.dtype());
  const auto constant = [&](int i) -> const Tensor* {
    return tensors[i].dtype() == DT_INVALID ? nullptr : &tensors[i];
  };
  ShapeContext context(node, registration->def(), pointers, types, num_outputs, constant);
  if (registration->shape_fn() != nullptr) {
    GRADFLOW_RETURN_IF_ERROR(registration->shape_fn()(context));
  }
  *output_shapes = TF_NewShapeAndTypeList(num_outputs);
  for (int i = 0; i < num_outputs; ++i) {
    const PartialTensorShape& shape = context.output(i);
    if (shape.unknown_rank()) continue;
    TF_ShapeAndTypeListSetShape(*output_shapes, i, shape.dim_sizes().data(), shape.dims());
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace gradflow::capi

using gradflow::capi::Call;
using gradflow::capi::CallOr;

uint64_t TFE_GetContextId(TFE_Context* ctx) { return reinterpret_cast<uintptr_t>(ctx); }

void TFE_InferShapes(TFE_Op* op, TF_ShapeAndTypeList* input_shapes, TF_Tensor** input_tensors,
                     TF_ShapeAndTypeList*, TF_ShapeAndTypeList**,
                     TF_ShapeAndTypeList** output_shapes,
                     TF_ShapeAndTypeList*** output_resource_shapes_and_types, TF_Status* status) {
  *output_shapes = nullptr;
  if (output_resource_shapes_and_types != nullptr) *output_resource_shapes_and_types = nullptr;
  Call(status, [&] {
    return gradflow::capi::InferShapesOf(*op, *input_shapes, input_tensors, output_shapes);
  });
}

// ---- Executors ----

TFE_Executor* TFE_NewExecutor(bool is_async, bool, int) {
  return CallOr<TFE_Executor*>(nullptr, [&] { return new TFE_Executor{is_async}; });
}
void TFE_DeleteExecutor(TFE_Executor* executor) { delete executor; }
bool TFE_ExecutorIsAsync(TFE_Executor* executor) { return executor->is_async; }
void TFE_ExecutorWaitForAllPendingNodes(TFE_Executor*, TF_Status* status) {
  TF_SetStatus(status, TF_OK, "");
}
void TFE_ExecutorClearError(TFE_Executor*) {}
void TFE_ContextSetExecutorForThread(TFE_Context*, TFE_Executor* executor) {
  gradflow::capi::thread_is_async =
      executor == nullptr ? std::nullopt : std::optional<bool>(executor->is_async);
}
TFE_Executor* TFE_ContextGetExecutorForThread(TFE_Context* ctx) {
  return TFE_NewExecutor(gradflow::capi::thread_is_async.value_or(ctx->async), false, 0);
}
void TFE_ContextAsyncWait(TFE_Context*, TF_Status* status) { TF_SetStatus(status, TF_OK, ""); }

// ---- Settings without an effect, and clusters ----

void TFE_ContextSetSoftDevicePlacement(TFE_Context*, unsigned char, TF_Status* status) {
  TF_SetStatus(status, TF_OK, "");
}
void TFE_ContextSetLogDevicePlacement(TFE_Context*, unsigned char, TF_Status* status) {
  TF_SetStatus(status, TF_OK, "");
}
void TFE_ContextUpdateServerDef(TFE_Context*, int, const void*, size_t, TF_Status* status) {
  TF_SetStatus(status, TF_UNIMPLEMENTED, gradflow::capi::kOneProcess);
}
void TFE_ContextSetServerDefWithTimeout(TFE_Context*, int, const void*, size_t, int64_t,
                                        TF_Status* status, bool) {
  TF_SetStatus(status, TF_UNIMPLEMENTED, gradflow::capi::kOneProcess);
}

void TFE_GetExecutedOpNames(TFE_Context*, TF_Buffer* buf, TF_Status* status) {
  Call(status, [&] { return gradflow::capi::FillBuffer(absl::string_view(), buf); });
}

TFE_TensorHandle* TFE_NewTensorHandleFromDeviceMemory(
    TFE_Context*, const char*, TF_DataType dtype, const int64_t* dims, int num_dims, void* data,
    size_t len, void (*deallocator)(void* data, size_t len, void* arg), void* deallocator_arg,
    TF_Status* status) {
  TFE_TensorHandle* result = nullptr;
  Call(status, [&]() -> absl::Status {
    const std::unique_ptr<TF_Tensor, decltype(&TF_DeleteTensor)> tensor(
        TF_NewTensor(dtype, dims, num_dims, data, len, deallocator, deallocator_arg),
        &TF_DeleteTensor);
    if (tensor == nullptr) {
      return gradflow::errors::InvalidArgument("the type, shape or size of the memory is wrong");
    }
    result = TFE_NewTensorHandle(tensor.get(), status);
    return status->status;
  });
  return result;
}
