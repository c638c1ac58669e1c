// Checks of a GraphDef that concern more than one node. Not for users.
#ifndef GRADFLOW_GRAPH_IMPORT_CHECKS_H_
#define GRADFLOW_GRAPH_IMPORT_CHECKS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gradflow/core/registry.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/tables.h"

namespace gradflow {

class FunctionDefLibrary;
class GraphDef;
class NodeDef;
class VersionDef;

namespace internal {

// Collects the ops and kernels that a graph needs and a registry lacks, to report all at once.
class MissingOps {
 public:
  MissingOps(const Registry& registry, const GraphDef& graph)
      : registry_(registry), graph_(graph) {}

  // Adds a node whose op is not registered.
  void AddOp(const NodeDef& node);
  // Adds a node for which Registry::FindKernel returned this error.
  void AddKernel(const NodeDef& node, const absl::Status& status);
  bool empty() const { return kinds_.empty(); }
  // Returns an error with a line for each kind of node, in the order in which they were first
  // added. The code is NOT_FOUND if an op is missing, otherwise that of the first kernel.
  absl::Status status() const;

 private:
  struct Kind {
    const NodeDef* first_node;
    // OK if the op is missing.
    absl::Status kernel_status;
    int num_nodes;
  };
  void Add(const std::string& key, const NodeDef& node, const absl::Status& kernel_status);
  std::string WhyNotFound(const NodeDef& node) const;

  const Registry& registry_;
  const GraphDef& graph_;
  std::vector<Kind> kinds_;
  // By op, or by the error of the kernel.
  HashMap<std::string, int> index_;
};

// Sorts nodes topologically, sources first. nodes[i] has the id first_id + i; sources with smaller
// ids do not count. INVALID_ARGUMENT, with the nodes of a cycle, if there is one.
absl::Status SortTopologically(const std::vector<Node*>& nodes, int first_id,
                               std::vector<Node*>* order);

// Returns INVALID_ARGUMENT if the versions exclude this reader.
absl::Status CheckVersions(const VersionDef& versions);
// Narrows `to` to the versions of a graph that also holds nodes of `from`.
void MergeVersions(const VersionDef& from, VersionDef* to);

// Returns INVALID_ARGUMENT if both define a function or a gradient, but differently.
absl::Status CheckLibraries(const FunctionDefLibrary& from, const FunctionDefLibrary& to);
// Adds the functions and gradients that `to` does not have. REQUIRES: CheckLibraries succeeded.
void MergeLibraries(const FunctionDefLibrary& from, FunctionDefLibrary* to);

}  // namespace internal
}  // namespace gradflow

#endif  // GRADFLOW_GRAPH_IMPORT_CHECKS_H_
