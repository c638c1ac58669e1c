#include "gradflow/core/op_def_builder.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/op_def_internal.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/core/status.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/proto/types.pb.h"

namespace gradflow {
namespace {

bool IsWordChar(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Tokenizes a spec from the left, skipping white space between tokens.
class SpecReader {
 public:
  explicit SpecReader(absl::string_view spec) { Advance(spec); }

  // The unread rest.
  absl::string_view rest() const { return rest_; }

  bool Consume(absl::string_view token) {
    if (!absl::StartsWith(rest_, token)) return false;
    Advance(rest_.substr(token.size()));
    return true;
  }

  // Consumes letters, digits and '_'. Returns "" if there are none.
  absl::string_view Word() {
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), IsWordChar);
    const absl::string_view word = rest_.substr(0, end - rest_.begin());
    Advance(rest_.substr(word.size()));
    return word;
  }

  bool ConsumeInt(int64_t* value) {
    const size_t end = std::min(rest_.find_first_not_of("+-0123456789"), rest_.size());
    if (!absl::SimpleAtoi(rest_.substr(0, end), value)) return false;
    Advance(rest_.substr(end));
    return true;
  }

  // Consumes a string in single or double quotes, with C escapes.
  bool ConsumeQuoted(std::string* value) {
    if (rest_.empty() || (rest_[0] != '"' && rest_[0] != '\'')) return false;
    size_t end = 1;
    while (end < rest_.size() && rest_[end] != rest_[0]) end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size() || !absl::CUnescape(rest_.substr(1, end - 1), value)) return false;
    Advance(rest_.substr(end + 1));
    return true;
  }

  // Returns an error such as "expected ':', but found 'abc'".
  absl::Status Expected(absl::string_view what) const {
    const std::string found =
        rest_.empty() ? "nothing" : absl::StrCat("'", absl::CEscape(rest_.substr(0, 80)), "'");
    return errors::InvalidArgument("expected ", what, ", but found ", found);
  }

 private:
  void Advance(absl::string_view rest) { rest_ = absl::StripLeadingAsciiWhitespace(rest); }

  absl::string_view rest_;
};

// Parses "float" or "DT_FLOAT".
bool TypeFromWord(absl::string_view word, DataType* dtype) {
  return DataTypeFromString(word, dtype) || DataType_Parse(std::string(word), dtype);
}

// Returns the types of a named set, or null if there is no such set.
const DataTypeVector* TypeSet(absl::string_view name) {
  if (name == "numbertype" || name == "numerictype") return &NumberDataTypes();
  if (name == "realnumbertype" || name == "realnumerictype") return &RealNumberDataTypes();
  if (name == "quantizedtype") return &QuantizedDataTypes();
  return nullptr;
}

// Parses a set after its '{': types and named sets of types, or strings. Allows a trailing comma.
absl::Status ParseSet(SpecReader* reader, OpDef::AttrDef* attr) {
  AttrValue::ListValue* allowed = attr->mutable_allowed_values()->mutable_list();
  do {
    if (std::string text; reader->ConsumeQuoted(&text)) {
      allowed->add_s(std::move(text));
    } else {
      const SpecReader before = *reader;
      const absl::string_view word = reader->Word();
      DataType dtype;
      if (const DataTypeVector* types = TypeSet(word)) {
        allowed->mutable_type()->Add(types->begin(), types->end());
      } else if (TypeFromWord(word, &dtype)) {
        allowed->add_type(dtype);
      } else {
        return before.Expected("a type or a quoted string");
      }
    }
    if (allowed->type_size() > 0 && allowed->s_size() > 0) {
      return errors::InvalidArgument("a set holds types or strings, but this holds both");
    }
  } while (reader->Consume(",") && !absl::StartsWith(reader->rest(), "}"));
  if (!reader->Consume("}")) return reader->Expected("',' or '}'");
  attr->set_type(allowed->s_size() > 0 ? "string" : "type");
  return absl::OkStatus();
}

// Parses a type other than list(...): int, {half, float}, numbertype.
absl::Status ParseElementType(SpecReader* reader, OpDef::AttrDef* attr) {
  if (reader->Consume("{")) return ParseSet(reader, attr);
  const SpecReader before = *reader;
  const absl::string_view word = reader->Word();
  if (const DataTypeVector* types = TypeSet(word)) {
    attr->set_type("type");
    SetAttrValue(*types, attr->mutable_allowed_values());
    return absl::OkStatus();
  }
  if (!IsAttrType(word)) return before.Expected("a type of attributes");
  attr->set_type(std::string(word));
  return absl::OkStatus();
}

// Parses the default value of an attribute, in protobuf text format. A type may also be written as
// in an op definition, such as float. Returns false if `text` is malformed.
bool ParseDefault(const std::string& type, absl::string_view text, AttrValue* value) {
  if (ParseAttrValue(type, text, value)) return true;
  SpecReader reader(text);
  DataType dtype;
  if (type == "type") {
    if (!DataTypeFromString(reader.Word(), &dtype)) return false;
    value->set_type(dtype);
    return reader.rest().empty();
  }
  if (type != "list(type)" || !reader.Consume("[")) return false;
  value->Clear();
  do {
    if (!TypeFromWord(reader.Word(), &dtype)) return false;
    value->mutable_list()->add_type(dtype);
  } while (reader.Consume(","));
  return reader.Consume("]") && reader.rest().empty();
}

absl::Status ParseAttr(absl::string_view spec, OpDef::AttrDef* attr) {
  SpecReader reader(spec);
  attr->set_name(std::string(reader.Word()));
  if (attr->name().empty()) return reader.Expected("a name");
  if (!reader.Consume(":")) return reader.Expected("':'");
  SpecReader list = reader;
  if (list.Word() == "list" && list.Consume("(")) {
    reader = list;
    GRADFLOW_RETURN_IF_ERROR(ParseElementType(&reader, attr));
    if (!reader.Consume(")")) return reader.Expected("')'");
    attr->set_type(absl::StrCat("list(", attr->type(), ")"));
  } else {
    GRADFLOW_RETURN_IF_ERROR(ParseElementType(&reader, attr));
  }
  if (reader.Consume(">=")) {
    int64_t minimum = 0;
    if (!reader.ConsumeInt(&minimum)) return reader.Expected("an integer");
    attr->set_has_minimum(true);
    attr->set_minimum(minimum);
  }
  if (!reader.Consume("=")) {
    return reader.rest().empty() ? absl::OkStatus() : reader.Expected("'>=', '=' or the end");
  }
  if (!ParseDefault(attr->type(), reader.rest(), attr->mutable_default_value())) {
    return reader.Expected(absl::StrCat("a default of type ", attr->type()));
  }
  return absl::OkStatus();
}

OpDef::AttrDef* FindMutableAttr(OpDef* op_def, absl::string_view name) {
  return const_cast<OpDef::AttrDef*>(FindAttrDef(*op_def, name));
}

// Sets a missing minimum of an attribute to 1. The attribute is the length of an argument, or the
// list of its types. Does nothing if `attr` is null.
void SetDefaultMinimum(OpDef::AttrDef* attr) {
  if (attr == nullptr || attr->has_minimum()) return;
  attr->set_has_minimum(true);
  attr->set_minimum(1);
}

// REQUIRES: the attributes of `op_def` have been parsed
absl::Status ParseArg(absl::string_view spec, OpDef* op_def, OpDef::ArgDef* arg) {
  SpecReader reader(spec);
  arg->set_name(std::string(reader.Word()));
  if (arg->name().empty()) return reader.Expected("a name");
  if (!reader.Consume(":")) return reader.Expected("':'");
  SpecReader ref = reader;
  if (ref.Word() == "Ref" && ref.Consume("(")) {
    reader = ref;
    arg->set_is_ref(true);
  }
  SpecReader before = reader;
  absl::string_view type = reader.Word();
  if (reader.Consume("*")) {
    arg->set_number_attr(std::string(type));
    SetDefaultMinimum(FindMutableAttr(op_def, type));
    before = reader;
    type = reader.Word();
  }
  DataType dtype;
  OpDef::AttrDef* attr = FindMutableAttr(op_def, type);
  if (DataTypeFromString(type, &dtype)) {
    arg->set_type(dtype);
    // Ops that use resources have side effects.
    if (dtype == DT_RESOURCE) op_def->set_is_stateful(true);
  } else if (attr != nullptr && attr->type() == "type") {
    arg->set_type_attr(attr->name());
  } else if (attr != nullptr && attr->type() == "list(type)") {
    arg->set_type_list_attr(attr->name());
    SetDefaultMinimum(attr);
  } else {
    return before.Expected("a type, or an attribute of type type or list(type)");
  }
  if (arg->is_ref() && !reader.Consume(")")) return reader.Expected("')'");
  return reader.rest().empty() ? absl::OkStatus() : reader.Expected("the end");
}

// ---- Documentation ----

size_t Indent(absl::string_view line) {
  return line.size() - absl::StripLeadingAsciiWhitespace(line).size();
}

// Joins lines, dropping leading and trailing blank lines and the common indentation.
std::string JoinLines(absl::Span<const absl::string_view> lines) {
  while (!lines.empty() && lines.front().empty()) lines.remove_prefix(1);
  while (!lines.empty() && lines.back().empty()) lines.remove_suffix(1);
  size_t indent = absl::string_view::npos;
  for (const absl::string_view line : lines) {
    if (!line.empty()) indent = std::min(indent, Indent(line));
  }
  return absl::StrJoin(lines, "\n", [indent](std::string* out, absl::string_view line) {
    if (!line.empty()) absl::StrAppend(out, line.substr(indent));
  });
}

// Splits "name: text". Returns false if the line has another form.
bool IsEntry(absl::string_view line, absl::string_view* name, absl::string_view* text) {
  SpecReader reader(line);
  *name = reader.Word();
  if (name->empty() || line.size() == name->size() || line[name->size()] != ':') return false;
  *text = line.substr(name->size() + 1);
  if (!text->empty() && (*text)[0] != ' ') return false;
  *text = absl::StripAsciiWhitespace(*text);
  return true;
}

// Returns the description of the argument or attribute `name`, or null if there is none.
std::string* FindDescription(OpDef* op_def, absl::string_view name) {
  for (auto& arg : *op_def->mutable_input_arg()) {
    if (arg.name() == name) return arg.mutable_description();
  }
  for (auto& arg : *op_def->mutable_output_arg()) {
    if (arg.name() == name) return arg.mutable_description();
  }
  OpDef::AttrDef* attr = FindMutableAttr(op_def, name);
  return attr == nullptr ? nullptr : attr->mutable_description();
}

void ParseDoc(absl::string_view doc, OpDef* op_def, std::vector<std::string>* faults) {
  std::vector<absl::string_view> lines = absl::StrSplit(doc, '\n');
  for (absl::string_view& line : lines) line = absl::StripTrailingAsciiWhitespace(line);
  const auto is_text = [](absl::string_view line) { return !line.empty(); };
  lines.erase(lines.begin(), std::find_if(lines.begin(), lines.end(), is_text));
  if (lines.empty()) return;
  op_def->set_summary(std::string(absl::StripAsciiWhitespace(lines[0])));
  lines.erase(lines.begin());

  size_t indent = absl::string_view::npos;
  for (const absl::string_view line : lines) {
    if (is_text(line)) indent = std::min(indent, Indent(line));
  }
  for (absl::string_view& line : lines) line.remove_prefix(std::min(indent, line.size()));

  // Entries are at the end: only entries and their continuation lines follow the first entry. Prose
  // with a colon ("Note: ...") before the first entry is not an entry.
  absl::string_view name, text;
  size_t first = lines.size();
  for (size_t i = lines.size(); i-- > 0;) {
    if (lines[i].empty() || Indent(lines[i]) > 0) continue;
    if (!IsEntry(lines[i], &name, &text)) break;
    if (FindDescription(op_def, name) != nullptr) first = i;
  }
  op_def->set_description(JoinLines(absl::MakeSpan(lines).first(first)));

  for (size_t i = first; i < lines.size();) {
    IsEntry(lines[i], &name, &text);
    size_t end = i + 1;
    while (end < lines.size() && (lines[end].empty() || Indent(lines[end]) > 0)) ++end;
    const std::string more = JoinLines(absl::MakeSpan(lines).subspan(i + 1, end - i - 1));
    std::string* description = FindDescription(op_def, name);
    if (description != nullptr) {
      *description = absl::StrCat(text, text.empty() || more.empty() ? "" : "\n", more);
    } else {
      faults->push_back(absl::StrCat("the documentation describes '", name,
                                     "', which is not an argument or attribute"));
    }
    i = end;
  }
}

}  // namespace

OpDefBuilder& OpDefBuilder::Attr(absl::string_view spec) {
  attrs_.emplace_back(spec);
  return *this;
}

OpDefBuilder& OpDefBuilder::Input(absl::string_view spec) {
  inputs_.emplace_back(spec);
  return *this;
}

OpDefBuilder& OpDefBuilder::Output(absl::string_view spec) {
  outputs_.emplace_back(spec);
  return *this;
}

OpDefBuilder& OpDefBuilder::SetIsCommutative() {
  commutative_ = true;
  return *this;
}

OpDefBuilder& OpDefBuilder::SetIsAggregate() {
  aggregate_ = true;
  return *this;
}

OpDefBuilder& OpDefBuilder::SetIsStateful() {
  stateful_ = true;
  return *this;
}

OpDefBuilder& OpDefBuilder::SetAllowsUninitializedInput() {
  allows_uninitialized_input_ = true;
  return *this;
}

OpDefBuilder& OpDefBuilder::Deprecated(int version, absl::string_view explanation) {
  deprecation_version_ = version;
  deprecation_explanation_ = std::string(explanation);
  return *this;
}

OpDefBuilder& OpDefBuilder::Doc(absl::string_view text) {
  doc_ = std::string(text);
  return *this;
}

absl::Status OpDefBuilder::Finalize(OpDef* op_def) const {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(op_def, "OpDefBuilder::Finalize", "op_def"));
  OpDef def;
  GRADFLOW_RETURN_IF_ERROR(FinalizeUnchecked(&def));
  GRADFLOW_RETURN_IF_ERROR(ValidateOpDef(def));
  op_def->Swap(&def);
  return absl::OkStatus();
}

absl::Status OpDefBuilder::FinalizeUnchecked(OpDef* op_def) const {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(op_def, "OpDefBuilder::FinalizeUnchecked", "op_def"));
  OpDef def;
  def.set_name(name_);
  def.set_is_commutative(commutative_);
  def.set_is_aggregate(aggregate_);
  def.set_is_stateful(stateful_);
  def.set_allows_uninitialized_input(allows_uninitialized_input_);
  if (deprecation_version_ != 0 || !deprecation_explanation_.empty()) {
    def.mutable_deprecation()->set_version(deprecation_version_);
    def.mutable_deprecation()->set_explanation(deprecation_explanation_);
  }

  std::vector<std::string> faults;
  const auto check = [&](absl::string_view what, const std::string& spec,
                         const absl::Status& status) {
    if (status.ok()) return;
    faults.push_back(absl::StrCat(what, " '", absl::CEscape(spec), "': ", status.message()));
  };
  for (const std::string& spec : attrs_) check("attribute", spec, ParseAttr(spec, def.add_attr()));
  for (const std::string& spec : inputs_) {
    check("input", spec, ParseArg(spec, &def, def.add_input_arg()));
  }
  for (const std::string& spec : outputs_) {
    check("output", spec, ParseArg(spec, &def, def.add_output_arg()));
  }
  ParseDoc(doc_, &def, &faults);
  if (!faults.empty()) {
    return errors::InvalidArgument("op '", absl::CEscape(name_), "': ", JoinFaults(faults));
  }
  op_def->Swap(&def);
  return absl::OkStatus();
}

}  // namespace gradflow
