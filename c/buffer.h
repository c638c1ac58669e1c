// TF_Buffers with strings and messages.
#ifndef GRADFLOW_C_BUFFER_H_
#define GRADFLOW_C_BUFFER_H_

#include <google/protobuf/message_lite.h>

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tensorflow/c/tf_buffer.h"

namespace gradflow::capi {

// Replace the content of `out` by a copy of `bytes`, or by a serialized message. Equal messages
// have equal bytes. Return RESOURCE_EXHAUSTED if memory runs out, INVALID_ARGUMENT if the message
// has 2 GiB or more.
absl::Status FillBuffer(absl::string_view bytes, TF_Buffer* out);
absl::Status FillBuffer(const google::protobuf::MessageLite& message, TF_Buffer* out);
// Returns a new buffer, or an error.
absl::Status NewBuffer(const google::protobuf::MessageLite& message, TF_Buffer** out);

// Parses a message. Returns INVALID_ARGUMENT, with the type of the message, if the bytes do not
// parse. Null bytes are an empty message.
absl::Status ParseMessage(const void* bytes, size_t size, google::protobuf::MessageLite* message);
absl::Status ParseMessage(const TF_Buffer* buffer, google::protobuf::MessageLite* message);

}  // namespace gradflow::capi

#endif  // GRADFLOW_C_BUFFER_H_
