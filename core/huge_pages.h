// Memory in huge pages, if the system has them. Internal.
//
// Large graphs take hundreds of megabytes. With small pages, the first touch of each page would
// take a large part of the time to build a graph.
#ifndef GRADFLOW_CORE_HUGE_PAGES_H_
#define GRADFLOW_CORE_HUGE_PAGES_H_

#include <cstddef>

namespace gradflow::internal {

inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// Advises the system to back a block with huge pages.
void AdviseHugePages(void* block, size_t bytes);

// Allocates a block. A block of at least one huge page is aligned to huge pages and backed by them.
// Throws std::bad_alloc.
void* AllocateBlock(size_t bytes);
// REQUIRES: AllocateBlock(bytes) returned `block`.
void FreeBlock(void* block, size_t bytes);

// An allocator for containers of the standard library that calls AllocateBlock().
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

#endif  // GRADFLOW_CORE_HUGE_PAGES_H_
