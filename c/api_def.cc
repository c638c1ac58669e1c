// TF_ApiDefMap: documentation of ops, from their definitions and from text.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gradflow/c/buffer.h"
#include "gradflow/c/status.h"
#include "gradflow/core/mutex.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/text_format.h"
#include "gradflow/proto/api_def.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "tensorflow/c/c_api.h"

struct TF_ApiDefMap {
  gradflow::Mutex mutex;
  std::map<std::string, gradflow::ApiDef, std::less<>> defs ABSL_GUARDED_BY(mutex);
};

namespace gradflow::capi {
namespace {

void AddArg(const OpDef::ArgDef& arg, ApiDef::Arg* out) {
  out->set_name(arg.name());
  out->set_rename_to(arg.name());
  out->set_description(arg.description());
}

ApiDef FromOpDef(const OpDef& op) {
  ApiDef def;
  def.set_graph_op_name(op.name());
  def.add_endpoint()->set_name(op.name());
  for (const OpDef::ArgDef& arg : op.input_arg()) {
    AddArg(arg, def.add_in_arg());
    def.add_arg_order(arg.name());
  }
  for (const OpDef::ArgDef& arg : op.output_arg()) AddArg(arg, def.add_out_arg());
  for (const OpDef::AttrDef& attr : op.attr()) {
    ApiDef::Attr* const out = def.add_attr();
    out->set_name(attr.name());
    out->set_rename_to(attr.name());
    out->set_description(attr.description());
    if (attr.has_default_value()) *out->mutable_default_value() = attr.default_value();
  }
  def.set_summary(op.summary());
  def.set_description(op.description());
  return def;
}

// Turns texts of several lines, `field: <<END`, ..., `END`, into quoted strings.
std::string QuoteTexts(absl::string_view text) {
  std::string result;
  std::string end;
  std::string quoted;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!end.empty()) {
      absl::string_view rest = line;
      if (absl::ConsumePrefix(&rest, end)) {
        if (!quoted.empty()) quoted.pop_back();
        absl::StrAppend(&result, "\"", absl::CEscape(quoted), "\"", rest, "\n");
        end.clear();
        quoted.clear();
      } else {
        absl::StrAppend(&quoted, line, "\n");
      }
      continue;
    }
    const size_t colon = line.find(':');
    const size_t begin = colon == line.npos ? colon : line.find_first_not_of(' ', colon + 1);
    if (begin != line.npos && absl::StartsWith(line.substr(begin), "<<")) {
      end = std::string(absl::StripAsciiWhitespace(line.substr(begin + 2)));
      absl::StrAppend(&result, line.substr(0, begin));
    } else {
      absl::StrAppend(&result, line, "\n");
    }
  }
  return result;
}

// Changes the names and texts of arguments or attributes. Returns INVALID_ARGUMENT if one does not
// exist.
template <typename List>
absl::Status MergeByName(absl::string_view op, const List& changes, List* list) {
  for (const auto& change : changes) {
    auto found = list->begin();
    while (found != list->end() && found->name() != change.name()) ++found;
    if (found == list->end()) {
      return errors::FailedPrecondition("op ", op, " has no argument or attribute ",
                                        internal::Quoted(change.name()));
    }
    found->MergeFrom(change);
  }
  return absl::OkStatus();
}

absl::Status Merge(const ApiDef& change, ApiDef* def) {
  const std::string& op = def->graph_op_name();
  if (change.visibility() != ApiDef::DEFAULT_VISIBILITY) def->set_visibility(change.visibility());
  if (!change.deprecation_message().empty()) {
    def->set_deprecation_message(change.deprecation_message());
    def->set_deprecation_version(change.deprecation_version());
  }
  if (change.endpoint_size() > 0) *def->mutable_endpoint() = change.endpoint();
  GRADFLOW_RETURN_IF_ERROR(MergeByName(op, change.in_arg(), def->mutable_in_arg()));
  GRADFLOW_RETURN_IF_ERROR(MergeByName(op, change.out_arg(), def->mutable_out_arg()));
  GRADFLOW_RETURN_IF_ERROR(MergeByName(op, change.attr(), def->mutable_attr()));
  if (change.arg_order_size() > 0) *def->mutable_arg_order() = change.arg_order();
  if (!change.summary().empty()) def->set_summary(change.summary());
  std::string description =
      change.description().empty() ? def->description() : change.description();
  if (!change.description_prefix().empty()) {
    description = absl::StrCat(change.description_prefix(), "\n", description);
  }
  if (!change.description_suffix().empty()) {
    absl::StrAppend(&description, "\n", change.description_suffix());
  }
  def->set_description(description);
  return absl::OkStatus();
}

}  // namespace
}  // namespace gradflow::capi

using gradflow::MutexLock;
using gradflow::capi::Call;

TF_ApiDefMap* TF_NewApiDefMap(TF_Buffer* op_list_buffer, TF_Status* status) {
  TF_ApiDefMap* result = nullptr;
  Call(status, [&]() -> absl::Status {
    gradflow::OpList ops;
    GRADFLOW_RETURN_IF_ERROR(gradflow::capi::ParseMessage(op_list_buffer, &ops));
    auto map = std::make_unique<TF_ApiDefMap>();
    {
      const MutexLock lock(&map->mutex);
      for (const gradflow::OpDef& op : ops.op()) {
        map->defs[op.name()] = gradflow::capi::FromOpDef(op);
      }
    }
    result = map.release();
    return absl::OkStatus();
  });
  return result;
}

void TF_DeleteApiDefMap(TF_ApiDefMap* apimap) { delete apimap; }

void TF_ApiDefMapPut(TF_ApiDefMap* api_def_map, const char* text, size_t text_len,
                     TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    gradflow::ApiDefs changes;
    GRADFLOW_RETURN_IF_ERROR(gradflow::internal::MessageFromText(
        gradflow::capi::QuoteTexts(absl::string_view(text, text_len)), {}, &changes));
    const MutexLock lock(&api_def_map->mutex);
    for (const gradflow::ApiDef& change : changes.op()) {
      const auto found = api_def_map->defs.find(change.graph_op_name());
      // The text may describe ops that this library does not have.
      if (found == api_def_map->defs.end()) continue;
      GRADFLOW_RETURN_IF_ERROR(gradflow::capi::Merge(change, &found->second));
    }
    return absl::OkStatus();
  });
}

TF_Buffer* TF_ApiDefMapGet(TF_ApiDefMap* api_def_map, const char* name, size_t name_len,
                           TF_Status* status) {
  TF_Buffer* result = nullptr;
  Call(status, [&]() -> absl::Status {
    const MutexLock lock(&api_def_map->mutex);
    const auto found = api_def_map->defs.find(absl::string_view(name, name_len));
    if (found == api_def_map->defs.end()) {
      return gradflow::errors::InvalidArgument(
          "the map has no op ", gradflow::internal::Quoted(absl::string_view(name, name_len)));
    }
    return gradflow::capi::NewBuffer(found->second, &result);
  });
  return result;
}
