// Reads and writes tensors as NumPy .npy files (format versions 1.0 to 3.0).
//
// Supported types: bool, the signed and unsigned integers, float16 (half), float32, float64,
// complex64, complex128, and strings. bfloat16 has no NumPy type and is written as uint16 bits
// ('<u2').
//
// Strings have a fixed width: '|S5' holds 5 bytes, '<U5' holds 5 Unicode characters, which become
// UTF-8. Zeros at the end of an element do not belong to its string. Strings are written as '|S'
// with the length of the longest one. Arrays of Python objects are not supported.
#ifndef GRADFLOW_IO_NPY_H_
#define GRADFLOW_IO_NPY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/tensor.h"

#pragma GCC visibility push(default)
namespace gradflow {

// Reads a file of either byte order and either memory order (Fortran order is transposed). A file
// of at least 64 MiB whose bytes need no conversion is memory-mapped: its pages are shared and
// never written, and the file must not be truncated while the tensor lives. Returns NOT_FOUND,
// PERMISSION_DENIED or INVALID_ARGUMENT; errors name the file and the expected and actual values. A
// file that is shorter or longer than its header states is an error.
absl::StatusOr<Tensor> ReadNpy(const std::string& path);
// Reads the contents of a file from memory. Copies the elements.
absl::StatusOr<Tensor> ParseNpy(absl::string_view bytes);

// Writes version 1.0, little-endian, in C order. The file appears whole or not at all: it is
// written under a temporary name and renamed. Returns INVALID_ARGUMENT if the element type has no
// NumPy type, if a string ends in a zero byte, or if strings of one width would take 2 GiB.
absl::Status WriteNpy(const std::string& path, const Tensor& tensor);
// Returns the bytes of the file that precede the elements.
absl::StatusOr<std::string> FormatNpyHeader(const Tensor& tensor);
// Returns the bytes of the elements. Uses *storage for them if the tensor has strings; otherwise
// they are the tensor's own. REQUIRES: FormatNpyHeader(tensor) is OK
absl::string_view FormatNpyElements(const Tensor& tensor, std::string* storage);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_IO_NPY_H_
