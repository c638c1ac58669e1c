// Memory in huge pages, where the system has them. Not for users.
//
// A graph grows to hundreds of megabytes. With pages of 4 KiB, the first touch of each would take
// a large part of the time to build it.
#ifndef GRADFLOW_CORE_HUGE_PAGES_H_
#define GRADFLOW_CORE_HUGE_PAGES_H_

#include <cstddef>

namespace gradflow::internal {

inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// Advises the system to back a block with huge pages.
void AdviseHugePages(void* block, size_t bytes);

// Allocates a block, aligned to and backed by huge pages if it is at least one of them long. Throws
// std::bad_alloc.
void* AllocateBlock(size_t bytes);
// REQUIRES: `block` is what AllocateBlock(bytes) returned.
void FreeBlock(void* block, size_t bytes);

// AllocateBlock as an allocator of the standard library.
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
