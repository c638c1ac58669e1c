// TensorFlow's build options. gradflow has no kernels for other devices.
#ifndef GRADFLOW_COMPAT_CORE_UTIL_PORT_H_
#define GRADFLOW_COMPAT_CORE_UTIL_PORT_H_

namespace tensorflow {

inline bool IsGoogleCudaEnabled() { return false; }
inline bool IsBuiltWithROCm() { return false; }
inline bool IsBuiltWithXLA() { return false; }
inline bool IsBuiltWithNvcc() { return false; }
inline bool GpuSupportsHalfMatMulAndConv() { return false; }
inline bool IsMklEnabled() { return false; }
inline bool IsZenDnnEnabled() { return false; }

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_UTIL_PORT_H_
