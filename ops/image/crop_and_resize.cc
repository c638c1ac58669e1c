// CropAndResize and its gradients with respect to the image and the boxes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::crop_and_resize {
namespace {

using CropTypes =
    TypeList<uint8_t, uint16_t, int8_t, int16_t, int32_t, int64_t, half, float, double>;

// ---- Positions ----

// Returns the largest float that is at most n.
float FloatAtMost(int64_t n) {
  const float nearest = static_cast<float>(n);
  // Numbers near 2^63 round up to 2^63, which does not fit int64.
  constexpr float kLimit = 0x1p63f;
  const bool is_above = nearest >= kLimit || static_cast<int64_t>(nearest) > n;
  return is_above ? std::nextafter(nearest, 0.0f) : nearest;
}

// The positions of the rows (columns) of a crop in the image.
class CropAxis {
 public:
  // `from` and `to` are the bounds of the box, normalized by the last index of the image.
  CropAxis(float from, float to, int64_t image, int64_t crop)
      : from_(from),
        last_(FloatAtMost(image - 1)),
        scale_(crop > 1 ? (to - from) * last_ / static_cast<float>(crop - 1) : 0),
        center_(Center(from, to, image)),
        crop_(crop) {}
  float At(int64_t i) const {
    return crop_ > 1 ? from_ * last_ + static_cast<float>(i) * scale_ : center_;
  }
  bool IsInside(float position) const { return position >= 0 && position <= last_; }

 private:
  // Computed in double, as in TensorFlow. Rounding to float must not leave the image.
  float Center(float from, float to, int64_t image) const {
    const double center = 0.5 * (from + to) * static_cast<double>(image - 1);
    const float rounded = static_cast<float>(center);
    return rounded > last_ && center <= static_cast<double>(image - 1) ? last_ : rounded;
  }

  float from_;
  float last_;
  float scale_;
  float center_;
  int64_t crop_;
};

// A position between two pixels.
struct Between {
  int64_t low;
  int64_t high;
  float weight;

  explicit Between(float position)
      : low(static_cast<int64_t>(std::floor(position))),
        high(static_cast<int64_t>(std::ceil(position))),
        weight(position - static_cast<float>(low)) {}
};

struct CropSizes {
  int64_t batch;
  int64_t rows;
  int64_t columns;
  int64_t depth;
  int64_t boxes;
  int64_t crop_rows;
  int64_t crop_columns;
};

// ---- Checks ----

// Checks the boxes, and that box_ind has valid image indices. The inputs are `boxes` and `boxes` +
// 1.
absl::Status CheckBoxes(const KernelContext& ctx, int boxes, int64_t batch, int64_t count) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(boxes, "boxes", TensorShape({count, 4})));
  // Programs may expect TensorFlow's wording, which calls box_ind box_index.
  if (ctx.input(boxes + 1).shape() != TensorShape({count})) {
    return errors::InvalidArgument("box_index has incompatible shape: box_ind must have shape [",
                                   count, "], but has shape ",
                                   ctx.input(boxes + 1).shape().DebugString());
  }
  for (const float value : ctx.input(boxes).span<float>()) {
    if (!std::isfinite(value)) {
      return errors::InvalidArgument("boxes must be finite, but one has the bound ", value);
    }
  }
  const auto indices = ctx.input(boxes + 1).flat<int32_t>();
  for (int64_t i = 0; i < count; ++i) {
    if (indices(i) < 0 || indices(i) >= batch) {
      return absl::OutOfRangeError(
          absl::StrCat("box_index has values outside [0, batch_size): box_ind[", i, "] is ",
                       indices(i), ", expected an image from 0 to ", batch - 1));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPositive(const char* name, int64_t a, int64_t b) {
  if (a > 0 && b > 0) return absl::OkStatus();
  return errors::InvalidArgument(name, " must be positive, but is ", a, " x ", b);
}

absl::Status ReadIsNearest(const KernelConstruction& construction, bool* is_nearest) {
  std::string method;
  GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("method", &method));
  *is_nearest = method == "nearest";
  return absl::OkStatus();
}

// Merges the numbers of boxes of inputs `boxes` and `boxes` + 1 into *count, the first dimension of
// input 0 or -1.
absl::Status CheckBoxShapes(const ShapeContext& c, int boxes, int64_t* count) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(boxes, 2));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(boxes + 1, 1));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t found, MergeDims(c, boxes, 0, boxes + 1, 0));
  if (*count >= 0) {
    GRADFLOW_RETURN_IF_ERROR(MergeDims(c, 0, 0, boxes, 0).status());
    GRADFLOW_RETURN_IF_ERROR(MergeDims(c, 0, 0, boxes + 1, 0).status());
  }
  *count = std::max(*count, found);
  return CheckDim(c, boxes, 1, 4);
}

// ---- CropAndResize ----

absl::Status CropShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 4));
  int64_t count = -1;
  GRADFLOW_RETURN_IF_ERROR(CheckBoxShapes(c, 1, &count));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(3, 1));
  GRADFLOW_RETURN_IF_ERROR(CheckDim(c, 3, 0, 2));
  std::vector<int64_t> sizes = {-1, -1};
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(3, &sizes));
  if (known) GRADFLOW_RETURN_IF_ERROR(CheckPositive("crop_size", sizes[0], sizes[1]));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape,
                            PartialTensorShape::Make({count, sizes[0], sizes[1], c.Dim(0, 3)}));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

class CropAndResize final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("extrapolation_value", &extrapolation_value_));
    return ReadIsNearest(construction, &is_nearest_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    if (ctx.input(0).dims() != 4) {
      return errors::InvalidArgument("input image must be 4-D, but image has shape ",
                                     ctx.input(0).shape().DebugString());
    }
    const TensorShape& image = ctx.input(0).shape();
    GRADFLOW_RETURN_IF_ERROR(
        CheckPositive("the size of image", image.dim_size(1), image.dim_size(2)));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(1, "boxes", 2));
    const int64_t boxes = ctx.input(1).dim_size(0);
    GRADFLOW_RETURN_IF_ERROR(CheckBoxes(ctx, 1, image.dim_size(0), boxes));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(3, "crop_size", TensorShape({2})));
    GRADFLOW_ASSIGN_OR_RETURN(const DimVector crop, ctx.Ints(3, "crop_size"));
    GRADFLOW_RETURN_IF_ERROR(CheckPositive("crop_size", crop[0], crop[1]));
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape,
                              TensorShape::Make({boxes, crop[0], crop[1], image.dim_size(3)}));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    if (output->NumElements() == 0) return absl::OkStatus();
    const CropSizes sizes = {image.dim_size(0),
                             image.dim_size(1),
                             image.dim_size(2),
                             image.dim_size(3),
                             boxes,
                             crop[0],
                             crop[1]};
    DispatchType(CropTypes(), ctx.input_dtype(0), [&](auto tag) {
      Crop<typename decltype(tag)::type>(ctx, sizes, output->flat<float>().data());
    });
    return absl::OkStatus();
  }

 private:
  // A unit of work is a row of a crop.
  template <typename T>
  void Crop(const KernelContext& ctx, const CropSizes& s, float* crops) const {
    const T* const images = ctx.input(0).flat<T>().data();
    const float* const boxes = ctx.input(1).flat<float>().data();
    const int32_t* const indices = ctx.input(2).flat<int32_t>().data();
    const int64_t n = s.crop_columns * s.depth;
    ParallelFor(ctx, s.boxes * s.crop_rows, BlockSizeForCost(3.0 * static_cast<double>(n)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t r = begin; r < end && !ctx.ShouldStop(); ++r) {
                    const int64_t box = r / s.crop_rows;
                    const T* const image = images + indices[box] * s.rows * s.columns * s.depth;
                    Row(image, boxes + 4 * box, r % s.crop_rows, s, crops + r * n);
                  }
                });
  }

  template <typename T>
  void Row(const T* image, const float* box, int64_t row, const CropSizes& s, float* to) const {
    const CropAxis rows(box[0], box[2], s.rows, s.crop_rows);
    const CropAxis columns(box[1], box[3], s.columns, s.crop_columns);
    const float y = rows.At(row);
    if (!rows.IsInside(y)) {
      std::fill_n(to, s.crop_columns * s.depth, extrapolation_value_);
      return;
    }
    const Between by(y);
    const T* const top = image + by.low * s.columns * s.depth;
    const T* const bottom = image + by.high * s.columns * s.depth;
    const T* const nearest = image + static_cast<int64_t>(std::round(y)) * s.columns * s.depth;
    for (int64_t i = 0; i < s.crop_columns; ++i, to += s.depth) {
      const float x = columns.At(i);
      if (!columns.IsInside(x)) {
        std::fill_n(to, s.depth, extrapolation_value_);
      } else if (is_nearest_) {
        const T* const pixel = nearest + static_cast<int64_t>(std::round(x)) * s.depth;
        for (int64_t d = 0; d < s.depth; ++d) to[d] = static_cast<float>(pixel[d]);
      } else {
        const Between bx(x);
        const int64_t left = bx.low * s.depth;
        const int64_t right = bx.high * s.depth;
        for (int64_t d = 0; d < s.depth; ++d) {
          const float top_left = static_cast<float>(top[left + d]);
          const float top_right = static_cast<float>(top[right + d]);
          const float bottom_left = static_cast<float>(bottom[left + d]);
          const float bottom_right = static_cast<float>(bottom[right + d]);
          const float a = top_left + (top_right - top_left) * bx.weight;
          const float b = bottom_left + (bottom_right - bottom_left) * bx.weight;
          to[d] = a + (b - a) * by.weight;
        }
      }
    }
  }

  DataTypeVector types_;
  float extrapolation_value_ = 0;
  bool is_nearest_ = false;
};

// ---- Gradients ----

absl::Status GradImageShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 4));
  int64_t count = c.Dim(0, 0);
  GRADFLOW_RETURN_IF_ERROR(CheckBoxShapes(c, 1, &count));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, c.ShapeFromInput(3));
  if (shape.unknown_rank()) shape = PartialTensorShape::UnknownOfRank(4);
  if (shape.dims() != 4) {
    return errors::InvalidArgument("image_size must have 4 elements, but has ", shape.dims());
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// S is the type of sums.
template <typename T, typename S = ComputeType<T>>
class GradImage final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    return ReadIsNearest(construction, &is_nearest_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(0, "grads", 4));
    const TensorShape& grads = ctx.input(0).shape();
    GRADFLOW_RETURN_IF_ERROR(
        CheckPositive("the size of grads", grads.dim_size(1), grads.dim_size(2)));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(3, "image_size", TensorShape({4})));
    GRADFLOW_ASSIGN_OR_RETURN(const DimVector size, ctx.Ints(3, "image_size"));
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(size));
    GRADFLOW_RETURN_IF_ERROR(CheckPositive("image_size", size[1], size[2]));
    if (size[3] != grads.dim_size(3)) {
      return errors::InvalidArgument("image_size has ", size[3], " channels, expected the ",
                                     grads.dim_size(3), " of grads");
    }
    GRADFLOW_RETURN_IF_ERROR(CheckBoxes(ctx, 1, size[0], grads.dim_size(0)));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    if (output->NumElements() == 0) return absl::OkStatus();
    Tensor sums = *output;
    if (!std::is_same_v<S, T>) {
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DataTypeToEnum<S>::value, shape, &sums));
    }
    const CropSizes s = {size[0],           size[1],           size[2],          size[3],
                         grads.dim_size(0), grads.dim_size(1), grads.dim_size(2)};
    const int64_t image_size = s.rows * s.columns * s.depth;
    // The boxes ordered by image. The boxes of an image keep their order.
    Tensor order;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {s.boxes}, &order));
    int64_t* const boxes = order.flat<int64_t>().data();
    GRADFLOW_RETURN_IF_ERROR(SortBoxes(ctx, s, boxes));
    S* const all = sums.flat<S>().data();
    T* const results = output->flat<T>().data();
    const double cost =
        1.0 * static_cast<double>(image_size) +
        10.0 * static_cast<double>(grads.num_elements()) / static_cast<double>(s.batch);
    const int32_t* const indices = ctx.input(2).flat<int32_t>().data();
    ParallelFor(ctx, s.batch, BlockSizeForCost(cost), [&](int64_t begin, int64_t end) {
      const int64_t* box = std::partition_point(boxes, boxes + s.boxes,
                                                [&](int64_t i) { return indices[i] < begin; });
      for (int64_t b = begin; b < end; ++b) {
        S* const image = all + b * image_size;
        std::fill_n(image, image_size, S(0));
        for (; box < boxes + s.boxes && indices[*box] == b; ++box) {
          if (ctx.ShouldStop()) return;
          AddBox(ctx, s, *box, image);
        }
        if (std::is_same_v<S, T>) continue;
        for (int64_t i = 0; i < image_size; ++i) {
          results[b * image_size + i] = static_cast<T>(image[i]);
        }
      }
    });
    return absl::OkStatus();
  }

 private:
  // Sets order[0 .. s.boxes) to the boxes sorted by image, with a counting sort.
  static absl::Status SortBoxes(KernelContext& ctx, const CropSizes& s, int64_t* order) {
    Tensor counts;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {s.batch + 1}, &counts));
    int64_t* const ends = counts.flat<int64_t>().data();
    std::fill_n(ends, s.batch + 1, int64_t{0});
    const int32_t* const indices = ctx.input(2).flat<int32_t>().data();
    for (int64_t i = 0; i < s.boxes; ++i) ++ends[indices[i] + 1];
    for (int64_t b = 0; b < s.batch; ++b) ends[b + 1] += ends[b];
    for (int64_t i = 0; i < s.boxes; ++i) order[ends[indices[i]]++] = i;
    return absl::OkStatus();
  }

  void AddBox(const KernelContext& ctx, const CropSizes& s, int64_t box, S* image) const {
    const float* const bounds = ctx.input(1).flat<float>().data() + 4 * box;
    const float* dy =
        ctx.input(0).flat<float>().data() + box * s.crop_rows * s.crop_columns * s.depth;
    const CropAxis rows(bounds[0], bounds[2], s.rows, s.crop_rows);
    const CropAxis columns(bounds[1], bounds[3], s.columns, s.crop_columns);
    for (int64_t r = 0; r < s.crop_rows; ++r) {
      const float y = rows.At(r);
      for (int64_t i = 0; i < s.crop_columns; ++i, dy += s.depth) {
        const float x = columns.At(i);
        if (!rows.IsInside(y) || !columns.IsInside(x)) continue;
        if (is_nearest_) {
          Add(s, static_cast<int64_t>(std::round(y)), static_cast<int64_t>(std::round(x)), 1, dy,
              image);
          continue;
        }
        const Between by(y);
        const Between bx(x);
        Add(s, by.low, bx.low, (1 - by.weight) * (1 - bx.weight), dy, image);
        Add(s, by.low, bx.high, (1 - by.weight) * bx.weight, dy, image);
        Add(s, by.high, bx.low, by.weight * (1 - bx.weight), dy, image);
        Add(s, by.high, bx.high, by.weight * bx.weight, dy, image);
      }
    }
  }
  static void Add(const CropSizes& s, int64_t row, int64_t column, float weight, const float* dy,
                  S* image) {
    S* const to = image + (row * s.columns + column) * s.depth;
    for (int64_t d = 0; d < s.depth; ++d) to[d] += static_cast<S>(weight * dy[d]);
  }

  DataTypeVector types_;
  bool is_nearest_ = false;
};

absl::Status GradBoxesShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 4));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 4));
  int64_t count = c.Dim(0, 0);
  GRADFLOW_RETURN_IF_ERROR(CheckBoxShapes(c, 2, &count));
  c.set_output(0, PartialTensorShape({count, 4}));
  return absl::OkStatus();
}

class GradBoxes final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(0, "grads", 4));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(1, "image", 4));
    const TensorShape& grads = ctx.input(0).shape();
    const TensorShape& image = ctx.input(1).shape();
    GRADFLOW_RETURN_IF_ERROR(
        CheckPositive("the size of grads", grads.dim_size(1), grads.dim_size(2)));
    GRADFLOW_RETURN_IF_ERROR(
        CheckPositive("the size of image", image.dim_size(1), image.dim_size(2)));
    if (image.dim_size(3) != grads.dim_size(3)) {
      return errors::InvalidArgument("image has ", image.dim_size(3), " channels, expected the ",
                                     grads.dim_size(3), " of grads");
    }
    GRADFLOW_RETURN_IF_ERROR(CheckBoxes(ctx, 2, image.dim_size(0), grads.dim_size(0)));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {grads.dim_size(0), 4}, &output));
    if (output->NumElements() == 0) return absl::OkStatus();
    // Without channels, crops may have any size.
    if (grads.num_elements() == 0) {
      SetZero(ctx.run(), output);
      return absl::OkStatus();
    }
    const CropSizes s = {image.dim_size(0), image.dim_size(1), image.dim_size(2), image.dim_size(3),
                         grads.dim_size(0), grads.dim_size(1), grads.dim_size(2)};
    DispatchType(CropTypes(), ctx.input_dtype(1), [&](auto tag) {
      using T = typename decltype(tag)::type;
      float* const to = output->flat<float>().data();
      const double cost = 10.0 * static_cast<double>(s.crop_rows * s.crop_columns * s.depth);
      ParallelFor(ctx, s.boxes, BlockSizeForCost(cost), [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end && !ctx.ShouldStop(); ++b) Box<T>(ctx, s, b, to + 4 * b);
      });
    });
    return absl::OkStatus();
  }

 private:
  template <typename T>
  static void Box(const KernelContext& ctx, const CropSizes& s, int64_t box, float* to) {
    const float* const bounds = ctx.input(2).flat<float>().data() + 4 * box;
    const int64_t index = ctx.input(3).flat<int32_t>()(box);
    const T* const image = ctx.input(1).flat<T>().data() + index * s.rows * s.columns * s.depth;
    const float* dy =
        ctx.input(0).flat<float>().data() + box * s.crop_rows * s.crop_columns * s.depth;
    const CropAxis rows(bounds[0], bounds[2], s.rows, s.crop_rows);
    const CropAxis columns(bounds[1], bounds[3], s.columns, s.crop_columns);
    double sums[4] = {};
    for (int64_t r = 0; r < s.crop_rows; ++r) {
      const float y = rows.At(r);
      for (int64_t i = 0; i < s.crop_columns; ++i, dy += s.depth) {
        const float x = columns.At(i);
        if (!rows.IsInside(y) || !columns.IsInside(x)) continue;
        const Between by(y);
        const Between bx(x);
        const T* const top = image + by.low * s.columns * s.depth;
        const T* const bottom = image + by.high * s.columns * s.depth;
        double by_row = 0;
        double by_column = 0;
        for (int64_t d = 0; d < s.depth; ++d) {
          const double top_left = static_cast<double>(top[bx.low * s.depth + d]);
          const double top_right = static_cast<double>(top[bx.high * s.depth + d]);
          const double bottom_left = static_cast<double>(bottom[bx.low * s.depth + d]);
          const double bottom_right = static_cast<double>(bottom[bx.high * s.depth + d]);
          const double g = dy[d];
          by_row += g * ((1 - double{bx.weight}) * (bottom_left - top_left) +
                         bx.weight * (bottom_right - top_right));
          by_column += g * ((1 - double{by.weight}) * (top_right - top_left) +
                            by.weight * (bottom_right - bottom_left));
        }
        AddBounds(by_row, r, s.rows, s.crop_rows, &sums[0], &sums[2]);
        AddBounds(by_column, i, s.columns, s.crop_columns, &sums[1], &sums[3]);
      }
    }
    for (int k = 0; k < 4; ++k) to[k] = static_cast<float>(sums[k]);
  }
  // Adds the derivative of position i with respect to the bounds of its axis.
  static void AddBounds(double gradient, int64_t i, int64_t image, int64_t crop, double* from,
                        double* to) {
    const double last = static_cast<double>(image - 1);
    const double share = crop > 1 ? static_cast<double>(i) / static_cast<double>(crop - 1) : 0.5;
    *from += gradient * last * (1 - share);
    *to += gradient * last * share;
  }

  DataTypeVector types_;
};

constexpr char kBoxesDoc[] =
    R"(boxes: The boxes [y1, x1, y2, x2], one in each row, where 0 is the first row (column) of an image
  and 1 the last. Bounds may be outside of the image, or in reverse order.
box_ind: The index of the image of each box.
)";

}  // namespace

void Register(Registry& registry) {
  registry.Op("CropAndResize")
      .Group("image_ops")
      .Input("image: T")
      .Input("boxes: float")
      .Input("box_ind: int32")
      .Input("crop_size: int32")
      .Output("crops: float")
      .Attr("T: {uint8, uint16, int8, int16, int32, int64, half, float, double}")
      .Attr("method: {'bilinear', 'nearest'} = 'bilinear'")
      .Attr("extrapolation_value: float = 0")
      .Shape(CropShape)
      .Doc(absl::StrCat(R"(Cuts boxes out of images and resizes them to one size.

image: Images of shape [batch, rows, columns, channels].
)",
                        kBoxesDoc, R"(crop_size: The numbers of rows and columns of a crop.
crops: The crops, of shape [boxes, rows, columns, channels].
T: The type of the images.
method: The interpolation between pixels.
extrapolation_value: The value of pixels outside of the image.)"));
  registry.Op("CropAndResizeGradImage")
      .Group("image_ops")
      .Input("grads: float")
      .Input("boxes: float")
      .Input("box_ind: int32")
      .Input("image_size: int32")
      .Output("output: T")
      .Attr("T: {float, half, double}")
      .Attr("method: {'bilinear', 'nearest'} = 'bilinear'")
      .Shape(GradImageShape)
      .Doc(absl::StrCat(R"(Computes the gradient of CropAndResize with respect to the images.

grads: The gradients with respect to the crops.
)",
                        kBoxesDoc, R"(image_size: The shape of the images.
output: The gradients with respect to the images.
T: The type of the gradients.
method: The interpolation, as in CropAndResize.)"));
  registry.Op("CropAndResizeGradBoxes")
      .Group("image_ops")
      .Input("grads: float")
      .Input("image: T")
      .Input("boxes: float")
      .Input("box_ind: int32")
      .Output("output: float")
      .Attr("T: {uint8, uint16, int8, int16, int32, int64, half, float, double}")
      .Attr("method: {'bilinear'} = 'bilinear'")
      .Shape(GradBoxesShape)
      .Doc(absl::StrCat(R"(Computes the gradient of CropAndResize with respect to the boxes.

grads: The gradients with respect to the crops.
image: The images.
)",
                        kBoxesDoc, R"(output: The gradients with respect to the boxes.
T: The type of the images.
method: The interpolation.)"));
  DataTypeVector types;
  ForEachType(CropTypes(), [&](auto tag) {
    types.push_back(DataTypeToEnum<typename decltype(tag)::type>::value);
  });
  registry.Kernel("CropAndResize", MakeKernel<CropAndResize>).Types("T", types);
  registry.Kernel("CropAndResizeGradBoxes", MakeKernel<GradBoxes>).Types("T", types);
  constexpr char kGradImage[] = "CropAndResizeGradImage";
  registry.Kernel(kGradImage, MakeKernel<GradImage<float>>).Types("T", {DT_FLOAT});
  registry.Kernel(kGradImage, MakeKernel<GradImage<half>>).Types("T", {DT_HALF});
  registry.Kernel(kGradImage, MakeKernel<GradImage<double>>).Types("T", {DT_DOUBLE});
}

}  // namespace gradflow::crop_and_resize
