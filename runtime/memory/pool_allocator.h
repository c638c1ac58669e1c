// PoolAllocator: caches the memory of dropped tensors for later tensors. A session that runs the
// same graph again makes no system calls for memory and touches no new pages.
//
// A block has room for a tensor's header (64 bytes) and for elements of one of a fixed set of
// sizes, four to each power of two. At most a quarter of a block is unused, and untouched pages of
// a large block take no memory. A tensor of a power of two fills its block. Blocks of up to 32 KiB
// of elements pass through sharded caches, one for every few threads. Larger blocks and the surplus
// of the small caches go through lists that all threads share.
//
//   const auto pool = std::make_shared<PoolAllocator>();
//   Tensor t(pool, DT_FLOAT, {1024, 1024});   // t keeps the pool alive
//
// Thread safety: all methods may be called from any thread.
#ifndef GRADFLOW_RUNTIME_MEMORY_POOL_ALLOCATOR_H_
#define GRADFLOW_RUNTIME_MEMORY_POOL_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "gradflow/core/allocator.h"

#pragma GCC visibility push(default)
namespace gradflow {

class PoolAllocator final : public Allocator {
 public:
  // Byte counts are of blocks, rounded up to their size class. Bytes in use include reserved bytes.
  struct Stats {
    // Bytes in use now, and their peak since the pool was made or ResetPeak was called. The peak
    // counts all small blocks that the pool holds, in use or not, which avoids counting each.
    int64_t bytes_in_use = 0;
    int64_t peak_bytes_in_use = 0;
    // Cached for reuse now.
    int64_t bytes_cached = 0;
    // Blocks handed out since the pool was made, and those of them that came from the system.
    int64_t allocations = 0;
    int64_t system_allocations = 0;
  };

  // Returns a quarter of the machine's memory.
  static size_t DefaultLimit();

  // Caches at most about `max_cached_bytes` of unused blocks. Blocks beyond that are returned to
  // the system, those of the least recently requested sizes first. Allocate() returns null rather
  // than let peak_bytes_in_use exceed `max_bytes_in_use`.
  explicit PoolAllocator(size_t max_cached_bytes = DefaultLimit(),
                         size_t max_bytes_in_use = SIZE_MAX);
  ~PoolAllocator() override;
  PoolAllocator(const PoolAllocator&) = delete;
  PoolAllocator& operator=(const PoolAllocator&) = delete;

  void* Allocate(size_t bytes) override;
  void Deallocate(void* block, size_t bytes) override;
  // Reserves within the limit of Allocate(), or within the machine's memory if there is none.
  bool Reserve(size_t bytes) override;
  void Release(size_t bytes) override;

  // Returns all unused blocks to the system.
  void Trim();
  // As Trim(), permanently: from now on, blocks that are not small are returned as they are
  // dropped.
  void StopCaching();
  // Returns statistics, which are exact if no thread uses the pool during the call.
  Stats GetStats() const;
  void ResetPeak();

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_RUNTIME_MEMORY_POOL_ALLOCATOR_H_
