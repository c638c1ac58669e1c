// Graph: a GraphDef with an index of its nodes.
//
// A graph owns one GraphDef, and an index with the op definition, inputs, types and shapes of each
// node. Nodes are added one at a time by a Scope (scope.h) or many at a time by ImportGraphDef
// (import.h). Both paths make the same checks: every node of a graph has a registered op, valid
// attributes, and existing inputs of the right types. The only cycles are loops (control_flow.h).
//
// A node may call a function of the graph: its op is the name of the function, or an attribute
// names it (function_library.h).
//
// Nodes live as long as their graph and never move.
//
// Thread safety: const members may be called from several threads while no thread adds nodes
// or functions.
#ifndef GRADFLOW_GRAPH_GRAPH_H_
#define GRADFLOW_GRAPH_GRAPH_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/node.h"

#pragma GCC visibility push(default)
namespace gradflow {

class FunctionDef;
class FunctionLibrary;
class GraphDef;
class NodeDef;

namespace internal {
class GraphImpl;
}  // namespace internal

// The GraphDef version that gradflow writes, which is the newest that it reads.
inline constexpr int kGraphDefVersion = 2200;

class Graph {
 public:
  // Borrows the registry.
  explicit Graph(const Registry& registry = GlobalRegistry());
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // The registry that ops are looked up in.
  const Registry& registry() const;
  // The GraphDef. Attributes that have their default value are written out.
  const GraphDef& def() const;

  // Nodes are numbered from 0 in order of addition.
  int num_nodes() const;
  // REQUIRES: 0 <= id < num_nodes()
  const Node* node(int id) const;
  // Returns null if the graph has no node of this name.
  const Node* FindNode(absl::string_view name) const;
  // Returns the value of output `output` if the node is a Const and the value has at most
  // `max_elements` elements; otherwise null. A value is decoded once and lives as long as the
  // graph. A constant may encode one value for many elements. Returns null if decoded constants
  // would then exceed eight times their encoded bytes by more than 32 MiB in the whole graph.
  const Tensor* ConstantValue(const Node& node, int output, int64_t max_elements = 1 << 16) const;

  // Returns "prefix/_N" for the first N >= num_nodes() that is not the name of a node.
  std::string NewName(absl::string_view prefix) const;
  // Adds a node whose inputs are all in the graph. Fills in default attributes, checks the node
  // against its op definition and its inputs, and infers its shapes unless `infer_shapes` is false.
  // On error the graph is unchanged, and the error text begins with "node 'name' (Op): ".
  absl::StatusOr<const Node*> AddNode(NodeDef&& def, bool infer_shapes = true);

  // The functions of the graph (function_library.h). The graph of a function has the functions of
  // the calling graph.
  const FunctionLibrary& functions() const;
  // Adds a function. Does nothing if the graph has the same function. Makes the same checks as
  // an import, but the nodes are checked only when the function is instantiated. Returns
  // INVALID_ARGUMENT if the graph has another function, or the registry an op, of this name.
  absl::Status AddFunction(const FunctionDef& def);

 private:
  friend class internal::GraphImpl;

  // A graph of one function of `functions`, which must outlive it.
  Graph(const Registry& registry, const FunctionLibrary& functions);

  const std::unique_ptr<internal::GraphImpl> impl_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRAPH_GRAPH_H_
