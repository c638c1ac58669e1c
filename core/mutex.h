// Mutex: a mutex that both clang's thread-safety analysis and ThreadSanitizer understand.
// std::mutex lacks the attributes for the analysis, and a prebuilt absl::Mutex is not instrumented
// for ThreadSanitizer.
#ifndef GRADFLOW_CORE_MUTEX_H_
#define GRADFLOW_CORE_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"

#pragma GCC visibility push(default)
namespace gradflow {

// std::mutex with thread-safety attributes.
class ABSL_LOCKABLE Mutex {
 public:
  // Blocks until the mutex is free. REQUIRES: the calling thread does not hold it
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class CondVar;

  std::mutex mutex_;
};

// std::condition_variable for a Mutex. Wait() may wake spuriously.
class CondVar {
 public:
  // Releases the mutex, waits to be notified, and takes the mutex again.
  void Wait(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    changed_.wait(lock);
    lock.release();
  }
  // Waits until `deadline` at the latest.
  void WaitUntil(Mutex* mutex, std::chrono::steady_clock::time_point deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    changed_.wait_until(lock, deadline);
    lock.release();
  }
  void Notify() { changed_.notify_one(); }

 private:
  std::condition_variable changed_;
};

// Holds a mutex for the duration of a scope.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  // Blocks until `mutex` is free.
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* mutex_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_MUTEX_H_
