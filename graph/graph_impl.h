// GraphImpl: the state of a Graph, and the steps that add nodes to it. Not for users.
#ifndef GRADFLOW_GRAPH_GRAPH_IMPL_H_
#define GRADFLOW_GRAPH_GRAPH_IMPL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/known_values.h"
#include "gradflow/graph/name_table.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/node_store.h"
#include "gradflow/graph/shape_store.h"
#include "gradflow/graph/tables.h"

namespace google::protobuf {
class Arena;
}

namespace gradflow {

class GraphDef;
class NodeDef;

namespace internal {

// An op with the last node of it that passed CheckAlone. A node with the same attributes needs no
// checks of them, which is the common case in large graphs.
struct Example {
  const OpRegistration* op = nullptr;
  // Null if there is no such node.
  const NodeDef* def = nullptr;
  const NodeTypes* types = nullptr;
  // True if the registry has a kernel for `def`. Set by whoever finds one.
  bool has_kernel = false;
  // True if the attributes of `def` follow from the types of its inputs, none of which is a list,
  // and from defaults: a node with inputs of these types that is given no attributes has the same.
  bool inferred = false;
};

// Attributes of a node that Append need not check.
enum class Attrs {
  // Nothing.
  kUnchecked,
  // Nothing either, but the condition of Example::inferred holds.
  kInferred,
  // They are those of the example, and the sources have the types of its inputs.
  kOfExample,
};

class GraphImpl {
 public:
  // REQUIRES: the graph outlives it.
  GraphImpl(const Graph& graph, const Registry& registry);
  ~GraphImpl();
  GraphImpl(const GraphImpl&) = delete;
  GraphImpl& operator=(const GraphImpl&) = delete;

  static GraphImpl& Of(Graph* graph) { return *graph->impl_; }
  static GraphImpl& Of(const Node& node) { return *node.graph().impl_; }

  const Registry& registry() const { return registry_; }
  GraphDef* def() const { return def_.get(); }
  const NodeStore& nodes() const { return nodes_; }
  const Node* FindNode(const NameKey& name) const;
  const Tensor* ConstantValue(const Node& node, int output, int64_t max_elements);
  // Returns what ConstantValue has decoded for the node, or null.
  const Tensor* DecodedConstant(const Node& node);
  static EdgeSet OutEdges(const Node& node);

  // Makes an empty NodeDef for Append in the graph's arena.
  NodeDefPtr NewNodeDef();

  // Returns null, or NOT_FOUND, if the registry has no such op. Valid as long as the graph.
  Example* FindExample(absl::string_view op);
  absl::StatusOr<Example*> LookUpExample(absl::string_view op);

  // AddNode for a node whose op and inputs have been looked up. `sources` holds the values of
  // Node::sources(), all of which are outputs of nodes of this graph.
  absl::StatusOr<const Node*> Append(NodeDefPtr def, Example* example,
                                     absl::Span<const Node::Source> sources, bool infer_shapes,
                                     Attrs attrs = Attrs::kUnchecked);

  // ---- The steps of adding a node, in order. Each requires the previous ones for the node and for
  // its sources. Their errors lack the prefix that names the node ----

  // Appends a node without sources.
  Node* NewNode(NodeDef* def, const OpRegistration& op);
  // Removes the nodes from `first_id` on and the shapes that were added since `shapes`. REQUIRES:
  // the nodes are not in by_name().
  void RemoveNodes(int first_id, const ShapeStore::Mark& shapes);
  // Checks name and attributes, adds default attributes and sets the types. Afterwards *example,
  // the one of the node's op, holds this node or one with the same attributes.
  absl::Status CheckAlone(Node* node, int producer, Example* example, Attrs attrs);
  // Sets Node::sources().
  static void SetSources(Node* node, absl::Span<const Node::Source> sources);
  // Checks the types of the sources.
  static absl::Status CheckSources(Node* node);
  // Sets the shapes of the outputs to unknown ones.
  void MakeOutputShapes(Node* node);
  absl::Status InferShapes(Node* node);

  NodesByName* by_name() { return &by_name_; }
  ShapeStore::Mark shapes_mark() const { return shapes_.mark(); }
  // The parts of GraphLimits that the imports into this graph have used.
  struct Used {
    int64_t graph_def_bytes = 0;
    int64_t constant_bytes = 0;
    int64_t list_outputs = 0;
    int64_t function_nodes = 0;
  };
  Used* used() { return &used_; }

 private:
  struct TypesHash {
    size_t operator()(const NodeTypes& types) const;
  };
  struct TypesEqual {
    bool operator()(const NodeTypes& a, const NodeTypes& b) const;
  };

  // The edges of the first `num_nodes` nodes as one linked list for each source node. A new node
  // only brings edges that end in it, so the lists only ever grow.
  struct ReverseEdges {
    struct Link {
      Edge edge;
      int next = -1;
    };
    struct Chain {
      int first = -1;
      int last = -1;
    };

    void Extend(const NodeStore& nodes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

    Mutex mutex;
    int num_nodes ABSL_GUARDED_BY(mutex) = 0;
    std::vector<Link> links ABSL_GUARDED_BY(mutex);
    std::vector<Chain> chains ABSL_GUARDED_BY(mutex);
  };

  const Graph& graph_;
  const Registry& registry_;
  // Holds the NodeDefs of NewNodeDef; null if there are none. All other NodeDefs are on the heap.
  std::unique_ptr<google::protobuf::Arena> arena_;
  const std::unique_ptr<GraphDef> def_;
  NodeStore nodes_;
  ShapeStore shapes_;
  Used used_;
  NodesByName by_name_;
  std::unordered_set<NodeTypes, TypesHash, TypesEqual> types_;
  // By name of the op. Unlike a look-up in the registry, one here takes no lock.
  HashMap<absl::string_view, Example> examples_;

  // Decoded constants may have this many times the bytes of their encodings, and these bytes more,
  // all together.
  static constexpr int64_t kMaxExpansion = 8;
  static constexpr int64_t kMaxExpandedBytes = int64_t{32} << 20;

  Mutex constants_mutex_;
  int64_t expanded_bytes_ ABSL_GUARDED_BY(constants_mutex_) = 0;
  // Values of Consts by node id; null for a value that cannot be decoded.
  HashMap<int, std::unique_ptr<const Tensor>> constants_ ABSL_GUARDED_BY(constants_mutex_);
  // Used while nodes are added.
  KnownValues known_values_;
  ReverseEdges reverse_edges_;
};

// Finds the type and shape of the variable whose handle `node` passes on. Returns false if they are
// not known.
bool FindVariable(const Node* node, DataType* dtype, PartialTensorShape* shape);

inline const Tensor* DecodedConstant(const Node& node) {
  return node.IsConstant() ? GraphImpl::Of(node).DecodedConstant(node) : nullptr;
}

}  // namespace internal
}  // namespace gradflow

#endif  // GRADFLOW_GRAPH_GRAPH_IMPL_H_
