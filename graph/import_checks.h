// The parts of importing a GraphDef that look at more than one node. Not for users.
#ifndef GRADFLOW_GRAPH_IMPORT_CHECKS_H_
#define GRADFLOW_GRAPH_IMPORT_CHECKS_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "gradflow/core/registry.h"
#include "gradflow/graph/node.h"

namespace gradflow {

class FunctionDefLibrary;
class GraphDef;
class NodeDef;
class VersionDef;

namespace internal {

// Collects what a graph needs and a registry lacks, so that all of it is reported at once.
class MissingOps {
 public:
  MissingOps(const Registry& registry, const GraphDef& graph)
      : registry_(registry), graph_(graph) {}

  // The node's op is not registered.
  void AddOp(const NodeDef& node);
  // Registry::FindKernel has this error for the node.
  void AddKernel(const NodeDef& node, const absl::Status& status);
  bool empty() const { return kinds_.empty(); }
  // A line for each kind of node, in the order in which they were added first. NOT_FOUND if an op
  // is missing, otherwise that of the first kernel.
  absl::Status status() const;

 private:
  struct Kind {
    const NodeDef* first_node;
    // OK if it is the op that is missing.
    absl::Status kernel_status;
    int num_nodes;
  };
  void Add(const std::string& key, const NodeDef& node, const absl::Status& kernel_status);
  std::string WhyNotFound(const NodeDef& node) const;

  const Registry& registry_;
  const GraphDef& graph_;
  std::vector<Kind> kinds_;
  // By op or by the kernel's error.
  absl::flat_hash_map<std::string, int> index_;
};

// Sorts nodes[i], whose ids are first_id + i, so that each comes behind its sources; those with
// smaller ids than first_id are done already. INVALID_ARGUMENT, with the nodes of a cycle, if there
// is one.
absl::Status SortTopologically(const std::vector<Node*>& nodes, int first_id,
                               std::vector<Node*>* order);

// INVALID_ARGUMENT if the versions exclude this reader.
absl::Status CheckVersions(const VersionDef& versions);
// Makes `to` the versions of a graph that holds nodes of `from` as well.
void MergeVersions(const VersionDef& from, VersionDef* to);

// INVALID_ARGUMENT if both define a function or a gradient differently.
absl::Status CheckLibraries(const FunctionDefLibrary& from, const FunctionDefLibrary& to);
// Adds what `to` does not have. REQUIRES: CheckLibraries
void MergeLibraries(const FunctionDefLibrary& from, FunctionDefLibrary* to);

}  // namespace internal
}  // namespace gradflow

#endif  // GRADFLOW_GRAPH_IMPORT_CHECKS_H_
