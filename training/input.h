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
// A batch is a function of the examples, the options and its number. A run that continues at the
// position at which another one stopped sees the same bits.
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
// the file tell which.
absl::StatusOr<Tensor> ReadArray(const std::string& path);

// Image files and the numbers of their classes.
struct ImageFiles {
  // The files, each with the path of its folder.
  std::vector<std::string> paths;
  // The index in `classes` of each path.
  std::vector<int64_t> labels;
  // The names of the classes.
  std::vector<std::string> classes;
};
// Lists the .png, .jpg and .jpeg files in the sub-folders of `folder`, each of which is a class.
// The classes, and the files of each, are in the order of their names. Names that begin with a dot
// are skipped.
absl::StatusOr<ImageFiles> ListImages(const std::string& folder);

// Options of Batches::OpenImages.
struct ImageOptions {
  // The size to which images are resized, with bilinear interpolation to larger sizes and a
  // weighted mean of all pixels to smaller ones. If both are 0, all images must have the same size.
  int64_t height = 0;
  int64_t width = 0;
  // 1 for gray, 3 for RGB.
  int channels = 3;
  // Images of more pixels are RESOURCE_EXHAUSTED.
  int64_t max_pixels = int64_t{1} << 26;
};

// Options of Batches.
struct BatchesOptions {
  // The number of examples of a batch.
  int64_t batch_size = 32;
  // If true, each epoch has an order of its own, which depends on the seed and on the number of the
  // epoch.
  bool shuffle = true;
  uint64_t seed = 0;
  // The number of epochs; 0 for no end.
  int64_t epochs = 0;
  // If true, drops the examples that are left over at the end of an epoch. Otherwise they are a
  // smaller batch.
  bool drop_remainder = true;
  // The number of batches that are prepared while the caller uses the one before.
  int prefetch = 2;
};

// Thread safety: none. Batches are prepared in tasks of oneTBB, on the threads that sessions use
// too. A task that no thread has begun is done by Next(). The images of a batch are decoded in
// parallel.
class Batches {
 public:
  // Batches of rows of `arrays`, tensors of plain bytes with the same number of rows. Returns
  // INVALID_ARGUMENT if there is no batch.
  static absl::StatusOr<std::unique_ptr<Batches>> Make(std::vector<Tensor> arrays,
                                                       const BatchesOptions& options);
  // Arrays from files.
  static absl::StatusOr<std::unique_ptr<Batches>> Open(const std::vector<std::string>& paths,
                                                       const BatchesOptions& options);
  // Image files. A batch has the tensor [examples, height, width, channels] of the pixels, of type
  // uint8, and the tensor [examples] of the labels, of type int64. Returns INVALID_ARGUMENT if
  // there is no batch. Files are read when their batch is prepared: Next() returns the error, with
  // the path, of one that is no PNG or JPEG image.
  static absl::StatusOr<std::unique_ptr<Batches>> OpenImages(const ImageFiles& files,
                                                             const ImageOptions& images,
                                                             const BatchesOptions& options);
  ~Batches();
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;

  // Stores the next batch in *batch, a tensor for each array. Returns OUT_OF_RANGE after the last
  // epoch.
  absl::Status Next(std::vector<Tensor>* batch);

  // The options that the batches were made with.
  const BatchesOptions& options() const;
  // The number of examples and of batches of an epoch.
  int64_t num_examples() const;
  int64_t batches_per_epoch() const;
  // The number of the batch that Next() returns next. The batches of all epochs are numbered from 0
  // on.
  int64_t position() const;
  // Continues with the batch `position`. Returns INVALID_ARGUMENT if it is negative.
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
