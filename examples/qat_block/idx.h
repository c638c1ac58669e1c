// Reader of IDX files (optionally gzipped), the format of MNIST and its successors.
#ifndef GRADFLOW_EXAMPLES_QAT_BLOCK_IDX_H_
#define GRADFLOW_EXAMPLES_QAT_BLOCK_IDX_H_

#include <string>

#include "absl/status/statusor.h"
#include "gradflow/core/tensor.h"

namespace qat_block {

// Reads the first `count` images of an IDX file of unsigned bytes, as uint8 [count, height, width].
absl::StatusOr<gradflow::Tensor> ReadIdxImages(const std::string& path, int64_t count);

}  // namespace qat_block

#endif  // GRADFLOW_EXAMPLES_QAT_BLOCK_IDX_H_
