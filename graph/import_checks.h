// Checks of a GraphDef that concern more than one node. Internal.
#ifndef GRADFLOW_GRAPH_IMPORT_CHECKS_H_
#define GRADFLOW_GRAPH_IMPORT_CHECKS_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/registry.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/tables.h"

namespace gradflow {

class FunctionDef;
class FunctionDefLibrary;
class FunctionLibrary;
class NodeDef;
class VersionDef;

namespace internal {

// Collects the ops and kernels that a graph needs and a registry lacks, to report them all at once.
class MissingOps {
 public:
  explicit MissingOps(const Registry& registry) : registry_(registry) {}

  // Adds a node whose op is not registered.
  void AddOp(const NodeDef& node);
  // Adds a node and the error of Registry::FindKernel for it.
  void AddKernel(const NodeDef& node, const absl::Status& status);
  bool empty() const { return kinds_.empty(); }
  // Returns an error with a line for each kind of node, in the order of the first additions. The
  // code is NOT_FOUND if an op is missing, otherwise the code of the first kernel error.
  absl::Status status() const;

 private:
  struct Kind {
    const NodeDef* first_node;
    // OK if the op is missing.
    absl::Status kernel_status;
    int num_nodes;
  };
  void Add(const std::string& key, const NodeDef& node, const absl::Status& kernel_status);

  const Registry& registry_;
  std::vector<Kind> kinds_;
  // Keyed by the op or by the error of the kernel.
  HashMap<std::string, int> index_;
};

// Sorts nodes topologically, sources first. nodes[i] has the id first_id + i; sources with smaller
// ids and back edges of loops (control_flow.h) do not count. Returns INVALID_ARGUMENT with the
// nodes of a cycle if there is a cycle.
absl::Status SortTopologically(const std::vector<Node*>& nodes, int first_id,
                               std::vector<Node*>* order);

// Returns INVALID_ARGUMENT if the versions exclude this reader.
absl::Status CheckVersions(const VersionDef& versions);
// Changes `to` so that only readers that can read the nodes of both graphs are allowed.
void MergeVersions(const VersionDef& from, VersionDef* to);

// Returns INVALID_ARGUMENT unless the two functions, which have the same name, are equal.
absl::Status CheckSameFunction(const FunctionDef& function, const FunctionDef& known);
// Returns INVALID_ARGUMENT if functions of `library`, which are also in `functions`, call each
// other in a cycle. A node calls the function whose name is its op; attributes may name any
// function. Does not visit functions for which `is_closed` returns true
// (FunctionLibrary::IsClosed). Adds the names of the visited functions that are closed to *closed.
absl::Status CheckRecursion(const FunctionDefLibrary& library, const FunctionLibrary& functions,
                            const Registry& registry,
                            absl::FunctionRef<bool(absl::string_view)> is_closed,
                            std::vector<absl::string_view>* closed);
// Returns INVALID_ARGUMENT if both define the same gradient, but differently.
absl::Status CheckGradients(const FunctionDefLibrary& from, const FunctionDefLibrary& to);
// Adds the gradients that `to` does not have. REQUIRES: CheckGradients succeeded.
void MergeGradients(const FunctionDefLibrary& from, FunctionDefLibrary* to);

}  // namespace internal
}  // namespace gradflow

#endif  // GRADFLOW_GRAPH_IMPORT_CHECKS_H_
