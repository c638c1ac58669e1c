// Tests of batches of image files: files, pixels, labels, order and errors.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/io/image_codecs.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"
#include "gradflow/training/input.h"
#include "tests/testing/folder_fixture.h"

namespace gradflow {
namespace training {
namespace {

using ::gradflow::testing::FolderFixture;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::TensorEq;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ImageInputTest : public FolderFixture {
 protected:
  void Write(const std::string& name, const std::string& bytes) const {
    const std::filesystem::path path = File(name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }
  // Writes an image with the given pixel(row, column, channel).
  template <typename F>
  void WriteImage(const std::string& name, int64_t rows, int64_t columns, int channels,
                  const F& pixel) const {
    std::vector<uint8_t> pixels;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        for (int k = 0; k < channels; ++k) pixels.push_back(static_cast<uint8_t>(pixel(r, c, k)));
      }
    }
    internal::ImageSize size;
    size.rows = rows;
    size.columns = columns;
    size.channels = channels;
    std::string bytes;
    if (absl::string_view(name).substr(name.size() - 4) == ".png") {
      GRADFLOW_ASSERT_OK(internal::EncodePng(pixels.data(), size, 8, -1, &bytes));
    } else {
      internal::JpegEncoding encoding;
      encoding.quality = 100;
      GRADFLOW_ASSERT_OK(internal::EncodeJpeg(pixels.data(), size, encoding, &bytes));
    }
    Write(name, bytes);
  }
  // Writes an image of one color.
  void WriteColor(const std::string& name, int64_t rows, int64_t columns, int red, int green,
                  int blue) const {
    const std::vector<int> color = {red, green, blue};
    WriteImage(name, rows, columns, 3, [&](int64_t, int64_t, int k) { return color[k]; });
  }
  // Writes `count` images of 2 x 2 pixels. All bytes of image i are i, and its class is i % 3.
  ImageFiles Numbered(int count) const {
    ImageFiles files;
    for (int i = 0; i < count; ++i) {
      files.paths.push_back(File(absl::StrCat(i, ".png")));
      files.labels.push_back(i % 3);
      WriteColor(absl::StrCat(i, ".png"), 2, 2, i, i, i);
    }
    files.classes = {"a", "b", "c"};
    return files;
  }
  static std::unique_ptr<Batches> Open(const ImageFiles& files, const ImageOptions& images,
                                       const BatchesOptions& options) {
    absl::StatusOr<std::unique_ptr<Batches>> batches = Batches::OpenImages(files, images, options);
    GRADFLOW_EXPECT_OK(batches.status());
    return batches.ok() ? *std::move(batches) : nullptr;
  }
  static std::vector<Tensor> Next(Batches* batches) {
    std::vector<Tensor> batch;
    GRADFLOW_EXPECT_OK(batches->Next(&batch));
    EXPECT_EQ(batch.size(), 2);
    return batch;
  }
};

// Options for all files in their order.
BatchesOptions InOrder(int64_t batch_size) {
  BatchesOptions options;
  options.batch_size = batch_size;
  options.shuffle = false;
  return options;
}

TEST_F(ImageInputTest, ClassesAreFolders) {
  WriteColor("roses/b.png", 4, 6, 255, 0, 0);
  WriteColor("roses/a.JPG", 4, 6, 250, 10, 20);
  WriteColor("daisies/x.jpeg", 4, 6, 0, 0, 255);
  WriteColor("not_in_a_class.png", 4, 6, 0, 0, 0);
  WriteColor(".hidden/x.png", 4, 6, 0, 0, 0);
  WriteColor("roses/.x.png", 4, 6, 0, 0, 0);
  Write("roses/list.txt", "no image");
  Write("empty/list.txt", "no image");
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const ImageFiles files, ListImages(folder()));
  EXPECT_THAT(files.classes, ElementsAre("daisies", "empty", "roses"));
  EXPECT_THAT(files.labels, ElementsAre(0, 2, 2));
  EXPECT_THAT(files.paths,
              ElementsAre(File("daisies/x.jpeg"), File("roses/a.JPG"), File("roses/b.png")));
  const auto batches = Open(files, {}, InOrder(3));
  ASSERT_NE(batches, nullptr);
  EXPECT_EQ(batches->num_examples(), 3);
  const std::vector<Tensor> batch = Next(batches.get());
  EXPECT_EQ(batch[0].dtype(), DT_UINT8);
  EXPECT_EQ(batch[0].shape(), TensorShape({3, 4, 6, 3}));
  EXPECT_THAT(batch[1], TensorEq(testing::AsTensor<int64_t>({0, 2, 2})));
  // JPEG is lossy.
  const int expected[3][3] = {{0, 0, 255}, {250, 10, 20}, {255, 0, 0}};
  const auto pixels = batch[0].flat<uint8_t>();
  for (int i = 0; i < 3 * 24 * 3; ++i) {
    EXPECT_NEAR(pixels(i), expected[i / 72][i % 3], i < 144 ? 3 : 0) << i;
  }
}

TEST_F(ImageInputTest, EpochsAreShuffledAndResumed) {
  constexpr int kImages = 20;
  const ImageFiles files = Numbered(kImages);
  BatchesOptions options;
  options.batch_size = 3;
  options.seed = 5;
  options.drop_remainder = false;
  options.epochs = 3;
  std::vector<std::vector<Tensor>> all;
  const auto first = Open(files, {}, options);
  ASSERT_NE(first, nullptr);
  std::vector<std::vector<int>> orders(3);
  EXPECT_EQ(first->batches_per_epoch(), 7);
  for (int b = 0; b < 21; ++b) {
    all.push_back(Next(first.get()));
    EXPECT_EQ(all.back()[1].dim_size(0), b % 7 == 6 ? 2 : 3);
    for (int i = 0; i < all.back()[1].dim_size(0); ++i) {
      const int number = all.back()[0].flat<uint8_t>()(i * 12);
      EXPECT_EQ(all.back()[0].flat<uint8_t>()(i * 12 + 11), number);
      EXPECT_EQ(all.back()[1].flat<int64_t>()(i), number % 3);
      orders[b / 7].push_back(number);
    }
  }
  std::vector<Tensor> batch;
  EXPECT_THAT(first->Next(&batch), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_NE(orders[0], orders[1]);
  for (std::vector<int>& order : orders) {
    std::sort(order.begin(), order.end());
    for (int i = 0; i < kImages; ++i) EXPECT_EQ(order[i], i);
  }
  for (const int64_t position : {0, 4, 6, 13, 20}) {
    options.prefetch = static_cast<int>(position % 5);
    const auto second = Open(files, {}, options);
    ASSERT_NE(second, nullptr);
    Next(second.get());
    GRADFLOW_ASSERT_OK(second->Seek(position));
    for (int64_t b = position; b < 21; ++b) {
      EXPECT_THAT(Next(second.get()), ElementsAre(TensorEq(all[b][0]), TensorEq(all[b][1]))) << b;
    }
  }
}

TEST_F(ImageInputTest, MayBeDestroyedAtAnyTime) {
  const ImageFiles files = Numbered(30);
  BatchesOptions options;
  options.batch_size = 10;
  options.prefetch = 4;
  for (int i = 0; i < 30; ++i) {
    const auto batches = Open(files, {}, options);
    ASSERT_NE(batches, nullptr);
    Next(batches.get());
    if (i % 2 == 0) {
      GRADFLOW_EXPECT_OK(batches->Seek(i));
    }
  }
}

TEST_F(ImageInputTest, ConvertsChannels) {
  WriteImage("gray.png", 2, 2, 1, [](int64_t r, int64_t c, int) { return 10 * r + c; });
  WriteImage("rgba.png", 2, 2, 4,
             [](int64_t r, int64_t c, int k) { return k == 3 ? 128 : 10 * r + c; });
  WriteImage("gray.jpg", 2, 2, 1, [](int64_t r, int64_t c, int) { return 10 * r + c; });
  ImageFiles files;
  for (const char* name : {"gray.png", "rgba.png", "gray.jpg"}) files.paths.push_back(File(name));
  files.labels = {0, 0, 0};
  for (const int channels : {1, 3}) {
    ImageOptions images;
    images.channels = channels;
    const auto batches = Open(files, images, InOrder(3));
    ASSERT_NE(batches, nullptr);
    const Tensor pixels = Next(batches.get())[0];
    ASSERT_EQ(pixels.shape(), TensorShape({3, 2, 2, channels}));
    for (int i = 0; i < 3 * 4 * channels; ++i) {
      const int pixel = i / channels % 4;
      EXPECT_NEAR(pixels.flat<uint8_t>()(i), 10 * (pixel / 2) + pixel % 2,
                  i < 8 * channels ? 1 : 3);
    }
  }
}

// Target sizes for images of 7 x 5 pixels.
struct Size {
  int64_t height;
  int64_t width;
};

TEST_F(ImageInputTest, ResizesImages) {
  constexpr int kRows = 7;
  constexpr int kColumns = 5;
  const auto pixel = [](int64_t r, int64_t c, int k) { return (r * 53 + c * 97 + k * 31) % 256; };
  WriteImage("x.png", kRows, kColumns, 3, pixel);
  ImageFiles files;
  files.paths = {File("x.png")};
  files.labels = {0};
  // The weight of input pixel `in` in output pixel `out`, before weights are normalized.
  const auto weight = [](int64_t in, int64_t out, double scale) {
    const double distance =
        std::abs(static_cast<double>(in) + 0.5 - (static_cast<double>(out) + 0.5) * scale);
    return std::max(0.0, 1 - distance / std::max(scale, 1.0));
  };
  for (const Size& size : {Size{7, 5}, Size{14, 20}, Size{3, 2}, Size{1, 1}, Size{9, 2}}) {
    ImageOptions images;
    images.height = size.height;
    images.width = size.width;
    const auto batches = Open(files, images, InOrder(1));
    ASSERT_NE(batches, nullptr);
    const Tensor resized = Next(batches.get())[0];
    ASSERT_EQ(resized.shape(), TensorShape({1, size.height, size.width, 3}));
    for (int64_t r = 0; r < size.height; ++r) {
      for (int64_t c = 0; c < size.width; ++c) {
        for (int k = 0; k < 3; ++k) {
          double sum = 0;
          double weights = 0;
          for (int y = 0; y < kRows; ++y) {
            for (int x = 0; x < kColumns; ++x) {
              const double w = weight(y, r, kRows / static_cast<double>(size.height)) *
                               weight(x, c, kColumns / static_cast<double>(size.width));
              sum += w * static_cast<double>(pixel(y, x, k));
              weights += w;
            }
          }
          EXPECT_NEAR(resized.flat<uint8_t>()((r * size.width + c) * 3 + k), sum / weights, 0.501);
        }
      }
    }
  }
}

TEST_F(ImageInputTest, RejectsInvalidFilesAndOptions) {
  const auto is = [](const std::string& text) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text));
  };
  EXPECT_THAT(ListImages(File("none")).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none': cannot list the folder")));
  EXPECT_THAT(ListImages(folder()).status(), is("expected a folder of .png, .jpg or .jpeg files"));
  ImageFiles files = Numbered(3);
  const auto error = [&](const ImageOptions& images, const BatchesOptions& options) {
    return Batches::OpenImages(files, images, options).status();
  };
  const auto size = [](int64_t height, int64_t width) {
    ImageOptions images;
    images.height = height;
    images.width = width;
    return images;
  };
  EXPECT_THAT(error(size(0, 1), InOrder(1)), is("found 0 x 1"));
  EXPECT_THAT(error(size(-1, -1), InOrder(1)), is("found -1 x -1"));
  EXPECT_THAT(error(size(int64_t{1} << 62, 4), InOrder(1)), is("expected a size of 1 to 67108864"));
  EXPECT_THAT(error({}, InOrder(4)), is("there is no batch of 4 examples: found 3"));
  EXPECT_THAT(error({}, InOrder(0)), is("expected batch_size of 1 or more"));
  ImageOptions images;
  images.channels = 4;
  EXPECT_THAT(error(images, InOrder(1)), is("expected 1 or 3 channels, found 4"));
  images = {};
  images.max_pixels = 3;
  EXPECT_THAT(error(images, InOrder(1)),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("/0.png'"), HasSubstr("2 x 2 pixels, expected at most 3"))));
  files.labels.pop_back();
  EXPECT_THAT(error({}, InOrder(1)), is("expected a label for each of 3 files, found 2"));

  // An error of a file concerns only its batch. The other batches can be read.
  files = Numbered(6);
  WriteColor("2.png", 3, 2, 0, 0, 0);
  Write("3.png", "GIF89a");
  std::filesystem::resize_file(File("4.png"), std::filesystem::file_size(File("4.png")) / 2);
  std::filesystem::remove(File("5.png"));
  for (const int prefetch : {0, 3}) {
    BatchesOptions options = InOrder(1);
    options.prefetch = prefetch;
    const auto batches = Open(files, {}, options);
    ASSERT_NE(batches, nullptr);
    std::vector<Tensor> batch;
    const auto status_of = [&](int64_t position) {
      GRADFLOW_EXPECT_OK(batches->Seek(position));
      return batches->Next(&batch);
    };
    EXPECT_THAT(status_of(2), is("/2.png': the image has 3 x 2 pixels, but the first one has 2"));
    EXPECT_THAT(status_of(3), is("/3.png': expected a PNG or JPEG image"));
    EXPECT_THAT(status_of(4), is("/4.png': Invalid PNG data"));
    EXPECT_THAT(status_of(5),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr("/5.png': cannot open")));
    EXPECT_EQ(batches->position(), 5);
    GRADFLOW_EXPECT_OK(status_of(1));
    EXPECT_THAT(batch[0].span<uint8_t>(), Each(1));
    // Images of other sizes are resized.
    const auto resized = Open(files, size(2, 2), options);
    ASSERT_NE(resized, nullptr);
    GRADFLOW_EXPECT_OK(resized->Seek(2));
    GRADFLOW_EXPECT_OK(resized->Next(&batch));
  }
}

}  // namespace
}  // namespace training
}  // namespace gradflow
