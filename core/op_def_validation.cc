// Validation of op definitions, and of attribute values against them.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/op_def_internal.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/status.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow {
namespace {

absl::Status CheckMinimum(const OpDef::AttrDef& attr, const AttrValue& value) {
  if (attr.type() == "int") {
    if (value.i() >= attr.minimum()) return absl::OkStatus();
    return errors::InvalidArgument("attribute ", attr.name(), " must be at least ", attr.minimum(),
                                   ", but is ", value.i());
  }
  // At most one field is non-empty.
  const auto& list = value.list();
  const int64_t length = int64_t{list.s_size()} + list.i_size() + list.f_size() + list.b_size() +
                         list.type_size() + list.shape_size() + list.tensor_size() +
                         list.func_size();
  if (length >= attr.minimum()) return absl::OkStatus();
  return errors::InvalidArgument("attribute ", attr.name(), " must have at least ", attr.minimum(),
                                 attr.minimum() == 1 ? " element" : " elements", ", but has ",
                                 length);
}

absl::Status CheckAllowed(const OpDef::AttrDef& attr, const AttrValue& value) {
  const auto& allowed = attr.allowed_values().list();
  const auto has = [](const auto& items, const auto& item) {
    return std::find(items.begin(), items.end(), item) != items.end();
  };
  AttrValue refused;
  switch (value.value_case()) {
    case AttrValue::kType:
      if (!has(allowed.type(), value.type())) refused.set_type(value.type());
      break;
    case AttrValue::kS:
      if (!has(allowed.s(), value.s())) refused.set_s(value.s());
      break;
    default:
      for (const int type : value.list().type()) {
        if (!has(allowed.type(), type)) refused.set_type(static_cast<DataType>(type));
      }
      for (const std::string& text : value.list().s()) {
        if (!has(allowed.s(), text)) refused.set_s(text);
      }
  }
  if (refused.value_case() == AttrValue::VALUE_NOT_SET) return absl::OkStatus();
  return errors::InvalidArgument(
      "attribute ", attr.name(), value.has_list() ? " must hold only " : " must be one of ",
      DefinitionSetText(attr.allowed_values()), value.has_list() ? ", but holds " : ", but is ",
      // Types have the names that the set uses; strings are shortened.
      refused.has_s() ? SummarizeAttrValue(refused) : DefinitionText(refused));
}

// Returns true for "Op" and "Namespace>Op" if the parts begin with capital letters. The name of an
// internal op begins with '_'.
bool IsOpName(absl::string_view name) {
  const bool is_internal = absl::ConsumePrefix(&name, "_");
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '>');
  return std::all_of(parts.begin(), parts.end(), [&](absl::string_view part) {
    return !part.empty() && (is_internal || absl::ascii_isupper(part[0])) &&
           std::all_of(part.begin(), part.end(),
                       [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_'; });
  });
}

bool IsIdentifier(absl::string_view name) {
  return !name.empty() && absl::ascii_isalpha(name[0]) &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

// The arguments of functions may have the names of nodes.
bool IsArgOfFunction(absl::string_view name) {
  return !name.empty() && absl::ascii_isalnum(name[0]) &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || absl::StrContains("_.-/", static_cast<char>(c));
         });
}

bool IsKnownType(DataType dtype) {
  const DataTypeVector& all = AllDataTypes();
  return std::find(all.begin(), all.end(), dtype) != all.end();
}

// Collects the errors of one definition.
class OpDefChecker {
 public:
  OpDefChecker(const OpDef& op_def, bool is_function)
      : op_def_(op_def), is_function_(is_function) {}

  absl::Status Check() {
    if (!is_function_ && !IsOpName(op_def_.name())) {
      Fault(
          "the name must begin with a capital letter, or with '_', and hold letters, digits and "
          "'_'; "
          "'>' separates such names");
    }
    for (const auto& attr : op_def_.attr()) CheckAttr(attr);
    for (const auto& arg : op_def_.input_arg()) CheckArg(arg, "input");
    if (is_function_) names_.clear();
    for (const auto& arg : op_def_.output_arg()) CheckArg(arg, "output");
    if (faults_.empty()) return absl::OkStatus();
    if (is_function_) return absl::InvalidArgumentError(JoinFaults(faults_));
    return errors::InvalidArgument("op '", absl::CEscape(op_def_.name()),
                                   "': ", JoinFaults(faults_));
  }

 private:
  template <typename... Args>
  void Fault(const Args&... args) {
    faults_.push_back(absl::StrCat(args...));
  }

  void CheckName(const std::string& name, absl::string_view what, bool may_be_node = false) {
    if (!(may_be_node ? IsArgOfFunction(name) : IsIdentifier(name))) {
      Fault("the name of ", what, " '", absl::CEscape(name), "' is not ",
            may_be_node ? "valid for a node" : "an identifier");
    } else if (!names_.insert(name).second) {
      Fault("the name of ", what, " ", name, " is already used");
    }
  }

  void CheckAttr(const OpDef::AttrDef& attr) {
    CheckName(attr.name(), "attribute");
    if (DataType dtype; DataTypeFromString(attr.name(), &dtype)) {
      Fault("attribute ", attr.name(), " has the name of a type");
    }
    const bool is_list = absl::StartsWith(attr.type(), "list(");
    const bool restrictable = attr.type() == "type" || attr.type() == "string" ||
                              attr.type() == "list(type)" || attr.type() == "list(string)";
    const size_t faults = faults_.size();
    if (!IsAttrType(attr.type())) {
      Fault("attribute ", attr.name(), " has type '", absl::CEscape(attr.type()),
            "', which is not an attribute type");
    } else if (attr.has_minimum() && attr.type() != "int" && !is_list) {
      Fault("attribute ", attr.name(), " has a minimum, which ", attr.type(), " cannot have");
    } else if (attr.has_minimum() && is_list && attr.minimum() < 0) {
      Fault("attribute ", attr.name(), " has a negative minimum length, ", attr.minimum());
    } else if (attr.has_allowed_values() && !restrictable) {
      Fault("attribute ", attr.name(), " has allowed values, which ", attr.type(), " cannot have");
    } else if (attr.has_allowed_values()) {
      const absl::Status allowed = AttrValueHasType(
          attr.allowed_values(), is_list ? attr.type() : absl::StrCat("list(", attr.type(), ")"));
      if (!allowed.ok()) Fault("allowed values of ", attr.name(), ": ", allowed.message());
    }
    if (faults_.size() > faults || !attr.has_default_value()) return;
    const absl::Status status = CheckAttrValue(attr, attr.default_value());
    if (!status.ok()) Fault("default of ", status.message());
  }

  void CheckArg(const OpDef::ArgDef& arg, absl::string_view what) {
    CheckName(arg.name(), what, is_function_);
    const int num_types =
        (arg.type() != DT_INVALID) + !arg.type_attr().empty() + !arg.type_list_attr().empty();
    if (num_types != 1) {
      Fault(what, " ", arg.name(), " must have one type, but has ", num_types);
    } else if (!arg.number_attr().empty() && !arg.type_list_attr().empty()) {
      Fault(what, " ", arg.name(), " has both a length and a list of types");
    }
    if (arg.type() != DT_INVALID && !IsKnownType(arg.type())) {
      Fault(what, " ", arg.name(), " has type ", DataTypeString(arg.type()),
            ", which arguments cannot have");
    }
    CheckAttrOfArg(arg, what, arg.type_attr(), "type");
    CheckAttrOfArg(arg, what, arg.type_list_attr(), "list(type)");
    const OpDef::AttrDef* length = CheckAttrOfArg(arg, what, arg.number_attr(), "int");
    if (length != nullptr && !is_function_ && (!length->has_minimum() || length->minimum() < 0)) {
      Fault("attribute ", length->name(), ", the length of ", what, " ", arg.name(),
            ", must have a minimum of at least 0");
    }
  }

  // Returns the attribute `name` if it exists and has type `type`, otherwise null.
  const OpDef::AttrDef* CheckAttrOfArg(const OpDef::ArgDef& arg, absl::string_view what,
                                       const std::string& name, absl::string_view type) {
    if (name.empty()) return nullptr;
    const OpDef::AttrDef* attr = FindAttrDef(op_def_, name);
    if (attr == nullptr) {
      Fault(what, " ", arg.name(), " refers to '", absl::CEscape(name),
            "', which is not an attribute");
    } else if (attr->type() != type) {
      Fault(what, " ", arg.name(), " needs attribute ", name, " to be of type ", type,
            ", but it is ", attr->type());
      return nullptr;
    }
    return attr;
  }

  const OpDef& op_def_;
  const bool is_function_;
  absl::flat_hash_set<absl::string_view> names_;
  std::vector<std::string> faults_;
};

}  // namespace

const OpDef::AttrDef* FindAttrDef(const OpDef& op_def, absl::string_view name) {
  for (const auto& attr : op_def.attr()) {
    if (attr.name() == name) return &attr;
  }
  return nullptr;
}

std::string JoinFaults(const std::vector<std::string>& faults) {
  constexpr size_t kMaxFaults = 8;
  if (faults.size() <= kMaxFaults) return absl::StrJoin(faults, "; ");
  return absl::StrCat(absl::StrJoin(faults.begin(), faults.begin() + kMaxFaults, "; "), "; and ",
                      faults.size() - kMaxFaults, " more");
}

bool IsAttrType(absl::string_view type) {
  if (absl::ConsumePrefix(&type, "list(") && !absl::ConsumeSuffix(&type, ")")) return false;
  for (const char* name : {"string", "int", "float", "bool", "type", "shape", "tensor", "func"}) {
    if (type == name) return true;
  }
  return false;
}

absl::Status CheckAttrValue(const OpDef::AttrDef& attr, const AttrValue& value) {
  if (absl::Status status = AttrValueHasType(value, attr.type()); !status.ok()) {
    return errors::Prefix(absl::StrCat("attribute ", attr.name(), ": "), status);
  }
  if (attr.has_minimum()) GRADFLOW_RETURN_IF_ERROR(CheckMinimum(attr, value));
  if (attr.has_allowed_values()) return CheckAllowed(attr, value);
  return absl::OkStatus();
}

absl::Status ValidateOpDef(const OpDef& op_def) {
  return OpDefChecker(op_def, /*is_function=*/false).Check();
}

absl::Status ValidateFunctionSignature(const OpDef& signature) {
  return OpDefChecker(signature, /*is_function=*/true).Check();
}

}  // namespace gradflow
