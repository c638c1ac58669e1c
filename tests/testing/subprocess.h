// Runs a program until it ends, for tests of command lines.
#ifndef GRADFLOW_TESTS_TESTING_SUBPROCESS_H_
#define GRADFLOW_TESTS_TESTING_SUBPROCESS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace gradflow {
namespace testing {

struct ProcessResult {
  // The exit status, or -1 if a signal terminated the process.
  int exit_code = -1;
  std::string out;
  std::string err;
  // The processor time, and the largest resident memory, which is at least the memory of this
  // process.
  double cpu_seconds = 0;
  int64_t peak_bytes = 0;
};

// Runs the program `arguments[0]`, without a shell and with empty standard input. If `out` is not
// empty, standard output goes to that file.
ProcessResult RunProcess(const std::vector<std::string>& arguments, const std::string& out = "");

// Returns the contents of a file, or "" if it cannot be read.
std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, const std::string& contents);
bool FileExists(const std::string& path);

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTS_TESTING_SUBPROCESS_H_
