#include "tools/view/function_body.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gradflow/core/attributes.h"
#include "gradflow/graph/tensor_id.h"

namespace gradflow::tools {
namespace {

// Returns the number of tensors of an output of a node.
int64_t OutputSize(const NodeDef& node, const OpDef::ArgDef& arg) {
  int64_t size = 1;
  if (!arg.number_attr().empty()) {
    GetNodeAttr(node, arg.number_attr(), &size).IgnoreError();
  } else if (!arg.type_list_attr().empty()) {
    DataTypeVector types;
    GetNodeAttr(node, arg.type_list_attr(), &types).IgnoreError();
    size = static_cast<int64_t>(types.size());
  }
  return size;
}

}  // namespace

FunctionNames::FunctionNames(const FunctionDef& function, FindOpDef find_op)
    : find_op_(std::move(find_op)) {
  int next = 0;
  for (const OpDef::ArgDef& arg : function.signature().input_arg()) {
    places_.emplace(arg.name(), Place{next++, nullptr});
  }
  for (const NodeDef& node : function.node_def()) {
    places_.emplace(node.name(), Place{next++, &node});
  }
}

InputSource FunctionNames::Resolve(absl::string_view input) const {
  const bool is_control = absl::ConsumePrefix(&input, "^");
  const std::vector<absl::string_view> parts = absl::StrSplit(input, ':');
  const auto found = places_.find(parts[0]);
  if (found == places_.end()) return {-1, 0};
  const auto& [index, def] = found->second;
  if (is_control) return {index, -1};
  int output = 0;
  // An input is "node:output:index" or "argument:index". The index may be missing.
  const size_t num_names = def == nullptr ? 1 : 2;
  if (parts.size() == num_names + 1 && !absl::SimpleAtoi(parts.back(), &output)) output = 0;
  const OpDef* const op = def == nullptr || parts.size() < 2 ? nullptr : find_op_(def->op());
  if (op != nullptr) {
    constexpr int64_t kMaxOutput = 1 << 20;
    // The op may be a function of the file, with any number of outputs.
    constexpr int kMaxArgs = 256;
    for (int a = 0; a < std::min(op->output_arg_size(), kMaxArgs); ++a) {
      const OpDef::ArgDef& arg = op->output_arg(a);
      if (absl::string_view(arg.name()) == parts[1]) break;
      const int64_t size = std::clamp<int64_t>(OutputSize(*def, arg), 0, kMaxOutput);
      output = static_cast<int>(std::clamp<int64_t>(output + size, 0, kMaxOutput));
    }
  }
  return {index, std::max(output, 0)};
}

std::vector<std::string> ControlOutputs(const FunctionDef& function) {
  std::vector<std::string> names;
  absl::flat_hash_set<std::string> known;
  for (const std::string& name : function.signature().control_output()) {
    if (known.insert(name).second) names.push_back(name);
  }
  std::set<std::string> others;
  for (const auto& [name, node] : function.control_ret()) {
    if (!known.contains(name)) others.insert(name);
  }
  names.insert(names.end(), others.begin(), others.end());
  return names;
}

GraphDef FunctionGraph(const FunctionDef& function, const FindOpDef& find_op) {
  GraphDef graph;
  const OpDef& signature = function.signature();
  const FunctionNames names(function, find_op);
  absl::flat_hash_set<std::string> taken;
  std::vector<std::string> order;
  for (const OpDef::ArgDef& arg : signature.input_arg()) order.push_back(arg.name());
  for (const NodeDef& node : function.node_def()) order.push_back(node.name());
  taken.insert(order.begin(), order.end());
  int next = 0;
  const auto add = [&](const std::string& wanted, const char* op) {
    std::string name = wanted;
    while (!taken.insert(name).second) name = absl::StrCat(wanted, "_", next++);
    NodeDef* const node = graph.add_node();
    node->set_name(std::move(name));
    node->set_op(op);
    return node;
  };
  // Unknown inputs stay unchanged: they are errors of the graph.
  const auto resolve = [&](const std::string& input) {
    const InputSource source = names.Resolve(input);
    return source.node < 0 ? input : FormatTensorId({order[source.node], source.output});
  };
  for (int i = 0; i < signature.input_arg_size(); ++i) {
    NodeDef* const node = graph.add_node();
    node->set_name(signature.input_arg(i).name());
    node->set_op("Placeholder");
    (*node->mutable_attr())["dtype"].set_type(signature.input_arg(i).type());
    const auto attrs = function.arg_attr().find(i);
    if (attrs == function.arg_attr().end()) continue;
    const auto shapes = attrs->second.attr().find("_output_shapes");
    if (shapes == attrs->second.attr().end()) continue;
    AttrValue shape;
    if (shapes->second.has_shape()) shape = shapes->second;
    if (shapes->second.list().shape_size() == 1) {
      *shape.mutable_shape() = shapes->second.list().shape(0);
    }
    if (shape.has_shape()) (*node->mutable_attr())["shape"] = shape;
  }
  for (const NodeDef& node : function.node_def()) {
    NodeDef* const copy = graph.add_node();
    *copy = node;
    for (std::string& input : *copy->mutable_input()) input = resolve(input);
  }
  for (const OpDef::ArgDef& result : signature.output_arg()) {
    NodeDef* const node = add(result.name(), "Identity");
    const auto source = function.ret().find(result.name());
    node->add_input(source == function.ret().end() ? "" : resolve(source->second));
    (*node->mutable_attr())["T"].set_type(result.type());
  }
  for (const std::string& name : ControlOutputs(function)) {
    NodeDef* const node = add(name, "NoOp");
    const auto source = function.control_ret().find(name);
    if (source != function.control_ret().end()) node->add_input("^" + source->second);
  }
  return graph;
}

}  // namespace gradflow::tools
