// gradflow inspect: lists nodes by op, inputs, outputs, shapes and import errors.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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
#include "gradflow/runtime/plan/plan_report.h"
#include "tools/commands.h"
#include "tools/graph_limits.h"
#include "tools/view/graph_json.h"

namespace gradflow::tools {
namespace {

void PrintOps(const GraphDef& def, std::ostream& out) {
  std::map<std::string, int> counts;
  for (const NodeDef& node : def.node()) ++counts[node.op()];
  out << "nodes: " << def.node_size() << "\n";
  for (const auto& [op, count] : counts)
    out << absl::StreamFormat("  %6d  %s\n", count, errors::Printable(op));
  if (def.library().function_size() > 0) {
    out << "functions: " << def.library().function_size() << "\n";
  }
  if (def.has_versions()) {
    out << "versions: producer " << def.versions().producer() << ", min_consumer "
        << def.versions().min_consumer() << "\n";
  }
}

void PrintOutput(const Node& node, int output, std::ostream& out) {
  out << "  " << FormatTensorId({node.name(), output}) << "  "
      << DataTypeString(node.output_type(output)) << " " << ShapeText(node.output_shape(output))
      << "\n";
}

void PrintEnds(const Graph& graph, std::ostream& out) {
  out << "inputs:\n";
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node* node = graph.node(id);
    if (node->type_string() == "Placeholder" || node->type_string() == "PlaceholderWithDefault") {
      PrintOutput(*node, 0, out);
    }
  }
  out << "outputs:\n";
  // A node of few bytes may have a million outputs.
  constexpr int kPrintedOutputs = 16;
  std::vector<TensorId> unused = UnusedOutputIds(graph);
  for (size_t i = 0; i < unused.size();) {
    const Node* const node = graph.FindNode(unused[i].node);
    int found = 0;
    for (; i < unused.size() && unused[i].node.data() == node->name().data(); ++i) {
      if (++found <= kPrintedOutputs) PrintOutput(*node, unused[i].index, out);
    }
    if (found > kPrintedOutputs) {
      out << "  " << node->name() << "  ... and " << found - kPrintedOutputs << " more\n";
    }
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
    out << "  " << errors::Printable(node.name()) << "  " << DataTypeString(dtype) << " "
        << ShapeText(shape) << "\n";
  }
  out << "outputs:\n";
  for (const NodeDef& node : def.node()) {
    if (used.count(node.name()) > 0) continue;
    out << "  " << errors::Printable(node.name()) << "  (" << errors::Printable(node.op()) << ")\n";
  }
}

void PrintChanges(absl::string_view what, const std::vector<PlanReport::Change>& changes,
                  std::ostream& out) {
  constexpr size_t kPrintedChanges = 1000;
  out << what << ": " << changes.size() << "\n";
  for (size_t i = 0; i < changes.size() && i < kPrintedChanges; ++i) {
    const PlanReport::Change& change = changes[i];
    out << "  " << errors::Printable(change.name) << "  (" << errors::Printable(change.op) << ")";
    if (change.origins.size() > 1 || change.origins[0] != change.name) {
      out << " = " << errors::Printable(absl::StrJoin(change.origins, ", "));
    }
    out << "\n";
  }
  if (changes.size() > kPrintedChanges) {
    out << "  ... and " << changes.size() - kPrintedChanges << " more\n";
  }
}

// Prints the plan of a run that feeds the placeholders and fetches the outputs of the nodes that no
// node reads. Unused outputs of others, such as the statistics of batch normalization, are not
// fetched: their nodes could not be fused.
absl::Status PrintPlan(const Graph& graph, bool fast, std::ostream& out) {
  std::vector<std::string> feeds;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node* const node = graph.node(id);
    if (node->type_string() == "Placeholder") feeds.push_back(node->name());
  }
  std::vector<std::string> fetches;
  const std::vector<TensorId> unused = UnusedOutputIds(graph);
  for (size_t i = 0, end = 0; i < unused.size(); i = end) {
    while (end < unused.size() && unused[end].node.data() == unused[i].node.data()) ++end;
    const Node* const node = graph.FindNode(unused[i].node);
    if (static_cast<size_t>(node->num_outputs()) != end - i) continue;
    for (; i < end; ++i) fetches.push_back(FormatTensorId(unused[i]));
  }
  GRADFLOW_ASSIGN_OR_RETURN(const PlanReport report, ReportPlan(graph, feeds, fetches, fast));
  out << "plan: " << report.planned_nodes << " nodes of " << report.needed_nodes << "\n";
  PrintChanges("eliminated", report.merged, out);
  PrintChanges("folded", report.folded, out);
  PrintChanges("fused", report.fused, out);
  return absl::OkStatus();
}

}  // namespace

absl::Status InspectCommand(const InspectFlags& flags, std::ostream& out) {
  ImportGraphDefOptions options;
  GRADFLOW_ASSIGN_OR_RETURN(options.limits, MakeGraphLimits(flags.graph_limits, flags.limits));
  GRADFLOW_ASSIGN_OR_RETURN(const GraphDef def, ReadGraphDef(flags.graph, options.limits));
  PrintOps(def, out);
  Graph graph;
  const absl::Status status = ImportGraphDef(options, def, &graph);
  if (status.ok()) {
    PrintEnds(graph, out);
    if (flags.plan) GRADFLOW_RETURN_IF_ERROR(PrintPlan(graph, flags.fast, out));
  } else {
    PrintEnds(def, out);
    // Part of the report, not an error of the command.
    out << "cannot run:\n";
    constexpr size_t kMaxLine = 4096;
    for (const absl::string_view line : absl::StrSplit(status.message(), '\n')) {
      out << "  " << errors::Printable(line, kMaxLine) << "\n";
    }
  }
  return absl::OkStatus();
}

}  // namespace gradflow::tools
