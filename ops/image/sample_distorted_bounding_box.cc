// SampleDistortedBoundingBox and V2: sample random crops that cover enough of an object.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/random/distributions.h"
#include "gradflow/ops/random/streams.h"

namespace gradflow::sample_distorted_bounding_box {
namespace {

constexpr int64_t kMaxSize = std::numeric_limits<int32_t>::max();

// The pixels [left, right) of the rows [top, bottom).
struct Rectangle {
  int64_t top = 0;
  int64_t left = 0;
  int64_t bottom = 0;
  int64_t right = 0;

  float Area() const { return static_cast<float>((right - left) * (bottom - top)); }
  float CommonArea(const Rectangle& other) const {
    const Rectangle common = {std::max(top, other.top), std::max(left, other.left),
                              std::min(bottom, other.bottom), std::min(right, other.right)};
    return common.left > common.right || common.top > common.bottom ? 0 : common.Area();
  }
};

// Rounds to the nearest integer, clamped to int32.
int64_t Round(float value) {
  const float limit = static_cast<float>(kMaxSize);
  if (!(value > -limit)) return -kMaxSize;
  return value < limit ? std::llrint(value) : kMaxSize;
}

// Uniform random numbers of a stream, computed like in TensorFlow.
class UniformStream {
 public:
  explicit UniformStream(const Philox& stream) : reader_(stream) {}
  float Unit() { return UnitNumbers<float>::Make(reader_.Next()); }
  // Returns a number in [0, n). REQUIRES: 0 < n < 2^32
  int64_t Below(int64_t n) {
    const uint32_t range = static_cast<uint32_t>(n);
    if ((range & (range - 1)) == 0) return reader_.Next() & (range - 1);
    // Rejects numbers that would make some results more likely than others.
    const uint32_t rejected = std::numeric_limits<uint32_t>::max() % range + 1;
    uint32_t number = reader_.Next();
    while (number < rejected) number = reader_.Next();
    return number % range;
  }

 private:
  PhiloxReader reader_;
};

// Makes a crop with the given aspect ratio (columns by rows). Its area is in a range relative to
// the area of the image. Returns false if there is no such crop.
bool MakeCrop(int64_t rows, int64_t columns, const float* area_range, float aspect,
              UniformStream* random, Rectangle* crop) {
  if (rows <= 0 || columns <= 0 || area_range[0] > area_range[1]) return false;
  const float image = static_cast<float>(columns);
  const float min_area = area_range[0] * image * static_cast<float>(rows);
  const float max_area = area_range[1] * image * static_cast<float>(rows);
  int64_t height = Round(std::sqrt(min_area / aspect));
  int64_t max_height = Round(std::sqrt(max_area / aspect));
  const auto width_of = [&](int64_t h) { return Round(static_cast<float>(h) * aspect); };
  if (width_of(max_height) > columns) {
    // The largest height whose rounded width fits.
    constexpr float kEpsilon = 0.0000001f;
    const double fits = (static_cast<double>(columns) + 0.5 - kEpsilon) / aspect;
    max_height = static_cast<int64_t>(std::min(fits, static_cast<double>(kMaxSize)));
    if (width_of(max_height) > columns) max_height -= 1;
  }
  max_height = std::min(max_height, rows);
  height = std::min(height, max_height);
  if (height < max_height) height += random->Below(max_height - height + 1);
  int64_t width = width_of(height);
  // Rounding may have left the range.
  float area = static_cast<float>(width * height);
  if (area < min_area) {
    height += 1;
    width = width_of(height);
    area = static_cast<float>(width * height);
  }
  if (area > max_area) {
    height -= 1;
    width = width_of(height);
    area = static_cast<float>(width * height);
  }
  if (area < min_area || area > max_area || width > columns || height > rows || width <= 0 ||
      height <= 0) {
    return false;
  }
  const int64_t top = height < rows ? random->Below(rows - height) : 0;
  const int64_t left = width < columns ? random->Below(columns - width) : 0;
  *crop = {top, left, top + height, left + width};
  return true;
}

bool CoversAnObject(const Rectangle& crop, float min_covered,
                    const std::vector<Rectangle>& objects) {
  if (crop.Area() < 1) return false;
  for (const Rectangle& object : objects) {
    if (object.Area() < 1) continue;
    if (crop.CommonArea(object) / object.Area() >= min_covered) return true;
  }
  return false;
}

absl::Status CheckMinCovered(float value) {
  if (value >= 0) return absl::OkStatus();
  return errors::InvalidArgument("min_object_covered must not be negative, but is ", value);
}

class SampleBox final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    if (types_.size() == 2) {
      GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("min_object_covered", &min_covered_));
      GRADFLOW_RETURN_IF_ERROR(CheckMinCovered(min_covered_));
    }
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("aspect_ratio_range", &aspect_range_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("area_range", &area_range_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("max_attempts", &max_attempts_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("use_image_if_no_bounding_boxes", &use_image_));
    if (aspect_range_.size() != 2 || !(aspect_range_[0] > 0) || !(aspect_range_[1] > 0)) {
      return errors::InvalidArgument("aspect_ratio_range must have 2 positive elements, but is [",
                                     absl::StrJoin(aspect_range_, ","), "]");
    }
    const auto in_range = [](float area) { return area > 0 && area <= 1; };
    if (area_range_.size() != 2 || !in_range(area_range_[0]) || !in_range(area_range_[1])) {
      return errors::InvalidArgument("area_range must have 2 elements in (0, 1], but is [",
                                     absl::StrJoin(area_range_, ","), "]");
    }
    if (max_attempts_ <= 0 || max_attempts_ > kMaxSize) {
      return errors::InvalidArgument("max_attempts must be positive and less than 2^31, but is ",
                                     max_attempts_);
    }
    return stream_.Init(construction);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(0, "image_size", TensorShape({3})));
    const IndexReader size(ctx.input(0));
    for (int d = 0; d < 2; ++d) {
      if (size[d] < 0 || size[d] >= kMaxSize) {
        return errors::InvalidArgument("image_size[", d, "] is ", size[d],
                                       ", expected a number from 0 to ", kMaxSize - 1);
      }
    }
    float min_covered = min_covered_;
    if (types_.size() == 3) {
      GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(2, "min_object_covered"));
      min_covered = ctx.input(2).scalar<float>()();
      GRADFLOW_RETURN_IF_ERROR(CheckMinCovered(min_covered));
    }
    const Rectangle image = {0, 0, size[0], size[1]};
    std::vector<Rectangle> objects;
    GRADFLOW_RETURN_IF_ERROR(ReadObjects(ctx, image, &objects));
    // Each attempt takes four numbers, or more if some are rejected.
    UniformStream random(stream_.Reserve(static_cast<uint64_t>(max_attempts_)));
    Rectangle crop = image;
    for (int64_t attempt = 0; attempt < max_attempts_; ++attempt) {
      // An attempt checks all objects, so a stop is checked once per attempt.
      if (ctx.ShouldStop()) break;
      const float aspect = random.Unit() * (aspect_range_[1] - aspect_range_[0]) + aspect_range_[0];
      Rectangle candidate;
      if (MakeCrop(image.bottom, image.right, area_range_.data(), aspect, &random, &candidate) &&
          CoversAnObject(candidate, min_covered, objects)) {
        crop = candidate;
        break;
      }
    }
    return WriteOutputs(ctx, image, crop);
  }

 private:
  absl::Status ReadObjects(const KernelContext& ctx, const Rectangle& image,
                           std::vector<Rectangle>* objects) const {
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(1, "bounding_boxes", 3));
    const Tensor& boxes = ctx.input(1);
    if (boxes.dim_size(2) != 4) {
      return errors::InvalidArgument("bounding_boxes must have shape [batch, boxes, 4], but has ",
                                     boxes.shape().DebugString());
    }
    const float* const bounds = boxes.flat<float>().data();
    const float rows = static_cast<float>(image.bottom);
    const float columns = static_cast<float>(image.right);
    for (int64_t i = 0; i < boxes.NumElements(); ++i) {
      if (!(bounds[i] >= 0 && bounds[i] <= 1)) {
        return errors::InvalidArgument("bounding_boxes must be in [0, 1], but one has the bound ",
                                       bounds[i]);
      }
    }
    for (int64_t i = 0; i < boxes.NumElements(); i += 4) {
      objects->push_back({static_cast<int64_t>(bounds[i] * rows),
                          static_cast<int64_t>(bounds[i + 1] * columns),
                          static_cast<int64_t>(bounds[i + 2] * rows),
                          static_cast<int64_t>(bounds[i + 3] * columns)});
    }
    if (!objects->empty()) return absl::OkStatus();
    if (!use_image_) {
      return errors::InvalidArgument(
          "bounding_boxes is empty, which needs use_image_if_no_bounding_boxes");
    }
    objects->push_back(image);
    return absl::OkStatus();
  }

  static absl::Status WriteOutputs(KernelContext& ctx, const Rectangle& image,
                                   const Rectangle& crop) {
    Tensor* begin = nullptr;
    Tensor* size = nullptr;
    Tensor* box = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {3}, &begin));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, {3}, &size));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(2, {1, 1, 4}, &box));
    const int64_t begins[] = {crop.top, crop.left, 0};
    // -1 means all channels.
    const int64_t sizes[] = {crop.bottom - crop.top, crop.right - crop.left, -1};
    DispatchType(TypeList<uint8_t, int8_t, int16_t, int32_t, int64_t>(), begin->dtype(),
                 [&](auto tag) {
                   using T = typename decltype(tag)::type;
                   for (int k = 0; k < 3; ++k) {
                     begin->flat<T>()(k) = static_cast<T>(begins[k]);
                     size->flat<T>()(k) = static_cast<T>(sizes[k]);
                   }
                 });
    const int64_t bounds[] = {crop.top, crop.left, crop.bottom, crop.right};
    for (int k = 0; k < 4; ++k) {
      const int64_t whole = k % 2 == 0 ? image.bottom : image.right;
      box->flat<float>()(k) = static_cast<float>(bounds[k]) / static_cast<float>(whole);
    }
    return absl::OkStatus();
  }

  DataTypeVector types_;
  float min_covered_ = 0;
  std::vector<float> aspect_range_;
  std::vector<float> area_range_;
  int64_t max_attempts_ = 0;
  bool use_image_ = false;
  StatefulStream stream_;
};

absl::Status Shape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 3));
  if (c.num_inputs() == 3) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(2, 0));
  const int64_t sizes = c.Dim(0, 0);
  if (sizes >= 0 && sizes != 3) {
    return errors::InvalidArgument("image_size must have shape [3], but has shape [", sizes, "]");
  }
  c.set_output(0, PartialTensorShape({3}));
  c.set_output(1, PartialTensorShape({3}));
  c.set_output(2, PartialTensorShape({1, 1, 4}));
  return absl::OkStatus();
}

constexpr char kSummary[] =
    R"(Chooses a random crop of an image that covers enough of an object.

A crop is accepted if it covers the given part of any object. After `max_attempts` attempts the
whole image is chosen.

image_size: The numbers of rows, columns and channels of the image.
bounding_boxes: The objects, of shape [batch, boxes, 4]: [y1, x1, y2, x2] in [0, 1].
)";
constexpr char kOutputsDoc[] = R"(begin: The first row, column and channel of the crop, for Slice.
size: The numbers of rows and columns of the crop, and -1 for all channels.
bboxes: The crop as a box, of shape [1, 1, 4].
T: The type of `image_size`, `begin` and `size`.
seed: The seed, with `seed2`. If both are 0, the system chooses a seed. Equal seeds make
  TensorFlow's crops.
seed2: The second half of the seed.
aspect_ratio_range: The least and the greatest ratio of columns to rows.
area_range: The least and the greatest area, relative to the area of the image.
max_attempts: The number of crops to try.
use_image_if_no_bounding_boxes: If true, the whole image is the object if there are no boxes.
)";

}  // namespace

void Register(Registry& registry) {
  registry.Op("SampleDistortedBoundingBox")
      .Group("image_ops")
      .Input("image_size: T")
      .Input("bounding_boxes: float")
      .Output("begin: T")
      .Output("size: T")
      .Output("bboxes: float")
      .Attr("T: {uint8, int8, int16, int32, int64}")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("min_object_covered: float = 0.1")
      .Attr("aspect_ratio_range: list(float) = [0.75, 1.33]")
      .Attr("area_range: list(float) = [0.05, 1.0]")
      .Attr("max_attempts: int = 100")
      .Attr("use_image_if_no_bounding_boxes: bool = false")
      .Stateful()
      .Shape(Shape)
      .Doc(absl::StrCat(kSummary, kOutputsDoc,
                        "min_object_covered: The part of an object that a crop must cover."));
  registry.Op("SampleDistortedBoundingBoxV2")
      .Group("image_ops")
      .Input("image_size: T")
      .Input("bounding_boxes: float")
      .Input("min_object_covered: float")
      .Output("begin: T")
      .Output("size: T")
      .Output("bboxes: float")
      .Attr("T: {uint8, int8, int16, int32, int64}")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("aspect_ratio_range: list(float) = [0.75, 1.33]")
      .Attr("area_range: list(float) = [0.05, 1.0]")
      .Attr("max_attempts: int = 100")
      .Attr("use_image_if_no_bounding_boxes: bool = false")
      .Stateful()
      .Shape(Shape)
      .Doc(absl::StrCat(kSummary,
                        "min_object_covered: The part of an object that a crop must cover.\n",
                        kOutputsDoc));
  registry.Kernel("SampleDistortedBoundingBox", MakeKernel<SampleBox>);
  registry.Kernel("SampleDistortedBoundingBoxV2", MakeKernel<SampleBox>);
}

}  // namespace gradflow::sample_distorted_bounding_box
