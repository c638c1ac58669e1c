// Progress: reports the progress of long work on standard error.
#ifndef GRADFLOW_TOOLS_PROGRESS_H_
#define GRADFLOW_TOOLS_PROGRESS_H_

#include <chrono>
#include <string>

namespace gradflow::tools {

// If standard error is a terminal, shows a line and erases it at the end. Without `asked`, the line
// appears only after a second. Otherwise, writes a line per second if `asked`, or nothing.
class Progress {
 public:
  // `unit` is the plural name of the `total` items, such as "runs".
  Progress(bool asked, int total, std::string unit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Reports that `done` items are complete, if an update is due.
  void Update(int done);

 private:
  using Clock = std::chrono::steady_clock;

  const bool terminal_;
  const bool enabled_;
  const int total_;
  const std::string unit_;
  const Clock::time_point start_;
  Clock::time_point next_;
  bool shown_ = false;
};

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_PROGRESS_H_
