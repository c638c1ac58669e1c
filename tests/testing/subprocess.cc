#include "tests/testing/subprocess.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace gradflow {
namespace testing {

ProcessResult RunProcess(const std::vector<std::string>& arguments, const std::string& out_file) {
  // Uses files instead of pipes, because a program could fill a pipe and block.
  static std::atomic<int> runs = 0;
  const std::string base =
      ::testing::TempDir() + "/process." + std::to_string(getpid()) + "." + std::to_string(runs++);
  const std::string out = out_file.empty() ? base + ".out" : out_file;
  const std::string err = base + ".err";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), kFlags, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), kFlags, 0600);

  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ProcessResult result;
  pid_t pid = 0;
  int status = 0;
  struct rusage usage = {};
  const int error = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    ADD_FAILURE() << argv[0] << " cannot be started: error " << error;
  } else if (wait4(pid, &status, 0, &usage) == pid) {
    if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    result.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    result.peak_bytes = int64_t{1024} * usage.ru_maxrss;
  }
  result.err = ReadFile(err);
  if (out_file.empty()) {
    result.out = ReadFile(out);
    std::filesystem::remove(out);
  }
  std::filesystem::remove(err);
  return result;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream contents;
  contents << file.rdbuf();
  return contents.str();
}

void WriteFile(const std::string& path, const std::string& contents) {
  std::ofstream file(path, std::ios::binary);
  file << contents;
  EXPECT_TRUE(file.flush().good()) << path;
}

bool FileExists(const std::string& path) { return std::filesystem::exists(path); }

}  // namespace testing
}  // namespace gradflow
