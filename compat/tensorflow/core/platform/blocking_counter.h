// BlockingCounter: waits until a number of tasks are done.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_BLOCKING_COUNTER_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_BLOCKING_COUNTER_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "tensorflow/core/platform/mutex.h"

namespace tensorflow {

// Thread-safe.
class BlockingCounter {
 public:
  explicit BlockingCounter(int count) : count_(count) {}
  BlockingCounter(const BlockingCounter&) = delete;
  BlockingCounter& operator=(const BlockingCounter&) = delete;
  // Waits for the last counting thread, which may still hold the mutex.
  ~BlockingCounter() { const std::lock_guard<std::mutex> lock(mutex_); }

  void DecrementCount() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--count_ == 0) changed_.notify_all();
  }
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return count_ <= 0; });
  }
  // Returns false on timeout.
  bool WaitFor(std::chrono::milliseconds time) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, compat_internal::WaitTime(time), [this] { return count_ <= 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_;
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_BLOCKING_COUNTER_H_
