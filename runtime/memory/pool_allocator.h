// PoolAllocator: caches the memory of dropped tensors for later tensors. A session that runs the
// same graph again makes no system calls for memory and touches no new pages.
//
// A block has room for a tensor's header (64 bytes) and for elements of a size class: 64, 128, 192
// or 256 bytes, then four sizes per power of two, or eight from 16 MiB on. At most a fifth of a
// block is unused if it is larger than 256 bytes, and at most a ninth if it is larger than 16 MiB.
// Untouched pages of a large block take no memory. A tensor whose size is a power of two, from 64
// bytes on, fills its block.
//
// Small blocks, of up to 32 KiB of elements, are cached per shard, a group of threads (shards.h).
// Larger blocks and the surplus of the shards are in lists that all threads share.
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
  // Bytes count whole blocks. Bytes in use include reserved bytes.
  struct Stats {
    // Bytes in use now, and their peak since the pool was made or ResetPeak was called. The peak
    // counts all small blocks that the pool holds, in use or not, because counting each block would
    // cost time.
    int64_t bytes_in_use = 0;
    int64_t peak_bytes_in_use = 0;
    // Bytes cached for reuse now.
    int64_t bytes_cached = 0;
    // The number of blocks allocated since the pool was made, and how many of them came from the
    // system.
    int64_t allocations = 0;
    int64_t system_allocations = 0;
  };

  // Returns a quarter of the machine's memory.
  static size_t DefaultLimit();
  // Returns seven eighths of the machine's memory, the largest limit on the bytes in use.
  static size_t MaxLimit();

  // Caches at most about `max_cached_bytes` of unused blocks. Returns the rest to the system, the
  // least recently requested sizes first. Allocate() returns null if the large blocks in use, all
  // small blocks and the reserved bytes would exceed `max_bytes_in_use` or MaxLimit(), even after
  // all unused blocks are returned to the system.
  explicit PoolAllocator(size_t max_cached_bytes = DefaultLimit(),
                         size_t max_bytes_in_use = SIZE_MAX);
  ~PoolAllocator() override;
  PoolAllocator(const PoolAllocator&) = delete;
  PoolAllocator& operator=(const PoolAllocator&) = delete;

  void* Allocate(size_t bytes) override;
  void Deallocate(void* block, size_t bytes) override;
  // Charges `bytes` against the limit of Allocate().
  bool Reserve(size_t bytes) override;
  void Release(size_t bytes) override;

  // Returns all unused blocks to the system.
  void Trim();
  // Calls Trim(). From now on, blocks that are not small are returned to the system when they are
  // deallocated.
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
