// gradflow inspect: prints the number of nodes of each op, the inputs and outputs with their
// shapes, and import errors. For a SavedModel, prints its signatures and variables. With --plan,
// also prints the plan of a run.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
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
#include "gradflow/saved_model/loader.h"
#include "gradflow/saved_model/reader.h"
#include "gradflow/saved_model/signature.h"
#include "tools/commands.h"
#include "tools/graph_limits.h"
#include "tools/models.h"
#include "tools/view/callee_checker.h"
#include "tools/view/graph_json.h"

namespace gradflow::tools {
namespace {

void PrintOps(const GraphDef& def, std::ostream& out) {
  std::map<std::string, int64_t> counts;
  const auto print = [&] {
    for (const auto& [op, count] : counts) {
      out << absl::StreamFormat("  %6d  %s\n", count, errors::Printable(op));
    }
  };
  for (const NodeDef& node : def.node()) ++counts[node.op()];
  out << "nodes: " << def.node_size() << "\n";
  print();
  if (def.library().function_size() > 0) {
    int64_t num_nodes = 0;
    counts.clear();
    for (const FunctionDef& function : def.library().function()) {
      num_nodes += function.node_def_size();
      for (const NodeDef& node : function.node_def()) ++counts[node.op()];
    }
    out << "functions: " << def.library().function_size() << "\n";
    if (num_nodes > 0) out << "nodes of functions: " << num_nodes << "\n";
    print();
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
  // A node with few bytes may have a million outputs.
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

// Prints the inputs and outputs of a graph that cannot be imported, using only its NodeDefs.
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

// Prints the origins of each change, or the reason if `is_reason` is true.
void PrintChanges(absl::string_view what, const std::vector<PlanReport::Change>& changes,
                  std::ostream& out, bool is_reason = false) {
  constexpr size_t kPrintedChanges = 1000;
  out << what << ": " << changes.size() << "\n";
  for (size_t i = 0; i < changes.size() && i < kPrintedChanges; ++i) {
    const PlanReport::Change& change = changes[i];
    out << "  " << errors::Printable(change.name) << "  (" << errors::Printable(change.op) << ")";
    if (change.origins.size() > 1 || change.origins[0] != change.name) {
      out << (is_reason ? ": " : " = ") << errors::Printable(absl::StrJoin(change.origins, ", "));
    }
    out << "\n";
  }
  if (changes.size() > kPrintedChanges) {
    out << "  ... and " << changes.size() - kPrintedChanges << " more\n";
  }
}

// Prints the problems of the functions that the nodes of the graph call.
void PrintProblemsOfFunctions(const Graph& graph, const GraphLimits& limits, std::ostream& out) {
  constexpr int kMaxLines = 64;
  constexpr size_t kMaxLine = 4096;
  CalleeChecker checker(limits);
  int lines = 0;
  for (int id = 0; id < graph.num_nodes() && lines < kMaxLines; ++id) {
    const Node& node = *graph.node(id);
    const absl::Status status = checker.Check(node);
    if (status.ok()) continue;
    if (lines++ == 0) out << "cannot run:\n";
    out << "  node '" << errors::Printable(node.name()) << "' ("
        << errors::Printable(node.type_string())
        << "): " << errors::Printable(status.message(), kMaxLine) << "\n";
  }
}

// Prints the plan of a run that feeds the placeholders and fetches the outputs of the nodes that no
// other node reads. Unused outputs of other nodes, such as the statistics of batch normalization,
// are not fetched, because their nodes could then not be fused.
absl::Status PrintPlan(const Graph& graph, const InspectFlags& flags, std::ostream& out) {
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
  GRADFLOW_ASSIGN_OR_RETURN(const PlanReport report,
                            ReportPlan(graph, feeds, fetches, flags.fast, !flags.int8.empty(),
                                       flags.int8 == kTfLiteRounding));
  out << "plan: " << report.planned_nodes << " nodes of " << report.needed_nodes << "\n";
  PrintChanges("eliminated", report.merged, out);
  PrintChanges("folded", report.folded, out);
  PrintChanges("fused", report.fused, out);
  if (!flags.int8.empty()) PrintChanges("in float", report.in_float, out, /*is_reason=*/true);
  return absl::OkStatus();
}

// ---- SavedModels ----

std::string TagList(const MetaGraphDef& graph) {
  std::vector<std::string> tags;
  for (const std::string& tag : graph.meta_info_def().tags())
    tags.push_back(errors::Printable(tag));
  std::sort(tags.begin(), tags.end());
  return absl::StrJoin(tags, ",");
}

void PrintTensors(absl::string_view what, absl::Span<const SignatureTensor> tensors,
                  const NamedTensors& defaults, std::ostream& out) {
  out << "    " << what << ":\n";
  for (const SignatureTensor& tensor : tensors) {
    out << "      " << errors::Printable(tensor.name) << "  " << DataTypeString(tensor.dtype) << " "
        << ShapeText(tensor.shape) << "  " << errors::Printable(tensor.tensor_name);
    if (defaults.count(tensor.name) > 0) out << "  (optional)";
    out << "\n";
  }
}

// Prints the signatures, with the ops that they need and gradflow lacks.
void PrintSignatures(const MetaGraphDef& graph, std::ostream& out) {
  std::vector<std::string> names;
  for (const auto& [name, def] : graph.signature_def()) {
    // The nodes that initialize and train are no signatures for users.
    if (!absl::StartsWith(name, "__saved_model_")) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  out << "signatures:\n";
  // Each signature may need the whole graph.
  constexpr size_t kPrintedSignatures = 100;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i == kPrintedSignatures) {
      out << "  ... and " << names.size() - i << " more\n";
      break;
    }
    const std::string& name = names[i];
    const SignatureDef& def = graph.signature_def().at(name);
    out << "  " << errors::Printable(name) << "  " << errors::Printable(def.method_name()) << "\n";
    const absl::StatusOr<Signature> signature = Signature::Make(name, def, nullptr);
    if (!signature.ok()) {
      out << "    error: " << signature.status().message() << "\n";
      continue;
    }
    PrintTensors("inputs", signature->inputs(), signature->defaults(), out);
    PrintTensors("outputs", signature->outputs(), {}, out);
    std::vector<std::string> tensors;
    for (const SignatureTensor& output : signature->outputs()) {
      tensors.push_back(output.tensor_name);
    }
    std::vector<std::string> feeds;
    for (const SignatureTensor& input : signature->inputs()) feeds.push_back(input.tensor_name);
    const std::vector<std::string> missing = MissingOpsOf(graph, tensors, feeds);
    constexpr size_t kPrintedOps = 50;
    std::vector<std::string> ops;
    for (const std::string& op : missing) {
      if (ops.size() < kPrintedOps) ops.push_back(errors::Printable(op));
    }
    if (missing.size() > kPrintedOps) ops.emplace_back("...");
    if (!ops.empty())
      out << "    needs ops that gradflow lacks: " << absl::StrJoin(ops, ", ") << "\n";
  }
}

absl::Status PrintVariables(const InspectFlags& flags, const MetaGraphDef& graph,
                            std::ostream& out) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::optional<Checkpoint> checkpoint,
                            OpenSavedModelCheckpoint(flags.graph, LimitedAllocator(flags.limits)));
  const bool has_values = checkpoint.has_value();
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<ModelVariable> variables,
                            ModelVariables(graph, has_values ? &*checkpoint : nullptr));
  out << "variables: " << variables.size();
  if (!variables.empty() && !has_values) out << ", without values: there is no variables/";
  out << "\n";
  constexpr size_t kPrintedVariables = 1000;
  for (size_t i = 0; i < variables.size() && i < kPrintedVariables; ++i) {
    const ModelVariable& variable = variables[i];
    out << "  " << errors::Printable(variable.name) << "  " << DataTypeString(variable.dtype) << " "
        << ShapeText(variable.shape);
    if (!variable.key.empty()) out << "  " << errors::Printable(variable.key);
    out << "\n";
  }
  if (variables.size() > kPrintedVariables) {
    out << "  ... and " << variables.size() - kPrintedVariables << " more\n";
  }
  return absl::OkStatus();
}

// Prints the tags of all graphs, and the graph that the flags select.
absl::StatusOr<GraphDef> PrintSavedModel(const InspectFlags& flags, const GraphLimits& limits,
                                         std::ostream& out) {
  GRADFLOW_ASSIGN_OR_RETURN(SavedModel model, ReadSavedModel(flags.graph, limits));
  out << "graphs: " << model.meta_graphs_size() << "\n";
  constexpr int kPrintedGraphs = 100;
  for (int i = 0; i < model.meta_graphs_size() && i < kPrintedGraphs; ++i) {
    const MetaGraphDef& graph = model.meta_graphs(i);
    out << "  tags " << TagList(graph);
    if (!graph.meta_info_def().tensorflow_version().empty()) {
      out << "  TensorFlow " << errors::Printable(graph.meta_info_def().tensorflow_version());
    }
    out << "\n";
  }
  GRADFLOW_ASSIGN_OR_RETURN(const auto fingerprint, ReadSavedModelFingerprint(flags.graph, limits));
  if (fingerprint != nullptr) {
    out << "fingerprint: checksum " << fingerprint->saved_model_checksum();
    if (!fingerprint->uuid().empty()) out << ", UUID " << errors::Printable(fingerprint->uuid());
    out << "\n";
  }
  GRADFLOW_ASSIGN_OR_RETURN(const auto tags, ChooseTags(model, flags.tag));
  MetaGraphDef graph;
  GRADFLOW_RETURN_IF_ERROR(TakeMetaGraph(flags.graph, tags, &model, &graph));
  if (model.meta_graphs_size() > 1) out << "graph " << TagList(graph) << ":\n";
  PrintSignatures(graph, out);
  GRADFLOW_RETURN_IF_ERROR(PrintVariables(flags, graph, out));
  if (graph.asset_file_def_size() > 0) out << "assets:\n";
  for (const AssetFileDef& asset : graph.asset_file_def()) {
    out << "  " << errors::Printable(asset.filename()) << "\n";
  }
  return std::move(*graph.mutable_graph_def());
}

absl::Status PrintReport(const InspectFlags& flags, std::ostream& out) {
  ImportGraphDefOptions options;
  GRADFLOW_ASSIGN_OR_RETURN(options.limits, MakeGraphLimits(flags.graph_limits, flags.limits));
  const bool is_saved_model = MaybeSavedModelDirectory(flags.graph);
  if (!is_saved_model && !flags.tag.empty()) {
    return errors::InvalidArgument("--tag: '", flags.graph, "' is not a SavedModel");
  }
  GRADFLOW_ASSIGN_OR_RETURN(const GraphDef def, is_saved_model
                                                    ? PrintSavedModel(flags, options.limits, out)
                                                    : ReadGraphDef(flags.graph, options.limits));
  PrintOps(def, out);
  Graph graph;
  const absl::Status status = ImportGraphDef(options, def, &graph);
  if (status.ok()) {
    // The signatures list the inputs and outputs of a SavedModel.
    if (!is_saved_model) PrintEnds(graph, out);
    PrintProblemsOfFunctions(graph, options.limits, out);
    if (flags.plan) GRADFLOW_RETURN_IF_ERROR(PrintPlan(graph, flags, out));
  } else {
    if (!is_saved_model) PrintEnds(def, out);
    // This error is part of the report, not an error of the command.
    out << "cannot run:\n";
    constexpr size_t kMaxLine = 4096;
    for (const absl::string_view line : absl::StrSplit(status.message(), '\n')) {
      out << "  " << errors::Printable(line, kMaxLine) << "\n";
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status InspectCommand(const InspectFlags& flags, std::ostream& out) {
  // A command that fails has no partial output.
  std::ostringstream report;
  GRADFLOW_RETURN_IF_ERROR(PrintReport(flags, report));
  out << report.str();
  return absl::OkStatus();
}

}  // namespace gradflow::tools
