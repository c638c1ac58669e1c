// WireReader: reads the fields of a serialized protobuf message in place.
#ifndef GRADFLOW_OPS_PARSING_WIRE_READER_H_
#define GRADFLOW_OPS_PARSING_WIRE_READER_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace gradflow {

class WireReader {
 public:
  // The bytes must outlive the reader and the views that it returns.
  explicit WireReader(absl::string_view bytes) : bytes_(bytes) {}

  bool done() const { return bytes_.empty(); }

  // These return false if the bytes are not valid. They then need not be called again.
  bool ReadVarint(uint64_t* value) {
    *value = 0;
    for (size_t i = 0; i < 10 && i < bytes_.size(); ++i) {
      const auto byte = static_cast<uint8_t>(bytes_[i]);
      *value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
      if (byte < 0x80) {
        bytes_.remove_prefix(i + 1);
        return true;
      }
    }
    return false;
  }
  bool ReadBytes(absl::string_view* value) {
    uint64_t size = 0;
    if (!ReadVarint(&size) || size > bytes_.size()) return false;
    *value = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return true;
  }
  bool ReadFixed(size_t size, absl::string_view* value) {
    if (bytes_.size() < size) return false;
    *value = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return true;
  }
  // Reads a field number and a wire type: 8 * number + type.
  bool ReadTag(uint64_t* tag) { return ReadVarint(tag) && *tag >= 8; }
  // Skips the value of a field of an unknown number.
  bool Skip(uint64_t tag) {
    uint64_t number = 0;
    absl::string_view bytes;
    switch (tag & 7) {
      case 0:
        return ReadVarint(&number);
      case 1:
        return ReadFixed(8, &bytes);
      case 2:
        return ReadBytes(&bytes);
      case 5:
        return ReadFixed(4, &bytes);
      default:
        return false;
    }
  }

 private:
  absl::string_view bytes_;
};

// The tag of field `number`, whose value has a length.
constexpr uint64_t BytesTag(uint64_t number) { return 8 * number + 2; }

// Calls fn(number, bytes) for each field of a message with a number up to `last` whose value has a
// length, and skips other fields. Returns false if the message is not valid or fn returns false.
template <typename Fn>
bool ForEachMessage(absl::string_view message, uint64_t last, Fn&& fn) {
  WireReader reader(message);
  while (!reader.done()) {
    uint64_t tag = 0;
    absl::string_view bytes;
    if (!reader.ReadTag(&tag)) return false;
    if ((tag & 7) != 2 || tag >> 3 > last) {
      if (!reader.Skip(tag)) return false;
    } else if (!reader.ReadBytes(&bytes) || !fn(tag >> 3, bytes)) {
      return false;
    }
  }
  return true;
}

}  // namespace gradflow

#endif  // GRADFLOW_OPS_PARSING_WIRE_READER_H_
