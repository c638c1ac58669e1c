// RGBToHSV, HSVToRGB, AdjustHue, AdjustSaturation and AdjustContrastv2.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/nn/softmax_rows.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow::color {
namespace {

// ---- Pixels ----

// Converts rgb to hue, saturation and value. The hue is in [0, 1).
template <typename C>
void ToHsv(const C* rgb, C* hsv) {
  const C r = rgb[0];
  const C g = rgb[1];
  const C b = rgb[2];
  const C v = std::max(r, std::max(g, b));
  const C range = v - std::min(r, std::min(g, b));
  C h = 0;
  if (range > 0) {
    const C norm = C(1) / (C(6) * range);
    h = r == v   ? norm * (g - b)
        : g == v ? norm * (b - r) + C(2) / C(6)
                 : norm * (r - g) + C(4) / C(6);
  }
  hsv[0] = h < 0 ? h + 1 : h;
  hsv[1] = v > 0 ? range / v : 0;
  hsv[2] = v;
}

template <typename C>
void ToRgb(const C* hsv, C* rgb) {
  const C dh = hsv[0] * 6;
  const C s = hsv[1];
  const C v = hsv[2];
  const auto clamp = [](C x) { return std::min(std::max(x, C(0)), C(1)); };
  const C shares[3] = {clamp(std::abs(dh - 3) - 1), clamp(2 - std::abs(dh - 2)),
                       clamp(2 - std::abs(dh - 4))};
  for (int k = 0; k < 3; ++k) rgb[k] = ((1 - s) + s * shares[k]) * v;
}

// Turns the hue by `turn` sixths of a circle. The largest and the smallest channel keep their
// values.
void TurnHue(const float* rgb, float turn, float* to) {
  const float high = std::max(rgb[0], std::max(rgb[1], rgb[2]));
  const float low = std::min(rgb[0], std::min(rgb[1], rgb[2]));
  float h = 0;
  const float range = high - low;
  if (range > 0) {
    h = rgb[0] == high   ? (rgb[1] - rgb[2]) / range
        : rgb[1] == high ? 2 + (rgb[2] - rgb[0]) / range
                         : 4 + (rgb[0] - rgb[1]) / range;
  }
  h += turn;
  h -= 6 * std::floor(h / 6);
  // Adding 6 to a small negative number may round to 6.
  if (!(h < 6)) h = h >= 6 ? 0 : h;
  // Channel k has its maximum within a sixth of the circle on each side of 2k.
  for (int k = 0; k < 3; ++k) {
    const float distance = std::abs(h - static_cast<float>(2 * k));
    const float around = std::min(distance, 6 - distance);
    to[k] = low + std::min(std::max(2 - around, 0.0f), 1.0f) * range;
  }
}

void ScaleSaturation(const float* rgb, float scale, float* to) {
  float hsv[3];
  ToHsv(rgb, hsv);
  hsv[1] = std::min(1.0f, std::max(0.0f, hsv[1] * scale));
  ToRgb(hsv, to);
}

// Calls fn(from, to) for the three channels of each pixel of input 0, converted to C.
template <typename C, typename F>
absl::Status ForEachPixel(KernelContext& ctx, double nanoseconds, const F& fn) {
  const Tensor& input = ctx.input(0);
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.ForwardInputOrAllocateOutput(0, 0, input.shape(), &output));
  const int64_t pixels = input.NumElements() / 3;
  const RowReader<C> reader(input);
  const RowWriter<C> writer(output);
  ParallelFor(ctx, pixels, BlockSizeForCost(nanoseconds), [&](int64_t begin, int64_t end) {
    constexpr int64_t kChunk = 256;
    C buffer[3 * kChunk];
    for (int64_t i = begin; i < end; i += kChunk) {
      const int64_t n = std::min(kChunk, end - i);
      const C* const from = reader.Read(3 * i, 3 * n, buffer);
      C* const to = writer.Place(3 * i, buffer);
      for (int64_t k = 0; k < n; ++k) {
        C pixel[3];
        fn(from + 3 * k, pixel);
        std::copy_n(pixel, 3, to + 3 * k);
      }
      writer.Write(to, 3 * i, 3 * n);
    }
  });
  return absl::OkStatus();
}

absl::Status CheckChannels(absl::string_view shape, int64_t found, bool adjusts) {
  if (found == 3 || found < 0) return absl::OkStatus();
  const std::string text = absl::StrCat("Dimension must be 3 but is ", found,
                                        ": images must have 3 channels, but has shape ", shape);
  // TensorFlow's error codes.
  return adjusts ? absl::InvalidArgumentError(text) : absl::FailedPreconditionError(text);
}

// ---- Kernels ----

template <typename C, void (*kConvert)(const C*, C*)>
class Convert final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    return absl::OkStatus();
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    const TensorShape& shape = ctx.input(0).shape();
    GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast("images", shape, 1));
    GRADFLOW_RETURN_IF_ERROR(
        CheckChannels(shape.DebugString(), shape.dim_size(shape.dims() - 1), false));
    return ForEachPixel<C>(ctx, 10, kConvert);
  }

 private:
  DataTypeVector types_;
};

// kAdjust(rgb, factor, to) adjusts a pixel. The factor is kUnit times input 1.
template <void (*kAdjust)(const float*, float, float*), int kUnit>
class Adjust final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    factor_name_ = construction.op_def().input_arg(1).name();
    return absl::OkStatus();
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    const TensorShape& shape = ctx.input(0).shape();
    GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast("images", shape, 3));
    GRADFLOW_RETURN_IF_ERROR(
        CheckChannels(shape.DebugString(), shape.dim_size(shape.dims() - 1), true));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(1, factor_name_));
    const float factor = ctx.input(1).scalar<float>()() * kUnit;
    return ForEachPixel<float>(
        ctx, 12, [factor](const float* from, float* to) { kAdjust(from, factor, to); });
  }

 private:
  DataTypeVector types_;
  std::string factor_name_;
};

// Moves each element away from the mean of its channel in the image.
class AdjustContrast final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    const Tensor input = ctx.input(0);
    const int rank = input.dims();
    GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast("images", input.shape(), 3));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(1, "contrast_factor"));
    const float factor = ctx.input(1).scalar<float>()();
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, input.shape(), &output));
    if (input.NumElements() == 0) return absl::OkStatus();
    const int64_t channels = input.dim_size(rank - 1);
    const int64_t columns = input.dim_size(rank - 2);
    const int64_t rows = input.dim_size(rank - 3);
    const int64_t images = input.NumElements() / (rows * columns * channels);
    // The sums of blocks of rows are added in order.
    const int64_t n = columns * channels;
    const int64_t block = std::max(BlockSizeForCost(static_cast<double>(n)), NumBlocks(rows, 64));
    const int64_t blocks = NumBlocks(rows, block);
    Tensor sums;
    Tensor buffers;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_DOUBLE, {images * blocks, channels}, &sums));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, {images * blocks, n}, &buffers));
    const RowReader<float> reader(input);
    const RowWriter<float> writer(output);
    double* const all_sums = sums.flat<double>().data();
    float* const all_buffers = buffers.flat<float>().data();
    const auto for_each_row = [&](const auto& begin_block, const auto& row) {
      ParallelFor(ctx, images * blocks, 1, [&](int64_t begin, int64_t end) {
        for (int64_t u = begin; u < end && !ctx.ShouldStop(); ++u) {
          const int64_t first = u % blocks * block;
          begin_block(u);
          for (int64_t r = first; r < std::min(rows, first + block); ++r) {
            const int64_t from = (u / blocks * rows + r) * n;
            row(u, from, reader.Read(from, n, all_buffers + u * n));
          }
        }
      });
    };
    for_each_row([&](int64_t u) { std::fill_n(all_sums + u * channels, channels, 0.0); },
                 [&](int64_t u, int64_t, const float* x) {
                   double* const sum = all_sums + u * channels;
                   for (int64_t i = 0; i < n; i += channels) {
                     for (int64_t c = 0; c < channels; ++c) sum[c] += double{x[i + c]};
                   }
                 });
    const double count = static_cast<double>(rows * columns);
    for (int64_t b = 0; b < images; ++b) {
      double* const sum = all_sums + b * blocks * channels;
      for (int64_t k = 1; k < blocks; ++k) {
        for (int64_t c = 0; c < channels; ++c) sum[c] += sum[k * channels + c];
      }
      for (int64_t c = 0; c < channels; ++c) sum[c] /= count;
    }
    for_each_row([](int64_t) {},
                 [&](int64_t u, int64_t from, const float* x) {
                   const double* const mean = all_sums + u / blocks * blocks * channels;
                   float* const y = writer.Place(from, all_buffers + u * n);
                   for (int64_t i = 0; i < n; i += channels) {
                     for (int64_t c = 0; c < channels; ++c) {
                       const float m = static_cast<float>(mean[c]);
                       y[i + c] = m + factor * (x[i + c] - m);
                     }
                   }
                   writer.Write(y, from, n);
                 });
    return absl::OkStatus();
  }

 private:
  DataTypeVector types_;
};

// ---- Shapes ----

absl::Status ConvertShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, 1));
  PartialTensorShape shape = c.input(0);
  if (!shape.unknown_rank()) {
    GRADFLOW_RETURN_IF_ERROR(CheckChannels(shape.DebugString(), c.Dim(0, -1), true));
    shape.set_dim(shape.dims() - 1, 3);
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}
absl::Status AdjustShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, 3));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 0));
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("RGBToHSV")
      .Group("image_ops")
      .Input("images: T")
      .Output("output: T")
      .Attr("T: {half, bfloat16, float, double} = DT_FLOAT")
      .Shape(ConvertShape)
      .Doc(R"(Converts red, green and blue to hue, saturation and value.

images: Pixels, whose last dimension has the three channels. Their values should be in [0, 1].
output: Pixels of hue in [0, 1), saturation in [0, 1], and value.
T: The type of the images.)");
  registry.Op("HSVToRGB")
      .Group("image_ops")
      .Input("images: T")
      .Output("output: T")
      .Attr("T: {half, bfloat16, float, double} = DT_FLOAT")
      .Shape(ConvertShape)
      .Doc(R"(Converts hue, saturation and value to red, green and blue.

images: Pixels, whose last dimension has the three channels. Their values should be in [0, 1].
output: Pixels of red, green and blue.
T: The type of the images.)");
  registry.Op("AdjustHue")
      .Group("image_ops")
      .Input("images: T")
      .Input("delta: float")
      .Output("output: T")
      .Attr("T: {half, float} = DT_FLOAT")
      .Shape(AdjustShape)
      .Doc(R"(Turns the hue of images.

images: Images of red, green and blue in the last dimension, of rank 3 at least.
delta: The number that is added to the hue, where 1 is a full turn.
output: The images with the new hue.
T: The type of the images. TensorFlow's CPU has no kernel for half.)");
  registry.Op("AdjustSaturation")
      .Group("image_ops")
      .Input("images: T")
      .Input("scale: float")
      .Output("output: T")
      .Attr("T: {half, float} = DT_FLOAT")
      .Shape(AdjustShape)
      .Doc(R"(Scales the saturation of images.

images: Images of red, green and blue in the last dimension, of rank 3 at least.
scale: The factor of the saturation, which is then clamped to [0, 1].
output: The images with the new saturation.
T: The type of the images. TensorFlow's CPU has no kernel for half.)");
  registry.Op("AdjustContrastv2")
      .Group("image_ops")
      .Alias("AdjustContrast")
      .Input("images: T")
      .Input("contrast_factor: float")
      .Output("output: T")
      .Attr("T: {half, float} = DT_FLOAT")
      .Shape(AdjustShape)
      .Doc(R"(Scales the contrast of images.

Each result is (x - mean) * contrast_factor + mean, where the mean is the mean of the channel in the
image, accumulated in double.

images: Images of shape [..., rows, columns, channels].
contrast_factor: The factor of the distance from the mean.
output: The images with the new contrast.
T: The type of the images. TensorFlow's CPU has no kernel for half.)");
  const DataTypeVector floats = {DT_FLOAT, DT_HALF, DT_BFLOAT16};
  registry.Kernel("RGBToHSV", MakeKernel<Convert<float, ToHsv<float>>>).Types("T", floats);
  registry.Kernel("RGBToHSV", MakeKernel<Convert<double, ToHsv<double>>>).Types("T", {DT_DOUBLE});
  registry.Kernel("HSVToRGB", MakeKernel<Convert<float, ToRgb<float>>>).Types("T", floats);
  registry.Kernel("HSVToRGB", MakeKernel<Convert<double, ToRgb<double>>>).Types("T", {DT_DOUBLE});
  const DataTypeVector adjusted = {DT_FLOAT, DT_HALF};
  registry.Kernel("AdjustHue", MakeKernel<Adjust<TurnHue, 6>>).Types("T", adjusted);
  registry.Kernel("AdjustSaturation", MakeKernel<Adjust<ScaleSaturation, 1>>).Types("T", adjusted);
  registry.Kernel("AdjustContrastv2", MakeKernel<AdjustContrast>).Types("T", adjusted);
}

}  // namespace gradflow::color
