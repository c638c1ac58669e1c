#include "gradflow/graph/text_format.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/protobuf_internals.h"
#include "gradflow/graph/tables.h"
#include "gradflow/graph/wire_check.h"

namespace gradflow::internal {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::TextFormat;
using google::protobuf::UnknownField;

// An estimate of the memory of a message, not including the characters of its text.
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

// Returns the name or key of a message, or "" if the message has no such field.
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

// Returns the FNV-1a hash of a text. It distinguishes texts unless they are crafted to collide.
std::string Fingerprint(absl::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return absl::StrCat(absl::Hex(hash));
}

// The sorted keys of a map, with their positions. In a path, the position can stand for the key.
using SortedKeys = std::map<std::string, int>;
SortedKeys SortKeys(const Message& message, const FieldDescriptor* map) {
  const Reflection& reflection = *message.GetReflection();
  SortedKeys keys;
  for (int i = 0; i < reflection.FieldSize(message, map); ++i) {
    keys.emplace(StringField(reflection.GetRepeatedMessage(message, map, i), "key"), i);
  }
  int position = 0;
  for (auto& [key, index] : keys) index = position++;
  return keys;
}

// Names and keys in paths are in base64. The path of every nested message repeats them, so long
// names would make the text quadratic. A fingerprint after this mark stands for a long name.
constexpr size_t kMaxNameInPath = 24;
constexpr char kFingerprintMark = '~';

std::string NameInPath(const std::string& name) {
  if (name.size() <= kMaxNameInPath) return absl::Base64Escape(name);
  return absl::StrCat(absl::string_view(&kFingerprintMark, 1), Fingerprint(name));
}

// Appends a line for each message with unknown fields, but stops when `out` exceeds `max_bytes`.
void AppendUnknown(const Message& message, const std::string& path, size_t max_bytes,
                   std::string* out) {
  if (out->size() > max_bytes) return;
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
      AppendUnknown(reflection.GetMessage(message, field), step, max_bytes, out);
      continue;
    }
    const FieldDescriptor* value = field->is_map() ? field->message_type()->map_value() : nullptr;
    if (value != nullptr && value->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    SortedKeys keys;
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      const Message& element = reflection.GetRepeatedMessage(message, field, i);
      if (value == nullptr) {
        AppendUnknown(element,
                      absl::StrCat(step, "[", i, "]", NameInPath(StringField(element, "name"))),
                      max_bytes, out);
        continue;
      }
      const std::string key = StringField(element, "key");
      std::string position;
      if (key.size() > kMaxNameInPath) {
        if (keys.empty()) keys = SortKeys(message, field);
        position = absl::StrCat(keys[key]);
      }
      AppendUnknown(element.GetReflection()->GetMessage(element, value),
                    absl::StrCat(step, "{", position, NameInPath(key), "}"), max_bytes, out);
    }
  }
}

// The entries of a map, by key and in the order of the keys. Each map is indexed on its first use.
using EntriesByKey = std::map<std::string, Message*>;
struct Entries {
  EntriesByKey by_key;
  // The keys have the form that they have in paths.
  std::vector<std::pair<std::string, Message*>> in_order;
};
using MapIndex = HashMap<std::pair<const Message*, const FieldDescriptor*>, Entries>;
// The fingerprints of messages with long names. Each fingerprint is made on its first use.
using Fingerprints = HashMap<const Message*, std::string>;
struct PathIndex {
  MapIndex maps;
  Fingerprints fingerprints;
};

// Returns true if `text` stands for the name of `message` in a path.
bool HasNameInPath(const Message& message, absl::string_view text, Fingerprints* fingerprints) {
  if (absl::ConsumePrefix(&text, absl::string_view(&kFingerprintMark, 1))) {
    const auto [it, is_new] = fingerprints->try_emplace(&message);
    if (is_new) it->second = Fingerprint(StringField(message, "name"));
    return text == it->second;
  }
  std::string name;
  return absl::Base64Unescape(text, &name) && StringField(message, "name") == name;
}

// Returns the message that one step of a path leads to, or null if it does not exist.
Message* FollowStep(Message* message, absl::string_view step, PathIndex* index) {
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
  if (field->is_map()) {
    const FieldDescriptor* value = field->message_type()->map_value();
    if (value->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || !absl::ConsumePrefix(&rest, "{") ||
        !absl::ConsumeSuffix(&rest, "}")) {
      return nullptr;
    }
    const auto [it, is_new] = index->maps.try_emplace({message, field});
    Entries& entries = it->second;
    for (int i = 0; is_new && i < size; ++i) {
      Message* entry = reflection.MutableRepeatedMessage(message, field, i);
      entries.by_key.emplace(StringField(*entry, "key"), entry);
    }
    Message* entry = nullptr;
    const size_t mark = rest.find(kFingerprintMark);
    if (mark != absl::string_view::npos) {
      if (entries.in_order.empty()) {
        for (const auto& [key, e] : entries.by_key) {
          entries.in_order.emplace_back(NameInPath(key), e);
        }
      }
      size_t position = 0;
      if (absl::SimpleAtoi(rest.substr(0, mark), &position) && position < entries.in_order.size() &&
          entries.in_order[position].first == rest.substr(mark)) {
        entry = entries.in_order[position].second;
      }
    } else if (std::string key; absl::Base64Unescape(rest, &key)) {
      const auto found = entries.by_key.find(key);
      if (found != entries.by_key.end()) entry = found->second;
    }
    return entry == nullptr ? nullptr : entry->GetReflection()->MutableMessage(entry, value);
  }
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(rest, absl::MaxSplits(']', 1));
  int i = 0;
  if (!absl::SimpleAtoi(parts.first.substr(1), &i) || i < 0 || i >= size) return nullptr;
  Message* element = reflection.MutableRepeatedMessage(message, field, i);
  return HasNameInPath(*element, parts.second, &index->fingerprints) ? element : nullptr;
}

// ---- Checks that the parser does not make ----

// Checks that strings are UTF-8, because a binary file requires it, and that no map key occurs
// twice, because the map itself drops duplicates. REQUIRES: the maps have not been read since the
// text was parsed.
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
    HashSet<std::string> keys;
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

// Returns true if protobuf would parse `unknown` as the value of a known field.
bool IsKnown(const UnknownField& unknown, const Descriptor& type) {
  const FieldDescriptor* const field = type.FindFieldByNumber(unknown.number());
  if (field == nullptr) return false;
  // Indexed by UnknownField::Type.
  constexpr WireType kWireTypes[] = {kVarint, kFixed32, kFixed64, kLength, kStartGroup};
  const WireType found = kWireTypes[unknown.type()];
  return found == WireTypeOf(*field) || (field->is_packable() && found == kLength);
}

// Adds the unknown fields in the comments of `text` to the message. `memory` is an estimate of the
// memory of the message so far.
absl::Status RestoreUnknown(absl::string_view text, const GraphLimits& limits, int64_t memory,
                            Message* message) {
  PathIndex index;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (!absl::ConsumePrefix(&line, kUnknownLine)) continue;
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(absl::StripSuffix(line, "\r"), absl::MaxSplits(' ', 1));
    Message* target = message;
    for (absl::string_view step : absl::StrSplit(parts.first, '.', absl::SkipEmpty())) {
      if (target != nullptr) target = FollowStep(target, step, &index);
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
                                       unknown.field(i).number(), " is a known field of ",
                                       target->GetDescriptor()->name());
      }
    }
    target->GetReflection()->MutableUnknownFields(target)->MergeFromAndDestroy(&unknown);
  }
  return absl::OkStatus();
}

// ---- Memory ----

// Returns the end of a string that begins with `quote` before `i`, or of a comment. Agrees with
// protobuf's tokenizer, which continues after an error.
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

namespace {

// Writes to a string. Fails when the string has more than `max_bytes` bytes.
class LimitedStream final : public google::protobuf::io::ZeroCopyOutputStream {
 public:
  LimitedStream(std::string* out, size_t max_bytes) : stream_(out), max_bytes_(max_bytes) {}
  bool Next(void** data, int* size) override {
    return static_cast<size_t>(ByteCount()) <= max_bytes_ && stream_.Next(data, size);
  }
  void BackUp(int count) override { stream_.BackUp(count); }
  int64_t ByteCount() const override { return stream_.ByteCount(); }

 private:
  google::protobuf::io::StringOutputStream stream_;
  const size_t max_bytes_;
};

}  // namespace

absl::StatusOr<std::string> MessageToText(const Message& message, size_t max_bytes) {
  TextFormat::Printer printer;
  printer.SetHideUnknownFields(true);
  std::string text;
  bool fits;
  {
    LimitedStream stream(&text, max_bytes);
    fits = printer.Print(message, &stream);
  }
  std::string unknown;
  if (fits) AppendUnknown(message, "", max_bytes, &unknown);
  if (!fits || text.size() > max_bytes || unknown.size() > max_bytes - text.size()) {
    return errors::InvalidArgument("the text would have more than ", max_bytes, " bytes");
  }
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
