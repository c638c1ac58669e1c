// `tensorflow::protobuf`: the namespace of Protocol Buffers.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_PROTOBUF_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_PROTOBUF_H_

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

namespace tensorflow {
namespace protobuf = ::google::protobuf;
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_PROTOBUF_H_
