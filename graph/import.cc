#include "gradflow/graph/import.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/import_checks.h"
#include "gradflow/graph/import_limits.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/proto/graph.pb.h"

namespace gradflow {

using internal::NodePrefix;

// Imports one GraphDef, in passes over all nodes: each alone, then its inputs, then the order
// unless the GraphDef has one, then shapes in that order. Nodes are made at the end of the graph's
// as they are needed, and are taken back if a pass fails; all else of the graph changes only in
// Commit.
class GraphImporter {
 public:
  // Takes over what is in `source` if it succeeds.
  GraphImporter(const ImportGraphDefOptions& options, GraphDef* source, Graph* graph)
      : options_(options),
        limits_(options),
        source_(*source),
        graph_(*graph),
        first_id_(graph->num_nodes()) {}

  absl::Status Import() {
    // Also if there is no memory for the rest.
    absl::Cleanup remove_nodes = [this] { graph_.RemoveNodes(first_id_); };
    GRADFLOW_RETURN_IF_ERROR(Check());
    Commit();
    std::move(remove_nodes).Cancel();
    return absl::OkStatus();
  }

 private:
  // How many nodes ahead names are brought into the cache: in a large graph, waiting for them would
  // take most of the time.
  static constexpr int kAhead = 8;

  absl::Status Check() {
    GRADFLOW_RETURN_IF_ERROR(internal::CheckVersions(source_.versions()));
    GRADFLOW_RETURN_IF_ERROR(limits_.CheckGraph(source_));
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
        if (absl::Status status = Graph::InferShapes(node); !status.ok()) {
          return errors::Prefix(NodePrefix(node->def()), status);
        }
      }
    }
    if (TakesAll()) return absl::OkStatus();
    return internal::CheckLibraries(source_.library(), graph_.def().library());
  }

  // Whether the graph becomes what the GraphDef is.
  bool TakesAll() const {
    return options_.prefix.empty() && first_id_ == 0 && !graph_.def().has_library();
  }

  void AddPrefix() {
    const std::string prefix(absl::StripSuffix(options_.prefix, "/"));
    const auto add = [&](absl::string_view marker, std::string* name) {
      absl::string_view rest = *name;
      // An empty name stays empty, to be refused.
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

  // Makes the nodes, looking at each alone. What is wrong with names is reported before what the
  // registry lacks, and that before what is wrong with attributes.
  absl::Status MakeNodes() {
    internal::MissingOps missing(graph_.registry(), source_);
    absl::Status fault;
    nodes_.reserve(source_.node_size());
    by_name_.reserve(source_.node_size());
    for (int i = 0; i < source_.node_size(); ++i) {
      NodeDef& def = *source_.mutable_node(i);
      if (i + kAhead < source_.node_size()) by_name_.prefetch(source_.node(i + kAhead).name());
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
      const auto [by_name, is_new] = by_name_.emplace(def.name(), nullptr);
      if (!is_new) {
        return errors::InvalidArgument(NodePrefix(def), "another node has this name too");
      }
      if (graph_.FindNode(def.name()) != nullptr) {
        return errors::InvalidArgument(NodePrefix(def),
                                       "the graph has a node of this name already");
      }
      Graph::Example* const example = graph_.FindExample(def.op());
      if (example == nullptr) {
        missing.AddOp(def);
        continue;
      }
      by_name->second = graph_.NewNode(&def, *example->op);
      nodes_.push_back(by_name->second);
      if (absl::Status status = CheckNode(nodes_.back(), example, &missing); !status.ok()) {
        fault.Update(errors::Prefix(NodePrefix(def), status));
        continue;
      }
      if (absl::Status status = MakeOutputs(nodes_.back()); !status.ok()) {
        return errors::Prefix(NodePrefix(def), status);
      }
    }
    return missing.empty() ? fault : missing.status();
  }

  absl::Status CheckNode(Node* node, Graph::Example* like, internal::MissingOps* missing) {
    GRADFLOW_RETURN_IF_ERROR(graph_.CheckAlone(node, source_.versions().producer(), like));
    // Attributes that an earlier node has are checked.
    if (like->def == &node->def()) GRADFLOW_RETURN_IF_ERROR(limits_.CheckAttrs(node->def()));
    if (!options_.require_kernels || like->has_kernel) return absl::OkStatus();
    const absl::Status status = graph_.registry().FindKernel(node->def()).status();
    like->has_kernel = status.ok();
    if (!status.ok()) missing->AddKernel(node->def(), status);
    return absl::OkStatus();
  }

  absl::Status MakeOutputs(Node* node) {
    const int arguments = node->op_def().output_arg_size();
    GRADFLOW_RETURN_IF_ERROR(
        limits_.CountListOutputs(std::max(node->num_outputs() - arguments, 0)));
    node->output_shapes_.resize(node->num_outputs());
    return absl::OkStatus();
  }

  absl::Status ConnectNodes() {
    const auto find = [this](absl::string_view name) -> const Node* {
      const auto it = by_name_.find(name);
      if (it != by_name_.end()) return it->second;
      return options_.prefix.empty() ? graph_.FindNode(name) : nullptr;
    };
    internal::Sources sources;
    const auto connect = [&](Node* node) -> absl::Status {
      GRADFLOW_RETURN_IF_ERROR(internal::ResolveInputs(node->def(), find, &sources));
      node->sources_.assign(sources.begin(), sources.end());
      for (const Node::Source& source : sources) {
        if (source.node->id() >= node->id()) sorted_ = false;
      }
      GRADFLOW_RETURN_IF_ERROR(Graph::CheckSources(node));
      if (!Graph::HasExtraAttrs(*node)) return absl::OkStatus();
      return internal::CheckColocation(
          node->def(), [&](absl::string_view name) { return find(name) != nullptr; });
    };
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (i + kAhead < nodes_.size()) {
        for (const std::string& input : nodes_[i + kAhead]->def().input()) {
          by_name_.prefetch(absl::string_view(input).substr(0, input.find(':')));
        }
      }
      if (absl::Status status = connect(nodes_[i]); !status.ok()) {
        return errors::Prefix(NodePrefix(nodes_[i]->def()), status);
      }
    }
    return absl::OkStatus();
  }

  void Commit() {
    if (TakesAll()) {
      graph_.by_name_ = std::move(by_name_);
      graph_.def_->Swap(&source_);
      return;
    }
    // All that may lack memory comes first, so that the graph has all of it or nothing.
    GraphDef& def = *graph_.def_;
    VersionDef versions = def.versions();
    internal::MergeVersions(source_.versions(), &versions);
    FunctionDefLibrary library;
    if (source_.has_library()) {
      library = def.library();
      internal::MergeLibraries(source_.library(), &library);
    }
    graph_.by_name_.reserve(graph_.by_name_.size() + by_name_.size());
    def.mutable_node()->Reserve(def.node_size() + source_.node_size());
    std::vector<NodeDef*> nodes(source_.node_size());

    def.mutable_versions()->Swap(&versions);
    if (source_.has_library()) def.mutable_library()->Swap(&library);
    graph_.by_name_.insert(by_name_.begin(), by_name_.end());
    // Nodes stay where they are in memory: this only passes on who owns them.
    source_.mutable_node()->ExtractSubrange(0, source_.node_size(), nodes.data());
    for (NodeDef* node : nodes) def.mutable_node()->AddAllocated(node);
  }

  const ImportGraphDefOptions& options_;
  internal::LimitChecks limits_;
  GraphDef& source_;
  Graph& graph_;
  const int first_id_;
  // The new nodes in the order of the GraphDef, and in the end each behind its sources.
  std::vector<Node*> nodes_;
  // Whether those are the same.
  bool sorted_ = true;
  Graph::NodesByName by_name_;
};

absl::Status ImportGraphDef(const ImportGraphDefOptions& options, const GraphDef& graph_def,
                            Graph* graph) {
  return CallSafely([&] { return ImportGraphDef(options, GraphDef(graph_def), graph); });
}

absl::Status ImportGraphDef(const ImportGraphDefOptions& options, GraphDef&& graph_def,
                            Graph* graph) {
  return CallSafely([&] {
    // On the heap, whatever arena the argument is in, since the graph takes over the nodes.
    GraphDef source = std::move(graph_def);
    return GraphImporter(options, &source, graph).Import();
  });
}

}  // namespace gradflow
