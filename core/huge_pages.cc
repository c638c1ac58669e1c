#include "gradflow/core/huge_pages.h"

#include <sys/mman.h>

#include <new>

namespace gradflow::internal {

void AdviseHugePages(void* block, size_t bytes) {
  // The block is usable without huge pages, so errors are ignored.
  madvise(block, bytes, MADV_HUGEPAGE);
}

void* AllocateBlock(size_t bytes) {
  if (bytes < kHugePageBytes) return ::operator new(bytes);
  void* const block = ::operator new(bytes, std::align_val_t(kHugePageBytes));
  AdviseHugePages(block, bytes);
  return block;
}

void FreeBlock(void* block, size_t bytes) {
  if (bytes < kHugePageBytes) {
    ::operator delete(block);
  } else {
    ::operator delete(block, std::align_val_t(kHugePageBytes));
  }
}

}  // namespace gradflow::internal
