#include "tools/progress.h"

#include <unistd.h>

#include <iostream>
#include <utility>

#include "absl/strings/str_format.h"

namespace gradflow::tools {
namespace {

// Moves to the first column and erases the line.
constexpr char kEraseLine[] = "\r\033[K";

}  // namespace

Progress::Progress(bool asked, int total, std::string unit)
    : terminal_(isatty(STDERR_FILENO) == 1),
      enabled_(asked || terminal_),
      total_(total),
      unit_(std::move(unit)),
      start_(Clock::now()),
      next_(asked ? start_ : start_ + std::chrono::seconds(1)) {}

Progress::~Progress() {
  if (shown_ && terminal_) std::cerr << kEraseLine << std::flush;
}

void Progress::Update(int done) {
  if (!enabled_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(terminal_ ? 200 : 1000);
  shown_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  std::string text = absl::StrFormat("%d of %d %s, %.1f s", done, total_, unit_, seconds);
  if (done > 0) absl::StrAppendFormat(&text, ", %.1f s left", seconds / done * (total_ - done));
  std::cerr << (terminal_ ? kEraseLine : "") << text << (terminal_ ? "" : "\n") << std::flush;
}

}  // namespace gradflow::tools
