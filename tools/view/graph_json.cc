#include "tools/view/graph_json.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/version.h"
#include "gradflow/graph/function_library.h"
#include "tools/json.h"
#include "tools/view/function_body.h"

namespace gradflow::tools {
namespace {

// The maximum number of bytes of a name or value, and of a documentation.
constexpr size_t kMaxText = 10'240;
constexpr size_t kMaxDoc = 32'768;
// The number of outputs of a node whose types and shapes are listed. A node with few bytes may have
// a million outputs.
constexpr int kMaxOutputs = 64;

// A table of strings. Each string is written once.
class StringTable {
 public:
  int Id(absl::string_view text) {
    std::string key = LimitedText(text, kMaxText);
    const auto [found, is_new] = ids_.emplace(std::move(key), static_cast<int>(texts_.size()));
    if (is_new) texts_.push_back(&found->first);
    return found->second;
  }
  // Returns the table as an array.
  std::string Text() const {
    JsonArrayText texts;
    for (const std::string* text : texts_) texts.Add(*text);
    return texts.Finish();
  }

 private:
  std::unordered_map<std::string, int> ids_;
  std::vector<const std::string*> texts_;
};

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
Json ArgsJson(const Args& args) {
  Json json = Json::array();
  for (const OpDef::ArgDef& arg : args) {
    json.push_back(
        Json::array({LimitedText(arg.name(), kMaxText), LimitedText(ArgType(arg), kMaxText),
                     LimitedText(arg.description(), kMaxDoc), IsListArg(arg) ? 1 : 0}));
  }
  return json;
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
      AddNode(graph_, i, new_nodes, options_.diff == nullptr ? Json::object() : ChangeOf(i));
    }
    if (options_.diff != nullptr) AddRemovedNodes();
    JsonArrayText functions;
    for (const FunctionDef& function : graph_.def.library().function()) {
      const int first = num_nodes_;
      AddFunction(function);
      functions.Add(Json::array(
          {LimitedText(function.signature().name(), kMaxText), first, num_nodes_ - first}));
    }
    JsonObjectText json;
    json.Add("format", 1);
    json.Add("generator", "gradflow " GRADFLOW_VERSION_STRING);
    json.Add("title", LimitedText(options_.title, kMaxText));
    json.Add("diff", options_.diff != nullptr);
    json.Add("notes", graph_.problems);
    json.AddText("ops", ops_.Finish());
    json.AddText("functions", functions.Finish());
    json.AddText("nodes", nodes_.Finish());
    json.AddText("strings", strings_.Text());
    if (!options_.run.empty()) json.AddText("run", options_.run);
    if (!options_.edit.empty()) json.AddText("edit", options_.edit);
    return json.Finish() + "\n";
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
      ops_.AddText(OpJson(op, def == nullptr ? OpDef() : *def, kind));
    }
    return found->second;
  }

  // ---- Nodes: [name, op, [source, output, ...], {rest}] ----

  void WriteNode(absl::string_view name, const std::string& op, const std::vector<int>& data_inputs,
                 Json rest) {
    ++num_nodes_;
    Json node = Json::array({LimitedText(name, kMaxText), OpId(op), data_inputs});
    if (!rest.empty()) node.push_back(std::move(rest));
    nodes_.Add(node);
  }

  // Adds a node. Its last members are the members of `change`. `ids` has the position of each node
  // of the graph in the document.
  void AddNode(const AnalyzedGraph& graph, int index, const std::vector<int>& ids,
               const Json& change) {
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
    Json rest = NodeJson(def, control, unknown);
    const Node* const node = graph.nodes[index];
    if (node != nullptr) AddTypes(*node, &rest);
    const auto problem = graph.node_problems.find(index);
    if (problem != graph.node_problems.end()) rest["e"] = strings_.Id(problem->second);
    rest.update(change);
    WriteNode(def.name(), def.op(), data, std::move(rest));
  }

  // Returns the attributes that differ from their defaults, in the order of their names, the value
  // of a constant, the inputs and the device. Leaves out empty members.
  Json NodeJson(const NodeDef& def, const std::vector<int>& control,
                const std::vector<int>& unknown) {
    std::vector<int> ids;
    Json value;
    for (const auto& [name, attr] : OwnAttrs(def, FindDef(def.op()))) {
      const std::string summary = SummarizeAttrValue(*attr);
      ids.insert(ids.end(), {strings_.Id(name), strings_.Id(summary)});
      if (def.op() == "Const" && name == "value") value = strings_.Id(ValueText(summary));
    }
    Json json = Json::object();
    if (!ids.empty()) json["a"] = ids;
    if (!value.is_null()) json["v"] = value;
    if (!control.empty()) json["c"] = control;
    if (!unknown.empty()) json["u"] = unknown;
    if (!def.device().empty()) json["d"] = strings_.Id(def.device());
    return json;
  }

  // Adds types and shapes of the outputs, and the sizes of arguments that are lists.
  void AddTypes(const Node& node, Json* json) {
    std::vector<int> types;
    for (int i = 0; i < std::min(node.num_outputs(), kMaxOutputs); ++i) {
      types.insert(types.end(), {strings_.Id(DataTypeString(node.output_type(i))),
                                 strings_.Id(ShapeText(node.output_shape(i)))});
    }
    if (!types.empty()) (*json)["t"] = types;
    if (node.num_outputs() > kMaxOutputs) (*json)["no"] = node.num_outputs();
    const OpDef& op = node.op_def();
    NameRangeMap inputs;
    NameRangeMap outputs;
    if (!NameRangesForNode(node.def(), op, &inputs, &outputs).ok()) return;
    const auto add_sizes = [&](const char* key, const auto& args, const NameRangeMap& ranges) {
      if (std::none_of(args.begin(), args.end(), IsListArg)) return;
      std::vector<int> sizes;
      for (const OpDef::ArgDef& arg : args) {
        const auto range = ranges.find(arg.name());
        sizes.push_back(range == ranges.end() ? 0 : range->second.second - range->second.first);
      }
      (*json)[key] = sizes;
    };
    add_sizes("ni", op.input_arg(), inputs);
    add_sizes("mo", op.output_arg(), outputs);
  }

  // ---- Differences: k is 1 for added, 2 for removed, 3 for changed nodes; h has the changes ----

  Json ChangeOf(int node) {
    if (options_.diff->old_of_new[node] < 0) return {{"k", 1}};
    const std::vector<std::string>& changes = options_.diff->changes[node];
    if (changes.empty()) return Json::object();
    std::vector<int> ids;
    for (const std::string& change : changes) ids.push_back(strings_.Id(change));
    return {{"k", 3}, {"h", ids}};
  }

  void AddRemovedNodes() {
    // Places nodes of the old graph at their corresponding nodes, or at the end.
    std::vector<int> ids = options_.diff->new_of_old;
    int next = num_nodes_;
    for (int& id : ids) {
      if (id < 0) id = next++;
    }
    for (size_t i = 0; i < ids.size(); ++i) {
      if (options_.diff->new_of_old[i] < 0) {
        AddNode(*options_.old_graph, static_cast<int>(i), ids, {{"k", 2}});
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
    // The types and shapes in the function, if they do not depend on its attributes.
    NameAttrList called;
    called.set_name(signature.name());
    const FunctionBody* const body =
        graph_.graph->functions().Instantiate(called).value_or(nullptr);
    for (const OpDef::ArgDef& arg : signature.input_arg()) {
      WriteNode(arg.name(), "_Arg", {}, TypeJson(arg));
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
      Json rest = NodeJson(node, control, unknown);
      const Node* const in_body = body == nullptr ? nullptr : body->graph().FindNode(node.name());
      if (in_body != nullptr) AddTypes(*in_body, &rest);
      WriteNode(node.name(), node.op(), data, std::move(rest));
    }
    for (const OpDef::ArgDef& result : signature.output_arg()) {
      const auto value = function.ret().find(result.name());
      std::pair<int, int> source = {-1, 0};
      if (value != function.ret().end()) source = resolve(value->second);
      WriteNode(result.name(), "_Retval", {source.first, std::max(source.second, 0)},
                TypeJson(result));
    }
  }

  // Returns the type of an argument as the attribute T.
  Json TypeJson(const OpDef::ArgDef& arg) {
    const int name = strings_.Id("T");
    return {{"a", {name, strings_.Id(ArgType(arg))}}};
  }

  const AnalyzedGraph& graph_;
  const GraphJsonOptions& options_;
  std::unordered_map<std::string, const OpDef*> functions_;
  std::unordered_map<std::string, int> op_ids_;
  StringTable strings_;
  JsonArrayText ops_;
  JsonArrayText nodes_;
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
  Json attrs = Json::array();
  for (const OpDef::AttrDef& def_attr : def.attr()) {
    Json attr =
        Json::array({LimitedText(def_attr.name(), kMaxText), LimitedText(def_attr.type(), kMaxText),
                     nullptr, LimitedText(def_attr.description(), kMaxDoc)});
    if (def_attr.has_default_value()) {
      attr[2] = LimitedText(SummarizeAttrValue(def_attr.default_value()), kMaxText);
    }
    if (for_editing) {
      attr.push_back(def_attr.has_minimum() ? Json(def_attr.minimum()) : Json());
      Json allowed = Json::array();
      for (const int type : def_attr.allowed_values().list().type()) {
        allowed.push_back(DataTypeString(static_cast<DataType>(type)));
      }
      for (const std::string& text : def_attr.allowed_values().list().s()) {
        allowed.push_back(LimitedText(text, kMaxText));
      }
      attr.push_back(std::move(allowed));
      attr.push_back(def_attr.has_default_value() ? Json(AttrValueText(def_attr.default_value()))
                                                  : Json());
    }
    attrs.push_back(std::move(attr));
  }
  return JsonText({{"n", LimitedText(name, kMaxText)},
                   {"k", static_cast<int>(kind)},
                   {"s", LimitedText(def.summary(), kMaxDoc)},
                   {"d", LimitedText(def.description(), kMaxDoc)},
                   {"i", ArgsJson(def.input_arg())},
                   {"o", ArgsJson(def.output_arg())},
                   {"a", std::move(attrs)},
                   {"f", def.is_stateful() ? 1 : 0}});
}

std::string GraphJson(const AnalyzedGraph& graph, const GraphJsonOptions& options) {
  return GraphWriter(graph, options).Write();
}

}  // namespace gradflow::tools
