// ImageSummary: a serialized Summary of images, as PNG files.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/memory_reservation.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/io/image_codecs.h"
#include "gradflow/ops/logging/set_summary.h"
#include "gradflow/proto/summary.pb.h"

namespace gradflow::image_summary {
namespace {

using internal::ImageSize;

// Converts the pixels of an image to bytes. Pixels that are not finite get the bad color. If no
// value is negative, the largest value becomes 255. Otherwise the largest magnitude becomes 127,
// and 128 is added. Computes in T, as TensorFlow does. Stops early if the run is stopped.
template <typename T>
void Normalize(const KernelContext& ctx, const T* from, int64_t pixels, int64_t channels,
               const uint8_t* bad, uint8_t* to) {
  const auto should_stop = [&](int64_t pixel) {
    constexpr int64_t kPixelsBetweenChecks = 16384;
    return pixel % kPixelsBetweenChecks == 0 && ctx.ShouldStop();
  };
  const auto is_finite = [&](int64_t pixel) {
    return std::all_of(from + pixel * channels, from + (pixel + 1) * channels,
                       [](T value) { return std::isfinite(static_cast<double>(value)); });
  };
  float min = std::numeric_limits<float>::infinity();
  float max = -min;
  for (int64_t i = 0; i < pixels && !should_stop(i); ++i) {
    if (!is_finite(i)) continue;
    for (int64_t k = i * channels; k < (i + 1) * channels; ++k) {
      min = std::min(min, static_cast<float>(from[k]));
      max = std::max(max, static_cast<float>(from[k]));
    }
  }
  constexpr float kTiny = 1e-6f;
  const bool is_signed = min < 0;
  const float reach = is_signed ? std::max(std::abs(min), std::abs(max)) : max;
  const T scale(reach < kTiny ? 0.0f : (is_signed ? 127.0f : 255.0f) / reach);
  const T offset(is_signed ? 128.0f : 0.0f);
  for (int64_t i = 0; i < pixels && !should_stop(i); ++i) {
    if (!is_finite(i)) {
      std::copy(bad, bad + channels, to + i * channels);
      continue;
    }
    for (int64_t k = i * channels; k < (i + 1) * channels; ++k) {
      // Rounding, or a double outside of the range of float, may leave the range of a byte.
      T scaled = from[k];
      scaled *= scale;
      scaled += offset;
      const auto value = static_cast<double>(scaled);
      to[k] = static_cast<uint8_t>(std::isnan(value) ? 0.0 : std::clamp(value, 0.0, 255.0));
    }
  }
}

class ImageSummary final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("max_images", &max_images_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("bad_color", &bad_color_));
    if (max_images_ < 1 || max_images_ > std::numeric_limits<int32_t>::max()) {
      return errors::InvalidArgument("max_images is ", max_images_, ", expected 1 to 2147483647");
    }
    if (bad_color_.dtype() != DT_UINT8 || bad_color_.dims() != 1) {
      return errors::InvalidArgument("bad_color must be a vector of uint8, but has type ",
                                     DataTypeString(bad_color_.dtype()), " and shape ",
                                     bad_color_.shape().DebugString());
    }
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(0, "tag"));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(1, "tensor", 4));
    const tstring& tag = ctx.input(0).scalar<tstring>()();
    const Tensor& tensor = ctx.input(1);
    ImageSize size;
    size.rows = tensor.dim_size(1);
    size.columns = tensor.dim_size(2);
    size.channels = tensor.dim_size(3);
    if (size.channels != 1 && size.channels != 3 && size.channels != 4) {
      return errors::InvalidArgument("tensor must have 1, 3 or 4 channels, but has shape ",
                                     tensor.shape().DebugString());
    }
    if (size.rows == 0 || size.columns == 0) {
      return errors::InvalidArgument("tensor must have pixels, but has shape ",
                                     tensor.shape().DebugString());
    }
    // Below this limit, no product overflows.
    constexpr int64_t kMaxPixels = int64_t{1} << 29;
    if (size.rows >= kMaxPixels || size.columns >= kMaxPixels ||
        size.rows * size.columns >= kMaxPixels) {
      return errors::InvalidArgument(
          "tensor must have less than 2^29 pixels an image, but has "
          "shape ",
          tensor.shape().DebugString());
    }
    if (tensor.dtype() != DT_UINT8 && bad_color_.NumElements() < size.channels) {
      return errors::InvalidArgument("bad_color has ", bad_color_.NumElements(),
                                     " elements, expected ", size.channels, " at least");
    }
    const int64_t count = std::min(max_images_, tensor.dim_size(0));
    const int64_t pixels = size.rows * size.columns;
    const int64_t bytes = pixels * size.channels;
    // The bound of EncodePng, plus the message that holds the image and its tag.
    const double per_file =
        1.01 * static_cast<double>(bytes + size.rows) + 2048 + static_cast<double>(tag.size());
    const double all = per_file * static_cast<double>(count) + 1024;
    const bool converts = tensor.dtype() != DT_UINT8;
    MemoryReservation reservation(ctx.allocator().get());
    GRADFLOW_RETURN_IF_ERROR(
        reservation.Set(converts ? static_cast<double>(bytes) : 0.0, "the bytes of an image"));
    return SetSummary(ctx, all, [&](Summary* summary) {
      std::vector<uint8_t> normalized(converts ? bytes : 0);
      for (int64_t i = 0; i < count && !ctx.ShouldStop(); ++i) {
        Summary::Value* const value = summary->add_value();
        value->set_tag(max_images_ > 1 ? absl::StrCat(absl::string_view(tag), "/image/", i)
                                       : absl::StrCat(absl::string_view(tag), "/image"));
        Summary::Image* const image = value->mutable_image();
        image->set_height(static_cast<int32_t>(size.rows));
        image->set_width(static_cast<int32_t>(size.columns));
        image->set_colorspace(static_cast<int32_t>(size.channels));
        const uint8_t* const from = Bytes(ctx, i * bytes, pixels, size.channels, &normalized);
        GRADFLOW_RETURN_IF_ERROR(internal::EncodePng(from, size, 8, /*compression=*/-1,
                                                     image->mutable_encoded_image_string(),
                                                     ctx.run().stop));
      }
      return absl::OkStatus();
    });
  }

 private:
  // Returns the pixels of the image that begins at element `begin`, as bytes.
  const uint8_t* Bytes(const KernelContext& ctx, int64_t begin, int64_t pixels, int64_t channels,
                       std::vector<uint8_t>* to) const {
    const Tensor& tensor = ctx.input(1);
    const uint8_t* const bad = bad_color_.span<uint8_t>().data();
    const void* const data = tensor.raw_data();
    switch (tensor.dtype()) {
      case DT_HALF:
        Normalize(ctx, static_cast<const half*>(data) + begin, pixels, channels, bad, to->data());
        return to->data();
      case DT_FLOAT:
        Normalize(ctx, static_cast<const float*>(data) + begin, pixels, channels, bad, to->data());
        return to->data();
      case DT_DOUBLE:
        Normalize(ctx, static_cast<const double*>(data) + begin, pixels, channels, bad, to->data());
        return to->data();
      default:
        return static_cast<const uint8_t*>(data) + begin;
    }
  }

  int64_t max_images_ = 3;
  Tensor bad_color_;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("ImageSummary")
      .Group("logging_ops")
      .Input("tag: string")
      .Input("tensor: T")
      .Output("summary: string")
      .Attr("max_images: int >= 1 = 3")
      .Attr("T: {uint8, float, half, double} = DT_FLOAT")
      .Attr(
          "bad_color: tensor = { dtype: DT_UINT8 tensor_shape { dim { size: 4 } } "
          "int_val: 255 int_val: 0 int_val: 0 int_val: 255 }")
      .Shape(ScalarShape)
      .Doc(R"(Returns a serialized Summary of images, as PNG files.

Images of floating-point numbers are scaled separately. Without negative values, the largest value
becomes 255. Otherwise the largest magnitude becomes 127, and 128 is added.

tag: A scalar: the tags are `tag`/image/0 and so on, or `tag`/image if `max_images` is 1.
tensor: Images, [batch, height, width, channels], with 1, 3 or 4 channels.
summary: A scalar.
max_images: The number of images of the batch that are in the summary.
T: The type of the images.
bad_color: The color of pixels with values that are not finite.)");
  registry.Kernel("ImageSummary", MakeKernel<ImageSummary>)
      .Types("T", {DT_UINT8, DT_FLOAT, DT_HALF, DT_DOUBLE});
}

}  // namespace gradflow::image_summary
