// The messages of attr_value.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_ATTR_VALUE_PB_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_ATTR_VALUE_PB_H_

#include "gradflow/proto/attr_value.pb.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace tensorflow {

using gradflow::AttrValue;
using gradflow::NameAttrList;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_ATTR_VALUE_PB_H_
