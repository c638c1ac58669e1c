// Tensor. As in TensorFlow, errors, logging and StrCat come with it.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_H_

#include "gradflow/core/allocator.h"
#include "gradflow/core/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/tensor_types.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/lib/core/status.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {

using gradflow::Allocator;
using gradflow::Tensor;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_H_
