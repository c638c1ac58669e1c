#include "tools/edit/edit_graph.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/status.h"
#include "gradflow/core/version.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/graph.h"
#include "gradflow/io/file.h"
#include "tools/json.h"
#include "tools/view/graph_json.h"

namespace gradflow::tools {
namespace {

using ::google::protobuf::Value;
using ::google::protobuf::internal::WireFormatLite;
using Slices = std::vector<std::pair<size_t, size_t>>;

// Returns the places of the nodes of a binary file; nothing if other fields are between them.
std::optional<Slices> FindBinaryNodes(absl::string_view bytes) {
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  Slices slices;
  while (true) {
    const size_t begin = static_cast<size_t>(in.CurrentPosition());
    const uint32_t tag = in.ReadTag();
    if (tag == 0) break;
    if (!WireFormatLite::SkipField(&in, tag)) return std::nullopt;
    if (WireFormatLite::GetTagFieldNumber(tag) != GraphDef::kNodeFieldNumber) continue;
    if (!slices.empty() && slices.back().second != begin) return std::nullopt;
    slices.emplace_back(begin, static_cast<size_t>(in.CurrentPosition()));
  }
  if (static_cast<size_t>(in.CurrentPosition()) != bytes.size()) return std::nullopt;
  return slices;
}

// Finds the fields "node { ... }" of a text that has been parsed.
class TextNodes {
 public:
  explicit TextNodes(absl::string_view text) : text_(text) {}

  // Returns nothing if other fields are between the nodes.
  std::optional<Slices> Find() {
    // Comments that hold unknown fields name nodes by their positions.
    if (absl::StrContains(text_, "\n#? ")) return std::nullopt;
    Slices slices;
    bool is_behind = false;
    while (true) {
      SkipSpace();
      if (at_ >= text_.size()) return slices;
      const size_t begin = at_;
      while (at_ < text_.size() && (absl::ascii_isalnum(text_[at_]) || text_[at_] == '_')) ++at_;
      const absl::string_view name = text_.substr(begin, at_ - begin);
      // Separators of fields, and what is not plain.
      if (name.empty()) {
        if (text_[at_] != ',' && text_[at_] != ';') return std::nullopt;
        ++at_;
        continue;
      }
      SkipSpace();
      if (at_ < text_.size() && text_[at_] == ':') {
        ++at_;
        SkipSpace();
      }
      if (at_ >= text_.size() || (text_[at_] != '{' && text_[at_] != '<')) return std::nullopt;
      if (!SkipMessage()) return std::nullopt;
      if (name != "node") {
        is_behind = !slices.empty();
      } else if (is_behind) {
        return std::nullopt;
      } else {
        slices.emplace_back(begin, at_);
      }
    }
  }

 private:
  void SkipSpace() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (absl::ascii_isspace(text_[at_])) {
        ++at_;
      } else {
        return;
      }
    }
  }
  bool SkipMessage() {
    int depth = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        SkipSpace();
        continue;
      }
      if (c == '"' || c == '\'') {
        for (++at_; at_ < text_.size() && text_[at_] != c; ++at_) {
          if (text_[at_] == '\\') ++at_;
        }
      }
      if (c == '{' || c == '<') ++depth;
      if (c == '}' || c == '>') --depth;
      ++at_;
      if (depth == 0) return true;
    }
    return false;
  }

  const absl::string_view text_;
  size_t at_ = 0;
};

absl::StatusOr<int> BaseIndex(const Value& value, const EditBase& base) {
  const double index = value.kind_case() == Value::kNumberValue ? value.number_value() : -1;
  if (!(index >= 0) || index >= base.def.node_size() || index != std::floor(index)) {
    return errors::InvalidArgument("expected a number from 0 to ", base.def.node_size() - 1,
                                   " of a node of the file");
  }
  return static_cast<int>(index);
}

// Adds a changed or new node.
absl::Status AddChanged(const EditBase& base, const Value& item, const GraphLimits& limits,
                        GraphDef* def) {
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
  NodeDef* const node = def->add_node();
  node->Swap(parsed.mutable_node(0));
  const Value& from = Member(item, "b");
  if (from.kind_case() == Value::KIND_NOT_SET) return absl::OkStatus();
  GRADFLOW_ASSIGN_OR_RETURN(const int index, BaseIndex(from, base));
  const NodeDef& original = base.def.node(index);
  node->GetReflection()->MutableUnknownFields(node)->MergeFrom(
      original.GetReflection()->GetUnknownFields(original));
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

// Returns whether two graphs are the same. Maps have no order.
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
  return base;
}

absl::StatusOr<EditBase> ParseBase(std::string bytes, bool is_text, const GraphLimits& limits) {
  EditBase base;
  GRADFLOW_ASSIGN_OR_RETURN(
      base.def, is_text ? ParseGraphDefText(bytes, limits) : ParseGraphDef(bytes, limits));
  base.is_text = is_text;
  base.bytes = std::move(bytes);
  std::optional<Slices> slices =
      is_text ? TextNodes(base.bytes).Find() : FindBinaryNodes(base.bytes);
  if (slices.has_value() && slices->size() == static_cast<size_t>(base.def.node_size())) {
    base.nodes = *std::move(slices);
  }
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

absl::StatusOr<EditedGraph> MakeEditedGraph(const EditBase& base, const Value& nodes,
                                            const GraphLimits& limits) {
  if (nodes.kind_case() != Value::kListValue) {
    return errors::InvalidArgument("expected \"nodes\", a list");
  }
  if (nodes.list_value().values_size() > limits.max_nodes) {
    return errors::InvalidArgument("the graph has ", nodes.list_value().values_size(),
                                   " nodes, but at most ", limits.max_nodes,
                                   " are allowed (max_nodes)");
  }
  EditedGraph graph;
  *graph.def.mutable_versions() = base.def.versions();
  *graph.def.mutable_library() = base.def.library();
  if (base.def.has_debug_info()) *graph.def.mutable_debug_info() = base.def.debug_info();
  graph.def.GetReflection()
      ->MutableUnknownFields(&graph.def)
      ->MergeFrom(base.def.GetReflection()->GetUnknownFields(base.def));
  if (!base.def.has_library()) graph.def.clear_library();
  if (!base.def.has_versions()) graph.def.clear_versions();
  for (const Value& item : nodes.list_value().values()) {
    if (item.kind_case() == Value::kNumberValue) {
      GRADFLOW_ASSIGN_OR_RETURN(const int index, BaseIndex(item, base));
      *graph.def.add_node() = base.def.node(index);
      graph.origin.push_back(index);
      continue;
    }
    const std::string place = absl::StrCat("node ", graph.def.node_size(), ": ");
    GRADFLOW_RETURN_IF_ERROR(errors::Prefix(place, AddChanged(base, item, limits, &graph.def)));
    graph.origin.push_back(-1);
  }
  return graph;
}

absl::StatusOr<std::string> EditedFile(const EditBase& base, const EditedGraph& graph, bool is_text,
                                       const GraphLimits& limits) {
  const bool is_same_format = base.is_text == is_text && !base.bytes.empty();
  if (is_same_format && (!base.nodes.empty() || base.def.node_size() == 0)) {
    const absl::string_view bytes = base.bytes;
    const size_t begin = base.nodes.empty() ? 0 : base.nodes.front().first;
    const size_t end = base.nodes.empty() ? 0 : base.nodes.back().second;
    std::string content(bytes.substr(0, begin));
    for (size_t i = 0; i < graph.origin.size(); ++i) {
      const int origin = graph.origin[i];
      if (origin >= 0) {
        const auto& [from, to] = base.nodes[origin];
        // With what is between it and the node before: space and comments.
        const size_t space = is_text && origin > 0 ? base.nodes[origin - 1].second : from;
        if (is_text && i > 0 && origin == 0) content += "\n";
        absl::StrAppend(&content, bytes.substr(space, to - space));
      } else {
        GraphDef single;
        *single.add_node() = graph.def.node(static_cast<int>(i));
        if (is_text) {
          if (!content.empty() && content.back() != '\n') content += "\n";
          std::string text = GraphDefToText(single);
          absl::StrAppend(&content, absl::StripTrailingAsciiWhitespace(text));
        } else {
          GRADFLOW_ASSIGN_OR_RETURN(const std::string node, SerializeGraphDef(single));
          content += node;
        }
      }
    }
    absl::StrAppend(&content, bytes.substr(end));
    if (is_text && !content.empty() && content.back() != '\n') content += "\n";
    // A file without a change is not changed.
    if (is_text && absl::StrCat(base.bytes, "\n") == content) content.pop_back();
    const absl::StatusOr<GraphDef> again =
        is_text ? ParseGraphDefText(content, limits) : ParseGraphDef(content, limits);
    if (again.ok() && AreEqual(*again, graph.def)) return content;
  }
  if (is_text) return GraphDefToText(graph.def);
  return SerializeGraphDef(graph.def);
}

std::string EditNodeJson(const NodeDef& node, size_t max_attr_bytes) {
  std::string json = absl::StrCat("{\"n\":", Quoted(node.name()), ",\"op\":", Quoted(node.op()),
                                  ",\"d\":", Quoted(node.device()), ",\"i\":[");
  for (int i = 0; i < node.input_size(); ++i) {
    absl::StrAppend(&json, i == 0 ? "" : ",", Quoted(node.input(i)));
  }
  json += "],\"a\":{";
  std::map<absl::string_view, const AttrValue*> attrs;
  for (const auto& [name, value] : node.attr()) attrs.emplace(name, &value);
  bool is_first = true;
  for (const auto& [name, value] : attrs) {
    absl::StrAppend(&json, is_first ? "" : ",", Quoted(name), ":");
    is_first = false;
    absl::StrAppend(
        &json, value->ByteSizeLong() > max_attr_bytes ? "null" : Quoted(AttrValueText(*value)));
  }
  return absl::StrCat(json, "}}");
}

}  // namespace gradflow::tools
