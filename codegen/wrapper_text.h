// C++ text for wrapper classes: types and defaults of attributes, names, and comments.
#ifndef GRADFLOW_CODEGEN_WRAPPER_TEXT_H_
#define GRADFLOW_CODEGEN_WRAPPER_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gradflow {

class AttrValue;

// The C++ types for an attribute.
struct CppAttrType {
  // The type of a parameter: "::absl::string_view".
  std::string parameter;
  // The owning type of a member: "::std::string". Differs from `parameter` if the parameter type
  // borrows.
  std::string member;
  // True if the member is constructed from begin() and end() of the parameter, false if by
  // conversion.
  bool is_list = false;
};
// Returns UNIMPLEMENTED if there are no attributes of such a type.
absl::StatusOr<CppAttrType> CppTypeOfAttr(absl::string_view attr_type);

// Returns the value as a C++ expression: `8`, `"NHWC"`, `::gradflow::DT_INT32`, `{1, 2}`. Returns
// UNIMPLEMENTED for functions, for lists with tensors, and for tensors that have no elements, more
// than 100 elements, or a type other than float, uint8, int32 and int64.
absl::StatusOr<std::string> CppLiteral(absl::string_view attr_type, const AttrValue& value);

// Return the shortest literal that parses to the same value: `1.0f`, `1e-05`. Return members of
// std::numeric_limits for numbers that are not finite.
std::string FloatLiteral(float value);
std::string DoubleLiteral(double value);
// Returns the text in quotes, escaped.
std::string StringLiteral(absl::string_view text);

// Converts "num_bits" to "NumBits".
std::string CamelCase(absl::string_view name);
// Returns `name`, with an underscore appended if it is a C++ keyword or a name that wrapper classes
// use themselves.
std::string SafeName(absl::string_view name);

// Returns `text` as comment lines of at most 100 columns, each prefixed with `indent` and "// ".
// Keeps paragraphs and lists separate.
std::string Comment(absl::string_view indent, absl::string_view text);
// Returns "* name: text" as comment lines, with continuation lines indented.
std::string ItemComment(absl::string_view indent, absl::string_view name, absl::string_view text);

}  // namespace gradflow

#endif  // GRADFLOW_CODEGEN_WRAPPER_TEXT_H_
