// ScaleAndTranslate and its gradient: resampling with kernels of several shapes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/image/resample.h"

namespace gradflow::scale_and_translate {
namespace {

// ---- Kernels: weights for a distance x >= 0 ----

float Lanczos(float x, float radius) {
  constexpr float kPi = 3.14159265359f;
  if (x > radius) return 0;
  if (x <= 1e-3f) return 1;
  return radius * std::sin(kPi * x) * std::sin(kPi * x / radius) / (kPi * kPi * x * x);
}
float Lanczos1(float x) { return Lanczos(x, 1); }
float Lanczos3(float x) { return Lanczos(x, 3); }
float Lanczos5(float x) { return Lanczos(x, 5); }
// The radius of 1.5 is three times the stddev.
float Gaussian(float x) {
  return x >= 1.5f ? 0 : static_cast<float>(std::exp(-double{x} * x / (2 * 0.5 * 0.5)));
}
float Box(float x) { return x < 0.5f ? 1.0f : x == 0.5f ? 0.5f : 0.0f; }
float Triangle(float x) { return x < 1 ? 1 - x : 0; }
// The cubic kernel of Keys with a = -0.5.
float KeysCubic(float x) {
  if (x >= 2) return 0;
  if (x >= 1) return ((-0.5f * x + 2.5f) * x - 4.0f) * x + 2.0f;
  return ((1.5f * x - 2.5f) * x) * x + 1.0f;
}
// The cubic kernel of Mitchell and Netravali.
float MitchellCubic(float x) {
  if (x >= 2) return 0;
  if (x >= 1) return (((-7.0f / 18.0f) * x + 2.0f) * x - 10.0f / 3.0f) * x + 16.0f / 9.0f;
  return (((7.0f / 6.0f) * x - 2.0f) * x) * x + 8.0f / 9.0f;
}

struct SamplingKernel {
  const char* name;
  float (*weight)(float x);
  float radius;
};
constexpr SamplingKernel kKernels[] = {
    {"lanczos1", Lanczos1, 1},
    {"lanczos3", Lanczos3, 3},
    {"lanczos5", Lanczos5, 5},
    {"gaussian", Gaussian, 1.5f},
    {"box", Box, 1},
    {"triangle", Triangle, 1},
    {"keyscubic", KeysCubic, 2},
    {"mitchellcubic", MitchellCubic, 2},
};

struct ScaleAndTranslateAttrs {
  const SamplingKernel* kernel = nullptr;
  bool antialias = false;

  // Reads the attributes. Source is KernelConstruction or ShapeContext.
  template <typename Source>
  absl::Status Read(const Source& source) {
    std::string name;
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr("kernel_type", &name));
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr("antialias", &antialias));
    for (const SamplingKernel& k : kKernels) {
      if (absl::AsciiStrToLower(name) == k.name) kernel = &k;
    }
    if (kernel != nullptr) return absl::OkStatus();
    return errors::InvalidArgument(
        "kernel_type is '", errors::Printable(name),
        "', expected lanczos1, lanczos3, lanczos5, gaussian, box, triangle, keyscubic or "
        "mitchellcubic");
  }
};

// The range of input pixels that contribute to an output pixel.
struct Span {
  int64_t begin = 0;
  int64_t end = 0;
};

class SpanMaker {
 public:
  SpanMaker(const ScaleAndTranslateAttrs& attrs, float scale, float translation, int64_t in)
      : kernel_(*attrs.kernel),
        in_(in),
        inverse_(1.0f / scale),
        offset_(-inverse_ * translation),
        // With antialiasing, the kernel is at least as wide as an output pixel.
        width_(attrs.antialias ? std::max(inverse_, 1.0f) : 1.0f) {}

  bool IsFinite() const { return std::isfinite(inverse_) && std::isfinite(offset_); }
  Span At(int64_t i) const {
    const float center = Center(i);
    if (!(center >= 0) || center > static_cast<float>(in_)) return Span();
    const float reach = kernel_.radius * width_;
    return {Clamp(std::ceil(center - reach - 0.5f)), Clamp(std::floor(center + reach - 0.5f)) + 1};
  }
  float Weight(int64_t i, int64_t source) const {
    const float distance = static_cast<float>(source) + 0.5f - Center(i);
    return kernel_.weight(std::abs(distance * (1.0f / width_)));
  }

 private:
  float Center(int64_t i) const { return (static_cast<float>(i) + 0.5f) * inverse_ + offset_; }
  int64_t Clamp(float position) const {
    return static_cast<int64_t>(std::min(static_cast<float>(in_ - 1), std::max(0.0f, position)));
  }

  const SamplingKernel& kernel_;
  const int64_t in_;
  const float inverse_;
  const float offset_;
  const float width_;
};

absl::Status MakeTaps(KernelContext& ctx, const ScaleAndTranslateAttrs& attrs, float scale,
                      float translation, int64_t in, int64_t out, Taps* taps) {
  const SpanMaker spans(attrs, scale, translation, in);
  if (!spans.IsFinite()) {
    return errors::InvalidArgument("scale ", scale, " and translation ", translation,
                                   " do not map pixels to finite positions");
  }
  int64_t count = 1;
  for (int64_t i = 0; i < out; ++i) {
    const Span span = spans.At(i);
    count = std::max(count, std::min(span.end, in) - span.begin);
  }
  GRADFLOW_RETURN_IF_ERROR(taps->Allocate(ctx, in, out, count));
  for (int64_t i = 0; i < out; ++i) {
    const Span span = spans.At(i);
    float sum = 0;
    for (int64_t k = 0; k < count; ++k) {
      const int64_t source = span.begin + k;
      const float weight = source < std::min(span.end, in) ? spans.Weight(i, source) : 0;
      sum += weight;
      taps->Set(i, k, source, weight);
    }
    const bool is_empty = std::abs(sum) < 1000 * std::numeric_limits<float>::min();
    const float factor = is_empty ? 0 : 1 / sum;
    for (int64_t k = 0; k < count; ++k) {
      taps->Set(i, k, taps->indices(i)[k], taps->weights(i)[k] * factor);
    }
  }
  return absl::OkStatus();
}

// Makes the taps of rows and columns from the inputs scale and translation.
absl::Status MakeAllTaps(KernelContext& ctx, const ScaleAndTranslateAttrs& attrs,
                         const TensorShape& in, const TensorShape& out, Taps* rows, Taps* columns) {
  const auto scale = ctx.input(2).flat<float>();
  const auto translation = ctx.input(3).flat<float>();
  GRADFLOW_RETURN_IF_ERROR(
      MakeTaps(ctx, attrs, scale(0), translation(0), in.dim_size(1), out.dim_size(1), rows));
  return MakeTaps(ctx, attrs, scale(1), translation(1), in.dim_size(2), out.dim_size(2), columns);
}

absl::Status CheckScale(const KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(2, "scale", TensorShape({2})));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(3, "translation", TensorShape({2})));
  for (const float scale : ctx.input(2).span<float>()) {
    if (!(scale > 0)) return errors::InvalidArgument("scale must be positive, but is ", scale);
  }
  return absl::OkStatus();
}
absl::Status CheckScaleShapes(const ShapeContext& c) {
  for (const int i : {2, 3}) {
    GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 1));
    const int64_t count = c.Dim(i, 0);
    if (count >= 0 && count != 2) {
      return errors::InvalidArgument(c.input_name(i), " must have shape [2], but has shape [",
                                     count, "]");
    }
  }
  return absl::OkStatus();
}

class ScaleAndTranslate final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    return attrs_.Read(construction);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    TensorShape shape;
    GRADFLOW_RETURN_IF_ERROR(CheckResize(ctx, 1, &shape));
    GRADFLOW_RETURN_IF_ERROR(CheckScale(ctx));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    if (output->NumElements() == 0) return absl::OkStatus();
    Taps rows;
    Taps columns;
    GRADFLOW_RETURN_IF_ERROR(
        MakeAllTaps(ctx, attrs_, ctx.input(0).shape(), shape, &rows, &columns));
    return Resample(ctx, ctx.input(0), rows, columns, output);
  }

 private:
  DataTypeVector types_;
  ScaleAndTranslateAttrs attrs_;
};

class ScaleAndTranslateGrad final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    return attrs_.Read(construction);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    GRADFLOW_RETURN_IF_ERROR(CheckResizeGrad(ctx));
    GRADFLOW_RETURN_IF_ERROR(CheckScale(ctx));
    const TensorShape& shape = ctx.input(1).shape();
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    if (output->NumElements() == 0) return absl::OkStatus();
    Taps rows;
    Taps columns;
    GRADFLOW_RETURN_IF_ERROR(
        MakeAllTaps(ctx, attrs_, shape, ctx.input(0).shape(), &rows, &columns));
    return ResampleGrad(ctx, ctx.input(0), rows, columns, output);
  }

 private:
  DataTypeVector types_;
  ScaleAndTranslateAttrs attrs_;
};

absl::Status Shape(ShapeContext& c) {
  ScaleAndTranslateAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(attrs.Read(c));
  GRADFLOW_RETURN_IF_ERROR(CheckScaleShapes(c));
  return ResizeShape(c);
}
absl::Status GradShape(ShapeContext& c) {
  ScaleAndTranslateAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(attrs.Read(c));
  GRADFLOW_RETURN_IF_ERROR(CheckScaleShapes(c));
  return ResizeGradShape(c);
}

constexpr char kAttrsDoc[] =
    R"(kernel_type: The kernel: lanczos1, lanczos3, lanczos5, gaussian, box, triangle, keyscubic or
  mitchellcubic.
antialias: If true, the kernel is widened when images get smaller.)";

}  // namespace

void Register(Registry& registry) {
  registry.Op("ScaleAndTranslate")
      .Group("image_ops")
      .Input("images: T")
      .Input("size: int32")
      .Input("scale: float")
      .Input("translation: float")
      .Output("resized_images: float")
      .Attr("T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double}")
      .Attr("kernel_type: string = 'lanczos3'")
      .Attr("antialias: bool = true")
      .Shape(Shape)
      .Doc(absl::StrCat(R"(Scales and moves images, and samples them with a kernel.

Pixels whose center is outside of the input are 0.

images: Images of shape [batch, rows, columns, channels].
size: The numbers of rows and columns of the output.
scale: The scale factors of rows and columns.
translation: The distances that rows and columns move, in pixels of the output.
resized_images: The images of the given size.
T: The type of the images, which are computed in float.
)",
                        kAttrsDoc));
  registry.Op("ScaleAndTranslateGrad")
      .Group("image_ops")
      .Input("grads: T")
      .Input("original_image: T")
      .Input("scale: float")
      .Input("translation: float")
      .Output("output: T")
      .Attr("T: {float}")
      .Attr("kernel_type: string = 'lanczos3'")
      .Attr("antialias: bool = true")
      .Shape(GradShape)
      .Doc(absl::StrCat(R"(Computes the gradient of ScaleAndTranslate.

grads: The gradients with respect to the output of ScaleAndTranslate.
original_image: The images of ScaleAndTranslate. Only their shape is read.
scale: See `ScaleAndTranslate`.
translation: See `ScaleAndTranslate`.
output: The gradients with respect to the images.
T: The type of the gradients.
)",
                        kAttrsDoc));
  registry.Kernel("ScaleAndTranslate", MakeKernel<ScaleAndTranslate>).Types("T", ImageTypes());
  registry.Kernel("ScaleAndTranslateGrad", MakeKernel<ScaleAndTranslateGrad>)
      .Types("T", {DT_FLOAT});
}

}  // namespace gradflow::scale_and_translate
