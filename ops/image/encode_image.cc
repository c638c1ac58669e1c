// EncodePng, EncodeJpeg and EncodeJpegVariableQuality.
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"
#include "gradflow/io/image_codecs.h"
#include "gradflow/ops/common/input_checks.h"

namespace gradflow::encode_image {
namespace {

using internal::ImageSize;

constexpr int64_t kMaxElements = std::numeric_limits<int32_t>::max();

absl::Status CheckElements(const Tensor& image) {
  if (image.NumElements() < kMaxElements) return absl::OkStatus();
  return errors::InvalidArgument("an image must have less than ", kMaxElements,
                                 " elements, but has shape ", image.shape().DebugString());
}

class EncodePng final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    int64_t compression = 0;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("compression", &compression));
    if (compression < -1 || compression > 9) {
      return errors::InvalidArgument("compression is ", compression, ", expected -1 to 9");
    }
    compression_ = static_cast<int>(compression);
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    const Tensor& images = ctx.input(0);
    const int rank = images.dims();
    if (rank < 3) {
      return CheckRankAtLeast("image", images.shape(), 3);
    }
    GRADFLOW_RETURN_IF_ERROR(CheckElements(images));
    ImageSize size;
    size.rows = images.dim_size(rank - 3);
    size.columns = images.dim_size(rank - 2);
    size.channels = images.dim_size(rank - 1);
    if (size.channels < 1 || size.channels > 4) {
      return errors::InvalidArgument("image must have 1 to 4 channels, but has shape ",
                                     images.shape().DebugString());
    }
    TensorShape shape = images.shape();
    for (int k = 0; k < 3; ++k) shape.RemoveDim(shape.dims() - 1);
    const bool is_wide = images.dtype() == DT_UINT16;
    // The size of an empty batch may overflow.
    const int64_t bytes = images.NumElements() == 0
                              ? 0
                              : size.rows * size.columns * size.channels * (is_wide ? 2 : 1);
    // A file is larger than its pixels by at most a byte per row and some headers.
    const double per_file =
        1.01 * (static_cast<double>(bytes) + static_cast<double>(size.rows)) + 1024;
    ctx.ExpectStringBytes(per_file * static_cast<double>(shape.num_elements()));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    const char* const from = static_cast<const char*>(images.raw_data());
    tstring* const to = output->flat<tstring>().data();
    for (int64_t i = 0; i < output->NumElements() && !ctx.ShouldStop(); ++i) {
      GRADFLOW_RETURN_IF_ERROR(internal::EncodePng(from + i * bytes, size, is_wide ? 16 : 8,
                                                   compression_, &to[i], ctx.run().stop));
    }
    return absl::OkStatus();
  }

 private:
  DataTypeVector types_;
  int compression_ = -1;
};

// Encodes input 0. `channels` 0 accepts 1 or 3 channels.
absl::Status EncodeJpegTo(KernelContext& ctx, int64_t channels,
                          const internal::JpegEncoding& encoding) {
  const Tensor& image = ctx.input(0);
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(0, "image", 3));
  GRADFLOW_RETURN_IF_ERROR(CheckElements(image));
  if (encoding.quality < 0 || encoding.quality > 100) {
    return errors::InvalidArgument("quality must be in [0,100], but is ", encoding.quality);
  }
  ImageSize size;
  size.rows = image.dim_size(0);
  size.columns = image.dim_size(1);
  size.channels = image.dim_size(2);
  if (channels != 0 ? size.channels != channels : size.channels != 1 && size.channels != 3) {
    return errors::InvalidArgument("image must have ",
                                   channels == 0 ? "1 or 3" : absl::StrCat(channels),
                                   " channels, but has shape ", image.shape().DebugString());
  }
  ctx.ExpectStringBytes(3.0 * static_cast<double>(image.NumElements()) + 4096 +
                        static_cast<double>(encoding.xmp_metadata.size()));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {}, &output));
  return internal::EncodeJpeg(image.flat<uint8_t>().data(), size, encoding,
                              &output->scalar<tstring>()(), ctx.run().stop);
}

class EncodeJpeg final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    std::string format;
    std::string unit;
    int64_t quality = 0;
    int64_t x_density = 0;
    int64_t y_density = 0;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("format", &format));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("quality", &quality));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("progressive", &encoding_.progressive));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("optimize_size", &encoding_.optimize_size));
    GRADFLOW_RETURN_IF_ERROR(
        construction.GetAttr("chroma_downsampling", &encoding_.chroma_downsampling));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("density_unit", &unit));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("x_density", &x_density));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("y_density", &y_density));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("xmp_metadata", &encoding_.xmp_metadata));
    if (quality < 0 || quality > 100) {
      return errors::InvalidArgument("quality must be in [0,100], but is ", quality);
    }
    for (const int64_t density : {x_density, y_density}) {
      if (density < 0 || density > 65535) {
        return errors::InvalidArgument("a density is ", density, ", expected 0 to 65535");
      }
    }
    channels_ = format == "grayscale" ? 1 : format == "rgb" ? 3 : 0;
    encoding_.quality = static_cast<int>(quality);
    encoding_.density_unit = unit == "cm" ? 2 : 1;
    encoding_.x_density = static_cast<int>(x_density);
    encoding_.y_density = static_cast<int>(y_density);
    return absl::OkStatus();
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    return EncodeJpegTo(ctx, channels_, encoding_);
  }

 private:
  DataTypeVector types_;
  int64_t channels_ = 0;
  internal::JpegEncoding encoding_;
};

absl::Status EncodeJpegVariableQuality(KernelContext& ctx) {
  if (ctx.input_dtype(0) != DT_UINT8) {
    return errors::InvalidArgument("images must be uint8, but is ",
                                   DataTypeString(ctx.input_dtype(0)));
  }
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t quality, ctx.ScalarInt(1, "quality"));
  internal::JpegEncoding encoding;
  encoding.quality = static_cast<int>(quality);
  return EncodeJpegTo(ctx, 0, encoding);
}

absl::Status PngShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, 3));
  if (c.input(0).unknown_rank()) return absl::OkStatus();
  const absl::Span<const int64_t> dims = c.input(0).dim_sizes();
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape,
                            PartialTensorShape::Make(dims.subspan(0, dims.size() - 3)));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}
absl::Status JpegShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 3));
  if (c.num_inputs() == 2) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 0));
  c.set_output(0, PartialTensorShape({}));
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("EncodePng")
      .Group("image_ops")
      .Input("image: T")
      .Output("contents: string")
      .Attr("compression: int = -1")
      .Attr("T: {uint8, uint16} = DT_UINT8")
      .Shape(PngShape)
      .Doc(R"(Encodes images as PNG files.

image: Images of shape [..., rows, columns, channels], with 1 to 4 channels: gray, gray and alpha,
  RGB or RGBA.
contents: The bytes of the files.
compression: The effort, from 0 to 9; -1 for a default.
T: The type of the elements.)");
  registry.Op("EncodeJpeg")
      .Group("image_ops")
      .Input("image: uint8")
      .Output("contents: string")
      .Attr("format: {'', 'grayscale', 'rgb'} = ''")
      .Attr("quality: int = 95")
      .Attr("progressive: bool = false")
      .Attr("optimize_size: bool = false")
      .Attr("chroma_downsampling: bool = true")
      .Attr("density_unit: {'in', 'cm'} = 'in'")
      .Attr("x_density: int = 300")
      .Attr("y_density: int = 300")
      .Attr("xmp_metadata: string = ''")
      .Shape(JpegShape)
      .Doc(R"(Encodes an image as a JPEG file.

image: An image of shape [rows, columns, channels], with one channel or three.
contents: The bytes of the file.
format: "grayscale" or "rgb", which the channels must match; "" for either.
quality: The quality, from 0 to 100.
progressive: If true, the file can be displayed while it is loaded.
optimize_size: If true, takes longer for a smaller file.
chroma_downsampling: If true, color has half of the resolution.
density_unit: The unit of the densities.
x_density: The number of pixels per unit, stored in the file.
y_density: The number of rows per unit, stored in the file.
xmp_metadata: Metadata that are stored in the file.)");
  registry.Op("EncodeJpegVariableQuality")
      .Group("image_ops")
      .Input("images: uint8")
      .Input("quality: int32")
      .Output("contents: string")
      .Shape(JpegShape)
      .Doc(R"(Encodes an image as a JPEG file. The quality is an input.

images: An image of shape [rows, columns, channels], with one channel or three.
quality: The quality, from 0 to 100.
contents: The bytes of the file.)");
  registry.Kernel("EncodePng", MakeKernel<EncodePng>).Types("T", {DT_UINT8, DT_UINT16});
  registry.Kernel("EncodeJpeg", MakeKernel<EncodeJpeg>);
  registry.Kernel("EncodeJpegVariableQuality", MakeFunctionKernel<EncodeJpegVariableQuality>);
}

}  // namespace gradflow::encode_image
