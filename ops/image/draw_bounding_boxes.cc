// DrawBoundingBoxes and V2: draws lines that are one pixel wide around boxes.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/input_checks.h"

namespace gradflow::draw_bounding_boxes {
namespace {

// The default colors: yellow, blue, red, lime, purple, olive, maroon, navy, aqua and fuchsia.
constexpr float kColors[10][4] = {
    {1, 1, 0, 1},       {0, 0, 1, 1},    {1, 0, 0, 1},    {0, 1, 0, 1}, {0.5f, 0, 0.5f, 1},
    {0.5f, 0.5f, 0, 1}, {0.5f, 0, 0, 1}, {0, 0, 0.5f, 1}, {0, 1, 1, 1}, {1, 0, 1, 1}};

// Returns the pixel at a normalized position, rounded towards zero and clamped to a range beyond
// any image.
int64_t PixelAt(float position, int64_t size) {
  constexpr float kLimit = 0x1p40f;
  // An infinite position times 0 would be NaN.
  const float pixel = std::clamp(position, -kLimit, kLimit) * static_cast<float>(size - 1);
  return static_cast<int64_t>(std::clamp(pixel, -kLimit, kLimit));
}

absl::Status CheckShapes(const PartialTensorShape& images, const PartialTensorShape& boxes) {
  GRADFLOW_RETURN_IF_ERROR(CheckRank("images", images, 4));
  GRADFLOW_RETURN_IF_ERROR(CheckRank("boxes", boxes, 3));
  GRADFLOW_RETURN_IF_ERROR(CheckDim("boxes", boxes, 2, 4));
  if (images.unknown_rank()) return absl::OkStatus();
  const int64_t depth = images.dim_size(3);
  if (depth >= 0 && depth != 1 && depth != 3 && depth != 4) {
    return errors::InvalidArgument(
        "Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA), but images has shape ",
        images.DebugString());
  }
  if (boxes.unknown_rank()) return absl::OkStatus();
  if (images.dim_size(0) >= 0 && boxes.dim_size(0) >= 0 &&
      images.dim_size(0) != boxes.dim_size(0)) {
    return errors::InvalidArgument("images and boxes must have the same batch, but have shapes ",
                                   images.DebugString(), " and ", boxes.DebugString());
  }
  return absl::OkStatus();
}

absl::Status Shape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckShapes(c.input(0), c.input(1)));
  if (c.num_inputs() == 3) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(2, 2));
  PartialTensorShape shape = c.input(0);
  if (shape.unknown_rank()) shape = PartialTensorShape::UnknownOfRank(4);
  c.set_output(0, shape);
  return absl::OkStatus();
}

template <typename T>
class DrawBoundingBoxes final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    const Tensor& images = ctx.input(0);
    const Tensor& boxes = ctx.input(1);
    GRADFLOW_RETURN_IF_ERROR(CheckShapes(images.shape(), boxes.shape()));
    const int64_t depth = images.dim_size(3);
    std::vector<std::array<T, 4>> colors;
    GRADFLOW_RETURN_IF_ERROR(ReadColors(ctx, depth, &colors));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, images.shape(), &output));
    if (output->NumElements() == 0) return absl::OkStatus();
    const Canvas canvas = {images.dim_size(1), images.dim_size(2), depth};
    const int64_t size = canvas.rows * canvas.columns * depth;
    const int64_t count = boxes.dim_size(1);
    const T* const from = images.flat<T>().data();
    T* const to = output->flat<T>().data();
    const float* const all = boxes.flat<float>().data();
    ParallelFor(ctx, images.dim_size(0), BlockSizeForCost(0.5 * static_cast<double>(size)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t b = begin; b < end; ++b) {
                    std::copy_n(from + b * size, size, to + b * size);
                    for (int64_t k = 0; k < count && !ctx.ShouldStop(); ++k) {
                      const auto& color = colors[static_cast<size_t>(k) % colors.size()];
                      Draw(canvas, all + (b * count + k) * 4, color.data(), to + b * size);
                    }
                  }
                });
    return absl::OkStatus();
  }

 private:
  struct Canvas {
    int64_t rows;
    int64_t columns;
    int64_t depth;
  };

  absl::Status ReadColors(const KernelContext& ctx, int64_t depth,
                          std::vector<std::array<T, 4>>* colors) const {
    if (types_.size() == 3) {
      const Tensor& tensor = ctx.input(2);
      GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(2, "colors", 2));
      if (tensor.dim_size(1) < depth) {
        return errors::InvalidArgument("colors must have a column for each of ", depth,
                                       " channels, but has shape ", tensor.shape().DebugString());
      }
      // Each box uses at most one color.
      const int64_t count = std::min(tensor.dim_size(0), ctx.input(1).dim_size(1));
      if (tensor.NumElements() > 0) {
        for (int64_t i = 0; i < std::max<int64_t>(1, count); ++i) {
          std::array<T, 4> color{};
          for (int64_t c = 0; c < depth; ++c) {
            color[c] = static_cast<T>(tensor.matrix<float>()(i, c));
          }
          colors->push_back(color);
        }
        return absl::OkStatus();
      }
    }
    for (const auto& values : kColors) {
      std::array<T, 4> color{};
      for (int c = 0; c < 4; ++c) color[c] = static_cast<T>(depth == 1 ? 1.0f : values[c]);
      colors->push_back(color);
    }
    return absl::OkStatus();
  }

  // Draws the lines of a box [y1, x1, y2, x2] that are inside of the image. Draws nothing if a
  // bound is NaN or if the bounds are in reverse order.
  static void Draw(const Canvas& canvas, const float* box, const T* color, T* image) {
    for (int k = 0; k < 4; ++k) {
      if (std::isnan(box[k])) return;
    }
    const int64_t top = PixelAt(box[0], canvas.rows);
    const int64_t left = PixelAt(box[1], canvas.columns);
    const int64_t bottom = PixelAt(box[2], canvas.rows);
    const int64_t right = PixelAt(box[3], canvas.columns);
    if (top > bottom || left > right || top >= canvas.rows || bottom < 0 ||
        left >= canvas.columns || right < 0) {
      return;
    }
    const int64_t first_column = std::max<int64_t>(left, 0);
    const int64_t last_column = std::min(right, canvas.columns - 1);
    for (const int64_t row : {top, bottom}) {
      if (row < 0 || row >= canvas.rows) continue;
      for (int64_t x = first_column; x <= last_column; ++x) Put(canvas, row, x, color, image);
    }
    const int64_t first_row = std::max<int64_t>(top, 0);
    const int64_t last_row = std::min(bottom, canvas.rows - 1);
    for (const int64_t column : {left, right}) {
      if (column < 0 || column >= canvas.columns) continue;
      for (int64_t y = first_row; y <= last_row; ++y) Put(canvas, y, column, color, image);
    }
  }
  static void Put(const Canvas& canvas, int64_t y, int64_t x, const T* color, T* image) {
    std::copy_n(color, canvas.depth, image + (y * canvas.columns + x) * canvas.depth);
  }

  DataTypeVector types_;
};

constexpr char kBoxesDoc[] =
    R"(boxes: The boxes of each image, of shape [batch, boxes, 4]: [y1, x1, y2, x2], where 0 is the first
  row (column) and 1 the last.
)";

}  // namespace

void Register(Registry& registry) {
  registry.Op("DrawBoundingBoxes")
      .Group("image_ops")
      .Input("images: T")
      .Input("boxes: float")
      .Output("output: T")
      .Attr("T: {float, half} = DT_FLOAT")
      .Shape(Shape)
      .Doc(absl::StrCat(R"(Draws boxes in ten colors, which repeat.

The parts of a box outside of its image are not drawn.

images: Images of shape [batch, rows, columns, channels], with 1, 3 or 4 channels.
)",
                        kBoxesDoc, R"(output: The images with the boxes.
T: The type of the images.)"));
  registry.Op("DrawBoundingBoxesV2")
      .Group("image_ops")
      .Input("images: T")
      .Input("boxes: float")
      .Input("colors: float")
      .Output("output: T")
      .Attr("T: {float, half} = DT_FLOAT")
      .Shape(Shape)
      .Doc(absl::StrCat(
          R"(Draws boxes in the given colors, which repeat.

The parts of a box outside of its image are not drawn.

images: Images of shape [batch, rows, columns, channels], with 1, 3 or 4 channels.
)",
          kBoxesDoc,
          R"(colors: A color in each row. If empty, the colors of DrawBoundingBoxes are used.
output: The images with the boxes.
T: The type of the images.)"));
  for (const char* const op : {"DrawBoundingBoxes", "DrawBoundingBoxesV2"}) {
    registry.Kernel(op, MakeKernel<DrawBoundingBoxes<float>>).Types("T", {DT_FLOAT});
    registry.Kernel(op, MakeKernel<DrawBoundingBoxes<half>>).Types("T", {DT_HALF});
  }
}

}  // namespace gradflow::draw_bounding_boxes
