// How far a long piece of work has come, on standard error.
#ifndef GRADFLOW_TOOLS_PROGRESS_H_
#define GRADFLOW_TOOLS_PROGRESS_H_

#include <chrono>
#include <string>

namespace gradflow::tools {

// Shows nothing for work of under a second, unless asked, and then only on a terminal: one line,
// which is removed at the end. Elsewhere, and only if asked, it writes a line a second.
class Progress {
 public:
  // `unit` is what is counted up to `total`, in the plural.
  Progress(bool asked, int total, std::string unit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Writes only if it is time to.
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
