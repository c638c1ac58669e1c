// TFE_TensorHandle: a tensor of eager execution.
#ifndef GRADFLOW_C_EAGER_TENSOR_HANDLE_H_
#define GRADFLOW_C_EAGER_TENSOR_HANDLE_H_

#include <utility>

#include "gradflow/core/tensor.h"
#include "tensorflow/c/eager/c_api.h"

struct TFE_TensorHandle {
  explicit TFE_TensorHandle(gradflow::Tensor value) : tensor(std::move(value)) {}
  gradflow::Tensor tensor;
};

#endif  // GRADFLOW_C_EAGER_TENSOR_HANDLE_H_
