// The namespace tsl: a second name of what is in tensorflow. Internal: the headers of tsl include
// it.
#ifndef GRADFLOW_COMPAT_TSL_TENSORFLOW_NAMES_H_
#define GRADFLOW_COMPAT_TSL_TENSORFLOW_NAMES_H_

namespace tensorflow {}
namespace tsl {
using namespace ::tensorflow;  // NOLINT: that is its purpose
}  // namespace tsl

#endif  // GRADFLOW_COMPAT_TSL_TENSORFLOW_NAMES_H_
