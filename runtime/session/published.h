// Published: a value that any number of threads read at once, without a lock and without writing to
// memory that they share, while a thread occasionally replaces it.
//
//   Published<Table> table;
//   {
//     const Published<Table>::Reader reader(table);
//     Use(*reader);  // This version of the table lives at least as long as `reader`.
//   }
//   table.Update([](const Table& old) { return std::optional<Table>(With(old, entry)); });
//
// A reader increments a counter of its shard before it takes the newest version, and decrements it
// when it is done. A replaced version is deleted once every counter has been zero since the
// replacement: all readers that may have had it have left then. Each shard has two counters. New
// readers use one while the other drains to zero, so that every counter reaches zero even under a
// constant stream of readers.
//
// Thread safety: all methods may be called from any thread. Not for users.
#ifndef GRADFLOW_RUNTIME_SESSION_PUBLISHED_H_
#define GRADFLOW_RUNTIME_SESSION_PUBLISHED_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "gradflow/core/mutex.h"
#include "gradflow/runtime/memory/shards.h"

namespace gradflow {
namespace internal {

// Counts readers, and deletes versions that no reader can have any more.
class ReaderCounts {
 public:
  using Counter = std::atomic<int64_t>;
  struct Version {
    virtual ~Version() = default;
    // A bit for each counter that has not been zero since this version was replaced.
    uint32_t awaited = 0;
    Version* next = nullptr;
  };

  ReaderCounts() = default;
  // REQUIRES: there are no readers.
  ~ReaderCounts() { Delete(replaced_); }
  ReaderCounts(const ReaderCounts&) = delete;
  ReaderCounts& operator=(const ReaderCounts&) = delete;

  // Must be called before a reader takes the newest version. Pass the result to Leave().
  Counter* Enter() const {
    const Shard& shard = shards_[ShardOfThisThread()];
    Counter* const counter = &shard.readers[current_.load(std::memory_order_relaxed)];
    counter->fetch_add(1, std::memory_order_seq_cst);
    return counter;
  }
  void Leave(Counter* counter) const {
    if (counter->fetch_sub(1, std::memory_order_seq_cst) == 1 &&
        has_replaced_.load(std::memory_order_seq_cst)) {
      DeleteUnused();
    }
  }
  // Deletes a version, which no new reader can take, when no reader has it any more.
  void DeleteLater(std::unique_ptr<Version> version) const;

 private:
  struct alignas(kShardAlignment) Shard {
    mutable std::array<Counter, 2> readers = {};
  };

  void DeleteUnused() const;
  static void Delete(Version* list);

  std::array<Shard, kNumShards> shards_;
  // The index of the counter that new readers use, in each shard.
  alignas(kShardAlignment) mutable std::atomic<int> current_{0};
  // True if replaced_ is not empty.
  mutable std::atomic<bool> has_replaced_{false};
  mutable Mutex mutex_;
  mutable Version* replaced_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace internal

template <typename T>
class Published {
 public:
  // Keeps the version alive that was the newest when the reader was made.
  class Reader {
   public:
    explicit Reader(const Published& published)
        : readers_(published.readers_),
          counter_(readers_.Enter()),
          value_(published.newest_.load(std::memory_order_seq_cst)->value) {}
    ~Reader() { readers_.Leave(counter_); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    const T& operator*() const { return value_; }
    const T* operator->() const { return &value_; }

   private:
    const internal::ReaderCounts& readers_;
    internal::ReaderCounts::Counter* const counter_;
    const T& value_;
  };

  Published() : newest_(new Version) {}
  // REQUIRES: there are no readers.
  ~Published() { delete newest_.load(std::memory_order_relaxed); }
  Published(const Published&) = delete;
  Published& operator=(const Published&) = delete;

  // Replaces the value by make(value), a std::optional<T>, if that has a value. Concurrent calls of
  // Update are serialized.
  template <typename F>
  void Update(F&& make) {
    std::unique_ptr<Version> old;
    {
      MutexLock lock(&mutex_);
      Version* const newest = newest_.load(std::memory_order_relaxed);
      std::optional<T> value = make(std::as_const(newest->value));
      if (!value.has_value()) return;
      auto version = std::make_unique<Version>();
      version->value = *std::move(value);
      old.reset(newest);
      newest_.store(version.release(), std::memory_order_seq_cst);
    }
    readers_.DeleteLater(std::move(old));
  }

 private:
  struct Version final : internal::ReaderCounts::Version {
    T value;
  };

  internal::ReaderCounts readers_;
  std::atomic<Version*> newest_;
  Mutex mutex_;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_SESSION_PUBLISHED_H_
