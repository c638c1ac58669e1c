// mutex, mutex_lock, tf_shared_lock and condition_variable.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_MUTEX_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

namespace compat_internal {

// Returns a waiting time of at most a century, which does not overflow a clock.
template <typename Rep, typename Period>
std::chrono::nanoseconds WaitTime(std::chrono::duration<Rep, Period> time) {
  constexpr std::chrono::hours kCentury(24 * 365 * 100);
  if (time > kCentury) return kCentury;
  if (time < decltype(time)::zero()) return std::chrono::nanoseconds::zero();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time);
}

}  // namespace compat_internal

enum LinkerInitialized { LINKER_INITIALIZED };
enum ConditionResult { kCond_Timeout, kCond_MaybeNotified };

// A predicate for mutex::Await: a flag, or a function.
class Condition {
 public:
  explicit Condition(const bool* flag) : eval_([flag] { return *flag; }) {}
  template <typename T, typename U>
  Condition(bool (*function)(T*), U* argument)
      : eval_([function, argument] { return function(argument); }) {}
  template <typename T>
  Condition(T* object, bool (T::*method)()) : eval_([=] { return (object->*method)(); }) {}
  template <typename T>
  Condition(const T* object, bool (T::*method)() const)
      : eval_([=] { return (object->*method)(); }) {}
  template <typename F>
  explicit Condition(const F* function) : eval_([function] { return (*function)(); }) {}
  bool Eval() const { return eval_(); }

 private:
  std::function<bool()> eval_;
};

// A mutex with shared locks.
class mutex {
 public:
  mutex() = default;
  explicit mutex(LinkerInitialized) {}
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  void lock() { mutex_.lock(); }
  bool try_lock() { return mutex_.try_lock(); }
  // The next owner of the mutex may delete it, so nothing is accessed after unlocking.
  void unlock() {
    Notify();
    mutex_.unlock();
  }
  void lock_shared() { mutex_.lock_shared(); }
  bool try_lock_shared() { return mutex_.try_lock_shared(); }
  void unlock_shared() {
    Notify();
    mutex_.unlock_shared();
  }
  void assert_held() const {}
  void assert_held_shared() const {}

  // Releases the exclusive lock until the condition holds. Evaluates the condition under the lock.
  void Await(const Condition& condition);
  // Like Await(), but waits at most until the deadline, in nanoseconds since the Unix epoch.
  // Returns the condition's value.
  bool AwaitWithDeadline(const Condition& condition, uint64 abs_deadline_ns);

 private:
  // Wakes threads that wait for a condition.
  void Notify();

  std::shared_mutex mutex_;
  std::mutex await_mutex_;
  std::condition_variable await_;
  // Counts unlocks while a thread waits for a condition.
  uint64 unlocks_ = 0;
  int awaiting_ = 0;
};

// Holds a mutex during its lifetime.
class mutex_lock {
 public:
  explicit mutex_lock(mutex& mu) : mu_(&mu) { mu.lock(); }
  mutex_lock(mutex& mu, std::try_to_lock_t) : mu_(mu.try_lock() ? &mu : nullptr) {}
  explicit mutex_lock(mutex* mu) : mutex_lock(*mu) {}
  mutex_lock(mutex_lock&& other) noexcept : mu_(std::exchange(other.mu_, nullptr)) {}
  mutex_lock(const mutex_lock&) = delete;
  mutex_lock& operator=(const mutex_lock&) = delete;
  ~mutex_lock() {
    if (mu_ != nullptr) mu_->unlock();
  }
  // For condition_variable.
  void lock() { mu_->lock(); }
  void unlock() { mu_->unlock(); }
  mutex* mu() const { return mu_; }
  explicit operator bool() const { return mu_ != nullptr; }

 private:
  mutex* mu_;
};

// Holds a shared lock during its lifetime.
class tf_shared_lock {
 public:
  explicit tf_shared_lock(mutex& mu) : mu_(&mu) { mu.lock_shared(); }
  explicit tf_shared_lock(mutex* mu) : tf_shared_lock(*mu) {}
  tf_shared_lock(mutex& mu, std::try_to_lock_t) : mu_(mu.try_lock_shared() ? &mu : nullptr) {}
  tf_shared_lock(tf_shared_lock&& other) noexcept : mu_(std::exchange(other.mu_, nullptr)) {}
  tf_shared_lock(const tf_shared_lock&) = delete;
  tf_shared_lock& operator=(const tf_shared_lock&) = delete;
  ~tf_shared_lock() {
    if (mu_ != nullptr) mu_->unlock_shared();
  }
  explicit operator bool() const { return mu_ != nullptr; }

 private:
  mutex* mu_;
};

// Works with mutex_lock.
class condition_variable {
 public:
  void wait(mutex_lock& lock) { changed_.wait(lock); }
  template <typename Predicate>
  void wait(mutex_lock& lock, Predicate predicate) {
    changed_.wait(lock, std::move(predicate));
  }
  template <typename Rep, typename Period>
  std::cv_status wait_for(mutex_lock& lock, std::chrono::duration<Rep, Period> duration) {
    return changed_.wait_for(lock, compat_internal::WaitTime(duration));
  }
  void notify_one() { changed_.notify_one(); }
  void notify_all() { changed_.notify_all(); }

 private:
  std::condition_variable_any changed_;
};

inline ConditionResult WaitForMilliseconds(mutex_lock* lock, condition_variable* cv, int64 ms) {
  const std::cv_status status = cv->wait_for(*lock, std::chrono::milliseconds(ms));
  return status == std::cv_status::timeout ? kCond_Timeout : kCond_MaybeNotified;
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_MUTEX_H_
