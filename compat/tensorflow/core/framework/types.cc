#include "tensorflow/core/framework/types.h"

#include "tensorflow/core/framework/full_type.pb.h"

namespace tensorflow {
namespace {

gradflow::FullTypeId TypeId(DataType dtype) {
  switch (dtype) {
    case DT_FLOAT:
      return TFT_FLOAT;
    case DT_DOUBLE:
      return TFT_DOUBLE;
    case DT_HALF:
      return TFT_HALF;
    case DT_BFLOAT16:
      return TFT_BFLOAT16;
    case DT_INT8:
      return TFT_INT8;
    case DT_INT16:
      return TFT_INT16;
    case DT_INT32:
      return TFT_INT32;
    case DT_INT64:
      return TFT_INT64;
    case DT_UINT8:
      return TFT_UINT8;
    case DT_UINT16:
      return TFT_UINT16;
    case DT_UINT32:
      return TFT_UINT32;
    case DT_UINT64:
      return TFT_UINT64;
    case DT_BOOL:
      return TFT_BOOL;
    case DT_STRING:
      return TFT_STRING;
    case DT_COMPLEX64:
      return TFT_COMPLEX64;
    case DT_COMPLEX128:
      return TFT_COMPLEX128;
    default:
      return TFT_UNSET;
  }
}

}  // namespace

void map_dtype_to_tensor(const DataType& dtype, gradflow::FullTypeDef& t) {
  t.Clear();
  t.set_type_id(TypeId(dtype));
}

void map_dtype_to_child_of_tensor(const DataType& dtype, gradflow::FullTypeDef& t) {
  t.Clear();
  t.set_type_id(TFT_TENSOR);
  map_dtype_to_tensor(dtype, *t.add_args());
}

}  // namespace tensorflow
