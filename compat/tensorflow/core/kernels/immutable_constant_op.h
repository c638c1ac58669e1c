// The names of the attributes of ImmutableConst.
#ifndef GRADFLOW_COMPAT_CORE_KERNELS_IMMUTABLE_CONSTANT_OP_H_
#define GRADFLOW_COMPAT_CORE_KERNELS_IMMUTABLE_CONSTANT_OP_H_

#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow {

class ImmutableConstantOp {
 public:
  static constexpr const char* kDTypeAttr = "dtype";
  static constexpr const char* kShapeAttr = "shape";
  static constexpr const char* kMemoryRegionNameAttr = "memory_region_name";
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_KERNELS_IMMUTABLE_CONSTANT_OP_H_
