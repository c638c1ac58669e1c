// The messages of tensor_slice.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_SLICE_PB_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_SLICE_PB_H_

#include "gradflow/proto/tensor_slice.pb.h"

namespace tensorflow {

using gradflow::TensorSliceProto;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_SLICE_PB_H_
