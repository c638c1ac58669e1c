// Reads image files as examples of one size. Internal; input.h makes batches of them.
#ifndef GRADFLOW_TRAINING_IMAGE_FILES_H_
#define GRADFLOW_TRAINING_IMAGE_FILES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/training/input.h"

namespace gradflow {
namespace training {

// The rows, columns and channels of an image.
struct ImageShape {
  int64_t rows = 0;
  int64_t columns = 0;
  int channels = 0;

  int64_t elements() const { return rows * columns * channels; }
};

// Returns the shape of the examples: the size in the options, or the size of the image in file
// `path` if the options state no size.
absl::StatusOr<ImageShape> ShapeOfExamples(const std::string& path, const ImageOptions& options);

// Decodes a file into `pixels`, an array of shape.elements() bytes. Resizes an image of another
// size if the options state a size; otherwise, another size is an error. Errors name the file.
absl::Status ReadImage(const std::string& path, const ImageOptions& options,
                       const ImageShape& shape, uint8_t* pixels);

}  // namespace training
}  // namespace gradflow

#endif  // GRADFLOW_TRAINING_IMAGE_FILES_H_
