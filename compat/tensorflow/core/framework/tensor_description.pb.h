// The messages of tensor_description.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_DESCRIPTION_PB_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_DESCRIPTION_PB_H_

#include "gradflow/proto/tensor_description.pb.h"

namespace tensorflow {

using gradflow::TensorDescription;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_DESCRIPTION_PB_H_
