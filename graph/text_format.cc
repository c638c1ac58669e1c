#include "gradflow/graph/text_format.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/protobuf_internals.h"
#include "gradflow/graph/wire_check.h"

namespace gradflow::internal {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::TextFormat;
using google::protobuf::UnknownField;

// An estimate of the memory of a message besides the characters of its text.
constexpr int64_t kMessageBytes = 300;

constexpr absl::string_view kUnknownHeader =
    "# Fields unknown to gradflow: the message's path, and the fields in base64.\n";
constexpr absl::string_view kUnknownLine = "#? ";

class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (!status_.ok()) return;
    // Positions count from 0; -1 stands for the end.
    const std::string place =
        line < 0 ? "" : absl::StrCat("line ", line + 1, ", column ", column + 1, ": ");
    status_ = errors::InvalidArgument(place, absl::CEscape(message));
  }
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

// ---- Unknown fields ----

// Returns the name or key of a message, or "" if it has none.
std::string StringField(const Message& message, const char* name) {
  const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(name);
  if (field == nullptr || field->is_repeated()) return "";
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return message.GetReflection()->GetString(message, field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return absl::StrCat(message.GetReflection()->GetUInt32(message, field));
    case FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrCat(message.GetReflection()->GetUInt64(message, field));
    default:
      return "";
  }
}

void AppendUnknown(const Message& message, const std::string& path, std::string* out) {
  const Reflection& reflection = *message.GetReflection();
  const auto& unknown = reflection.GetUnknownFields(message);
  if (!unknown.empty()) {
    std::string bytes;
    unknown.SerializeToString(&bytes);
    absl::StrAppend(out, out->empty() ? kUnknownHeader : "", kUnknownLine, path, " ",
                    absl::Base64Escape(bytes), "\n");
  }
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const std::string step = absl::StrCat(path, path.empty() ? "" : ".", field->number());
    if (!field->is_repeated()) {
      AppendUnknown(reflection.GetMessage(message, field), step, out);
      continue;
    }
    const FieldDescriptor* value = field->is_map() ? field->message_type()->map_value() : nullptr;
    if (value != nullptr && value->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      const Message& element = reflection.GetRepeatedMessage(message, field, i);
      if (value != nullptr) {
        AppendUnknown(element.GetReflection()->GetMessage(element, value),
                      absl::StrCat(step, "{", absl::Base64Escape(StringField(element, "key")), "}"),
                      out);
      } else {
        AppendUnknown(
            element,
            absl::StrCat(step, "[", i, "]", absl::Base64Escape(StringField(element, "name"))), out);
      }
    }
  }
}

// The entries of maps by key. Each map is indexed once, on its first use.
using EntriesByKey = absl::flat_hash_map<std::string, Message*>;
using MapIndex =
    absl::flat_hash_map<std::pair<const Message*, const FieldDescriptor*>, EntriesByKey>;

// Returns the message that one step of a path leads to, or null if there is none.
Message* FollowStep(Message* message, absl::string_view step, MapIndex* maps) {
  const Reflection& reflection = *message->GetReflection();
  const size_t end = step.find_first_of("[{");
  int number = 0;
  if (!absl::SimpleAtoi(step.substr(0, end), &number)) return nullptr;
  const FieldDescriptor* field = message->GetDescriptor()->FindFieldByNumber(number);
  if (field == nullptr || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return nullptr;
  if (!field->is_repeated()) {
    return end == absl::string_view::npos && reflection.HasField(*message, field)
               ? reflection.MutableMessage(message, field)
               : nullptr;
  }
  if (end == absl::string_view::npos) return nullptr;
  absl::string_view rest = step.substr(end);
  const int size = reflection.FieldSize(*message, field);
  std::string name;
  if (field->is_map()) {
    const FieldDescriptor* value = field->message_type()->map_value();
    if (value->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || !absl::ConsumePrefix(&rest, "{") ||
        !absl::ConsumeSuffix(&rest, "}") || !absl::Base64Unescape(rest, &name)) {
      return nullptr;
    }
    const auto [entries, is_new] = maps->try_emplace({message, field});
    for (int i = 0; is_new && i < size; ++i) {
      Message* entry = reflection.MutableRepeatedMessage(message, field, i);
      entries->second.emplace(StringField(*entry, "key"), entry);
    }
    const auto entry = entries->second.find(name);
    if (entry == entries->second.end()) return nullptr;
    return entry->second->GetReflection()->MutableMessage(entry->second, value);
  }
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(rest, absl::MaxSplits(']', 1));
  int index = 0;
  if (!absl::SimpleAtoi(parts.first.substr(1), &index) || index < 0 || index >= size ||
      !absl::Base64Unescape(parts.second, &name)) {
    return nullptr;
  }
  Message* element = reflection.MutableRepeatedMessage(message, field, index);
  return StringField(*element, "name") == name ? element : nullptr;
}

// ---- Checks that the parser does not make ----

// Checks that strings are UTF-8, as they must be in a binary file, and that no key of a map occurs
// twice, which the map itself would not show. REQUIRES: the maps have not been read since the text
// was parsed.
absl::Status CheckStrings(const Message& message, const std::string& path) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  const auto step = [&](const FieldDescriptor* field, int i) {
    return absl::StrCat(path, path.empty() ? "" : ".", field->name(),
                        i < 0 ? "" : absl::StrCat("[", i, "]"));
  };
  for (const FieldDescriptor* field : fields) {
    const int size = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    absl::flat_hash_set<std::string> keys;
    for (int i = 0; i < size; ++i) {
      if (field->type() == FieldDescriptor::TYPE_STRING) {
        std::string scratch;
        const std::string& text =
            field->is_repeated()
                ? reflection.GetRepeatedStringReference(message, field, i, &scratch)
                : reflection.GetStringReference(message, field, &scratch);
        if (!IsUtf8(text)) {
          return errors::InvalidArgument(step(field, field->is_repeated() ? i : -1),
                                         " is not UTF-8: ", Quoted(text));
        }
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        const Message& inner = field->is_repeated()
                                   ? reflection.GetRepeatedMessage(message, field, i)
                                   : reflection.GetMessage(message, field);
        if (field->is_map()) {
          std::string key = StringField(inner, "key");
          if (!keys.insert(key).second) {
            return errors::InvalidArgument("in ", step(field, -1), "[", Quoted(key),
                                           "]: the map has this key twice");
          }
        }
        GRADFLOW_RETURN_IF_ERROR(CheckStrings(inner, step(field, field->is_repeated() ? i : -1)));
      }
    }
  }
  return absl::OkStatus();
}

// Returns whether protobuf would parse `unknown` as the value of a field that it knows.
bool IsKnown(const UnknownField& unknown, const Descriptor& type) {
  const FieldDescriptor* const field = type.FindFieldByNumber(unknown.number());
  if (field == nullptr) return false;
  // Indexed by UnknownField::Type.
  constexpr WireType kWireTypes[] = {kVarint, kFixed32, kFixed64, kLength, kStartGroup};
  const WireType found = kWireTypes[unknown.type()];
  return found == WireTypeOf(*field) || (field->is_packable() && found == kLength);
}

// `memory` is an estimate of the memory of the message so far.
absl::Status RestoreUnknown(absl::string_view text, const GraphLimits& limits, int64_t memory,
                            Message* message) {
  MapIndex maps;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (!absl::ConsumePrefix(&line, kUnknownLine)) continue;
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(absl::StripSuffix(line, "\r"), absl::MaxSplits(' ', 1));
    Message* target = message;
    for (absl::string_view step : absl::StrSplit(parts.first, '.', absl::SkipEmpty())) {
      if (target != nullptr) target = FollowStep(target, step, &maps);
    }
    std::string bytes;
    google::protobuf::UnknownFieldSet unknown;
    if (target == nullptr || !absl::Base64Unescape(parts.second, &bytes)) {
      return errors::InvalidArgument(
          "line ", number,
          ": these unknown fields belong to no message of the graph; if the text was "
          "changed on purpose, remove the line");
    }
    if (const absl::Status status = CheckUnknownWire(bytes, limits, &memory); !status.ok()) {
      return errors::Prefix(absl::StrCat("line ", number, ": in the unknown fields, "), status);
    }
    if (!unknown.ParseFromString(bytes)) {
      return errors::InvalidArgument("line ", number, ": the unknown fields cannot be parsed");
    }
    for (int i = 0; i < unknown.field_count(); ++i) {
      if (IsKnown(unknown.field(i), *target->GetDescriptor())) {
        return errors::InvalidArgument("line ", number, ": in the unknown fields, field ",
                                       unknown.field(i).number(), " is a known one of a ",
                                       target->GetDescriptor()->name());
      }
    }
    target->GetReflection()->MutableUnknownFields(target)->MergeFromAndDestroy(&unknown);
  }
  return absl::OkStatus();
}

// ---- Memory ----

// Returns the end of a string that begins with `quote` before `i`, or of a comment. Agrees with
// protobuf's tokenizer, which goes on after an error.
size_t SkipString(absl::string_view text, size_t i, char quote) {
  const auto ends_line = [&](size_t at) {
    return at >= text.size() || text[at] == '\n' || text[at] == '\0';
  };
  while (!ends_line(i)) {
    const char c = text[i++];
    if (c == quote) break;
    if (c == '\\' && !ends_line(i)) ++i;
  }
  return i;
}
size_t SkipComment(absl::string_view text, size_t i) {
  return std::min(text.find_first_of(absl::string_view("\n\0", 2), i), text.size());
}

// Estimates the memory of a text and of its message by counting marks: every message has a brace,
// every string has quotes, and every number follows a colon or a comma.
int64_t MemoryOf(absl::string_view text) {
  auto memory = static_cast<int64_t>(text.size());
  for (size_t i = 0; i < text.size();) {
    switch (const char c = text[i++]) {
      case '{':
      case '<':
        memory += kMessageBytes;
        break;
      case ',':
      case ':':
        memory += kValueBytes;
        break;
      case '"':
      case '\'':
        memory += kStringBytes;
        i = SkipString(text, i, c);
        break;
      case '#':
        i = SkipComment(text, i);
        break;
      default:
        break;
    }
  }
  return memory;
}

}  // namespace

std::string MessageToText(const Message& message) {
  TextFormat::Printer printer;
  printer.SetHideUnknownFields(true);
  std::string text;
  printer.PrintToString(message, &text);
  std::string unknown;
  AppendUnknown(message, "", &unknown);
  return text + unknown;
}

absl::Status MessageFromText(absl::string_view text, const GraphLimits& limits, Message* message) {
  if (text.size() > std::numeric_limits<int>::max()) {
    return errors::InvalidArgument("the text has ", text.size(), " bytes, more than 2 GiB");
  }
  const int64_t memory = MemoryOf(text);
  if (memory > limits.max_message_bytes) {
    return errors::InvalidArgument("the text would take more than ", limits.max_message_bytes,
                                   " bytes of memory (GraphLimits::max_message_bytes)");
  }
  FirstError first_error;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&first_error);
  parser.SetRecursionLimit(std::min(limits.max_depth, kMaxMessageDepth));
  google::protobuf::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  const bool parsed = parser.Parse(&stream, message);
  GRADFLOW_RETURN_IF_ERROR(first_error.status());
  if (!parsed) return errors::InvalidArgument("the text cannot be parsed");
  GRADFLOW_RETURN_IF_ERROR(CheckStrings(*message, ""));
  return RestoreUnknown(text, limits, memory, message);
}

}  // namespace gradflow::internal
