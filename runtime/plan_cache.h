// PlanCache: the plans of one graph by the names of their feeds, fetches and targets, in the order
// in which they are given.
//
// A fixed number is kept; of the others, those that have not been asked for longest go first. A
// plan that is dropped lives until the runs that use it end.
//
// Thread safety: all of it may be used from any thread. Who finds a plan takes no exclusive lock.
#ifndef GRADFLOW_RUNTIME_PLAN_CACHE_H_
#define GRADFLOW_RUNTIME_PLAN_CACHE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/tensor.h"
#include "gradflow/runtime/plan.h"

namespace gradflow {

// What a run is asked for, as its caller has it. Borrows everything.
struct RunRequest {
  absl::Span<const std::pair<std::string, Tensor>> feeds;
  absl::Span<const std::string> fetches;
  absl::Span<const std::string> targets;

  PlanNames Names() const;
};

class PlanCache {
 public:
  static constexpr size_t kDefaultCapacity = 128;

  explicit PlanCache(size_t capacity = kDefaultCapacity) : capacity_(capacity) {}

  // Null if there is none.
  std::shared_ptr<const Plan> Find(const RunRequest& request) const;
  void Insert(PlanNames names, std::shared_ptr<const Plan> plan);
  void Clear();
  size_t size() const;

 private:
  // Both forms of the names have the same hash if they are the same names.
  struct Hash {
    using is_transparent = void;
    size_t operator()(const PlanNames& names) const;
    size_t operator()(const RunRequest& request) const;
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const PlanNames& a, const PlanNames& b) const;
    bool operator()(const PlanNames& a, const RunRequest& b) const;
  };
  struct Entry {
    Entry(std::shared_ptr<const Plan> p, int64_t now) : plan(std::move(p)), last_used(now) {}
    std::shared_ptr<const Plan> plan;
    // Twice the number of insertions before its last use, and one more if that was not its own:
    // what matters is who was used since another plan came, and finding a plan again before the
    // next one comes writes nothing.
    mutable std::atomic<int64_t> last_used;
  };

  const size_t capacity_;
  mutable SharedMutex mutex_;
  // Entries do not move.
  absl::flat_hash_map<PlanNames, std::unique_ptr<Entry>, Hash, Equal> plans_
      ABSL_GUARDED_BY(mutex_);
  // Twice the number of insertions.
  int64_t clock_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_CACHE_H_
