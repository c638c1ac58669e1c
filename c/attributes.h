// Attribute values to and from C arrays. Graph operations, eager ops and kernels share these
// functions.
#ifndef GRADFLOW_C_ATTRIBUTES_H_
#define GRADFLOW_C_ATTRIBUTES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/status.h"
#include "gradflow/proto/attr_value.pb.h"
#include "tensorflow/c/c_api.h"
#include "tensorflow/c/tf_attrtype.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_tensor.h"

namespace gradflow {

class OpDef;
class TensorProto;
class TensorShapeProto;

namespace capi {

// Returns INVALID_ARGUMENT for a negative size, or a null array with elements. `what` names it.
absl::Status CheckArray(const void* array, int size, absl::string_view what = "a list");

// Set *value. Return INVALID_ARGUMENT for a negative number of values, a null array, a null string
// of some length or an invalid shape.
absl::Status StringAttr(const void* text, size_t length, std::string* value);
absl::Status StringListAttr(const void* const* values, const size_t* lengths, int num_values,
                            AttrValue* value);
absl::Status IntListAttr(const int64_t* values, int num_values, AttrValue* value);
absl::Status FloatListAttr(const float* values, int num_values, AttrValue* value);
absl::Status BoolListAttr(const unsigned char* values, int num_values, AttrValue* value);
absl::Status TypeListAttr(const TF_DataType* values, int num_values, AttrValue* value);
absl::Status ShapeAttr(const int64_t* dims, int num_dims, AttrValue* value);
absl::Status ShapeListAttr(const int64_t* const* dims, const int* num_dims, int num_shapes,
                           AttrValue* value);
absl::Status ShapeProtoListAttr(const void* const* protos, const size_t* lengths, int num_shapes,
                                AttrValue* value);
absl::Status TensorAttr(const TF_Tensor* tensor, AttrValue* value);
absl::Status TensorListAttr(TF_Tensor* const* tensors, int num_tensors, AttrValue* value);

// Finds the kind of an attribute in a definition. Sets *is_list to 1 for lists. Returns
// INVALID_ARGUMENT if there is no such attribute.
absl::Status AttrTypeOf(const OpDef& op_def, absl::string_view name, TF_AttrType* type,
                        unsigned char* is_list);

// Returns the kind and sizes of a value.
TF_AttrMetadata DescribeAttr(const OpDef& op_def, absl::string_view name, const AttrValue& value);

// Returns the rank, or -1 if it is unknown.
int64_t RankOf(const TensorShapeProto& shape);

// Returns a new tensor. Returns RESOURCE_EXHAUSTED if it has more bytes than the constants of a
// graph may have (GraphLimits).
absl::StatusOr<TF_Tensor*> DecodeTensor(const TensorProto& proto);
// Stores new tensors, up to `max`. Stores null pointers on error.
absl::Status DecodeTensors(const AttrValue::ListValue& list, TF_Tensor** tensors, int max);

// Copies values, up to `max`.
template <typename List, typename T>
void CopyValues(const List& list, T* values, int max) {
  const int count = std::min<int>(list.size(), std::max(max, 0));
  for (int i = 0; i < count; ++i) values[i] = static_cast<T>(list.Get(i));
}

// Copies strings, up to `max`, to `storage`, and stores their addresses and lengths. Returns
// INVALID_ARGUMENT if the storage is too small.
template <typename Pointer>
absl::Status CopyStrings(const AttrValue::ListValue& list, Pointer* strings, size_t* lengths,
                         int max, void* storage, size_t storage_size) {
  char* place = static_cast<char*>(storage);
  size_t left = storage_size;
  for (int i = 0; i < std::min(list.s_size(), max); ++i) {
    const std::string& s = list.s(i);
    if (s.size() > left) {
      return errors::InvalidArgument("storage of ", storage_size,
                                     " bytes is too small for the strings");
    }
    if (!s.empty()) std::memcpy(place, s.data(), s.size());
    strings[i] = place;
    lengths[i] = s.size();
    place += s.size();
    left -= s.size();
  }
  return absl::OkStatus();
}

}  // namespace capi
}  // namespace gradflow

#endif  // GRADFLOW_C_ATTRIBUTES_H_
