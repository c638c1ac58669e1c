// The number of processors.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_CPU_INFO_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_CPU_INFO_H_

#include <algorithm>
#include <thread>

namespace tensorflow {
namespace port {

inline constexpr bool kLittleEndian = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;

inline int MaxParallelism() {
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}
inline int NumSchedulableCPUs() { return MaxParallelism(); }
inline int NumTotalCPUs() { return MaxParallelism(); }

}  // namespace port
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_CPU_INFO_H_
