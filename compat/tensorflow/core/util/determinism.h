// Flags that kernels of the program may query. All kernels of gradflow are deterministic.
#ifndef GRADFLOW_COMPAT_CORE_UTIL_DETERMINISM_H_
#define GRADFLOW_COMPAT_CORE_UTIL_DETERMINISM_H_

namespace tensorflow {

// Return true after EnableOpDeterminism(true), or if the environment variable TF_DETERMINISTIC_OPS
// is 1 or true.
bool OpDeterminismRequired();
bool OpOrderDeterminismRequired();
void EnableOpDeterminism(bool enabled);

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_UTIL_DETERMINISM_H_
