#include "tools/view/callee_checker.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/graph.h"
#include "gradflow/proto/node_def.pb.h"

namespace gradflow::tools {

absl::Status CalleeChecker::Check(const Node& call) {
  if (call.op().functional() == FunctionalOp::kNone) return absl::OkStatus();
  // The functions that have been reached, and the number of functions that have been checked.
  std::vector<const FunctionBody*> found;
  absl::flat_hash_set<const FunctionBody*> known;
  const auto add_callees = [&](const Node& node) -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(const std::vector<const FunctionBody*> bodies, CalledFunctions(node));
    for (const FunctionBody* body : bodies) {
      if (!sound_.contains(body) && known.insert(body).second) found.push_back(body);
    }
    return absl::OkStatus();
  };
  const auto check = [&](const Node& node) -> absl::Status {
    if (node.op().functional() != FunctionalOp::kNone) return add_callees(node);
    return node.graph().registry().FindKernel(node.def()).status();
  };
  GRADFLOW_RETURN_IF_ERROR(add_callees(call));
  for (size_t next = 0; next < found.size(); ++next) {
    const FunctionBody& body = *found[next];
    for (int id = 0; id < body.graph().num_nodes(); ++id) {
      if (id % 64 == 0 && std::chrono::steady_clock::now() >= deadline_) return absl::OkStatus();
      const Node& node = *body.graph().node(id);
      if (absl::Status status = check(node); !status.ok()) {
        return errors::Prefix(absl::StrCat("function '", errors::Printable(body.name()),
                                           "': node '", errors::Printable(node.name()), "' (",
                                           errors::Printable(node.type_string()), "): "),
                              status);
      }
    }
  }
  sound_.insert(found.begin(), found.end());
  return absl::OkStatus();
}

}  // namespace gradflow::tools
