// Runs a program to its end, for tests of command lines.
#ifndef GRADFLOW_TESTS_TESTING_SUBPROCESS_H_
#define GRADFLOW_TESTS_TESTING_SUBPROCESS_H_

#include <string>
#include <vector>

namespace gradflow {
namespace testing {

struct ProcessResult {
  // Exit status; -1 if the process did not exit by itself.
  int exit_code = -1;
  std::string out;
  std::string err;
};

// `arguments[0]` is the program's path. No shell is involved; standard input is empty.
ProcessResult RunProcess(const std::vector<std::string>& arguments);

// The whole of a file, or "" if it cannot be read.
std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, const std::string& contents);
bool FileExists(const std::string& path);

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTS_TESTING_SUBPROCESS_H_
