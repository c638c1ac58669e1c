// Encodes integers as bytes: little-endian, or as Protocol Buffers varints.
#ifndef GRADFLOW_COMPAT_CORE_LIB_CORE_CODING_H_
#define GRADFLOW_COMPAT_CORE_LIB_CORE_CODING_H_

#include <string>

#include "absl/strings/string_view.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {
namespace core {

inline constexpr int kMaxVarint32Bytes = 5;
inline constexpr int kMaxVarint64Bytes = 10;

// Write the bytes of the value to `dst`.
void EncodeFixed16(char* dst, uint16 value);
void EncodeFixed32(char* dst, uint32 value);
void EncodeFixed64(char* dst, uint64 value);
// Return the end of the written bytes.
char* EncodeVarint32(char* dst, uint32 value);
char* EncodeVarint64(char* dst, uint64 value);
// Append the bytes of the value to *dst.
void PutFixed16(std::string* dst, uint16 value);
void PutFixed32(std::string* dst, uint32 value);
void PutFixed64(std::string* dst, uint64 value);
void PutVarint32(std::string* dst, uint32 value);
void PutVarint64(std::string* dst, uint64 value);
uint16 DecodeFixed16(const char* p);
uint32 DecodeFixed32(const char* p);
uint64 DecodeFixed64(const char* p);
// Remove a value from the front of the input. Return false or null if there is none.
bool GetVarint32(absl::string_view* input, uint32* value);
bool GetVarint64(absl::string_view* input, uint64* value);
const char* GetVarint32Ptr(const char* p, const char* limit, uint32* value);
const char* GetVarint64Ptr(const char* p, const char* limit, uint64* value);
// Returns the number of bytes in a varint.
int VarintLength(uint64 value);

}  // namespace core
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_CORE_CODING_H_
