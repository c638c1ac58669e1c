// ImageProjectiveTransformV2 and V3.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/image/resample.h"

namespace gradflow::projective_transform {
namespace {

using TransformTypes = TypeList<uint8_t, int32_t, int64_t, half, bfloat16, float, double>;

enum class FillMode { kConstant, kReflect, kWrap, kNearest };

// Positions farther away than this are outside of every image.
constexpr float kFar = 1e15f;

float Clamp(float position, int64_t size) {
  return std::min(std::max(position, 0.0f), static_cast<float>(size - 1));
}

// Maps a position outside of the image, which has `size` pixels, into the image.
float Fill(FillMode mode, float position, int64_t size) {
  const float n = static_cast<float>(size);
  switch (mode) {
    case FillMode::kConstant:
      return position;
    case FillMode::kNearest:
      return Clamp(position, size);
    case FillMode::kReflect: {
      // [abcd] continues as [dcba|abcd|dcba].
      if (size <= 1) return 0;
      const float period = 2 * n;
      if (position < 0) {
        position += period * static_cast<float>(static_cast<int64_t>(-position / period));
        position = position < -n ? position + period : -position - 1;
      } else if (position > n - 1) {
        position -= period * static_cast<float>(static_cast<int64_t>(position / period));
        if (position >= n) position = period - position - 1;
      }
      return Clamp(position, size);
    }
    case FillMode::kWrap: {
      // [abcd] continues as [abcd|abcd|abcd]. As in TensorFlow, the period is the last index.
      if (size <= 1) return 0;
      const float last = n - 1;
      if (position < 0) {
        position += n * static_cast<float>(static_cast<int64_t>(-position / last) + 1);
      } else if (position > last) {
        position -= n * static_cast<float>(static_cast<int64_t>(position / last));
      }
      return Clamp(position, size);
    }
  }
  return position;
}

// Rounds towards zero and clamps to the range of T.
template <typename T>
T FromFloat(float value) {
  if constexpr (std::is_integral_v<T>) {
    if (std::isnan(value)) return 0;
    if (value <= static_cast<float>(std::numeric_limits<T>::min())) {
      return std::numeric_limits<T>::min();
    }
    if (value >= static_cast<float>(std::numeric_limits<T>::max())) {
      return std::numeric_limits<T>::max();
    }
  }
  return static_cast<T>(value);
}

absl::Status Shape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 2));
  const int64_t columns = c.Dim(1, 1);
  if (columns >= 0 && columns != 8) {
    return errors::InvalidArgument("transforms must have 8 columns, but has shape ",
                                   c.input(1).DebugString());
  }
  if (c.num_inputs() == 4) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(3, 0));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, ResizedShape(c, 2));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

class ProjectiveTransform final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    std::string interpolation;
    std::string fill_mode;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("interpolation", &interpolation));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("fill_mode", &fill_mode));
    is_nearest_ = interpolation == "NEAREST";
    if (!is_nearest_ && interpolation != "BILINEAR") {
      return errors::InvalidArgument("interpolation is '", errors::Printable(interpolation),
                                     "', expected NEAREST or BILINEAR");
    }
    const std::pair<const char*, FillMode> modes[] = {{"CONSTANT", FillMode::kConstant},
                                                      {"REFLECT", FillMode::kReflect},
                                                      {"WRAP", FillMode::kWrap},
                                                      {"NEAREST", FillMode::kNearest}};
    for (const auto& [name, mode] : modes) {
      if (fill_mode == name) {
        fill_mode_ = mode;
        return absl::OkStatus();
      }
    }
    return errors::InvalidArgument("fill_mode is '", errors::Printable(fill_mode),
                                   "', expected CONSTANT, REFLECT, WRAP or NEAREST");
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(0, "images", 4));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(1, "transforms", 2));
    const Tensor& images = ctx.input(0);
    const TensorShape& transforms = ctx.input(1).shape();
    if (transforms.dim_size(1) != 8 ||
        (transforms.dim_size(0) != 1 && transforms.dim_size(0) != images.dim_size(0))) {
      return errors::InvalidArgument("transforms must have shape [1,8] or [", images.dim_size(0),
                                     ",8], but has shape ", transforms.DebugString());
    }
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(2, "output_shape", TensorShape({2})));
    GRADFLOW_ASSIGN_OR_RETURN(const DimVector size, ctx.Ints(2, "output_shape"));
    if (size[0] <= 0 || size[1] <= 0) {
      return errors::InvalidArgument("output_shape must be positive, but is [", size[0], ",",
                                     size[1], "]");
    }
    float fill_value = 0;
    if (types_.size() == 4) {
      GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(3, "fill_value"));
      fill_value = ctx.input(3).scalar<float>()();
    }
    GRADFLOW_ASSIGN_OR_RETURN(
        const TensorShape shape,
        TensorShape::Make({images.dim_size(0), size[0], size[1], images.dim_size(3)}));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    if (output->NumElements() == 0) return absl::OkStatus();
    DispatchType(TransformTypes(), images.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      Transform<T>(ctx, FromFloat<T>(fill_value), output);
    });
    return absl::OkStatus();
  }

 private:
  // An image, and the value of pixels outside of the image.
  template <typename T>
  struct Image {
    const T* pixels;
    int64_t rows;
    int64_t columns;
    int64_t depth;
    T fill_value;

    // Returns the channels of a pixel; null if the pixel is outside of the image.
    const T* At(float row, float column) const {
      if (!(row >= 0 && column >= 0 && row < static_cast<float>(rows) &&
            column < static_cast<float>(columns))) {
        return nullptr;
      }
      const int64_t r = static_cast<int64_t>(row);
      const int64_t c = static_cast<int64_t>(column);
      return r < rows && c < columns ? pixels + (r * columns + c) * depth : nullptr;
    }
    float Value(const T* pixel, int64_t d) const {
      return static_cast<float>(pixel != nullptr ? pixel[d] : fill_value);
    }
  };

  // A unit of work is a row of the output.
  template <typename T>
  void Transform(const KernelContext& ctx, T fill_value, Tensor* output) const {
    const Tensor& images = ctx.input(0);
    const bool is_shared = ctx.input(1).dim_size(0) == 1;
    const float* const transforms = ctx.input(1).flat<float>().data();
    const int64_t rows = output->dim_size(1);
    const int64_t columns = output->dim_size(2);
    const int64_t depth = output->dim_size(3);
    // The product of the sizes of an empty image may overflow.
    const int64_t image_size = images.NumElements() / images.dim_size(0);
    T* const to = output->flat<T>().data();
    const double cost = static_cast<double>(columns) * (20 + 5 * static_cast<double>(depth));
    ParallelFor(
        ctx, images.dim_size(0) * rows, BlockSizeForCost(cost), [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end && !ctx.ShouldStop(); ++r) {
            const int64_t b = r / rows;
            const Image<T> image = {images.flat<T>().data() + b * image_size, images.dim_size(1),
                                    images.dim_size(2), depth, fill_value};
            const float* const t = transforms + (is_shared ? 0 : 8 * b);
            for (int64_t x = 0; x < columns; ++x) {
              Pixel(image, t, static_cast<float>(x), static_cast<float>(r % rows),
                    to + (r * columns + x) * depth);
            }
          }
        });
  }

  template <typename T>
  void Pixel(const Image<T>& image, const float* t, float column, float row, T* to) const {
    const float divisor = t[6] * column + t[7] * row + 1;
    const float x = (t[0] * column + t[1] * row + t[2]) / divisor;
    const float y = (t[3] * column + t[4] * row + t[5]) / divisor;
    // Infinite positions are outside of every image.
    if (divisor == 0 || !(std::abs(x) < kFar) || !(std::abs(y) < kFar)) {
      std::fill_n(to, image.depth, image.fill_value);
      return;
    }
    const float fx = Fill(fill_mode_, x, image.columns);
    const float fy = Fill(fill_mode_, y, image.rows);
    if (is_nearest_) {
      const T* const pixel = image.At(std::round(fy), std::round(fx));
      if (pixel == nullptr) {
        std::fill_n(to, image.depth, image.fill_value);
      } else {
        std::copy_n(pixel, image.depth, to);
      }
      return;
    }
    const float low_x = std::floor(fx);
    const float low_y = std::floor(fy);
    const float wx = fx - low_x;
    const float wy = fy - low_y;
    // The weights of TensorFlow.
    const float vx = low_x + 1 - fx;
    const float vy = low_y + 1 - fy;
    const T* const a = image.At(low_y, low_x);
    const T* const b = image.At(low_y, low_x + 1);
    const T* const c = image.At(low_y + 1, low_x);
    const T* const d = image.At(low_y + 1, low_x + 1);
    for (int64_t k = 0; k < image.depth; ++k) {
      const float top = vx * image.Value(a, k) + wx * image.Value(b, k);
      const float bottom = vx * image.Value(c, k) + wx * image.Value(d, k);
      to[k] = FromFloat<T>(vy * top + wy * bottom);
    }
  }

  DataTypeVector types_;
  bool is_nearest_ = false;
  FillMode fill_mode_ = FillMode::kConstant;
};

constexpr char kInputsDoc[] = R"(images: Images of shape [batch, rows, columns, channels].
transforms: The transform of each image, or of all: rows [a0, a1, a2, b0, b1, b2, c0, c1].
output_shape: The numbers of rows and columns of the output.
)";
constexpr char kAttrsDoc[] = R"(transformed_images: The transformed images.
dtype: The type of the images.
interpolation: "NEAREST" or "BILINEAR".
fill_mode: The pixels outside of an image: "CONSTANT" for a constant, "REFLECT" or "WRAP" for
  repeated images, "NEAREST" for the edge.)";
constexpr char kSummary[] = R"(Transforms images by a projection.

Let k = c0 x + c1 y + 1. Pixel (x, y) of the output is the pixel of the input at
((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k).

)";

}  // namespace

void Register(Registry& registry) {
  registry.Op("ImageProjectiveTransformV2")
      .Group("image_ops")
      .Input("images: dtype")
      .Input("transforms: float")
      .Input("output_shape: int32")
      .Output("transformed_images: dtype")
      .Attr("dtype: {uint8, int32, int64, half, bfloat16, float, double}")
      .Attr("interpolation: string")
      .Attr("fill_mode: string = 'CONSTANT'")
      .Shape(Shape)
      .Doc(absl::StrCat(kSummary, kInputsDoc, kAttrsDoc));
  registry.Op("ImageProjectiveTransformV3")
      .Group("image_ops")
      .Input("images: dtype")
      .Input("transforms: float")
      .Input("output_shape: int32")
      .Input("fill_value: float")
      .Output("transformed_images: dtype")
      .Attr("dtype: {uint8, int32, int64, half, bfloat16, float, double}")
      .Attr("interpolation: string")
      .Attr("fill_mode: string = 'CONSTANT'")
      .Shape(Shape)
      .Doc(absl::StrCat(kSummary, kInputsDoc,
                        "fill_value: The value of pixels outside of the image, for \"CONSTANT\".\n",
                        kAttrsDoc));
  registry.Kernel("ImageProjectiveTransformV2", MakeKernel<ProjectiveTransform>);
  registry.Kernel("ImageProjectiveTransformV3", MakeKernel<ProjectiveTransform>);
}

}  // namespace gradflow::projective_transform
