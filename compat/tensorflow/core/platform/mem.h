// port::AlignedMalloc and AlignedFree.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_MEM_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_MEM_H_

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace tensorflow {
namespace port {

// Returns null if memory is exhausted. REQUIRES: `alignment` is a power of two
inline void* AlignedMalloc(size_t size, int alignment) {
  void* block = nullptr;
  const size_t least = std::max(static_cast<size_t>(alignment), sizeof(void*));
  return ::posix_memalign(&block, least, size) == 0 ? block : nullptr;
}
inline void AlignedFree(void* block) { std::free(block); }
inline void* Malloc(size_t size) { return std::malloc(size); }
inline void* Realloc(void* block, size_t size) { return std::realloc(block, size); }
inline void Free(void* block) { std::free(block); }

}  // namespace port
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_MEM_H_
