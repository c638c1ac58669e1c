// CTCGreedyDecoder and CTCBeamSearchDecoder: find labels of sequences from logits of connectionist
// temporal classification.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "gradflow/core/memory_reservation.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/ops/common/first_error.h"

namespace gradflow::ctc_decoder {
namespace {

using Labels = std::vector<int32_t>;

// ---- Inputs and outputs ----

// The logits, of shape [steps, sequences, classes], and the number of steps of each sequence.
struct Logits {
  int64_t steps = 0;
  int64_t batch = 0;
  int64_t classes = 0;
  absl::Span<const int32_t> lengths;
};

absl::StatusOr<Logits> ReadLogits(const KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(0, "inputs", 3));
  const Tensor& inputs = ctx.input(0);
  Logits logits = {inputs.dim_size(0), inputs.dim_size(1), inputs.dim_size(2), {}};
  if (inputs.NumElements() == 0 || logits.classes > std::numeric_limits<int32_t>::max()) {
    return errors::InvalidArgument("inputs must not be empty, but have shape ",
                                   inputs.shape().DebugString());
  }
  if ((inputs.dtype() != DT_FLOAT && inputs.dtype() != DT_DOUBLE) ||
      ctx.input_dtype(1) != DT_INT32) {
    return errors::InvalidArgument(
        "inputs must be float or double and sequence_length int32, but are ",
        DataTypeString(inputs.dtype()), " and ", DataTypeString(ctx.input_dtype(1)));
  }
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "sequence_length"));
  logits.lengths = ctx.input(1).span<int32_t>();
  if (static_cast<int64_t>(logits.lengths.size()) != logits.batch) {
    return errors::FailedPrecondition("sequence_length must have ", logits.batch,
                                      " elements, one for each sequence, but has ",
                                      logits.lengths.size());
  }
  for (int64_t b = 0; b < logits.batch; ++b) {
    if (logits.lengths[b] > logits.steps) {
      return errors::FailedPrecondition("sequence_length[", b, "] must be at most ", logits.steps,
                                        ", but is ", logits.lengths[b]);
    }
  }
  return logits;
}

// Makes the sparse matrices of `paths` results of each sequence: outputs p, paths + p and
// 2 * paths + p. paths_of[b * paths + p] has the labels.
absl::Status MakeMatrices(KernelContext& ctx, int paths, const std::vector<Labels>& paths_of) {
  const auto batch = static_cast<int64_t>(paths_of.size()) / paths;
  for (int p = 0; p < paths; ++p) {
    int64_t total = 0;
    size_t longest = 0;
    for (int64_t b = 0; b < batch; ++b) {
      const Labels& labels = paths_of[b * paths + p];
      total += static_cast<int64_t>(labels.size());
      longest = std::max(longest, labels.size());
    }
    Tensor* indices = nullptr;
    Tensor* values = nullptr;
    Tensor* shape = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(p, {total, 2}, &indices));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(paths + p, {total}, &values));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(2 * paths + p, {2}, &shape));
    shape->span<int64_t>()[0] = batch;
    shape->span<int64_t>()[1] = static_cast<int64_t>(longest);
    int64_t at = 0;
    for (int64_t b = 0; b < batch; ++b) {
      const Labels& labels = paths_of[b * paths + p];
      for (size_t i = 0; i < labels.size(); ++i, ++at) {
        indices->span<int64_t>()[2 * at] = b;
        indices->span<int64_t>()[2 * at + 1] = static_cast<int64_t>(i);
        values->span<int64_t>()[at] = labels[i];
      }
    }
  }
  return absl::OkStatus();
}

// Calls decode(b, labels, log_probability) for each sequence, with `paths` lists of labels and
// their probabilities, and makes the outputs.
template <typename T, typename Decode>
absl::Status DecodeAll(KernelContext& ctx, const Logits& logits, int paths, double nanoseconds,
                       const Decode& decode) {
  // The largest number of labels is charged before they are found.
  const auto results = static_cast<double>(logits.batch) * paths;
  MemoryReservation memory(ctx.allocator().get());
  GRADFLOW_RETURN_IF_ERROR(
      memory.Set(results * (sizeof(Labels) + 8.0 * static_cast<double>(logits.steps)), "labels"));
  Tensor* probabilities = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(3 * paths, {logits.batch, paths}, &probabilities));
  const auto probability = probabilities->span<T>();
  std::vector<Labels> labels(logits.batch * paths);
  FirstError error;
  ParallelFor(ctx, logits.batch, BlockSizeForCost(nanoseconds), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      if (absl::Status status = decode(b, &labels[b * paths], &probability[b * paths]);
          !status.ok()) {
        return error.Found(b, std::move(status));
      }
    }
  });
  GRADFLOW_RETURN_IF_ERROR(error.status());
  if (ctx.ShouldStop()) return StoppedError();
  return MakeMatrices(ctx, paths, labels);
}

// ---- CTCGreedyDecoder ----

class GreedyKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("merge_repeated", &merges_repeated_));
    return construction.GetAttr("blank_index", &blank_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const Logits logits, ReadLogits(ctx));
    const int64_t blank = blank_ < 0 ? blank_ + logits.classes : blank_;
    if (blank < 0 || blank >= logits.classes) {
      return errors::InvalidArgument("blank_index must be in [", -logits.classes, ", ",
                                     logits.classes, "), but is ", blank_);
    }
    return ctx.input_dtype(0) == DT_FLOAT ? Run<float>(ctx, logits, blank)
                                          : Run<double>(ctx, logits, blank);
  }

 private:
  template <typename T>
  absl::Status Run(KernelContext& ctx, const Logits& logits, int64_t blank) const {
    const auto inputs = ctx.input(0).span<T>();
    const double cost = static_cast<double>(logits.steps) * static_cast<double>(logits.classes);
    return DecodeAll<T>(ctx, logits, 1, cost, [&](int64_t b, Labels* labels, T* probability) {
      *probability = 0;
      int64_t last = -1;
      for (int64_t t = 0; t < logits.lengths[b]; ++t) {
        if (ctx.ShouldStop()) break;
        const T* const row = inputs.data() + (t * logits.batch + b) * logits.classes;
        int64_t best = 0;
        for (int64_t c = 1; c < logits.classes; ++c) {
          if (row[c] > row[best]) best = c;
        }
        *probability -= row[best];
        if (best != blank && !(merges_repeated_ && best == last)) {
          labels->push_back(static_cast<int32_t>(best));
        }
        last = best;
      }
      return absl::OkStatus();
    });
  }

  bool merges_repeated_ = false;
  int64_t blank_ = -1;
};

// ---- CTCBeamSearchDecoder ----

template <typename T>
constexpr T kLogZero = -std::numeric_limits<T>::infinity();

template <typename T>
T LogSum(T a, T b) {
  const T most = std::max(a, b);
  return most == kLogZero<T> ? most : most + std::log1p(std::exp(std::min(a, b) - most));
}

// Finds the most probable labels of a sequence. The last class is the blank label.
//
// A prefix is a list of labels. It has the probability of the paths that give it and end with a
// blank, and of the paths that end with its last label. The beam has the most probable prefixes.
template <typename T>
class BeamSearch {
 public:
  BeamSearch(int64_t classes, int64_t width, Allocator* allocator)
      : classes_(classes), width_(width), memory_(allocator) {
    prefixes_.push_back({});
    prefixes_[0].now = {0, 0, kLogZero<T>};
    beam_.push_back(0);
  }

  // Takes the logits of the next step. Ends early if the run stops.
  absl::Status Step(const KernelContext& ctx, const T* logits) {
    const T most = *std::max_element(logits, logits + classes_);
    T sum = 0;
    for (int64_t c = 0; c < classes_; ++c) sum += std::exp(logits[c] - most);
    const T offset = most + std::log(sum);
    const int64_t blank = classes_ - 1;
    // In decreasing order of probability.
    const auto order = [this](int64_t a, int64_t b) { return Total(a) > Total(b); };
    std::vector<int64_t> branches = beam_;
    std::sort(branches.begin(), branches.end(), order);
    for (const int64_t i : branches) prefixes_[i].before = prefixes_[i].now;
    for (const int64_t i : branches) {
      Prefix& p = prefixes_[i];
      if (p.parent >= 0) {
        const Prefix& parent = prefixes_[p.parent];
        if (parent.now.total != kLogZero<T>) {
          p.now.label = LogSum(p.now.label,
                               p.label == parent.label ? parent.before.blank : parent.before.total);
        }
        p.now.label += logits[p.label] - offset;
      }
      p.now.blank = p.before.total + logits[blank] - offset;
      p.now.total = LogSum(p.now.blank, p.now.label);
    }
    bool has_evicted = false;
    // The least probable prefix is the first of the heap.
    std::make_heap(beam_.begin(), beam_.end(), order);
    for (const int64_t i : branches) {
      if (!IsCandidate(prefixes_[i].before.total)) continue;
      if (ctx.ShouldStop()) return absl::OkStatus();
      for (int32_t c = 0; c < blank; ++c) {
        const Prefix& p = prefixes_[i];
        const T total = logits[c] - offset + (c == p.label ? p.before.blank : p.before.total);
        if (!IsCandidate(total)) {
          // Prefixes that have left the beam in this step are not extended, as in TensorFlow.
          if (has_evicted) Forget(i, c);
          continue;
        }
        const auto [child, is_new] =
            children_.try_emplace({i, c}, static_cast<int64_t>(prefixes_.size()));
        const int64_t added = child->second;
        if (is_new) {
          GRADFLOW_RETURN_IF_ERROR(Charge());
          prefixes_.push_back({i, c, {}, {}});
        } else if (Total(added) != kLogZero<T>) {
          continue;  // It is in the beam.
        }
        prefixes_[added].now = {total, kLogZero<T>, total};
        if (static_cast<int64_t>(beam_.size()) == width_) {
          has_evicted = true;
          prefixes_[beam_.front()].now = {};
          std::pop_heap(beam_.begin(), beam_.end(), order);
          beam_.pop_back();
        }
        beam_.push_back(added);
        std::push_heap(beam_.begin(), beam_.end(), order);
      }
    }
    return absl::OkStatus();
  }

  // Stores the `paths` most probable prefixes.
  absl::Status Best(int paths, bool merges_repeated, Labels* labels, T* probabilities) {
    if (paths > static_cast<int64_t>(beam_.size())) {
      return errors::InvalidArgument("top_paths is ", paths, ", but the beam has ", beam_.size(),
                                     " results");
    }
    std::sort(beam_.begin(), beam_.end(),
              [this](int64_t a, int64_t b) { return Total(a) > Total(b); });
    for (int p = 0; p < paths; ++p) {
      probabilities[p] = prefixes_[beam_[p]].now.total;
      int32_t last = -1;
      for (int64_t i = beam_[p]; prefixes_[i].parent >= 0; i = prefixes_[i].parent) {
        const int32_t label = prefixes_[i].label;
        if (!merges_repeated || label != last) labels[p].push_back(label);
        last = label;
      }
      std::reverse(labels[p].begin(), labels[p].end());
    }
    return absl::OkStatus();
  }

 private:
  // Logarithms of probabilities.
  struct Probability {
    T total = kLogZero<T>;
    T blank = kLogZero<T>;
    T label = kLogZero<T>;
  };
  struct Prefix {
    int64_t parent = -1;
    int32_t label = -1;
    // After the step before, and after this step. The total is zero if the prefix is not in the
    // beam.
    Probability before;
    Probability now;
  };

  // Orders prefixes. NaN counts as zero, because NaN has no order.
  T Total(int64_t i) const {
    const T total = prefixes_[i].now.total;
    return std::isnan(total) ? kLogZero<T> : total;
  }
  bool IsCandidate(T total) const {
    return total > kLogZero<T> &&
           (static_cast<int64_t>(beam_.size()) < width_ || total > Total(beam_.front()));
  }
  // Removes the probability before this step of a prefix that is not in the beam.
  void Forget(int64_t parent, int32_t label) {
    const auto found = children_.find({parent, label});
    if (found == children_.end() || Total(found->second) != kLogZero<T>) return;
    prefixes_[found->second].before = {};
  }
  // Charges for one more prefix, and for more at a time.
  absl::Status Charge() {
    if (prefixes_.size() < charged_) return absl::OkStatus();
    charged_ = std::max<size_t>(64, 2 * charged_);
    // The arrays grow by copies.
    constexpr double kBytes = 3 * (sizeof(Prefix) + 2 * sizeof(std::pair<int64_t, int64_t>) + 16);
    return memory_.Set(kBytes * static_cast<double>(charged_), "the prefixes of a beam search");
  }

  const int64_t classes_;
  const int64_t width_;
  MemoryReservation memory_;
  size_t charged_ = 0;
  // Prefix 0 is empty.
  std::vector<Prefix> prefixes_;
  // The prefix of each prefix and one more label.
  absl::flat_hash_map<std::pair<int64_t, int32_t>, int64_t> children_;
  std::vector<int64_t> beam_;
};

class BeamSearchKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("beam_width", &width_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("top_paths", &paths_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("merge_repeated", &merges_repeated_));
    if (paths_ <= width_) return absl::OkStatus();
    return errors::InvalidArgument("top_paths must be at most beam_width, ", width_, ", but is ",
                                   paths_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const Logits logits, ReadLogits(ctx));
    return ctx.input_dtype(0) == DT_FLOAT ? Run<float>(ctx, logits) : Run<double>(ctx, logits);
  }

 private:
  template <typename T>
  absl::Status Run(KernelContext& ctx, const Logits& logits) const {
    const auto inputs = ctx.input(0).span<T>();
    const double cost = static_cast<double>(logits.steps) * static_cast<double>(logits.classes) *
                        static_cast<double>(std::min<int64_t>(width_, 1000)) * 5;
    const auto paths = static_cast<int>(paths_);
    return DecodeAll<T>(
        ctx, logits, paths, cost, [&](int64_t b, Labels* labels, T* probabilities) -> absl::Status {
          BeamSearch<T> search(logits.classes, width_, ctx.allocator().get());
          for (int64_t t = 0; t < logits.lengths[b]; ++t) {
            if (ctx.ShouldStop()) return absl::OkStatus();
            GRADFLOW_RETURN_IF_ERROR(
                search.Step(ctx, inputs.data() + (t * logits.batch + b) * logits.classes));
          }
          if (ctx.ShouldStop()) return absl::OkStatus();
          return search.Best(paths, merges_repeated_, labels, probabilities);
        });
  }

  int64_t width_ = 1;
  int64_t paths_ = 1;
  bool merges_repeated_ = true;
};

absl::Status DecoderShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 3));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t batch, MergeDims(c, 0, 1, 1, 0));
  const int paths = (c.num_outputs() - 1) / 3;
  for (int p = 0; p < paths; ++p) {
    c.set_output(p, PartialTensorShape({-1, 2}));
    c.set_output(paths + p, PartialTensorShape({-1}));
    c.set_output(2 * paths + p, TensorShape({2}));
  }
  c.set_output(3 * paths, PartialTensorShape({batch, paths}));
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("CTCGreedyDecoder")
      .Group("ctc_ops")
      .Input("inputs: T")
      .Input("sequence_length: int32")
      .Output("decoded_indices: int64")
      .Output("decoded_values: int64")
      .Output("decoded_shape: int64")
      .Output("log_probability: T")
      .Attr("merge_repeated: bool = false")
      .Attr("blank_index: int = -1")
      .Attr("T: {float, double} = DT_FLOAT")
      .Shape(DecoderShape)
      .Doc(
          R"(Finds the labels of sequences: the class with the largest logit of each step, without blanks.

The labels are a sparse matrix with a row for each sequence.

inputs: Logits, of shape [steps, sequences, classes].
sequence_length: The number of steps of each sequence.
decoded_indices: The sequence and the place of each label.
decoded_values: The labels.
decoded_shape: The number of sequences, and the largest number of labels.
log_probability: The negative sum of the largest logits of each sequence, of shape [sequences, 1].
merge_repeated: If true, equal classes in a row count as one label.
blank_index: The class of blanks; negative ones count from the end.
T: The type of `inputs`.)");
  registry.Kernel("CTCGreedyDecoder", MakeKernel<GreedyKernel>);
  registry.Op("CTCBeamSearchDecoder")
      .Group("ctc_ops")
      .Input("inputs: T")
      .Input("sequence_length: int32")
      .Output("decoded_indices: top_paths * int64")
      .Output("decoded_values: top_paths * int64")
      .Output("decoded_shape: top_paths * int64")
      .Output("log_probability: T")
      .Attr("beam_width: int >= 1")
      .Attr("top_paths: int >= 1")
      .Attr("merge_repeated: bool = true")
      .Attr("T: {float, double} = DT_FLOAT")
      .Shape(DecoderShape)
      .Doc(
          R"(Finds the most probable labels of sequences by a beam search. The blank label is the last class.

The labels are sparse matrices with a row for each sequence: the first matrix has the most probable
labels of each sequence.

inputs: Logits, of shape [steps, sequences, classes].
sequence_length: The number of steps of each sequence.
decoded_indices: The sequence and the place of each label.
decoded_values: The labels.
decoded_shape: The number of sequences, and the largest number of labels.
log_probability: The logarithm of the probability of each result, of shape [sequences, top_paths].
beam_width: The number of prefixes that the search keeps after each step.
top_paths: The number of results, at most `beam_width`.
merge_repeated: If true, equal labels in a row of a result become one label.
T: The type of `inputs`.)");
  registry.Kernel("CTCBeamSearchDecoder", MakeKernel<BeamSearchKernel>);
}

}  // namespace gradflow::ctc_decoder
