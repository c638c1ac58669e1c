// Reads the IDX files (gzipped or not) that MNIST and its successors come in.
#ifndef GRADFLOW_EXAMPLES_QAT_BLOCK_IDX_H_
#define GRADFLOW_EXAMPLES_QAT_BLOCK_IDX_H_

#include <string>

#include "absl/status/statusor.h"
#include "gradflow/core/tensor.h"

namespace qat_block {

// The first `count` images of an IDX file of unsigned bytes: uint8 [count, height, width].
absl::StatusOr<gradflow::Tensor> ReadIdxImages(const std::string& path, int64_t count);

}  // namespace qat_block

#endif  // GRADFLOW_EXAMPLES_QAT_BLOCK_IDX_H_
