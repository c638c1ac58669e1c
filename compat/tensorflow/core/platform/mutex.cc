#include "tensorflow/core/platform/mutex.h"

#include <limits>
#include <utility>

namespace tensorflow {

void mutex::Notify() {
  const std::lock_guard<std::mutex> lock(await_mutex_);
  if (awaiting_ == 0) return;
  ++unlocks_;
  await_.notify_all();
}

void mutex::Await(const Condition& condition) {
  AwaitWithDeadline(condition, std::numeric_limits<uint64>::max());
}

bool mutex::AwaitWithDeadline(const Condition& condition, uint64 abs_deadline_ns) {
  // A deadline beyond the range of the clock never passes.
  const bool forever = abs_deadline_ns > static_cast<uint64>(std::numeric_limits<int64>::max());
  const std::chrono::system_clock::time_point deadline{
      std::chrono::nanoseconds(forever ? 0 : static_cast<int64>(abs_deadline_ns))};
  bool in_time = true;
  bool first = true;
  while (!condition.Eval() && in_time) {
    std::unique_lock<std::mutex> wait(await_mutex_);
    // The caller may have changed a condition that other threads wait for. In later rounds, nothing
    // has changed.
    if (std::exchange(first, false) && awaiting_ > 0) {
      ++unlocks_;
      await_.notify_all();
    }
    ++awaiting_;
    const uint64 seen = unlocks_;
    mutex_.unlock();
    const auto changed = [&] { return unlocks_ != seen; };
    if (forever) {
      await_.wait(wait, changed);
    } else {
      in_time = await_.wait_until(wait, deadline, changed);
    }
    --awaiting_;
    wait.unlock();
    mutex_.lock();
  }
  return condition.Eval();
}

}  // namespace tensorflow
