// The name of this machine.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_HOST_INFO_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_HOST_INFO_H_

#include <unistd.h>

#include <string>

namespace tensorflow {
namespace port {

inline std::string Hostname() {
  char name[256] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "localhost";
}

}  // namespace port
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_HOST_INFO_H_
