// The picture of the example: images and, below each image, the gradients of the loss with respect
// to its pixels.
#ifndef GRADFLOW_EXAMPLES_QAT_BLOCK_PICTURE_H_
#define GRADFLOW_EXAMPLES_QAT_BLOCK_PICTURE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gradflow/core/tensor.h"

namespace qat_block {

// Writes a PNG with a column for each image: the image in gray, then each tensor of `gradients`
// (float [n, 14, 14, 4], the block's layout), with positive values in red and negative values in
// blue. REQUIRES: every tensor has at least `columns` images
absl::Status WritePicture(const std::string& path, const gradflow::Tensor& images,
                          const std::vector<gradflow::Tensor>& gradients, int columns);

}  // namespace qat_block

#endif  // GRADFLOW_EXAMPLES_QAT_BLOCK_PICTURE_H_
