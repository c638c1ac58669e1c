#include "gradflow/distributed/local_workers.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/distributed/launch.h"

extern char** environ;

namespace gradflow {
namespace {

using Clock = std::chrono::steady_clock;

// The variables of this process, with the rank's variables.
class Environment {
 public:
  Environment(int rank, int size, const std::string& address)
      : own_({absl::StrCat("GRADFLOW_RANK=", rank), absl::StrCat("GRADFLOW_SIZE=", size),
              absl::StrCat("GRADFLOW_ADDRESS=", address)}) {
    for (char** variable = environ; *variable != nullptr; ++variable) {
      if (!absl::StartsWith(*variable, "GRADFLOW_RANK=") &&
          !absl::StartsWith(*variable, "GRADFLOW_SIZE=") &&
          !absl::StartsWith(*variable, "GRADFLOW_ADDRESS=")) {
        pointers_.push_back(*variable);
      }
    }
    for (std::string& variable : own_) pointers_.push_back(variable.data());
    pointers_.push_back(nullptr);
  }
  char* const* get() const { return pointers_.data(); }

 private:
  std::vector<std::string> own_;
  std::vector<char*> pointers_;
};

// Returns the process, or -1. Calls only functions that are allowed between fork() and execve().
pid_t Start(char* const* argv, const Environment& environment) {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid != 0) return pid;
  // Ends the rank with this process, which may already have ended.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == parent) execve("/proc/self/exe", argv, environment.get());
  constexpr int kCannotExecute = 126;
  _exit(kCannotExecute);
}

int ExitStatusOf(int status) {
  constexpr int kSignalled = 128;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status);
}

}  // namespace

bool IsLaunched() { return std::getenv("GRADFLOW_RANK") != nullptr; }

absl::StatusOr<int> RunLocalWorkers(int size, char* const* argv) {
  if (size < 1) return errors::InvalidArgument("there must be at least 1 rank, but ", size);
  const char* const temporary = std::getenv("TMPDIR");
  std::string folder =
      absl::StrCat(temporary == nullptr ? "/tmp" : temporary, "/gradflow_ranks_XXXXXX");
  if (mkdtemp(folder.data()) == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("making ", errors::Printable(folder), ": ", std::strerror(errno)));
  }
  const std::string file = folder + "/address";
  std::vector<pid_t> ranks;
  absl::Status status;
  for (int rank = 0; rank < size && status.ok(); ++rank) {
    const pid_t pid = Start(argv, Environment(rank, size, "file:" + file));
    if (pid < 0) {
      status =
          absl::UnavailableError(absl::StrCat("starting rank ", rank, ": ", std::strerror(errno)));
    } else {
      ranks.push_back(pid);
    }
  }

  constexpr std::chrono::seconds kGrace(5);
  constexpr std::chrono::milliseconds kPause(10);
  int result = 0;
  Clock::time_point kill_at = status.ok() ? Clock::time_point::max() : Clock::now();
  while (!ranks.empty()) {
    for (auto it = ranks.begin(); it != ranks.end();) {
      int ended = 0;
      const pid_t pid = waitpid(*it, &ended, WNOHANG);
      if (pid == 0 || (pid < 0 && errno == EINTR)) {
        ++it;
        continue;
      }
      it = ranks.erase(it);
      if (result == 0) result = pid < 0 ? 1 : ExitStatusOf(ended);
    }
    if (result != 0) kill_at = std::min(kill_at, Clock::now() + kGrace);
    if (Clock::now() >= kill_at) {
      for (const pid_t rank : ranks) kill(rank, SIGKILL);
    }
    if (!ranks.empty()) std::this_thread::sleep_for(kPause);
  }
  // Rank 0 removes the file, unless it was killed.
  unlink(file.c_str());
  rmdir(folder.c_str());
  if (!status.ok()) return status;
  return result;
}

}  // namespace gradflow
