// Replicated: a table that many threads read at once and that rarely changes, kept once for each
// shard of threads.
//
// A reader locks the copy of its own shard, which hardly any other thread locks, so readers neither
// wait for each other nor write to shared memory. A change is applied to one copy after the other.
//
// Thread safety: all methods may be called from any thread. Not for users.
#ifndef GRADFLOW_RUNTIME_SESSION_REPLICATED_H_
#define GRADFLOW_RUNTIME_SESSION_REPLICATED_H_

#include <array>

#include "gradflow/core/mutex.h"
#include "gradflow/runtime/memory/shards.h"

namespace gradflow {

template <typename T>
class Replicated {
 public:
  // Returns read(copy), with a copy that does not change meanwhile. `read` must be short, and must
  // not call methods of this object.
  template <typename F>
  auto Read(F&& read) const {
    const Shard& shard = shards_[ShardOfThisThread()];
    MutexLock lock(&shard.mutex);
    return read(shard.copy);
  }

  // Calls change(&copy) for every copy, which must change each alike. Concurrent calls are
  // serialized; a concurrent reader may see the change on one thread before another. If `change`
  // throws, copies may differ.
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
