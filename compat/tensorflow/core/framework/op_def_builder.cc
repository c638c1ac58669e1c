#include "tensorflow/core/framework/op_def_builder.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace {

// A spec that is parsed from left to right.
class Spec {
 public:
  explicit Spec(absl::string_view text) : rest_(text) { SkipSpace(); }

  absl::string_view rest() const { return rest_; }
  bool empty() const { return rest_.empty(); }
  // The unparsed rest, including leading white space.
  absl::string_view raw() const { return raw_; }

  bool Consume(absl::string_view token) {
    if (!absl::ConsumePrefix(&rest_, token)) return false;
    SkipSpace();
    return true;
  }
  // Consumes a name: a letter, followed by letters, digits and '_'.
  bool ConsumeName(std::string* name = nullptr) {
    const auto is_part = [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
    };
    if (rest_.empty() || !absl::ascii_isalpha(static_cast<unsigned char>(rest_[0]))) return false;
    const size_t size = std::find_if_not(rest_.begin(), rest_.end(), is_part) - rest_.begin();
    if (name != nullptr) *name = std::string(rest_.substr(0, size));
    rest_.remove_prefix(size);
    SkipSpace();
    return true;
  }
  // Consumes a string in single or double quotes.
  bool ConsumeQuoted() {
    if (rest_.empty() || (rest_[0] != '"' && rest_[0] != '\'')) return false;
    size_t end = 1;
    while (end < rest_.size() && rest_[end] != rest_[0]) end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size()) return false;
    rest_.remove_prefix(end + 1);
    SkipSpace();
    return true;
  }
  bool ConsumeInt() {
    Consume("-");
    const size_t end = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    rest_.remove_prefix(end);
    SkipSpace();
    return end > 0;
  }

 private:
  void SkipSpace() {
    raw_ = rest_;
    rest_ = absl::StripLeadingAsciiWhitespace(rest_);
  }

  absl::string_view rest_;
  absl::string_view raw_;
};

bool IsTypeWord(const std::string& word) {
  DataType dtype;
  return word == "numbertype" || word == "numerictype" || word == "realnumbertype" ||
         word == "realnumerictype" || word == "quantizedtype" || DataTypeFromString(word, &dtype);
}

// Returns the first fault in a set, starting after its '{'.
std::string SetFault(Spec* spec) {
  const bool is_text = absl::StartsWith(spec->rest(), "\"") || absl::StartsWith(spec->rest(), "'");
  do {
    const absl::string_view at = spec->rest();
    std::string word;
    if (is_text) {
      if (!spec->ConsumeQuoted())
        return absl::StrCat("Trouble parsing allowed string at '", at, "'");
    } else if (!spec->ConsumeName(&word)) {
      return absl::StrCat("Trouble parsing type string at '", at, "'");
    } else if (!IsTypeWord(word)) {
      return absl::StrCat("Unrecognized type string '", word, "'");
    }
    if (spec->Consume(",") && spec->Consume("}")) return "";
  } while (!spec->empty() && !spec->Consume("}"));
  return "";
}

// Returns the fault in the spec of an attribute; "" if there is none. `is_wrong` means that there
// is a fault.
std::string AttrFault(absl::string_view text, bool is_wrong) {
  Spec spec(text);
  if (!spec.ConsumeName() || !spec.Consume(":")) return "Trouble parsing '<name>:'";
  if (!is_wrong) return "";
  const bool is_list = spec.Consume("list(");
  if (spec.Consume("{")) {
    const std::string fault = SetFault(&spec);
    if (!fault.empty()) return fault;
  } else {
    const absl::string_view at = spec.rest();
    std::string word;
    const bool is_name = spec.ConsumeName(&word);
    static constexpr absl::string_view kTypes[] = {"string", "int",    "float", "bool", "type",
                                                   "shape",  "tensor", "func",  "list", "any"};
    if (!is_name || (!IsTypeWord(word) &&
                     std::find(std::begin(kTypes), std::end(kTypes), word) == std::end(kTypes))) {
      return absl::StrCat("Trouble parsing type string at '", at, "'");
    }
  }
  if (is_list && !spec.Consume(")")) {
    return absl::StrCat("Expected ) to close 'list(', not: '", spec.rest(), "'");
  }
  if (absl::StartsWith(spec.rest(), ">=")) {
    const absl::string_view limit = spec.rest().substr(2);
    spec.Consume(">=");
    if (!spec.ConsumeInt() || (spec.rest().empty() && is_wrong)) {
      return absl::StrCat("Could not parse integer lower limit after '>=', found '", limit,
                          "' instead");
    }
  }
  if (spec.Consume("=")) return absl::StrCat("Could not parse default value '", spec.rest(), "'");
  return absl::StrCat("Extra '", spec.rest(), "' unparsed at the end");
}

// Returns the type of an attribute; "" if it does not exist.
std::string AttrType(const OpDef& op_def, const std::string& name) {
  for (const OpDef::AttrDef& attr : op_def.attr()) {
    if (attr.name() == name) return attr.type();
  }
  return "";
}

// Returns the fault in the spec of an input or output; "" if there is none.
std::string ArgFault(absl::string_view text, const OpDef& op_def) {
  Spec spec(text);
  std::string name, type, number;
  if (!spec.ConsumeName(&name) || !spec.Consume(":") ||
      std::any_of(name.begin(), name.end(), absl::ascii_isupper)) {
    return "Trouble parsing 'name:'";
  }
  const bool is_ref = [&spec] {
    Spec ref = spec;
    std::string word;
    if (!ref.ConsumeName(&word) || word != "Ref" || !ref.Consume("(")) return false;
    spec = ref;
    return true;
  }();
  if (!spec.ConsumeName(&type)) {
    return absl::StrCat("Trouble parsing either a type or an attr name at '", spec.rest(), "'");
  }
  Spec product = spec;
  if (std::string element; product.Consume("*") && product.ConsumeName(&element)) {
    spec = product;
    number = type;
    type = element;
  }
  if (is_ref && !spec.Consume(")")) {
    return absl::StrCat("Did not find closing ')' for 'Ref(', instead found: '", spec.rest(), "'");
  }
  if (!spec.empty()) return absl::StrCat("Extra '", spec.rest(), "' unparsed at the end");
  for (const std::string& attr : {number, type}) {
    DataType dtype;
    if (attr.empty() || (attr == type && DataTypeFromString(type, &dtype))) continue;
    const std::string attr_type = AttrType(op_def, attr);
    if (attr_type.empty()) return absl::StrCat("Reference to unknown attr '", attr, "'");
    const bool is_number = attr == number;
    if (is_number ? attr_type != "int" : attr_type != "type" && attr_type != "list(type)") {
      return absl::StrCat("Reference to attr '", attr, "' with type ", attr_type, " that isn't ",
                          is_number ? "int" : "type or list(type)");
    }
  }
  return "";
}

}  // namespace

std::string OpDefBuilder::SpecFaults() const {
  std::string faults;
  const auto add = [&](const char* kind, const std::string& spec, const std::string& fault) {
    if (fault.empty()) return;
    absl::StrAppend(&faults, faults.empty() ? "" : "\n", fault, " from ", kind, "(\"", spec,
                    "\") for Op ", name_);
  };
  OpDef attrs;
  for (const std::string& spec : attrs_) {
    OpDef parsed;
    const bool is_wrong = !gradflow::OpDefBuilder("Op").Attr(spec).FinalizeUnchecked(&parsed).ok();
    add("Attr", spec, AttrFault(spec, is_wrong));
    attrs.MergeFrom(parsed);
  }
  for (const std::string& spec : inputs_) add("Input", spec, ArgFault(spec, attrs));
  for (const std::string& spec : outputs_) add("Output", spec, ArgFault(spec, attrs));
  return faults;
}

OpDefBuilder& OpDefBuilder::Doc(absl::string_view text) {
  if (has_doc_) status_.Update(errors::InvalidArgument("Extra call to Doc() for Op ", name_));
  has_doc_ = true;
  builder_.Doc(text);
  return *this;
}

OpDefBuilder& OpDefBuilder::SetShapeFn(OpShapeInferenceFn fn) {
  if (shape_fn_ != nullptr) {
    status_.Update(errors::InvalidArgument("SetShapeFn called twice for Op ", name_));
  }
  shape_fn_ = std::move(fn);
  return *this;
}

absl::Status OpDefBuilder::Finalize(OpRegistrationData* op_reg_data) const {
  TF_RETURN_IF_ERROR(status_);
  if (const std::string faults = SpecFaults(); !faults.empty()) {
    return errors::InvalidArgument(faults);
  }
  OpDef op_def;
  if (absl::Status status = builder_.FinalizeUnchecked(&op_def); !status.ok()) {
    return errors::InvalidArgument(absl::StripPrefix(status.message(), "op 'Op': "), " for Op ",
                                   name_);
  }
  op_def.set_name(name_);
  if (is_distributed_) op_def.set_is_distributed_communication(true);
  op_reg_data->op_def = std::move(op_def);
  op_reg_data->shape_inference_fn = shape_fn_;
  return absl::OkStatus();
}

}  // namespace tensorflow
