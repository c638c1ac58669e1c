// PlanCache: the plans of one graph by the names of their feeds, fetches and targets, in the order
// in which they are given.
//
// A fixed number is kept; of the others, those that have not been asked for longest go first. Time
// is counted in plans that come: of those that were asked for since the last one came, the one that
// came first goes first. A plan that is dropped lives until the runs that use it end.
//
// Thread safety: all of it may be used from any thread. Who finds a plan takes no lock, and writes
// to no memory that other threads write.
#ifndef GRADFLOW_RUNTIME_PLAN_CACHE_H_
#define GRADFLOW_RUNTIME_PLAN_CACHE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "gradflow/core/tensor.h"
#include "gradflow/runtime/plan.h"
#include "gradflow/runtime/published.h"
#include "gradflow/runtime/stripes.h"

namespace gradflow {

// What a run is asked for, as its caller has it. Borrows everything.
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
    StripedPtr<const Plan> plan;
    // Table::clock when it came.
    int64_t inserted = 0;
    // Twice the number of insertions before its last use, and one more if that was not its own:
    // what matters is who was used since another plan came, and finding a plan again before the
    // next one comes writes nothing.
    mutable std::atomic<int64_t> last_used;
  };
  // Both forms of the names have the same hash if they are the same names.
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
  struct Table {
    absl::flat_hash_set<std::shared_ptr<const Entry>, Hash, Equal> entries;
    // Twice the number of insertions.
    int64_t clock = 0;
  };

 public:
  static constexpr size_t kDefaultCapacity = 128;

  explicit PlanCache(size_t capacity = kDefaultCapacity) : capacity_(capacity) {}

  // Null if there is none.
  std::shared_ptr<const Plan> Find(const RunRequest& request) const;
  size_t size() const { return Published<Table>::Reader(table_)->entries.size(); }
  void Insert(PlanNames names, const std::shared_ptr<const Plan>& plan);
  void Clear();

 private:
  const size_t capacity_;
  Published<Table> table_;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_CACHE_H_
