// Sharding by thread: a counter that many threads update has a copy per shard, so that each thread
// writes to memory that few other threads write. Internal.
#ifndef GRADFLOW_RUNTIME_MEMORY_SHARDS_H_
#define GRADFLOW_RUNTIME_MEMORY_SHARDS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace gradflow {

inline constexpr int kNumShards = 16;
// Processors fetch cache lines in pairs.
inline constexpr size_t kShardAlignment = 128;

// Returns the shard of the calling thread, in [0, kNumShards), the same on every call. Two threads
// share a shard only if more threads have called this function than there are shards.
inline int ShardOfThisThread() {
  // Unsigned, so that it may wrap.
  static std::atomic<uint32_t> threads{0};
  thread_local const int shard = threads.fetch_add(1, std::memory_order_relaxed) % kNumShards;
  return shard;
}

// One object with a reference count for each shard. Threads that take and drop references to it do
// not write to shared memory.
template <typename T>
class ShardedPtr {
 public:
  ShardedPtr() = default;
  explicit ShardedPtr(const std::shared_ptr<T>& object) {
    for (std::shared_ptr<T>& one : by_shard_) {
      one = {std::make_shared<Owner>(Owner{object}), object.get()};
    }
  }

  // Returns a pointer that uses the count of this thread's shard.
  const std::shared_ptr<T>& get() const { return by_shard_[ShardOfThisThread()]; }

 private:
  // Stored next to its reference count. The alignment keeps the counts of shards apart.
  struct alignas(kShardAlignment) Owner {
    std::shared_ptr<T> object;
  };

  std::array<std::shared_ptr<T>, kNumShards> by_shard_;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_MEMORY_SHARDS_H_
