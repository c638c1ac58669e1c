// gradflow ops: lists the registered ops, describes one, or lists the ops of a graph.
#include <google/protobuf/text_format.h>

#include <set>
#include <string>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/gradients/gradient_registry.h"
#include "gradflow/graph/import.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "tools/commands.h"
#include "tools/models.h"

namespace gradflow::tools {
namespace {

void PrintDescription(absl::string_view kind, const std::string& name, const std::string& text,
                      std::ostream& out) {
  if (text.empty()) return;
  out << "    " << kind << " " << name << ": "
      << absl::StrJoin(absl::StrSplit(text, '\n'), "\n        ") << "\n";
}

void PrintOp(const OpDef& op, std::ostream& out) {
  out << OpDefSignature(op) << "\n";
  if (!op.summary().empty()) out << "    " << op.summary() << "\n";
  if (!op.description().empty()) {
    out << "    " << absl::StrJoin(absl::StrSplit(op.description(), '\n'), "\n    ") << "\n";
  }
  for (const auto& arg : op.input_arg()) {
    PrintDescription("input", arg.name(), arg.description(), out);
  }
  for (const auto& attr : op.attr()) {
    PrintDescription("attr", attr.name(), attr.description(), out);
  }
  for (const auto& arg : op.output_arg()) {
    PrintDescription("output", arg.name(), arg.description(), out);
  }
  const absl::StatusOr<GradientFunction> gradient = GradientRegistry::Global().Find(op.name());
  if (gradient.ok()) {
    out << "    gradient: " << (*gradient != nullptr ? "yes" : "none; backpropagation ends here")
        << "\n";
  }
}

// Prints the sorted names of the ops of a graph and of its functions, one name per line. A call of
// a function by its name is not an op.
absl::Status PrintOpsOf(const std::string& file, std::ostream& out) {
  GRADFLOW_ASSIGN_OR_RETURN(const GraphDef graph, ReadModelGraph(file, /*tag=*/"", GraphLimits()));
  std::set<std::string> ops;
  for (const NodeDef& node : graph.node()) ops.insert(node.op());
  for (const FunctionDef& function : graph.library().function()) {
    for (const NodeDef& node : function.node_def()) ops.insert(node.op());
  }
  for (const FunctionDef& function : graph.library().function()) {
    ops.erase(function.signature().name());
  }
  for (const std::string& op : ops) out << op << "\n";
  return absl::OkStatus();
}

}  // namespace

absl::Status OpsCommand(const OpsFlags& flags, std::ostream& out) {
  if (!flags.of.empty()) return PrintOpsOf(flags.of, out);
  const Registry& registry = GlobalRegistry();
  std::vector<const OpRegistration*> ops;
  if (flags.name.empty()) {
    ops = registry.Ops();
  } else {
    GRADFLOW_ASSIGN_OR_RETURN(const OpRegistration* op, registry.LookUpOp(flags.name));
    ops.push_back(op);
  }
  if (flags.format == "pbtxt") {
    OpList list;
    for (const OpRegistration* op : ops) *list.add_op() = op->def();
    std::string text;
    if (!google::protobuf::TextFormat::PrintToString(list, &text)) {
      return errors::Internal("the op definitions could not be printed");
    }
    out << text;
    return absl::OkStatus();
  }
  const char* separator = "";
  for (const OpRegistration* op : ops) {
    out << separator;
    PrintOp(op->def(), out);
    separator = "\n";
  }
  return absl::OkStatus();
}

}  // namespace gradflow::tools
