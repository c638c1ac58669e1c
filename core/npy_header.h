// The header of a .npy file: where it is and what it says. Used by npy.cc.
#ifndef GRADFLOW_CORE_NPY_HEADER_H_
#define GRADFLOW_CORE_NPY_HEADER_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"

namespace gradflow::internal {

struct NpyHeader {
  DataType dtype = DT_INVALID;
  bool big_endian = false;
  bool fortran_order = false;
  TensorShape shape;
};

// Where the header's text is in a file; the elements follow it.
struct NpyHeaderPlace {
  size_t begin;
  size_t end;
};

// What a file starts with: "\x93NUMPY", the version, and the length of the header's text, which
// has 2 bytes in version 1.0 and 4 in later ones.
inline constexpr size_t kMaxNpyPreludeSize = 12;

// `start` has the first kMaxNpyPreludeSize bytes of the file, or all if there are fewer.
absl::StatusOr<NpyHeaderPlace> FindNpyHeader(absl::string_view start, size_t file_size);

// Reads the header's text, a Python dict, strictly: what NumPy writes, with any order of keys and
// any white space. `data_size` are the bytes behind it, which must be those of the elements.
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view text, size_t data_size);

}  // namespace gradflow::internal

#endif  // GRADFLOW_CORE_NPY_HEADER_H_
