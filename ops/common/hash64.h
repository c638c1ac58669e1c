// Hash64: the hash of StringToHashBucket, and of the places in exported dense tables.
#ifndef GRADFLOW_OPS_COMMON_HASH64_H_
#define GRADFLOW_OPS_COMMON_HASH64_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace gradflow {

// Returns MurmurHash64A of the bytes with the seed that TensorFlow uses. The same on all
// processors.
uint64_t Hash64(absl::string_view bytes);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_HASH64_H_
