// `tensorflow::protobuf`: the namespace of Protocol Buffers.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_PROTOBUF_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_PROTOBUF_H_

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <string>

namespace tensorflow {
namespace protobuf = ::google::protobuf;

// Return the text of a message, in which nothing is left out.
inline std::string LegacyUnredactedDebugString(const protobuf::Message& message) {
  return message.DebugString();
}
inline std::string LegacyUnredactedShortDebugString(const protobuf::Message& message) {
  return message.ShortDebugString();
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_PROTOBUF_H_
