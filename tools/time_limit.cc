#include "tools/time_limit.h"

#include <unistd.h>

#include <chrono>

#include "absl/strings/string_view.h"
#include "tools/graph_limits.h"

namespace gradflow::tools {

namespace {

[[noreturn]] void Exit() {
  constexpr absl::string_view kText = "DEADLINE_EXCEEDED: the time limit (--timeout) is over\n";
  (void)!write(STDERR_FILENO, kText.data(), kText.size());
  _exit(1);
}

}  // namespace

TimeLimit::TimeLimit(double seconds) {
  if (seconds == 0) return;
  const auto deadline = DeadlineAfter(seconds);
  // Handles limits that are shorter than the start of a thread.
  if (std::chrono::steady_clock::now() >= deadline) Exit();
  thread_ = std::thread([this, deadline] {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!changed_.wait_until(lock, deadline, [this] { return is_done_; })) Exit();
  });
}

void TimeLimit::End() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_done_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

}  // namespace gradflow::tools
