// `tensorflow::protobuf`: the namespace of Protocol Buffers.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_PROTOBUF_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_PROTOBUF_H_

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <cstddef>
#include <limits>
#include <string>

namespace tensorflow {
namespace protobuf = ::google::protobuf;

// Parse a message. Return false if the bytes are not a valid message, or if there are 2 GiB or
// more.
inline bool ParseProtoUnlimited(protobuf::MessageLite* proto, const void* data, size_t size) {
  return size <= static_cast<size_t>(std::numeric_limits<int>::max()) &&
         proto->ParseFromArray(data, static_cast<int>(size));
}
inline bool ParseProtoUnlimited(protobuf::MessageLite* proto, const std::string& serialized) {
  return ParseProtoUnlimited(proto, serialized.data(), serialized.size());
}

// Return the complete text of a message.
inline std::string LegacyUnredactedDebugString(const protobuf::Message& message) {
  return message.DebugString();
}
inline std::string LegacyUnredactedShortDebugString(const protobuf::Message& message) {
  return message.ShortDebugString();
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_PROTOBUF_H_
