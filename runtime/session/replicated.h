// Replicated: a table that many threads read and that rarely changes, with a copy for each shard of
// threads (shards.h).
//
// A reader locks the copy of its shard, which few other threads lock. Readers therefore rarely wait
// for each other or write to the same memory. A change is applied to the copies one by one.
//
// Thread safety: all methods may be called from any thread. Internal.
#ifndef GRADFLOW_RUNTIME_SESSION_REPLICATED_H_
#define GRADFLOW_RUNTIME_SESSION_REPLICATED_H_

#include <array>

#include "gradflow/core/mutex.h"
#include "gradflow/runtime/memory/shards.h"

namespace gradflow {

template <typename T>
class Replicated {
 public:
  // Returns read(copy). The copy does not change during the call. REQUIRES: `read` is short, and
  // does not call methods of this object
  template <typename F>
  auto Read(F&& read) const {
    const Shard& shard = shards_[ShardOfThisThread()];
    MutexLock lock(&shard.mutex);
    return read(shard.copy);
  }

  // Calls change(&copy) for every copy. Concurrent updates are serialized. Readers may see the
  // change on one thread before they see it on another. If `change` throws, copies may differ.
  // REQUIRES: `change` changes all copies alike
  template <typename F>
  void Update(F&& change) {
    MutexLock update_lock(&update_mutex_);
    for (Shard& shard : shards_) {
      MutexLock lock(&shard.mutex);
      change(&shard.copy);
    }
  }

 private:
  struct alignas(kShardAlignment) Shard {
    mutable Mutex mutex;
    T copy ABSL_GUARDED_BY(mutex) = T();
  };

  Mutex update_mutex_;
  std::array<Shard, kNumShards> shards_;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_SESSION_REPLICATED_H_
