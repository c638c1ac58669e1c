// Numbers as bytes, as in LevelDB's tables and Protocol Buffers. Internal.
#ifndef GRADFLOW_IO_CODING_H_
#define GRADFLOW_IO_CODING_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

#pragma GCC visibility push(default)
namespace gradflow::internal {

// Appends the lowest `bytes` bytes of a number, least significant byte first.
void AppendFixed(uint64_t value, int bytes, std::string* out);
// Appends a number as a varint: 7 bits per byte, least significant bits first.
void AppendVarint(uint64_t value, std::string* out);
// Removes a varint from the front of *in. Returns false if *in does not begin with a varint.
bool TakeVarint(absl::string_view* in, uint64_t* value);

}  // namespace gradflow::internal
#pragma GCC visibility pop

#endif  // GRADFLOW_IO_CODING_H_
