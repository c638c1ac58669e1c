#include "tools/edit/edit_graph.h"

#include <google/protobuf/text_format.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/core/version.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/graph.h"
#include "gradflow/io/file.h"
#include "gradflow/saved_model/builder.h"
#include "gradflow/saved_model/reader.h"
#include "tools/edit/edit_file.h"
#include "tools/json.h"
#include "tools/models.h"
#include "tools/view/graph_json.h"

namespace gradflow::tools {
namespace {

using ::google::protobuf::Value;

// Returns the number that the item is, or the number in its member.
absl::StatusOr<int> BaseIndex(const Value& value, int size, const char* what) {
  const double index = value.kind_case() == Value::kNumberValue ? value.number_value() : -1;
  if (!(index >= 0) || index >= size || index != std::floor(index)) {
    return errors::InvalidArgument("expected a number from 0 to ", size - 1, " of a ", what,
                                   " of the file");
  }
  return static_cast<int>(index);
}

// The server does not send longer text of the other fields of a node.
constexpr size_t kMaxOtherBytes = 1024;

using Nodes = google::protobuf::RepeatedPtrField<NodeDef>;

template <typename Message>
void MergeUnknownFields(const Message& from, Message* to) {
  to->GetReflection()->MutableUnknownFields(to)->MergeFrom(
      from.GetReflection()->GetUnknownFields(from));
}

// Adds a changed or new node.
absl::Status AddChanged(const Nodes& base, const Value& item, const GraphLimits& limits,
                        Nodes* nodes) {
  const Value& text = Member(item, "t");
  if (text.kind_case() != Value::kStringValue) {
    return errors::InvalidArgument("expected a number, or an object with the text \"t\"");
  }
  GRADFLOW_ASSIGN_OR_RETURN(
      GraphDef parsed,
      ParseGraphDefText(absl::StrCat("node {", text.string_value(), "\n}"), limits));
  if (parsed.node_size() != 1 || parsed.has_library() || parsed.has_versions()) {
    return errors::InvalidArgument("expected the text of one node");
  }
  NodeDef* const node = nodes->Add();
  node->Swap(parsed.mutable_node(0));
  const Value& from = Member(item, "b");
  if (from.kind_case() == Value::KIND_NOT_SET) return absl::OkStatus();
  GRADFLOW_ASSIGN_OR_RETURN(const int index, BaseIndex(from, base.size(), "node"));
  const NodeDef& original = base[index];
  MergeUnknownFields(original, node);
  if (original.has_experimental_debug_info()) {
    *node->mutable_experimental_debug_info() = original.experimental_debug_info();
  }
  for (const Value& name : Member(item, "k").list_value().values()) {
    const auto attr = original.attr().find(name.string_value());
    if (attr == original.attr().end()) {
      return errors::InvalidArgument("node '", original.name(), "' of the file has no attribute '",
                                     name.string_value(), "'");
    }
    (*node->mutable_attr())[attr->first] = attr->second;
  }
  return absl::OkStatus();
}

// Makes nodes from the items of a list. Stores, for each node, the same node of the base, or -1.
absl::Status MakeNodes(const Nodes& base, const Value& items, const GraphLimits& limits,
                       Nodes* nodes, std::vector<int>* origin) {
  if (items.kind_case() != Value::kListValue) {
    return errors::InvalidArgument("expected \"nodes\", a list");
  }
  if (items.list_value().values_size() > limits.max_nodes) {
    return errors::InvalidArgument("the graph has ", items.list_value().values_size(),
                                   " nodes, but at most ", limits.max_nodes,
                                   " are allowed (max_nodes)");
  }
  for (const Value& item : items.list_value().values()) {
    if (item.kind_case() == Value::kNumberValue) {
      GRADFLOW_ASSIGN_OR_RETURN(const int index, BaseIndex(item, base.size(), "node"));
      *nodes->Add() = base[index];
      origin->push_back(index);
      continue;
    }
    const std::string place = absl::StrCat("node ", nodes->size(), ": ");
    GRADFLOW_RETURN_IF_ERROR(errors::Prefix(place, AddChanged(base, item, limits, nodes)));
    origin->push_back(-1);
  }
  return absl::OkStatus();
}

// Merges the unknown fields of messages with the same name, such as arguments.
template <typename List>
void MergeUnknownFieldsByName(const List& from, List* to) {
  std::map<absl::string_view, const typename List::value_type*> by_name;
  for (const auto& message : from) by_name.emplace(message.name(), &message);
  for (auto& message : *to) {
    const auto found = by_name.find(message.name());
    if (found != by_name.end()) MergeUnknownFields(*found->second, &message);
  }
}

// Makes a function with other nodes, and optionally with other fields.
absl::Status MakeFunction(const FunctionDef& base, const Value& item, const GraphLimits& limits,
                          FunctionDef* function, std::vector<int>* origin) {
  const Value& header = Member(item, "h");
  if (header.kind_case() == Value::kStringValue) {
    GRADFLOW_ASSIGN_OR_RETURN(
        GraphDef parsed,
        ParseGraphDefText(absl::StrCat("library { function {", header.string_value(), "\n} }"),
                          limits));
    const FunctionDefLibrary& library = parsed.library();
    if (library.function_size() != 1 || library.function(0).node_def_size() > 0 ||
        library.gradient_size() > 0 || library.registered_gradients_size() > 0 ||
        parsed.node_size() > 0 || parsed.has_versions()) {
      return errors::InvalidArgument("expected the text of one function without nodes");
    }
    function->Swap(parsed.mutable_library()->mutable_function(0));
    MergeUnknownFields(base, function);
    const OpDef& from = base.signature();
    OpDef* const to = function->mutable_signature();
    MergeUnknownFields(from, to);
    MergeUnknownFieldsByName(from.input_arg(), to->mutable_input_arg());
    MergeUnknownFieldsByName(from.output_arg(), to->mutable_output_arg());
    MergeUnknownFieldsByName(from.attr(), to->mutable_attr());
  } else {
    *function = base;
    function->clear_node_def();
  }
  return MakeNodes(base.node_def(), Member(item, "nodes"), limits, function->mutable_node_def(),
                   origin);
}

// Adds the member "m" if a node has fields that no other member shows. The member is the text of
// these fields, or null if a field has no text or the text is long.
void AddOtherFields(const NodeDef& node, JsonObjectText* json) {
  const bool has_unknown = !node.GetReflection()->GetUnknownFields(node).empty();
  if (!has_unknown && !node.has_experimental_debug_info()) return;
  NodeDef other;
  *other.mutable_experimental_debug_info() = node.experimental_debug_info();
  const size_t size = other.ByteSizeLong();
  other.DiscardUnknownFields();
  std::string text;
  const bool is_whole = !has_unknown && other.ByteSizeLong() == size && size <= kMaxOtherBytes &&
                        google::protobuf::TextFormat::PrintToString(other, &text);
  json->Add("m", is_whole ? Json(text) : Json());
}

// Returns true if two graphs are the same. The order in maps does not matter.
bool AreEqual(const GraphDef& a, const GraphDef& b) {
  const absl::StatusOr<std::string> of_a = SerializeGraphDef(a);
  const absl::StatusOr<std::string> of_b = SerializeGraphDef(b);
  return of_a.ok() && of_b.ok() && *of_a == *of_b;
}

}  // namespace

const Value& Member(const Value& value, const char* name) {
  static const Value* const nothing = new Value();
  if (value.kind_case() != Value::kStructValue) return *nothing;
  const auto found = value.struct_value().fields().find(name);
  return found == value.struct_value().fields().end() ? *nothing : found->second;
}

EditBase NewBase() {
  EditBase base;
  // The versions of a new graph.
  const Graph empty;
  ExportGraphDef(empty, {}, &base.def).IgnoreError();
  base.rest = base.def;
  return base;
}

absl::StatusOr<EditBase> ParseBase(std::string bytes, bool is_text, const GraphLimits& limits) {
  EditBase base;
  GRADFLOW_ASSIGN_OR_RETURN(
      base.def, is_text ? ParseGraphDefText(bytes, limits) : ParseGraphDef(bytes, limits));
  base.rest = base.def;
  base.rest.clear_node();
  base.is_text = is_text;
  base.bytes = std::move(bytes);
  return base;
}

absl::StatusOr<EditBase> ParseModelBase(const std::string& folder, const std::string& tag,
                                        std::string bytes, bool is_text,
                                        const GraphLimits& limits) {
  EditBase base;
  GRADFLOW_ASSIGN_OR_RETURN(base.model, ParseSavedModel(bytes, is_text, limits));
  GRADFLOW_ASSIGN_OR_RETURN(const auto tags, ChooseTags(*base.model, tag));
  GRADFLOW_ASSIGN_OR_RETURN(base.meta_graph, FindMetaGraph(folder, tags, *base.model));
  MetaGraphDef& graph = *base.model->mutable_meta_graphs(base.meta_graph);
  base.def = std::move(*graph.mutable_graph_def());
  graph.clear_graph_def();
  base.rest = base.def;
  base.rest.clear_node();
  base.is_text = is_text;
  base.bytes = std::move(bytes);
  return base;
}

absl::StatusOr<std::string> ReadEditedFile(const std::string& path, const GraphLimits& limits) {
  std::string bytes;
  const absl::Status status = [&]() -> absl::Status {
    size_t size = 0;
    GRADFLOW_ASSIGN_OR_RETURN(const internal::FileDescriptor file, internal::OpenFile(path, &size));
    if (size > static_cast<uint64_t>(std::max<int64_t>(limits.max_file_bytes, 0))) {
      return errors::InvalidArgument("the file has ", size, " bytes, but at most ",
                                     limits.max_file_bytes, " are allowed (max_file_bytes)");
    }
    bytes.resize(size);
    return internal::ReadAt(file.get(), 0, bytes.data(), size);
  }();
  if (!status.ok()) return errors::Prefix(absl::StrCat("'", path, "': "), status);
  return bytes;
}

absl::StatusOr<EditedGraph> MakeEditedGraph(const EditBase& base, const Value& request,
                                            const GraphLimits& limits) {
  EditedGraph graph;
  graph.def = base.rest;
  GRADFLOW_RETURN_IF_ERROR(MakeNodes(base.def.node(), Member(request, "nodes"), limits,
                                     graph.def.mutable_node(), &graph.origin));
  const Value& functions = Member(request, "functions");
  const int num_functions = base.def.library().function_size();
  if (functions.kind_case() != Value::kListValue) {
    for (int f = 0; f < num_functions; ++f) graph.functions.push_back({f, true, {}});
    return graph;
  }
  if (functions.list_value().values_size() > limits.max_functions) {
    return errors::InvalidArgument("the graph has ", functions.list_value().values_size(),
                                   " functions, but at most ", limits.max_functions,
                                   " are allowed (max_functions)");
  }
  if (graph.def.has_library()) graph.def.mutable_library()->clear_function();
  for (const Value& item : functions.list_value().values()) {
    const bool is_untouched = item.kind_case() == Value::kNumberValue;
    const bool is_new = item.kind_case() == Value::kStructValue &&
                        Member(item, "f").kind_case() == Value::KIND_NOT_SET;
    int index = -1;
    if (!is_new) {
      GRADFLOW_ASSIGN_OR_RETURN(
          index, BaseIndex(is_untouched ? item : Member(item, "f"), num_functions, "function"));
    } else if (Member(item, "h").kind_case() != Value::kStringValue) {
      return errors::InvalidArgument("expected \"h\", the text of a new function");
    }
    const FunctionDef& original =
        is_new ? FunctionDef::default_instance() : base.def.library().function(index);
    FunctionDef* const function = graph.def.mutable_library()->add_function();
    graph.functions.push_back({index, is_untouched, {}});
    if (is_untouched) {
      *function = original;
      continue;
    }
    const std::string place =
        is_new ? absl::StrCat("new function ", graph.functions.size() - 1, ": ")
               : absl::StrCat("function '", errors::Printable(original.signature().name(), 200),
                              "': ");
    GRADFLOW_RETURN_IF_ERROR(errors::Prefix(
        place, MakeFunction(original, item, limits, function, &graph.functions.back().origin)));
  }
  return graph;
}

absl::StatusOr<std::string> EditedFile(const EditBase& base, const EditedGraph& graph, bool is_text,
                                       const GraphLimits& limits) {
  if (base.is_text == is_text && !base.bytes.empty() && !base.model.has_value()) {
    std::optional<std::string> content = FileInPlace(base, graph);
    if (content.has_value()) {
      const absl::StatusOr<GraphDef> again =
          is_text ? ParseGraphDefText(*content, limits) : ParseGraphDef(*content, limits);
      if (again.ok() && AreEqual(*again, graph.def)) return *std::move(content);
    }
  }
  if (is_text) return GraphDefToText(graph.def);
  return SerializeGraphDef(graph.def);
}

SavedModel EditedModel(const EditBase& base, const GraphDef& graph) {
  SavedModel model = *base.model;
  *model.mutable_meta_graphs(base.meta_graph)->mutable_graph_def() = graph;
  return model;
}

absl::StatusOr<std::string> EditedModelFile(const EditBase& base, const GraphDef& graph) {
  const SavedModel model = EditedModel(base, graph);
  if (base.is_text) {
    std::string text;
    google::protobuf::TextFormat::PrintToString(model, &text);
    return text;
  }
  return SerializeSavedModel(model);
}

std::string EditNodeJson(const NodeDef& node, size_t max_attr_bytes) {
  std::map<absl::string_view, const AttrValue*> attrs;
  for (const auto& [name, value] : node.attr()) attrs.emplace(name, &value);
  // A Json value would take quadratic time for a malicious node with many attributes.
  JsonObjectText attr_texts;
  for (const auto& [name, value] : attrs) {
    attr_texts.Add(name,
                   value->ByteSizeLong() > max_attr_bytes ? Json() : Json(AttrValueText(*value)));
  }
  JsonObjectText json;
  json.Add("n", node.name());
  json.Add("op", node.op());
  json.Add("d", node.device());
  json.Add("i", node.input());
  json.AddText("a", attr_texts.Finish());
  AddOtherFields(node, &json);
  return json.Finish();
}

std::string EditFunctionJson(const FunctionDef& function, size_t max_attr_bytes) {
  FunctionDef header = function;
  header.clear_node_def();
  // The page does not receive fields without a name. MakeEditedGraph() keeps them.
  header.DiscardUnknownFields();
  std::string text;
  google::protobuf::TextFormat::PrintToString(header, &text);
  JsonArrayText nodes;
  for (const NodeDef& node : function.node_def()) nodes.AddText(EditNodeJson(node, max_attr_bytes));
  JsonObjectText json;
  json.Add("h", text);
  json.AddText("nodes", nodes.Finish());
  return json.Finish();
}

}  // namespace gradflow::tools
