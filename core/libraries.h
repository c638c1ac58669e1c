// The libraries that gradflow uses, for bug reports: `gradflow --version` prints them. Each layer
// lists its own; see also io/libraries.h and ops/common/libraries.h.
#ifndef GRADFLOW_CORE_LIBRARIES_H_
#define GRADFLOW_CORE_LIBRARIES_H_

#include <string>
#include <vector>

#pragma GCC visibility push(default)
namespace gradflow {

struct Library {
  std::string name;
  // The loaded version if the library reports it, otherwise the version of its headers. "none" for
  // an optional library that this build does not use.
  std::string version;
};

// Returns Abseil, Protocol Buffers and oneTBB.
std::vector<Library> CoreLibraries();

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_LIBRARIES_H_
