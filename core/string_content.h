// Strings in the tensor_content of a TensorProto, as TensorFlow may write them: the lengths as
// varints of at most 32 bits, followed by the bytes of all strings. Internal.
#ifndef GRADFLOW_CORE_STRING_CONTENT_H_
#define GRADFLOW_CORE_STRING_CONTENT_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gradflow::internal {

// Returns INVALID_ARGUMENT unless `content` consists of exactly `count` strings. Allocates nothing.
absl::Status CheckStringContent(absl::string_view content, int64_t count);

// Calls `fn` for the first `limit` of `count` strings, passing views into `content`.
// REQUIRES: CheckStringContent(content, count) is OK, and 0 <= limit <= count
void ForEachString(absl::string_view content, int64_t count, int64_t limit,
                   absl::FunctionRef<void(absl::string_view)> fn);

}  // namespace gradflow::internal

#endif  // GRADFLOW_CORE_STRING_CONTENT_H_
