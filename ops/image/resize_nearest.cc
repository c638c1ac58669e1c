// ResizeNearestNeighbor and its gradient.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/image/resample.h"
#include "gradflow/ops/nn/softmax_rows.h"

namespace gradflow::resize_nearest {
namespace {

// Sets indices[i] to the input pixel that output pixel i shows. The input has `in` pixels.
void NearestPixels(const ResizeAttrs& attrs, int64_t in, int64_t out, int32_t* indices) {
  const float scale = attrs.Scale(in, out);
  for (int64_t i = 0; i < out; ++i) {
    const float position = attrs.half_pixel_centers ? (static_cast<float>(i) + 0.5f) * scale
                                                    : static_cast<float>(i) * scale;
    const float pixel = attrs.align_corners ? std::round(position) : std::floor(position);
    indices[i] =
        static_cast<int32_t>(std::min(in - 1, std::max<int64_t>(0, static_cast<int64_t>(pixel))));
  }
}

// The nearest pixels of all rows and columns.
class Pixels {
 public:
  absl::Status Make(KernelContext& ctx, const ResizeAttrs& attrs, const TensorShape& in,
                    const TensorShape& out) {
    const int64_t rows = out.dim_size(1);
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT32, {rows + out.dim_size(2)}, &tensor_));
    rows_ = tensor_.flat<int32_t>().data();
    columns_ = rows_ + rows;
    NearestPixels(attrs, in.dim_size(1), rows, rows_);
    NearestPixels(attrs, in.dim_size(2), out.dim_size(2), columns_);
    return absl::OkStatus();
  }
  const int32_t* rows() const { return rows_; }
  const int32_t* columns() const { return columns_; }

 private:
  Tensor tensor_;
  int32_t* rows_ = nullptr;
  int32_t* columns_ = nullptr;
};

// Copies pixels of `Bytes` bytes; if `Bytes` is 0, of `bytes` bytes.
template <int Bytes>
void CopyRow(const char* from, const int32_t* columns, int64_t n, int64_t bytes, char* to) {
  const int64_t size = Bytes > 0 ? Bytes : bytes;
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(to + i * size, from + columns[i] * size, static_cast<size_t>(size));
  }
}

using RowCopier = void (*)(const char* from, const int32_t* columns, int64_t n, int64_t bytes,
                           char* to);
RowCopier CopierOf(int64_t bytes) {
  switch (bytes) {
    case 1:
      return CopyRow<1>;
    case 2:
      return CopyRow<2>;
    case 3:
      return CopyRow<3>;
    case 4:
      return CopyRow<4>;
    case 6:
      return CopyRow<6>;
    case 8:
      return CopyRow<8>;
    case 12:
      return CopyRow<12>;
    case 16:
      return CopyRow<16>;
    default:
      return CopyRow<0>;
  }
}

class ResizeNearest final : public OpKernel {
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
    // Float positions are exact up to this size.
    constexpr int64_t kMaxSize = int64_t{1} << 24;
    if (images.dim_size(1) >= kMaxSize || images.dim_size(2) >= kMaxSize) {
      return errors::InvalidArgument("images must have less than ", kMaxSize,
                                     " rows and columns, but have shape ",
                                     images.shape().DebugString());
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    if (output->NumElements() == 0) return absl::OkStatus();
    Pixels pixels;
    GRADFLOW_RETURN_IF_ERROR(pixels.Make(ctx, attrs_, images.shape(), shape));
    const int64_t bytes = shape.dim_size(3) * DataTypeSize(images.dtype());
    const int64_t rows = shape.dim_size(1);
    const int64_t columns = shape.dim_size(2);
    const int64_t in_rows = images.dim_size(1);
    const int64_t in_row_bytes = images.dim_size(2) * bytes;
    const char* const from = static_cast<const char*>(images.raw_data());
    char* const to = static_cast<char*>(output->raw_data());
    const RowCopier copy = CopierOf(bytes);
    const double cost = static_cast<double>(columns) * (1 + 0.1 * static_cast<double>(bytes));
    ParallelFor(
        ctx, shape.dim_size(0) * rows, BlockSizeForCost(cost), [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            const int64_t row = r / rows * in_rows + pixels.rows()[r % rows];
            char* const target = to + r * columns * bytes;
            if (r > begin && row == (r - 1) / rows * in_rows + pixels.rows()[(r - 1) % rows]) {
              std::memcpy(target, target - columns * bytes, static_cast<size_t>(columns * bytes));
            } else {
              copy(from + row * in_row_bytes, pixels.columns(), columns, bytes, target);
            }
          }
        });
    return absl::OkStatus();
  }

 private:
  DataTypeVector types_;
  ResizeAttrs attrs_;
};

// Each input pixel gets the sum of the gradients of the output pixels that show it. S is the type
// of sums.
template <typename S>
class ResizeNearestGrad final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    return attrs_.Read(construction);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    const Tensor& grads = ctx.input(0);
    TensorShape shape;
    GRADFLOW_RETURN_IF_ERROR(CheckResize(ctx, 1, &shape));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    if (output->NumElements() == 0) return absl::OkStatus();
    Pixels pixels;
    GRADFLOW_RETURN_IF_ERROR(pixels.Make(ctx, attrs_, shape, grads.shape()));
    const int64_t channels = shape.dim_size(3);
    const int64_t in_rows = grads.dim_size(1);
    const int64_t in_row = grads.dim_size(2) * channels;
    const int64_t rows = shape.dim_size(1);
    const int64_t row_size = shape.dim_size(2) * channels;
    const int64_t total = shape.dim_size(0) * rows;
    const double cost = static_cast<double>(row_size) + 2.0 * static_cast<double>(in_row) *
                                                            static_cast<double>(in_rows) /
                                                            static_cast<double>(rows);
    const int64_t block = std::max(BlockSizeForCost(cost), NumBlocks(total, 64));
    Tensor scratch;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(
        DataTypeToEnum<S>::value, {NumBlocks(total, block), in_row + row_size}, &scratch));
    const RowReader<S> reader(grads);
    const RowWriter<S> writer(output);
    // The pixels are in increasing order, so an input row is shown by a range of output rows.
    const int32_t* const all_rows = pixels.rows();
    ParallelFor(ctx, total, block, [&](int64_t begin, int64_t end) {
      S* const buffer = scratch.flat<S>().data() + begin / block * (in_row + row_size);
      for (int64_t r = begin; r < end && !ctx.ShouldStop(); ++r) {
        S* const to = writer.Place(r * row_size, buffer + in_row);
        std::fill_n(to, row_size, S(0));
        const auto range =
            std::equal_range(all_rows, all_rows + in_rows, static_cast<int32_t>(r % rows));
        for (const int32_t* row = range.first; row != range.second; ++row) {
          const int64_t from = (r / rows * in_rows + (row - all_rows)) * in_row;
          const S* const dy = reader.Read(from, in_row, buffer);
          for (int64_t i = 0; i < grads.dim_size(2); ++i) {
            S* const pixel = to + pixels.columns()[i] * channels;
            for (int64_t c = 0; c < channels; ++c) pixel[c] += dy[i * channels + c];
          }
        }
        writer.Write(to, r * row_size, row_size);
      }
    });
    return absl::OkStatus();
  }

 private:
  DataTypeVector types_;
  ResizeAttrs attrs_;
};

constexpr char kAttrsDoc[] =
    R"(align_corners: If true, the centers of the corner pixels of input and output are aligned, and
  positions are rounded to the nearest pixel. Otherwise, positions are rounded down.
half_pixel_centers: If true, pixels are squares around their centers. Otherwise a pixel of the
  output is at its index times the scale. Must not be true if `align_corners` is true.)";

}  // namespace

void Register(Registry& registry) {
  registry.Op("ResizeNearestNeighbor")
      .Group("image_ops")
      .Input("images: T")
      .Input("size: int32")
      .Output("resized_images: T")
      .Attr("T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}")
      .Attr("align_corners: bool = false")
      .Attr("half_pixel_centers: bool = false")
      .Shape(ResizeAttrsShape)
      .Doc(absl::StrCat(R"(Resizes images by repeating or omitting pixels.

images: Images of shape [batch, rows, columns, channels].
size: The new numbers of rows and columns, a vector of two.
resized_images: The resized images.
T: The type of the images.
)",
                        kAttrsDoc));
  registry.Op("ResizeNearestNeighborGrad")
      .Group("image_ops")
      .Input("grads: T")
      .Input("size: int32")
      .Output("output: T")
      .Attr("T: {uint8, int8, int32, half, float, double, bfloat16}")
      .Attr("align_corners: bool = false")
      .Attr("half_pixel_centers: bool = false")
      .Shape(ResizeAttrsShape)
      .Doc(absl::StrCat(R"(Computes the gradient of ResizeNearestNeighbor.

grads: The gradients with respect to the resized images.
size: The numbers of rows and columns of the images before they were resized.
output: The gradients with respect to the images.
T: The type of the gradients.
)",
                        kAttrsDoc));
  registry.Kernel("ResizeNearestNeighbor", MakeKernel<ResizeNearest>).Types("T", ImageTypes());
  constexpr char kGradOp[] = "ResizeNearestNeighborGrad";
  registry.Kernel(kGradOp, MakeKernel<ResizeNearestGrad<float>>)
      .Types("T", {DT_FLOAT, DT_HALF, DT_BFLOAT16});
  registry.Kernel(kGradOp, MakeKernel<ResizeNearestGrad<double>>).Types("T", {DT_DOUBLE});
  registry.Kernel(kGradOp, MakeKernel<ResizeNearestGrad<uint8_t>>).Types("T", {DT_INT8, DT_UINT8});
  registry.Kernel(kGradOp, MakeKernel<ResizeNearestGrad<uint32_t>>).Types("T", {DT_INT32});
}

}  // namespace gradflow::resize_nearest
