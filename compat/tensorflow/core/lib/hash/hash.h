// Hash64. Its values differ from TensorFlow's.
#ifndef GRADFLOW_COMPAT_CORE_LIB_HASH_HASH_H_
#define GRADFLOW_COMPAT_CORE_LIB_HASH_HASH_H_

#include <cstddef>
#include <functional>
#include <string>

#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

// Hash bytes. The values may change with each version.
uint64 Hash64(const char* data, size_t n, uint64 seed);
inline uint64 Hash64(const char* data, size_t n) { return Hash64(data, n, 0xDECAFCAFFE); }
inline uint64 Hash64(absl::string_view text) { return Hash64(text.data(), text.size()); }
inline uint32 Hash32(const char* data, size_t n, uint32 seed) {
  return static_cast<uint32>(Hash64(data, n, seed));
}

inline uint64 Hash64Combine(uint64 a, uint64 b) {
  return a ^ (b + 0x9e3779b97f4a7800ULL + (a << 10) + (a >> 4));
}

// A hash function for hash tables.
template <typename T>
struct hash : std::hash<T> {};
struct StringPieceHasher {
  size_t operator()(absl::string_view text) const { return static_cast<size_t>(Hash64(text)); }
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_HASH_HASH_H_
