// gradflow inspect: lists nodes by op, inputs, outputs, shapes and import errors.
#include <map>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/tensor_id.h"
#include "gradflow/proto/graph.pb.h"
#include "tools/commands.h"

namespace gradflow::tools {
namespace {

void PrintOps(const GraphDef& def, std::ostream& out) {
  std::map<std::string, int> counts;
  for (const NodeDef& node : def.node()) ++counts[node.op()];
  out << "nodes: " << def.node_size() << "\n";
  for (const auto& [op, count] : counts)
    out << absl::StreamFormat("  %6d  %s\n", count, absl::CEscape(op));
  if (def.library().function_size() > 0) {
    out << "functions: " << def.library().function_size() << "\n";
  }
  if (def.has_versions()) {
    out << "versions: producer " << def.versions().producer() << ", min_consumer "
        << def.versions().min_consumer() << "\n";
  }
}

void PrintOutput(const Node& node, int output, const std::string& name, std::ostream& out) {
  out << "  " << name << "  " << DataTypeString(node.output_type(output)) << " "
      << node.output_shape(output).DebugString() << "\n";
}

void PrintEnds(const Graph& graph, std::ostream& out) {
  out << "inputs:\n";
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node* node = graph.node(id);
    if (node->type_string() == "Placeholder" || node->type_string() == "PlaceholderWithDefault") {
      PrintOutput(*node, 0, node->name(), out);
    }
  }
  out << "outputs:\n";
  for (const std::string& name : UnusedOutputs(graph)) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(name, absl::MaxSplits(':', 1));
    const Node* node = graph.FindNode(parts.first);
    PrintOutput(*node, parts.second.empty() ? 0 : std::stoi(parts.second), name, out);
  }
}

// Prints inputs and outputs of a graph that cannot be imported, from its nodes alone.
void PrintEnds(const GraphDef& def, std::ostream& out) {
  std::set<absl::string_view> used;
  for (const NodeDef& node : def.node()) {
    for (absl::string_view input : node.input()) {
      absl::ConsumePrefix(&input, "^");
      used.insert(input.substr(0, input.rfind(':')));
    }
  }
  out << "inputs:\n";
  for (const NodeDef& node : def.node()) {
    if (node.op() != "Placeholder" && node.op() != "PlaceholderWithDefault") continue;
    DataType dtype = DT_INVALID;
    PartialTensorShape shape;
    // A missing attribute remains unknown.
    GetNodeAttr(node, "dtype", &dtype).IgnoreError();
    GetNodeAttr(node, "shape", &shape).IgnoreError();
    out << "  " << absl::CEscape(node.name()) << "  " << DataTypeString(dtype) << " "
        << shape.DebugString() << "\n";
  }
  out << "outputs:\n";
  for (const NodeDef& node : def.node()) {
    if (used.count(node.name()) > 0) continue;
    out << "  " << absl::CEscape(node.name()) << "  (" << absl::CEscape(node.op()) << ")\n";
  }
}

}  // namespace

absl::Status InspectCommand(const std::string& graph_file, std::ostream& out) {
  GRADFLOW_ASSIGN_OR_RETURN(const GraphDef def, ReadGraphDef(graph_file));
  PrintOps(def, out);
  Graph graph;
  const absl::Status status = ImportGraphDef(ImportGraphDefOptions(), def, &graph);
  if (status.ok()) {
    PrintEnds(graph, out);
  } else {
    PrintEnds(def, out);
    // Part of the report, not an error of the command.
    out << "cannot run:\n  " << absl::StrJoin(absl::StrSplit(status.message(), '\n'), "\n  ")
        << "\n";
  }
  return absl::OkStatus();
}

}  // namespace gradflow::tools
