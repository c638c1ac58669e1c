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
  // For example "linalg/qr" for ops/linalg/qr.cc.
  const char* name;
  // Registers the family.
  FamilyRegistration registration;
};

// Returns the families that this build contains, sorted by name.
absl::Span<const OpFamily> StandardOpFamilies();

// Returns the names of the gradflow ops that this build leaves out (CMake option GRADFLOW_OPS).
absl::Span<const char* const> LeftOutOps();

// Registers all ops of this build: definitions, shape functions and kernels. registry.status() then
// reports faults, such as an op that is already registered.
void RegisterStandardOps(Registry& registry);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_OPS_REGISTER_H_
