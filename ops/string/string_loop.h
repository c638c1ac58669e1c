// Loops that make the strings of an output on several threads.
#ifndef GRADFLOW_OPS_STRING_STRING_LOOP_H_
#define GRADFLOW_OPS_STRING_STRING_LOOP_H_

#include <cstdint>
#include <cstring>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"

namespace gradflow {

// Makes output 0, a tensor of strings of shape `shape`: calls make(i, &string) for each string i.
// `most_bytes(i)` is the largest length that string i may have; it is charged before the string is
// made. Returns the error of the first string that cannot be made. `nanoseconds` is the time for a
// string.
absl::Status MakeStrings(KernelContext& ctx, const TensorShape& shape, double nanoseconds,
                         absl::FunctionRef<double(int64_t i)> most_bytes,
                         absl::FunctionRef<absl::Status(int64_t i, tstring* string)> make);

// Returns the time for a string of input `i` of average length, if a string takes
// `nanoseconds_per_byte` for each byte.
double StringNanoseconds(const Tensor& strings, double nanoseconds_per_byte);

// Returns INVALID_ARGUMENT unless input `i` is a tensor of strings.
absl::Status CheckStrings(const KernelContext& ctx, int i, absl::string_view name);
// Returns the string of scalar input `i`.
absl::StatusOr<const tstring*> ScalarString(const KernelContext& ctx, int i,
                                            absl::string_view name);

// Returns the first place of a text in `text`, or npos. Takes linear time, which
// string_view::find() does not.
inline size_t FindText(absl::string_view text, absl::string_view part) {
  const void* const found = memmem(text.data(), text.size(), part.data(), part.size());
  return found == nullptr ? absl::string_view::npos
                          : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

// Returns true if the byte continues a UTF-8 character.
inline bool IsTrailByte(char byte) { return (static_cast<uint8_t>(byte) & 0xc0) == 0x80; }

}  // namespace gradflow

#endif  // GRADFLOW_OPS_STRING_STRING_LOOP_H_
