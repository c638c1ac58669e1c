// random::New64: numbers that differ between runs.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_RANDOM_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_RANDOM_H_

#include "tensorflow/core/platform/types.h"

namespace tensorflow {
namespace random {

// Returns a random number. Thread-safe.
uint64 New64();
// Like New64, but from a sequence whose first number is random.
uint64 New64DefaultSeed();

}  // namespace random
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_RANDOM_H_
