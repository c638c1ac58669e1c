// Published: a value that any number of threads read at once, without a lock and without writing to
// memory that they share, while now and then one of them replaces it.
//
//   Published<Table> table;
//   {
//     const Published<Table>::Reader reader(table);
//     Use(*reader);  // This version of the table lives at least as long as `reader`.
//   }
//   table.Update([](const Table& old) { return std::optional<Table>(With(old, entry)); });
//
// A reader counts itself into a counter of its stripe before it takes the newest version, and out
// when it is done. A version that has been replaced is deleted once every counter has been at zero
// since: whoever may have had it has left then. Each stripe has two counters, and new readers are
// sent to the one while the other runs down to zero, so that all get there even if there is always
// someone reading.
//
// Thread safety: all of it may be used from any thread. Not for users.
#ifndef GRADFLOW_RUNTIME_PUBLISHED_H_
#define GRADFLOW_RUNTIME_PUBLISHED_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "gradflow/core/mutex.h"
#include "gradflow/runtime/stripes.h"

namespace gradflow {
namespace internal {

// Counts readers, and deletes what none of them can have any more.
class ReaderCounts {
 public:
  using Counter = std::atomic<int64_t>;
  struct Version {
    virtual ~Version() = default;
    // The counters that have not been at zero since it was replaced, by bit.
    uint32_t awaited = 0;
    Version* next = nullptr;
  };

  ReaderCounts() = default;
  // REQUIRES: there are no readers.
  ~ReaderCounts() { Delete(replaced_); }
  ReaderCounts(const ReaderCounts&) = delete;
  ReaderCounts& operator=(const ReaderCounts&) = delete;

  // To be called before a reader takes the newest version. What it returns is for Leave().
  Counter* Enter() const {
    const Stripe& stripe = stripes_[StripeOfThisThread()];
    Counter* const counter = &stripe.readers[current_.load(std::memory_order_relaxed)];
    counter->fetch_add(1, std::memory_order_seq_cst);
    return counter;
  }
  void Leave(Counter* counter) const {
    if (counter->fetch_sub(1, std::memory_order_seq_cst) == 1 &&
        has_replaced_.load(std::memory_order_seq_cst)) {
      DeleteUnused();
    }
  }
  // Deletes the version, which no new reader can take, when no reader has it any more.
  void DeleteLater(std::unique_ptr<Version> version) const;

 private:
  struct alignas(kStripeAlignment) Stripe {
    mutable std::array<Counter, 2> readers = {};
  };

  void DeleteUnused() const;
  static void Delete(Version* list);

  std::array<Stripe, kNumStripes> stripes_;
  // Which counter of each stripe new readers use.
  alignas(kStripeAlignment) mutable std::atomic<int> current_{0};
  // Whether replaced_ is not empty.
  mutable std::atomic<bool> has_replaced_{false};
  mutable Mutex mutex_;
  mutable Version* replaced_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace internal

template <typename T>
class Published {
 public:
  // Keeps the version that was the newest when it was made.
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

  // Replaces the value by make(value), a std::optional<T>, if that has one. Calls of Update, from
  // whatever threads, go one after the other.
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

#endif  // GRADFLOW_RUNTIME_PUBLISHED_H_
