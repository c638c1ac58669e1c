// Notification: an event that happens once.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_NOTIFICATION_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_NOTIFICATION_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

// Thread-safe.
class Notification {
 public:
  Notification() = default;
  Notification(const Notification&) = delete;
  Notification& operator=(const Notification&) = delete;
  // Waits for the notifying thread, which may still hold the mutex.
  ~Notification() { const std::lock_guard<std::mutex> lock(mutex_); }

  void Notify() {
    const std::lock_guard<std::mutex> lock(mutex_);
    notified_ = true;
    changed_.notify_all();
  }
  bool HasBeenNotified() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return notified_;
  }
  void WaitForNotification() const {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return notified_; });
  }

 private:
  friend bool WaitForNotificationWithTimeout(Notification* n, int64 timeout_in_us);

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool notified_ = false;
};

// Returns false on timeout.
inline bool WaitForNotificationWithTimeout(Notification* n, int64 timeout_in_us) {
  std::unique_lock<std::mutex> lock(n->mutex_);
  return n->changed_.wait_for(lock,
                              compat_internal::WaitTime(std::chrono::microseconds(timeout_in_us)),
                              [n] { return n->notified_; });
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_NOTIFICATION_H_
