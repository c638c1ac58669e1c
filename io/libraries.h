#ifndef GRADFLOW_IO_LIBRARIES_H_
#define GRADFLOW_IO_LIBRARIES_H_

#include <vector>

#include "gradflow/core/libraries.h"

#pragma GCC visibility push(default)
namespace gradflow {

// Returns the libraries of image files and compressed files.
std::vector<Library> FileLibraries();

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_IO_LIBRARIES_H_
