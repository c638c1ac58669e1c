#include "gradflow/graph/huge_pages.h"

#include <sys/mman.h>

#include <new>

namespace gradflow::internal {

void* AllocateBlock(size_t bytes) {
  if (bytes < kHugePageBytes) return ::operator new(bytes);
  void* const block = ::operator new(bytes, std::align_val_t(kHugePageBytes));
  // Advice only.
  madvise(block, bytes, MADV_HUGEPAGE);
  return block;
}

void FreeBlock(void* block, size_t bytes) {
  if (bytes < kHugePageBytes) {
    ::operator delete(block);
  } else {
    ::operator delete(block, std::align_val_t(kHugePageBytes));
  }
}

namespace {

class BlockResource final : public std::pmr::memory_resource {
  void* do_allocate(size_t bytes, size_t) override { return AllocateBlock(bytes); }
  void do_deallocate(void* block, size_t bytes, size_t) override { FreeBlock(block, bytes); }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

}  // namespace

std::unique_ptr<std::pmr::memory_resource> MakeBlockPool() {
  static BlockResource& blocks = *new BlockResource();
  std::pmr::pool_options options;
  options.max_blocks_per_chunk = 16384;
  return std::make_unique<std::pmr::unsynchronized_pool_resource>(options, &blocks);
}

}  // namespace gradflow::internal
