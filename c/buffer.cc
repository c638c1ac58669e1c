#include "gradflow/c/buffer.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "gradflow/c/status.h"

namespace gradflow::capi {
namespace {

void FreeBytes(void* data, size_t) { std::free(data); }

// Replaces the content by `size` uninitialized bytes. Returns null if memory runs out.
char* Allocate(size_t size, TF_Buffer* out) {
  void* const data = std::malloc(size == 0 ? 1 : size);
  if (data == nullptr) return nullptr;
  if (out->data != nullptr && out->data_deallocator != nullptr) {
    out->data_deallocator(const_cast<void*>(out->data), out->length);
  }
  *out = {data, size, &FreeBytes};
  return static_cast<char*>(data);
}

absl::Status NoMemory(size_t size) {
  return errors::ResourceExhausted("out of memory for a buffer of ", size, " bytes");
}

}  // namespace

absl::Status FillBuffer(absl::string_view bytes, TF_Buffer* out) {
  char* const data = Allocate(bytes.size(), out);
  if (data == nullptr) return NoMemory(bytes.size());
  if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
  return absl::OkStatus();
}

absl::Status FillBuffer(const google::protobuf::MessageLite& message, TF_Buffer* out) {
  const size_t size = message.ByteSizeLong();
  if (size > INT_MAX) {
    return errors::InvalidArgument("a message has ", size, " bytes; Protocol Buffers allow ",
                                   INT_MAX);
  }
  char* const data = Allocate(size, out);
  if (data == nullptr) return NoMemory(size);
  google::protobuf::io::ArrayOutputStream array(data, static_cast<int>(size));
  google::protobuf::io::CodedOutputStream stream(&array);
  stream.SetSerializationDeterministic(true);
  message.SerializeWithCachedSizes(&stream);
  return absl::OkStatus();
}

absl::Status NewBuffer(const google::protobuf::MessageLite& message, TF_Buffer** out) {
  std::unique_ptr<TF_Buffer, decltype(&TF_DeleteBuffer)> buffer(TF_NewBuffer(), &TF_DeleteBuffer);
  if (buffer == nullptr) return NoMemory(sizeof(TF_Buffer));
  GRADFLOW_RETURN_IF_ERROR(FillBuffer(message, buffer.get()));
  *out = buffer.release();
  return absl::OkStatus();
}

absl::Status ParseMessage(const void* bytes, size_t size, google::protobuf::MessageLite* message) {
  message->Clear();
  if (bytes == nullptr) return absl::OkStatus();
  if (size > INT_MAX || !message->ParseFromArray(bytes, static_cast<int>(size))) {
    return errors::InvalidArgument(size, " bytes are not a valid ", message->GetTypeName());
  }
  return absl::OkStatus();
}

absl::Status ParseMessage(const TF_Buffer* buffer, google::protobuf::MessageLite* message) {
  return buffer == nullptr ? ParseMessage(nullptr, 0, message)
                           : ParseMessage(buffer->data, buffer->length, message);
}

}  // namespace gradflow::capi

TF_Buffer* TF_NewBuffer(void) { return new (std::nothrow) TF_Buffer{nullptr, 0, nullptr}; }

TF_Buffer* TF_NewBufferFromString(const void* proto, size_t proto_len) {
  TF_Buffer* const buffer = TF_NewBuffer();
  if (buffer == nullptr) return nullptr;
  const absl::string_view bytes(static_cast<const char*>(proto), proto_len);
  if (gradflow::capi::FillBuffer(bytes, buffer).ok()) return buffer;
  TF_DeleteBuffer(buffer);
  return nullptr;
}

void TF_DeleteBuffer(TF_Buffer* buffer) {
  if (buffer == nullptr) return;
  if (buffer->data_deallocator != nullptr) {
    buffer->data_deallocator(const_cast<void*>(buffer->data), buffer->length);
  }
  delete buffer;
}

TF_Buffer TF_GetBuffer(TF_Buffer* buffer) { return *buffer; }
