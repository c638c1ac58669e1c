// Graph: a GraphDef and an index beside it (name -> node, op definition, output types, shapes).
//
// The GraphDef is the graph; there is no second node structure to keep in step with it. Scope adds
// nodes one by one, ImportGraphDef (import.h) many at a time; both go through the same checks, so
// that whoever reads a Graph has nothing left to doubt: every op is registered, every attribute is
// there and allowed, every input exists and has the right type, and there is no cycle.
//
// Thread safety: const members may be called concurrently while no one adds nodes.
#ifndef GRADFLOW_GRAPH_GRAPH_H_
#define GRADFLOW_GRAPH_GRAPH_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "absl/container/node_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/huge_pages.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/node_store.h"

#pragma GCC visibility push(default)
namespace google::protobuf {
class Arena;
}

namespace gradflow {

class GraphDef;
class NodeDef;

// The version of TensorFlow's graphs that gradflow writes, and up to which it reads.
inline constexpr int kGraphDefVersion = 2200;

class Graph {
 public:
  // Borrows the registry.
  explicit Graph(const Registry& registry = GlobalRegistry());
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Where the ops are looked up.
  const Registry& registry() const { return registry_; }
  // The graph, with default attributes filled in.
  const GraphDef& def() const { return *def_; }

  // Nodes are numbered from 0 in the order in which they were added.
  int num_nodes() const { return static_cast<int>(nodes_.size()); }
  // REQUIRES: 0 <= id < num_nodes()
  const Node* node(int id) const { return &nodes_[id]; }
  // Null if there is no node of this name.
  const Node* FindNode(absl::string_view name) const;
  // The value of an output that is constant (that of a Const), or null. Decoded on first use, kept
  // with the graph, and given only if it has at most `max_elements` elements.
  const Tensor* ConstantValue(const Node& node, int output, int64_t max_elements = 1 << 16) const;

  // Adds a node whose inputs are all in the graph, for programs that make NodeDefs themselves (a
  // Scope makes them for its ops). Fills in defaults, checks it against its op
  // definition and its inputs, and infers its shapes unless `infer_shapes` is false. On error
  // nothing changes; the text begins with "node 'name' (Op): ".
  absl::StatusOr<const Node*> AddNode(NodeDef&& def, bool infer_shapes = true);

 private:
  friend class GraphImporter;
  friend class Node;
  friend class NodeBuilder;
  friend class OpRecorder;

  struct Constants;
  struct ReverseEdges;

  // The name of a node with its hash, which a growing table needs again and again.
  struct Name {
    Name(absl::string_view n);                                  // NOLINT: it stands for the name
    Name(const std::string& n) : Name(absl::string_view(n)) {}  // NOLINT
    friend bool operator==(const Name& a, const Name& b) {
      return a.hash == b.hash && a.text == b.text;
    }
    absl::string_view text;
    size_t hash;
  };
  struct NameHash {
    size_t operator()(const Name& name) const { return name.hash; }
  };
  // Keys are the names inside the NodeDefs, which do not move.
  using NodesByName = absl::flat_hash_map<Name, Node*, NameHash, std::equal_to<Name>,
                                          internal::BlockAllocator<std::pair<const Name, Node*>>>;

  // An empty NodeDef for Append, in the memory of the graph.
  NodeDefPtr NewNodeDef();

  // An op and the last node of it that has passed CheckAlone, if there is one. Another with the
  // same attributes needs no checks of them: in large graphs most nodes do not.
  struct Example {
    const OpRegistration* op = nullptr;
    const NodeDef* def = nullptr;
    const NodeTypes* types = nullptr;
    // Whether a kernel for it has been found. May be set by who looks for one.
    bool has_kernel = false;
  };
  // Null, or NOT_FOUND, if the registry has no such op. Good as long as the graph.
  Example* FindExample(absl::string_view op);
  absl::StatusOr<Example*> LookUpExample(absl::string_view op);

  // AddNode for a node whose op and inputs have been looked up: `sources` are those of
  // Node::sources(), and are nodes of this graph with such outputs.
  absl::StatusOr<const Node*> Append(NodeDefPtr def, Example* example,
                                     absl::Span<const Node::Source> sources, bool infer_shapes);

  struct TypesHash {
    size_t operator()(const NodeTypes& types) const;
  };
  struct TypesEqual {
    bool operator()(const NodeTypes& a, const NodeTypes& b) const;
  };

  // How a node comes to be. Each step needs those before it, for the node and for its sources;
  // errors lack the prefix that names the node.

  // Puts a node without sources at the end of nodes_.
  Node* NewNode(NodeDef* def, const OpRegistration& op);
  // Takes back the nodes with ids from first_id on, which are not in by_name_ yet.
  void RemoveNodes(int first_id);
  // Its name, its attributes (adding defaults) and its types, but no place for the shapes of its
  // outputs. *example, that of its op, has this node then, or one that it is like.
  absl::Status CheckAlone(Node* node, int producer, Example* example);
  // Whether it has attributes beside those of its op.
  static bool HasExtraAttrs(const Node& node);
  // The types of its sources.
  static absl::Status CheckSources(Node* node);
  static absl::Status InferShapes(Node* node);

  const Registry& registry_;
  // Has the nodes that NewNodeDef made; null if there are none. All others own themselves.
  std::unique_ptr<google::protobuf::Arena> arena_;
  std::unique_ptr<GraphDef> def_;
  internal::NodeStore nodes_;
  NodesByName by_name_;
  absl::node_hash_set<NodeTypes, TypesHash, TypesEqual> types_;
  // By the names of the ops. Looking there takes no lock, as the registry does.
  absl::node_hash_map<absl::string_view, Example> examples_;
  // Values decoded by ConstantValue, and what out_edges() looks up; each with a mutex of its own.
  std::unique_ptr<Constants> constants_;
  std::unique_ptr<ReverseEdges> reverse_edges_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRAPH_GRAPH_H_
