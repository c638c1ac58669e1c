// Numbers as bytes, as in LevelDB's tables and Protocol Buffers. Internal.
#ifndef GRADFLOW_IO_CODING_H_
#define GRADFLOW_IO_CODING_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

#pragma GCC visibility push(default)
namespace gradflow::internal {

// Appends the lowest `bytes` bytes of a number, least first.
void AppendFixed(uint64_t value, int bytes, std::string* out);
// Appends a number in 7 bits a byte, least first.
void AppendVarint(uint64_t value, std::string* out);
// Removes such a number from the front of *in. Returns false if there is none.
bool TakeVarint(absl::string_view* in, uint64_t* value);

}  // namespace gradflow::internal
#pragma GCC visibility pop

#endif  // GRADFLOW_IO_CODING_H_
