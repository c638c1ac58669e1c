// Reading image files as examples of one size. Internal; batches of them are in input.h.
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

// Returns the shape of the examples: that of the options, or of the file if they state none.
absl::StatusOr<ImageShape> ShapeOfExamples(const std::string& path, const ImageOptions& options);

// Decodes a file to `pixels`, of `shape`. An image of another size is resized if the options state
// a size, and is an error otherwise. Errors name the file.
absl::Status ReadImage(const std::string& path, const ImageOptions& options,
                       const ImageShape& shape, uint8_t* pixels);

}  // namespace training
}  // namespace gradflow

#endif  // GRADFLOW_TRAINING_IMAGE_FILES_H_
