// CalleeChecker: finds out why the functions that nodes call cannot run.
#ifndef GRADFLOW_TOOLS_VIEW_CALLEE_CHECKER_H_
#define GRADFLOW_TOOLS_VIEW_CALLEE_CHECKER_H_

#include <chrono>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "gradflow/graph/function_library.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/node.h"

namespace gradflow::tools {

// Checks each function once, however many nodes call it. Thread safety: used by one thread.
class CalleeChecker {
 public:
  explicit CalleeChecker(const GraphLimits& limits) : deadline_(limits.deadline) {}

  // Returns the first error of the functions that the node calls, directly or through other calls,
  // branches and loops. The error names the function and its node, but not `node`. Returns OK for a
  // node that calls no function, and after the deadline of the limits.
  absl::Status Check(const Node& node);

 private:
  const std::chrono::steady_clock::time_point deadline_;
  // Functions without errors. All functions that they call are here as well.
  absl::flat_hash_set<const FunctionBody*> sound_;
};

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_VIEW_CALLEE_CHECKER_H_
