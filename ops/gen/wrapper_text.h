// The pieces of C++ text that wrapper classes are made of: types and defaults of attributes, names,
// comments.
#ifndef GRADFLOW_OPS_GEN_WRAPPER_TEXT_H_
#define GRADFLOW_OPS_GEN_WRAPPER_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gradflow {

class AttrValue;

// How C++ spells an attribute's type.
struct CppAttrType {
  // Of a parameter: "::absl::string_view".
  std::string parameter;
  // Of a member that keeps it: "::std::string". The same, unless `parameter` only borrows.
  std::string member;
  // Whether the member is made from a parameter's begin() and end() rather than by conversion.
  bool is_list = false;
};
// UNIMPLEMENTED for types that C++ code has no use for yet ("func" and lists of it).
absl::StatusOr<CppAttrType> CppTypeOfAttr(absl::string_view attr_type);

// The value as a C++ expression: `8`, `"NHWC"`, `::gradflow::DT_INT32`, `{1, 2}`.
// UNIMPLEMENTED for tensors and functions.
absl::StatusOr<std::string> CppLiteral(absl::string_view attr_type, const AttrValue& value);

// "num_bits" -> "NumBits"
std::string CamelCase(absl::string_view name);
// `name`, with an underscore behind it if it is a word of C++ or of the wrapper classes.
std::string SafeName(absl::string_view name);

// `text` as lines of comment of at most 100 columns, each behind `indent` and "// ". Paragraphs
// and lists stay apart.
std::string Comment(absl::string_view indent, absl::string_view text);
// "* name: text" as such lines; what does not fit on the first is indented below it.
std::string ItemComment(absl::string_view indent, absl::string_view name, absl::string_view text);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_GEN_WRAPPER_TEXT_H_
