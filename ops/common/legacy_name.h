// Second names of ops, which graphs of early versions of TensorFlow have.
#ifndef GRADFLOW_OPS_COMMON_LEGACY_NAME_H_
#define GRADFLOW_OPS_COMMON_LEGACY_NAME_H_

#include <string>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/types.h"

namespace gradflow {

struct LegacyName {
  // The second name, and the op that has the same arguments.
  std::string name;
  std::string op;
  // Graphs of this version and later versions do not have the name.
  int version = 0;
  // The type attribute of the op that allows only `types`; "" if there is none. If there is only
  // one type, the op of the second name has this type and no attribute.
  std::string attr;
  DataTypeVector types;
};

// Registers the second name of an op that is registered, and its kernel.
void RegisterLegacyName(Registry& registry, const LegacyName& legacy, KernelFactory factory);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_LEGACY_NAME_H_
