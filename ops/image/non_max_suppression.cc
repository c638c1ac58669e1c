// NonMaxSuppression, V2 to V5, WithOverlaps and Combined: select boxes in descending order of their
// scores, except boxes that overlap a selected box by more than a threshold.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow::non_max_suppression {
namespace {

// ---- Selection ----

// Returns the area of the intersection of two boxes divided by the area of their union. Bounds may
// be in any order.
float Overlap(const float* a, const float* b) {
  const float a_low[] = {std::min(a[0], a[2]), std::min(a[1], a[3])};
  const float a_high[] = {std::max(a[0], a[2]), std::max(a[1], a[3])};
  const float b_low[] = {std::min(b[0], b[2]), std::min(b[1], b[3])};
  const float b_high[] = {std::max(b[0], b[2]), std::max(b[1], b[3])};
  const float a_area = (a_high[0] - a_low[0]) * (a_high[1] - a_low[1]);
  const float b_area = (b_high[0] - b_low[0]) * (b_high[1] - b_low[1]);
  if (a_area <= 0 || b_area <= 0) return 0;
  float common = 1;
  for (int k = 0; k < 2; ++k) {
    common *= std::max(std::min(a_high[k], b_high[k]) - std::max(a_low[k], b_low[k]), 0.0f);
  }
  return common / (a_area + b_area - common);
}

struct Candidate {
  float score;
  int32_t index;
  // The number of selected boxes that have been compared with the candidate.
  int32_t compared;
};
// Orders a heap: the highest score comes first, and the lowest index among equal scores.
bool IsAfter(const Candidate& a, const Candidate& b) {
  return a.score < b.score || (a.score == b.score && a.index > b.index);
}

struct Thresholds {
  float overlap = 0.5f;
  float score = std::numeric_limits<float>::lowest();
  // If positive, overlaps reduce scores instead of excluding boxes.
  float sigma = 0;
};

// Selects at most `limit` boxes, and stores their indices and scores in the order of selection. T
// is the type of scores; operations round to T. The caller provides the memory: `heap` for n
// candidates, `selected` and `selected_scores` for min(limit, n) boxes. Returns the number of
// selected boxes.
template <typename T>
int64_t Select(const RunContext& run, const T* scores, int64_t stride, int64_t n, int64_t limit,
               const Thresholds& thresholds, absl::FunctionRef<float(int64_t, int64_t)> overlap,
               Candidate* heap, int32_t* selected, float* selected_scores) {
  const auto round = [](float value) { return static_cast<float>(static_cast<T>(value)); };
  int64_t candidates = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float score = static_cast<float>(scores[i * stride]);
    if (score > thresholds.score) heap[candidates++] = {score, static_cast<int32_t>(i), 0};
  }
  std::make_heap(heap, heap + candidates, IsAfter);
  const bool is_soft = thresholds.sigma > 0;
  const float scale = is_soft ? round(-0.5f / thresholds.sigma) : 0;
  int64_t count = 0;
  for (int64_t step = 0; count < limit && candidates > 0; ++step) {
    if (step % 256 == 0 && run.ShouldStop()) break;
    std::pop_heap(heap, heap + candidates, IsAfter);
    Candidate next = heap[--candidates];
    const float original = next.score;
    bool is_excluded = false;
    // Boxes with similar scores are likely to overlap, so the last selected boxes are compared
    // first.
    for (int64_t j = count - 1; j >= next.compared; --j) {
      const float similarity = round(overlap(next.index, selected[j]));
      if (is_soft) {
        next.score =
            round(next.score * round(std::exp(round(round(scale * similarity) * similarity))));
      } else if (similarity > thresholds.overlap) {
        is_excluded = true;
        break;
      }
      if (next.score <= thresholds.score) break;
    }
    next.compared = static_cast<int32_t>(count);
    if (is_excluded) continue;
    if (next.score == original) {
      selected[count] = next.index;
      selected_scores[count++] = next.score;
    } else if (next.score > thresholds.score) {
      heap[candidates++] = next;
      std::push_heap(heap, heap + candidates, IsAfter);
    }
  }
  return count;
}

// ---- Checks ----

absl::StatusOr<float> ScalarFloat(const KernelContext& ctx, int i, const char* name) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(i, name));
  const Tensor& tensor = ctx.input(i);
  if (tensor.dtype() == DT_HALF) return static_cast<float>(tensor.scalar<half>()());
  return tensor.scalar<float>()();
}
absl::Status CheckOverlapThreshold(float threshold) {
  if (threshold >= 0 && threshold <= 1) return absl::OkStatus();
  return errors::InvalidArgument("iou_threshold must be in [0, 1], but is ", threshold);
}
absl::StatusOr<int64_t> MaxOutputSize(const KernelContext& ctx, int i, const char* name) {
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t size, ctx.ScalarInt(i, name));
  if (size >= 0) return size;
  return errors::InvalidArgument(name, " must not be negative, but is ", size);
}

// Checks the shapes of boxes [n, 4] (or overlaps [n, n]) and scores [n].
absl::Status CheckBoxes(const PartialTensorShape& boxes, const PartialTensorShape& scores,
                        bool are_overlaps) {
  int64_t n = -1;
  if (!boxes.unknown_rank()) {
    if (boxes.dims() == 2) n = boxes.dim_size(0);
    const int64_t expected = are_overlaps ? n : 4;
    if (boxes.dims() != 2 ||
        (boxes.dim_size(1) >= 0 && expected >= 0 && boxes.dim_size(1) != expected)) {
      return errors::InvalidArgument(
          are_overlaps ? "overlaps must be square" : "boxes must have 4 columns",
          ", but has shape ", boxes.DebugString());
    }
  }
  if (n > std::numeric_limits<int32_t>::max()) {
    return errors::InvalidArgument("there are ", n, " boxes, expected less than 2^31");
  }
  if (scores.unknown_rank()) return absl::OkStatus();
  if (scores.dims() != 1 || (n >= 0 && scores.dim_size(0) >= 0 && scores.dim_size(0) != n)) {
    return errors::InvalidArgument("scores has incompatible shape ", scores.DebugString(),
                                   ", expected [", n < 0 ? "?" : absl::StrCat(n), "], one per box");
  }
  return absl::OkStatus();
}

absl::Status Shape(ShapeContext& c) {
  const bool are_overlaps = c.input_name(0) == "overlaps";
  GRADFLOW_RETURN_IF_ERROR(CheckBoxes(c.input(0), c.input(1), are_overlaps));
  for (int i = 2; i < c.num_inputs(); ++i) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 0));
  bool pad = false;
  int64_t size = -1;
  if (c.GetAttr("pad_to_max_output_size", &pad).ok() && pad) {
    std::vector<int64_t> sizes;
    GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(2, &sizes));
    if (known && sizes.size() == 1) size = sizes[0];
    if (known && size < 0) {
      return errors::InvalidArgument("max_output_size must not be negative, but is ", size);
    }
  }
  // The last output of V4 and V5 is the number of valid outputs.
  for (int i = 0; i < c.num_outputs(); ++i) {
    const bool is_count = i > 0 && i == c.num_outputs() - 1;
    c.set_output(i, is_count ? PartialTensorShape({}) : PartialTensorShape({size}));
  }
  return absl::OkStatus();
}

// ---- The kernel for one set of boxes ----

template <typename T>
class NonMaxSuppression final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    num_outputs_ = construction.num_outputs();
    are_overlaps_ = construction.op_def().input_arg(0).name() == "overlaps";
    if (types_.size() == 3) {
      GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("iou_threshold", &thresholds_.overlap));
      GRADFLOW_RETURN_IF_ERROR(CheckOverlapThreshold(thresholds_.overlap));
    }
    if (num_outputs_ == 1) return absl::OkStatus();
    return construction.GetAttr("pad_to_max_output_size", &pad_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    GRADFLOW_RETURN_IF_ERROR(CheckBoxes(ctx.input(0).shape(), ctx.input(1).shape(), are_overlaps_));
    GRADFLOW_ASSIGN_OR_RETURN(const int64_t limit, MaxOutputSize(ctx, 2, "max_output_size"));
    GRADFLOW_ASSIGN_OR_RETURN(const Thresholds thresholds, ReadThresholds(ctx));
    const int64_t n = ctx.input(1).NumElements();
    const int64_t most = std::min(limit, n);
    Tensor heap;
    Tensor boxes;
    Tensor indices;
    Tensor scores;
    GRADFLOW_RETURN_IF_ERROR(
        ctx.AllocateTemp(DT_INT8, {n * static_cast<int64_t>(sizeof(Candidate))}, &heap));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT32, {most}, &indices));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, {most}, &scores));
    GRADFLOW_RETURN_IF_ERROR(FloatBoxes(ctx, &boxes));
    const float* const box = boxes.flat<float>().data();
    int32_t* const selected = indices.flat<int32_t>().data();
    float* const selected_scores = scores.flat<float>().data();
    int64_t count = 0;
    if (n > 0 && limit > 0) {
      count = Select(
          ctx.run(), ctx.input(1).flat<T>().data(), 1, n, limit, thresholds,
          [&](int64_t i, int64_t j) {
            return are_overlaps_ ? box[i * n + j] : Overlap(box + 4 * i, box + 4 * j);
          },
          static_cast<Candidate*>(heap.raw_data()), selected, selected_scores);
    }
    // Padding has index 0 and score 0.
    return WriteOutputs(ctx, count, pad_ ? limit : count, selected, selected_scores);
  }

 private:
  absl::StatusOr<Thresholds> ReadThresholds(const KernelContext& ctx) const {
    const auto round = [](float value) { return static_cast<float>(static_cast<T>(value)); };
    Thresholds thresholds = thresholds_;
    thresholds.score = static_cast<float>(std::numeric_limits<T>::lowest());
    if (types_.size() > 3) {
      GRADFLOW_ASSIGN_OR_RETURN(thresholds.overlap, ScalarFloat(ctx, 3, "iou_threshold"));
      thresholds.overlap = round(thresholds.overlap);
      if (!are_overlaps_) {
        GRADFLOW_RETURN_IF_ERROR(CheckOverlapThreshold(thresholds.overlap));
      }
    }
    if (types_.size() > 4) {
      GRADFLOW_ASSIGN_OR_RETURN(thresholds.score, ScalarFloat(ctx, 4, "score_threshold"));
      thresholds.score = round(thresholds.score);
    }
    if (types_.size() > 5) {
      GRADFLOW_ASSIGN_OR_RETURN(thresholds.sigma, ScalarFloat(ctx, 5, "soft_nms_sigma"));
      if (!(thresholds.sigma >= 0)) {
        return errors::InvalidArgument("soft_nms_sigma must not be negative, but is ",
                                       thresholds.sigma);
      }
    }
    return thresholds;
  }

  absl::Status FloatBoxes(KernelContext& ctx, Tensor* boxes) const {
    const Tensor& input = ctx.input(0);
    if (input.dtype() == DT_FLOAT) {
      *boxes = input;
      return absl::OkStatus();
    }
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, input.shape(), boxes));
    const auto from = input.flat<T>();
    for (int64_t i = 0; i < from.size(); ++i) boxes->flat<float>()(i) = static_cast<float>(from(i));
    return absl::OkStatus();
  }

  absl::Status WriteOutputs(KernelContext& ctx, int64_t count, int64_t size,
                            const int32_t* selected, const float* scores) const {
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {size}, &output));
    const auto indices = output->flat<int32_t>();
    for (int64_t i = 0; i < size; ++i) indices(i) = i < count ? selected[i] : 0;
    if (num_outputs_ == 3) {
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, {size}, &output));
      const auto to = output->flat<T>();
      for (int64_t i = 0; i < size; ++i) to(i) = static_cast<T>(i < count ? scores[i] : 0.0f);
    }
    if (num_outputs_ == 1) return absl::OkStatus();
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(num_outputs_ - 1, {}, &output));
    output->scalar<int32_t>()() = static_cast<int32_t>(count);
    return absl::OkStatus();
  }

  DataTypeVector types_;
  int num_outputs_ = 0;
  bool are_overlaps_ = false;
  bool pad_ = false;
  Thresholds thresholds_;
};

// ---- CombinedNonMaxSuppression ----

// Checks the sizes of the inputs: boxes [batch, boxes, box_classes, 4], scores [batch, boxes,
// classes].
absl::Status CheckCombined(const PartialTensorShape& boxes, const PartialTensorShape& scores) {
  const bool known = !boxes.unknown_rank() && !scores.unknown_rank();
  if ((!boxes.unknown_rank() && boxes.dims() != 4) ||
      (!scores.unknown_rank() && scores.dims() != 3)) {
    return errors::InvalidArgument("boxes must have rank 4 and scores rank 3, but have shapes ",
                                   boxes.DebugString(), " and ", scores.DebugString());
  }
  const auto differ = [](int64_t a, int64_t b) { return a >= 0 && b >= 0 && a != b; };
  const bool bad_columns = !boxes.unknown_rank() && differ(boxes.dim_size(3), 4);
  if (bad_columns ||
      (known && (differ(boxes.dim_size(0), scores.dim_size(0)) ||
                 differ(boxes.dim_size(1), scores.dim_size(1)) ||
                 (boxes.dim_size(2) != 1 && differ(boxes.dim_size(2), scores.dim_size(2)))))) {
    return errors::InvalidArgument(
        "boxes and scores must have shapes [batch, boxes, 1 or classes, 4] and [batch, boxes, ",
        "classes], but have ", boxes.DebugString(), " and ", scores.DebugString());
  }
  return absl::OkStatus();
}

absl::Status CombinedShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckCombined(c.input(0), c.input(1)));
  for (int i = 2; i < 6; ++i) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 0));
  int64_t batch = c.Dim(0, 0);
  if (batch < 0) batch = c.Dim(1, 0);
  int64_t sizes[2] = {-1, -1};
  for (int k = 0; k < 2; ++k) {
    std::vector<int64_t> values;
    GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(2 + k, &values));
    if (!known || values.size() != 1) continue;
    sizes[k] = values[0];
    if (sizes[k] <= 0) {
      return errors::InvalidArgument(c.input_name(2 + k), " must be positive, but is ", sizes[k]);
    }
  }
  bool pad_per_class = false;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("pad_per_class", &pad_per_class));
  int64_t size = sizes[1];
  if (pad_per_class && size >= 0) {
    const int64_t classes = c.Dim(1, 2);
    size = sizes[0] < 0 || classes < 0
               ? -1
               : std::min(size, sizes[0] * std::min<int64_t>(classes, 1 << 30));
  }
  c.set_output(0, PartialTensorShape({batch, size, 4}));
  c.set_output(1, PartialTensorShape({batch, size}));
  c.set_output(2, PartialTensorShape({batch, size}));
  c.set_output(3, PartialTensorShape({batch}));
  return absl::OkStatus();
}

class CombinedNonMaxSuppression final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("pad_per_class", &pad_per_class_));
    return construction.GetAttr("clip_boxes", &clip_boxes_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    const TensorShape& boxes = ctx.input(0).shape();
    const TensorShape& scores = ctx.input(1).shape();
    GRADFLOW_RETURN_IF_ERROR(CheckCombined(boxes, scores));
    GRADFLOW_ASSIGN_OR_RETURN(const int64_t per_class,
                              MaxOutputSize(ctx, 2, "max_output_size_per_class"));
    GRADFLOW_ASSIGN_OR_RETURN(const int64_t total, MaxOutputSize(ctx, 3, "max_total_size"));
    if (per_class == 0 || total == 0) {
      return errors::InvalidArgument("max_output_size_per_class and max_total_size must be ",
                                     "positive, but are ", per_class, " and ", total);
    }
    Thresholds thresholds;
    GRADFLOW_ASSIGN_OR_RETURN(thresholds.overlap, ScalarFloat(ctx, 4, "iou_threshold"));
    GRADFLOW_ASSIGN_OR_RETURN(thresholds.score, ScalarFloat(ctx, 5, "score_threshold"));
    GRADFLOW_RETURN_IF_ERROR(CheckOverlapThreshold(thresholds.overlap));
    const int64_t batch = scores.dim_size(0);
    const int64_t classes = scores.dim_size(2);
    int64_t size = total;
    if (pad_per_class_ && classes < total / per_class + 1) {
      size = std::min(total, per_class * classes);
    }
    Tensor* outputs[4];
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {batch, size, 4}, &outputs[0]));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, {batch, size}, &outputs[1]));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(2, {batch, size}, &outputs[2]));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(3, {batch}, &outputs[3]));
    return Run(ctx, thresholds, std::min(per_class, boxes.dim_size(1)), size, outputs);
  }

 private:
  absl::Status Run(KernelContext& ctx, const Thresholds& thresholds, int64_t per_class,
                   int64_t size, Tensor* const (&outputs)[4]) const {
    const int64_t batch = ctx.input(1).dim_size(0);
    const int64_t n = ctx.input(1).dim_size(1);
    const int64_t classes = ctx.input(1).dim_size(2);
    const int64_t box_classes = ctx.input(0).dim_size(2);
    if (n > std::numeric_limits<int32_t>::max() || classes > std::numeric_limits<int32_t>::max()) {
      return errors::InvalidArgument("there are ", n, " boxes and ", classes,
                                     " classes, expected less than 2^31");
    }
    const int64_t units = batch * classes;
    // The selection for each class of each image, with room for per_class boxes.
    Tensor heaps, indices, scores, counts, order;
    constexpr int64_t kCandidate = sizeof(Candidate);
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT8, {units, n * kCandidate}, &heaps));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT32, {units, per_class}, &indices));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, {units, per_class}, &scores));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {units}, &counts));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {units, per_class}, &order));
    const float* const all_boxes = ctx.input(0).flat<float>().data();
    const float* const all_scores = ctx.input(1).flat<float>().data();
    int64_t* const count = counts.flat<int64_t>().data();
    std::fill_n(count, units, int64_t{0});
    const double cost = 50.0 * static_cast<double>(n);
    ParallelFor(ctx, n == 0 ? 0 : units, BlockSizeForCost(cost), [&](int64_t begin, int64_t end) {
      for (int64_t u = begin; u < end; ++u) {
        const int64_t b = u / classes;
        const int64_t c = u % classes;
        const float* const boxes =
            all_boxes + (b * n * box_classes + (box_classes > 1 ? c : 0)) * 4;
        count[u] = Select(
            ctx.run(), all_scores + b * n * classes + c, classes, n, per_class, thresholds,
            [&](int64_t i, int64_t j) {
              return Overlap(boxes + i * box_classes * 4, boxes + j * box_classes * 4);
            },
            static_cast<Candidate*>(heaps.raw_data()) + u * n,
            indices.flat<int32_t>().data() + u * per_class,
            scores.flat<float>().data() + u * per_class);
      }
    });
    if (ctx.ShouldStop()) return StoppedError();
    const float* const score = scores.flat<float>().data();
    const int32_t* const index = indices.flat<int32_t>().data();
    for (int64_t b = 0; b < batch; ++b) {
      // The selected boxes of all classes, by score. Equal scores stay in the order of classes.
      int64_t* const first = order.flat<int64_t>().data() + b * classes * per_class;
      int64_t* last = first;
      for (int64_t u = b * classes; u < (b + 1) * classes; ++u) {
        for (int64_t k = 0; k < count[u]; ++k) *last++ = u * per_class + k;
      }
      std::sort(first, last, [&](int64_t x, int64_t y) {
        return score[x] > score[y] || (score[x] == score[y] && x < y);
      });
      const int64_t valid = std::min<int64_t>(last - first, size);
      float* const to_boxes = outputs[0]->flat<float>().data() + b * size * 4;
      float* const to_scores = outputs[1]->flat<float>().data() + b * size;
      float* const to_classes = outputs[2]->flat<float>().data() + b * size;
      std::fill_n(to_boxes, 4 * size, 0.0f);
      std::fill_n(to_scores, size, 0.0f);
      std::fill_n(to_classes, size, 0.0f);
      for (int64_t i = 0; i < valid; ++i) {
        const int64_t c = first[i] / per_class % classes;
        const int64_t box = (b * n + index[first[i]]) * box_classes + (box_classes > 1 ? c : 0);
        for (int k = 0; k < 4; ++k) {
          const float bound = all_boxes[box * 4 + k];
          to_boxes[i * 4 + k] = clip_boxes_ ? std::max(std::min(bound, 1.0f), 0.0f) : bound;
        }
        to_scores[i] = score[first[i]];
        to_classes[i] = static_cast<float>(c);
      }
      outputs[3]->flat<int32_t>()(b) = static_cast<int32_t>(valid);
    }
    return absl::OkStatus();
  }

  DataTypeVector types_;
  bool pad_per_class_ = false;
  bool clip_boxes_ = false;
};

// ---- Definitions ----

constexpr char kSummary[] =
    R"(Selects boxes by score, except boxes that overlap a selected box.

Boxes are considered in descending order of their scores, and boxes with equal scores in the order
of their indices. A box is selected unless its overlap with a selected box exceeds the threshold. A
box whose score is NaN is never selected.

)";
constexpr char kBoxesDoc[] =
    R"(boxes: The boxes [y1, x1, y2, x2], one in each row. The corners may be in any order.
scores: The score of each box.
max_output_size: The maximum number of selected boxes.
)";
constexpr char kSelectedDoc[] = "selected_indices: The indices of the selected boxes.\n";
constexpr char kIouInput[] =
    "iou_threshold: The greatest allowed overlap, the ratio of intersection to union, in [0, 1].\n";
constexpr char kScoreInput[] = "score_threshold: Only boxes with higher scores are selected.\n";
constexpr char kTypesDoc[] = "T: The type of boxes and scores.\n";
constexpr char kThresholdTypeDoc[] = "T_threshold: The type of the thresholds.\n";
constexpr char kPadDoc[] =
    R"(valid_outputs: The number of selected boxes.
pad_to_max_output_size: If true, zeros pad the outputs to `max_output_size` elements.
)";

}  // namespace

void Register(Registry& registry) {
  registry.Op("NonMaxSuppression")
      .Group("image_ops")
      .Input("boxes: float")
      .Input("scores: float")
      .Input("max_output_size: int32")
      .Output("selected_indices: int32")
      .Attr("iou_threshold: float = 0.5")
      .Shape(Shape)
      .Doc(absl::StrCat(kSummary, kBoxesDoc, kSelectedDoc, kIouInput));
  registry.Op("NonMaxSuppressionV2")
      .Group("image_ops")
      .Input("boxes: T")
      .Input("scores: T")
      .Input("max_output_size: int32")
      .Input("iou_threshold: T_threshold")
      .Output("selected_indices: int32")
      .Attr("T: {half, float} = DT_FLOAT")
      .Attr("T_threshold: {half, float} = DT_FLOAT")
      .Shape(Shape)
      .Doc(
          absl::StrCat(kSummary, kBoxesDoc, kIouInput, kSelectedDoc, kTypesDoc, kThresholdTypeDoc));
  registry.Op("NonMaxSuppressionV3")
      .Group("image_ops")
      .Input("boxes: T")
      .Input("scores: T")
      .Input("max_output_size: int32")
      .Input("iou_threshold: T_threshold")
      .Input("score_threshold: T_threshold")
      .Output("selected_indices: int32")
      .Attr("T: {half, float} = DT_FLOAT")
      .Attr("T_threshold: {half, float} = DT_FLOAT")
      .Shape(Shape)
      .Doc(absl::StrCat(kSummary, kBoxesDoc, kIouInput, kScoreInput, kSelectedDoc, kTypesDoc,
                        kThresholdTypeDoc));
  registry.Op("NonMaxSuppressionV4")
      .Group("image_ops")
      .Input("boxes: T")
      .Input("scores: T")
      .Input("max_output_size: int32")
      .Input("iou_threshold: T_threshold")
      .Input("score_threshold: T_threshold")
      .Output("selected_indices: int32")
      .Output("valid_outputs: int32")
      .Attr("T: {half, float} = DT_FLOAT")
      .Attr("T_threshold: {half, float} = DT_FLOAT")
      .Attr("pad_to_max_output_size: bool = false")
      .Shape(Shape)
      .Doc(absl::StrCat(kSummary, kBoxesDoc, kIouInput, kScoreInput, kSelectedDoc, kPadDoc,
                        kTypesDoc, kThresholdTypeDoc));
  registry.Op("NonMaxSuppressionV5")
      .Group("image_ops")
      .Input("boxes: T")
      .Input("scores: T")
      .Input("max_output_size: int32")
      .Input("iou_threshold: T")
      .Input("score_threshold: T")
      .Input("soft_nms_sigma: T")
      .Output("selected_indices: int32")
      .Output("selected_scores: T")
      .Output("valid_outputs: int32")
      .Attr("T: {half, float} = DT_FLOAT")
      .Attr("pad_to_max_output_size: bool = false")
      .Shape(Shape)
      .Doc(absl::StrCat(
          kSummary, kBoxesDoc, kIouInput, kScoreInput,
          R"(soft_nms_sigma: If positive, iou_threshold has no effect. Instead each overlap o with a selected box
  multiplies the score of a box by exp(-o^2 / (2 * soft_nms_sigma)).
selected_scores: The scores of the selected boxes.
)",
          kSelectedDoc, kPadDoc, kTypesDoc));
  registry.Op("NonMaxSuppressionWithOverlaps")
      .Group("image_ops")
      .Input("overlaps: float")
      .Input("scores: float")
      .Input("max_output_size: int32")
      .Input("overlap_threshold: float")
      .Input("score_threshold: float")
      .Output("selected_indices: int32")
      .Shape(Shape)
      .Doc(absl::StrCat(kSummary, R"(overlaps: The overlap of each pair of boxes, a square matrix.
scores: The score of each box.
max_output_size: The maximum number of selected boxes.
overlap_threshold: The greatest allowed overlap.
)",
                        kScoreInput, kSelectedDoc));
  registry.Op("CombinedNonMaxSuppression")
      .Group("image_ops")
      .Input("boxes: float")
      .Input("scores: float")
      .Input("max_output_size_per_class: int32")
      .Input("max_total_size: int32")
      .Input("iou_threshold: float")
      .Input("score_threshold: float")
      .Output("nmsed_boxes: float")
      .Output("nmsed_scores: float")
      .Output("nmsed_classes: float")
      .Output("valid_detections: int32")
      .Attr("pad_per_class: bool = false")
      .Attr("clip_boxes: bool = true")
      .Shape(CombinedShape)
      .Doc(
          R"(Selects boxes for each class of each image, and then the boxes with the highest scores.

Boxes of different classes do not exclude each other. Zeros pad the outputs of an image.

boxes: The boxes, of shape [batch, boxes, 1 or classes, 4].
scores: The scores, of shape [batch, boxes, classes].
max_output_size_per_class: The maximum number of boxes of a class.
max_total_size: The maximum number of boxes of an image.
iou_threshold: The greatest allowed overlap, in [0, 1].
score_threshold: Only boxes with higher scores are selected.
nmsed_boxes: The selected boxes, of shape [batch, size, 4].
nmsed_scores: The scores of the selected boxes, of shape [batch, size].
nmsed_classes: The classes of the selected boxes, of shape [batch, size].
valid_detections: The number of selected boxes of each image, without the zeros that pad.
pad_per_class: If true, `size` is the smaller of max_total_size and max_output_size_per_class times
  the number of classes. Otherwise it is max_total_size.
clip_boxes: If true, bounds are clamped to [0, 1].)");
  for (const char* const op : {"NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4",
                               "NonMaxSuppressionV5"}) {
    registry.Kernel(op, MakeKernel<NonMaxSuppression<float>>).Types("T", {DT_FLOAT});
    registry.Kernel(op, MakeKernel<NonMaxSuppression<half>>).Types("T", {DT_HALF});
  }
  registry.Kernel("NonMaxSuppression", MakeKernel<NonMaxSuppression<float>>);
  registry.Kernel("NonMaxSuppressionWithOverlaps", MakeKernel<NonMaxSuppression<float>>);
  registry.Kernel("CombinedNonMaxSuppression", MakeKernel<CombinedNonMaxSuppression>);
}

}  // namespace gradflow::non_max_suppression
