// gradflow test: runs golden cases (gradflow/testing/golden.h).
#ifndef GRADFLOW_TOOLS_TEST_COMMAND_H_
#define GRADFLOW_TOOLS_TEST_COMMAND_H_

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace gradflow::tools {

struct TestFlags {
  // Cases, or folders with cases at any depth.
  std::vector<std::string> folders;
  // Write what the cases give as what they expect.
  bool update = false;
  // In place of the cases' own tolerances; the first two go together.
  std::optional<double> atol;
  std::optional<double> rtol;
  std::optional<int> ulps;
  // 0: all cores.
  int threads = 0;
};

// Prints a line for each case. FAILED_PRECONDITION "2 of 3 cases failed" if some have failed.
absl::Status TestCommand(const TestFlags& flags, std::ostream& out);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_TEST_COMMAND_H_
