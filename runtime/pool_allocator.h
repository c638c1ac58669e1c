// PoolAllocator: keeps the memory of dropped tensors for the tensors to come, so that a session
// which runs the same graph again asks the system for nothing and touches no new pages.
//
// A block has room for a tensor's header (64 bytes) and for one of a fixed set of sizes, four to
// each power of two, so at most a quarter of it is unused (and of a large block, pages that no one
// touches take no memory); a tensor of a power of two fills its block. Blocks of up to 32 KiB of
// elements pass through a cache per thread (or rather, per few threads), larger ones and what the
// small caches have too much of through lists that all threads share.
//
//   const auto pool = std::make_shared<PoolAllocator>();
//   Tensor t(pool, DT_FLOAT, {1024, 1024});   // t keeps the pool alive
//
// Thread safety: all of it may be used from any thread.
#ifndef GRADFLOW_RUNTIME_POOL_ALLOCATOR_H_
#define GRADFLOW_RUNTIME_POOL_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "gradflow/core/allocator.h"

#pragma GCC visibility push(default)
namespace gradflow {

class PoolAllocator final : public Allocator {
 public:
  // Bytes of blocks, as they were rounded up to their size class, and in use also what is reserved.
  struct Stats {
    // In use now, and the most that were since the pool was made or ResetPeak was called. The peak
    // counts all small blocks that the pool holds, in use or not, which saves counting each.
    int64_t bytes_in_use = 0;
    int64_t peak_bytes_in_use = 0;
    // Kept for reuse now.
    int64_t bytes_cached = 0;
    // How many blocks were handed out since the pool was made, and how many of them came from the
    // system.
    int64_t allocations = 0;
    int64_t system_allocations = 0;
  };

  // A quarter of the machine's memory.
  static size_t DefaultLimit();

  // Keeps at most about `max_cached_bytes` of unused blocks; what comes back beyond that goes back
  // to the system, blocks of the sizes that were not asked for longest first. Allocate() returns
  // null rather than let peak_bytes_in_use exceed `max_bytes_in_use`.
  explicit PoolAllocator(size_t max_cached_bytes = DefaultLimit(),
                         size_t max_bytes_in_use = SIZE_MAX);
  ~PoolAllocator() override;
  PoolAllocator(const PoolAllocator&) = delete;
  PoolAllocator& operator=(const PoolAllocator&) = delete;

  void* Allocate(size_t bytes) override;
  void Deallocate(void* block, size_t bytes) override;
  // Within the same limit as blocks; without one, within the machine's memory.
  bool Reserve(size_t bytes) override;
  void Release(size_t bytes) override;

  // Gives all unused blocks back to the system.
  void Trim();
  // The same for good: from now on, blocks that are not small go back as they are dropped.
  void StopCaching();
  // Exact if no thread uses the pool meanwhile.
  Stats GetStats() const;
  void ResetPeak();

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_RUNTIME_POOL_ALLOCATOR_H_
