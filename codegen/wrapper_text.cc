#include "gradflow/codegen/wrapper_text.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <set>
#include <type_traits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/proto/attr_value.pb.h"

namespace gradflow {
namespace {

constexpr size_t kColumns = 100;

template <typename T>
std::string ShortestLiteral(T value, const char* type) {
  if (std::isnan(value)) return absl::StrCat("::std::numeric_limits<", type, ">::quiet_NaN()");
  if (std::isinf(value)) {
    return absl::StrCat(value < 0 ? "-" : "", "::std::numeric_limits<", type, ">::infinity()");
  }
  // The shortest text that parses to the same number.
  std::string text;
  for (int digits = 6; digits <= std::numeric_limits<T>::max_digits10; ++digits) {
    text = absl::StrFormat("%.*g", digits, value);
    const T read = std::is_same_v<T, float> ? std::strtof(text.c_str(), nullptr)
                                            : static_cast<T>(std::strtod(text.c_str(), nullptr));
    if (read == value) break;
  }
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

absl::StatusOr<std::string> ShapeLiteral(const TensorShapeProto& proto) {
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape, PartialTensorShape::Make(proto));
  if (shape.unknown_rank()) return std::string("::gradflow::PartialTensorShape()");
  return absl::StrCat("::gradflow::PartialTensorShape({", absl::StrJoin(shape.dim_sizes(), ", "),
                      "})");
}

std::string TypeLiteral(int dtype) {
  return absl::StrCat("::gradflow::", DataType_Name(static_cast<DataType>(dtype)));
}

// Returns "int" for "list(int)"; "" for types that are not lists.
absl::string_view ElementOfList(absl::string_view attr_type) {
  if (!absl::ConsumePrefix(&attr_type, "list(")) return "";
  absl::ConsumeSuffix(&attr_type, ")");
  return attr_type;
}

absl::Status NoCppType(absl::string_view attr_type) {
  return errors::Unimplemented("attributes of type '", attr_type, "' have no C++ type");
}

// Returns the C++ type of elements for types that appear in defaults of attributes; "" for other
// types.
absl::string_view ElementType(DataType dtype) {
  switch (dtype) {
    case DT_FLOAT:
      return "float";
    case DT_UINT8:
      return "uint8_t";
    case DT_INT32:
      return "int32_t";
    case DT_INT64:
      return "int64_t";
    default:
      return "";
  }
}

absl::StatusOr<std::string> TensorLiteral(const TensorProto& proto) {
  // No default has more elements.
  constexpr int64_t kMaxElements = 100;
  GRADFLOW_ASSIGN_OR_RETURN(const Tensor tensor, TensorFromProto(proto));
  const absl::string_view type = ElementType(tensor.dtype());
  if (type.empty() || tensor.NumElements() == 0 || tensor.NumElements() > kMaxElements) {
    return errors::Unimplemented("a default of type ", DataTypeString(tensor.dtype()),
                                 " and shape ", tensor.shape().DebugString(),
                                 " has no C++ literal");
  }
  std::vector<std::string> items;
  for (int64_t i = 0; i < tensor.NumElements(); ++i) {
    const std::string item = tensor.dtype() == DT_FLOAT   ? FloatLiteral(tensor.flat<float>()(i))
                             : tensor.dtype() == DT_UINT8 ? absl::StrCat(tensor.flat<uint8_t>()(i))
                             : tensor.dtype() == DT_INT32 ? absl::StrCat(tensor.flat<int32_t>()(i))
                                                          : absl::StrCat(tensor.flat<int64_t>()(i));
    items.push_back(absl::StrCat(type, "{", item, "}"));
  }
  return absl::StrCat("::gradflow::Input::Initializer({", absl::StrJoin(items, ", "),
                      "}, ::gradflow::TensorShape({",
                      absl::StrJoin(tensor.shape().dim_sizes(), ", "), "})).tensor");
}

// Wraps the words of `text`, prefixing the first line with `first` and the others with `rest`.
std::string Wrap(absl::string_view first, absl::string_view rest, absl::string_view text) {
  std::string result;
  std::string line(first);
  bool empty = true;
  for (absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" \t"), absl::SkipEmpty())) {
    if (!empty && line.size() + 1 + word.size() > kColumns) {
      absl::StrAppend(&result, line, "\n");
      line = std::string(rest);
      empty = true;
    }
    absl::StrAppend(&line, empty ? "" : " ", word);
    empty = false;
  }
  absl::StrAppend(&result, absl::StripTrailingAsciiWhitespace(line), "\n");
  return result;
}

}  // namespace

std::string FloatLiteral(float value) {
  std::string text = ShortestLiteral(value, "float");
  return std::isfinite(value) ? text + "f" : text;
}

std::string DoubleLiteral(double value) { return ShortestLiteral(value, "double"); }

std::string StringLiteral(absl::string_view text) {
  return absl::StrCat("\"", absl::CHexEscape(text), "\"");
}

absl::StatusOr<CppAttrType> CppTypeOfAttr(absl::string_view attr_type) {
  const absl::string_view element = ElementOfList(attr_type);
  const absl::string_view scalar = element.empty() ? attr_type : element;
  CppAttrType type;
  if (scalar == "string") {
    type = {"::absl::string_view", "::std::string"};
  } else if (scalar == "int") {
    // int in lists, as in TensorFlow's API: {1, 2} and std::vector<int> convert.
    type.parameter = element.empty() ? "int64_t" : "int";
  } else if (scalar == "float" || scalar == "bool") {
    type.parameter = std::string(scalar);
  } else if (scalar == "type") {
    type.parameter = "::gradflow::DataType";
  } else if (scalar == "shape") {
    type.parameter = "::gradflow::PartialTensorShape";
  } else if (scalar == "tensor") {
    type.parameter = "::gradflow::Tensor";
  } else if (scalar == "func") {
    type.parameter = "::gradflow::NameAttrList";
  } else {
    return NoCppType(attr_type);
  }
  if (type.member.empty()) type.member = type.parameter;
  if (!element.empty()) {
    return CppAttrType{absl::StrCat("::absl::Span<const ", type.parameter, ">"),
                       absl::StrCat("::std::vector<", type.member, ">"), true};
  }
  if (scalar == "shape" || scalar == "tensor" || scalar == "func") {
    type.parameter = absl::StrCat("const ", type.parameter, "&");
  }
  return type;
}

absl::StatusOr<std::string> CppLiteral(absl::string_view attr_type, const AttrValue& value) {
  if (attr_type == "string") return StringLiteral(value.s());
  // The smallest int64 cannot be written as a literal.
  if (attr_type == "int" && value.i() == INT64_MIN) return std::string("INT64_MIN");
  if (attr_type == "int") return absl::StrCat(value.i());
  if (attr_type == "float") return FloatLiteral(value.f());
  if (attr_type == "bool") return std::string(value.b() ? "true" : "false");
  if (attr_type == "type") return TypeLiteral(value.type());
  if (attr_type == "shape") return ShapeLiteral(value.shape());
  if (attr_type == "tensor") return TensorLiteral(value.tensor());

  std::vector<std::string> items;
  const AttrValue::ListValue& list = value.list();
  const absl::string_view element = ElementOfList(attr_type);
  if (element == "string") {
    for (const std::string& s : list.s()) items.push_back(StringLiteral(s));
  } else if (element == "int") {
    for (const int64_t i : list.i()) items.push_back(absl::StrCat(i));
  } else if (element == "float") {
    for (const float f : list.f()) items.push_back(FloatLiteral(f));
  } else if (element == "bool") {
    for (const bool b : list.b()) items.emplace_back(b ? "true" : "false");
  } else if (element == "type") {
    for (const int type : list.type()) items.push_back(TypeLiteral(type));
  } else if (element == "shape") {
    for (const TensorShapeProto& proto : list.shape()) {
      GRADFLOW_ASSIGN_OR_RETURN(std::string shape, ShapeLiteral(proto));
      items.push_back(std::move(shape));
    }
  } else if (element != "tensor" || list.tensor_size() > 0) {
    return errors::Unimplemented("a default of type '", attr_type, "' has no C++ literal");
  }
  return absl::StrCat("{", absl::StrJoin(items, ", "), "}");
}

std::string CamelCase(absl::string_view name) {
  std::string result;
  bool upper = true;
  for (const char c : name) {
    if (c != '_') result.push_back(upper ? absl::ascii_toupper(c) : c);
    upper = c == '_';
  }
  return result;
}

std::string SafeName(absl::string_view name) {
  static const auto* reserved = new std::set<absl::string_view>{
      // Keywords of C++.
      "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break",
      "case", "catch", "char", "char8_t", "char16_t", "char32_t", "class", "compl", "concept",
      "const", "const_cast", "consteval", "constexpr", "constinit", "continue", "co_await",
      "co_return", "co_yield", "decltype", "default", "delete", "do", "double", "dynamic_cast",
      "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto",
      "if", "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq",
      "nullptr", "operator", "or", "or_eq", "private", "protected", "public", "register",
      "reinterpret_cast", "requires", "return", "short", "signed", "sizeof", "static",
      "static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local",
      "throw", "true", "try", "typedef", "typeid", "typename", "union", "unsigned", "using",
      "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq",
      // Names that every wrapper class uses.
      "attrs", "node", "operation", "scope", "Attrs"};
  return absl::StrCat(name, reserved->count(name) > 0 ? "_" : "");
}

std::string Comment(absl::string_view indent, absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (text.empty()) return "";
  const std::string prefix = absl::StrCat(indent, "// ");
  std::string result;
  std::string paragraph;
  const auto flush = [&] {
    if (!paragraph.empty()) absl::StrAppend(&result, Wrap(prefix, prefix, paragraph));
    paragraph.clear();
  };
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripTrailingAsciiWhitespace(line);
    if (line.empty()) {
      flush();
      absl::StrAppend(&result, indent, "//\n");
    } else if (absl::ascii_isspace(line[0]) || line[0] == '*' || line[0] == '-') {
      // Does not wrap formulas and lists.
      flush();
      absl::StrAppend(&result, prefix, line, "\n");
    } else {
      absl::StrAppend(&paragraph, paragraph.empty() ? "" : " ", line);
    }
  }
  flush();
  return result;
}

std::string ItemComment(absl::string_view indent, absl::string_view name, absl::string_view text) {
  const std::string words = absl::StrReplaceAll(text, {{"\n", " "}});
  return Wrap(absl::StrCat(indent, "// * ", name, ": "), absl::StrCat(indent, "//   "), words);
}

}  // namespace gradflow
