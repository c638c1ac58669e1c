// Input: batches of examples from arrays in memory or from image files, shuffled, repeated, and
// prepared in advance.
//
//   GRADFLOW_ASSIGN_OR_RETURN(const Tensor images, ReadArray("train-images-idx3-ubyte.gz"));
//   GRADFLOW_ASSIGN_OR_RETURN(const Tensor labels, ReadArray("train-labels-idx1-ubyte.gz"));
//   BatchesOptions options;
//   options.batch_size = 100;
//   GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<Batches> batches,
//                             Batches::Make({images, labels}, options));
//   std::vector<Tensor> batch;
//   while (...) {
//     GRADFLOW_RETURN_IF_ERROR(batches->Next(&batch));
//     ...
//   }
//
// Images are in a folder for each class:
//
//   GRADFLOW_ASSIGN_OR_RETURN(const ImageFiles files, ListImages("flowers/train"));
//   ImageOptions images;
//   images.height = images.width = 96;
//   GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<Batches> batches,
//                             Batches::OpenImages(files, images, options));
//
// A batch depends only on the examples, the options and its number. A run that continues at the
// position where another run stopped therefore sees the same bits.
#ifndef GRADFLOW_TRAINING_INPUT_H_
#define GRADFLOW_TRAINING_INPUT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/tensor.h"

#pragma GCC visibility push(default)
namespace gradflow {
namespace training {

// Reads a .npy file (io/npy.h) or an IDX file, plain or compressed (io/idx.h). The first bytes of
// the file determine the format.
absl::StatusOr<Tensor> ReadArray(const std::string& path);

// Image files and the numbers of their classes.
struct ImageFiles {
  // The paths of the files, including their folders.
  std::vector<std::string> paths;
  // For each path, the index of its class in `classes`.
  std::vector<int64_t> labels;
  // The names of the classes.
  std::vector<std::string> classes;
};
// Lists the .png, .jpg and .jpeg files in the subfolders of `folder`. Each subfolder is a class.
// The classes and the files of each class are ordered by name. Names that begin with a dot are
// skipped. Returns INVALID_ARGUMENT if there is no such file.
absl::StatusOr<ImageFiles> ListImages(const std::string& folder);

// Options of Batches::OpenImages.
struct ImageOptions {
  // The size of the examples in pixels; images are resized to it. Enlarging uses bilinear
  // interpolation; reducing takes a weighted mean of all pixels. If height and width are 0, all
  // images must have the same size.
  int64_t height = 0;
  int64_t width = 0;
  // 1 for gray, 3 for RGB.
  int channels = 3;
  // Images with more pixels, and files of more than 256 MiB, return RESOURCE_EXHAUSTED.
  int64_t max_pixels = int64_t{1} << 26;
};

// Options of Batches.
struct BatchesOptions {
  // The number of examples in a batch.
  int64_t batch_size = 32;
  // If true, each epoch has a different order, which depends on the seed and the number of the
  // epoch.
  bool shuffle = true;
  uint64_t seed = 0;
  // The number of epochs; 0 for an endless input.
  int64_t epochs = 0;
  // If true, drops the examples that are left over at the end of an epoch. Otherwise they form a
  // smaller batch.
  bool drop_remainder = true;
  // The number of later batches that are prepared while the caller uses a batch.
  int prefetch = 2;
};

// Thread safety: none. Batches are prepared in oneTBB tasks, on the threads that sessions also use.
// If no thread has started to prepare a batch, Next() prepares it. The images of a batch are
// decoded in parallel.
class Batches {
 public:
  // Makes batches of rows of `arrays`. The arrays must have trivially copyable elements and the
  // same number of rows. Returns INVALID_ARGUMENT if there is no batch.
  static absl::StatusOr<std::unique_ptr<Batches>> Make(std::vector<Tensor> arrays,
                                                       const BatchesOptions& options);
  // Reads the arrays from files.
  static absl::StatusOr<std::unique_ptr<Batches>> Open(const std::vector<std::string>& paths,
                                                       const BatchesOptions& options);
  // Makes batches of image files. A batch has a tensor of pixels, uint8 [examples, height, width,
  // channels], and a tensor of labels, int64 [examples]. Returns INVALID_ARGUMENT if there is no
  // batch. Files are read when their batch is prepared: if a file is not a PNG or JPEG image,
  // Next() returns the error, with the path. Without a size in `images`, this function reads the
  // first file.
  static absl::StatusOr<std::unique_ptr<Batches>> OpenImages(const ImageFiles& files,
                                                             const ImageOptions& images,
                                                             const BatchesOptions& options);
  ~Batches();
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;

  // Stores the next batch in *batch: one tensor for each array, or the pixels and the labels.
  // Returns OUT_OF_RANGE after the last epoch. After another error, the next call tries the same
  // batch again.
  absl::Status Next(std::vector<Tensor>* batch);

  // The options that the batches were made with.
  const BatchesOptions& options() const;
  // The number of examples, and the number of batches in an epoch.
  int64_t num_examples() const;
  int64_t batches_per_epoch() const;
  // The number of the batch that Next() returns next. Batches are numbered from 0, across all
  // epochs.
  int64_t position() const;
  // Continues with batch `position`. Returns INVALID_ARGUMENT if `position` is negative.
  absl::Status Seek(int64_t position);

 private:
  struct Impl;
  explicit Batches(std::unique_ptr<Impl> impl);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace training
}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_TRAINING_INPUT_H_
