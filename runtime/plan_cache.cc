#include "gradflow/runtime/plan_cache.h"

#include <algorithm>

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

size_t PlanCache::Hash::operator()(const PlanNames& names) const { return HashAll(names); }
size_t PlanCache::Hash::operator()(const RunRequest& request) const { return HashAll(request); }

bool PlanCache::Equal::operator()(const PlanNames& a, const PlanNames& b) const {
  return EqualAll(a, b);
}
bool PlanCache::Equal::operator()(const PlanNames& a, const RunRequest& b) const {
  return EqualAll(a, b);
}

std::shared_ptr<const Plan> PlanCache::Find(const RunRequest& request) const {
  ReaderMutexLock lock(&mutex_);
  const auto it = plans_.find(request);
  if (it == plans_.end()) return nullptr;
  const Entry& entry = *it->second;
  const int64_t now = clock_ + 1;
  if (entry.last_used.load(std::memory_order_relaxed) != now) {
    entry.last_used.store(now, std::memory_order_relaxed);
  }
  return entry.plan;
}

void PlanCache::Insert(PlanNames names, std::shared_ptr<const Plan> plan) {
  WriterMutexLock lock(&mutex_);
  clock_ += 2;
  plans_.insert_or_assign(std::move(names), std::make_unique<Entry>(std::move(plan), clock_));
  while (plans_.size() > capacity_) {
    plans_.erase(std::min_element(plans_.begin(), plans_.end(), [](const auto& a, const auto& b) {
      return a.second->last_used.load(std::memory_order_relaxed) <
             b.second->last_used.load(std::memory_order_relaxed);
    }));
  }
}

void PlanCache::Clear() {
  WriterMutexLock lock(&mutex_);
  plans_.clear();
}

size_t PlanCache::size() const {
  ReaderMutexLock lock(&mutex_);
  return plans_.size();
}

}  // namespace gradflow
