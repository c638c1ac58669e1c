// Registration of all op families. A family is a file ops/FOLDER/FAMILY.cc with a function
// gradflow::FAMILY::Register, which registers definitions, shape functions and kernels. The build
// generates the calls (cmake/WriteRegister.cmake), so a new family is listed nowhere.
#ifndef GRADFLOW_OPS_REGISTER_H_
#define GRADFLOW_OPS_REGISTER_H_

#include "gradflow/core/registry.h"

#pragma GCC visibility push(default)
namespace gradflow {

// Registers every op of the library: definitions, shape functions and kernels. Faults, such as an
// op that is already registered, are in registry.status() afterwards.
void RegisterStandardOps(Registry& registry);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_OPS_REGISTER_H_
