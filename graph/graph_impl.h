// GraphImpl: the state of a Graph, and the steps that add nodes to it. Internal.
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
#include "gradflow/graph/constant_evaluator.h"
#include "gradflow/graph/function_library.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/name_table.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/node_store.h"
#include "gradflow/graph/shape_store.h"
#include "gradflow/graph/tables.h"

namespace google::protobuf {
class Arena;
}

namespace gradflow {

class FunctionDefLibrary;
class GraphDef;
class NodeDef;
class WhileContext;

namespace internal {

// An op, and the last node with this op that passed CheckAlone. The attributes of a node need no
// checks if they equal the attributes of that node, which is common in large graphs.
struct CheckedNodeCache {
  const OpRegistration* op = nullptr;
  // Null if there is no such node.
  const NodeDef* def = nullptr;
  const NodeTypes* types = nullptr;
  // True if the registry has a kernel for `def`. The finder of the kernel sets it.
  bool has_kernel = false;
  // True if no input of `def` is a list, and all attributes follow from the input types and
  // defaults. A node with these input types and no explicit attributes then has the same
  // attributes.
  bool inferred = false;
};

// Attributes of a node that Append need not check.
enum class Attrs {
  // None.
  kUnchecked,
  // None, but the condition of CheckedNodeCache::inferred holds.
  kInferred,
  // All: they equal the attributes of the checked node, and the sources have the types of its
  // inputs.
  kOfCheckedNode,
};

class GraphImpl {
 public:
  // The graph has `functions`, or its own functions if `functions` is null. REQUIRES: the graph and
  // the functions outlive this object.
  GraphImpl(const Graph& graph, const Registry& registry, const FunctionLibrary* functions);
  ~GraphImpl();
  GraphImpl(const GraphImpl&) = delete;
  GraphImpl& operator=(const GraphImpl&) = delete;

  static GraphImpl& Of(Graph* graph) { return *graph->impl_; }
  static GraphImpl& Of(const Node& node) { return *node.graph().impl_; }

  // Makes a graph of one function of `functions`.
  static std::unique_ptr<Graph> NewGraph(const Registry& registry,
                                         const FunctionLibrary& functions);

  const Registry& registry() const { return registry_; }
  const FunctionLibrary& functions() const { return functions_; }
  // Returns true for the graph of a function, whose functions belong to another graph.
  bool is_function() const { return own_functions_ == nullptr; }
  GraphDef* def() const { return def_.get(); }
  const NodeStore& nodes() const { return nodes_; }
  const Node* FindNode(const NameKey& name) const;
  const Tensor* ConstantValue(const Node& node, int output, int64_t max_elements);
  // Returns the tensor that ConstantValue has decoded for the node, or null.
  const Tensor* DecodedConstant(const Node& node);
  static EdgeSet OutEdges(const Node& node);

  // Makes an empty NodeDef for Append in the graph's arena.
  NodeDefPtr NewNodeDef();

  // Return null, or an error, if there is no such op or function, or if the signature of the
  // function is not valid. The result lives as long as the graph.
  CheckedNodeCache* FindCheckedNode(absl::string_view op);
  absl::StatusOr<CheckedNodeCache*> LookUpCheckedNode(absl::string_view op);

  // Like AddNode, for a node whose op and inputs have been looked up. `sources` holds the values of
  // Node::sources(); all are outputs of nodes of this graph.
  absl::StatusOr<const Node*> Append(NodeDefPtr def, CheckedNodeCache* checked,
                                     absl::Span<const Node::Source> sources, bool infer_shapes,
                                     Attrs attrs = Attrs::kUnchecked);

  // ---- The steps of adding a node, in order. Each step requires the previous steps for the node
  // and for its sources. Errors lack the prefix that names the node ----

  // Appends a node without sources.
  Node* NewNode(NodeDef* def, const OpRegistration& op);
  // Returns an op without arguments and attributes for unresolved nodes. Valid as long as the
  // graph.
  const OpRegistration& MissingOp(const std::string& name);
  // Makes `node` a node without inputs and outputs. It depends on `cause`, whose op is missing.
  void MakeUnresolved(Node* node, const Node& cause);
  // Removes the nodes from `first_id` on and the shapes that were added since `shapes`. REQUIRES:
  // the nodes are not in by_name().
  void RemoveNodes(int first_id, const ShapeStore::Mark& shapes);
  // Checks name and attributes, adds default attributes and sets the types. Afterwards *checked,
  // the cache of the node's op, holds this node or a node with the same attributes.
  absl::Status CheckAlone(Node* node, int producer, CheckedNodeCache* checked, Attrs attrs);
  // Sets Node::sources().
  static void SetSources(Node* node, absl::Span<const Node::Source> sources);
  // Checks the types of the sources.
  static absl::Status CheckSources(Node* node);

  // ---- Changes of a node that is in the graph, for the C API. Plans that have been made do not
  // see them ----

  // Replaces the sources and the inputs of the NodeDef. Does not look for cycles. Returns
  // INVALID_ARGUMENT and changes nothing if a type is wrong. REQUIRES: as many data inputs as
  // before, before control inputs
  absl::Status Reconnect(const Node& node, absl::Span<const Node::Source> sources);
  // Sets the shape of an output. The shapes of other nodes do not change.
  void SetOutputShape(const Node& node, int output, const PartialTensorShape& shape);
  NodeDef* MutableDef(const Node& node) { return nodes_[node.id()].def_; }

  // Sets the shapes of the outputs to unknown shapes.
  void MakeOutputShapes(Node* node);
  absl::Status InferShapes(Node* node);

  // ---- Loops ----

  // Replaces input `input` of a Merge by the output of a NextIteration. Returns INVALID_ARGUMENT if
  // the types differ. The shape of the Merge does not change.
  absl::Status SetBackEdge(const Node& merge, int input, const Node& next);
  // Adds the loop that its exit nodes end.
  void AddWhileContext(std::unique_ptr<WhileContext> context);
  // Returns null if there is none.
  WhileContext* FindWhileContext(const Node& exit) const;

  // ---- Functions. REQUIRES: !is_function() ----

  // Adds the functions that the graph does not have. They must outlive the graph. Returns
  // INVALID_ARGUMENT if the graph has a different function of the same name, or if functions call
  // each other in a cycle. On error, some functions may have been added.
  absl::Status AddFunctions(const FunctionDefLibrary& library);
  size_t num_functions() const { return functions_.size(); }
  // Removes all functions but the first `size`. REQUIRES: no node calls them
  void RemoveFunctions(size_t size);
  void SetInferShapesOfFunctions(bool infer) { own_functions_->SetInferShapes(infer); }

  bool has_unresolved() const { return !unresolved_.empty(); }
  // Returns the node whose op is missing. REQUIRES: !node.is_resolved()
  const Node& CauseOf(const Node& node) const { return nodes_[unresolved_.at(node.id())]; }
  // Returns OK, or an error with the reason why the node is unresolved.
  absl::Status CheckResolved(const Node& node) const;

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
  // adds only edges that end in it, so the lists only grow.
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
  // Null for the graph of a function.
  const std::unique_ptr<FunctionLibrary> own_functions_;
  const FunctionLibrary& functions_;
  NodeStore nodes_;
  ShapeStore shapes_;
  Used used_;
  NodesByName by_name_;
  // The ops of unresolved nodes by name. For each unresolved node, the node whose op is missing.
  HashMap<std::string, std::unique_ptr<const OpRegistration>> missing_ops_;
  HashMap<int, int> unresolved_;
  std::unordered_set<NodeTypes, TypesHash, TypesEqual> types_;
  // Keyed by op name. Unlike a look-up in the registry, a look-up here takes no lock.
  HashMap<absl::string_view, CheckedNodeCache> checked_nodes_;

  // All decoded constants together may take kMaxExpansion times the bytes of their encodings, plus
  // kMaxExpandedBytes.
  static constexpr int64_t kMaxExpansion = 8;
  static constexpr int64_t kMaxExpandedBytes = int64_t{32} << 20;

  Mutex constants_mutex_;
  int64_t expanded_bytes_ ABSL_GUARDED_BY(constants_mutex_) = 0;
  // Values of Consts by node id; null for a value that cannot be decoded.
  HashMap<int, std::unique_ptr<const Tensor>> constants_ ABSL_GUARDED_BY(constants_mutex_);
  // Used while nodes are added.
  ConstantEvaluator constant_evaluator_;
  ReverseEdges reverse_edges_;
  std::vector<std::unique_ptr<WhileContext>> while_contexts_;
  // Keyed by the ids of exit nodes.
  HashMap<int, WhileContext*> while_contexts_by_exit_;
};

// Finds the type and shape of the variable whose handle `node` passes on, or of the values of the
// table. Returns false if they are not known.
bool FindVariable(const Node* node, DataType* dtype, PartialTensorShape* shape);

inline const Tensor* DecodedConstant(const Node& node) {
  return node.IsConstant() ? GraphImpl::Of(node).DecodedConstant(node) : nullptr;
}

}  // namespace internal
}  // namespace gradflow

#endif  // GRADFLOW_GRAPH_GRAPH_IMPL_H_
