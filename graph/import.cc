#include "gradflow/graph/import.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/control_flow.h"
#include "gradflow/graph/function_library.h"
#include "gradflow/graph/graph_impl.h"
#include "gradflow/graph/import_checks.h"
#include "gradflow/graph/import_limits.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/tensor_id.h"
#include "gradflow/proto/graph.pb.h"

namespace gradflow {
namespace {

using internal::Attrs;
using internal::CheckedNodeCache;
using internal::GraphImpl;
using internal::NodePrefix;

// Imports one GraphDef in passes over its nodes. The passes check each node alone, resolve inputs,
// sort the nodes topologically unless the GraphDef is sorted, and infer shapes in that order. Back
// edges of loops (control_flow.h) do not count for the order. The first pass appends the nodes to
// the graph; they are removed if a pass fails. The rest of the graph changes only in Commit.
class GraphImporter {
 public:
  // Import takes the content of `source` if it succeeds.
  GraphImporter(const ImportGraphDefOptions& options, GraphDef* source, Graph* graph)
      : options_(options),
        source_(*source),
        graph_(GraphImpl::Of(graph)),
        limits_(options, *graph_.used()),
        first_id_(graph->num_nodes()),
        num_functions_(graph_.num_functions()),
        shapes_(graph_.shapes_mark()) {}

  absl::Status Import() {
    if (graph_.is_function() && source_.has_library()) {
      return errors::FailedPrecondition("the graph of a function cannot have functions");
    }
    // Also runs if memory runs out.
    absl::Cleanup remove_nodes = [this] {
      graph_.RemoveNodes(first_id_, shapes_);
      if (source_.has_library()) graph_.RemoveFunctions(num_functions_);
    };
    GRADFLOW_RETURN_IF_ERROR(Check());
    Commit();
    *graph_.used() = limits_.used();
    std::move(remove_nodes).Cancel();
    return absl::OkStatus();
  }

 private:
  // Names are prefetched this many nodes ahead. In a large graph, cache misses would take most of
  // the time.
  static constexpr int kAhead = 8;

  absl::Status Check() {
    GRADFLOW_RETURN_IF_ERROR(internal::CheckVersions(source_.versions()));
    GRADFLOW_RETURN_IF_ERROR(limits_.CheckGraph(source_, *graph_.def()));
    if (source_.has_library()) {
      GRADFLOW_RETURN_IF_ERROR(
          internal::CheckGradients(source_.library(), graph_.def()->library()));
      GRADFLOW_RETURN_IF_ERROR(graph_.AddFunctions(source_.library()));
    }
    if (!options_.prefix.empty()) AddPrefix();
    GRADFLOW_RETURN_IF_ERROR(MakeNodes());
    GRADFLOW_RETURN_IF_ERROR(ConnectNodes());
    if (!sorted_) {
      std::vector<Node*> order;
      GRADFLOW_RETURN_IF_ERROR(internal::SortTopologically(nodes_, first_id_, &order));
      nodes_ = std::move(order);
    }
    if (options_.infer_shapes) {
      for (Node* node : nodes_) {
        GRADFLOW_RETURN_IF_ERROR(limits_.CheckTime());
        absl::Status status = graph_.InferShapes(node);
        if (status.ok()) status = limits_.CheckShapeBytes(graph_.shapes_mark().bytes);
        if (!status.ok()) return errors::Prefix(NodePrefix(node->def()), status);
      }
    }
    return absl::OkStatus();
  }

  // Returns true if the graph becomes a copy of the GraphDef.
  bool TakesAll() const {
    return options_.prefix.empty() && first_id_ == 0 && !graph_.def()->has_library();
  }

  void AddPrefix() {
    const std::string prefix(absl::StripSuffix(options_.prefix, "/"));
    const auto add = [&](absl::string_view marker, std::string* name) {
      absl::string_view rest = *name;
      // An empty name stays empty and is refused later.
      if (!absl::ConsumePrefix(&rest, marker) || rest.empty()) return;
      *name = absl::StrCat(marker, prefix, "/", rest);
    };
    for (NodeDef& def : *source_.mutable_node()) {
      add("", def.mutable_name());
      for (std::string& input : *def.mutable_input()) {
        add(absl::StartsWith(input, "^") ? "^" : "", &input);
      }
      const auto colocation = def.mutable_attr()->find(internal::kColocationAttr);
      if (colocation == def.mutable_attr()->end() || !colocation->second.has_list()) continue;
      for (std::string& entry : *colocation->second.mutable_list()->mutable_s()) {
        add(internal::kColocationPrefix, &entry);
      }
    }
  }

  // Appends the nodes and checks each alone. Reports invalid names first, then missing ops and
  // kernels, then invalid attributes.
  absl::Status MakeNodes() {
    internal::MissingOps missing(graph_.registry());
    absl::Status fault;
    nodes_.reserve(source_.node_size());
    by_name_.Reserve(source_.node_size());
    for (int i = 0; i < source_.node_size(); ++i) {
      NodeDef& def = *source_.mutable_node(i);
      GRADFLOW_RETURN_IF_ERROR(limits_.CheckTime());
      if (i + kAhead < source_.node_size()) by_name_.Prefetch(source_.node(i + kAhead).name());
      if (def.name().empty()) {
        return errors::InvalidArgument("node ", i, " of the graph (op ", internal::Quoted(def.op()),
                                       ") has no name");
      }
      if (def.op().empty()) {
        return errors::InvalidArgument("node ", internal::Quoted(def.name()), " has no op");
      }
      if (absl::Status status = limits_.CheckNode(def); !status.ok()) {
        return errors::Prefix(NodePrefix(def), status);
      }
      // If the op is missing, the import fails before the id is looked at.
      const int id = static_cast<int>(graph_.nodes().size());
      if (!by_name_.Insert(def.name(), &def.name(), id)) {
        return errors::InvalidArgument(NodePrefix(def), "another node has the same name");
      }
      if (graph_.FindNode(def.name()) != nullptr) {
        return errors::InvalidArgument(NodePrefix(def),
                                       "the graph already has a node of this name");
      }
      CheckedNodeCache* const checked = graph_.FindCheckedNode(def.op());
      if (checked == nullptr && graph_.functions().Find(def.op()) != nullptr) {
        return errors::Prefix(NodePrefix(def), graph_.LookUpCheckedNode(def.op()).status());
      }
      if (checked == nullptr && options_.allow_missing_ops) {
        absl::Status status = internal::CheckNodeName(def.name());
        if (status.ok()) status = limits_.CheckUnknownAttrs(def);
        if (!status.ok()) return errors::Prefix(NodePrefix(def), status);
        nodes_.push_back(graph_.NewNode(&def, graph_.MissingOp(def.op())));
        graph_.MakeUnresolved(nodes_.back(), *nodes_.back());
        has_unresolved_ = true;
        continue;
      }
      if (checked == nullptr) {
        missing.AddOp(def);
        continue;
      }
      nodes_.push_back(graph_.NewNode(&def, *checked->op));
      if (absl::Status status = CheckNode(nodes_.back(), checked, &missing); !status.ok()) {
        fault.Update(errors::Prefix(NodePrefix(def), status));
        continue;
      }
      if (absl::Status status = MakeOutputs(nodes_.back()); !status.ok()) {
        return errors::Prefix(NodePrefix(def), status);
      }
    }
    return missing.empty() ? fault : missing.status();
  }

  absl::Status CheckNode(Node* node, CheckedNodeCache* like, internal::MissingOps* missing) {
    GRADFLOW_RETURN_IF_ERROR(
        graph_.CheckAlone(node, source_.versions().producer(), like, Attrs::kUnchecked));
    // Attributes that equal an earlier node's attributes are already checked.
    if (like->def == &node->def()) GRADFLOW_RETURN_IF_ERROR(limits_.CheckAttrs(node->def()));
    if (!options_.require_kernels || like->has_kernel ||
        node->op().functional() != FunctionalOp::kNone) {
      return absl::OkStatus();
    }
    const absl::Status status = graph_.registry().FindKernel(node->def()).status();
    like->has_kernel = status.ok();
    if (!status.ok()) missing->AddKernel(node->def(), status);
    return absl::OkStatus();
  }

  absl::Status MakeOutputs(Node* node) {
    const int arguments = node->op_def().output_arg_size();
    GRADFLOW_RETURN_IF_ERROR(
        limits_.CountListOutputs(std::max(node->num_outputs() - arguments, 0)));
    graph_.MakeOutputShapes(node);
    return absl::OkStatus();
  }

  // Returns the node that an input of the GraphDef names, or null.
  const Node* Find(absl::string_view name) const {
    const internal::NamedNode* const found = by_name_.Find(name);
    if (found != nullptr) return &graph_.nodes()[found->id];
    return options_.prefix.empty() ? graph_.FindNode(name) : nullptr;
  }

  // Makes all nodes that depend on an unresolved node unresolved.
  absl::Status SpreadUnresolved() {
    std::vector<std::vector<Node*>> consumers(nodes_.size());
    // Unresolved nodes whose consumers remain to be visited, each with the node whose op is
    // missing.
    std::vector<std::pair<const Node*, const Node*>> pending;
    for (Node* node : nodes_) {
      GRADFLOW_RETURN_IF_ERROR(limits_.CheckTime());
      if (!node->is_resolved()) pending.emplace_back(node, node);
      for (const std::string& input : node->def().input()) {
        const absl::StatusOr<TensorId> id = ParseTensorId(input);
        // ConnectNodes() reports the error if the node is resolved.
        const Node* const source = id.ok() ? Find(id->node) : nullptr;
        if (source == nullptr) continue;
        if (source->id() >= first_id_) {
          consumers[static_cast<size_t>(source->id() - first_id_)].push_back(node);
        } else if (!source->is_resolved() && node->is_resolved()) {
          graph_.MakeUnresolved(node, graph_.CauseOf(*source));
          pending.emplace_back(node, &graph_.CauseOf(*source));
        }
      }
    }
    while (!pending.empty()) {
      const auto [node, cause] = pending.back();
      pending.pop_back();
      for (Node* consumer : consumers[static_cast<size_t>(node->id() - first_id_)]) {
        if (!consumer->is_resolved()) continue;
        graph_.MakeUnresolved(consumer, *cause);
        pending.emplace_back(consumer, cause);
      }
    }
    return absl::OkStatus();
  }

  absl::Status ConnectNodes() {
    // Without the option, an input from an unresolved node is an error.
    if (options_.allow_missing_ops && (has_unresolved_ || graph_.has_unresolved())) {
      GRADFLOW_RETURN_IF_ERROR(SpreadUnresolved());
    }
    const auto find = [this](absl::string_view name) { return Find(name); };
    internal::Sources sources;
    const auto connect = [&](Node* node) -> absl::Status {
      if (!node->is_resolved()) return absl::OkStatus();
      GRADFLOW_RETURN_IF_ERROR(limits_.CheckTime());
      GRADFLOW_RETURN_IF_ERROR(internal::ResolveInputs(node->def(), find, &sources));
      GraphImpl::SetSources(node, sources);
      for (const Node::Source& source : sources) {
        if (source.node->id() >= node->id() && !IsBackEdge(*node, source)) sorted_ = false;
      }
      GRADFLOW_RETURN_IF_ERROR(GraphImpl::CheckSources(node));
      // A node of a function may be colocated with a node of the caller.
      if (graph_.is_function() || !internal::HasExtraAttrs(*node)) return absl::OkStatus();
      return internal::CheckColocation(
          node->def(), [&](absl::string_view name) { return find(name) != nullptr; });
    };
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (i + kAhead < nodes_.size()) {
        for (const std::string& input : nodes_[i + kAhead]->def().input()) {
          by_name_.Prefetch(absl::string_view(input).substr(0, input.find(':')));
        }
      }
      if (absl::Status status = connect(nodes_[i]); !status.ok()) {
        return errors::Prefix(NodePrefix(nodes_[i]->def()), status);
      }
    }
    return absl::OkStatus();
  }

  void Commit() {
    if (source_.has_library()) graph_.SetInferShapesOfFunctions(options_.infer_shapes);
    if (TakesAll()) {
      *graph_.by_name() = std::move(by_name_);
      graph_.def()->Swap(&source_);
      return;
    }
    // Allocates first, so that the graph gets everything or nothing.
    GraphDef& def = *graph_.def();
    VersionDef versions = def.versions();
    internal::MergeVersions(source_.versions(), &versions);
    FunctionDefLibrary gradients;
    std::vector<FunctionDef*> functions;
    const bool has_gradients =
        source_.library().gradient_size() > 0 || source_.library().registered_gradients_size() > 0;
    if (has_gradients) {
      *gradients.mutable_gradient() = def.library().gradient();
      *gradients.mutable_registered_gradients() = def.library().registered_gradients();
      internal::MergeGradients(source_.library(), &gradients);
    }
    if (source_.has_library()) {
      functions.resize(source_.library().function_size());
      def.mutable_library()->mutable_function()->Reserve(def.library().function_size() +
                                                         source_.library().function_size());
    }
    graph_.by_name()->Reserve(graph_.by_name()->size() + by_name_.size());
    def.mutable_node()->Reserve(def.node_size() + source_.node_size());
    std::vector<NodeDef*> nodes(source_.node_size());

    def.mutable_versions()->Swap(&versions);
    if (source_.has_library()) {
      FunctionDefLibrary& library = *def.mutable_library();
      if (has_gradients) {
        library.mutable_gradient()->Swap(gradients.mutable_gradient());
        library.mutable_registered_gradients()->Swap(gradients.mutable_registered_gradients());
      }
      // The functions do not move: the library points to them.
      source_.mutable_library()->mutable_function()->ExtractSubrange(
          0, source_.library().function_size(), functions.data());
      for (FunctionDef* function : functions) {
        if (graph_.functions().Find(function->signature().name()) == function) {
          library.mutable_function()->AddAllocated(function);
        } else {
          delete function;
        }
      }
    }
    graph_.by_name()->InsertAll(by_name_);
    // Transfers ownership; the NodeDefs do not move.
    source_.mutable_node()->ExtractSubrange(0, source_.node_size(), nodes.data());
    for (NodeDef* node : nodes) def.mutable_node()->AddAllocated(node);
  }

  const ImportGraphDefOptions& options_;
  GraphDef& source_;
  GraphImpl& graph_;
  internal::LimitChecks limits_;
  const int first_id_;
  // The graph's functions before the import.
  const size_t num_functions_;
  // The graph's shapes before the import.
  const internal::ShapeStore::Mark shapes_;
  // The new nodes in the order of the GraphDef; after sorting, each node follows its sources.
  std::vector<Node*> nodes_;
  // True if the order of the GraphDef is topological.
  bool sorted_ = true;
  // True if the op of a node is missing.
  bool has_unresolved_ = false;
  internal::NodesByName by_name_;
};

}  // namespace

absl::Status ImportGraphDef(const ImportGraphDefOptions& options, const GraphDef& graph_def,
                            Graph* graph) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(graph, "ImportGraphDef", "graph"));
  return CallSafely([&] { return ImportGraphDef(options, GraphDef(graph_def), graph); });
}

absl::Status ImportGraphDef(const ImportGraphDefOptions& options, GraphDef&& graph_def,
                            Graph* graph) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(graph, "ImportGraphDef", "graph"));
  return CallSafely([&] {
    // On the heap even if the argument is in an arena, because the graph becomes the owner of the
    // nodes.
    GraphDef source = std::move(graph_def);
    return GraphImporter(options, &source, graph).Import();
  });
}

}  // namespace gradflow
