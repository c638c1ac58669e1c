// Typed access to attributes. attr_value.cc has the functions of whole values.
#include "gradflow/core/attributes.h"

#include <limits>
#include <string_view>

#include "gradflow/core/out_parameter.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/node_def.pb.h"

namespace gradflow {
namespace {

// Returns attribute `name` of the node, checking that it has type `type`.
absl::StatusOr<const AttrValue*> TypedAttr(const NodeDef& node, absl::string_view name,
                                           absl::string_view type) {
  const AttrValue* value = FindNodeAttr(node, name);
  if (value == nullptr) return errors::NotFound("attribute ", name, " is missing");
  if (absl::Status status = AttrValueHasType(*value, type); !status.ok()) {
    return errors::Prefix(absl::StrCat("attribute ", name, ": "), status);
  }
  return value;
}

absl::Status NarrowToInt32(int64_t wide, absl::string_view name, int32_t* value) {
  if (wide < std::numeric_limits<int32_t>::min() || wide > std::numeric_limits<int32_t>::max()) {
    return errors::InvalidArgument("attribute ", name, ": expected an int of 32 bits, but found ",
                                   wide);
  }
  *value = static_cast<int32_t>(wide);
  return absl::OkStatus();
}

absl::Status TensorAttr(const TensorProto& proto, absl::string_view name, Tensor* value) {
  absl::StatusOr<Tensor> tensor = TensorFromProto(proto);
  if (!tensor.ok()) {
    return errors::Prefix(absl::StrCat("attribute ", name, ": "), tensor.status());
  }
  *value = *std::move(tensor);
  return absl::OkStatus();
}

// Replaces *out with an empty list.
AttrValue::ListValue* ResetToList(AttrValue* out) {
  out->Clear();
  return out->mutable_list();
}

}  // namespace

const AttrValue* FindNodeAttr(const NodeDef& node, absl::string_view name) {
  const auto it = node.attr().find(std::string_view(name.data(), name.size()));
  return it == node.attr().end() ? nullptr : &it->second;
}

absl::Status AttrSlice::Find(absl::string_view name, const AttrValue** value) const {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(value, "AttrSlice::Find", "value"));
  *value = Find(name);
  if (*value != nullptr) return absl::OkStatus();
  return errors::NotFound("node '", node_->name(), "' has no attribute '", name, "'");
}

int AttrSlice::size() const { return static_cast<int>(node_->attr_size()); }
std::string AttrSlice::SummarizeNode() const { return SummarizeNodeDef(*node_); }

namespace internal {

AttrValue* MutableNodeAttr(NodeDef* node, absl::string_view name) {
  return &(*node->mutable_attr())[std::string(name)];
}

}  // namespace internal

// ---- Reading ----

absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, std::string* value) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(value, "GetNodeAttr", "value"));
  GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* attr, TypedAttr(node, name, "string"));
  *value = attr->s();
  return absl::OkStatus();
}

absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, int64_t* value) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(value, "GetNodeAttr", "value"));
  GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* attr, TypedAttr(node, name, "int"));
  *value = attr->i();
  return absl::OkStatus();
}

absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, int32_t* value) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(value, "GetNodeAttr", "value"));
  GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* attr, TypedAttr(node, name, "int"));
  return NarrowToInt32(attr->i(), name, value);
}

absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, float* value) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(value, "GetNodeAttr", "value"));
  GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* attr, TypedAttr(node, name, "float"));
  *value = attr->f();
  return absl::OkStatus();
}

absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, bool* value) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(value, "GetNodeAttr", "value"));
  GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* attr, TypedAttr(node, name, "bool"));
  *value = attr->b();
  return absl::OkStatus();
}

absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, DataType* value) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(value, "GetNodeAttr", "value"));
  GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* attr, TypedAttr(node, name, "type"));
  *value = attr->type();
  return absl::OkStatus();
}

absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, TensorShape* value) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(value, "GetNodeAttr", "value"));
  GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* attr, TypedAttr(node, name, "shape"));
  absl::StatusOr<TensorShape> shape = TensorShape::Make(attr->shape());
  if (!shape.ok()) return errors::Prefix(absl::StrCat("attribute ", name, ": "), shape.status());
  *value = *std::move(shape);
  return absl::OkStatus();
}

absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, PartialTensorShape* value) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(value, "GetNodeAttr", "value"));
  GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* attr, TypedAttr(node, name, "shape"));
  GRADFLOW_ASSIGN_OR_RETURN(*value, PartialTensorShape::Make(attr->shape()));
  return absl::OkStatus();
}

absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, Tensor* value) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(value, "GetNodeAttr", "value"));
  GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* attr, TypedAttr(node, name, "tensor"));
  return TensorAttr(attr->tensor(), name, value);
}

absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name,
                         std::vector<std::string>* value) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(value, "GetNodeAttr", "value"));
  GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* attr, TypedAttr(node, name, "list(string)"));
  value->assign(attr->list().s().begin(), attr->list().s().end());
  return absl::OkStatus();
}

absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, std::vector<int64_t>* value) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(value, "GetNodeAttr", "value"));
  GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* attr, TypedAttr(node, name, "list(int)"));
  value->assign(attr->list().i().begin(), attr->list().i().end());
  return absl::OkStatus();
}

absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, std::vector<int32_t>* value) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(value, "GetNodeAttr", "value"));
  GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* attr, TypedAttr(node, name, "list(int)"));
  std::vector<int32_t> narrow(attr->list().i_size());
  for (int i = 0; i < attr->list().i_size(); ++i) {
    GRADFLOW_RETURN_IF_ERROR(NarrowToInt32(attr->list().i(i), name, &narrow[i]));
  }
  *value = std::move(narrow);
  return absl::OkStatus();
}

absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, std::vector<float>* value) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(value, "GetNodeAttr", "value"));
  GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* attr, TypedAttr(node, name, "list(float)"));
  value->assign(attr->list().f().begin(), attr->list().f().end());
  return absl::OkStatus();
}

absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, std::vector<bool>* value) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(value, "GetNodeAttr", "value"));
  GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* attr, TypedAttr(node, name, "list(bool)"));
  value->assign(attr->list().b().begin(), attr->list().b().end());
  return absl::OkStatus();
}

absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, DataTypeVector* value) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(value, "GetNodeAttr", "value"));
  GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* attr, TypedAttr(node, name, "list(type)"));
  value->clear();
  for (const int type : attr->list().type()) value->push_back(static_cast<DataType>(type));
  return absl::OkStatus();
}

absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name,
                         std::vector<PartialTensorShape>* value) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(value, "GetNodeAttr", "value"));
  GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* attr, TypedAttr(node, name, "list(shape)"));
  std::vector<PartialTensorShape> shapes(attr->list().shape_size());
  for (int i = 0; i < attr->list().shape_size(); ++i) {
    GRADFLOW_ASSIGN_OR_RETURN(shapes[i], PartialTensorShape::Make(attr->list().shape(i)));
  }
  *value = std::move(shapes);
  return absl::OkStatus();
}

absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, std::vector<Tensor>* value) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(value, "GetNodeAttr", "value"));
  GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* attr, TypedAttr(node, name, "list(tensor)"));
  std::vector<Tensor> tensors(attr->list().tensor_size());
  for (int i = 0; i < attr->list().tensor_size(); ++i) {
    GRADFLOW_RETURN_IF_ERROR(TensorAttr(attr->list().tensor(i), name, &tensors[i]));
  }
  *value = std::move(tensors);
  return absl::OkStatus();
}

absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, NameAttrList* value) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(value, "GetNodeAttr", "value"));
  GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* attr, TypedAttr(node, name, "func"));
  *value = attr->func();
  return absl::OkStatus();
}

absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name,
                         std::vector<NameAttrList>* value) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(value, "GetNodeAttr", "value"));
  GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* attr, TypedAttr(node, name, "list(func)"));
  value->assign(attr->list().func().begin(), attr->list().func().end());
  return absl::OkStatus();
}

// ---- Writing ----

void SetAttrValue(absl::string_view value, AttrValue* out) {
  internal::RequireOut(out, "SetAttrValue", "out");
  out->set_s(std::string(value));
}
void SetAttrValue(const char* value, AttrValue* out) {
  internal::RequireOut(out, "SetAttrValue", "out");
  SetAttrValue(absl::NullSafeStringView(value), out);
}
void SetAttrValue(const std::string& value, AttrValue* out) {
  internal::RequireOut(out, "SetAttrValue", "out");
  SetAttrValue(absl::string_view(value), out);
}
void SetAttrValue(int64_t value, AttrValue* out) {
  internal::RequireOut(out, "SetAttrValue", "out");
  out->set_i(value);
}
void SetAttrValue(int32_t value, AttrValue* out) {
  internal::RequireOut(out, "SetAttrValue", "out");
  out->set_i(value);
}
void SetAttrValue(float value, AttrValue* out) {
  internal::RequireOut(out, "SetAttrValue", "out");
  out->set_f(value);
}
void SetAttrValue(double value, AttrValue* out) {
  internal::RequireOut(out, "SetAttrValue", "out");
  out->set_f(static_cast<float>(value));
}
void SetAttrValue(bool value, AttrValue* out) {
  internal::RequireOut(out, "SetAttrValue", "out");
  out->set_b(value);
}
void SetAttrValue(DataType value, AttrValue* out) {
  internal::RequireOut(out, "SetAttrValue", "out");
  out->set_type(value);
}
void SetAttrValue(const TensorShape& value, AttrValue* out) {
  internal::RequireOut(out, "SetAttrValue", "out");
  value.AsProto(out->mutable_shape());
}
void SetAttrValue(const PartialTensorShape& value, AttrValue* out) {
  internal::RequireOut(out, "SetAttrValue", "out");
  value.AsProto(out->mutable_shape());
}
void SetAttrValue(const Tensor& value, AttrValue* out) {
  internal::RequireOut(out, "SetAttrValue", "out");
  out->Clear();
  TensorToProto(value, out->mutable_tensor());
}

void SetAttrValue(absl::Span<const absl::string_view> value, AttrValue* out) {
  internal::RequireOut(out, "SetAttrValue", "out");
  // The views may point into *out.
  AttrValue result;
  AttrValue::ListValue* list = result.mutable_list();
  for (const absl::string_view item : value) list->add_s(std::string(item));
  out->Swap(&result);
}
void SetAttrValue(absl::Span<const std::string> value, AttrValue* out) {
  internal::RequireOut(out, "SetAttrValue", "out");
  AttrValue::ListValue* list = ResetToList(out);
  for (const std::string& item : value) list->add_s(item);
}
void SetAttrValue(absl::Span<const int64_t> value, AttrValue* out) {
  internal::RequireOut(out, "SetAttrValue", "out");
  ResetToList(out)->mutable_i()->Add(value.begin(), value.end());
}
void SetAttrValue(absl::Span<const int32_t> value, AttrValue* out) {
  internal::RequireOut(out, "SetAttrValue", "out");
  ResetToList(out)->mutable_i()->Add(value.begin(), value.end());
}
void SetAttrValue(absl::Span<const float> value, AttrValue* out) {
  internal::RequireOut(out, "SetAttrValue", "out");
  ResetToList(out)->mutable_f()->Add(value.begin(), value.end());
}
void SetAttrValue(absl::Span<const bool> value, AttrValue* out) {
  internal::RequireOut(out, "SetAttrValue", "out");
  ResetToList(out)->mutable_b()->Add(value.begin(), value.end());
}
void SetAttrValue(const std::vector<bool>& value, AttrValue* out) {
  internal::RequireOut(out, "SetAttrValue", "out");
  ResetToList(out)->mutable_b()->Add(value.begin(), value.end());
}
void SetAttrValue(absl::Span<const DataType> value, AttrValue* out) {
  internal::RequireOut(out, "SetAttrValue", "out");
  ResetToList(out)->mutable_type()->Add(value.begin(), value.end());
}
void SetAttrValue(absl::Span<const PartialTensorShape> value, AttrValue* out) {
  internal::RequireOut(out, "SetAttrValue", "out");
  AttrValue::ListValue* list = ResetToList(out);
  for (const PartialTensorShape& item : value) item.AsProto(list->add_shape());
}
void SetAttrValue(absl::Span<const Tensor> value, AttrValue* out) {
  internal::RequireOut(out, "SetAttrValue", "out");
  AttrValue::ListValue* list = ResetToList(out);
  for (const Tensor& item : value) TensorToProto(item, list->add_tensor());
}
void SetAttrValue(const NameAttrList& value, AttrValue* out) {
  internal::RequireOut(out, "SetAttrValue", "out");
  *out->mutable_func() = value;
}
void SetAttrValue(absl::Span<const NameAttrList> value, AttrValue* out) {
  internal::RequireOut(out, "SetAttrValue", "out");
  AttrValue::ListValue* list = ResetToList(out);
  for (const NameAttrList& item : value) *list->add_func() = item;
}
void SetAttrValue(const AttrValue& value, AttrValue* out) {
  internal::RequireOut(out, "SetAttrValue", "out");
  *out = value;
}

}  // namespace gradflow
