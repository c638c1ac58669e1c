// The prefix codes of lossless WebP data (VP8L, RFC 9649). Internal.
//
// libwebp makes tables of the codes. The size of the tables depends on the contents of a file
// instead of the size of its image: a small file may take hundreds of megabytes.
#ifndef GRADFLOW_IO_WEBP_LOSSLESS_H_
#define GRADFLOW_IO_WEBP_LOSSLESS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gradflow {

class StopToken;

namespace internal {

// Returns the bytes that libwebp allocates for the tables of an image of this size. `data` are the
// bytes after the size in a VP8L chunk, or after the first byte of an ALPH chunk. Reads the data to
// the end of the prefix image, which takes at most a quarter of a byte of memory per pixel. Returns
// INVALID_ARGUMENT if the data are truncated or invalid. Returns CANCELLED soon after `stop` has
// been stopped; `stop` may be null.
absl::StatusOr<int64_t> LosslessTableBytes(absl::string_view data, int64_t columns, int64_t rows,
                                           StopToken* stop);

}  // namespace internal
}  // namespace gradflow

#endif  // GRADFLOW_IO_WEBP_LOSSLESS_H_
