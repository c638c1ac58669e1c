// Ops in C.
#include "tensorflow/c/ops.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/c/status.h"
#include "gradflow/c/tensor.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/op_def_builder.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/proto/op_def.pb.h"

struct TF_OpDefinitionBuilder {
  explicit TF_OpDefinitionBuilder(const char* name) : builder(name) {}
  gradflow::OpDefBuilder builder;
  void (*shape_function)(TF_ShapeInferenceContext* ctx, TF_Status* status) = nullptr;
};

struct TF_ShapeHandle {
  gradflow::PartialTensorShape shape;
};

struct TF_DimensionHandle {
  int64_t size = -1;
};

struct TF_ShapeInferenceContext {
  gradflow::ShapeContext& context;
};

namespace gradflow::capi {
namespace {

using CShapeFunction = void (*)(TF_ShapeInferenceContext* ctx, TF_Status* status);

// The shape functions by op.
struct CShapeFunctions {
  Mutex mutex;
  std::map<std::string, CShapeFunction, std::less<>> by_op ABSL_GUARDED_BY(mutex);
};
CShapeFunctions& AllCShapeFunctions() {
  static auto& functions = *new CShapeFunctions;
  return functions;
}

// Shape function of all ops in C.
absl::Status CallCShapeFunction(ShapeContext& context) {
  CShapeFunction function = nullptr;
  {
    CShapeFunctions& functions = AllCShapeFunctions();
    const MutexLock lock(&functions.mutex);
    const auto found = functions.by_op.find(context.op_def().name());
    if (found != functions.by_op.end()) function = found->second;
  }
  if (function == nullptr) return absl::OkStatus();
  TF_ShapeInferenceContext c_context{context};
  TF_Status status;
  function(&c_context, &status);
  return status.status;
}

absl::Status RegisterOpOf(TF_OpDefinitionBuilder* builder) {
  const std::unique_ptr<TF_OpDefinitionBuilder> owned(builder);
  auto def = std::make_unique<OpDef>();
  GRADFLOW_RETURN_IF_ERROR(builder->builder.Finalize(def.get()));
  const std::string name = def->name();
  CShapeFunctions& functions = AllCShapeFunctions();
  // The lock makes threads that see the new op wait for its shape function.
  const MutexLock lock(&functions.mutex);
  GRADFLOW_RETURN_IF_ERROR(GlobalRegistry().RegisterOp(
      std::move(def), builder->shape_function == nullptr ? nullptr : &CallCShapeFunction));
  functions.by_op[name] = builder->shape_function;
  return absl::OkStatus();
}

// Returns a new handle, or null.
TF_ShapeHandle* NewHandle(PartialTensorShape shape) {
  return CallOr<TF_ShapeHandle*>(nullptr, [&] { return new TF_ShapeHandle{std::move(shape)}; });
}

absl::Status WrongRank(const PartialTensorShape& shape, absl::string_view expected, int64_t rank) {
  return errors::InvalidArgument("Shape must be ", expected, "rank ", rank, " but is rank ",
                                 shape.dims());
}

// Returns `index` counted from the front, within [0, rank].
int64_t Position(int64_t index, int rank) {
  if (index < 0) index += rank;
  return std::min<int64_t>(std::max<int64_t>(index, 0), rank);
}

}  // namespace
}  // namespace gradflow::capi

using gradflow::PartialTensorShape;
using gradflow::capi::Call;
using gradflow::capi::CallOr;
using gradflow::capi::CallQuietly;
using gradflow::capi::NewHandle;
using gradflow::capi::OrEmpty;

// ---- Definitions ----

TF_OpDefinitionBuilder* TF_NewOpDefinitionBuilder(const char* op_name) {
  return CallOr<TF_OpDefinitionBuilder*>(
      nullptr, [&] { return new TF_OpDefinitionBuilder(OrEmpty(op_name)); });
}

void TF_RegisterOpDefinition(TF_OpDefinitionBuilder* builder, TF_Status* status) {
  Call(status, [&] { return gradflow::capi::RegisterOpOf(builder); });
}

void TF_DeleteOpDefinitionBuilder(TF_OpDefinitionBuilder* builder) { delete builder; }

void TF_OpDefinitionBuilderAddAttr(TF_OpDefinitionBuilder* builder, const char* attr_spec) {
  CallQuietly([&] { builder->builder.Attr(OrEmpty(attr_spec)); });
}
void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder* builder, const char* input_spec) {
  CallQuietly([&] { builder->builder.Input(OrEmpty(input_spec)); });
}
void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder* builder, const char* output_spec) {
  CallQuietly([&] { builder->builder.Output(OrEmpty(output_spec)); });
}
void TF_OpDefinitionBuilderSetIsCommutative(TF_OpDefinitionBuilder* builder, bool is_commutative) {
  if (is_commutative) builder->builder.SetIsCommutative();
}
void TF_OpDefinitionBuilderSetIsAggregate(TF_OpDefinitionBuilder* builder, bool is_aggregate) {
  if (is_aggregate) builder->builder.SetIsAggregate();
}
void TF_OpDefinitionBuilderSetIsStateful(TF_OpDefinitionBuilder* builder, bool is_stateful) {
  if (is_stateful) builder->builder.SetIsStateful();
}
void TF_OpDefinitionBuilderSetAllowsUninitializedInput(TF_OpDefinitionBuilder* builder,
                                                       bool allows_uninitialized_input) {
  if (allows_uninitialized_input) builder->builder.SetAllowsUninitializedInput();
}
void TF_OpDefinitionBuilderDeprecated(TF_OpDefinitionBuilder* builder, int version,
                                      const char* explanation) {
  CallQuietly([&] { builder->builder.Deprecated(version, OrEmpty(explanation)); });
}
void TF_OpDefinitionBuilderSetShapeInferenceFunction(
    TF_OpDefinitionBuilder* builder,
    void (*shape_inference_func)(TF_ShapeInferenceContext* ctx, TF_Status* status)) {
  builder->shape_function = shape_inference_func;
}

// ---- Shapes ----

int64_t TF_ShapeInferenceContextNumInputs(TF_ShapeInferenceContext* ctx) {
  return ctx->context.num_inputs();
}

TF_ShapeHandle* TF_NewShapeHandle(void) { return NewHandle(PartialTensorShape()); }

void TF_ShapeInferenceContextGetInput(TF_ShapeInferenceContext* ctx, int i, TF_ShapeHandle* handle,
                                      TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    if (i < 0 || i >= ctx->context.num_inputs()) {
      return gradflow::errors::InvalidArgument("input index out of range");
    }
    handle->shape = ctx->context.input(i);
    return absl::OkStatus();
  });
}

void TF_ShapeInferenceContextSetOutput(TF_ShapeInferenceContext* ctx, int i, TF_ShapeHandle* handle,
                                       TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    if (i < 0 || i >= ctx->context.num_outputs()) {
      return gradflow::errors::InvalidArgument("output index out of range");
    }
    ctx->context.set_output(i, handle->shape);
    return absl::OkStatus();
  });
}

TF_ShapeHandle* TF_ShapeInferenceContextScalar(TF_ShapeInferenceContext*) {
  return NewHandle(PartialTensorShape(gradflow::TensorShape()));
}

TF_ShapeHandle* TF_ShapeInferenceContextVectorFromSize(TF_ShapeInferenceContext*, size_t size) {
  // A size that no dimension can have is unknown.
  return NewHandle(PartialTensorShape::Make({static_cast<int64_t>(size)})
                       .value_or(PartialTensorShape::UnknownOfRank(1)));
}

TF_DimensionHandle* TF_NewDimensionHandle(void) {
  return CallOr<TF_DimensionHandle*>(nullptr, [] { return new TF_DimensionHandle; });
}

void TF_ShapeInferenceContext_GetAttrType(TF_ShapeInferenceContext* ctx, const char* attr_name,
                                          TF_DataType* val, TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    gradflow::DataType type;
    GRADFLOW_RETURN_IF_ERROR(ctx->context.GetAttr(OrEmpty(attr_name), &type));
    *val = gradflow::capi::ToC(type);
    return absl::OkStatus();
  });
}

int64_t TF_ShapeInferenceContextRank(TF_ShapeInferenceContext*, TF_ShapeHandle* handle) {
  return handle->shape.dims();
}
int TF_ShapeInferenceContextRankKnown(TF_ShapeInferenceContext*, TF_ShapeHandle* handle) {
  return handle->shape.unknown_rank() ? 0 : 1;
}

void TF_ShapeInferenceContextWithRank(TF_ShapeInferenceContext*, TF_ShapeHandle* handle,
                                      int64_t rank, TF_ShapeHandle* result, TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    if (rank < 0 || rank > gradflow::kMaxDims) {
      return gradflow::errors::InvalidArgument("a shape cannot have rank ", rank);
    }
    if (handle->shape.unknown_rank()) {
      result->shape = PartialTensorShape::UnknownOfRank(static_cast<int>(rank));
      return absl::OkStatus();
    }
    if (handle->shape.dims() != rank) return gradflow::capi::WrongRank(handle->shape, "", rank);
    result->shape = handle->shape;
    return absl::OkStatus();
  });
}
void TF_ShapeInferenceContextWithRankAtLeast(TF_ShapeInferenceContext*, TF_ShapeHandle* handle,
                                             int64_t rank, TF_ShapeHandle* result,
                                             TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    if (!handle->shape.unknown_rank() && handle->shape.dims() < rank) {
      return gradflow::capi::WrongRank(handle->shape, "at least ", rank);
    }
    result->shape = PartialTensorShape(handle->shape);
    return absl::OkStatus();
  });
}
void TF_ShapeInferenceContextWithRankAtMost(TF_ShapeInferenceContext*, TF_ShapeHandle* handle,
                                            int64_t rank, TF_ShapeHandle* result,
                                            TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    if (!handle->shape.unknown_rank() && handle->shape.dims() > rank) {
      return gradflow::capi::WrongRank(handle->shape, "at most ", rank);
    }
    result->shape = PartialTensorShape(handle->shape);
    return absl::OkStatus();
  });
}

void TF_ShapeInferenceContextDim(TF_ShapeInferenceContext*, TF_ShapeHandle* shape_handle, int64_t i,
                                 TF_DimensionHandle* result) {
  const PartialTensorShape& shape = shape_handle->shape;
  const int64_t d = i < 0 ? i + shape.dims() : i;
  result->size = d >= 0 && d < shape.dims() ? shape.dim_size(static_cast<int>(d)) : -1;
}

void TF_ShapeInferenceContextSubshape(TF_ShapeInferenceContext*, TF_ShapeHandle* shape_handle,
                                      int64_t start, int64_t end, TF_ShapeHandle* result,
                                      TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    const PartialTensorShape& shape = shape_handle->shape;
    if (shape.unknown_rank()) {
      result->shape = PartialTensorShape();
      return absl::OkStatus();
    }
    const int64_t first = gradflow::capi::Position(start, shape.dims());
    const int64_t last = gradflow::capi::Position(end, shape.dims());
    if (first > last) {
      return gradflow::errors::InvalidArgument("Subshape must have computed start <= end, but is ",
                                               first, " and ", last, " (computed from start ",
                                               start, " and end ", end, " over shape with rank ",
                                               shape.dims(), ")");
    }
    const gradflow::DimVector dims(shape.dim_sizes().begin() + first,
                                   shape.dim_sizes().begin() + last);
    GRADFLOW_ASSIGN_OR_RETURN(result->shape, PartialTensorShape::Make(dims));
    return absl::OkStatus();
  });
}

void TF_ShapeInferenceContextSetUnknownShape(TF_ShapeInferenceContext* ctx, TF_Status* status) {
  Call(status, [&] {
    for (int i = 0; i < ctx->context.num_outputs(); ++i) {
      ctx->context.set_output(i, PartialTensorShape());
    }
    return absl::OkStatus();
  });
}

int TF_DimensionHandleValueKnown(TF_DimensionHandle* dim_handle) { return dim_handle->size >= 0; }
int64_t TF_DimensionHandleValue(TF_DimensionHandle* dim_handle) { return dim_handle->size; }

void TF_ShapeInferenceContextConcatenateShapes(TF_ShapeInferenceContext*, TF_ShapeHandle* first,
                                               TF_ShapeHandle* second, TF_ShapeHandle* result,
                                               TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    PartialTensorShape joined;
    GRADFLOW_RETURN_IF_ERROR(first->shape.ConcatenateWithStatus(second->shape, &joined));
    result->shape = joined;
    return absl::OkStatus();
  });
}

void TF_DeleteShapeHandle(TF_ShapeHandle* handle) { delete handle; }
void TF_DeleteDimensionHandle(TF_DimensionHandle* handle) { delete handle; }
