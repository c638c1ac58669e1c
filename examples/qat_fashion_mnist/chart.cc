#include "examples/qat_fashion_mnist/chart.h"

#include <algorithm>
#include <cmath>

#include "gradflow/core/status.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/session/client_session.h"

namespace qat {
namespace {

using gradflow::Tensor;

constexpr int kPictureWidth = 640;
constexpr int kPictureHeight = 360;
constexpr int kMargin = 24;

struct Color {
  uint8_t red, green, blue;
};

class ChartCanvas {
 public:
  ChartCanvas() : pixels_(gradflow::DT_UINT8, {kPictureHeight, kPictureWidth, 3}) {
    for (uint8_t& byte : pixels_.span<uint8_t>()) byte = 255;
  }

  // Paints a square. `x` and `y` are fractions of the width and height within the margins, from the
  // left and from below.
  void Dot(double x, double y, int size, Color color) {
    const auto column = static_cast<int>(std::lround(kMargin + x * (kPictureWidth - 2 * kMargin)));
    const auto row = static_cast<int>(
        std::lround(kPictureHeight - kMargin - y * (kPictureHeight - 2 * kMargin)));
    for (int r = std::max(0, row - size); r <= std::min(kPictureHeight - 1, row + size); ++r) {
      for (int c = std::max(0, column - size); c <= std::min(kPictureWidth - 1, column + size);
           ++c) {
        auto pixel = pixels_.tensor<uint8_t, 3>();
        pixel(r, c, 0) = color.red;
        pixel(r, c, 1) = color.green;
        pixel(r, c, 2) = color.blue;
      }
    }
  }

  void Line(double x0, double y0, double x1, double y1, int size, Color color) {
    constexpr int kDots = 2 * kPictureWidth;
    for (int i = 0; i <= kDots; ++i) {
      const double part = static_cast<double>(i) / kDots;
      Dot(x0 + part * (x1 - x0), y0 + part * (y1 - y0), size, color);
    }
  }

  const Tensor& pixels() const { return pixels_; }

 private:
  Tensor pixels_;
};

}  // namespace

absl::Status WriteChart(const std::string& path, const std::vector<Epoch>& epochs) {
  constexpr double kLowest = 0.8;
  constexpr Color kGray = {220, 220, 220};
  ChartCanvas canvas;
  for (int i = 0; i <= 5; ++i) canvas.Line(0, i / 5.0, 1, i / 5.0, 0, kGray);
  double most = 1e-9;
  for (const Epoch& epoch : epochs) most = std::max(most, epoch.loss);
  const auto draw = [&](const auto& height, Color color) {
    const double last = std::max<double>(1, static_cast<double>(epochs.size()) - 1);
    for (size_t i = 0; i < epochs.size(); ++i) {
      const double y = std::clamp(height(epochs[i]), 0.0, 1.0);
      const double x = static_cast<double>(i) / last;
      canvas.Dot(x, y, 4, color);
      if (i == 0) continue;
      const double before = std::clamp(height(epochs[i - 1]), 0.0, 1.0);
      canvas.Line(static_cast<double>(i - 1) / last, before, x, y, 1, color);
    }
  };
  draw([&](const Epoch& e) { return e.loss / most; }, {200, 40, 40});
  draw([&](const Epoch& e) { return (e.accuracy - kLowest) / (1 - kLowest); }, {40, 80, 200});

  const gradflow::Scope scope = gradflow::Scope::NewRootScope();
  const auto png = gradflow::ops::EncodePng(
      scope, gradflow::ops::Const(scope, gradflow::Input::Initializer(canvas.pixels())));
  const auto write = gradflow::ops::WriteFile(scope, Tensor(path), png);
  const gradflow::ClientSession session(scope);
  return session.Run({}, {}, {write.operation}, nullptr);
}

}  // namespace qat
