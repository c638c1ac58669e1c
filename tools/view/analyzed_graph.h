// AnalyzedGraph: a GraphDef with its known types and shapes, even if it cannot run.
#ifndef GRADFLOW_TOOLS_VIEW_ANALYZED_GRAPH_H_
#define GRADFLOW_TOOLS_VIEW_ANALYZED_GRAPH_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/import.h"
#include "gradflow/proto/graph.pb.h"

namespace gradflow::tools {

// The output that an input of a node reads. A control input has output -1. `node` is an index into
// def.node(), or -1 if there is no such node.
struct InputSource {
  int node;
  int output;
};
// For each node, the sources in the order of its inputs.
using InputSources = std::vector<std::vector<InputSource>>;
InputSources FindSources(const GraphDef& def);

// Returns the nodes, each after its producers, in an order close to the order of the graph. Leaves
// out nodes of cycles, and nodes that depend on a cycle.
std::vector<int> ProducersFirst(const InputSources& sources);

struct AnalyzedGraph {
  using Source = InputSource;

  GraphDef def;
  // The nodes that could be imported. Nodes that depend on other nodes are missing.
  std::unique_ptr<Graph> graph;
  // For each node of `def`, its node in `graph`; null if it could not be imported.
  std::vector<const Node*> nodes;
  InputSources sources;
  // Reasons why the graph cannot run, one line each. Empty if it can run.
  std::vector<std::string> problems;
  // Reasons why single nodes cannot run, by index.
  std::map<int, std::string> node_problems;
};

// Imports a graph. If the graph cannot be imported, imports the nodes that depend only on known
// nodes, for their types and shapes.
AnalyzedGraph AnalyzeGraph(GraphDef def, const GraphLimits& limits);

// Imports each node separately, after its producers, if the complete graph cannot be imported. An
// error then concerns one node, and nodes that do not depend on it have types and shapes. For
// graphs under construction. Nodes of cycles are not imported separately.
AnalyzedGraph AnalyzeEachNode(GraphDef def, const GraphLimits& limits);

// Returns the shape as text, with at most the first 16 dimensions.
std::string ShapeText(const PartialTensorShape& shape);

// Returns the attributes of a node that differ from the defaults of its op, by name. If the op is
// not known, `op` is null, and all attributes are returned. If an op has very many attributes, only
// the defaults of the first attributes are compared.
std::map<absl::string_view, const AttrValue*> OwnAttrs(const NodeDef& node, const OpDef* op);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_VIEW_ANALYZED_GRAPH_H_
