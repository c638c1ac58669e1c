// Copies elements of any type.
#ifndef GRADFLOW_OPS_COMMON_ELEMENT_COPY_H_
#define GRADFLOW_OPS_COMMON_ELEMENT_COPY_H_

#include <cstdint>

#include "gradflow/core/tensor.h"

namespace gradflow {

// Copies `count` elements from position `from_at` on to position `to_at` on. REQUIRES: the tensors
// have one type and these elements
void CopyElements(const Tensor& from, int64_t from_at, int64_t count, Tensor* to, int64_t to_at);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_ELEMENT_COPY_H_
