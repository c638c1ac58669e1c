// The namespace tsl: an alias for the contents of tensorflow. Internal: included by the headers of
// tsl.
#ifndef GRADFLOW_COMPAT_TSL_TENSORFLOW_NAMES_H_
#define GRADFLOW_COMPAT_TSL_TENSORFLOW_NAMES_H_

namespace tensorflow {}
namespace tsl {
using namespace ::tensorflow;  // NOLINT: that is its purpose
}  // namespace tsl

#endif  // GRADFLOW_COMPAT_TSL_TENSORFLOW_NAMES_H_
