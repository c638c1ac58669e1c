// Parser of the header of .npy files. Internal: used by npy.cc.
#ifndef GRADFLOW_IO_NPY_HEADER_H_
#define GRADFLOW_IO_NPY_HEADER_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"

namespace gradflow::internal {

struct NpyHeader {
  DataType dtype = DT_INVALID;
  // The bytes of an element in the file. A string takes a fixed number of bytes, and zeros at its
  // end do not belong to it.
  int64_t element_bytes = 0;
  // True for strings of 4-byte Unicode characters.
  bool is_utf32 = false;
  bool big_endian = false;
  bool fortran_order = false;
  TensorShape shape;
};

// The range [begin, end) of a file that holds the text of the header. The elements follow it.
struct NpyHeaderRange {
  size_t begin;
  size_t end;
};

// The maximum size of the prelude of a file: "\x93NUMPY", the version, and the length of the
// header's text. The length takes 2 bytes in version 1.0 and 4 bytes in later versions.
inline constexpr size_t kMaxNpyPreludeSize = 12;

// Locates the header. REQUIRES: `start` holds the first min(kMaxNpyPreludeSize, file_size) bytes of
// the file
absl::StatusOr<NpyHeaderRange> FindNpyHeader(absl::string_view start, size_t file_size);

// Parses the text of the header: a Python dict as NumPy writes it, with keys in any order and any
// white space. Returns an error unless the `data_size` bytes after it are exactly the elements.
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view text, size_t data_size);

// Returns the bytes of the longest string, at least 1. Returns INVALID_ARGUMENT if strings of this
// fixed width cannot hold the elements.
absl::StatusOr<int64_t> NpyStringWidth(const Tensor& tensor);

}  // namespace gradflow::internal

#endif  // GRADFLOW_IO_NPY_HEADER_H_
