// Tensor. As in TensorFlow, this header also includes errors, logging and StrCat.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_H_

#include <ostream>

#include "gradflow/core/tensor.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/tensor_types.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/lib/core/status.h"
#include "tensorflow/core/platform/logging.h"

namespace gradflow {

// For LOG and GoogleTest.
inline std::ostream& operator<<(std::ostream& os, const Tensor& tensor) {
  return os << tensor.DebugString();
}

}  // namespace gradflow

namespace tensorflow {

using gradflow::Tensor;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_H_
