#include "gradflow/codegen/definitions.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gradflow/codegen/op_definitions.pb.h"
#include "gradflow/core/status.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow {
namespace {

constexpr char kNotice[] =
    "# Written by `./dev ops` from the families of this folder. Do not edit.\n";

// Keeps the first error of the parser.
class FirstParseError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty()) text_ = absl::StrCat(line + 1, ":", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void AddDefinition(const OpRegistration& op, const OpFamily& family, OpDefinitions* definitions) {
  OpDefinition* definition = definitions->add_op();
  definition->set_family(family.name);
  *definition->mutable_def() = op.def();
  definition->set_group(op.api().group);
  for (const std::string& alias : op.api().aliases) definition->add_alias(alias);
  for (const auto& [from, to] : op.api().renames) {
    OpDefinition::Rename* rename = definition->add_rename();
    rename->set_from(from);
    rename->set_to(to);
  }
  definition->set_hand_written(op.api().hand_written);
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> DefinitionsText(
    absl::Span<const OpFamily> families) {
  std::map<std::string, OpDefinitions> of_folder;
  for (const OpFamily& family : families) {
    Registry registry;
    family.registration(registry);
    if (const absl::Status status = registry.status(); !status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("ops/", family.name, ".cc: ", status.message()));
    }
    const std::pair<std::string, std::string> path = absl::StrSplit(family.name, '/');
    for (const OpRegistration* op : registry.Ops()) {
      AddDefinition(*op, family, &of_folder[path.first]);
    }
  }
  std::map<std::string, std::string> texts;
  for (const auto& [folder, definitions] : of_folder) {
    std::string text;
    if (!google::protobuf::TextFormat::PrintToString(definitions, &text)) {
      return errors::Internal("the definitions of ops/", folder, " could not be printed");
    }
    texts[folder] = absl::StrCat(kNotice, text);
  }
  return texts;
}

absl::Status RegisterDefinitions(absl::string_view text, Registry* registry) {
  OpDefinitions definitions;
  google::protobuf::TextFormat::Parser parser;
  FirstParseError error;
  parser.RecordErrorsTo(&error);
  if (!parser.ParseFromString(std::string(text), &definitions)) {
    return errors::InvalidArgument("expected a list of op definitions: ", error.text());
  }
  for (OpDefinition& definition : *definitions.mutable_op()) {
    OpApi api;
    api.group = definition.group();
    api.aliases.assign(definition.alias().begin(), definition.alias().end());
    for (const OpDefinition::Rename& rename : definition.rename()) {
      api.renames.emplace_back(rename.from(), rename.to());
    }
    api.hand_written = definition.hand_written();
    GRADFLOW_RETURN_IF_ERROR(registry->RegisterOp(
        std::make_unique<OpDef>(std::move(*definition.mutable_def())), nullptr, std::move(api)));
  }
  return absl::OkStatus();
}

}  // namespace gradflow
