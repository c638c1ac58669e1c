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

// Parse a message of any size. Return false if the bytes are none.
inline bool ParseProtoUnlimited(protobuf::MessageLite* proto, const void* data, size_t size) {
  return size <= static_cast<size_t>(std::numeric_limits<int>::max()) &&
         proto->ParseFromArray(data, static_cast<int>(size));
}
inline bool ParseProtoUnlimited(protobuf::MessageLite* proto, const std::string& serialized) {
  return ParseProtoUnlimited(proto, serialized.data(), serialized.size());
}

// Return the text of a message, in which nothing is left out.
inline std::string LegacyUnredactedDebugString(const protobuf::Message& message) {
  return message.DebugString();
}
inline std::string LegacyUnredactedShortDebugString(const protobuf::Message& message) {
  return message.ShortDebugString();
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_PROTOBUF_H_
