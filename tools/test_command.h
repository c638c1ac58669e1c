// gradflow test: runs golden cases (gradflow/testing/golden.h).
#ifndef GRADFLOW_TOOLS_TEST_COMMAND_H_
#define GRADFLOW_TOOLS_TEST_COMMAND_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/graph_limits.h"

namespace gradflow::tools {

struct TestFlags {
  // Cases, or folders with cases at any depth.
  std::vector<std::string> folders;
  // Replaces the expected outputs by the actual outputs.
  bool update = false;
  // Override the tolerances of the cases. atol and rtol apply together.
  std::optional<double> atol;
  std::optional<double> rtol;
  std::optional<int> ulps;
  // Number of threads; 0 for all cores.
  int threads = 0;
  // Maximum bytes of tensors of a case at a time; 0 for no limit.
  int64_t memory_limit = 0;
  // Time limit in seconds of a case, and of each search for cases; 0 for no limit.
  double timeout_seconds = 0;
  // NAME=NUMBER, members of GraphLimits.
  std::vector<std::string> graph_limits;
  FileFlags files;
};

// Prints a line for each case. Returns FAILED_PRECONDITION "2 of 3 cases failed" if any failed.
absl::Status TestCommand(const TestFlags& flags, std::ostream& out);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_TEST_COMMAND_H_
