// AnalyzedGraph: a GraphDef with what is known of it, whether or not it can run.
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

// Returns the nodes, each after its producers, and as near to the order of the graph as that
// allows. Lacks nodes of cycles, and those that depend on one.
std::vector<int> ProducersFirst(const InputSources& sources);

struct AnalyzedGraph {
  using Source = InputSource;

  GraphDef def;
  // The nodes that could be imported. Also the others' neighbors are missing in it.
  std::unique_ptr<Graph> graph;
  // For each node of `def`, its node in `graph`; null if it could not be imported.
  std::vector<const Node*> nodes;
  InputSources sources;
  // Lines that say why the graph cannot run. Empty if it can.
  std::vector<std::string> problems;
  // Why single nodes cannot run, by index.
  std::map<int, std::string> node_problems;
};

// Reads a graph and imports it. If it cannot be imported, imports the nodes that depend on nothing
// unknown, for their types and shapes. Fails only if the file cannot be read.
absl::StatusOr<AnalyzedGraph> AnalyzeGraph(const std::string& path, const GraphLimits& limits);

// Overload for a graph that has been read.
AnalyzedGraph AnalyzeGraph(GraphDef def, const GraphLimits& limits);

// Imports each node by itself, after its producers: an error is that of one node, and nodes that do
// not depend on it have types and shapes. For graphs under construction. A node of a cycle is
// imported only if the whole graph can be.
AnalyzedGraph AnalyzeEachNode(GraphDef def, const GraphLimits& limits);

// Returns the shape; of one with many dimensions the first 16.
std::string ShapeText(const PartialTensorShape& shape);

// Returns the attributes of a node that differ from the defaults of its op, by name. `op` is null
// if it is not known. Of an op with very many attributes, the defaults of the first ones count.
std::map<absl::string_view, const AttrValue*> OwnAttrs(const NodeDef& node, const OpDef* op);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_VIEW_ANALYZED_GRAPH_H_
