#include "tensorflow/core/lib/core/coding.h"

#include <cstddef>

namespace tensorflow {
namespace core {
namespace {

template <typename T>
void Encode(char* dst, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    dst[i] = static_cast<char>(static_cast<uint64>(value) >> (8 * i));
  }
}

template <typename T>
void Put(std::string* dst, T value) {
  char bytes[sizeof(T)];
  Encode(bytes, value);
  dst->append(bytes, sizeof(T));
}

template <typename T>
T Decode(const char* p) {
  uint64 value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value |= uint64{static_cast<unsigned char>(p[i])} << (8 * i);
  }
  return static_cast<T>(value);
}

// Drops bits that do not fit the type.
template <typename T>
const char* GetVarint(const char* p, const char* limit, T* value) {
  uint64 result = 0;
  for (size_t shift = 0; shift < 8 * sizeof(T) && p < limit; shift += 7) {
    const auto byte = static_cast<unsigned char>(*p++);
    result |= uint64{byte & 0x7Fu} << shift;
    if (byte < 0x80) {
      *value = static_cast<T>(result);
      return p;
    }
  }
  return nullptr;
}

template <typename T>
bool Take(absl::string_view* input, T* value) {
  const char* const limit = input->data() + input->size();
  const char* const end = GetVarint(input->data(), limit, value);
  if (end == nullptr) return false;
  *input = absl::string_view(end, limit - end);
  return true;
}

}  // namespace

void EncodeFixed16(char* dst, uint16 value) { Encode(dst, value); }
void EncodeFixed32(char* dst, uint32 value) { Encode(dst, value); }
void EncodeFixed64(char* dst, uint64 value) { Encode(dst, value); }

char* EncodeVarint32(char* dst, uint32 value) { return EncodeVarint64(dst, value); }

char* EncodeVarint64(char* dst, uint64 value) {
  for (; value >= 0x80; value >>= 7) *dst++ = static_cast<char>(value | 0x80);
  *dst++ = static_cast<char>(value);
  return dst;
}

void PutFixed16(std::string* dst, uint16 value) { Put(dst, value); }
void PutFixed32(std::string* dst, uint32 value) { Put(dst, value); }
void PutFixed64(std::string* dst, uint64 value) { Put(dst, value); }

void PutVarint32(std::string* dst, uint32 value) { PutVarint64(dst, value); }

void PutVarint64(std::string* dst, uint64 value) {
  char bytes[kMaxVarint64Bytes];
  dst->append(bytes, EncodeVarint64(bytes, value) - bytes);
}

uint16 DecodeFixed16(const char* p) { return Decode<uint16>(p); }
uint32 DecodeFixed32(const char* p) { return Decode<uint32>(p); }
uint64 DecodeFixed64(const char* p) { return Decode<uint64>(p); }

bool GetVarint32(absl::string_view* input, uint32* value) { return Take(input, value); }
bool GetVarint64(absl::string_view* input, uint64* value) { return Take(input, value); }

const char* GetVarint32Ptr(const char* p, const char* limit, uint32* value) {
  return GetVarint(p, limit, value);
}
const char* GetVarint64Ptr(const char* p, const char* limit, uint64* value) {
  return GetVarint(p, limit, value);
}

int VarintLength(uint64 value) {
  char bytes[kMaxVarint64Bytes];
  return static_cast<int>(EncodeVarint64(bytes, value) - bytes);
}

}  // namespace core
}  // namespace tensorflow
