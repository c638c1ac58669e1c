#include "gradflow/runtime/memory/pool_allocator.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "gradflow/core/huge_pages.h"
#include "gradflow/core/mutex.h"
#include "gradflow/runtime/memory/shards.h"

// Poisons blocks in the pool, and the unused end of blocks in use, under AddressSanitizer.
#if defined(__SANITIZE_ADDRESS__)
#define GRADFLOW_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GRADFLOW_ASAN 1
#endif
#endif
#ifdef GRADFLOW_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

namespace gradflow {
namespace {

constexpr size_t kUnit = Allocator::kAlignment;
constexpr size_t kMaxBytes = size_t{1} << 46;
// The size of the header in front of a tensor's elements. Every block has room for the header in
// addition to the size of its class, so that a tensor whose size is a power of two fills its block.
constexpr size_t kHeaderBytes = Allocator::kAlignment;
// Each power of two up to 2^kLargePower units (16 MiB) has four classes; each larger power has
// eight. More steps waste less memory, but a tensor finds fewer blocks of its class in the cache.
constexpr int kLargePower = 18;
constexpr int kMaxPower = 40;
static_assert(kMaxBytes == kUnit << kMaxPower);
constexpr int kNumMediumClasses = 4 * (kLargePower - 1);
constexpr int kNumClasses = kNumMediumClasses + 8 * (kMaxPower - kLargePower);
// The number of classes of blocks, of up to 32 KiB and a header, that go through the shards.
constexpr int kNumSmallClasses = 32;
constexpr size_t kMaxShardBytes = size_t{256} << 10;
// The number of blocks that move from the shared lists to a shard at once.
constexpr int kBatch = 8;

struct SizeClass {
  int index;
  size_t bytes;
};

// Returns the class of the smallest blocks that hold `bytes`: a header and 1 to 4 units, or some
// steps of a power of two. REQUIRES: 0 < bytes <= kMaxBytes
SizeClass ClassFor(size_t bytes) {
  const size_t units = (std::max(bytes, kHeaderBytes + 1) - kHeaderBytes + kUnit - 1) / kUnit;
  if (units <= 4) return {static_cast<int>(units) - 1, kHeaderBytes + units * kUnit};
  // units is in (2^power, 2 * 2^power].
  const int power = 63 - __builtin_clzll(units - 1);
  const bool large = power >= kLargePower;
  const int shift = power - (large ? 3 : 2);
  const size_t steps = ((units - 1) >> shift) + 1;
  const int first = large ? kNumMediumClasses + 8 * (power - kLargePower) : 4 * (power - 1);
  return {first + static_cast<int>(steps) - (large ? 9 : 5),
          kHeaderBytes + (steps << shift) * kUnit};
}

// Returns the size of the blocks of a class. The inverse of ClassFor().
size_t ClassBytes(int index) {
  if (index < 4) return kHeaderBytes + (index + 1) * kUnit;
  if (index < kNumMediumClasses) {
    return kHeaderBytes + ((size_t{5} + index % 4) << (index / 4 - 1)) * kUnit;
  }
  const int large = index - kNumMediumClasses;
  return kHeaderBytes + ((size_t{9} + large % 8) << (large / 8 + kLargePower - 3)) * kUnit;
}

// A block in the pool. The link is stored in the block itself.
struct FreeBlock {
  FreeBlock* next;
};

FreeBlock* Poison(void* block, size_t bytes) {
  ASAN_POISON_MEMORY_REGION(static_cast<char*>(block) + sizeof(FreeBlock),
                            bytes - sizeof(FreeBlock));
  ASAN_UNPOISON_MEMORY_REGION(block, sizeof(FreeBlock));
  return static_cast<FreeBlock*>(block);
}

void Unpoison(void* block, size_t class_bytes, size_t used_bytes) {
  ASAN_UNPOISON_MEMORY_REGION(block, used_bytes);
  ASAN_POISON_MEMORY_REGION(static_cast<char*>(block) + used_bytes, class_bytes - used_bytes);
}

void* SystemAllocate(size_t bytes) {
  // With huge pages, a new block costs a page fault for every 2 MiB instead of every 4 KiB.
  const bool huge = bytes >= 2 * internal::kHugePageBytes;
  void* block = nullptr;
  if (posix_memalign(&block, huge ? internal::kHugePageBytes : kUnit, bytes) != 0) return nullptr;
  if (huge) internal::AdviseHugePages(block, bytes);
  return block;
}

void SystemFree(void* block, size_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(block, bytes);
  std::free(block);
}

// A lock for critical sections of a few instructions.
class ABSL_LOCKABLE SpinLock {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    while (locked_.exchange(true, std::memory_order_acquire)) {
      for (int spins = 0; locked_.load(std::memory_order_relaxed); ++spins) {
        // The holder may be waiting for this very core.
        if (spins % 64 == 63) sched_yield();
      }
    }
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() { locked_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> locked_{false};
};

class ABSL_SCOPED_LOCKABLE SpinLockHolder {
 public:
  explicit SpinLockHolder(SpinLock* lock) ABSL_EXCLUSIVE_LOCK_FUNCTION(lock) : lock_(lock) {
    lock_->Lock();
  }
  ~SpinLockHolder() ABSL_UNLOCK_FUNCTION() { lock_->Unlock(); }
  SpinLockHolder(const SpinLockHolder&) = delete;
  SpinLockHolder& operator=(const SpinLockHolder&) = delete;

 private:
  SpinLock* lock_;
};

// A shard's cache of small blocks.
struct alignas(kShardAlignment) Shard {
  struct List {
    FreeBlock* first = nullptr;
    size_t bytes = 0;
  };

  void Put(SizeClass size_class, FreeBlock* block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock) {
    List& list = free[size_class.index];
    block->next = std::exchange(list.first, block);
    list.bytes += size_class.bytes;
    cached_bytes += size_class.bytes;
  }
  // Returns null if the shard has no block of this class.
  FreeBlock* Take(SizeClass size_class) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock) {
    List& list = free[size_class.index];
    FreeBlock* const block = list.first;
    if (block == nullptr) return nullptr;
    list.first = block->next;
    list.bytes -= size_class.bytes;
    cached_bytes -= size_class.bytes;
    return block;
  }

  SpinLock lock;
  std::array<List, kNumSmallClasses> free ABSL_GUARDED_BY(lock) = {};
  // Bytes of all lists.
  size_t cached_bytes ABSL_GUARDED_BY(lock) = 0;
  // Bytes handed out minus bytes taken back by this shard. Threads may return blocks that others
  // took, so only the sum over the shards is meaningful.
  int64_t bytes_in_use ABSL_GUARDED_BY(lock) = 0;
  int64_t allocations ABSL_GUARDED_BY(lock) = 0;
};

}  // namespace

struct PoolAllocator::Impl {
  Impl(size_t cached, size_t in_use) : max_cached_bytes(cached), max_bytes_in_use(in_use) {}

  // Takes a block of the class from the shared lists or the system. Counts a large block as in use;
  // the caller counts a small one in its shard. Before it fails, returns all unused blocks to the
  // system. For a small class, returns up to kBatch - 1 further blocks in *more.
  void* Take(SizeClass size_class, FreeBlock** more);
  // Like Take(), but fails at once if the limit is reached or the system is out of memory.
  void* TryTake(SizeClass size_class, FreeBlock** more);
  bool TryReserve(size_t bytes);
  // Puts a list of blocks of the class on the shared lists.
  void Give(SizeClass size_class, FreeBlock* blocks);
  // Moves all blocks of the shards to the shared lists.
  void EmptyShards();
  // Takes blocks off the shared lists until at most `bytes` are left there, and returns them to the
  // system.
  void Shrink(size_t bytes);

  // Returns the bytes that count against the limit.
  size_t BytesInUse() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return static_cast<size_t>(large_in_use + small_held + reserved);
  }
  void UpdatePeak() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    peak = std::max(peak, static_cast<int64_t>(BytesInUse()));
  }

  std::atomic<size_t> max_cached_bytes;
  const size_t max_bytes_in_use;
  std::array<Shard, kNumShards> shards;

  mutable Mutex mutex;
  std::array<FreeBlock*, kNumClasses> free ABSL_GUARDED_BY(mutex) = {};
  // For each class, the value of `clock` when a block was last requested.
  std::array<uint64_t, kNumClasses> last_used ABSL_GUARDED_BY(mutex) = {};
  uint64_t clock ABSL_GUARDED_BY(mutex) = 0;
  // Bytes in `free`.
  size_t cached_bytes ABSL_GUARDED_BY(mutex) = 0;
  int64_t large_in_use ABSL_GUARDED_BY(mutex) = 0;
  // Bytes of small blocks from the system, wherever they are now.
  int64_t small_held ABSL_GUARDED_BY(mutex) = 0;
  // Bytes that are counted here and allocated elsewhere.
  int64_t reserved ABSL_GUARDED_BY(mutex) = 0;
  int64_t peak ABSL_GUARDED_BY(mutex) = 0;
  // The number of large blocks that were allocated, and the number of blocks of any size that came
  // from the system.
  int64_t allocations ABSL_GUARDED_BY(mutex) = 0;
  int64_t system_allocations ABSL_GUARDED_BY(mutex) = 0;
};

void* PoolAllocator::Impl::Take(SizeClass size_class, FreeBlock** more) {
  void* const block = TryTake(size_class, more);
  if (block != nullptr) return block;
  EmptyShards();
  Shrink(0);
  return TryTake(size_class, more);
}

void* PoolAllocator::Impl::TryTake(SizeClass size_class, FreeBlock** more) {
  const auto [index, bytes] = size_class;
  const bool small = index < kNumSmallClasses;
  int64_t& in_use = small ? small_held : large_in_use;
  {
    MutexLock lock(&mutex);
    last_used[index] = ++clock;
    FreeBlock* const first = free[index];
    // Small blocks count as in use even when they are free.
    const size_t more_in_use = small && first != nullptr ? 0 : bytes;
    if (more_in_use > max_bytes_in_use - std::min(max_bytes_in_use, BytesInUse())) return nullptr;
    in_use += more_in_use;
    if (first != nullptr) {
      FreeBlock* last = first;
      int count = 1;
      for (; small && count < kBatch && last->next != nullptr; ++count) last = last->next;
      free[index] = last->next;
      last->next = nullptr;
      cached_bytes -= count * bytes;
      *more = first->next;
      if (!small) ++allocations;
      UpdatePeak();
      return first;
    }
  }
  void* const block = SystemAllocate(bytes);
  MutexLock lock(&mutex);
  if (block == nullptr) {
    in_use -= bytes;
    return nullptr;
  }
  ++system_allocations;
  if (!small) ++allocations;
  UpdatePeak();
  return block;
}

bool PoolAllocator::Impl::TryReserve(size_t bytes) {
  MutexLock lock(&mutex);
  if (bytes > max_bytes_in_use - std::min(max_bytes_in_use, BytesInUse())) return false;
  reserved += static_cast<int64_t>(bytes);
  UpdatePeak();
  return true;
}

void PoolAllocator::Impl::Give(SizeClass size_class, FreeBlock* blocks) {
  const auto [index, bytes] = size_class;
  FreeBlock* last = blocks;
  int count = 1;
  for (; last->next != nullptr; ++count) last = last->next;
  bool too_much;
  {
    MutexLock lock(&mutex);
    last->next = free[index];
    free[index] = blocks;
    cached_bytes += count * bytes;
    if (index >= kNumSmallClasses) large_in_use -= bytes;
    too_much = cached_bytes > max_cached_bytes;
  }
  if (too_much) Shrink(max_cached_bytes);
}

void PoolAllocator::Impl::EmptyShards() {
  for (Shard& shard : shards) {
    std::array<Shard::List, kNumSmallClasses> lists = {};
    {
      SpinLockHolder lock(&shard.lock);
      std::swap(lists, shard.free);
      shard.cached_bytes = 0;
    }
    for (int i = 0; i < kNumSmallClasses; ++i) {
      if (lists[i].first != nullptr) Give({i, ClassBytes(i)}, lists[i].first);
    }
  }
}

void PoolAllocator::Impl::Shrink(size_t bytes) {
  // The blocks to return, by class. The system is called without the lock.
  std::array<FreeBlock*, kNumClasses> out = {};
  {
    MutexLock lock(&mutex);
    while (cached_bytes > bytes) {
      int oldest = -1;
      for (int i = 0; i < kNumClasses; ++i) {
        if (free[i] != nullptr && (oldest < 0 || last_used[i] < last_used[oldest])) oldest = i;
      }
      if (oldest < 0) break;
      const size_t block_bytes = ClassBytes(oldest);
      while (free[oldest] != nullptr && cached_bytes > bytes) {
        FreeBlock* block = std::exchange(free[oldest], free[oldest]->next);
        block->next = std::exchange(out[oldest], block);
        cached_bytes -= block_bytes;
        if (oldest < kNumSmallClasses) small_held -= block_bytes;
      }
    }
  }
  for (int i = 0; i < kNumClasses; ++i) {
    while (out[i] != nullptr) {
      FreeBlock* block = std::exchange(out[i], out[i]->next);
      SystemFree(block, ClassBytes(i));
    }
  }
}

namespace {

size_t MachineBytes() {
  static const size_t bytes = [] {
    const int64_t pages = sysconf(_SC_PHYS_PAGES);
    const int64_t page_bytes = sysconf(_SC_PAGE_SIZE);
    if (pages <= 0 || page_bytes <= 0) return size_t{4} << 30;
    return static_cast<size_t>(pages) * page_bytes;
  }();
  return bytes;
}

}  // namespace

size_t PoolAllocator::DefaultLimit() { return MachineBytes() / 4; }

// Leaves an eighth of the machine's memory to the program and the system. Otherwise the system
// would end the process before the pool refuses memory.
size_t PoolAllocator::MaxLimit() { return MachineBytes() / 8 * 7; }

PoolAllocator::PoolAllocator(size_t max_cached_bytes, size_t max_bytes_in_use)
    : impl_(std::make_unique<Impl>(max_cached_bytes, std::min(max_bytes_in_use, MaxLimit()))) {}

PoolAllocator::~PoolAllocator() { Trim(); }

void* PoolAllocator::Allocate(size_t bytes) {
  if (bytes > kMaxBytes) return nullptr;
  const SizeClass size_class = ClassFor(bytes);
  FreeBlock* more = nullptr;
  void* block = nullptr;
  if (size_class.index >= kNumSmallClasses) {
    block = impl_->Take(size_class, &more);
    if (block != nullptr) Unpoison(block, size_class.bytes, bytes);
    return block;
  }
  Shard& shard = impl_->shards[ShardOfThisThread()];
  {
    SpinLockHolder lock(&shard.lock);
    block = shard.Take(size_class);
    if (block != nullptr) {
      shard.bytes_in_use += size_class.bytes;
      ++shard.allocations;
    }
  }
  if (block == nullptr) {
    block = impl_->Take(size_class, &more);
    if (block == nullptr) return nullptr;
    SpinLockHolder lock(&shard.lock);
    shard.bytes_in_use += size_class.bytes;
    ++shard.allocations;
    while (more != nullptr) shard.Put(size_class, std::exchange(more, more->next));
  }
  Unpoison(block, size_class.bytes, bytes);
  return block;
}

void PoolAllocator::Deallocate(void* block, size_t bytes) {
  if (block == nullptr) return;
  const SizeClass size_class = ClassFor(bytes);
  FreeBlock* free_block = Poison(block, size_class.bytes);
  if (size_class.index >= kNumSmallClasses) {
    free_block->next = nullptr;
    impl_->Give(size_class, free_block);
    return;
  }
  Shard::List overflow;
  int overflow_class = 0;
  {
    Shard& shard = impl_->shards[ShardOfThisThread()];
    SpinLockHolder lock(&shard.lock);
    shard.Put(size_class, free_block);
    shard.bytes_in_use -= size_class.bytes;
    if (shard.cached_bytes > kMaxShardBytes) {
      // Empties the class with the most bytes, because blocks of its size may not be needed any
      // more.
      for (int i = 1; i < kNumSmallClasses; ++i) {
        if (shard.free[i].bytes > shard.free[overflow_class].bytes) overflow_class = i;
      }
      overflow = std::exchange(shard.free[overflow_class], Shard::List());
      shard.cached_bytes -= overflow.bytes;
    }
  }
  if (overflow.first != nullptr) {
    impl_->Give({overflow_class, ClassBytes(overflow_class)}, overflow.first);
  }
}

bool PoolAllocator::Reserve(size_t bytes) {
  if (bytes == 0 || impl_->TryReserve(bytes)) return true;
  impl_->EmptyShards();
  impl_->Shrink(0);
  return impl_->TryReserve(bytes);
}

void PoolAllocator::Release(size_t bytes) {
  MutexLock lock(&impl_->mutex);
  impl_->reserved -= static_cast<int64_t>(bytes);
}

void PoolAllocator::Trim() {
  impl_->EmptyShards();
  impl_->Shrink(0);
}

void PoolAllocator::StopCaching() {
  impl_->max_cached_bytes.store(0);
  Trim();
}

PoolAllocator::Stats PoolAllocator::GetStats() const {
  Stats stats;
  for (Shard& shard : impl_->shards) {
    SpinLockHolder lock(&shard.lock);
    stats.bytes_in_use += shard.bytes_in_use;
    stats.bytes_cached += shard.cached_bytes;
    stats.allocations += shard.allocations;
  }
  MutexLock lock(&impl_->mutex);
  stats.bytes_in_use += impl_->large_in_use + impl_->reserved;
  stats.bytes_cached += impl_->cached_bytes;
  stats.peak_bytes_in_use = impl_->peak;
  stats.allocations += impl_->allocations;
  stats.system_allocations = impl_->system_allocations;
  return stats;
}

void PoolAllocator::ResetPeak() {
  MutexLock lock(&impl_->mutex);
  impl_->peak = 0;
  impl_->UpdatePeak();
}

}  // namespace gradflow
