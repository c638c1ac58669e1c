// The text of op definitions: OpDefSignature() (op_def_util.h) and the helpers that it uses.
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/op_def_internal.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow {
namespace {

// Splits a list into one value per element.
std::vector<AttrValue> Elements(const AttrValue::ListValue& list) {
  std::vector<AttrValue> values;
  for (const auto& item : list.s()) values.emplace_back().set_s(item);
  for (const auto item : list.i()) values.emplace_back().set_i(item);
  for (const auto item : list.f()) values.emplace_back().set_f(item);
  for (const auto item : list.b()) values.emplace_back().set_b(item);
  for (const auto item : list.type()) values.emplace_back().set_type(static_cast<DataType>(item));
  for (const auto& item : list.shape()) *values.emplace_back().mutable_shape() = item;
  for (const auto& item : list.tensor()) *values.emplace_back().mutable_tensor() = item;
  for (const auto& item : list.func()) *values.emplace_back().mutable_func() = item;
  return values;
}

std::string JoinElements(const AttrValue::ListValue& list) {
  return absl::StrJoin(Elements(list), ", ", [](std::string* out, const AttrValue& value) {
    *out += DefinitionText(value);
  });
}

std::string ArgText(const OpDef::ArgDef& arg) {
  std::string type = !arg.type_attr().empty()        ? arg.type_attr()
                     : !arg.type_list_attr().empty() ? arg.type_list_attr()
                                                     : DataTypeString(arg.type());
  if (!arg.number_attr().empty()) type = absl::StrCat(arg.number_attr(), " * ", type);
  if (arg.is_ref()) type = absl::StrCat("Ref(", type, ")");
  return absl::StrCat(arg.name(), ": ", type);
}

template <typename Items, typename Print>
std::string Join(const Items& items, absl::string_view separator, Print print) {
  return absl::StrJoin(items, separator,
                       [print](std::string* out, const auto& item) { *out += print(item); });
}

}  // namespace

std::string DefinitionText(const AttrValue& value) {
  switch (value.value_case()) {
    case AttrValue::kType:
      return DataTypeString(value.type());
    case AttrValue::kS:
      // Writes the full string, because a summary may shorten it.
      return absl::StrCat("\"", absl::CEscape(value.s()), "\"");
    case AttrValue::kShape:
      if (value.shape().unknown_rank()) return "unknown";
      break;
    case AttrValue::kList:
      return absl::StrCat("[", JoinElements(value.list()), "]");
    default:
      break;
  }
  return SummarizeAttrValue(value);
}

std::string DefinitionSetText(const AttrValue& list) {
  return absl::StrCat("{", JoinElements(list.list()), "}");
}

std::string DefinitionText(const OpDef::AttrDef& attr) {
  std::string type = attr.type();
  if (attr.has_allowed_values()) {
    type = DefinitionSetText(attr.allowed_values());
    if (absl::StartsWith(attr.type(), "list(")) type = absl::StrCat("list(", type, ")");
  }
  std::string text = absl::StrCat(attr.name(), ": ", type);
  if (attr.has_minimum()) absl::StrAppend(&text, " >= ", attr.minimum());
  if (attr.has_default_value()) {
    absl::StrAppend(&text, " = ", DefinitionText(attr.default_value()));
  }
  return text;
}

std::string OpDefSignature(const OpDef& op_def) {
  std::string text = absl::StrCat(op_def.name(), "(", Join(op_def.input_arg(), ", ", ArgText),
                                  ") -> (", Join(op_def.output_arg(), ", ", ArgText), ")");
  if (op_def.attr_size() > 0) {
    const auto print = [](const OpDef::AttrDef& attr) { return DefinitionText(attr); };
    absl::StrAppend(&text, " { ", Join(op_def.attr(), "; ", print), " }");
  }
  std::vector<absl::string_view> flags;
  if (op_def.is_commutative()) flags.push_back("commutative");
  if (op_def.is_aggregate()) flags.push_back("aggregate");
  if (op_def.is_stateful()) flags.push_back("stateful");
  if (op_def.has_deprecation()) flags.push_back("deprecated");
  if (!flags.empty()) absl::StrAppend(&text, "  [", absl::StrJoin(flags, ", "), "]");
  return text;
}

}  // namespace gradflow
