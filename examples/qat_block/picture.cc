#include "examples/qat_block/picture.h"

#include <png.h>

#include <algorithm>
#include <cmath>

#include "examples/qat_block/block.h"
#include "gradflow/core/status.h"

namespace qat_block {
namespace {

using gradflow::Tensor;

constexpr int kZoom = 4;
constexpr int kMargin = 8;

class PictureCanvas {
 public:
  PictureCanvas(int columns, int rows)
      : width_(kMargin + columns * (kWidth * kZoom + kMargin)),
        height_(kMargin + rows * (kHeight * kZoom + kMargin)),
        pixels_(3 * width_ * height_, 255) {}

  // Paints pixel (y, x) of the image in cell (row, column).
  void Paint(int row, int column, int y, int x, const uint8_t (&rgb)[3]) {
    const int top = kMargin + row * (kHeight * kZoom + kMargin) + y * kZoom;
    const int left = kMargin + column * (kWidth * kZoom + kMargin) + x * kZoom;
    for (int dy = 0; dy < kZoom; ++dy) {
      for (int dx = 0; dx < kZoom; ++dx) {
        std::copy(rgb, rgb + 3, &pixels_[3 * ((top + dy) * width_ + left + dx)]);
      }
    }
  }

  absl::Status Write(const std::string& path) const {
    png_image image = {};
    image.version = PNG_IMAGE_VERSION;
    image.width = width_;
    image.height = height_;
    image.format = PNG_FORMAT_RGB;
    if (png_image_write_to_file(&image, path.c_str(), /*convert_to_8_bit=*/0, pixels_.data(),
                                /*row_stride=*/0, /*colormap=*/nullptr) == 0) {
      return gradflow::errors::InvalidArgument(path, ": ", image.message);
    }
    return absl::OkStatus();
  }

 private:
  int width_;
  int height_;
  std::vector<uint8_t> pixels_;
};

}  // namespace

absl::Status WritePicture(const std::string& path, const Tensor& images,
                          const std::vector<Tensor>& gradients, int columns) {
  PictureCanvas canvas(columns, 1 + static_cast<int>(gradients.size()));
  const auto pixels = images.tensor<uint8_t, 3>();
  for (int n = 0; n < columns; ++n) {
    for (int y = 0; y < kHeight; ++y) {
      for (int x = 0; x < kWidth; ++x) {
        const uint8_t gray = pixels(n, y, x);
        canvas.Paint(0, n, y, x, {gray, gray, gray});
      }
    }
  }
  for (size_t i = 0; i < gradients.size(); ++i) {
    const auto values = gradients[i].tensor<float, 4>();
    for (int n = 0; n < columns; ++n) {
      const Tensor one = gradients[i].SubSlice(n);
      float largest = 1e-30f;
      for (const float value : one.flat<float>()) largest = std::max(largest, std::abs(value));
      for (int y = 0; y < kHeight; ++y) {
        for (int x = 0; x < kWidth; ++x) {
          const float value = values(n, y / 2, x / 2, 2 * (y % 2) + x % 2) / largest;
          const auto faded = static_cast<uint8_t>(std::lround(255 * (1 - std::abs(value))));
          if (value > 0) {
            canvas.Paint(1 + i, n, y, x, {255, faded, faded});
          } else {
            canvas.Paint(1 + i, n, y, x, {faded, faded, 255});
          }
        }
      }
    }
  }
  return canvas.Write(path);
}

}  // namespace qat_block
