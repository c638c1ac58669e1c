#include "tools/view/analyzed_graph.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <queue>
#include <unordered_set>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/tensor_id.h"
#include "tools/view/callee_checker.h"

namespace gradflow::tools {
namespace {

constexpr size_t kMaxLine = 4096;
constexpr int kMaxLines = 64;

absl::flat_hash_set<absl::string_view> FunctionNamesOf(const GraphDef& def) {
  absl::flat_hash_set<absl::string_view> names;
  for (const FunctionDef& function : def.library().function()) {
    names.insert(function.signature().name());
  }
  return names;
}

// Returns the nodes that can be imported without the other nodes: their ops are registered or in
// `functions`, no earlier node has the same name, and they depend only on nodes that can be
// imported.
std::vector<int> ImportableNodes(const AnalyzedGraph& graph,
                                 const absl::flat_hash_set<absl::string_view>& functions) {
  const int num_nodes = graph.def.node_size();
  std::vector<std::vector<int>> consumers(num_nodes);
  std::vector<int> waits(num_nodes);
  absl::flat_hash_set<absl::string_view> names;
  std::vector<int> ready;
  for (int i = 0; i < num_nodes; ++i) {
    const NodeDef& node = graph.def.node(i);
    // An excluded node waits for one more input than it has, so it never becomes ready.
    const bool excluded =
        !names.insert(node.name()).second ||
        (GlobalRegistry().FindOp(node.op()) == nullptr && !functions.contains(node.op()));
    waits[i] = excluded ? 1 : 0;
    for (const AnalyzedGraph::Source& source : graph.sources[i]) {
      ++waits[i];
      if (source.node >= 0) consumers[source.node].push_back(i);
    }
    if (waits[i] == 0) ready.push_back(i);
  }
  for (size_t next = 0; next < ready.size(); ++next) {
    for (const int consumer : consumers[ready[next]]) {
      if (--waits[consumer] == 0) ready.push_back(consumer);
    }
  }
  return ready;
}

// Imports the importable nodes of a graph whose import failed. The import has left graph->graph
// empty.
void ImportPart(const GraphLimits& limits, AnalyzedGraph* graph) {
  ImportGraphDefOptions options;
  options.limits = limits;
  options.require_kernels = false;
  // The failure may be due to a call of an invalid function, so the second attempt leaves out all
  // calls.
  for (const auto& functions :
       {FunctionNamesOf(graph->def), absl::flat_hash_set<absl::string_view>()}) {
    GraphDef part;
    for (const int i : ImportableNodes(*graph, functions)) *part.add_node() = graph->def.node(i);
    *part.mutable_versions() = graph->def.versions();
    *part.mutable_library() = graph->def.library();
    // After two errors, nothing is known about the nodes. The problems of the graph state the
    // reason.
    if (ImportGraphDef(options, std::move(part), graph->graph.get()).ok()) return;
  }
}

void FindNodeProblems(AnalyzedGraph* graph) {
  const absl::flat_hash_set<absl::string_view> functions = FunctionNamesOf(graph->def);
  for (int i = 0; i < graph->def.node_size(); ++i) {
    const NodeDef& node = graph->def.node(i);
    std::string problem;
    if (GlobalRegistry().FindOp(node.op()) == nullptr && functions.count(node.op()) == 0) {
      problem = "the op is not registered";
    } else if (graph->nodes[i] != nullptr &&
               graph->nodes[i]->op().functional() == FunctionalOp::kNone) {
      const auto kernel = GlobalRegistry().FindKernel(graph->nodes[i]->def());
      if (!kernel.ok()) problem = errors::Printable(kernel.status().message(), kMaxLine);
    }
    for (const AnalyzedGraph::Source& source : graph->sources[i]) {
      if (source.node < 0 && problem.empty()) problem = "an input is not in the graph";
    }
    if (!problem.empty()) graph->node_problems.emplace(i, std::move(problem));
  }
}

// Adds the problems of functions to the nodes that call them.
void FindProblemsOfFunctions(const GraphLimits& limits, AnalyzedGraph* graph) {
  CalleeChecker checker(limits);
  for (size_t i = 0; i < graph->nodes.size(); ++i) {
    if (graph->nodes[i] == nullptr) continue;
    const absl::Status status = checker.Check(*graph->nodes[i]);
    if (status.ok()) continue;
    graph->node_problems.emplace(static_cast<int>(i),
                                 errors::Printable(status.message(), kMaxLine));
  }
}

}  // namespace

InputSources FindSources(const GraphDef& def) {
  absl::flat_hash_map<absl::string_view, int> index;
  for (int i = 0; i < def.node_size(); ++i) index.emplace(def.node(i).name(), i);
  InputSources sources(def.node_size());
  for (int i = 0; i < def.node_size(); ++i) {
    for (const std::string& input : def.node(i).input()) {
      const absl::StatusOr<TensorId> id = ParseTensorId(input);
      InputSource source{-1, 0};
      if (id.ok()) {
        const auto found = index.find(id->node);
        source = {found == index.end() ? -1 : found->second, id->index};
      }
      sources[i].push_back(source);
    }
  }
  return sources;
}

std::vector<int> ProducersFirst(const InputSources& sources) {
  const int num_nodes = static_cast<int>(sources.size());
  std::vector<std::vector<int>> consumers(num_nodes);
  std::vector<int> waits(num_nodes);
  // The first node in the order of the graph is on top.
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (int i = 0; i < num_nodes; ++i) {
    for (const InputSource& source : sources[i]) {
      if (source.node < 0) continue;
      ++waits[i];
      consumers[source.node].push_back(i);
    }
    if (waits[i] == 0) ready.push(i);
  }
  std::vector<int> order;
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const int consumer : consumers[order.back()]) {
      if (--waits[consumer] == 0) ready.push(consumer);
    }
  }
  return order;
}

AnalyzedGraph AnalyzeGraph(GraphDef def, const GraphLimits& limits) {
  AnalyzedGraph graph;
  graph.def = std::move(def);
  graph.graph = std::make_unique<Graph>();
  graph.sources = FindSources(graph.def);
  ImportGraphDefOptions options;
  options.limits = limits;
  const absl::Status status = ImportGraphDef(options, graph.def, graph.graph.get());
  if (!status.ok()) {
    for (const absl::string_view line : absl::StrSplit(status.message(), '\n')) {
      if (graph.problems.size() == kMaxLines) break;
      graph.problems.push_back(errors::Printable(line, kMaxLine));
    }
    ImportPart(limits, &graph);
  }
  // If nodes share a name, only the first may have been imported.
  std::unordered_set<const Node*> taken;
  for (const NodeDef& node : graph.def.node()) {
    const Node* const found = graph.graph->FindNode(node.name());
    graph.nodes.push_back(found != nullptr && taken.insert(found).second ? found : nullptr);
  }
  if (!status.ok()) FindNodeProblems(&graph);
  FindProblemsOfFunctions(limits, &graph);
  return graph;
}

AnalyzedGraph AnalyzeEachNode(GraphDef def, const GraphLimits& limits) {
  AnalyzedGraph graph;
  graph.def = std::move(def);
  graph.graph = std::make_unique<Graph>();
  graph.sources = FindSources(graph.def);
  const int num_nodes = graph.def.node_size();
  graph.nodes.resize(num_nodes);
  ImportGraphDefOptions options;
  options.limits = limits;
  const absl::Status status = ImportGraphDef(options, graph.def, graph.graph.get());
  if (status.ok()) {
    for (int i = 0; i < num_nodes; ++i) {
      graph.nodes[i] = graph.graph->FindNode(graph.def.node(i).name());
    }
    FindProblemsOfFunctions(limits, &graph);
    return graph;
  }
  const auto note = [&](const std::string& text) {
    if (graph.problems.size() < kMaxLines) graph.problems.push_back(text);
  };
  // The versions and functions of the graph, without its nodes.
  GraphDef rest;
  *rest.mutable_versions() = graph.def.versions();
  *rest.mutable_library() = graph.def.library();
  if (const absl::Status of_rest = ImportGraphDef(options, rest, graph.graph.get());
      !of_rest.ok()) {
    note(errors::Printable(of_rest.message(), kMaxLine));
    return graph;
  }
  std::vector<bool> done(num_nodes);
  const std::vector<int> order = ProducersFirst(graph.sources);
  for (size_t next = 0; next < order.size(); ++next) {
    const int i = order[next];
    // Each import checks the complete library.
    if (next % 8 == 0 && std::chrono::steady_clock::now() >= limits.deadline) {
      note("the time for the import is over");
      return graph;
    }
    done[i] = true;
    const NodeDef& node = graph.def.node(i);
    std::string problem;
    // The import reports a missing producer as an error of the node.
    for (size_t k = 0; k < graph.sources[i].size() && problem.empty(); ++k) {
      const int source = graph.sources[i][k].node;
      const std::string& input = node.input(static_cast<int>(k));
      if (source < 0) {
        problem = input.empty() ? absl::StrCat("input ", k, " is not connected")
                                : absl::StrCat("input '", errors::Printable(input, 200),
                                               "' is not in the graph");
      } else if (graph.nodes[source] == nullptr) {
        problem = absl::StrCat("the producer '", errors::Printable(graph.def.node(source).name()),
                               "' cannot run");
      }
    }
    if (problem.empty()) {
      GraphDef single;
      *single.add_node() = node;
      *single.mutable_versions() = graph.def.versions();
      if (const absl::Status of_node = ImportGraphDef(options, single, graph.graph.get());
          !of_node.ok()) {
        problem = errors::Printable(of_node.message(), kMaxLine);
      } else {
        graph.nodes[i] = graph.graph->FindNode(node.name());
      }
    }
    if (!problem.empty()) graph.node_problems.emplace(i, std::move(problem));
  }
  for (int i = 0; i < num_nodes; ++i) {
    if (!done[i]) graph.node_problems.emplace(i, "its inputs form a cycle, or depend on one");
  }
  FindProblemsOfFunctions(limits, &graph);
  if (graph.node_problems.empty()) note(errors::Printable(status.message(), kMaxLine));
  return graph;
}

std::string ShapeText(const PartialTensorShape& shape) {
  constexpr int kMaxDims = 16;
  if (shape.dims() <= kMaxDims) return shape.DebugString();
  std::string text = PartialTensorShape(shape.dim_sizes().subspan(0, kMaxDims)).DebugString();
  text.pop_back();
  return absl::StrCat(text, ",... ", shape.dims(), " dimensions]");
}

std::map<absl::string_view, const AttrValue*> OwnAttrs(const NodeDef& node, const OpDef* op) {
  std::map<absl::string_view, const AttrValue*> attrs;
  for (const auto& [name, value] : node.attr()) attrs.emplace(name, &value);
  // A function of the file may declare any number of attributes, for any number of nodes.
  constexpr int kMaxAttrs = 256;
  for (int i = 0; op != nullptr && i < std::min(op->attr_size(), kMaxAttrs); ++i) {
    const OpDef::AttrDef& attr = op->attr(i);
    const auto found = attrs.find(attr.name());
    if (found != attrs.end() && attr.has_default_value() &&
        AreAttrValuesEqual(*found->second, attr.default_value())) {
      attrs.erase(found);
    }
  }
  return attrs;
}

}  // namespace gradflow::tools
