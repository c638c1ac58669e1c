#ifndef GRADFLOW_OPS_COMMON_LIBRARIES_H_
#define GRADFLOW_OPS_COMMON_LIBRARIES_H_

#include <vector>

#include "gradflow/core/libraries.h"

#pragma GCC visibility push(default)
namespace gradflow {

// Returns the libraries that the kernels use.
std::vector<Library> KernelLibraries();

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_OPS_COMMON_LIBRARIES_H_
