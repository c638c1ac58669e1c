// Paths of files that tests read.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_RESOURCE_LOADER_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_RESOURCE_LOADER_H_

#include <cstdlib>
#include <string>

#include "tensorflow/core/lib/io/path.h"

namespace tensorflow {

// Returns the path of a file below the folder in the environment variable TEST_SRCDIR.
inline std::string GetDataDependencyFilepath(const std::string& path) {
  const char* const folder = std::getenv("TEST_SRCDIR");
  return folder == nullptr ? path : io::JoinPath(folder, path);
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_RESOURCE_LOADER_H_
