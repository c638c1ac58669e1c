// DecodeImage, DecodeJpeg, DecodeAndCropJpeg, DecodePng, DecodeGif, DecodeBmp and DecodeWebP.
//
// As in TensorFlow, an op decodes more formats than its name says: DecodeJpeg, DecodePng and
// DecodeGif all decode JPEG, PNG and single-frame GIF.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/memory_reservation.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/io/image_codecs.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow::decode_image {
namespace {

using internal::ImageFormat;
using internal::ImageSize;

enum class Op { kImage, kJpeg, kCropJpeg, kPng, kGif, kBmp, kWebP };

Op OpOf(absl::string_view name) {
  const std::pair<absl::string_view, Op> ops[] = {
      {"DecodeJpeg", Op::kJpeg}, {"DecodeAndCropJpeg", Op::kCropJpeg},
      {"DecodePng", Op::kPng},   {"DecodeGif", Op::kGif},
      {"DecodeBmp", Op::kBmp},   {"DecodeWebP", Op::kWebP}};
  for (const auto& [text, op] : ops) {
    if (name == text) return op;
  }
  return Op::kImage;
}

const char* NameOf(ImageFormat format) {
  switch (format) {
    case ImageFormat::kPng:
      return "PNG";
    case ImageFormat::kJpeg:
      return "JPEG";
    case ImageFormat::kGif:
      return "GIF";
    case ImageFormat::kBmp:
      return "BMP";
    case ImageFormat::kWebP:
      return "WebP";
    case ImageFormat::kUnknown:
      break;
  }
  return "unknown";
}

bool Decodes(Op op, ImageFormat format) {
  switch (op) {
    case Op::kImage:
      return true;
    case Op::kCropJpeg:
      return format == ImageFormat::kJpeg;
    case Op::kBmp:
      return format == ImageFormat::kBmp;
    case Op::kWebP:
      return format == ImageFormat::kWebP;
    default:
      return format == ImageFormat::kPng || format == ImageFormat::kJpeg ||
             format == ImageFormat::kGif;
  }
}

absl::Status CheckChannels(int64_t channels) {
  if (channels == 0 || channels == 1 || channels == 3 || channels == 4) return absl::OkStatus();
  return errors::InvalidArgument("channels is ", channels, ", expected 0, 1, 3 or 4");
}

class DecodeImage final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    op_ = OpOf(construction.op_def().name());
    dtype_ = construction.output_type(0);
    // DecodeGif also decodes PNG and JPEG images, to RGB.
    int64_t channels = 3;
    if (op_ != Op::kGif) {
      GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("channels", &channels));
      GRADFLOW_RETURN_IF_ERROR(CheckChannels(channels));
    }
    channels_ = static_cast<int>(channels);
    all_frames_ = true;
    if (op_ == Op::kImage) {
      GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("expand_animations", &all_frames_));
    }
    if (op_ != Op::kJpeg && op_ != Op::kCropJpeg) return absl::OkStatus();
    return ReadJpegOptions(construction);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(0, "contents"));
    const std::string& bytes = ctx.input(0).scalar<tstring>()();
    if (bytes.empty()) return errors::InvalidArgument("contents is empty");
    if (bytes.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
      return errors::InvalidArgument("contents has ", bytes.size(),
                                     " bytes, expected less than 2^31");
    }
    const ImageFormat format = internal::ImageFormatOf(bytes);
    if (format == ImageFormat::kUnknown) {
      return errors::InvalidArgument(
          "contents is not an image: expected the first bytes of JPEG, PNG, GIF, BMP or WebP");
    }
    if (!Decodes(op_, format)) {
      return errors::InvalidArgument("contents is a ", NameOf(format),
                                     " image, which the op does not decode");
    }
    return Decode(ctx, bytes, format);
  }

 private:
  absl::Status ReadJpegOptions(const KernelConstruction& construction) {
    int64_t ratio = 0;
    std::string method;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("ratio", &ratio));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("fancy_upscaling", &jpeg_.fancy_upscaling));
    GRADFLOW_RETURN_IF_ERROR(
        construction.GetAttr("try_recover_truncated", &jpeg_.recover_truncated));
    GRADFLOW_RETURN_IF_ERROR(
        construction.GetAttr("acceptable_fraction", &jpeg_.acceptable_fraction));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("dct_method", &method));
    if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8) {
      return errors::InvalidArgument("ratio is ", ratio, ", expected 1, 2, 4 or 8");
    }
    if (!method.empty() && method != "INTEGER_FAST" && method != "INTEGER_ACCURATE") {
      return errors::InvalidArgument("dct_method is '", errors::Printable(method),
                                     "', expected '', INTEGER_FAST or INTEGER_ACCURATE");
    }
    jpeg_.ratio = static_cast<int>(ratio);
    jpeg_.accurate = method == "INTEGER_ACCURATE";
    return absl::OkStatus();
  }

  absl::Status Decode(KernelContext& ctx, const std::string& bytes, ImageFormat format) const {
    // Images are decoded with 8 bits and then converted. PNG files may have 16 bits.
    const bool is_wide = format == ImageFormat::kPng && dtype_ != DT_UINT8;
    const DataType decoded_type = is_wide ? DT_UINT16 : DT_UINT8;
    Tensor* output = nullptr;
    Tensor decoded;
    MemoryReservation working_memory(ctx.allocator().get());
    const auto charge = [&](int64_t bytes) {
      return working_memory.Set(static_cast<double>(bytes), "the decoder of an image");
    };
    const auto allocate = [&](const ImageSize& size) -> absl::StatusOr<void*> {
      GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, Shape(format, size));
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
      if (dtype_ == decoded_type) return output->raw_data();
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(decoded_type, shape, &decoded));
      return decoded.raw_data();
    };
    GRADFLOW_RETURN_IF_ERROR(DecodeTo(ctx, bytes, format, is_wide ? 16 : 8, {charge, allocate}));
    if (dtype_ != decoded_type) Convert(ctx, decoded, output);
    return absl::OkStatus();
  }

  absl::Status DecodeTo(const KernelContext& ctx, const std::string& bytes, ImageFormat format,
                        int bits, internal::ImageMemory memory) const {
    const auto check = [&](bool allowed) {
      return allowed ? absl::OkStatus()
                     : errors::InvalidArgument("channels is ", channels_, ", which ",
                                               NameOf(format), " images cannot be decoded to");
    };
    switch (format) {
      case ImageFormat::kPng:
        return internal::DecodePng(bytes, channels_, bits, memory, ctx.run().stop);
      case ImageFormat::kJpeg: {
        GRADFLOW_RETURN_IF_ERROR(check(channels_ != 4));
        internal::JpegOptions options = jpeg_;
        options.channels = channels_;
        if (op_ == Op::kCropJpeg) {
          GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(1, "crop_window", TensorShape({4})));
          GRADFLOW_ASSIGN_OR_RETURN(const DimVector crop, ctx.Ints(1, "crop_window"));
          options.crop = true;
          options.crop_row = crop[0];
          options.crop_column = crop[1];
          options.crop_rows = crop[2];
          options.crop_columns = crop[3];
        }
        return internal::DecodeJpeg(bytes, options, memory, ctx.run().stop);
      }
      case ImageFormat::kGif:
        GRADFLOW_RETURN_IF_ERROR(check(channels_ == 0 || channels_ == 3));
        return internal::DecodeGif(bytes, all_frames_, memory, ctx.run().stop);
      case ImageFormat::kBmp:
        GRADFLOW_RETURN_IF_ERROR(check(channels_ != 1));
        return internal::DecodeBmp(bytes, channels_, memory);
      case ImageFormat::kWebP:
        GRADFLOW_RETURN_IF_ERROR(check(channels_ != 1));
        if (dtype_ != DT_UINT8) {
          return errors::InvalidArgument("dtype is ", DataTypeString(dtype_),
                                         ", but WebP images are decoded to uint8 only");
        }
        return internal::DecodeWebP(bytes, channels_, all_frames_, memory, ctx.run().stop);
      case ImageFormat::kUnknown:
        break;
    }
    return errors::Internal("no decoder");
  }

  // Returns the shape of the output. Ops for animations have a dimension of frames.
  absl::StatusOr<TensorShape> Shape(ImageFormat format, const ImageSize& size) const {
    bool has_frames = op_ == Op::kGif || op_ == Op::kWebP;
    if (op_ == Op::kImage) {
      has_frames = all_frames_ && (format == ImageFormat::kGif || format == ImageFormat::kWebP);
    }
    if (has_frames) {
      return TensorShape::Make({size.frames, size.rows, size.columns, size.channels});
    }
    if (size.frames != 1) {
      return errors::InvalidArgument("contents is an animation of ", size.frames,
                                     " frames, which the op does not decode");
    }
    return TensorShape::Make({size.rows, size.columns, size.channels});
  }

  // Converts elements to float in [0, 1], or from 8 to 16 bits by a factor of 256.
  static void Convert(const KernelContext& ctx, const Tensor& from, Tensor* to) {
    const int64_t n = to->NumElements();
    ParallelFor(ctx, n, BlockSizeForCost(0.5), [&](int64_t begin, int64_t end) {
      if (to->dtype() == DT_UINT16) {
        const uint8_t* const x = from.flat<uint8_t>().data();
        uint16_t* const y = to->flat<uint16_t>().data();
        for (int64_t i = begin; i < end; ++i) y[i] = static_cast<uint16_t>(x[i] * 256);
        return;
      }
      float* const y = to->flat<float>().data();
      if (from.dtype() == DT_UINT16) {
        const uint16_t* const x = from.flat<uint16_t>().data();
        for (int64_t i = begin; i < end; ++i) y[i] = static_cast<float>(x[i]) * (1.0f / 65535);
      } else {
        const uint8_t* const x = from.flat<uint8_t>().data();
        for (int64_t i = begin; i < end; ++i) y[i] = static_cast<float>(x[i]) * (1.0f / 255);
      }
    });
  }

  DataTypeVector types_;
  Op op_ = Op::kImage;
  DataType dtype_ = DT_UINT8;
  int channels_ = 0;
  bool all_frames_ = true;
  internal::JpegOptions jpeg_;
};

// ---- Shapes ----

// Reads the number of channels; -1 if the file determines it.
absl::StatusOr<int64_t> Channels(const ShapeContext& c) {
  int64_t channels = 0;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("channels", &channels));
  if (channels < 0)
    return errors::InvalidArgument("channels is ", channels, ", expected 0, 1, 3 or 4");
  return channels == 0 ? -1 : channels;
}
absl::Status DecodeShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 0));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t channels, Channels(c));
  bool all_frames = false;
  if (c.GetAttr("expand_animations", &all_frames).ok() && all_frames) return absl::OkStatus();
  c.set_output(0, PartialTensorShape({-1, -1, channels}));
  return absl::OkStatus();
}
absl::Status CropShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 0));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t channels, Channels(c));
  std::vector<int64_t> window = {-1, -1, -1, -1};
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(1, &window));
  const int64_t count = known ? static_cast<int64_t>(window.size()) : c.Dim(1, 0);
  if (count >= 0 && count != 4) {
    return errors::InvalidArgument("crop_window must have shape [4], but has ", count, " elements");
  }
  for (const int64_t value : window) {
    if (known && value < 0) {
      return errors::InvalidArgument("crop_window must not be negative, but has ", value);
    }
  }
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape,
                            PartialTensorShape::Make({window[2], window[3], channels}));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}
absl::Status GifShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 0));
  c.set_output(0, PartialTensorShape({-1, -1, -1, 3}));
  return absl::OkStatus();
}
absl::Status WebPShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 0));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t channels, Channels(c));
  c.set_output(0, PartialTensorShape({-1, -1, -1, channels}));
  return absl::OkStatus();
}

// ---- Definitions ----

constexpr char kContentsDoc[] = "contents: The bytes of the file.\n";
constexpr char kChannelsDoc[] =
    R"(channels: The number of channels of the result: 1 for gray, 3 for RGB, 4 for RGBA; 0 for the
  number in the file.
)";
constexpr char kJpegDoc[] = R"(ratio: The divisor of the size: 1, 2, 4 or 8.
fancy_upscaling: If true, color is interpolated smoothly.
try_recover_truncated: If true, files that end too early are decoded as far as they go.
acceptable_fraction: The minimum fraction of the rows that a truncated file must have. The missing
  rows are 0.
dct_method: "INTEGER_ACCURATE" for the exact inverse transform. "INTEGER_FAST" or "" for a faster
  one.)";
constexpr char kFormatsDoc[] = R"(PNG and GIF images of one frame are also decoded.

)";

}  // namespace

void Register(Registry& registry) {
  registry.Op("DecodeImage")
      .Group("image_ops")
      .Input("contents: string")
      .Output("image: dtype")
      .Attr("channels: int = 0")
      .Attr("dtype: {uint8, uint16, float} = DT_UINT8")
      .Attr("expand_animations: bool = true")
      .Shape(DecodeShape)
      .Doc(absl::StrCat(
          R"(Decodes a JPEG, PNG, GIF, BMP or WebP file.

)",
          kContentsDoc,
          R"(image: The image, of shape [rows, columns, channels]. GIF and WebP files have a first dimension of
  frames if `expand_animations` is true.
)",
          kChannelsDoc,
          R"(dtype: The type of the elements. Floats are in [0, 1]. WebP files are decoded to uint8 only.
expand_animations: If true, all frames of an animation are decoded, otherwise the first.)"));
  registry.Op("DecodeJpeg")
      .Group("image_ops")
      .Input("contents: string")
      .Output("image: uint8")
      .Attr("channels: int = 0")
      .Attr("ratio: int = 1")
      .Attr("fancy_upscaling: bool = true")
      .Attr("try_recover_truncated: bool = false")
      .Attr("acceptable_fraction: float = 1.0")
      .Attr("dct_method: string = ''")
      .Shape(DecodeShape)
      .Doc(absl::StrCat("Decodes a JPEG file.\n\n", kFormatsDoc, kContentsDoc,
                        "image: The image, of shape [rows, columns, channels].\n", kChannelsDoc,
                        kJpegDoc));
  registry.Op("DecodeAndCropJpeg")
      .Group("image_ops")
      .Input("contents: string")
      .Input("crop_window: int32")
      .Output("image: uint8")
      .Attr("channels: int = 0")
      .Attr("ratio: int = 1")
      .Attr("fancy_upscaling: bool = true")
      .Attr("try_recover_truncated: bool = false")
      .Attr("acceptable_fraction: float = 1.0")
      .Attr("dct_method: string = ''")
      .Shape(CropShape)
      .Doc(absl::StrCat("Decodes a part of a JPEG file.\n\n", kContentsDoc,
                        "crop_window: The first row and column, and the numbers of rows and "
                        "columns.\n",
                        "image: The part, of shape [rows, columns, channels].\n", kChannelsDoc,
                        kJpegDoc));
  registry.Op("DecodePng")
      .Group("image_ops")
      .Input("contents: string")
      .Output("image: dtype")
      .Attr("channels: int = 0")
      .Attr("dtype: {uint8, uint16} = DT_UINT8")
      .Shape(DecodeShape)
      .Doc(absl::StrCat(R"(Decodes a PNG file.

JPEG and GIF images of one frame are also decoded.

)",
                        kContentsDoc, "image: The image, of shape [rows, columns, channels].\n",
                        kChannelsDoc, "dtype: The type of the elements."));
  registry.Op("DecodeGif")
      .Group("image_ops")
      .Input("contents: string")
      .Output("image: uint8")
      .Shape(GifShape)
      .Doc(absl::StrCat(R"(Decodes the frames of a GIF file.

JPEG and PNG images are decoded as one frame.

)",
                        kContentsDoc,
                        "image: The frames, of shape [frames, rows, columns, channels]."));
  registry.Op("DecodeBmp")
      .Group("image_ops")
      .Input("contents: string")
      .Output("image: uint8")
      .Attr("channels: int = 0")
      .Shape(DecodeShape)
      .Doc(absl::StrCat(
          R"(Decodes a BMP file without compression, of 8, 24 or 32 bits a pixel.

)",
          kContentsDoc, "image: The image, of shape [rows, columns, channels].\n",
          "channels: The number of channels of the result: 3, 4, or 0 for the number in "
          "the file."));
  registry.Op("DecodeWebP")
      .Group("image_ops")
      .Input("contents: string")
      .Output("image: dtype")
      .Attr("channels: int = 0")
      .Attr("dtype: {uint8} = DT_UINT8")
      .Shape(WebPShape)
      .Doc(absl::StrCat("Decodes the frames of a WebP file.\n\n", kContentsDoc,
                        "image: The frames, of shape [frames, rows, columns, channels].\n",
                        "channels: The number of channels of the file, 3 or 4; 0 for any.\n",
                        "dtype: The type of the elements."));
  for (const char* const op : {"DecodeImage", "DecodeJpeg", "DecodeAndCropJpeg", "DecodePng",
                               "DecodeGif", "DecodeBmp", "DecodeWebP"}) {
    registry.Kernel(op, MakeKernel<DecodeImage>);
  }
}

}  // namespace gradflow::decode_image
