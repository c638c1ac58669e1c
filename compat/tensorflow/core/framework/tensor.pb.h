// The messages of tensor.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_PB_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_PB_H_

#include "gradflow/proto/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace tensorflow {

using gradflow::TensorProto;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_PB_H_
