// Reads the attributes of operations.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "gradflow/c/attributes.h"
#include "gradflow/c/buffer.h"
#include "gradflow/c/graph.h"
#include "gradflow/c/status.h"
#include "gradflow/c/tensor.h"
#include "gradflow/core/attributes.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/tensor_shape.pb.h"

namespace gradflow::capi {
namespace {

absl::StatusOr<const AttrValue*> FindAttr(const Node& node, const char* name) {
  const AttrValue* const value = FindNodeAttr(node.def(), OrEmpty(name));
  if (value != nullptr) return value;
  // TensorFlow's words, which programs look for.
  return errors::InvalidArgument("Operation '", node.name(), "' has no attr named '",
                                 errors::Printable(OrEmpty(name)), "'.");
}

// Returns the attribute if its value is a `kind`. `kind_name` is for the error.
absl::StatusOr<const AttrValue*> FindAttr(const Node& node, const char* name,
                                          AttrValue::ValueCase kind, absl::string_view kind_name) {
  GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* value, FindAttr(node, name));
  if (value->value_case() == kind) return value;
  return errors::InvalidArgument(internal::NodePrefix(node.def()), "attribute ", OrEmpty(name),
                                 " is ", SummarizeAttrValue(*value), ", not ", kind_name);
}

// Stores the status of read(attribute), or of the search for it. Returns true if it is OK. The
// graph does not change during the call.
template <typename F>
bool ReadAttr(const TF_Operation* oper, const char* name, AttrValue::ValueCase kind,
              absl::string_view kind_name, TF_Status* status, F&& read) {
  return Call(status, [&] {
    return ReadNode(oper, [&](const Node& node) -> absl::Status {
      GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* value, FindAttr(node, name, kind, kind_name));
      return read(*value);
    });
  });
}

// Reads a list of ints, floats, bools or types.
template <typename T, typename GetList>
void ReadList(TF_Operation* oper, const char* name, T* values, int max, TF_Status* status,
              GetList get) {
  ReadAttr(oper, name, AttrValue::kList, "a list", status, [&](const AttrValue& value) {
    CopyValues(get(value.list()), values, max);
    return absl::OkStatus();
  });
}

// Returns the sorted names of the attributes.
std::vector<absl::string_view> AttrNames(const Node& node) {
  std::vector<absl::string_view> names;
  for (const auto& [name, value] : node.def().attr()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace
}  // namespace gradflow::capi

using gradflow::AttrValue;
using gradflow::Node;
using gradflow::TensorShapeProto;
using gradflow::capi::Call;
using gradflow::capi::CallOr;
using gradflow::capi::FindAttr;
using gradflow::capi::OrEmpty;
using gradflow::capi::ReadAttr;
using gradflow::capi::ReadList;
using gradflow::capi::ReadNode;

TF_AttrMetadata TF_OperationGetAttrMetadata(TF_Operation* oper, const char* attr_name,
                                            TF_Status* status) {
  TF_AttrMetadata metadata = {0, -1, TF_ATTR_STRING, -1};
  Call(status, [&] {
    return ReadNode(oper, [&](const Node& node) -> absl::Status {
      GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* value, FindAttr(node, attr_name));
      metadata = gradflow::capi::DescribeAttr(node.op_def(), OrEmpty(attr_name), *value);
      return absl::OkStatus();
    });
  });
  return metadata;
}

void TF_OperationGetAttrString(TF_Operation* oper, const char* attr_name, void* value,
                               size_t max_length, TF_Status* status) {
  ReadAttr(oper, attr_name, AttrValue::kS, "a string", status, [&](const AttrValue& attr) {
    const size_t length = std::min(attr.s().size(), max_length);
    if (length > 0) std::memcpy(value, attr.s().data(), length);
    return absl::OkStatus();
  });
}

void TF_OperationGetAttrStringList(TF_Operation* oper, const char* attr_name, void** values,
                                   size_t* lengths, int max_values, void* storage,
                                   size_t storage_size, TF_Status* status) {
  ReadAttr(oper, attr_name, AttrValue::kList, "a list", status, [&](const AttrValue& attr) {
    return gradflow::capi::CopyStrings(attr.list(), values, lengths, max_values, storage,
                                       storage_size);
  });
}

void TF_OperationGetAttrInt(TF_Operation* oper, const char* attr_name, int64_t* value,
                            TF_Status* status) {
  ReadAttr(oper, attr_name, AttrValue::kI, "an int", status, [&](const AttrValue& attr) {
    *value = attr.i();
    return absl::OkStatus();
  });
}

void TF_OperationGetAttrIntList(TF_Operation* oper, const char* attr_name, int64_t* values,
                                int max_values, TF_Status* status) {
  ReadList(
      oper, attr_name, values, max_values, status,
      [](const AttrValue::ListValue& list) -> const auto& { return list.i(); });
}

void TF_OperationGetAttrFloat(TF_Operation* oper, const char* attr_name, float* value,
                              TF_Status* status) {
  ReadAttr(oper, attr_name, AttrValue::kF, "a float", status, [&](const AttrValue& attr) {
    *value = attr.f();
    return absl::OkStatus();
  });
}

void TF_OperationGetAttrFloatList(TF_Operation* oper, const char* attr_name, float* values,
                                  int max_values, TF_Status* status) {
  ReadList(
      oper, attr_name, values, max_values, status,
      [](const AttrValue::ListValue& list) -> const auto& { return list.f(); });
}

void TF_OperationGetAttrBool(TF_Operation* oper, const char* attr_name, unsigned char* value,
                             TF_Status* status) {
  ReadAttr(oper, attr_name, AttrValue::kB, "a bool", status, [&](const AttrValue& attr) {
    *value = attr.b();
    return absl::OkStatus();
  });
}

void TF_OperationGetAttrBoolList(TF_Operation* oper, const char* attr_name, unsigned char* values,
                                 int max_values, TF_Status* status) {
  ReadList(
      oper, attr_name, values, max_values, status,
      [](const AttrValue::ListValue& list) -> const auto& { return list.b(); });
}

void TF_OperationGetAttrType(TF_Operation* oper, const char* attr_name, TF_DataType* value,
                             TF_Status* status) {
  ReadAttr(oper, attr_name, AttrValue::kType, "a type", status, [&](const AttrValue& attr) {
    *value = gradflow::capi::ToC(attr.type());
    return absl::OkStatus();
  });
}

void TF_OperationGetAttrTypeList(TF_Operation* oper, const char* attr_name, TF_DataType* values,
                                 int max_values, TF_Status* status) {
  ReadList(
      oper, attr_name, values, max_values, status,
      [](const AttrValue::ListValue& list) -> const auto& { return list.type(); });
}

void TF_OperationGetAttrShape(TF_Operation* oper, const char* attr_name, int64_t* value,
                              int num_dims, TF_Status* status) {
  ReadAttr(oper, attr_name, AttrValue::kShape, "a shape", status, [&](const AttrValue& attr) {
    if (attr.shape().unknown_rank()) return absl::OkStatus();
    for (int d = 0; d < std::min(attr.shape().dim_size(), num_dims); ++d) {
      value[d] = attr.shape().dim(d).size();
    }
    return absl::OkStatus();
  });
}

void TF_OperationGetAttrShapeList(TF_Operation* oper, const char* attr_name, int64_t** dims,
                                  int* num_dims, int num_shapes, int64_t* storage, int storage_size,
                                  TF_Status* status) {
  ReadAttr(oper, attr_name, AttrValue::kList, "a list", status,
           [&](const AttrValue& attr) -> absl::Status {
             int64_t* place = storage;
             int left = storage_size;
             for (int i = 0; i < std::min(attr.list().shape_size(), num_shapes); ++i) {
               const TensorShapeProto& shape = attr.list().shape(i);
               num_dims[i] = static_cast<int>(gradflow::capi::RankOf(shape));
               dims[i] = num_dims[i] < 0 ? nullptr : place;
               if (num_dims[i] > left) {
                 return gradflow::errors::InvalidArgument(
                     "storage of ", storage_size, " dimensions is too small for the shapes");
               }
               for (int d = 0; d < num_dims[i]; ++d) *place++ = shape.dim(d).size();
               left -= std::max(num_dims[i], 0);
             }
             return absl::OkStatus();
           });
}

void TF_OperationGetAttrTensorShapeProto(TF_Operation* oper, const char* attr_name,
                                         TF_Buffer* value, TF_Status* status) {
  ReadAttr(oper, attr_name, AttrValue::kShape, "a shape", status,
           [&](const AttrValue& attr) { return gradflow::capi::FillBuffer(attr.shape(), value); });
}

void TF_OperationGetAttrTensorShapeProtoList(TF_Operation* oper, const char* attr_name,
                                             TF_Buffer** values, int max_values,
                                             TF_Status* status) {
  int count = 0;
  const bool ok =
      ReadAttr(oper, attr_name, AttrValue::kList, "a list", status,
               [&](const AttrValue& attr) -> absl::Status {
                 for (; count < std::min(attr.list().shape_size(), max_values); ++count) {
                   GRADFLOW_RETURN_IF_ERROR(
                       gradflow::capi::NewBuffer(attr.list().shape(count), &values[count]));
                 }
                 return absl::OkStatus();
               });
  if (ok) return;
  while (count > 0) {
    TF_DeleteBuffer(values[--count]);
    values[count] = nullptr;
  }
}

void TF_OperationGetAttrTensor(TF_Operation* oper, const char* attr_name, TF_Tensor** value,
                               TF_Status* status) {
  *value = nullptr;
  ReadAttr(oper, attr_name, AttrValue::kTensor, "a tensor", status,
           [&](const AttrValue& attr) -> absl::Status {
             GRADFLOW_ASSIGN_OR_RETURN(*value, gradflow::capi::DecodeTensor(attr.tensor()));
             return absl::OkStatus();
           });
}

void TF_OperationGetAttrTensorList(TF_Operation* oper, const char* attr_name, TF_Tensor** values,
                                   int max_values, TF_Status* status) {
  ReadAttr(oper, attr_name, AttrValue::kList, "a list", status, [&](const AttrValue& attr) {
    return gradflow::capi::DecodeTensors(attr.list(), values, max_values);
  });
}

void TF_OperationGetAttrValueProto(TF_Operation* oper, const char* attr_name,
                                   TF_Buffer* output_attr_value, TF_Status* status) {
  Call(status, [&] {
    return ReadNode(oper, [&](const Node& node) -> absl::Status {
      GRADFLOW_ASSIGN_OR_RETURN(const AttrValue* attr, FindAttr(node, attr_name));
      return gradflow::capi::FillBuffer(*attr, output_attr_value);
    });
  });
}

int TF_OperationGetNumAttrs(TF_Operation* oper) {
  return ReadNode(oper, [](const Node& node) { return node.attrs().size(); });
}

int TF_OperationGetAttrNameLength(TF_Operation* oper, int i) {
  return CallOr(-1, [&] {
    return ReadNode(oper, [&](const Node& node) {
      const auto names = gradflow::capi::AttrNames(node);
      return i >= 0 && i < static_cast<int>(names.size()) ? static_cast<int>(names[i].size()) : -1;
    });
  });
}

void TF_OperationGetAttrName(TF_Operation* oper, int i, char* output, TF_Status* status) {
  Call(status, [&] {
    return ReadNode(oper, [&](const Node& node) -> absl::Status {
      const auto names = gradflow::capi::AttrNames(node);
      if (i < 0 || i >= static_cast<int>(names.size())) {
        return gradflow::errors::InvalidArgument("the operation has ", names.size(),
                                                 " attributes, and i is ", i);
      }
      names[i].copy(output, names[i].size());
      return absl::OkStatus();
    });
  });
}
