// TimeLimit: ends the process at a deadline.
#ifndef GRADFLOW_TOOLS_TIME_LIMIT_H_
#define GRADFLOW_TOOLS_TIME_LIMIT_H_

#include <condition_variable>
#include <mutex>
#include <thread>

namespace gradflow::tools {

// For commands whose work cannot be stopped at any point. When the time is over, prints
// "DEADLINE_EXCEEDED: ..." to standard error and exits with status 1. No file is left incomplete,
// because files are written under temporary names and then renamed.
class TimeLimit {
 public:
  // Starts the time limit; 0 for no limit.
  explicit TimeLimit(double seconds);
  ~TimeLimit() { End(); }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

  // Ends the time limit when the work is done.
  void End();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_done_ = false;
  std::thread thread_;
};

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_TIME_LIMIT_H_
