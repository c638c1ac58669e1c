#include "gradflow/graph/tensor_id.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/control_flow.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/node_checks.h"

namespace gradflow {

absl::StatusOr<TensorId> ParseTensorId(absl::string_view text) {
  TensorId id{text, 0};
  if (!text.empty() && text[0] == '^') {
    id = {text.substr(1), -1};
  } else {
    size_t digits = text.size();
    while (digits > 0 && absl::ascii_isdigit(text[digits - 1])) --digits;
    if (digits > 0 && digits < text.size() && text[digits - 1] == ':') {
      id.node = text.substr(0, digits - 1);
      if (!absl::SimpleAtoi(text.substr(digits), &id.index)) {
        return errors::InvalidArgument("the index in ", internal::Quoted(text), " is too large");
      }
    }
  }
  if (id.node.empty()) {
    return errors::InvalidArgument(internal::Quoted(text), " names no node");
  }
  return id;
}

std::string FormatTensorId(const TensorId& id) {
  if (id.index == 0) return std::string(id.node);
  return id.IsControl() ? absl::StrCat("^", id.node) : absl::StrCat(id.node, ":", id.index);
}

std::vector<TensorId> UnusedOutputIds(const Graph& graph) {
  // used[begin[i] + j] is true if a node reads output j of node i.
  std::vector<int> begin(graph.num_nodes() + 1);
  for (int id = 0; id < graph.num_nodes(); ++id) {
    begin[id + 1] = begin[id] + graph.node(id)->num_outputs();
  }
  std::vector<bool> is_used(begin.back());
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = *graph.node(id);
    for (const auto& [source, output] : node.sources().subspan(0, node.num_inputs())) {
      is_used[begin[source->id()] + output] = true;
    }
  }
  std::vector<TensorId> ids;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = *graph.node(id);
    // These outputs are in loops, or in branches that may not be taken.
    const ControlFlowOp kind = ControlFlowOpOf(node);
    if (kind == ControlFlowOp::kSwitch || kind == ControlFlowOp::kEnter ||
        kind == ControlFlowOp::kLoopCond || kind == ControlFlowOp::kNextIteration) {
      continue;
    }
    const int count = kind == ControlFlowOp::kMerge ? 1 : node.num_outputs();
    for (int i = 0; i < count; ++i) {
      if (!is_used[begin[id] + i]) ids.push_back({node.name(), i});
    }
  }
  return ids;
}

std::vector<std::string> UnusedOutputs(const Graph& graph) {
  std::vector<std::string> names;
  for (const TensorId& id : UnusedOutputIds(graph)) names.push_back(FormatTensorId(id));
  return names;
}

}  // namespace gradflow
