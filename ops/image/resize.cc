// ResizeBilinear, ResizeBicubic, ResizeArea and their gradients.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/image/resample.h"

namespace gradflow::resize {
namespace {

// Makes the taps of a dimension.
using MakeTaps = absl::Status (*)(KernelContext& ctx, const ResizeAttrs& attrs, int64_t in,
                                  int64_t out, Taps* taps);

// ---- Weights ----

absl::Status BilinearTaps(KernelContext& ctx, const ResizeAttrs& attrs, int64_t in, int64_t out,
                          Taps* taps) {
  GRADFLOW_RETURN_IF_ERROR(taps->Allocate(ctx, in, out, 2));
  taps->is_linear = true;
  const float scale = attrs.Scale(in, out);
  for (int64_t i = 0; i < out; ++i) {
    const float position = attrs.Position(i, scale);
    const float floor = std::floor(position);
    const float weight = position - floor;
    taps->Set(i, 0, static_cast<int64_t>(floor), 1 - weight);
    taps->Set(i, 1, static_cast<int64_t>(std::ceil(position)), weight);
  }
  return absl::OkStatus();
}

// The piecewise cubic kernel of Keys with parameter a, for |x| < 1 (NearWeight) and 1 <= |x| < 2
// (FarWeight).
float NearWeight(double a, float x) {
  return static_cast<float>(((a + 2) * x - (a + 3)) * x * x + 1);
}
float FarWeight(double a, float x) {
  return static_cast<float>(((a * x - 5 * a) * x + 8 * a) * x - 4 * a);
}

// Like TensorFlow, rounds distances to 1/1024 and uses two kernels. With half pixel centers, a is
// -0.5 and pixels outside of the image have no weight. Otherwise, a is -0.75 and the edge is
// repeated.
absl::Status BicubicTaps(KernelContext& ctx, const ResizeAttrs& attrs, int64_t in, int64_t out,
                         Taps* taps) {
  constexpr float kTableSize = 1024;
  GRADFLOW_RETURN_IF_ERROR(taps->Allocate(ctx, in, out, 4));
  const float scale = attrs.Scale(in, out);
  const double a = attrs.half_pixel_centers ? -0.5 : -0.75;
  for (int64_t i = 0; i < out; ++i) {
    const float position = attrs.Position(i, scale);
    const int64_t first = static_cast<int64_t>(std::floor(position));
    const float delta = position - static_cast<float>(first);
    const float near = std::nearbyint(delta * kTableSize) / kTableSize;
    std::array<float, 4> weights = {FarWeight(a, near + 1), NearWeight(a, near),
                                    NearWeight(a, 1 - near), FarWeight(a, 2 - near)};
    if (attrs.half_pixel_centers) {
      float sum = 0;
      for (int64_t k = 0; k < 4; ++k) {
        const int64_t index = first - 1 + k;
        if (index < 0 || index >= in) weights[k] = 0;
        sum += weights[k];
      }
      if (std::abs(sum) >= 1000 * std::numeric_limits<float>::min()) {
        for (float& weight : weights) weight *= 1 / sum;
      }
    }
    for (int64_t k = 0; k < 4; ++k) taps->Set(i, k, first - 1 + k, weights[k]);
  }
  return absl::OkStatus();
}

// Each output covers an interval of the input. The weight of a pixel is its part of the interval.
absl::Status AreaTaps(KernelContext& ctx, const ResizeAttrs& attrs, int64_t in, int64_t out,
                      Taps* taps) {
  const float scale = attrs.Scale(in, out);
  const auto begin = [&](int64_t i) { return static_cast<float>(i) * scale; };
  int64_t count = 1;
  for (int64_t i = 0; i < out; ++i) {
    const int64_t pixels =
        static_cast<int64_t>(std::ceil(begin(i + 1))) - static_cast<int64_t>(std::floor(begin(i)));
    count = std::max(count, pixels);
  }
  GRADFLOW_RETURN_IF_ERROR(taps->Allocate(ctx, in, out, count));
  for (int64_t i = 0; i < out; ++i) {
    const float from = begin(i);
    const float to = begin(i + 1);
    const int64_t first = static_cast<int64_t>(std::floor(from));
    const int64_t last = static_cast<int64_t>(std::ceil(to));
    for (int64_t k = 0; k < count; ++k) {
      const float low = static_cast<float>(first + k);
      const float high = static_cast<float>(first + k + 1);
      float part = 0;
      if (first + k < last) {
        part = low < from ? (high > to ? scale : high - from) : (high > to ? to - low : 1);
      }
      taps->Set(i, k, first + k, part / scale);
    }
  }
  return absl::OkStatus();
}

// ---- Kernels ----

template <MakeTaps kMakeTaps>
class Resize final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    return attrs_.Read(construction);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    const Tensor& images = ctx.input(0);
    TensorShape shape;
    GRADFLOW_RETURN_IF_ERROR(CheckResize(ctx, 1, &shape));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    if (output->NumElements() == 0) return absl::OkStatus();
    Taps rows;
    Taps columns;
    GRADFLOW_RETURN_IF_ERROR(kMakeTaps(ctx, attrs_, images.dim_size(1), shape.dim_size(1), &rows));
    GRADFLOW_RETURN_IF_ERROR(
        kMakeTaps(ctx, attrs_, images.dim_size(2), shape.dim_size(2), &columns));
    return Resample(ctx, images, rows, columns, output);
  }

 private:
  DataTypeVector types_;
  ResizeAttrs attrs_;
};

template <MakeTaps kMakeTaps>
class ResizeGrad final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    return attrs_.Read(construction);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    GRADFLOW_RETURN_IF_ERROR(CheckResizeGrad(ctx));
    const TensorShape& grads = ctx.input(0).shape();
    const TensorShape& shape = ctx.input(1).shape();
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    if (output->NumElements() == 0) return absl::OkStatus();
    Taps rows;
    Taps columns;
    GRADFLOW_RETURN_IF_ERROR(kMakeTaps(ctx, attrs_, shape.dim_size(1), grads.dim_size(1), &rows));
    GRADFLOW_RETURN_IF_ERROR(
        kMakeTaps(ctx, attrs_, shape.dim_size(2), grads.dim_size(2), &columns));
    return ResampleGrad(ctx, ctx.input(0), rows, columns, output);
  }

 private:
  DataTypeVector types_;
  ResizeAttrs attrs_;
};

absl::Status GradShape(ShapeContext& c) {
  ResizeAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(attrs.Read(c));
  return ResizeGradShape(c);
}

constexpr char kInputsDoc[] = R"(images: Images of shape [batch, rows, columns, channels].
size: The new numbers of rows and columns, a vector of two.
resized_images: The resized images.
T: The type of the images, which are computed in float.
)";
constexpr char kGradInputsDoc[] = R"(grads: The gradients with respect to the resized images.
original_image: The images before they were resized. Only their shape is read.
output: The gradients with respect to the images.
T: The type of the images. Sums are accumulated in double.
)";
constexpr char kAlignDoc[] =
    "align_corners: If true, the centers of the corner pixels of input and output are aligned.\n";
constexpr char kHalfDoc[] =
    "half_pixel_centers: If true, pixels are squares around their centers. Otherwise a pixel of "
    "the\n"
    "  output is at its index times the scale. Must not be true if `align_corners` is true.";

}  // namespace

void Register(Registry& registry) {
  registry.Op("ResizeBilinear")
      .Group("image_ops")
      .Input("images: T")
      .Input("size: int32")
      .Output("resized_images: float")
      .Attr(
          "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double, bfloat16}")
      .Attr("align_corners: bool = false")
      .Attr("half_pixel_centers: bool = false")
      .Shape(ResizeAttrsShape)
      .Doc(absl::StrCat("Resizes images by bilinear interpolation.\n\n", kInputsDoc, kAlignDoc,
                        kHalfDoc));
  registry.Op("ResizeBilinearGrad")
      .Group("image_ops")
      .Input("grads: float")
      .Input("original_image: T")
      .Output("output: T")
      .Attr("T: {float, bfloat16, half, double}")
      .Attr("align_corners: bool = false")
      .Attr("half_pixel_centers: bool = false")
      .Shape(GradShape)
      .Doc(absl::StrCat("Computes the gradient of ResizeBilinear.\n\n", kGradInputsDoc, kAlignDoc,
                        kHalfDoc));
  registry.Op("ResizeBicubic")
      .Group("image_ops")
      .Input("images: T")
      .Input("size: int32")
      .Output("resized_images: float")
      .Attr("T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}")
      .Attr("align_corners: bool = false")
      .Attr("half_pixel_centers: bool = false")
      .Shape(ResizeAttrsShape)
      .Doc(absl::StrCat(R"(Resizes images by bicubic interpolation.

The kernel is the cubic of Keys with a = -0.5 if `half_pixel_centers` is true, otherwise with
a = -0.75. Distances are rounded to 1/1024, as in TensorFlow.

)",
                        kInputsDoc, kAlignDoc, kHalfDoc));
  registry.Op("ResizeBicubicGrad")
      .Group("image_ops")
      .Input("grads: float")
      .Input("original_image: T")
      .Output("output: T")
      .Attr("T: {float, double}")
      .Attr("align_corners: bool = false")
      .Attr("half_pixel_centers: bool = false")
      .Shape(GradShape)
      .Doc(absl::StrCat("Computes the gradient of ResizeBicubic.\n\n", kGradInputsDoc, kAlignDoc,
                        kHalfDoc));
  registry.Op("ResizeArea")
      .Group("image_ops")
      .Input("images: T")
      .Input("size: int32")
      .Output("resized_images: float")
      .Attr("T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}")
      .Attr("align_corners: bool = false")
      .Shape(ResizeAttrsShape)
      .Doc(absl::StrCat(R"(Resizes images by the means of areas.

Each pixel is the mean of the area of the input that it covers. Input pixels that are partly in the
area are weighted by that part.

)",
                        kInputsDoc, kAlignDoc));
  registry.Kernel("ResizeBilinear", MakeKernel<Resize<BilinearTaps>>).Types("T", ImageTypes());
  registry.Kernel("ResizeBicubic", MakeKernel<Resize<BicubicTaps>>).Types("T", ImageTypes());
  registry.Kernel("ResizeArea", MakeKernel<Resize<AreaTaps>>).Types("T", ImageTypes());
  registry.Kernel("ResizeBilinearGrad", MakeKernel<ResizeGrad<BilinearTaps>>)
      .Types("T", {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16});
  registry.Kernel("ResizeBicubicGrad", MakeKernel<ResizeGrad<BicubicTaps>>)
      .Types("T", {DT_FLOAT, DT_DOUBLE});
}

}  // namespace gradflow::resize
