// TensorFloat-32 is a rounding of matrix products on GPUs. Products on the CPU never use it.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_TENSOR_FLOAT_32_UTILS_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_TENSOR_FLOAT_32_UTILS_H_

namespace tensorflow {

// No effect.
inline void enable_tensor_float_32_execution(bool) {}
inline bool tensor_float_32_execution_enabled() { return false; }

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_TENSOR_FLOAT_32_UTILS_H_
