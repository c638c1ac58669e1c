#include "gradflow/core/string_content.h"

#include <limits>

#include "gradflow/core/status.h"

namespace gradflow::internal {
namespace {

// Consumes a varint at the front of `bytes`. Returns false if it is incomplete or has more than 32
// bits.
bool TakeVarint32(absl::string_view* bytes, uint32_t* value) {
  uint64_t result = 0;
  for (size_t i = 0; i < 5 && i < bytes->size(); ++i) {
    const auto byte = static_cast<uint8_t>((*bytes)[i]);
    result |= uint64_t{byte & 0x7fu} << (7 * i);
    if (byte < 0x80) {
      bytes->remove_prefix(i + 1);
      *value = static_cast<uint32_t>(result);
      return result <= std::numeric_limits<uint32_t>::max();
    }
  }
  return false;
}

}  // namespace

absl::Status CheckStringContent(absl::string_view content, int64_t count) {
  absl::string_view rest = content;
  // Each length takes at least one byte, which bounds the loop. The sum cannot overflow.
  uint64_t expected = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t length;
    if (!TakeVarint32(&rest, &length)) {
      return errors::InvalidArgument("expected the lengths of ", count,
                                     " strings at the start of tensor_content, but found ", i,
                                     " in its ", content.size(), " bytes");
    }
    expected += length;
  }
  if (rest.size() != expected) {
    return errors::InvalidArgument("expected ", expected, " bytes of strings after the ", count,
                                   " lengths in tensor_content, but found ", rest.size());
  }
  return absl::OkStatus();
}

void ForEachString(absl::string_view content, int64_t count, int64_t limit,
                   absl::FunctionRef<void(absl::string_view)> fn) {
  uint32_t length;
  absl::string_view strings = content;
  for (int64_t i = 0; i < count; ++i) TakeVarint32(&strings, &length);
  for (int64_t i = 0; i < limit; ++i) {
    TakeVarint32(&content, &length);
    fn(strings.substr(0, length));
    strings.remove_prefix(length);
  }
}

}  // namespace gradflow::internal
