// The strings of a TensorProto that are in its tensor_content, as TensorFlow may write them: the
// length of each as a varint of at most 32 bits, one after the other, then the bytes of all. Not
// for users.
#ifndef GRADFLOW_CORE_STRING_CONTENT_H_
#define GRADFLOW_CORE_STRING_CONTENT_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gradflow::internal {

// INVALID_ARGUMENT unless `content` is `count` strings, to its last byte. Allocates nothing.
absl::Status CheckStringContent(absl::string_view content, int64_t count);

// Calls fn for the first `limit` of `count` strings, which are parts of `content`.
// REQUIRES: CheckStringContent(content, count) is OK, and 0 <= limit <= count
void ForEachString(absl::string_view content, int64_t count, int64_t limit,
                   absl::FunctionRef<void(absl::string_view)> fn);

}  // namespace gradflow::internal

#endif  // GRADFLOW_CORE_STRING_CONTENT_H_
