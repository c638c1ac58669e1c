#include "gradflow/codegen/op_wrapper.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/status.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow {
namespace {

// Returns the names of the attributes that are inferred from the inputs.
std::set<std::string> InferredAttrs(const OpDef& def) {
  std::set<std::string> names;
  for (const OpDef::ArgDef& arg : def.input_arg()) {
    names.insert({arg.type_attr(), arg.number_attr(), arg.type_list_attr()});
  }
  return names;
}

}  // namespace

absl::StatusOr<OpWrapper> OpWrapper::Make(const OpRegistration& op) {
  OpWrapper wrapper(op);
  if (absl::Status status = wrapper.Read(); !status.ok()) {
    return errors::Prefix(absl::StrCat("op '", op.def().name(), "': "), status);
  }
  return wrapper;
}

std::string OpWrapper::Renamed(const std::string& name) const {
  for (const auto& [from, to] : op_.api().renames) {
    if (from == name) return to;
  }
  return name;
}

// Returns `text` with the C++ names of renamed arguments.
std::string OpWrapper::Doc(absl::string_view text) const {
  std::vector<std::pair<std::string, std::string>> replacements;
  for (const auto& [from, to] : op_.api().renames) {
    replacements.emplace_back(absl::StrCat("`", from, "`"), absl::StrCat("`", to, "`"));
  }
  return absl::StrReplaceAll(text, replacements);
}

absl::Status OpWrapper::Read() {
  const OpDef& def = op_.def();
  name_ = def.name();
  const auto read_args = [&](const auto& args, std::vector<Argument>* result) {
    for (const OpDef::ArgDef& arg : args) {
      result->push_back(
          {{arg.name(), SafeName(Renamed(arg.name())), Doc(arg.description())}, IsListArg(arg)});
    }
  };
  read_args(def.input_arg(), &inputs_);
  read_args(def.output_arg(), &outputs_);
  const std::set<std::string> inferred = InferredAttrs(def);
  for (const OpDef::AttrDef& attr : def.attr()) {
    if (inferred.count(attr.name()) > 0) continue;
    Attribute attribute{{attr.name(), SafeName(Renamed(attr.name())), Doc(attr.description())},
                        {},
                        "",
                        "",
                        "",
                        &attr};
    absl::StatusOr<CppAttrType> type = CppTypeOfAttr(attr.type());
    if (!type.ok()) {
      return errors::Prefix(absl::StrCat("attribute '", attr.name(), "': "), type.status());
    }
    attribute.type = *std::move(type);
    if (!attr.has_default_value()) {
      required_.push_back(std::move(attribute));
      continue;
    }
    absl::StatusOr<std::string> value = CppLiteral(attr.type(), attr.default_value());
    if (!value.ok()) {
      return errors::Prefix(absl::StrCat("attribute '", attr.name(), "': "), value.status());
    }
    attribute.default_value = *std::move(value);
    attribute.setter = SafeName(CamelCase(Renamed(attr.name())));
    attribute.member = absl::StrCat(Renamed(attr.name()), "_");
    // A setter with the name of the class would be a constructor.
    if (attribute.setter == name_) attribute.setter += "_";
    optional_.push_back(std::move(attribute));
  }
  return absl::OkStatus();
}

std::string OpWrapper::ClassComment() const {
  const OpDef& def = op_.def();
  std::string text = Comment("", Doc(def.summary()));
  if (!def.description().empty()) {
    absl::StrAppend(&text, "//\n", Comment("", Doc(def.description())));
  }
  absl::StrAppend(&text, "//\n// Arguments:\n",
                  ItemComment("", "scope", "The scope that the node is added to."));
  for (const Argument& input : inputs_) text += ItemComment("", input.cpp_name, input.doc);
  for (const Attribute& attr : required_) text += ItemComment("", attr.cpp_name, attr.doc);
  if (!optional_.empty()) {
    absl::StrAppend(&text, "//\n// Optional attributes (see `Attrs`):\n");
    for (const Attribute& attr : optional_) {
      text += ItemComment(
          "", attr.setter,
          absl::StrCat(attr.doc, " Defaults to ",
                       absl::StrReplaceAll(attr.default_value, {{"::gradflow::", ""}}), "."));
    }
  }
  absl::StrAppend(&text, "//\n// Members:\n");
  for (const Argument& output : outputs_) text += ItemComment("", output.cpp_name, output.doc);
  text += ItemComment("", "operation", "The node.");
  return text;
}

std::string OpWrapper::AttrsStruct() const {
  if (optional_.empty()) return "";
  std::string text = "  struct Attrs {\n";
  for (const Attribute& attr : optional_) {
    const std::string value = attr.type.is_list
                                  ? absl::StrCat(attr.type.member, "(x.begin(), x.end())")
                              : attr.type.member == "::std::string" ? "::std::string(x)"
                                                                    : "x";
    absl::StrAppend(&text, Comment("    ", attr.doc), "    [[nodiscard]] Attrs ", attr.setter, "(",
                    attr.type.parameter, " x) const {\n", "      Attrs ret = *this;\n",
                    "      ret.", attr.member, " = ", value, ";\n", "      return ret;\n",
                    "    }\n");
  }
  text += "\n";
  for (const Attribute& attr : optional_) {
    absl::StrAppend(&text, "    ", attr.type.member, " ", attr.member, " = ", attr.default_value,
                    ";\n");
  }
  text += "  };\n\n";
  return text;
}

// Returns the constructor up to the closing parenthesis. `qualifier` is "Name::" in a definition.
std::string OpWrapper::Constructor(absl::string_view qualifier, bool with_attrs) const {
  std::vector<std::string> parameters = {"const ::gradflow::Scope& scope"};
  for (const Argument& input : inputs_) {
    parameters.push_back(absl::StrCat("const ::gradflow::", input.is_list ? "InputList" : "Input",
                                      "& ", input.cpp_name));
  }
  for (const Attribute& attr : required_) {
    parameters.push_back(absl::StrCat(attr.type.parameter, " ", attr.cpp_name));
  }
  if (with_attrs) parameters.push_back(absl::StrCat("const ", qualifier, "Attrs& attrs"));
  const bool declares = qualifier.empty();
  const std::string head = absl::StrCat(declares ? "  " : "", qualifier, name_, "(");
  // A constructor with a single parameter is explicit.
  const char* is_explicit = declares && parameters.size() == 1 ? "explicit " : "";
  const std::string line = absl::StrJoin(parameters, ", ");
  // Uses a single line if ") {" also fits, otherwise a line per parameter.
  const bool fits = head.size() + line.size() + 3 <= 100;
  const std::string separator = absl::StrCat(",\n", std::string(head.size(), ' '));
  return absl::StrCat(is_explicit, head.substr(declares ? 2 : 0),
                      fits ? line : absl::StrJoin(parameters, separator), ")");
}

std::string OpWrapper::Accessors() const {
  if (outputs_.empty()) {
    return "  operator ::gradflow::Operation() const { return operation; }\n";
  }
  if (outputs_.size() > 1) return "";
  const std::string& output = outputs_[0].cpp_name;
  if (outputs_[0].is_list) {
    return absl::StrCat("  ::gradflow::Output operator[](size_t index) const { return ", output,
                        "[index]; }\n");
  }
  return absl::StrCat("  operator ::gradflow::Output() const { return ", output, "; }\n",
                      "  operator ::gradflow::Input() const { return ", output, "; }\n",
                      "  ::gradflow::Node* node() const { return ", output, ".node(); }\n");
}

std::string OpWrapper::Declaration() const {
  std::string text = ClassComment();
  absl::StrAppend(&text, "class ", name_, " {\n public:\n", AttrsStruct());
  absl::StrAppend(&text, "  ", Constructor("", false), ";\n");
  if (!optional_.empty()) absl::StrAppend(&text, "  ", Constructor("", true), ";\n");
  text += Accessors();
  text += "\n";
  for (const Attribute& attr : optional_) {
    absl::StrAppend(&text, "  static Attrs ", attr.setter, "(", attr.type.parameter,
                    " x) { return Attrs().", attr.setter, "(x); }\n");
  }
  if (!optional_.empty()) text += "\n";
  text += "  ::gradflow::Operation operation;\n";
  for (const Argument& output : outputs_) {
    absl::StrAppend(&text, "  ::gradflow::", output.is_list ? "OutputList" : "Output", " ",
                    output.cpp_name, ";\n");
  }
  text += "};\n";
  for (const std::string& alias : op_.api().aliases) {
    absl::StrAppend(&text, "using ", alias, " = ", name_, ";\n");
  }
  return text;
}

bool OpWrapper::HasSeveralListOutputs() const {
  return std::count_if(outputs_.begin(), outputs_.end(), [](auto& o) { return o.is_list; }) > 1;
}

std::string OpWrapper::OutputAssignments() const {
  if (outputs_.empty()) return "";
  std::string text = "  if (operation.node() == nullptr) return;\n";
  if (HasSeveralListOutputs()) {
    // The attributes of the node determine the lengths of the lists.
    absl::StrAppend(&text, "  ::gradflow::NameRangeMap ranges;\n",
                    "  if (!::gradflow::NameRangesForNode(operation.node()->def(), ",
                    "operation.node()->op_def(), nullptr,\n",
                    "                                     &ranges).ok()) {\n    return;\n  }\n");
    for (const Argument& output : outputs_) {
      const std::string range = absl::StrCat("ranges[\"", output.name, "\"]");
      if (output.is_list) {
        absl::StrAppend(&text, "  for (int i = ", range, ".first; i < ", range,
                        ".second; ++i) {\n    this->", output.cpp_name,
                        ".emplace_back(operation, i);\n  }\n");
      } else {
        absl::StrAppend(&text, "  this->", output.cpp_name, " = ::gradflow::Output(operation, ",
                        range, ".first);\n");
      }
    }
    return text;
  }
  // Outputs after the list are indexed from the end.
  bool behind_list = false;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Argument& output = outputs_[i];
    if (output.is_list) {
      behind_list = true;
      absl::StrAppend(&text, "  const int ", output.cpp_name, "_end = operation.num_outputs() - ",
                      outputs_.size() - 1 - i, ";\n", "  for (int i = ", i, "; i < ",
                      output.cpp_name, "_end; ++i) this->", output.cpp_name,
                      ".emplace_back(operation, i);\n");
      continue;
    }
    const std::string index = behind_list
                                  ? absl::StrCat("operation.num_outputs() - ", outputs_.size() - i)
                                  : absl::StrCat(i);
    absl::StrAppend(&text, "  this->", output.cpp_name, " = ::gradflow::Output(operation, ", index,
                    ");\n");
  }
  return text;
}

std::string OpWrapper::Definition() const {
  const std::string qualifier = absl::StrCat(name_, "::");
  std::string text;
  if (!optional_.empty()) {
    std::vector<std::string> arguments = {"scope"};
    for (const Argument& input : inputs_) arguments.push_back(input.cpp_name);
    for (const Attribute& attr : required_) arguments.push_back(attr.cpp_name);
    arguments.push_back("Attrs()");
    absl::StrAppend(&text, Constructor(qualifier, false), "\n    : ", name_, "(",
                    absl::StrJoin(arguments, ", "), ") {}\n\n");
  }
  absl::StrAppend(&text, Constructor(qualifier, !optional_.empty()), " {\n",
                  "  ::gradflow::OpBuilder recorder(scope, \"", name_, "\");\n");
  for (const Argument& input : inputs_) {
    absl::StrAppend(&text, "  recorder.Input(", input.cpp_name, ");\n");
  }
  for (const Attribute& attr : required_) {
    absl::StrAppend(&text, "  recorder.Attr(\"", attr.name, "\", ", attr.cpp_name, ");\n");
  }
  for (const Attribute& attr : optional_) {
    absl::StrAppend(&text, "  recorder.Attr(\"", attr.name, "\", attrs.", attr.member, ");\n");
  }
  absl::StrAppend(&text, "  operation = recorder.Finish();\n", OutputAssignments(), "}\n");
  return text;
}

}  // namespace gradflow
