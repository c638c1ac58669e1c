// Type checks of attribute values, and parsing.
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/strip.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/types.pb.h"

namespace gradflow {
namespace {

using List = AttrValue::ListValue;

// A type of attributes and the field that holds its values.
struct AttrType {
  // The name in op definitions.
  absl::string_view name;
  AttrValue::ValueCase value_case;
  // The field's name, both in AttrValue and in ListValue.
  const char* field;
  int (*list_size)(const List& list);
};

constexpr AttrType kAttrTypes[] = {
    {"string", AttrValue::kS, "s", [](const List& list) { return list.s_size(); }},
    {"int", AttrValue::kI, "i", [](const List& list) { return list.i_size(); }},
    {"float", AttrValue::kF, "f", [](const List& list) { return list.f_size(); }},
    {"bool", AttrValue::kB, "b", [](const List& list) { return list.b_size(); }},
    {"type", AttrValue::kType, "type", [](const List& list) { return list.type_size(); }},
    {"shape", AttrValue::kShape, "shape", [](const List& list) { return list.shape_size(); }},
    {"tensor", AttrValue::kTensor, "tensor", [](const List& list) { return list.tensor_size(); }},
    {"func", AttrValue::kFunc, "func", [](const List& list) { return list.func_size(); }},
};

// Finds the attribute type `type`, such as "int" or "list(int)". Returns null if it does not exist.
const AttrType* FindAttrType(absl::string_view type, bool* is_list) {
  *is_list = absl::ConsumePrefix(&type, "list(");
  if (*is_list && !absl::ConsumeSuffix(&type, ")")) return nullptr;
  for (const AttrType& attr_type : kAttrTypes) {
    if (type == attr_type.name) return &attr_type;
  }
  return nullptr;
}

// Limit on functions nested in attributes of functions, far above any real program.
constexpr int kMaxFunctionDepth = 32;

// Returns "3.5 (float)", for messages.
std::string DescribeValue(const AttrValue& value) {
  if (value.value_case() == AttrValue::VALUE_NOT_SET) return "no value";
  std::string text = SummarizeAttrValue(value);
  if (value.value_case() == AttrValue::kPlaceholder) return absl::StrCat(text, " (placeholder)");
  for (const AttrType& attr_type : kAttrTypes) {
    if (value.value_case() == attr_type.value_case)
      return absl::StrCat(text, " (", attr_type.name, ")");
    if (value.has_list() && attr_type.list_size(value.list()) > 0) {
      return absl::StrCat(text, " (list(", attr_type.name, "))");
    }
  }
  return text;
}

absl::Status CheckDataType(int number) {
  const auto dtype = static_cast<DataType>(number);
  if (!DataType_IsValid(number)) {
    return errors::InvalidArgument("expected a type, but found ", number, ", which is not a type");
  }
  if (dtype == DT_INVALID) return errors::InvalidArgument("expected a type, but found DT_INVALID");
  if (IsRefType(dtype)) {
    return errors::InvalidArgument("expected a non-reference type, but found ",
                                   DataType_Name(dtype));
  }
  return absl::OkStatus();
}

absl::Status CheckContents(const AttrValue& value, int depth);

absl::Status CheckFunction(const NameAttrList& function, int depth) {
  if (depth >= kMaxFunctionDepth) {
    return errors::InvalidArgument("functions in attributes of functions are nested deeper than ",
                                   kMaxFunctionDepth, " levels");
  }
  for (const auto& [name, value] : function.attr()) {
    GRADFLOW_RETURN_IF_ERROR(CheckContents(value, depth + 1));
  }
  return absl::OkStatus();
}

// Checks the enum numbers, shapes, tensors and functions in a value of any type.
absl::Status CheckContents(const AttrValue& value, int depth) {
  switch (value.value_case()) {
    case AttrValue::kType:
      return CheckDataType(value.type());
    case AttrValue::kShape:
      return PartialTensorShape::Make(value.shape()).status();
    case AttrValue::kTensor:
      return ValidateTensorProto(value.tensor());
    case AttrValue::kFunc:
      return CheckFunction(value.func(), depth);
    case AttrValue::kList:
      break;
    default:
      return absl::OkStatus();
  }
  const List& list = value.list();
  for (const int type : list.type()) GRADFLOW_RETURN_IF_ERROR(CheckDataType(type));
  for (const auto& shape : list.shape()) {
    GRADFLOW_RETURN_IF_ERROR(PartialTensorShape::Make(shape).status());
  }
  for (const auto& tensor : list.tensor()) GRADFLOW_RETURN_IF_ERROR(ValidateTensorProto(tensor));
  for (const auto& function : list.func()) {
    GRADFLOW_RETURN_IF_ERROR(CheckFunction(function, depth));
  }
  return absl::OkStatus();
}

// Returns true if `text` is one list: the last character closes the bracket that the first opens.
bool IsOneList(absl::string_view text) {
  if (text.empty() || text[0] != '[') return false;
  int depth = 0;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#') {
      // A comment might hide brackets.
      return false;
    } else if (c == '[') {
      ++depth;
    } else if (c == ']' && --depth == 0) {
      return i + 1 == text.size();
    }
  }
  return false;
}

// Discards errors, which the parser would otherwise write to standard error.
class IgnoreErrors : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
};

}  // namespace

absl::Status AttrValueHasType(const AttrValue& value, absl::string_view type) {
  bool is_list = false;
  const AttrType* attr_type = FindAttrType(type, &is_list);
  if (attr_type == nullptr) {
    return errors::InvalidArgument("'", absl::CEscape(type.substr(0, 80)),
                                   "' is not an attribute type");
  }
  if (value.value_case() != (is_list ? AttrValue::kList : attr_type->value_case)) {
    return errors::InvalidArgument("expected ", type, ", but found ", DescribeValue(value));
  }
  if (is_list) {
    for (const AttrType& other : kAttrTypes) {
      if (&other != attr_type && other.list_size(value.list()) > 0) {
        return errors::InvalidArgument("expected ", type, ", but found ", SummarizeAttrValue(value),
                                       " (list(", other.name, "))");
      }
    }
  }
  return CheckContents(value, 0);
}

bool ParseAttrValue(absl::string_view type, absl::string_view text, AttrValue* out) {
  internal::RequireOut(out, "ParseAttrValue", "out");
  bool is_list = false;
  const AttrType* attr_type = FindAttrType(type, &is_list);
  if (attr_type == nullptr) return false;
  text = absl::StripAsciiWhitespace(text);
  std::string message = absl::StrCat(attr_type->field, ": ", text);
  if (is_list) {
    if (!IsOneList(text)) return false;
    // The text format has no empty lists.
    const bool empty = absl::StripAsciiWhitespace(text.substr(1, text.size() - 2)).empty();
    message = empty ? "list {}" : absl::StrCat("list { ", message, " }");
  }
  google::protobuf::TextFormat::Parser parser;
  IgnoreErrors errors;
  parser.RecordErrorsTo(&errors);
  parser.SetRecursionLimit(100);
  AttrValue value;
  if (!parser.ParseFromString(message, &value) || !AttrValueHasType(value, type).ok()) return false;
  out->Swap(&value);
  return true;
}

}  // namespace gradflow
