// port::InitMain. It does nothing, because gradflow has no command-line flags.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_INIT_MAIN_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_INIT_MAIN_H_

namespace tensorflow {
namespace port {

inline void InitMain(const char*, int*, char***) {}

}  // namespace port
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_INIT_MAIN_H_
