// TimeLimit: ends the process at a deadline.
#ifndef GRADFLOW_TOOLS_TIME_LIMIT_H_
#define GRADFLOW_TOOLS_TIME_LIMIT_H_

#include <condition_variable>
#include <mutex>
#include <thread>

namespace gradflow::tools {

// For commands that run no session, whose work has no points at which it could stop. When the time
// is over, prints "DEADLINE_EXCEEDED: ..." and exits with status 1. Files are written under
// temporary names and renamed, so none is partial.
class TimeLimit {
 public:
  // 0 for no limit.
  explicit TimeLimit(double seconds);
  ~TimeLimit() { End(); }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

  // The work is done: the process does not end any more.
  void End();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_done_ = false;
  std::thread thread_;
};

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_TIME_LIMIT_H_
