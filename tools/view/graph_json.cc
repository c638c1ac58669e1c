#include "tools/view/graph_json.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/version.h"
#include "tools/json.h"
#include "tools/view/function_body.h"

namespace gradflow::tools {
namespace {

// Bytes of a name or value, and of a documentation.
constexpr size_t kMaxText = 10'240;
constexpr size_t kMaxDoc = 32'768;
// Outputs of a node whose types and shapes are listed: a node of few bytes may have a million.
constexpr int kMaxOutputs = 64;

// A table of strings, each of which is written once.
class StringTable {
 public:
  int Id(absl::string_view text) {
    std::string key = ValidUtf8(text, kMaxText);
    const auto [found, is_new] = ids_.emplace(std::move(key), static_cast<int>(texts_.size()));
    if (is_new) texts_.push_back(&found->first);
    return found->second;
  }
  std::string Json() const {
    return absl::StrCat(
        "[",
        absl::StrJoin(texts_, ",",
                      [](std::string* out, const auto* text) { AppendQuoted(*text, out); }),
        "]");
  }

 private:
  std::unordered_map<std::string, int> ids_;
  std::vector<const std::string*> texts_;
};

// An array of numbers.
std::string Numbers(const std::vector<int>& numbers) {
  return absl::StrCat("[", absl::StrJoin(numbers, ","), "]");
}

// Returns the type of an argument as in the signature of an op: "T", "N * float".
std::string ArgType(const OpDef::ArgDef& arg) {
  std::string type;
  if (!arg.type_list_attr().empty()) {
    type = arg.type_list_attr();
  } else {
    type = arg.type_attr().empty() ? DataTypeString(arg.type()) : arg.type_attr();
  }
  if (!arg.number_attr().empty()) type = absl::StrCat(arg.number_attr(), " * ", type);
  return arg.is_ref() ? absl::StrCat("Ref(", type, ")") : type;
}

template <typename Args>
std::string ArgsJson(const Args& args) {
  std::string json = "[";
  for (const OpDef::ArgDef& arg : args) {
    if (json.size() > 1) json += ",";
    absl::StrAppend(&json, "[", Quoted(ValidUtf8(arg.name(), kMaxText)), ",",
                    Quoted(ValidUtf8(ArgType(arg), kMaxText)), ",",
                    Quoted(ValidUtf8(arg.description(), kMaxDoc)), ",", IsListArg(arg) ? 1 : 0,
                    "]");
  }
  return json + "]";
}

// Returns the first values of a constant as text: "Tensor<... values: 1 2...>" -> "1 2...".
std::string ValueText(const std::string& summary) {
  constexpr char kValues[] = "values: ";
  const size_t begin = summary.find(kValues);
  if (begin == std::string::npos) return "";
  absl::string_view values = absl::string_view(summary).substr(begin + sizeof(kValues) - 1);
  absl::ConsumeSuffix(&values, ">");
  return std::string(values);
}

class GraphWriter {
 public:
  GraphWriter(const AnalyzedGraph& graph, const GraphJsonOptions& options)
      : graph_(graph), options_(options) {
    for (const FunctionDef& function : graph.def.library().function()) {
      functions_.emplace(function.signature().name(), &function.signature());
    }
  }

  std::string Write() {
    std::vector<int> new_nodes(graph_.def.node_size());
    for (size_t i = 0; i < new_nodes.size(); ++i) new_nodes[i] = static_cast<int>(i);
    for (int i = 0; i < graph_.def.node_size(); ++i) {
      AddNode(graph_, i, new_nodes, options_.diff == nullptr ? "" : ChangeOf(i));
    }
    if (options_.diff != nullptr) AddRemovedNodes();
    std::string functions = "[";
    for (const FunctionDef& function : graph_.def.library().function()) {
      if (functions.size() > 1) functions += ",";
      const int first = num_nodes_;
      AddFunction(function);
      absl::StrAppend(&functions, "[", Quoted(ValidUtf8(function.signature().name(), kMaxText)),
                      ",", first, ",", num_nodes_ - first, "]");
    }
    functions += "]";
    std::string notes = "[";
    for (const std::string& line : graph_.problems) {
      if (notes.size() > 1) notes += ",";
      AppendQuoted(line, &notes);
    }
    notes += "]";
    const bool is_diff = options_.diff != nullptr;
    return absl::StrCat(
        "{\"format\":1,\"generator\":\"gradflow " GRADFLOW_VERSION_STRING "\",\"title\":",
        Quoted(ValidUtf8(options_.title, kMaxText)), ",\"diff\":", is_diff ? "true" : "false",
        ",\"notes\":", notes, ",\"ops\":[", ops_json_, "],\n\"functions\":", functions,
        ",\n\"nodes\":[", nodes_json_, "],\n\"strings\":", strings_.Json(),
        options_.run.empty() ? "" : ",\n\"run\":", options_.run,
        options_.edit.empty() ? "" : ",\n\"edit\":", options_.edit, "}\n");
  }

 private:
  // ---- Ops ----

  const OpDef* FindDef(const std::string& op) const {
    const OpRegistration* const registration = GlobalRegistry().FindOp(op);
    if (registration != nullptr) return &registration->def();
    const auto function = functions_.find(op);
    return function == functions_.end() ? nullptr : function->second;
  }

  int OpId(const std::string& op) {
    const auto [found, is_new] = op_ids_.emplace(op, static_cast<int>(op_ids_.size()));
    if (is_new) {
      const OpDef* const def = FindDef(op);
      OpKind kind = OpKind::kUnknown;
      if (def != nullptr) kind = OpKind::kFunction;
      if (GlobalRegistry().FindOp(op) != nullptr) kind = OpKind::kRegistered;
      if (!ops_json_.empty()) ops_json_ += ",\n";
      ops_json_ += OpJson(op, def == nullptr ? OpDef() : *def, kind);
    }
    return found->second;
  }

  // ---- Nodes: [name, op, [source, output, ...], {rest}] ----

  void BeginNode(absl::string_view name, const std::string& op,
                 const std::vector<int>& data_inputs) {
    if (num_nodes_++ > 0) nodes_json_ += ",\n";
    const int id = OpId(op);
    nodes_json_ += "[";
    AppendQuoted(ValidUtf8(name, kMaxText), &nodes_json_);
    absl::StrAppend(&nodes_json_, ",", id, ",", Numbers(data_inputs));
  }
  // `rest` has the members that are not empty, each with a comma before it.
  void EndNode(absl::string_view rest) {
    if (!rest.empty()) absl::StrAppend(&nodes_json_, ",{", rest.substr(1), "}");
    nodes_json_ += "]";
  }

  // Adds a node. `ids` are the positions of the nodes of its graph among all.
  void AddNode(const AnalyzedGraph& graph, int index, const std::vector<int>& ids,
               absl::string_view change) {
    const NodeDef& def = graph.def.node(index);
    std::vector<int> data;
    std::vector<int> control;
    std::vector<int> unknown;
    for (size_t k = 0; k < graph.sources[index].size(); ++k) {
      const AnalyzedGraph::Source& source = graph.sources[index][k];
      const int id = source.node < 0 ? -1 : ids[source.node];
      if (source.node < 0) unknown.push_back(strings_.Id(def.input(static_cast<int>(k))));
      if (source.output >= 0) {
        data.insert(data.end(), {id, source.output});
      } else {
        control.push_back(id);
      }
    }
    BeginNode(def.name(), def.op(), data);
    std::string rest = AttrsJson(def);
    if (!control.empty()) absl::StrAppend(&rest, ",\"c\":", Numbers(control));
    if (!unknown.empty()) absl::StrAppend(&rest, ",\"u\":", Numbers(unknown));
    if (!def.device().empty()) absl::StrAppend(&rest, ",\"d\":", strings_.Id(def.device()));
    const Node* const node = graph.nodes[index];
    if (node != nullptr) rest += TypesJson(*node);
    const auto problem = graph.node_problems.find(index);
    if (problem != graph.node_problems.end()) {
      absl::StrAppend(&rest, ",\"e\":", strings_.Id(problem->second));
    }
    EndNode(absl::StrCat(rest, change));
  }

  // Returns the attributes that differ from their defaults, in the order of their names, and the
  // value of a constant.
  std::string AttrsJson(const NodeDef& def) {
    std::vector<int> ids;
    std::string value;
    for (const auto& [name, attr] : OwnAttrs(def, FindDef(def.op()))) {
      const std::string summary = SummarizeAttrValue(*attr);
      ids.insert(ids.end(), {strings_.Id(name), strings_.Id(summary)});
      if (def.op() == "Const" && name == "value") {
        value = absl::StrCat(",\"v\":", strings_.Id(ValueText(summary)));
      }
    }
    return ids.empty() ? value : absl::StrCat(",\"a\":", Numbers(ids), value);
  }

  // Returns types and shapes of the outputs, and the sizes of arguments that are lists.
  std::string TypesJson(const Node& node) {
    std::vector<int> types;
    for (int i = 0; i < std::min(node.num_outputs(), kMaxOutputs); ++i) {
      types.insert(types.end(), {strings_.Id(DataTypeString(node.output_type(i))),
                                 strings_.Id(ShapeText(node.output_shape(i)))});
    }
    std::string json;
    if (!types.empty()) absl::StrAppend(&json, ",\"t\":", Numbers(types));
    if (node.num_outputs() > kMaxOutputs) absl::StrAppend(&json, ",\"no\":", node.num_outputs());
    const OpDef& op = node.op_def();
    NameRangeMap inputs;
    NameRangeMap outputs;
    if (!NameRangesForNode(node.def(), op, &inputs, &outputs).ok()) return json;
    const auto append_sizes = [&](absl::string_view key, const auto& args,
                                  const NameRangeMap& ranges) {
      if (std::none_of(args.begin(), args.end(), IsListArg)) return;
      std::vector<int> sizes;
      for (const OpDef::ArgDef& arg : args) {
        const auto range = ranges.find(arg.name());
        sizes.push_back(range == ranges.end() ? 0 : range->second.second - range->second.first);
      }
      absl::StrAppend(&json, ",\"", key, "\":", Numbers(sizes));
    };
    append_sizes("ni", op.input_arg(), inputs);
    append_sizes("mo", op.output_arg(), outputs);
    return json;
  }

  // ---- Differences: k is 1 for added, 2 for removed, 3 for changed nodes; h has the changes ----

  std::string ChangeOf(int node) {
    if (options_.diff->old_of_new[node] < 0) return ",\"k\":1";
    const std::vector<std::string>& changes = options_.diff->changes[node];
    if (changes.empty()) return "";
    std::vector<int> ids;
    for (const std::string& change : changes) ids.push_back(strings_.Id(change));
    return absl::StrCat(",\"k\":3,\"h\":", Numbers(ids));
  }

  void AddRemovedNodes() {
    // Where nodes of the old graph are: at the node that they correspond to, or at the end.
    std::vector<int> ids = options_.diff->new_of_old;
    int next = num_nodes_;
    for (int& id : ids) {
      if (id < 0) id = next++;
    }
    for (size_t i = 0; i < ids.size(); ++i) {
      if (options_.diff->new_of_old[i] < 0) {
        AddNode(*options_.old_graph, static_cast<int>(i), ids, ",\"k\":2");
      }
    }
  }

  // ---- Functions: their arguments, body and results as nodes ----

  void AddFunction(const FunctionDef& function) {
    const OpDef& signature = function.signature();
    const FunctionNames names(function, [this](const std::string& op) { return FindDef(op); });
    const int first = num_nodes_;
    const auto resolve = [&](const std::string& input) {
      const InputSource source = names.Resolve(input);
      return std::pair(source.node < 0 ? -1 : first + source.node, source.output);
    };
    for (const OpDef::ArgDef& arg : signature.input_arg()) {
      BeginNode(arg.name(), "_Arg", {});
      EndNode(absl::StrCat(",\"a\":[", strings_.Id("T"), ",", strings_.Id(ArgType(arg)), "]"));
    }
    for (const NodeDef& node : function.node_def()) {
      std::vector<int> data;
      std::vector<int> control;
      std::vector<int> unknown;
      for (const std::string& input : node.input()) {
        const auto [source, output] = resolve(input);
        if (source < 0) unknown.push_back(strings_.Id(input));
        if (output >= 0) {
          data.insert(data.end(), {source, output});
        } else {
          control.push_back(source);
        }
      }
      BeginNode(node.name(), node.op(), data);
      std::string rest = AttrsJson(node);
      if (!control.empty()) absl::StrAppend(&rest, ",\"c\":", Numbers(control));
      if (!unknown.empty()) absl::StrAppend(&rest, ",\"u\":", Numbers(unknown));
      if (!node.device().empty()) absl::StrAppend(&rest, ",\"d\":", strings_.Id(node.device()));
      EndNode(rest);
    }
    for (const OpDef::ArgDef& result : signature.output_arg()) {
      const auto value = function.ret().find(result.name());
      std::pair<int, int> source = {-1, 0};
      if (value != function.ret().end()) source = resolve(value->second);
      BeginNode(result.name(), "_Retval", {source.first, std::max(source.second, 0)});
      EndNode(absl::StrCat(",\"a\":[", strings_.Id("T"), ",", strings_.Id(ArgType(result)), "]"));
    }
  }

  const AnalyzedGraph& graph_;
  const GraphJsonOptions& options_;
  std::unordered_map<std::string, const OpDef*> functions_;
  std::unordered_map<std::string, int> op_ids_;
  StringTable strings_;
  std::string ops_json_;
  std::string nodes_json_;
  int num_nodes_ = 0;
};

}  // namespace

std::string AttrValueText(const AttrValue& value) {
  std::string text;
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  if (!printer.PrintToString(value, &text)) return "";
  return std::string(absl::StripAsciiWhitespace(text));
}

std::string OpJson(const std::string& name, const OpDef& def, OpKind kind, bool for_editing) {
  std::string attrs = "[";
  for (const OpDef::AttrDef& attr : def.attr()) {
    if (attrs.size() > 1) attrs += ",";
    absl::StrAppend(&attrs, "[", Quoted(ValidUtf8(attr.name(), kMaxText)), ",",
                    Quoted(ValidUtf8(attr.type(), kMaxText)), ",",
                    attr.has_default_value()
                        ? Quoted(ValidUtf8(SummarizeAttrValue(attr.default_value()), kMaxText))
                        : "null",
                    ",", Quoted(ValidUtf8(attr.description(), kMaxDoc)));
    if (for_editing) {
      std::vector<std::string> allowed;
      for (const int type : attr.allowed_values().list().type()) {
        allowed.push_back(Quoted(DataTypeString(static_cast<DataType>(type))));
      }
      for (const std::string& text : attr.allowed_values().list().s()) {
        allowed.push_back(Quoted(ValidUtf8(text, kMaxText)));
      }
      absl::StrAppend(
          &attrs, ",", attr.has_minimum() ? absl::StrCat(attr.minimum()) : "null", ",[",
          absl::StrJoin(allowed, ","), "],",
          attr.has_default_value() ? Quoted(AttrValueText(attr.default_value())) : "null");
    }
    attrs += "]";
  }
  return absl::StrCat("{\"n\":", Quoted(ValidUtf8(name, kMaxText)),
                      ",\"k\":", static_cast<int>(kind),
                      ",\"s\":", Quoted(ValidUtf8(def.summary(), kMaxDoc)),
                      ",\"d\":", Quoted(ValidUtf8(def.description(), kMaxDoc)),
                      ",\"i\":", ArgsJson(def.input_arg()), ",\"o\":", ArgsJson(def.output_arg()),
                      ",\"a\":", attrs, "],\"f\":", def.is_stateful() ? 1 : 0, "}");
}

std::string GraphJson(const AnalyzedGraph& graph, const GraphJsonOptions& options) {
  return GraphWriter(graph, options).Write();
}

}  // namespace gradflow::tools
