// A mutex that clang's thread-safety analysis and ThreadSanitizer both understand: std::mutex lacks
// the attributes of the one, and Debian's absl::Mutex is not instrumented for the other.
#ifndef GRADFLOW_CORE_MUTEX_H_
#define GRADFLOW_CORE_MUTEX_H_

#include <mutex>
#include <shared_mutex>

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

// The same for many readers or one writer.
class ABSL_LOCKABLE SharedMutex {
 public:
  // Waits until no one else has it.
  void WriterLock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void WriterUnlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  // Waits until no writer has it.
  void ReaderLock() ABSL_SHARED_LOCK_FUNCTION() { mutex_.lock_shared(); }
  void ReaderUnlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

// Holds a SharedMutex as its one writer.
class ABSL_SCOPED_LOCKABLE WriterMutexLock {
 public:
  // Waits for the mutex.
  explicit WriterMutexLock(SharedMutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->WriterLock();
  }
  ~WriterMutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->WriterUnlock(); }
  WriterMutexLock(const WriterMutexLock&) = delete;
  WriterMutexLock& operator=(const WriterMutexLock&) = delete;

 private:
  SharedMutex* mutex_;
};

// Holds a SharedMutex as one of its readers.
class ABSL_SCOPED_LOCKABLE ReaderMutexLock {
 public:
  // Waits for the mutex.
  explicit ReaderMutexLock(SharedMutex* mutex) ABSL_SHARED_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->ReaderLock();
  }
  ~ReaderMutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->ReaderUnlock(); }
  ReaderMutexLock(const ReaderMutexLock&) = delete;
  ReaderMutexLock& operator=(const ReaderMutexLock&) = delete;

 private:
  SharedMutex* mutex_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_MUTEX_H_
