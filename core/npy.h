// Tensors in NumPy's .npy files (format versions 1.0 to 3.0).
//
// Types: bool, the signed and unsigned integers, float16 (half), float32, float64, complex64,
// complex128; bfloat16 has no NumPy type and is written as uint16 bits ('<u2').
#ifndef GRADFLOW_CORE_NPY_H_
#define GRADFLOW_CORE_NPY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/tensor.h"

#pragma GCC visibility push(default)
namespace gradflow {

// Reads a file. Either byte order and either memory order (Fortran order is transposed on reading).
// A large file (64 MiB) that needs no change of its bytes is mapped into memory, not read: its
// pages are shared and never written to, and the file must not become shorter while the tensor
// lives. NOT_FOUND / PERMISSION_DENIED / INVALID_ARGUMENT (naming the file, what was expected and
// what was found) otherwise; a file that is shorter or longer than its header says is an error.
absl::StatusOr<Tensor> ReadNpy(const std::string& path);
// The same from the bytes of a file, copying.
absl::StatusOr<Tensor> ParseNpy(absl::string_view bytes);

// Writes version 1.0 (2.0 if the header needs it), little-endian, C order. The file appears whole
// or not at all: it is written beside `path` and renamed. INVALID_ARGUMENT for a type without a
// NumPy type.
absl::Status WriteNpy(const std::string& path, const Tensor& tensor);
absl::StatusOr<std::string> FormatNpyHeader(const Tensor& tensor);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_NPY_H_
