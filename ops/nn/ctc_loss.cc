// CTCLoss and CTCLossV2: connectionist temporal classification (Graves et al., "Connectionist
// temporal classification: labelling unsegmented sequence data with recurrent neural networks",
// ICML 2006), computed in the log domain.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/memory_reservation.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/ops/common/first_error.h"
#include "gradflow/proto/node_def.pb.h"

namespace gradflow::ctc_loss {
namespace {

constexpr int kInputs = 0;
constexpr int kIndices = 1;
constexpr int kValues = 2;
constexpr int kLengths = 3;

template <typename T>
constexpr T kLogZero = -std::numeric_limits<T>::infinity();

// Returns log(exp(a) + exp(b) + exp(c)).
template <typename T>
T LogSum(T a, T b, T c) {
  const T most = std::max({a, b, c});
  if (most == kLogZero<T>) return most;
  return most + std::log(std::exp(a - most) + std::exp(b - most) + std::exp(c - most));
}

// The labels of a sequence, with a blank at both ends and between two labels.
struct Path {
  // The bytes of a place in the vectors. A sequence of n labels has at most 2 * n + 1 places.
  static constexpr double kBytesPerPlace = sizeof(int32_t) + 2;

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  void Reserve(size_t count) {
    labels.reserve(count);
    stays.reserve(count);
    skips.reserve(count);
  }

  std::vector<int32_t> labels;
  // stays[u]: a path may stay at u for another step.
  std::vector<char> stays;
  // skips[u]: a path may go from u - 2 to u.
  std::vector<char> skips;
};

// The loss of one sequence. Step t of `inputs` and of `gradient` begins at t * step.
template <typename T>
struct Sequence {
  const T* inputs;
  T* gradient;
  int64_t step;
  int64_t steps;
  int64_t classes;
};

// Returns the loss and writes its gradient with respect to the inputs. `scratch` has
// 2 * steps * path.size() + 2 * path.size() elements.
template <typename T>
T Loss(const KernelContext& ctx, const Sequence<T>& s, const Path& path, T* scratch) {
  const int64_t size = path.size();
  // [steps, size]
  T* const log_y = scratch;
  T* const alpha = log_y + s.steps * size;
  T* beta = alpha + s.steps * size;
  T* next_beta = beta + size;
  // The gradient holds the softmax until it is complete.
  for (int64_t t = 0; t < s.steps; ++t) {
    if (ctx.ShouldStop()) return 0;
    const T* const in = s.inputs + t * s.step;
    T* const y = s.gradient + t * s.step;
    const T most = *std::max_element(in, in + s.classes);
    T sum = 0;
    for (int64_t c = 0; c < s.classes; ++c) sum += y[c] = std::exp(in[c] - most);
    const T offset = most + std::log(sum);
    for (int64_t c = 0; c < s.classes; ++c) y[c] /= sum;
    for (int64_t u = 0; u < size; ++u) log_y[t * size + u] = in[path.labels[u]] - offset;
  }
  // A path is at places [first(t), last(t)) in step t. Earlier places are too far from the end.
  const auto first = [&](int64_t t) { return std::max<int64_t>(0, size - 2 * (s.steps - t)); };
  const auto last = [&](int64_t t) { return std::min<int64_t>(size, 2 * (t + 1)); };
  std::fill(alpha, alpha + s.steps * size, kLogZero<T>);
  for (int64_t u = first(0); u < last(0); ++u) alpha[u] = log_y[u];
  for (int64_t t = 1; t < s.steps; ++t) {
    if (ctx.ShouldStop()) return 0;
    const T* const before = alpha + (t - 1) * size;
    for (int64_t u = first(t); u < last(t); ++u) {
      alpha[t * size + u] =
          log_y[t * size + u] + LogSum(path.stays[u] ? before[u] : kLogZero<T>,
                                       u > 0 ? before[u - 1] : kLogZero<T>,
                                       path.skips[u] ? before[u - 2] : kLogZero<T>);
    }
  }
  const T* const end = alpha + (s.steps - 1) * size;
  const T log_p = LogSum(end[size - 1], size > 1 ? end[size - 2] : kLogZero<T>, kLogZero<T>);
  // If no path has a probability, the gradient is the softmax, as in TensorFlow.
  if (log_p == kLogZero<T>) return -log_p;
  std::fill(beta, beta + size, kLogZero<T>);
  for (int64_t u = std::max<int64_t>(0, size - 2); u < size; ++u) beta[u] = 0;
  for (int64_t t = s.steps - 1; t >= 0; --t) {
    if (ctx.ShouldStop()) return 0;
    if (t < s.steps - 1) {
      // next_beta includes the probability of its label.
      for (int64_t u = 0; u < size; ++u) next_beta[u] = beta[u] + log_y[(t + 1) * size + u];
      std::fill(beta, beta + size, kLogZero<T>);
      for (int64_t u = first(t); u < last(t); ++u) {
        beta[u] = LogSum(path.stays[u] ? next_beta[u] : kLogZero<T>,
                         u + 1 < size ? next_beta[u + 1] : kLogZero<T>,
                         u + 2 < size && path.skips[u + 2] ? next_beta[u + 2] : kLogZero<T>);
      }
    }
    T* const gradient = s.gradient + t * s.step;
    for (int64_t u = first(t); u < last(t); ++u) {
      gradient[path.labels[u]] -= std::exp(alpha[t * size + u] + beta[u] - log_p);
    }
  }
  return -log_p;
}

class LossKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(
        construction.GetAttr("preprocess_collapse_repeated", &collapses_repeated_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("ctc_merge_repeated", &merges_repeated_));
    GRADFLOW_RETURN_IF_ERROR(
        construction.GetAttr("ignore_longer_outputs_than_inputs", &ignores_longer_));
    blank_is_first_ = construction.def().op() == "CTCLossV2";
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(kInputs, "inputs", 3));
    switch (ctx.input_dtype(kInputs)) {
      case DT_FLOAT:
        return Run<float>(ctx);
      case DT_DOUBLE:
        return Run<double>(ctx);
      default:
        return errors::InvalidArgument("inputs must be of type float or double, but are ",
                                       DataTypeString(ctx.input_dtype(kInputs)));
    }
  }

 private:
  static absl::Status CheckTypes(const KernelContext& ctx) {
    if (ctx.input_dtype(kIndices) == DT_INT64 && ctx.input_dtype(kValues) == DT_INT32 &&
        ctx.input_dtype(kLengths) == DT_INT32) {
      return absl::OkStatus();
    }
    return errors::InvalidArgument(
        "labels_indices, labels_values and sequence_length must be of types int64, int32 and "
        "int32, but are ",
        DataTypeString(ctx.input_dtype(kIndices)), ", ", DataTypeString(ctx.input_dtype(kValues)),
        " and ", DataTypeString(ctx.input_dtype(kLengths)));
  }

  template <typename T>
  absl::Status Run(KernelContext& ctx) const {
    const Tensor& inputs = ctx.input(kInputs);
    const int64_t steps = inputs.dim_size(0);
    const int64_t batch = inputs.dim_size(1);
    const int64_t classes = inputs.dim_size(2);
    if (steps == 0 || batch == 0 || classes == 0 || classes > std::numeric_limits<int32_t>::max()) {
      return errors::InvalidArgument("inputs must not be empty, but have shape ",
                                     inputs.shape().DebugString());
    }
    GRADFLOW_RETURN_IF_ERROR(CheckTypes(ctx));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(kLengths, "sequence_length", {batch}));
    const auto lengths = ctx.input(kLengths).span<int32_t>();
    for (int64_t b = 0; b < batch; ++b) {
      if (lengths[b] >= 0 && lengths[b] <= steps) continue;
      return errors::InvalidArgument("sequence_length[", b, "] must be in [0, ", steps,
                                     "], but is ", lengths[b]);
    }
    MemoryReservation memory(ctx.allocator().get());
    GRADFLOW_RETURN_IF_ERROR(memory.Set(
        2.0 * Path::kBytesPerPlace * static_cast<double>(ctx.input(kValues).NumElements()) +
            (Path::kBytesPerPlace + sizeof(Path) + sizeof(int64_t)) * static_cast<double>(batch),
        "the labels"));
    std::vector<int64_t> begins;
    GRADFLOW_RETURN_IF_ERROR(FindLabels(ctx, batch, &begins));
    std::vector<Path> paths(batch);
    int64_t longest = 0;
    for (int64_t b = 0; b < batch; ++b) {
      GRADFLOW_RETURN_IF_ERROR(MakePath(ctx, b, begins, lengths[b], classes, &paths[b]));
      longest = std::max(longest, paths[b].size());
    }
    Tensor* loss = nullptr;
    Tensor* gradient = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {batch}, &loss));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, inputs.shape(), &gradient));
    const auto in = inputs.span<T>();
    const auto losses = loss->span<T>();
    const auto gradients = gradient->span<T>();
    std::fill(gradients.begin(), gradients.end(), T(0));
    constexpr double kNanosecondsPerPlace = 60;
    constexpr double kNanosecondsPerClass = 5;
    const double cost =
        static_cast<double>(steps) * (kNanosecondsPerPlace * static_cast<double>(longest) +
                                      kNanosecondsPerClass * static_cast<double>(classes));
    FirstError error;
    ParallelFor(ctx, batch, BlockSizeForCost(cost), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        losses[b] = 0;
        const Path& path = paths[b];
        if (path.size() == 0) continue;
        absl::StatusOr<TensorShape> shape =
            TensorShape::Make({2, int64_t{lengths[b]} + 1, path.size()});
        absl::StatusOr<Tensor> scratch =
            shape.ok() ? Tensor::Allocate(ctx.allocator(), inputs.dtype(), *shape)
                       : absl::StatusOr<Tensor>(shape.status());
        if (!scratch.ok()) return error.Found(b, scratch.status());
        const Sequence<T> sequence = {in.data() + b * classes, gradients.data() + b * classes,
                                      batch * classes, lengths[b], classes};
        losses[b] = Loss(ctx, sequence, path, scratch->span<T>().data());
      }
    });
    GRADFLOW_RETURN_IF_ERROR(error.status());
    return ctx.ShouldStop() ? StoppedError() : absl::OkStatus();
  }

  // Stores the first label of each sequence, and the number of labels, in *begins.
  static absl::Status FindLabels(const KernelContext& ctx, int64_t batch,
                                 std::vector<int64_t>* begins) {
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(kValues, "labels_values"));
    const int64_t count = ctx.input(kValues).NumElements();
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(kIndices, "labels_indices", {count, 2}));
    const auto indices = ctx.input(kIndices).span<int64_t>();
    begins->assign(batch + 1, 0);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t b = indices[2 * i];
      const int64_t place = indices[2 * i + 1];
      const bool increases = i == 0 || b > indices[2 * i - 2] ||
                             (b == indices[2 * i - 2] && place > indices[2 * i - 1]);
      if (b < 0 || b >= batch || place < 0 || !increases) {
        return errors::InvalidArgument("labels_indices must increase and have sequences in [0, ",
                                       batch, "), but row ", i, " is [", b, ", ", place, "]");
      }
      ++(*begins)[b + 1];
    }
    for (int64_t b = 0; b < batch; ++b) (*begins)[b + 1] += (*begins)[b];
    return absl::OkStatus();
  }

  // Makes the path of sequence `b`; an empty path if the sequence has no loss.
  absl::Status MakePath(const KernelContext& ctx, int64_t b, const std::vector<int64_t>& begins,
                        int64_t length, int64_t classes, Path* path) const {
    const auto labels =
        ctx.input(kValues).span<int32_t>().subspan(begins[b], begins[b + 1] - begins[b]);
    if (labels.empty()) return errors::InvalidArgument("sequence ", b, " has no labels");
    path->Reserve(2 * labels.size() + 1);
    const auto blank = static_cast<int32_t>(blank_is_first_ ? 0 : classes - 1);
    path->labels.push_back(blank);
    bool is_finished = false;
    for (size_t i = 0; i < labels.size(); ++i) {
      if (i > 0 && collapses_repeated_ && labels[i] == labels[i - 1]) continue;
      const bool is_blank = blank_is_first_ ? labels[i] == 0 : labels[i] >= blank;
      if (labels[i] < 0 || (labels[i] >= classes && !is_blank)) {
        return errors::InvalidArgument("labels must be in [0, ", classes, "), but label ", i,
                                       " of sequence ", b, " is ", labels[i]);
      }
      // Blanks may only follow the labels.
      if (is_finished && !is_blank) {
        return errors::InvalidArgument("label ", i, " of sequence ", b, " is ", labels[i],
                                       " and follows a blank");
      }
      is_finished = is_blank;
      if (is_blank) continue;
      path->labels.push_back(labels[i]);
      path->labels.push_back(blank);
    }
    const auto needed = static_cast<int64_t>(labels.size());
    if (needed > length && !ignores_longer_) {
      return errors::InvalidArgument("sequence ", b, " has ", length, " steps, which are too few ",
                                     "for ", needed, " labels");
    }
    if (length == 0 || needed > length) {
      path->labels.clear();
      return absl::OkStatus();
    }
    for (int64_t u = 0; u < path->size(); ++u) {
      const int32_t label = path->labels[u];
      path->stays.push_back(merges_repeated_ || label == blank ? 1 : 0);
      const bool repeats = u > 1 && merges_repeated_ && label == path->labels[u - 2];
      path->skips.push_back(u > 1 && label != blank && !repeats ? 1 : 0);
    }
    return absl::OkStatus();
  }

  bool collapses_repeated_ = false;
  bool merges_repeated_ = true;
  bool ignores_longer_ = false;
  bool blank_is_first_ = false;
};

absl::Status LossShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(kInputs, 3));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(kIndices, 2));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(kValues, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(kLengths, 1));
  GRADFLOW_RETURN_IF_ERROR(MergeDims(c, kIndices, 0, kValues, 0).status());
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t batch, MergeDims(c, kInputs, 1, kLengths, 0));
  c.set_output(0, PartialTensorShape({batch}));
  c.set_output(1, PartialTensorShape({c.Dim(kInputs, 0), batch, c.Dim(kInputs, 2)}));
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  for (const bool v2 : {false, true}) {
    const std::string name = v2 ? "CTCLossV2" : "CTCLoss";
    const std::string type = v2 ? "float" : "T";
    {
      // Registers the op before its kernel.
      Registry::OpRegistrar op = registry.Op(name);
      op.Group("ctc_ops")
          .Input(absl::StrCat("inputs: ", type))
          .Input("labels_indices: int64")
          .Input("labels_values: int32")
          .Input("sequence_length: int32")
          .Output(absl::StrCat("loss: ", type))
          .Output(absl::StrCat("gradient: ", type))
          .Attr("preprocess_collapse_repeated: bool = false")
          .Attr("ctc_merge_repeated: bool = true")
          .Attr("ignore_longer_outputs_than_inputs: bool = false");
      if (!v2) op.Attr("T: {float, double} = DT_FLOAT");
      op.Shape(LossShape).Doc(absl::StrCat(
          R"(Returns the connectionist temporal classification loss of sequences, and its gradient.

The loss is the negative logarithm of the probability of all paths that give the labels. )",
          v2 ? "The blank\nlabel is the first class." : "The blank\nlabel is the last class.",
          R"(

inputs: Logits, of shape [steps, sequences, classes].
labels_indices: A matrix with a row for each label: the sequence and the place of the label. The rows
  increase.
labels_values: The labels. Blanks after the labels of a sequence have no effect.
sequence_length: The number of steps of each sequence.
loss: The loss of each sequence.
gradient: The gradient of the sum of the losses with respect to `inputs`; zero after the end of a
  sequence.
preprocess_collapse_repeated: If true, equal labels in a row count as one label.
ctc_merge_repeated: If true, a path may stay at a label. Equal labels in a row then need a blank
  between them.
ignore_longer_outputs_than_inputs: If true, sequences with more labels than steps have no loss.
  Otherwise they are an error.)",
          v2 ? "" : "\nT: The type of `inputs`."));
    }
    registry.Kernel(name, MakeKernel<LossKernel>);
  }
}

}  // namespace gradflow::ctc_loss
