#include "tensorflow/core/framework/node_def_util.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "gradflow/graph/node.h"
#include "gradflow/proto/op_def.pb.h"
#include "tensorflow/core/framework/op_def_util.h"

namespace tensorflow {
namespace {

// Returns an error unless `attr` is a value of type `type`.
absl::Status CheckType(const AttrValue* attr, absl::string_view name, absl::string_view type) {
  if (attr == nullptr) return errors::NotFound("attribute ", name, " is missing");
  if (absl::Status status = gradflow::AttrValueHasType(*attr, type); !status.ok()) {
    return errors::InvalidArgument("attribute ", name, ": ", status.message());
  }
  return absl::OkStatus();
}

bool IsWord(char c, absl::string_view others) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains(others, c);
}

// Consumes a scope name: components of [A-Za-z0-9.][A-Za-z0-9_.\-/]*, joined by '>'.
bool ConsumeName(absl::string_view* text) {
  size_t end = 0;
  do {
    if (end > 0) ++end;
    if (end >= text->size() || !IsWord((*text)[end], ".")) return false;
    while (end < text->size() && IsWord((*text)[end], "_./-")) ++end;
  } while (end < text->size() && (*text)[end] == '>');
  text->remove_prefix(end);
  return true;
}

bool IsName(absl::string_view text) { return ConsumeName(&text) && text.empty(); }

// "name" or "name:3".
bool IsDataInput(absl::string_view text) {
  if (!ConsumeName(&text)) return false;
  if (text.empty()) return true;
  if (!absl::ConsumePrefix(&text, ":") || text.empty()) return false;
  if (text.size() > 1 && text[0] == '0') return false;
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return absl::ascii_isdigit(c); });
}

bool IsControlInput(absl::string_view text) {
  return absl::ConsumePrefix(&text, "^") && IsName(text);
}

// Calls change(&name) for the name of each node that `node` is colocated with.
template <typename Change>
absl::Status ChangeColocation(NodeDef* node, Change change) {
  const auto attr = node->mutable_attr()->find(kColocationAttrName);
  if (attr == node->mutable_attr()->end()) return absl::OkStatus();
  TF_RETURN_IF_ERROR(CheckType(&attr->second, kColocationAttrName, "list(string)"));
  for (std::string& value : *attr->second.mutable_list()->mutable_s()) {
    absl::string_view name = value;
    if (!absl::ConsumePrefix(&name, kColocationGroupPrefix)) continue;
    std::string changed(name);
    change(&changed);
    value = absl::StrCat(kColocationGroupPrefix, changed);
  }
  return absl::OkStatus();
}

std::string FormatNode(absl::string_view name, const NodeDef& node) {
  const auto& info = node.experimental_debug_info();
  std::vector<std::string> parts;
  for (int i = 0; i < info.original_node_names_size(); ++i) {
    const std::string function =
        i < info.original_func_names_size() && !info.original_func_names(i).empty()
            ? absl::StrCat("{{function_node ", info.original_func_names(i), "}}")
            : "";
    parts.push_back(absl::StrCat(function, "{{node ", info.original_node_names(i), "}}"));
  }
  return parts.empty() ? absl::StrCat("{{node ", name, "}}") : absl::StrJoin(parts, ", ");
}

}  // namespace

// ---- Attributes ----

AttrSlice::AttrSlice() {
  static const auto* const none = new AttrValueMap;
  attrs_ = none;
}

const AttrValue* AttrSlice::Find(absl::string_view name) const {
  const auto it = attrs().find(std::string(name));
  return it == attrs().end() ? nullptr : &it->second;
}

absl::Status AttrSlice::Find(absl::string_view name, const AttrValue** value) const {
  *value = Find(name);
  if (*value != nullptr) return absl::OkStatus();
  absl::Status status = errors::NotFound("No attr named '", name, "' in NodeDef:");
  if (node_ == nullptr) return status;
  // As in TensorFlow, errors about hidden attributes stay short, because such attributes are read
  // often.
  return absl::StartsWith(name, "_") ? status : AttachDef(status, *node_);
}

bool AttrSlice::EqualAttrs(const AttrSlice& other, Scratch*) const {
  return size() == other.size() && std::all_of(begin(), end(), [&](const auto& attr) {
           const AttrValue* const value = other.Find(attr.first);
           return value != nullptr && gradflow::AreAttrValuesEqual(attr.second, *value);
         });
}

const NodeDef& AttrSlice::ToNode(NodeDef* storage) const {
  if (node_ != nullptr) return *node_;
  *storage->mutable_attr() = *attrs_;
  return *storage;
}

std::string AttrSlice::SummarizeNode() const {
  NodeDef storage;
  return node_ != nullptr ? SummarizeNodeDef(*node_)
                          : absl::StrCat("[", SummarizeNodeDef(ToNode(&storage)), "]");
}

std::string AttrSlice::DebugString() const {
  std::vector<std::string> lines;
  for (const auto& [name, value] : *this) {
    lines.push_back(absl::StrCat(name, "=", gradflow::SummarizeAttrValue(value)));
  }
  std::sort(lines.begin(), lines.end());
  return absl::StrJoin(lines, "\n");
}

const std::string& GetNodeAttrString(const AttrSlice& attrs, absl::string_view name) {
  static const auto* const none = new std::string;
  const AttrValue* const value = attrs.Find(name);
  return value != nullptr && value->value_case() == AttrValue::kS ? value->s() : *none;
}

namespace compat_internal {

absl::Status GetMessageAttr(const AttrValue* attr, absl::string_view name, NameAttrList* value) {
  TF_RETURN_IF_ERROR(CheckType(attr, name, "func"));
  *value = attr->func();
  return absl::OkStatus();
}

absl::Status GetMessageAttr(const AttrValue* attr, absl::string_view name,
                            TensorShapeProto* value) {
  TF_RETURN_IF_ERROR(CheckType(attr, name, "shape"));
  *value = attr->shape();
  return absl::OkStatus();
}

absl::Status GetMessageAttr(const AttrValue* attr, absl::string_view name, TensorProto* value) {
  TF_RETURN_IF_ERROR(CheckType(attr, name, "tensor"));
  *value = attr->tensor();
  return absl::OkStatus();
}

absl::Status GetMessageAttr(const AttrValue* attr, absl::string_view name,
                            const NameAttrList** value) {
  TF_RETURN_IF_ERROR(CheckType(attr, name, "func"));
  *value = &attr->func();
  return absl::OkStatus();
}

absl::Status GetMessageAttr(const AttrValue* attr, absl::string_view name,
                            const TensorProto** value) {
  TF_RETURN_IF_ERROR(CheckType(attr, name, "tensor"));
  *value = &attr->tensor();
  return absl::OkStatus();
}

absl::Status GetMessageAttr(const AttrValue* attr, absl::string_view name,
                            std::vector<NameAttrList>* value) {
  TF_RETURN_IF_ERROR(CheckType(attr, name, "list(func)"));
  value->assign(attr->list().func().begin(), attr->list().func().end());
  return absl::OkStatus();
}

absl::Status GetMessageAttr(const AttrValue* attr, absl::string_view name,
                            std::vector<TensorShapeProto>* value) {
  TF_RETURN_IF_ERROR(CheckType(attr, name, "list(shape)"));
  value->assign(attr->list().shape().begin(), attr->list().shape().end());
  return absl::OkStatus();
}

absl::Status GetMessageAttr(const AttrValue* attr, absl::string_view name,
                            std::vector<TensorShape>* value) {
  TF_RETURN_IF_ERROR(CheckType(attr, name, "list(shape)"));
  std::vector<TensorShape> shapes;
  for (const TensorShapeProto& proto : attr->list().shape()) {
    absl::StatusOr<TensorShape> shape = TensorShape::Make(proto);
    if (!shape.ok()) return shape.status();
    shapes.push_back(*std::move(shape));
  }
  *value = std::move(shapes);
  return absl::OkStatus();
}

absl::Status GetMessageAttr(const AttrValue* attr, absl::string_view name,
                            std::vector<const std::string*>* value) {
  TF_RETURN_IF_ERROR(CheckType(attr, name, "list(string)"));
  value->clear();
  for (const std::string& item : attr->list().s()) value->push_back(&item);
  return absl::OkStatus();
}

absl::Status GetMessageAttr(const AttrValue* attr, absl::string_view name,
                            std::vector<const TensorShapeProto*>* value) {
  TF_RETURN_IF_ERROR(CheckType(attr, name, "list(shape)"));
  value->clear();
  for (const TensorShapeProto& item : attr->list().shape()) value->push_back(&item);
  return absl::OkStatus();
}

}  // namespace compat_internal

// ---- Types ----

absl::Status InputTypesForNode(const NodeDef& node, const OpDef& op_def, DataTypeVector* inputs) {
  // Drops the outputs, whose attributes need not be set.
  OpDef inputs_only = op_def;
  inputs_only.clear_output_arg();
  DataTypeVector outputs;
  return gradflow::InOutTypesForNode(node, inputs_only, inputs, &outputs);
}

absl::Status InputTypeForNode(const NodeDef& node, const OpDef& op_def, int input_port,
                              DataType* input_type) {
  DataTypeVector types;
  TF_RETURN_IF_ERROR(InputTypesForNode(node, op_def, &types));
  if (input_port < 0 || input_port >= static_cast<int>(types.size())) {
    return errors::InvalidArgument("Input ", input_port, " not found for node ", node.name());
  }
  *input_type = types[input_port];
  return absl::OkStatus();
}

absl::Status OutputTypesForNode(const AttrSlice& attrs, const OpDef& op_def,
                                DataTypeVector* outputs) {
  OpDef outputs_only = op_def;
  outputs_only.clear_input_arg();
  DataTypeVector inputs;
  // Copies and reads attributes only if an output depends on them.
  const bool depends = std::any_of(
      op_def.output_arg().begin(), op_def.output_arg().end(), [](const OpDef::ArgDef& arg) {
        return !arg.type_attr().empty() || !arg.type_list_attr().empty() ||
               !arg.number_attr().empty();
      });
  NodeDef storage;
  return gradflow::InOutTypesForNode(depends ? attrs.ToNode(&storage) : storage, outputs_only,
                                     &inputs, outputs);
}

absl::Status OutputTypeForNode(const NodeDef& node, const OpDef& op_def, int output_port,
                               DataType* output_type) {
  DataTypeVector types;
  TF_RETURN_IF_ERROR(OutputTypesForNode(node, op_def, &types));
  if (output_port < 0 || output_port >= static_cast<int>(types.size())) {
    return errors::InvalidArgument("Output ", output_port, " not found for node ", node.name());
  }
  *output_type = types[output_port];
  return absl::OkStatus();
}

absl::Status NumOutputsForNode(const NodeDef& node, const OpDef& op_def, int* num_outputs) {
  DataTypeVector types;
  TF_RETURN_IF_ERROR(OutputTypesForNode(node, op_def, &types));
  *num_outputs = static_cast<int>(types.size());
  return absl::OkStatus();
}

int OpPortIdToArgId(const NodeDef& node, const protobuf::RepeatedPtrField<OpDef::ArgDef>& args,
                    int port_id) {
  OpDef one_arg;
  for (int i = 0; i < args.size(); ++i) {
    *one_arg.mutable_input_arg() = {};
    *one_arg.add_input_arg() = args[i];
    DataTypeVector inputs, outputs;
    if (!gradflow::InOutTypesForNode(node, one_arg, &inputs, &outputs).ok()) return -1;
    if (port_id < static_cast<int>(inputs.size())) return port_id < 0 ? -1 : i;
    port_id -= static_cast<int>(inputs.size());
  }
  return -1;
}

absl::Status NameRangesForNode(const AttrSlice& attrs, const OpDef& op_def, NameRangeMap* inputs,
                               NameRangeMap* outputs) {
  NodeDef storage;
  return gradflow::NameRangesForNode(attrs.ToNode(&storage), op_def, inputs, outputs);
}

absl::Status NameRangesForNode(const gradflow::Node& node, const OpDef& op_def,
                               NameRangeMap* inputs, NameRangeMap* outputs) {
  return gradflow::NameRangesForNode(node.def(), op_def, inputs, outputs);
}

// ---- Whole nodes ----

absl::Status ValidateExternalNodeDefSyntax(const NodeDef& node) {
  const auto illegal = [&](absl::string_view what, const std::string& name) {
    return AttachDef(errors::InvalidArgument("Illegal op ", what, "name '", name, "'"), node);
  };
  if (!IsName(node.name())) return illegal("", node.name());
  bool is_control = false;
  for (const std::string& input : node.input()) {
    if (IsControlInput(input)) {
      is_control = true;
    } else if (is_control) {
      return AttachDef(
          errors::InvalidArgument("All control inputs must follow all data inputs, but '", input,
                                  "' is an input after a control input"),
          node);
    } else if (!IsDataInput(input)) {
      return illegal("input ", input);
    }
  }
  return absl::OkStatus();
}

std::string FormatNodeDefForError(const NodeDef& node) { return FormatNode(node.name(), node); }

std::string FormatNodeForError(const gradflow::Node& node) {
  return FormatNodeDefForError(node.def());
}

absl::Status AttachDef(const absl::Status& status, const NodeDef& node,
                       bool allow_multiple_formatted_node) {
  if (status.ok()) return status;
  const bool name_only =
      !allow_multiple_formatted_node && absl::StrContains(status.message(), "{{node ");
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), "\n\t [[",
                                   name_only ? node.name() : FormatNodeDefForError(node), "]]"));
}

absl::Status AttachDef(const absl::Status& status, const gradflow::Node& node,
                       bool allow_multiple_formatted_node) {
  return AttachDef(status, node.def(), allow_multiple_formatted_node);
}

absl::Status AddPrefixAndSuffixToNode(absl::string_view prefix, absl::string_view suffix,
                                      NodeDef* node, bool uniquify_frame_name) {
  node->set_name(absl::StrCat(prefix, node->name(), suffix));
  if (uniquify_frame_name && (node->op() == "Enter" || node->op() == "RefEnter")) {
    std::string frame;
    TF_RETURN_IF_ERROR(GetNodeAttr(*node, "frame_name", &frame));
    AddNodeAttr("frame_name", absl::StrCat(prefix, frame, suffix), node);
  }
  return absl::OkStatus();
}

absl::Status MaybeAddPrefixToColocationConstraints(const std::unordered_set<std::string>& match,
                                                   absl::string_view prefix, NodeDef* node) {
  return ChangeColocation(node, [&](std::string* name) {
    if (match.count(*name) > 0) *name = absl::StrCat(prefix, *name);
  });
}

absl::Status MaybeUpdateColocationConstraintsWithMap(
    const std::map<absl::string_view, absl::string_view>& node_name_map, NodeDef* node) {
  return ChangeColocation(node, [&](std::string* name) {
    if (const auto it = node_name_map.find(*name); it != node_name_map.end()) {
      *name = std::string(it->second);
    }
  });
}

void ChangeToNoOp(NodeDef* node) {
  node->set_op("NoOp");
  node->clear_experimental_type();
  for (std::string& input : *node->mutable_input()) {
    if (absl::StartsWith(input, "^")) continue;
    input = absl::StrCat("^", absl::string_view(input).substr(0, input.rfind(':')));
  }
}

namespace {

// Returns an error unless control inputs follow all other inputs and name no output.
absl::Status CheckControlInputs(const NodeDef& node) {
  bool seen_control = false;
  for (const std::string& input : node.input()) {
    if (absl::StartsWith(input, "^")) {
      seen_control = true;
      if (absl::StrContains(input, ":")) {
        return errors::InvalidArgument("Control input '", input, "' must not have ':' in NodeDef: ",
                                       FormatNodeDefForError(node));
      }
    } else if (seen_control) {
      return errors::InvalidArgument(
          "Non-control input '", input,
          "' after control input in NodeDef: ", FormatNodeDefForError(node));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateNodeDefFunction::operator()(const NodeDef& node, const OpDef& op_def) const {
  if (node.op() != op_def.name()) {
    return errors::InvalidArgument("NodeDef op '", node.op(), "' does not match ",
                                   SummarizeOpDef(op_def),
                                   "; NodeDef: ", FormatNodeDefForError(node));
  }
  TF_RETURN_IF_ERROR(CheckControlInputs(node));
  std::vector<std::string> missing;
  for (const OpDef::AttrDef& attr : op_def.attr()) {
    const AttrValue* const value = AttrSlice(node).Find(attr.name());
    if (value == nullptr) {
      missing.push_back(absl::StrCat("'", attr.name(), "'"));
      continue;
    }
    const absl::Status status = ValidateAttrValue(*value, attr);
    if (!status.ok()) {
      return errors::InvalidArgument(status.message(),
                                     "\n\t; NodeDef: ", FormatNodeDefForError(node), "; ",
                                     SummarizeOpDef(op_def));
    }
  }
  if (!missing.empty()) {
    return errors::InvalidArgument("NodeDef missing attr", missing.size() > 1 ? "s " : " ",
                                   absl::StrJoin(missing, ", "), " from ", SummarizeOpDef(op_def),
                                   "; NodeDef: ", FormatNodeDefForError(node));
  }
  DataTypeVector inputs, outputs;
  TF_RETURN_IF_ERROR(InOutTypesForNode(node, op_def, &inputs, &outputs));
  const auto is_data = [](const std::string& input) { return !absl::StartsWith(input, "^"); };
  const auto num_inputs = std::count_if(node.input().begin(), node.input().end(), is_data);
  if (num_inputs != static_cast<int64>(inputs.size())) {
    return errors::InvalidArgument(
        "NodeDef expected inputs '", DataTypeVectorString(inputs), "' do not match ", num_inputs,
        " inputs specified; ", SummarizeOpDef(op_def), "; NodeDef: ", FormatNodeDefForError(node));
  }
  // Checks additional rules of gradflow, such as attribute names.
  return gradflow::ValidateNodeDef(node, op_def);
}

}  // namespace tensorflow
