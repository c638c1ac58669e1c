// Watchdog: closes a session at a deadline, even during planning.
#ifndef GRADFLOW_TESTING_WATCHDOG_H_
#define GRADFLOW_TESTING_WATCHDOG_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "absl/status/status.h"
#include "gradflow/runtime/session/session.h"

namespace gradflow::testing {

class Watchdog {
 public:
  using Clock = std::chrono::steady_clock;

  // Borrows the session. Does nothing if `deadline` is Clock::time_point::max().
  Watchdog(Session* session, Clock::time_point deadline) {
    if (deadline == Clock::time_point::max()) return;
    thread_ = std::thread([this, session, deadline] {
      std::unique_lock<std::mutex> lock(mutex_);
      if (changed_.wait_until(lock, deadline, [this] { return is_done_; })) return;
      has_closed_ = true;
      session->Close().IgnoreError();
    });
  }
  ~Watchdog() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_done_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Returns `status`, or DEADLINE_EXCEEDED if `status` is the error of a session that the watchdog
  // closed.
  absl::Status Explain(absl::Status status) const {
    if (!absl::IsCancelled(status) || !has_closed_) return status;
    return DeadlineError();
  }
  static absl::Status DeadlineError() {
    return absl::DeadlineExceededError("the time limit (--timeout) is over");
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_done_ = false;
  std::atomic<bool> has_closed_{false};
  std::thread thread_;
};

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTING_WATCHDOG_H_
