#include "tests/proto/wire_reader.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

namespace gradflow::testing {
namespace {

enum WireType { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

// Parses the text after a field's number, such as "shape TensorShapeProto oneof value".
WireField ParseField(const std::string& line) {
  WireField field;
  std::istringstream words(line);
  words >> field.number >> field.name >> field.type;
  if (field.type == "repeated") {
    field.repeated = true;
    words >> field.type;
  }
  if (field.type.rfind("map<", 0) == 0) {
    field.map_key = field.type.substr(4, field.type.size() - 5);  // without "map<" and ","
    words >> field.type;
    field.type.pop_back();  // the ">"
  }
  for (std::string word; words >> word;) {
    if (word == "oneof") words >> field.oneof;
    if (word == "[packed]") field.packed = true;
    if (word == "[deprecated]") field.deprecated = true;
  }
  return field;
}

class Decoder {
 public:
  Decoder(const WireTable& table, WireMessage& result) : table_(table), result_(result) {}

  // Decodes `bytes` as a message and adds its values under `prefix`, which is "" or ends in ".".
  bool Message(const std::string& name, std::string_view bytes, const std::string& prefix) {
    auto fields = table_.messages.find(name);
    if (fields == table_.messages.end()) return Fail(prefix, "the table has no message " + name);
    std::map<std::string, int> counts;
    while (!bytes.empty()) {
      uint64_t tag = 0;
      if (!Varint(bytes, tag)) return Fail(prefix, "a tag is cut off");
      const int number = static_cast<int>(tag >> 3);
      const WireField* field = nullptr;
      for (const WireField& f : fields->second) {
        if (f.number == number) field = &f;
      }
      std::string payload;
      if (!Payload(tag & 7, bytes, payload)) return Fail(prefix, "a value is cut off");
      bool ok = true;
      if (field == nullptr) {
        result_.values[prefix + "?" + std::to_string(number)] = payload;
      } else if (!field->map_key.empty()) {
        ok = MapEntry(*field, payload, prefix + field->name);
      } else if (field->packed) {
        if ((tag & 7) != kLength) return Fail(prefix + field->name, "is not packed");
        for (std::string_view rest = payload; ok && !rest.empty();) {
          std::string element;
          ok = Payload(TypeOnWire(field->type), rest, element) &&
               Value(field->type, element, Indexed(*field, prefix, counts));
        }
      } else if (static_cast<int>(tag & 7) != TypeOnWire(field->type)) {
        ok = Fail(prefix + field->name, "has wire type " + std::to_string(tag & 7));
      } else {
        ok = Value(field->type, payload, Indexed(*field, prefix, counts));
      }
      if (!ok) return Fail(prefix, "cannot be read");
    }
    return true;
  }

 private:
  bool Fail(const std::string& path, const std::string& text) {
    if (result_.error.empty()) result_.error = path + ": " + text;
    return false;
  }

  static std::string Indexed(const WireField& field, const std::string& prefix,
                             std::map<std::string, int>& counts) {
    std::string path = prefix + field.name;
    if (field.repeated) path += "[" + std::to_string(counts[field.name]++) + "]";
    return path;
  }

  static bool Varint(std::string_view& bytes, uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  // Decodes the first `count` bytes of `bytes`, little-endian.
  static uint64_t Fixed(std::string_view bytes, int count) {
    uint64_t value = 0;
    for (int i = 0; i < count; ++i) value |= uint64_t{bytes[i] & 0xffu} << (8 * i);
    return value;
  }

  // Consumes one value of `bytes`. Returns a varint as 8 bytes.
  static bool Payload(uint64_t wire_type, std::string_view& bytes, std::string& payload) {
    uint64_t size = wire_type == kFixed64 ? 8 : 4;
    if (wire_type == kVarint || wire_type == kLength) {
      uint64_t value = 0;
      if (!Varint(bytes, value)) return false;
      if (wire_type == kVarint) {
        for (int i = 0; i < 8; ++i) payload += static_cast<char>(value >> (8 * i));
        return true;
      }
      size = value;
    } else if (wire_type != kFixed64 && wire_type != kFixed32) {
      return false;
    }
    if (size > bytes.size()) return false;
    payload = bytes.substr(0, size);
    bytes.remove_prefix(size);
    return true;
  }

  int TypeOnWire(const std::string& type) const {
    if (type == "double" || type == "fixed64") return kFixed64;
    if (type == "float" || type == "fixed32") return kFixed32;
    if (type == "string" || type == "bytes" || table_.messages.count(type) > 0) return kLength;
    return kVarint;
  }

  // Returns the text of a value that is not a message.
  static std::string Text(const std::string& type, const std::string& payload) {
    if (type == "string" || type == "bytes") return payload;
    const uint64_t bits = Fixed(payload, static_cast<int>(payload.size()));
    if (type == "double") {
      double value = 0;
      std::memcpy(&value, &bits, sizeof(value));
      return WireNumber(value);
    }
    if (type == "float") {
      const auto half = static_cast<uint32_t>(bits);
      float value = 0;
      std::memcpy(&value, &half, sizeof(value));
      return WireNumber(value);
    }
    if (type == "uint64" || type == "fixed64") return std::to_string(bits);
    if (type == "uint32" || type == "fixed32") return std::to_string(static_cast<uint32_t>(bits));
    return std::to_string(static_cast<int64_t>(bits));  // int32, int64, bool, enums
  }

  bool Value(const std::string& type, const std::string& payload, const std::string& path) {
    const bool is_message = table_.messages.count(type) > 0;
    result_.values[path] = is_message ? "{}" : Text(type, payload);
    return !is_message || Message(type, payload, path + ".");
  }

  // A map entry is a message with a key, field 1, and a value, field 2.
  bool MapEntry(const WireField& field, std::string_view bytes, const std::string& path) {
    std::string key;
    std::string value;
    while (!bytes.empty()) {
      uint64_t tag = 0;
      std::string payload;
      if (!Varint(bytes, tag) || !Payload(tag & 7, bytes, payload)) return false;
      const std::string& type = tag >> 3 == 1 ? field.map_key : field.type;
      if (static_cast<int>(tag & 7) != TypeOnWire(type)) return false;
      (tag >> 3 == 1 ? key : value) = payload;
    }
    return Value(field.type, value, path + "[" + Text(field.map_key, key) + "]");
  }

  const WireTable& table_;
  WireMessage& result_;
};

}  // namespace

WireTable ReadWireTable(const std::string& path) {
  WireTable table;
  std::ifstream file(path);
  if (!file) table.error = "cannot read " + path;
  // The enclosing message or enum, keyed by indentation.
  std::map<size_t, std::string> scopes;
  bool in_enum = false;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t indent = line.find_first_not_of(' ');
    std::istringstream words(line);
    std::string keyword;
    std::string name;
    words >> keyword >> name;
    if (keyword == "message" || keyword == "enum") {
      in_enum = keyword == "enum";
      scopes[indent] = indent == 0 ? name : scopes[indent - 2] + "." + name;
      if (in_enum) {
        table.enums[scopes[indent]];
      } else {
        table.messages[scopes[indent]];
      }
    } else if (in_enum) {
      std::istringstream values(line);
      for (std::string value; values >> value;) {
        const size_t equals = value.find('=');
        table.enums[scopes[indent - 2]][value.substr(0, equals)] =
            std::stoi(value.substr(equals + 1));
      }
    } else {
      table.messages[scopes[indent - 2]].push_back(ParseField(line));
    }
  }
  // Resolves names relative to the message: "ArgAttrs" means "FunctionDef.ArgAttrs".
  for (auto& [message, fields] : table.messages) {
    for (WireField& field : fields) {
      const std::string nested = message + "." + field.type;
      if (table.messages.count(nested) > 0) field.type = nested;
    }
  }
  return table;
}

WireMessage DecodeWire(const WireTable& table, const std::string& message, std::string_view bytes) {
  WireMessage result;
  Decoder(table, result).Message(message, bytes, "");
  return result;
}

std::string WireNumber(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.17g", value);
  return text;
}

std::string WireNumber(float value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.9g", static_cast<double>(value));
  return text;
}

}  // namespace gradflow::testing
