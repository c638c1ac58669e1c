// Registration of all op families. A family is a file ops/FOLDER/FAMILY.cc with a function
// gradflow::FAMILY::Register, which registers definitions, shape functions and kernels.
// ops/FOLDER/sources.cmake lists the families.
#ifndef GRADFLOW_OPS_REGISTER_H_
#define GRADFLOW_OPS_REGISTER_H_

#include "absl/types/span.h"
#include "gradflow/core/registry.h"

#pragma GCC visibility push(default)
namespace gradflow {

// Registers the ops and kernels of a family.
using FamilyRegistration = void (*)(Registry& registry);

// A family of ops.
struct OpFamily {
  // "linalg/qr" for ops/linalg/qr.cc.
  const char* name;
  // Registers the family.
  FamilyRegistration registration;
};

// Returns the families that this build contains, sorted by name.
absl::Span<const OpFamily> StandardOpFamilies();

// Returns the names of gradflow's ops that this build leaves out (CMake's GRADFLOW_OPS).
absl::Span<const char* const> LeftOutOps();

// Registers every op of the library: definitions, shape functions and kernels. Faults, such as an
// op that is already registered, are in registry.status() afterwards.
void RegisterStandardOps(Registry& registry);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_OPS_REGISTER_H_
