#include "gradflow/graph/node_checks.h"

#include <array>
#include <cstdint>
#include <vector>

#include "absl/base/casts.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/tensor_id.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow::internal {
namespace {

constexpr size_t kMaxQuoted = 200;

bool HaveSameBits(const AttrValue& a, const AttrValue& b) {
  if (a.value_case() != b.value_case()) return false;
  switch (a.value_case()) {
    case AttrValue::kType:
      return a.type() == b.type();
    case AttrValue::kI:
      return a.i() == b.i();
    case AttrValue::kF:
      return absl::bit_cast<uint32_t>(a.f()) == absl::bit_cast<uint32_t>(b.f());
    case AttrValue::kB:
      return a.b() == b.b();
    case AttrValue::kS:
      return a.s() == b.s();
    case AttrValue::kFunc:
      // A function contains a map, which may be written in any order.
      return false;
    default:
      return a.SerializePartialAsString() == b.SerializePartialAsString();
  }
}

// The argument that an input of a node belongs to, and the index within the argument, or -1 if it
// is not a list.
struct InputArg {
  const OpDef::ArgDef* arg = nullptr;
  int index = -1;
};
InputArg FindInputArg(const OpDef& op_def, const NodeDef& node, int input) {
  NameRangeMap ranges;
  if (!NameRangesForNode(node, op_def, &ranges, nullptr).ok()) return {};
  for (const auto& arg : op_def.input_arg()) {
    const NameRange& range = ranges[arg.name()];
    if (input < range.first || input >= range.second) continue;
    return {&arg, IsListArg(arg) ? input - range.first : -1};
  }
  return {};
}

}  // namespace

std::string Quoted(absl::string_view text) {
  if (text.size() <= kMaxQuoted) return absl::StrCat("'", absl::CEscape(text), "'");
  return absl::StrCat("'", absl::CEscape(text.substr(0, kMaxQuoted)), "...'");
}

std::string NodeTitle(absl::string_view name, absl::string_view op) {
  return absl::StrCat(Quoted(name), " (", absl::CEscape(op.substr(0, kMaxQuoted)), ")");
}

std::string NodeTitle(const NodeDef& node) { return NodeTitle(node.name(), node.op()); }

std::string NodePrefix(const NodeDef& node) { return absl::StrCat("node ", NodeTitle(node), ": "); }

absl::Status CheckNodeName(absl::string_view name) {
  // A table indexed by character, because this runs for every name of a large graph.
  static const auto& allowed = *new std::array<bool, 256>([] {
    std::array<bool, 256> table{};
    for (int c = 0; c < 128; ++c) {
      table[c] = absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                 absl::string_view("_.-/>").find(static_cast<char>(c)) != absl::string_view::npos;
    }
    return table;
  }());
  if (name.empty()) return errors::InvalidArgument("the name is empty");
  bool valid = absl::ascii_isalnum(name[0]) || name[0] == '.';
  for (const char c : name) valid &= allowed[static_cast<unsigned char>(c)];
  if (valid) return absl::OkStatus();
  return errors::InvalidArgument(
      "the name must begin with a letter, a digit or '.', and continue with these, '_', '-', '/' "
      "and '>'");
}

bool HaveSameAttrs(const NodeDef& a, const NodeDef& b) {
  if (a.attr_size() != b.attr_size()) return false;
  // Maps with one attribute, and most maps with few attributes, have the same order.
  auto same_place = b.attr().begin();
  for (const auto& [name, value] : a.attr()) {
    const auto it = same_place->first == name ? same_place : b.attr().find(name);
    if (it == b.attr().end() || !HaveSameBits(value, it->second)) return false;
    ++same_place;
  }
  return true;
}

bool HasExtraAttrs(const Node& node) { return node.def().attr_size() > node.op_def().attr_size(); }

absl::Status CheckDeprecation(const OpDef& op_def, int producer) {
  if (!op_def.has_deprecation() || producer < op_def.deprecation().version()) {
    return absl::OkStatus();
  }
  return errors::Unimplemented("the op may not be used in graphs of version ", producer,
                               ": it is deprecated since version ", op_def.deprecation().version(),
                               op_def.deprecation().explanation().empty() ? "" : ". ",
                               op_def.deprecation().explanation());
}

absl::Status ResolveInputs(const NodeDef& node,
                           absl::FunctionRef<const Node*(absl::string_view name)> find,
                           Sources* sources) {
  sources->clear();
  for (const std::string& input : node.input()) {
    GRADFLOW_ASSIGN_OR_RETURN(const TensorId id, ParseTensorId(input));
    if (!id.IsControl() && !sources->empty() && sources->back().output < 0) {
      return errors::InvalidArgument("input ", Quoted(input),
                                     " comes after a control input; these must be last");
    }
    const Node* source = find(id.node);
    if (source == nullptr) {
      return errors::InvalidArgument("input ", Quoted(input), " names no node of the graph");
    }
    if (!source->is_resolved()) {
      return errors::Prefix(absl::StrCat("input ", Quoted(input), ": "), source->CheckResolved());
    }
    if (id.index >= source->num_outputs()) {
      return errors::InvalidArgument("input ", Quoted(input), " does not exist: ", Quoted(id.node),
                                     " (", source->type_string(), ") has ", source->num_outputs(),
                                     source->num_outputs() == 1 ? " output" : " outputs");
    }
    sources->push_back({source, id.index});
  }
  return absl::OkStatus();
}

bool IsInputType(DataType found, DataType expected) {
  return found == expected || BaseType(found) == expected;
}

absl::Status WrongInputType(const OpDef& op_def, const NodeDef& node, int input, DataType found,
                            DataType expected) {
  const auto [arg, index] = FindInputArg(op_def, node, input);
  std::string name = arg == nullptr ? absl::StrCat(input) : arg->name();
  if (index >= 0) absl::StrAppend(&name, "[", index, "]");
  std::string attr;
  if (arg != nullptr) attr = arg->type_attr().empty() ? arg->type_list_attr() : arg->type_attr();
  return errors::InvalidArgument("input ", name, " (", Quoted(node.input(input)), ") has type ",
                                 DataTypeString(found), ", expected ", DataTypeString(expected),
                                 attr.empty() ? "" : absl::StrCat(" (attribute ", attr, ")"));
}

absl::Status CheckColocation(const NodeDef& node,
                             absl::FunctionRef<bool(absl::string_view name)> exists) {
  if (FindNodeAttr(node, kColocationAttr) == nullptr) return absl::OkStatus();
  std::vector<std::string> entries;
  GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, kColocationAttr, &entries));
  for (const std::string& entry : entries) {
    absl::string_view name = entry;
    if (!absl::ConsumePrefix(&name, kColocationPrefix)) continue;
    if (name != node.name() && !exists(name)) {
      return errors::InvalidArgument("it is colocated with ", Quoted(name),
                                     ", which is not in the graph");
    }
  }
  return absl::OkStatus();
}

}  // namespace gradflow::internal
