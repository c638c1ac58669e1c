// Progress: reports the progress of long work on standard error.
#ifndef GRADFLOW_TOOLS_PROGRESS_H_
#define GRADFLOW_TOOLS_PROGRESS_H_

#include <chrono>
#include <string>

namespace gradflow::tools {

// On a terminal, shows one line, which it erases at the end; unless `asked`, only after a second.
// Otherwise, if `asked`, writes a line per second.
class Progress {
 public:
  // `unit` is the plural name of the `total` items.
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
