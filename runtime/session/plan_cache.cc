#include "gradflow/runtime/session/plan_cache.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"

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
  const Published<Table>::Reader table(table_);
  const auto it = table->entries.find(request);
  if (it == table->entries.end()) return nullptr;
  const Entry& entry = **it;
  const int64_t now = table->clock + 1;
  if (entry.last_used.load(std::memory_order_relaxed) != now) {
    entry.last_used.store(now, std::memory_order_relaxed);
  }
  return entry.plan.get();
}

void PlanCache::Insert(PlanNames names, const std::shared_ptr<const Plan>& plan) {
  table_.Update([&](const Table& old) -> std::optional<Table> {
    Table table = old;
    table.clock += 2;
    auto entry = std::make_shared<Entry>();
    entry->names = std::move(names);
    entry->plan = ShardedPtr<const Plan>(plan);
    entry->inserted = table.clock;
    entry->last_used.store(table.clock, std::memory_order_relaxed);
    table.entries.erase(entry);
    table.entries.insert(std::move(entry));
    while (table.entries.size() > capacity_) {
      const auto age = [](const Entry& entry) {
        return std::pair(entry.last_used.load(std::memory_order_relaxed), entry.inserted);
      };
      table.entries.erase(
          std::min_element(table.entries.begin(), table.entries.end(),
                           [&](const auto& a, const auto& b) { return age(*a) < age(*b); }));
    }
    return table;
  });
}

void PlanCache::Clear() {
  table_.Update([](const Table&) { return std::optional<Table>(Table()); });
}

}  // namespace gradflow
