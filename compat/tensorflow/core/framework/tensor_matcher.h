// test::TensorEq: matches a tensor with the same type, shape and elements. Elements of float and
// double may differ by a few units in the last place.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_MATCHER_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_MATCHER_H_

#include <gmock/gmock.h>

#include "gradflow/testing/tensor_matchers.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace test {

inline auto TensorEq(const Tensor& target) {
  const bool exact = target.dtype() != DT_FLOAT && target.dtype() != DT_DOUBLE;
  return gradflow::testing::TensorWithinUlps(target, exact ? 0 : 4);
}

}  // namespace test
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_MATCHER_H_
