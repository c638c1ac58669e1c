// PlanCache: the plans of one graph, keyed by the ordered names of their feeds, fetches and
// targets.
//
// Holds at most `capacity` plans. Insert evicts the least recently used plan. Time is counted in
// insertions: among the plans used since the last insertion, the plan that was inserted first is
// evicted first. An evicted plan lives until the runs that use it end.
//
// Thread safety: all methods may be called from any thread. Find does not wait for other calls of
// Find (replicated.h).
#ifndef GRADFLOW_RUNTIME_SESSION_PLAN_CACHE_H_
#define GRADFLOW_RUNTIME_SESSION_PLAN_CACHE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/tensor.h"
#include "gradflow/runtime/memory/shards.h"
#include "gradflow/runtime/plan/plan.h"
#include "gradflow/runtime/session/replicated.h"

namespace gradflow {

// The names and tensors of a call of Run, as its caller passes them. Borrows everything.
struct RunRequest {
  absl::Span<const std::pair<std::string, Tensor>> feeds;
  absl::Span<const std::string> fetches;
  absl::Span<const std::string> targets;

  PlanNames Names() const;
};

class PlanCache {
 private:
  struct Entry {
    PlanNames names;
    ShardedPtr<const Plan> plan;
    // The value of clock_ at the insertion.
    int64_t inserted = 0;
    // Twice the number of insertions before its last use, plus one if the last use was a Find().
    // The cache orders uses relative to insertions. Finding a plan again before the next insertion
    // therefore writes nothing.
    mutable std::atomic<int64_t> last_used;
  };
  // A RunRequest and a PlanNames with the same names have the same hash.
  struct Hash {
    using is_transparent = void;
    size_t operator()(const std::shared_ptr<const Entry>& entry) const;
    size_t operator()(const RunRequest& request) const;
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const std::shared_ptr<const Entry>& a,
                    const std::shared_ptr<const Entry>& b) const;
    bool operator()(const std::shared_ptr<const Entry>& a, const RunRequest& b) const;
  };
  using Table = absl::flat_hash_set<std::shared_ptr<const Entry>, Hash, Equal>;

 public:
  static constexpr size_t kDefaultCapacity = 128;

  explicit PlanCache(size_t capacity = kDefaultCapacity) : capacity_(capacity) {}

  // Returns null if there is no such plan.
  std::shared_ptr<const Plan> Find(const RunRequest& request) const;
  size_t size() const {
    return table_.Read([](const Table& table) { return table.size(); });
  }
  // Inserts a plan, or does nothing if out of memory. Returns the dropped entries. The caller must
  // destroy them without holding locks, because a plan may own the last reference to any object.
  std::vector<std::shared_ptr<const void>> Insert(PlanNames names,
                                                  const std::shared_ptr<const Plan>& plan);
  void Clear();

 private:
  const size_t capacity_;
  Mutex insert_mutex_;
  // Twice the number of insertions.
  std::atomic<int64_t> clock_{0};
  Replicated<Table> table_;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_SESSION_PLAN_CACHE_H_
