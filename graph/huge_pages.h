// Memory of graphs: what is large comes in huge pages, where the system has them. A graph grows to
// hundreds of megabytes, of which each page is touched for the first time by a node that is added.
// Not for users.
#ifndef GRADFLOW_GRAPH_HUGE_PAGES_H_
#define GRADFLOW_GRAPH_HUGE_PAGES_H_

#include <cstddef>

namespace gradflow::internal {

inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// Throws std::bad_alloc.
void* AllocateBlock(size_t bytes);
// REQUIRES: `bytes` is what it was allocated with.
void FreeBlock(void* block, size_t bytes);

// For containers of the standard library's kind.
template <typename T>
struct BlockAllocator {
  using value_type = T;
  BlockAllocator() = default;
  template <typename U>
  BlockAllocator(const BlockAllocator<U>&) {}  // NOLINT: allocators convert
  T* allocate(size_t n) { return static_cast<T*>(AllocateBlock(n * sizeof(T))); }
  void deallocate(T* block, size_t n) { FreeBlock(block, n * sizeof(T)); }
  friend bool operator==(BlockAllocator, BlockAllocator) { return true; }
  friend bool operator!=(BlockAllocator, BlockAllocator) { return false; }
};

}  // namespace gradflow::internal

#endif  // GRADFLOW_GRAPH_HUGE_PAGES_H_
