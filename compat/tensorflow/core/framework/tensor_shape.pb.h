// The messages of tensor_shape.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_SHAPE_PB_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_SHAPE_PB_H_

#include "gradflow/proto/tensor_shape.pb.h"

namespace tensorflow {

using gradflow::TensorShapeProto;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_SHAPE_PB_H_
