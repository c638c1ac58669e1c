#include "gradflow/runtime/session/plan_cache.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/call_safely.h"

namespace gradflow {
namespace {

absl::string_view Name(const std::string& name) { return name; }
absl::string_view Name(const std::pair<std::string, Tensor>& feed) { return feed.first; }

template <typename Names>
size_t HashNames(size_t hash, const Names& names) {
  hash = absl::HashOf(hash, names.size());
  for (const auto& name : names) hash = absl::HashOf(hash, Name(name));
  return hash;
}

template <typename Names>
size_t HashAll(const Names& names) {
  return HashNames(HashNames(HashNames(0, names.feeds), names.fetches), names.targets);
}

template <typename A, typename B>
bool EqualNames(const A& a, const B& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return Name(x) == Name(y); });
}

template <typename A, typename B>
bool EqualAll(const A& a, const B& b) {
  return EqualNames(a.feeds, b.feeds) && EqualNames(a.fetches, b.fetches) &&
         EqualNames(a.targets, b.targets);
}

}  // namespace

PlanNames RunRequest::Names() const {
  PlanNames names;
  for (const auto& feed : feeds) names.feeds.push_back(feed.first);
  names.fetches.assign(fetches.begin(), fetches.end());
  names.targets.assign(targets.begin(), targets.end());
  return names;
}

size_t PlanCache::Hash::operator()(const std::shared_ptr<const Entry>& entry) const {
  return HashAll(entry->names);
}
size_t PlanCache::Hash::operator()(const RunRequest& request) const { return HashAll(request); }

bool PlanCache::Equal::operator()(const std::shared_ptr<const Entry>& a,
                                  const std::shared_ptr<const Entry>& b) const {
  return EqualAll(a->names, b->names);
}
bool PlanCache::Equal::operator()(const std::shared_ptr<const Entry>& a,
                                  const RunRequest& b) const {
  return EqualAll(a->names, b);
}

std::shared_ptr<const Plan> PlanCache::Find(const RunRequest& request) const {
  const int64_t now = clock_.load(std::memory_order_relaxed) + 1;
  return table_.Read([&](const Table& table) -> std::shared_ptr<const Plan> {
    const auto it = table.find(request);
    if (it == table.end()) return nullptr;
    const Entry& entry = **it;
    if (entry.last_used.load(std::memory_order_relaxed) != now) {
      entry.last_used.store(now, std::memory_order_relaxed);
    }
    return entry.plan.get();
  });
}

std::vector<std::shared_ptr<const void>> PlanCache::Insert(
    PlanNames names, const std::shared_ptr<const Plan>& plan) {
  auto entry = std::make_shared<Entry>();
  entry->names = std::move(names);
  entry->plan = ShardedPtr<const Plan>(plan);
  std::shared_ptr<const Entry> replaced;
  std::shared_ptr<const Entry> evicted;
  MutexLock lock(&insert_mutex_);
  const int64_t now = clock_.load(std::memory_order_relaxed) + 2;
  clock_.store(now, std::memory_order_relaxed);
  entry->inserted = now;
  entry->last_used.store(now, std::memory_order_relaxed);
  table_.Read([&](const Table& table) {
    if (const auto it = table.find(entry); it != table.end()) replaced = *it;
    if (replaced != nullptr || table.size() < capacity_) return 0;
    const auto age = [](const std::shared_ptr<const Entry>& e) {
      return std::pair(e->last_used.load(std::memory_order_relaxed), e->inserted);
    };
    const auto oldest = std::min_element(
        table.begin(), table.end(), [&](const auto& a, const auto& b) { return age(a) < age(b); });
    if (oldest != table.end()) evicted = *oldest;
    return 0;
  });
  std::vector<std::shared_ptr<const void>> dropped = {std::move(replaced), evicted};
  const absl::Status inserted = CallSafely([&] {
    table_.Update([&](Table* table) {
      table->erase(entry);
      if (evicted != nullptr) table->erase(evicted);
      if (capacity_ > 0) table->insert(entry);
    });
    return absl::OkStatus();
  });
  // If memory ran out, some copies may contain the plan.
  if (!inserted.ok()) table_.Update([&](Table* table) { table->erase(entry); });
  return dropped;
}

void PlanCache::Clear() {
  std::vector<std::shared_ptr<const Entry>> dropped;
  table_.Update([&](Table* table) {
    dropped.insert(dropped.end(), table->begin(), table->end());
    table->clear();
  });
}

}  // namespace gradflow
