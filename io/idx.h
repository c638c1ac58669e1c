// Reads tensors from IDX files, the format of MNIST and similar data sets.
//
// A file has two zeros, the type and the rank as bytes, the dimensions as 32-bit words, and the
// elements in row-major order; all big-endian. Types: uint8, int8, int16, int32, float, double.
#ifndef GRADFLOW_IO_IDX_H_
#define GRADFLOW_IO_IDX_H_

#include <string>

#include "absl/status/statusor.h"
#include "gradflow/core/tensor.h"

#pragma GCC visibility push(default)
namespace gradflow {

// Reads a file, plain or compressed by gzip. Returns NOT_FOUND, PERMISSION_DENIED or
// INVALID_ARGUMENT; errors name the file and the expected and actual values. A file that is shorter
// or longer than its header states is an error. Allocates at most the bytes that the header states,
// and at most 1,032 times the size of the file, which is the maximum expansion of deflate.
absl::StatusOr<Tensor> ReadIdx(const std::string& path);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_IO_IDX_H_
