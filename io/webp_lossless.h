// The prefix codes of lossless WebP data (VP8L, RFC 9649). Internal.
//
// libwebp makes tables of them, whose size depends on the contents of a file rather than on the
// size of its image: a file of 300 KB may take hundreds of megabytes.
#ifndef GRADFLOW_IO_WEBP_LOSSLESS_H_
#define GRADFLOW_IO_WEBP_LOSSLESS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gradflow {

class RunStop;

namespace internal {

// Returns the bytes that libwebp allocates for the tables of an image of this size. `data` is what
// follows the size in a VP8L chunk, or the first byte of an ALPH chunk. Reads the data to the end
// of the prefix image, which takes memory of a quarter of a byte for each pixel. Returns
// INVALID_ARGUMENT if the data end too early or are not valid, CANCELLED soon after `stop`, which
// may be null, has been stopped.
absl::StatusOr<int64_t> LosslessTableBytes(absl::string_view data, int64_t columns, int64_t rows,
                                           RunStop* stop);

}  // namespace internal
}  // namespace gradflow

#endif  // GRADFLOW_IO_WEBP_LOSSLESS_H_
