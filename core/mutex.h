// A mutex that clang's thread-safety analysis and ThreadSanitizer both understand: std::mutex lacks
// the attributes of the one, and Debian's absl::Mutex is not instrumented for the other.
#ifndef GRADFLOW_CORE_MUTEX_H_
#define GRADFLOW_CORE_MUTEX_H_

#include <mutex>

#include "absl/base/thread_annotations.h"

#pragma GCC visibility push(default)
namespace gradflow {

// std::mutex with the attributes.
class ABSL_LOCKABLE Mutex {
 public:
  // Waits until no one else has it; not to be called by a thread that has it.
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

// Holds a mutex from its construction to the end of the scope.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  // Waits for the mutex.
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
