#include "gradflow/c/eager/op.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gradflow/c/attributes.h"
#include "gradflow/c/buffer.h"
#include "gradflow/c/eager/device_name.h"
#include "gradflow/c/eager/tensor_handle.h"
#include "gradflow/c/status.h"
#include "gradflow/c/tensor.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow::capi {
namespace {

void AppendRaw(const void* bytes, size_t size, std::string* out) {
  out->append(static_cast<const char*>(bytes), size);
}

// Appends an attribute to a key: name, kind and value. Values of the frequent kinds are raw bytes.
void AppendAttr(absl::string_view name, const AttrValue& value, std::string* key) {
  const auto size = static_cast<uint32_t>(name.size());
  AppendRaw(&size, sizeof(size), key);
  key->append(name.data(), name.size());
  key->push_back(static_cast<char>(value.value_case()));
  switch (value.value_case()) {
    case AttrValue::kType: {
      const int32_t type = value.type();
      return AppendRaw(&type, sizeof(type), key);
    }
    case AttrValue::kI: {
      const int64_t i = value.i();
      return AppendRaw(&i, sizeof(i), key);
    }
    case AttrValue::kB:
      return key->push_back(value.b() ? 1 : 0);
    default: {
      const std::string bytes = value.SerializeAsString();
      const uint64_t length = bytes.size();
      AppendRaw(&length, sizeof(length), key);
      key->append(bytes);
    }
  }
}

// Sets an attribute to the value that make(&value) makes, or keeps the error.
template <typename F>
void KeepOpAttr(TFE_Op* op, const char* name, F&& make) noexcept {
  op->Update(CallSafely([&]() -> absl::Status {
    AttrValue value;
    if (absl::Status status = make(&value); !status.ok()) {
      return errors::Prefix(absl::StrCat("attribute ", internal::Quoted(OrEmpty(name)), ": "),
                            status);
    }
    SetOpAttr(OrEmpty(name), std::move(value), op);
    return absl::OkStatus();
  }));
}

bool HasAttr(const TFE_Op& op, absl::string_view name) {
  return std::any_of(op.attrs.values.begin(), op.attrs.values.end(),
                     [&](const auto& attr) { return attr.first == name; });
}

// Sets the attributes that follow from a list of inputs, which is the next argument of the op, so
// that TFE_OpGetAttrs() has them.
void InferAttrs(absl::Span<const Tensor> inputs, TFE_Op* op) {
  const auto& args = op->op_def->input_arg();
  const size_t index = op->arguments.size();
  if (index >= static_cast<size_t>(args.size()) || !IsListArg(args[index])) return;
  for (size_t i = 0; i < index; ++i) {
    if (IsListArg(args[i]) == (op->arguments[i] == TFE_Op::kSingle)) return;
  }
  const OpDef::ArgDef& arg = args[index];
  AttrValue value;
  if (!arg.type_list_attr().empty()) {
    value.mutable_list();
    for (const Tensor& input : inputs) value.mutable_list()->add_type(input.dtype());
    if (!HasAttr(*op, arg.type_list_attr())) SetOpAttr(arg.type_list_attr(), value, op);
    return;
  }
  value.set_i(static_cast<int64_t>(inputs.size()));
  if (!HasAttr(*op, arg.number_attr())) SetOpAttr(arg.number_attr(), value, op);
  if (arg.type_attr().empty() || inputs.empty() || HasAttr(*op, arg.type_attr())) return;
  value.set_type(inputs[0].dtype());
  SetOpAttr(arg.type_attr(), std::move(value), op);
}

void SetFunction(const TFE_Op& function, NameAttrList* out) {
  out->set_name(function.attrs.op);
  for (const auto& [name, value] : function.attrs.values)
    out->mutable_attr()->insert({name, value});
}

}  // namespace

absl::Status ResetOp(TFE_Context* context, absl::string_view name, TFE_Op* op) {
  op->context = context;
  GRADFLOW_ASSIGN_OR_RETURN(op->op_def, context->FindOpDef(name));
  op->attrs.op = std::string(name);
  op->attrs.values.clear();
  op->device.clear();
  op->inputs.clear();
  op->arguments.clear();
  op->handles.clear();
  op->cancellation = nullptr;
  op->status = absl::OkStatus();
  op->key = op->attrs.op;
  // No op name contains a zero byte.
  op->key.push_back('\0');
  return absl::OkStatus();
}

void SetOpAttr(absl::string_view name, AttrValue value, TFE_Op* op) {
  AppendAttr(name, value, &op->key);
  op->attrs.values.emplace_back(std::string(name), std::move(value));
}

}  // namespace gradflow::capi

using gradflow::AttrValue;
using gradflow::CallSafely;
using gradflow::capi::Call;
using gradflow::capi::FromC;
using gradflow::capi::KeepOpAttr;
using gradflow::capi::OrEmpty;

TFE_Op* TFE_NewOp(TFE_Context* ctx, const char* op_or_function_name, TF_Status* status) {
  TFE_Op* result = nullptr;
  Call(status, [&]() -> absl::Status {
    auto op = std::make_unique<TFE_Op>();
    GRADFLOW_RETURN_IF_ERROR(gradflow::capi::ResetOp(ctx, OrEmpty(op_or_function_name), op.get()));
    result = op.release();
    return absl::OkStatus();
  });
  return result;
}

void TFE_DeleteOp(TFE_Op* op) { delete op; }

void TFE_OpReset(TFE_Op* op_to_reset, const char* op_or_function_name, const char* raw_device_name,
                 TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(
        gradflow::capi::ResetOp(op_to_reset->context, OrEmpty(op_or_function_name), op_to_reset));
    GRADFLOW_RETURN_IF_ERROR(gradflow::capi::CheckDevice(OrEmpty(raw_device_name)));
    op_to_reset->device = OrEmpty(raw_device_name);
    return absl::OkStatus();
  });
}

const char* TFE_OpGetName(const TFE_Op* op, TF_Status* status) {
  TF_SetStatus(status, TF_OK, "");
  return op->attrs.op.c_str();
}
TFE_Context* TFE_OpGetContext(const TFE_Op* op, TF_Status* status) {
  TF_SetStatus(status, TF_OK, "");
  return op->context;
}

void TFE_OpSetDevice(TFE_Op* op, const char* device_name, TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    const char* const name = OrEmpty(device_name);
    GRADFLOW_RETURN_IF_ERROR(gradflow::capi::CheckDevice(name));
    op->device = *name == '\0' ? "" : gradflow::capi::kCpuName;
    return absl::OkStatus();
  });
}
const char* TFE_OpGetDevice(const TFE_Op* op, TF_Status* status) {
  TF_SetStatus(status, TF_OK, "");
  return op->device.c_str();
}

// ---- Inputs ----

void TFE_OpAddInput(TFE_Op* op, TFE_TensorHandle* input, TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    if (input == nullptr) return gradflow::errors::InvalidArgument("Invalid handle");
    op->inputs.push_back(input->tensor);
    op->arguments.push_back(TFE_Op::kSingle);
    return absl::OkStatus();
  });
}

void TFE_OpAddInputList(TFE_Op* op, TFE_TensorHandle** inputs, int num_inputs, TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(gradflow::capi::CheckArray(inputs, num_inputs, "inputs"));
    for (int i = 0; i < num_inputs; ++i) {
      if (inputs[i] == nullptr) return gradflow::errors::InvalidArgument("Invalid handle");
    }
    for (int i = 0; i < num_inputs; ++i) op->inputs.push_back(inputs[i]->tensor);
    gradflow::capi::InferAttrs(absl::MakeSpan(op->inputs).last(num_inputs), op);
    op->arguments.push_back(num_inputs);
    return absl::OkStatus();
  });
}

int TFE_OpGetFlatInputCount(const TFE_Op* op, TF_Status* status) {
  TF_SetStatus(status, TF_OK, "");
  return static_cast<int>(op->inputs.size());
}

TFE_TensorHandle* TFE_OpGetFlatInput(const TFE_Op* const_op, int index, TF_Status* status) {
  TFE_TensorHandle* result = nullptr;
  Call(status, [&]() -> absl::Status {
    auto* const op = const_cast<TFE_Op*>(const_op);
    if (index < 0 || index >= static_cast<int>(op->inputs.size())) {
      return gradflow::errors::InvalidArgument("the op has ", op->inputs.size(),
                                               " inputs, and index is ", index);
    }
    op->handles.resize(op->inputs.size());
    auto& handle = op->handles[index];
    if (handle == nullptr) handle = std::make_unique<TFE_TensorHandle>(op->inputs[index]);
    result = handle.get();
    return absl::OkStatus();
  });
  return result;
}

// ---- Attributes ----

TF_AttrType TFE_OpGetAttrType(TFE_Op* op, const char* attr_name, unsigned char* is_list,
                              TF_Status* status) {
  TF_AttrType result = TF_ATTR_STRING;
  *is_list = 0;
  Call(status, [&] {
    return gradflow::capi::AttrTypeOf(*op->op_def, OrEmpty(attr_name), &result, is_list);
  });
  return result;
}

TF_AttrType TFE_OpNameGetAttrType(TFE_Context* ctx, const char* op_or_function_name,
                                  const char* attr_name, unsigned char* is_list,
                                  TF_Status* status) {
  TF_AttrType result = TF_ATTR_STRING;
  *is_list = 0;
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<const gradflow::OpDef> op_def,
                              ctx->FindOpDef(OrEmpty(op_or_function_name)));
    return gradflow::capi::AttrTypeOf(*op_def, OrEmpty(attr_name), &result, is_list);
  });
  return result;
}

void TFE_OpSetAttrString(TFE_Op* op, const char* attr_name, const void* value, size_t length) {
  KeepOpAttr(op, attr_name, [&](AttrValue* out) {
    return gradflow::capi::StringAttr(value, length, out->mutable_s());
  });
}
void TFE_OpSetAttrInt(TFE_Op* op, const char* attr_name, int64_t value) {
  KeepOpAttr(op, attr_name, [&](AttrValue* out) { return out->set_i(value), absl::OkStatus(); });
}
void TFE_OpSetAttrFloat(TFE_Op* op, const char* attr_name, float value) {
  KeepOpAttr(op, attr_name, [&](AttrValue* out) { return out->set_f(value), absl::OkStatus(); });
}
void TFE_OpSetAttrBool(TFE_Op* op, const char* attr_name, unsigned char value) {
  KeepOpAttr(op, attr_name,
             [&](AttrValue* out) { return out->set_b(value != 0), absl::OkStatus(); });
}
void TFE_OpSetAttrType(TFE_Op* op, const char* attr_name, TF_DataType value) {
  KeepOpAttr(op, attr_name,
             [&](AttrValue* out) { return out->set_type(FromC(value)), absl::OkStatus(); });
}
void TFE_OpSetAttrShape(TFE_Op* op, const char* attr_name, const int64_t* dims, const int num_dims,
                        TF_Status* out_status) {
  Call(out_status, [&]() -> absl::Status {
    AttrValue value;
    GRADFLOW_RETURN_IF_ERROR(gradflow::capi::ShapeAttr(dims, num_dims, &value));
    gradflow::capi::SetOpAttr(OrEmpty(attr_name), std::move(value), op);
    return absl::OkStatus();
  });
}
void TFE_OpSetAttrFunction(TFE_Op* op, const char* attr_name, const TFE_Op* value) {
  KeepOpAttr(op, attr_name, [&](AttrValue* out) {
    gradflow::capi::SetFunction(*value, out->mutable_func());
    return absl::OkStatus();
  });
}
void TFE_OpSetAttrFunctionName(TFE_Op* op, const char* attr_name, const char* data, size_t length) {
  KeepOpAttr(op, attr_name, [&](AttrValue* out) {
    return gradflow::capi::StringAttr(data, length, out->mutable_func()->mutable_name());
  });
}
void TFE_OpSetAttrTensor(TFE_Op* op, const char* attr_name, TF_Tensor* tensor, TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    AttrValue value;
    GRADFLOW_RETURN_IF_ERROR(gradflow::capi::TensorAttr(tensor, &value));
    gradflow::capi::SetOpAttr(OrEmpty(attr_name), std::move(value), op);
    return absl::OkStatus();
  });
}
void TFE_OpSetAttrStringList(TFE_Op* op, const char* attr_name, const void* const* values,
                             const size_t* lengths, int num_values) {
  KeepOpAttr(op, attr_name, [&](AttrValue* out) {
    return gradflow::capi::StringListAttr(values, lengths, num_values, out);
  });
}
void TFE_OpSetAttrIntList(TFE_Op* op, const char* attr_name, const int64_t* values,
                          int num_values) {
  KeepOpAttr(op, attr_name,
             [&](AttrValue* out) { return gradflow::capi::IntListAttr(values, num_values, out); });
}
void TFE_OpSetAttrFloatList(TFE_Op* op, const char* attr_name, const float* values,
                            int num_values) {
  KeepOpAttr(op, attr_name, [&](AttrValue* out) {
    return gradflow::capi::FloatListAttr(values, num_values, out);
  });
}
void TFE_OpSetAttrBoolList(TFE_Op* op, const char* attr_name, const unsigned char* values,
                           int num_values) {
  KeepOpAttr(op, attr_name,
             [&](AttrValue* out) { return gradflow::capi::BoolListAttr(values, num_values, out); });
}
void TFE_OpSetAttrTypeList(TFE_Op* op, const char* attr_name, const TF_DataType* values,
                           int num_values) {
  KeepOpAttr(op, attr_name,
             [&](AttrValue* out) { return gradflow::capi::TypeListAttr(values, num_values, out); });
}
void TFE_OpSetAttrShapeList(TFE_Op* op, const char* attr_name, const int64_t** dims,
                            const int* num_dims, int num_values, TF_Status* out_status) {
  Call(out_status, [&]() -> absl::Status {
    AttrValue value;
    GRADFLOW_RETURN_IF_ERROR(gradflow::capi::ShapeListAttr(dims, num_dims, num_values, &value));
    gradflow::capi::SetOpAttr(OrEmpty(attr_name), std::move(value), op);
    return absl::OkStatus();
  });
}
void TFE_OpSetAttrFunctionList(TFE_Op* op, const char* attr_name, const TFE_Op** value,
                               int num_values) {
  KeepOpAttr(op, attr_name, [&](AttrValue* out) {
    out->mutable_list();
    for (int i = 0; i < num_values; ++i) {
      gradflow::capi::SetFunction(*value[i], out->mutable_list()->add_func());
    }
    return absl::OkStatus();
  });
}
void TFE_OpSetAttrValueProto(const TFE_Op* op, const char* attr_name, const void* proto,
                             size_t proto_len, TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    AttrValue value;
    GRADFLOW_RETURN_IF_ERROR(gradflow::capi::ParseMessage(proto, proto_len, &value));
    gradflow::capi::SetOpAttr(OrEmpty(attr_name), std::move(value), const_cast<TFE_Op*>(op));
    return absl::OkStatus();
  });
}

// ---- Attributes as an object ----

const TFE_OpAttrs* TFE_OpGetAttrs(const TFE_Op* op) { return &op->attrs; }

void TFE_OpAddAttrs(TFE_Op* op, const TFE_OpAttrs* attrs) {
  op->Update(CallSafely([&] {
    const std::vector<std::pair<std::string, AttrValue>> values = attrs->values;
    for (const auto& [name, value] : values) gradflow::capi::SetOpAttr(name, value, op);
    return absl::OkStatus();
  }));
}

void TFE_OpAttrsSerialize(const TFE_OpAttrs* attrs, TF_Buffer* buf, TF_Status* status) {
  Call(status, [&] {
    gradflow::NameAttrList list;
    list.set_name(attrs->op);
    for (const auto& [name, value] : attrs->values) list.mutable_attr()->insert({name, value});
    return gradflow::capi::FillBuffer(list, buf);
  });
}
