#include "gradflow/c/attributes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gradflow/c/buffer.h"
#include "gradflow/c/status.h"
#include "gradflow/c/tensor.h"
#include "gradflow/core/op_def_internal.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/proto/tensor_shape.pb.h"

namespace gradflow::capi {

absl::Status CheckArray(const void* array, int size, absl::string_view what) {
  if (size < 0) return errors::InvalidArgument(what, " has ", size, " elements");
  if (size > 0 && array == nullptr) {
    return errors::InvalidArgument(what, " of ", size, " elements is null");
  }
  return absl::OkStatus();
}

absl::Status StringAttr(const void* text, size_t length, std::string* value) {
  if (text == nullptr && length > 0) {
    return errors::InvalidArgument("a string of ", length, " bytes is null");
  }
  if (length == 0) {
    value->clear();
  } else {
    value->assign(static_cast<const char*>(text), length);
  }
  return absl::OkStatus();
}

absl::Status StringListAttr(const void* const* values, const size_t* lengths, int num_values,
                            AttrValue* value) {
  GRADFLOW_RETURN_IF_ERROR(CheckArray(values, num_values));
  GRADFLOW_RETURN_IF_ERROR(CheckArray(lengths, num_values));
  auto* const list = value->mutable_list();
  list->Clear();
  for (int i = 0; i < num_values; ++i) {
    GRADFLOW_RETURN_IF_ERROR(StringAttr(values[i], lengths[i], list->add_s()));
  }
  return absl::OkStatus();
}

absl::Status IntListAttr(const int64_t* values, int num_values, AttrValue* value) {
  GRADFLOW_RETURN_IF_ERROR(CheckArray(values, num_values));
  auto* const list = value->mutable_list();
  list->Clear();
  list->mutable_i()->Add(values, values + num_values);
  return absl::OkStatus();
}

absl::Status FloatListAttr(const float* values, int num_values, AttrValue* value) {
  GRADFLOW_RETURN_IF_ERROR(CheckArray(values, num_values));
  auto* const list = value->mutable_list();
  list->Clear();
  list->mutable_f()->Add(values, values + num_values);
  return absl::OkStatus();
}

absl::Status BoolListAttr(const unsigned char* values, int num_values, AttrValue* value) {
  GRADFLOW_RETURN_IF_ERROR(CheckArray(values, num_values));
  auto* const list = value->mutable_list();
  list->Clear();
  for (int i = 0; i < num_values; ++i) list->add_b(values[i] != 0);
  return absl::OkStatus();
}

absl::Status TypeListAttr(const TF_DataType* values, int num_values, AttrValue* value) {
  GRADFLOW_RETURN_IF_ERROR(CheckArray(values, num_values));
  auto* const list = value->mutable_list();
  list->Clear();
  for (int i = 0; i < num_values; ++i) list->add_type(FromC(values[i]));
  return absl::OkStatus();
}

absl::Status ShapeAttr(const int64_t* dims, int num_dims, AttrValue* value) {
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape, PartialShapeFromC(dims, num_dims));
  shape.AsProto(value->mutable_shape());
  return absl::OkStatus();
}

absl::Status ShapeListAttr(const int64_t* const* dims, const int* num_dims, int num_shapes,
                           AttrValue* value) {
  GRADFLOW_RETURN_IF_ERROR(CheckArray(dims, num_shapes));
  GRADFLOW_RETURN_IF_ERROR(CheckArray(num_dims, num_shapes));
  auto* const list = value->mutable_list();
  list->Clear();
  for (int i = 0; i < num_shapes; ++i) {
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape,
                              PartialShapeFromC(dims[i], num_dims[i]));
    shape.AsProto(list->add_shape());
  }
  return absl::OkStatus();
}

absl::Status ShapeProtoListAttr(const void* const* protos, const size_t* lengths, int num_shapes,
                                AttrValue* value) {
  GRADFLOW_RETURN_IF_ERROR(CheckArray(protos, num_shapes));
  GRADFLOW_RETURN_IF_ERROR(CheckArray(lengths, num_shapes));
  auto* const list = value->mutable_list();
  list->Clear();
  for (int i = 0; i < num_shapes; ++i) {
    TensorShapeProto* const shape = list->add_shape();
    GRADFLOW_RETURN_IF_ERROR(ParseMessage(protos[i], lengths[i], shape));
    GRADFLOW_RETURN_IF_ERROR(PartialTensorShape::IsValidShape(*shape));
  }
  return absl::OkStatus();
}

absl::Status TensorAttr(const TF_Tensor* tensor, AttrValue* value) {
  if (tensor == nullptr) return errors::InvalidArgument("a tensor is null");
  GRADFLOW_ASSIGN_OR_RETURN(const Tensor copy, TensorFromC(*tensor));
  TensorToProto(copy, value->mutable_tensor());
  return absl::OkStatus();
}

absl::Status TensorListAttr(TF_Tensor* const* tensors, int num_tensors, AttrValue* value) {
  GRADFLOW_RETURN_IF_ERROR(CheckArray(tensors, num_tensors));
  auto* const list = value->mutable_list();
  list->Clear();
  for (int i = 0; i < num_tensors; ++i) {
    AttrValue element;
    GRADFLOW_RETURN_IF_ERROR(TensorAttr(tensors[i], &element));
    list->add_tensor()->Swap(element.mutable_tensor());
  }
  return absl::OkStatus();
}

absl::Status AttrTypeOf(const OpDef& op_def, absl::string_view name, TF_AttrType* type,
                        unsigned char* is_list) {
  const OpDef::AttrDef* const attr = FindAttrDef(op_def, name);
  if (attr == nullptr) {
    return errors::InvalidArgument("op ", op_def.name(), " has no attribute ",
                                   internal::Quoted(name));
  }
  absl::string_view kind = attr->type();
  *is_list = absl::ConsumePrefix(&kind, "list(");
  absl::ConsumeSuffix(&kind, ")");
  constexpr std::pair<absl::string_view, TF_AttrType> kKinds[] = {
      {"string", TF_ATTR_STRING}, {"int", TF_ATTR_INT},   {"float", TF_ATTR_FLOAT},
      {"bool", TF_ATTR_BOOL},     {"type", TF_ATTR_TYPE}, {"shape", TF_ATTR_SHAPE},
      {"tensor", TF_ATTR_TENSOR}, {"func", TF_ATTR_FUNC},
  };
  for (const auto& [kind_name, kind_type] : kKinds) {
    if (kind == kind_name) {
      *type = kind_type;
      return absl::OkStatus();
    }
  }
  return errors::Internal("attribute ", name, " has kind ", attr->type());
}

int64_t RankOf(const TensorShapeProto& shape) {
  return shape.unknown_rank() ? -1 : shape.dim_size();
}

namespace {

// Describes a list. `sizes` are added up, unless they are negative.
template <typename List, typename GetSize>
bool DescribeList(const List& list, TF_AttrType type, GetSize size_of, TF_AttrMetadata* metadata) {
  if (list.empty()) return false;
  metadata->type = type;
  metadata->list_size = list.size();
  int64_t total = 0;
  bool known = true;
  for (const auto& element : list) {
    const int64_t size = size_of(element);
    known &= size >= 0;
    total += std::max<int64_t>(size, 0);
  }
  metadata->total_size = known ? total : -1;
  return true;
}

// Returns the kind that the op definition declares for an attribute.
TF_AttrType DeclaredType(const OpDef& op_def, absl::string_view name) {
  TF_AttrType type = TF_ATTR_STRING;
  unsigned char is_list = 0;
  AttrTypeOf(op_def, name, &type, &is_list).IgnoreError();
  return type;
}

void Describe(const OpDef& op_def, absl::string_view name, const AttrValue& value,
              TF_AttrMetadata* metadata) {
  const auto no_size = [](const auto&) -> int64_t { return -1; };
  *metadata = {0, -1, TF_ATTR_STRING, -1};
  switch (value.value_case()) {
    case AttrValue::kS:
      metadata->total_size = static_cast<int64_t>(value.s().size());
      return;
    case AttrValue::kI:
      metadata->type = TF_ATTR_INT;
      return;
    case AttrValue::kF:
      metadata->type = TF_ATTR_FLOAT;
      return;
    case AttrValue::kB:
      metadata->type = TF_ATTR_BOOL;
      return;
    case AttrValue::kType:
      metadata->type = TF_ATTR_TYPE;
      return;
    case AttrValue::kShape:
      metadata->type = TF_ATTR_SHAPE;
      metadata->total_size = RankOf(value.shape());
      return;
    case AttrValue::kTensor:
      metadata->type = TF_ATTR_TENSOR;
      return;
    case AttrValue::kFunc:
      metadata->type = TF_ATTR_FUNC;
      return;
    case AttrValue::kPlaceholder:
      metadata->type = TF_ATTR_PLACEHOLDER;
      return;
    case AttrValue::kList: {
      metadata->is_list = 1;
      const AttrValue::ListValue& list = value.list();
      const bool found =
          DescribeList(
              list.s(), TF_ATTR_STRING,
              [](const std::string& s) { return static_cast<int64_t>(s.size()); }, metadata) ||
          DescribeList(list.i(), TF_ATTR_INT, no_size, metadata) ||
          DescribeList(list.f(), TF_ATTR_FLOAT, no_size, metadata) ||
          DescribeList(list.b(), TF_ATTR_BOOL, no_size, metadata) ||
          DescribeList(list.type(), TF_ATTR_TYPE, no_size, metadata) ||
          DescribeList(
              list.shape(), TF_ATTR_SHAPE,
              [](const TensorShapeProto& shape) { return std::max<int64_t>(RankOf(shape), 0); },
              metadata) ||
          DescribeList(list.tensor(), TF_ATTR_TENSOR, no_size, metadata) ||
          DescribeList(list.func(), TF_ATTR_FUNC, no_size, metadata);
      if (!found) {
        metadata->list_size = 0;
        metadata->type = DeclaredType(op_def, name);
        const bool has_total = metadata->type == TF_ATTR_STRING || metadata->type == TF_ATTR_SHAPE;
        metadata->total_size = has_total ? 0 : -1;
      }
      return;
    }
    case AttrValue::VALUE_NOT_SET:
      metadata->type = DeclaredType(op_def, name);
      return;
  }
}

}  // namespace

TF_AttrMetadata DescribeAttr(const OpDef& op_def, absl::string_view name, const AttrValue& value) {
  TF_AttrMetadata metadata;
  Describe(op_def, name, value, &metadata);
  return metadata;
}

absl::StatusOr<TF_Tensor*> DecodeTensor(const TensorProto& proto) {
  GRADFLOW_RETURN_IF_ERROR(ValidateTensorProto(proto));
  // A message that repeats one value needs a few bytes for any number of elements.
  const int64_t limit = GraphLimits().max_constant_bytes;
  const int64_t bytes = TensorProtoBytes(proto);
  if (bytes < 0 || bytes > limit) {
    return errors::ResourceExhausted("the tensor of a message has ",
                                     bytes < 0 ? "too many" : absl::StrCat(bytes),
                                     " bytes, expected at most ", limit);
  }
  GRADFLOW_ASSIGN_OR_RETURN(Tensor tensor, TensorFromProto(proto));
  return TensorToC(std::move(tensor));
}

absl::Status DecodeTensors(const AttrValue::ListValue& list, TF_Tensor** tensors, int max) {
  int count = 0;
  const absl::Status status = CallSafely([&]() -> absl::Status {
    for (; count < std::min(list.tensor_size(), max); ++count) {
      GRADFLOW_ASSIGN_OR_RETURN(tensors[count], DecodeTensor(list.tensor(count)));
    }
    return absl::OkStatus();
  });
  while (!status.ok() && count > 0) TF_DeleteTensor(std::exchange(tensors[--count], nullptr));
  return status;
}

}  // namespace gradflow::capi
