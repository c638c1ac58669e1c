// The messages of types.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_TYPES_PB_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_TYPES_PB_H_

#include "gradflow/proto/types.pb.h"
#include "tensorflow/core/framework/data_type.h"

namespace tensorflow {

using gradflow::DataType_descriptor;
using gradflow::DataType_IsValid;
using gradflow::DataType_MAX;
using gradflow::DataType_MIN;
using gradflow::DataType_Name;
using gradflow::DataType_Parse;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_TYPES_PB_H_
