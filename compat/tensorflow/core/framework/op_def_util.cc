#include "tensorflow/core/framework/op_def_util.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/attributes.h"
#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace {

using Attrs = protobuf::RepeatedPtrField<OpDef::AttrDef>;
using Args = protobuf::RepeatedPtrField<OpDef::ArgDef>;

// Returns "a:int32, b:N*T, r:Ref(float)".
std::string ArgsOfOp(const Args& args) {
  return absl::StrJoin(args, ", ", [](std::string* text, const OpDef::ArgDef& arg) {
    absl::StrAppend(text, arg.name(), ":");
    if (arg.is_ref()) *text += "Ref(";
    if (!arg.number_attr().empty()) absl::StrAppend(text, arg.number_attr(), "*");
    if (arg.type() != DT_INVALID) {
      *text += DataTypeString(arg.type());
    } else {
      absl::StrAppend(text, arg.type_attr(), arg.type_list_attr());
    }
    if (arg.is_ref()) *text += ")";
  });
}

// Returns the items of a list of types or strings, each as a separate value.
std::vector<AttrValue> Items(const AttrValue& value) {
  std::vector<AttrValue> items;
  for (const int type : value.list().type()) {
    items.emplace_back().set_type(static_cast<DataType>(type));
  }
  for (const std::string& text : value.list().s()) items.emplace_back().set_s(text);
  return items;
}

std::string AttrText(const OpDef::AttrDef& attr) {
  std::string text = absl::StrCat(attr.name(), ":", attr.type());
  if (attr.has_default_value()) {
    absl::StrAppend(&text, ",default=", SummarizeAttrValue(attr.default_value()));
  }
  if (attr.has_minimum()) absl::StrAppend(&text, ",min=", attr.minimum());
  if (attr.has_allowed_values()) {
    absl::StrAppend(&text, ",allowed=", SummarizeAttrValue(attr.allowed_values()));
  }
  return text;
}

template <typename Message>
uint64 MessageHash(const Message& message) {
  return absl::Hash<std::string>()(message.SerializeAsString());
}

// Compares messages that contain no maps.
template <typename Message>
bool SameMessage(const Message& a, const Message& b) {
  return a.SerializeAsString() == b.SerializeAsString();
}

// Returns the definition without its values, which are compared separately.
OpDef::AttrDef WithoutValues(const OpDef::AttrDef& attr) {
  OpDef::AttrDef rest = attr;
  rest.clear_default_value();
  rest.clear_allowed_values();
  return rest;
}

absl::Status Incompatible(const OpDef& old_op, const OpDef& new_op, const std::string& why) {
  return errors::InvalidArgument(why, "; Op '", new_op.name(),
                                 "' has changed from: ", SummarizeOpDef(old_op),
                                 " to: ", SummarizeOpDef(new_op));
}

// Returns true if `to` allows all values that `from` allows.
bool AllowsAll(const OpDef::AttrDef& from, const OpDef::AttrDef& to) {
  if (to.has_minimum() && (!from.has_minimum() || from.minimum() < to.minimum())) return false;
  if (!to.has_allowed_values()) return true;
  if (!from.has_allowed_values()) return false;
  const std::vector<AttrValue> allowed = Items(to.allowed_values());
  const std::vector<AttrValue> wanted = Items(from.allowed_values());
  return std::all_of(wanted.begin(), wanted.end(), [&](const AttrValue& value) {
    return std::any_of(allowed.begin(), allowed.end(),
                       [&](const AttrValue& a) { return AreAttrValuesEqual(a, value); });
  });
}

std::string DefaultText(const OpDef::AttrDef& attr) {
  return attr.has_default_value() ? SummarizeAttrValue(attr.default_value()) : "no default";
}

bool SameDefault(const OpDef::AttrDef& a, const OpDef::AttrDef& b) {
  return a.has_default_value() == b.has_default_value() &&
         (!a.has_default_value() || AreAttrValuesEqual(a.default_value(), b.default_value()));
}

int64 ListSize(const AttrValue::ListValue& list) {
  return list.s_size() + list.i_size() + list.f_size() + list.b_size() + list.type_size() +
         list.shape_size() + list.tensor_size() + list.func_size();
}

// Returns the type of a value: "int", "list(int)" and so on; "list(none)" for an empty list.
std::string ValueType(const AttrValue& value) {
  const AttrValue::ListValue& list = value.list();
  const bool is_list = value.has_list();
  const auto is = [&](AttrValue::ValueCase value_case, int list_size) {
    return is_list ? list_size > 0 : value.value_case() == value_case;
  };
  const char* type = "none";
  if (is(AttrValue::kS, list.s_size())) type = "string";
  if (is(AttrValue::kI, list.i_size())) type = "int";
  if (is(AttrValue::kF, list.f_size())) type = "float";
  if (is(AttrValue::kB, list.b_size())) type = "bool";
  if (is(AttrValue::kType, list.type_size())) type = "type";
  if (is(AttrValue::kShape, list.shape_size())) type = "shape";
  if (is(AttrValue::kTensor, list.tensor_size())) type = "tensor";
  if (is(AttrValue::kFunc, list.func_size())) type = "func";
  if (is(AttrValue::kPlaceholder, 0)) type = "placeholder";
  return is_list ? absl::StrCat("list(", type, ")") : type;
}

}  // namespace

absl::Status CheckOpDeprecation(const OpDef& op_def, int graph_def_version) {
  if (!op_def.has_deprecation()) return absl::OkStatus();
  const int version = op_def.deprecation().version();
  if (graph_def_version >= version) {
    return errors::Unimplemented("Op ", op_def.name(), " is not available in GraphDef version ",
                                 graph_def_version, ". It has been removed in version ", version,
                                 ". ", op_def.deprecation().explanation(), ".");
  }
  VLOG(1) << "Op " << op_def.name() << " is deprecated since GraphDef version " << version;
  return absl::OkStatus();
}

absl::Status ValidateAttrValue(const AttrValue& attr_value, const OpDef::AttrDef& attr) {
  const bool is_list = absl::StartsWith(attr.type(), "list(");
  const absl::Status type = gradflow::AttrValueHasType(attr_value, attr.type());
  const bool is_empty_list = is_list && attr_value.value_case() == AttrValue::VALUE_NOT_SET;
  if (!type.ok() && !is_empty_list) {
    const std::string found = ValueType(attr_value);
    if (found == attr.type()) {
      return errors::InvalidArgument(type.message(), "\n\t for attr '", attr.name(), "'");
    }
    return errors::InvalidArgument("AttrValue had value with type '", found, "' when '",
                                   attr.type(), "' expected\n\t for attr '", attr.name(), "'");
  }
  if (attr.has_minimum()) {
    const int64 size = is_list ? ListSize(attr_value.list()) : attr_value.i();
    if (size < attr.minimum()) {
      return errors::InvalidArgument(is_list ? "Length" : "Value", " for attr '", attr.name(),
                                     "' of ", size, " must be at least minimum ", attr.minimum());
    }
  }
  if (attr.has_allowed_values()) {
    const auto& allowed = attr.allowed_values().list();
    std::vector<std::string> names, values;
    for (const int type_value : allowed.type()) {
      names.push_back(DataTypeString(static_cast<DataType>(type_value)));
    }
    for (const std::string& text : allowed.s()) names.push_back(absl::StrCat("\"", text, "\""));
    const bool is_type = allowed.type_size() > 0;
    const auto add = [&](const AttrValue::ListValue& list) {
      for (const int type_value : list.type()) {
        values.push_back(DataTypeString(static_cast<DataType>(type_value)));
      }
      for (const std::string& text : list.s()) values.push_back(absl::StrCat("\"", text, "\""));
    };
    if (is_list) {
      add(attr_value.list());
    } else if (is_type) {
      values.push_back(DataTypeString(attr_value.type()));
    } else {
      values.push_back(absl::StrCat("\"", attr_value.s(), "\""));
    }
    for (const std::string& value : values) {
      if (std::find(names.begin(), names.end(), value) != names.end()) continue;
      return errors::InvalidArgument(
          "Value for attr '", attr.name(), "' of ", value,
          " is not in the list of allowed values: ", absl::StrJoin(names, ", "));
    }
  }
  return absl::OkStatus();
}

const OpDef::AttrDef* FindAttr(absl::string_view name, const OpDef& op_def) {
  return FindAttrMutable(name, const_cast<OpDef*>(&op_def));
}

OpDef::AttrDef* FindAttrMutable(absl::string_view name, OpDef* op_def) {
  for (int i = 0; i < op_def->attr_size(); ++i) {
    // Mutates only this attribute, because other threads may read the definition.
    if (op_def->attr(i).name() == name) return const_cast<OpDef::AttrDef*>(&op_def->attr(i));
  }
  return nullptr;
}

const OpDef::ArgDef* FindInputArg(absl::string_view name, const OpDef& op_def) {
  for (const OpDef::ArgDef& arg : op_def.input_arg()) {
    if (arg.name() == name) return &arg;
  }
  return nullptr;
}

std::string SummarizeOpDef(const OpDef& op_def) {
  std::string text =
      absl::StrCat("Op<name=", op_def.name(), "; signature=", ArgsOfOp(op_def.input_arg()), " -> ",
                   ArgsOfOp(op_def.output_arg()));
  for (const OpDef::AttrDef& attr : op_def.attr()) {
    absl::StrAppend(&text, "; attr=", AttrText(attr));
  }
  const std::pair<bool, const char*> flags[] = {
      {op_def.is_commutative(), "is_commutative"},
      {op_def.is_aggregate(), "is_aggregate"},
      {op_def.is_stateful(), "is_stateful"},
      {op_def.allows_uninitialized_input(), "allows_uninitialized_input"},
      {op_def.is_distributed_communication(), "is_distributed_communication"}};
  for (const auto& [is_set, name] : flags) {
    if (is_set) absl::StrAppend(&text, "; ", name, "=true");
  }
  return text + ">";
}

absl::Status OpDefCompatible(const OpDef& old_op, const OpDef& new_op) {
  const auto fail = [&](const std::string& why) { return Incompatible(old_op, new_op, why); };
  if (old_op.name() != new_op.name()) {
    return fail(absl::StrCat("Name mismatch, old: ", old_op.name(), " new: ", new_op.name()));
  }
  for (const OpDef::AttrDef& attr : old_op.attr()) {
    const OpDef::AttrDef* const now = FindAttr(attr.name(), new_op);
    if (now == nullptr) return fail(absl::StrCat("Attr '", attr.name(), "' removed"));
    if (now->type() != attr.type()) {
      return fail(absl::StrCat("Attr '", attr.name(), "' changed type '", attr.type(), "' -> '",
                               now->type(), "'"));
    }
    if (!AllowsAll(attr, *now)) {
      return fail(absl::StrCat("Attr '", attr.name(), "' allows fewer values"));
    }
  }
  for (const OpDef::AttrDef& attr : new_op.attr()) {
    if (FindAttr(attr.name(), old_op) == nullptr && !attr.has_default_value()) {
      return fail(absl::StrCat("Attr '", attr.name(), "' added without default"));
    }
  }
  if (ArgsOfOp(old_op.input_arg()) != ArgsOfOp(new_op.input_arg())) {
    return fail("Input signature mismatch");
  }
  if (ArgsOfOp(old_op.output_arg()) != ArgsOfOp(new_op.output_arg())) {
    return fail("Output signature mismatch");
  }
  return absl::OkStatus();
}

absl::Status OpDefAddedDefaultsUnchanged(const OpDef& old_op, const OpDef& penultimate_op,
                                         const OpDef& new_op) {
  for (const OpDef::AttrDef& attr : penultimate_op.attr()) {
    const OpDef::AttrDef* const now = FindAttr(attr.name(), new_op);
    if (FindAttr(attr.name(), old_op) != nullptr || now == nullptr) continue;
    if (!SameDefault(attr, *now)) {
      return errors::InvalidArgument("Can't change the default value of attr '", attr.name(),
                                     "' from ", DefaultText(attr), " to ", DefaultText(*now));
    }
  }
  return absl::OkStatus();
}

absl::Status OpDefAttrDefaultsUnchanged(const OpDef& old_op, const OpDef& new_op) {
  for (const OpDef::AttrDef& attr : old_op.attr()) {
    const OpDef::AttrDef* const now = FindAttr(attr.name(), new_op);
    if (now == nullptr || !attr.has_default_value() || SameDefault(attr, *now)) continue;
    return errors::InvalidArgument(
        "Attr '", attr.name(), "' has ",
        now->has_default_value() ? "changed it's default value" : "removed it's default", "; from ",
        DefaultText(attr), " to ", DefaultText(*now));
  }
  return absl::OkStatus();
}

void RemoveNonDeprecationDescriptionsFromOpDef(OpDef* op_def) {
  op_def->clear_summary();
  op_def->clear_description();
  for (OpDef::ArgDef& arg : *op_def->mutable_input_arg()) arg.clear_description();
  for (OpDef::ArgDef& arg : *op_def->mutable_output_arg()) arg.clear_description();
  for (OpDef::AttrDef& attr : *op_def->mutable_attr()) attr.clear_description();
}

void RemoveDescriptionsFromOpDef(OpDef* op_def) {
  RemoveNonDeprecationDescriptionsFromOpDef(op_def);
  if (op_def->has_deprecation()) op_def->mutable_deprecation()->clear_explanation();
}

void RemoveDescriptionsFromOpList(OpList* op_list) {
  for (OpDef& op_def : *op_list->mutable_op()) RemoveDescriptionsFromOpDef(&op_def);
}

bool AttrDefEqual(const OpDef::AttrDef& a1, const OpDef::AttrDef& a2) {
  return SameMessage(WithoutValues(a1), WithoutValues(a2)) && SameDefault(a1, a2) &&
         a1.has_allowed_values() == a2.has_allowed_values() &&
         AreAttrValuesEqual(a1.allowed_values(), a2.allowed_values());
}

uint64 AttrDefHash(const OpDef::AttrDef& a) {
  return absl::Hash<std::vector<uint64>>()(
      {MessageHash(WithoutValues(a)), a.has_default_value() ? AttrValueHash(a.default_value()) : 0,
       a.has_allowed_values() ? AttrValueHash(a.allowed_values()) : 0});
}

bool RepeatedAttrDefEqual(const Attrs& a1, const Attrs& a2) {
  std::map<std::string, const OpDef::AttrDef*> by_name;
  for (const OpDef::AttrDef& attr : a1) by_name[attr.name()] = &attr;
  if (a1.size() != a2.size() || static_cast<int>(by_name.size()) != a1.size()) {
    return a1.empty() && a2.empty();
  }
  return std::all_of(a2.begin(), a2.end(), [&](const OpDef::AttrDef& attr) {
    const auto it = by_name.find(attr.name());
    if (it == by_name.end() || !AttrDefEqual(*it->second, attr)) return false;
    // Each name counts once.
    by_name.erase(it);
    return true;
  });
}

uint64 RepeatedAttrDefHash(const Attrs& a) {
  uint64 hash = 0;
  for (const OpDef::AttrDef& attr : a) hash += AttrDefHash(attr);
  return hash;
}

bool OpDefEqual(const OpDef& o1, const OpDef& o2) {
  OpDef rest1 = o1, rest2 = o2;
  rest1.clear_attr();
  rest2.clear_attr();
  return RepeatedAttrDefEqual(o1.attr(), o2.attr()) && SameMessage(rest1, rest2);
}

uint64 OpDefHash(const OpDef& o) {
  OpDef rest = o;
  rest.clear_attr();
  return absl::Hash<std::pair<uint64, uint64>>()(
      {MessageHash(rest), RepeatedAttrDefHash(o.attr())});
}

}  // namespace tensorflow
