#include "gradflow/graph/wire_check.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/protobuf_internals.h"
#include "gradflow/graph/tables.h"

namespace gradflow::internal {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MessageFactory;

// The number and the wire type of a field share a varint of 32 bits.
constexpr uint64_t kMaxTag = 0xffffffff;

// The memory of the set of unknown fields of a message or group, without the fields.
constexpr int64_t kUnknownSetBytes = 48;

// The fields of a message, indexed by number, for a walk over its wire format.
struct Type;
struct Field {
  enum Kind : uint8_t { kUnknown, kScalar, kBytes, kText, kMessage };
  Kind kind = kUnknown;
  // For scalars: the wire type and the size in memory.
  uint8_t wire_type = 0;
  uint8_t size = 0;
  bool is_repeated = false;
  // For messages.
  const Type* type = nullptr;
  bool is_map = false;
  const FieldDescriptor* descriptor = nullptr;
};
struct Type {
  const Descriptor* descriptor = nullptr;
  // The memory of an empty message.
  int64_t size = 0;
  // Indexed by number. Higher numbers are skipped as unknown.
  std::vector<Field> fields;
};

int64_t SizeInMemory(FieldDescriptor::CppType type) {
  switch (type) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return 1;
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT64:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return 8;
    default:
      return 4;
  }
}

// The types of the messages of a graph. Never destroyed.
class MessageTypes {
 public:
  const Type* Get(const Descriptor* descriptor) {
    MutexLock lock(&mutex_);
    return Make(descriptor);
  }

 private:
  const Type* Make(const Descriptor* descriptor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::unique_ptr<Type>& slot = types_[descriptor];
    if (slot != nullptr) return slot.get();
    Type* const type = (slot = std::make_unique<Type>()).get();
    type->descriptor = descriptor;
    // A map entry is a node of a hash table; its key and value count as its fields.
    constexpr int64_t kEntrySize = 32;
    type->size =
        descriptor->options().map_entry()
            ? kEntrySize
            : static_cast<int64_t>(
                  MessageFactory::generated_factory()->GetPrototype(descriptor)->SpaceUsedLong());
    constexpr int kMaxNumber = 1000;
    for (int i = 0; i < descriptor->field_count(); ++i) {
      const FieldDescriptor* const from = descriptor->field(i);
      if (from->number() > kMaxNumber) continue;
      if (type->fields.size() <= static_cast<size_t>(from->number())) {
        type->fields.resize(from->number() + 1);
      }
      // `type` is on the heap, so the recursion does not move it.
      Field field;
      field.descriptor = from;
      field.is_repeated = from->is_repeated();
      switch (from->type()) {
        case FieldDescriptor::TYPE_MESSAGE:
          field.kind = Field::kMessage;
          field.is_map = from->is_map();
          field.type = Make(from->message_type());
          break;
        case FieldDescriptor::TYPE_STRING:
          field.kind = Field::kText;
          break;
        case FieldDescriptor::TYPE_BYTES:
          field.kind = Field::kBytes;
          break;
        default:
          field.kind = Field::kScalar;
          field.wire_type = WireTypeOf(*from);
          field.size = static_cast<uint8_t>(SizeInMemory(from->cpp_type()));
      }
      type->fields[from->number()] = field;
    }
    return type;
  }

  Mutex mutex_;
  HashMap<const Descriptor*, std::unique_ptr<Type>> types_ ABSL_GUARDED_BY(mutex_);
};

const Type* TypeOf(const Message& prototype) {
  static MessageTypes& types = *new MessageTypes;
  return types.Get(prototype.GetDescriptor());
}

// Parses a varint and returns its end, or null if it does not end or has more than 64 bits.
const char* TakeVarint(const char* at, const char* end, uint64_t* value) {
  uint64_t result = 0;
  for (int shift = 0; shift < 70 && at < end; shift += 7) {
    const auto byte = static_cast<uint8_t>(*at++);
    result |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      *value = result;
      return at;
    }
  }
  return nullptr;
}

// The key of a map entry: text, or a number as protobuf stores it. Empty and 0 if the entry has no
// key.
using MapKey = std::pair<absl::string_view, uint64_t>;

// The keys that have been seen in one map of a message. Most maps have few keys.
class Keys {
 public:
  // Returns false if the key was already present.
  bool Add(const MapKey& key) {
    constexpr size_t kFew = 16;
    if (many_.empty() && few_.size() < kFew) {
      if (std::find(few_.begin(), few_.end(), key) != few_.end()) return false;
      few_.push_back(key);
      return true;
    }
    if (many_.empty()) many_.insert(few_.begin(), few_.end());
    return many_.insert(key).second;
  }

 private:
  absl::InlinedVector<MapKey, 8> few_;
  HashSet<MapKey> many_;
};

class Walker {
 public:
  Walker(absl::string_view bytes, const GraphLimits& limits, bool thorough)
      : bytes_(bytes), limits_(limits), thorough_(thorough) {}

  // Checks a message. `memory` is the memory of other messages.
  absl::Status Check(const Type& type, int64_t memory) {
    memory_ = memory + type.size;
    if (Walk(type, bytes_.data(), bytes_.data() + bytes_.size(), 0)) return absl::OkStatus();
    const std::string place = absl::StrCat("at byte ", at_ - bytes_.data());
    // The first steps name the node, and the last steps name its part.
    constexpr size_t kFirst = 6;
    constexpr size_t kLast = 4;
    std::reverse(path_.begin(), path_.end());
    if (path_.size() > kFirst + kLast) {
      path_.erase(path_.begin() + kFirst, path_.end() - kLast);
      path_.insert(path_.begin() + kFirst, "...");
    }
    const std::string path = absl::StrJoin(path_, ".");
    return errors::InvalidArgument(place, path.empty() ? "" : absl::StrCat(", in ", path), ": ",
                                   what_);
  }

  int64_t memory() const { return memory_; }

 private:
  template <typename... Args>
  bool Fail(const char* at, const Args&... args) {
    at_ = at;
    what_ = absl::StrCat(args...);
    return false;
  }
  bool CutOff(const char* at, const Field& field, uint64_t wanted, const char* end) {
    return Fail(at, Name(field), " has ", wanted, " bytes, but only ", end - at, " are left");
  }
  static std::string Name(const Field& field) {
    return field.descriptor == nullptr ? "a field"
                                       : absl::StrCat("field ", field.descriptor->name());
  }

  bool Walk(const Type& type, const char* at, const char* end, int depth) {
    if (depth > std::min(limits_.max_depth, kMaxMessageDepth)) {
      return Fail(at, "messages are nested deeper than ",
                  std::min(limits_.max_depth, kMaxMessageDepth),
                  " levels (GraphLimits::max_depth)");
    }
    const char* const begin = at;
    // Keyed by field number. A message has one or two maps.
    absl::InlinedVector<std::pair<int, Keys>, 1> keys;
    bool has_unknown = false;
    while (at < end) {
      const char* const start = at;
      uint64_t tag;
      at = TakeVarint(at, end, &tag);
      if (at == nullptr || tag > kMaxTag || tag >> 3 == 0) {
        return Fail(start, "expected a field number");
      }
      const uint64_t number = tag >> 3;
      const int wire_type = static_cast<int>(tag & 7);
      const Field& field = number < type.fields.size() ? type.fields[number] : UnknownField();
      if (!IsKnown(field, wire_type)) {
        if (wire_type == kEndGroup)
          return Fail(start, "found the end of a group that has not begun");
        if (!has_unknown && !Take(start, kUnknownSetBytes)) return false;
        has_unknown = true;
        at = SkipUnknown(field, wire_type, number, at, end, depth);
        if (at == nullptr) return false;
        continue;
      }
      if (wire_type != kLength) {
        at = SkipNumber(field, wire_type, at, end);
        if (at == nullptr || (field.is_repeated && !Take(start, kValueBytes))) return false;
        continue;
      }
      const char* const content = SkipLength(field, at, end, &at);
      if (content == nullptr) return false;
      if (!CheckContent(field, content, at, depth, &keys)) {
        // Counts the index of the element only now, because only errors need it.
        if (field.kind == Field::kMessage) path_.push_back(Step(field, begin, start, content, at));
        return false;
      }
    }
    return true;
  }

  // Returns true if protobuf parses a value of this encoding as the field. Otherwise protobuf keeps
  // the value as an unknown field.
  static bool IsKnown(const Field& field, int wire_type) {
    switch (field.kind) {
      case Field::kUnknown:
        return false;
      case Field::kScalar:
        return wire_type == field.wire_type || (wire_type == kLength && field.is_repeated);
      default:
        return wire_type == kLength;
    }
  }

  // REQUIRES: IsKnown(field, kLength).
  bool CheckContent(const Field& field, const char* content, const char* end, int depth,
                    absl::InlinedVector<std::pair<int, Keys>, 1>* keys) {
    const auto length = static_cast<int64_t>(end - content);
    const absl::string_view value(content, length);
    switch (field.kind) {
      case Field::kMessage:
        return Take(content, field.type->size + 8) && Walk(*field.type, content, end, depth + 1) &&
               (!field.is_map || AddKey(field, content, end, keys));
      case Field::kText:
        if (thorough_ && !IsUtf8(value)) {
          return Fail(content, Name(field), " is not UTF-8: ", Quoted(value));
        }
        return Take(content, length + kStringBytes);
      case Field::kScalar:
        if (thorough_ && !CheckPacked(field, content, end)) return false;
        return Take(content, field.wire_type == kVarint ? length * field.size : length);
      default:
        return Take(content, length + kStringBytes);
    }
  }

  // The following functions fail and return null if a value does not end.

  // Returns the content, which ends at *next.
  const char* SkipLength(const Field& field, const char* at, const char* end, const char** next) {
    uint64_t length;
    const char* const content = TakeVarint(at, end, &length);
    if (content == nullptr) {
      Fail(at, Name(field), " has no length");
      return nullptr;
    }
    if (length > static_cast<uint64_t>(end - content)) {
      CutOff(content, field, length, end);
      return nullptr;
    }
    *next = content + length;
    return content;
  }

  const char* SkipNumber(const Field& field, int wire_type, const char* at, const char* end) {
    if (wire_type == kVarint) {
      uint64_t value;
      const char* const next = TakeVarint(at, end, &value);
      if (next == nullptr) Fail(at, Name(field), " has a number that does not end");
      return next;
    }
    const int size = wire_type == kFixed32 ? 4 : 8;
    if (end - at >= size) return at + size;
    CutOff(at, field, size, end);
    return nullptr;
  }

  // Skips a value that protobuf has no field for, and counts its memory. Also returns null if the
  // memory exceeds the limit.
  const char* SkipUnknown(const Field& field, int wire_type, uint64_t number, const char* at,
                          const char* end, int depth) {
    const char* next;
    switch (wire_type) {
      case kVarint:
      case kFixed32:
      case kFixed64:
        next = SkipNumber(field, wire_type, at, end);
        return next != nullptr && Take(at, kValueBytes) ? next : nullptr;
      case kLength: {
        const char* const content = SkipLength(field, at, end, &next);
        return content != nullptr && Take(at, kValueBytes + kStringBytes + (next - content))
                   ? next
                   : nullptr;
      }
      case kStartGroup:
        return Take(at, kValueBytes + kUnknownSetBytes) ? SkipGroup(number, at, end, depth + 1)
                                                        : nullptr;
      default:
        Fail(at, Name(field), " has the unknown encoding ", wire_type);
        return nullptr;
    }
  }

  // Messages of graphs have no groups, but files may.
  const char* SkipGroup(uint64_t number, const char* at, const char* end, int depth) {
    if (depth > std::min(limits_.max_depth, kMaxMessageDepth)) {
      Fail(at, "groups are nested deeper than ", std::min(limits_.max_depth, kMaxMessageDepth),
           " levels (GraphLimits::max_depth)");
      return nullptr;
    }
    while (at < end) {
      const char* const start = at;
      uint64_t tag;
      at = TakeVarint(at, end, &tag);
      if (at == nullptr || tag > kMaxTag || tag >> 3 == 0) {
        Fail(start, "expected a field number");
        return nullptr;
      }
      const int wire_type = static_cast<int>(tag & 7);
      if (wire_type == kEndGroup) {
        if (tag >> 3 == number) return at;
        Fail(start, "found the end of a group that has not begun");
        return nullptr;
      }
      at = SkipUnknown(UnknownField(), wire_type, tag >> 3, at, end, depth);
      if (at == nullptr) return nullptr;
    }
    Fail(end, "a group does not end");
    return nullptr;
  }

  bool CheckPacked(const Field& field, const char* at, const char* end) {
    const int64_t length = end - at;
    if (field.wire_type == kVarint) {
      uint64_t value;
      while (at < end) {
        const char* const next = TakeVarint(at, end, &value);
        if (next == nullptr) return Fail(at, Name(field), " has a number that does not end");
        at = next;
      }
      return true;
    }
    const int size = field.wire_type == kFixed32 ? 4 : 8;
    if (length % size == 0) return true;
    return Fail(at, Name(field), " has ", length, " bytes, expected a multiple of ", size);
  }

  // Returns the key as protobuf's parser finds it: the last field 1 that has the key's encoding. In
  // a malformed entry, returns the last key before the fault.
  static MapKey KeyOf(const Field& map, const char* at, const char* end) {
    const Field& field = map.type->fields[1];
    const bool is_text = field.kind == Field::kText;
    const uint64_t tag_of_key = uint64_t{1} << 3 | (is_text ? uint8_t{kLength} : field.wire_type);
    MapKey key;
    int groups = 0;
    while (at < end) {
      uint64_t tag;
      uint64_t number = 0;
      absl::string_view text;
      at = TakeVarint(at, end, &tag);
      if (at == nullptr) return key;
      switch (const int wire_type = static_cast<int>(tag & 7)) {
        case kVarint:
        case kLength:
          at = TakeVarint(at, end, &number);
          if (at == nullptr) return key;
          if (wire_type == kVarint) break;
          if (number > static_cast<uint64_t>(end - at)) return key;
          text = absl::string_view(at, number);
          at += number;
          break;
        case kFixed32:
        case kFixed64: {
          const int size = wire_type == kFixed32 ? 4 : 8;
          if (end - at < size) return key;
          std::memcpy(&number, at, size);
          at += size;
          break;
        }
        case kStartGroup:
          ++groups;
          break;
        case kEndGroup:
          --groups;
          break;
        default:
          return key;
      }
      if (groups > 0 || tag != tag_of_key) continue;
      // A varint may have more bits than the key.
      if (field.size == 4) number = static_cast<uint32_t>(number);
      key = is_text ? MapKey(text, 0) : MapKey("", number);
    }
    return key;
  }

  bool AddKey(const Field& field, const char* content, const char* end,
              absl::InlinedVector<std::pair<int, Keys>, 1>* keys) {
    const int number = field.descriptor->number();
    auto it = std::find_if(keys->begin(), keys->end(),
                           [number](const auto& map) { return map.first == number; });
    if (it == keys->end()) {
      keys->emplace_back(number, Keys());
      it = keys->end() - 1;
    }
    if (it->second.Add(KeyOf(field, content, end))) return true;
    return Fail(content, "the map has this key twice");
  }

  bool Take(const char* at, int64_t bytes) {
    memory_ += bytes;
    if (memory_ <= limits_.max_message_bytes) return true;
    return Fail(at, "the file would take more than ", limits_.max_message_bytes,
                " bytes of memory (GraphLimits::max_message_bytes)");
  }

  // "node[3]", "attr['T']", "arg_attr[1]"
  static std::string Step(const Field& field, const char* begin, const char* start,
                          const char* content, const char* end) {
    const std::string& name = field.descriptor->name();
    if (field.is_map) {
      const auto [text, number] = KeyOf(field, content, end);
      const bool is_text = field.type->fields[1].kind == Field::kText;
      return absl::StrCat(name, "[", is_text ? Quoted(text) : absl::StrCat(number), "]");
    }
    if (!field.descriptor->is_repeated()) return name;
    // The bytes before `start` are known to be well-formed.
    int index = 0;
    const auto tag_of_field = static_cast<uint64_t>(field.descriptor->number()) << 3 | kLength;
    for (const char* at = begin; at < start;) {
      uint64_t tag;
      uint64_t value;
      at = TakeVarint(at, start, &tag);
      if (at == nullptr) break;
      index += tag == tag_of_field;
      const int wire_type = static_cast<int>(tag & 7);
      if (wire_type == kLength || wire_type == kVarint) {
        at = TakeVarint(at, start, &value);
        if (at == nullptr) break;
        if (wire_type == kLength) at += value;
      } else {
        // Elements inside groups are not counted.
        if (wire_type != kFixed32 && wire_type != kFixed64) return name;
        at += wire_type == kFixed32 ? 4 : 8;
      }
    }
    return absl::StrCat(name, "[", index, "]");
  }

  static const Field& UnknownField() {
    static const Field field;
    return field;
  }

  const absl::string_view bytes_;
  const GraphLimits& limits_;
  const bool thorough_;
  int64_t memory_ = 0;
  // The position, the description and the path of the fault. The path is innermost first until
  // Check() reverses it.
  const char* at_ = nullptr;
  std::string what_;
  std::vector<std::string> path_;
};

}  // namespace

absl::Status CheckWire(absl::string_view bytes, const Message& prototype,
                       const GraphLimits& limits) {
  return Walker(bytes, limits, /*thorough=*/false).Check(*TypeOf(prototype), 0);
}

absl::Status ExplainWire(absl::string_view bytes, const Message& prototype,
                         const GraphLimits& limits) {
  return Walker(bytes, limits, /*thorough=*/true).Check(*TypeOf(prototype), 0);
}

absl::Status CheckUnknownWire(absl::string_view bytes, const GraphLimits& limits, int64_t* memory) {
  Walker walker(bytes, limits, /*thorough=*/false);
  const absl::Status status = walker.Check(Type(), *memory);
  *memory = walker.memory();
  return status;
}

}  // namespace gradflow::internal
