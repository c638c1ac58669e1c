// FoldBatchNorms: conv(x, w) scaled and shifted by constants is conv(x, w * factor) + bias. A batch
// normalization has factor scale / sqrt(variance + epsilon) and bias offset - mean * factor; frozen
// graphs often contain it as Mul and AddV2.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gradflow/core/status.h"
#include "gradflow/graph/tables.h"
#include "gradflow/runtime/plan/op_traits.h"
#include "gradflow/runtime/plan/passes.h"
#include "gradflow/runtime/plan/plan_rewriter.h"

namespace gradflow {
namespace {

// Inputs of batch normalization.
enum { kX, kScale, kOffset, kMean, kVariance };

// The range of the magnitudes of one channel's finite nonzero weights.
struct WeightRange {
  double smallest = std::numeric_limits<double>::infinity();
  double largest = 0;
};

// y = x * factor + bias, for each channel.
//
// Products and sums of floats are exact up to rounding errors unless they overflow or underflow.
// IsSafe() returns true if the constants rule this out, before and after folding, for all images
// whose sums of |x * w| are at most 2^80. docs/security.md states the bound.
class Affine {
 public:
  explicit Affine(int64_t channels) : channels_(static_cast<size_t>(channels)) {}

  int64_t channels() const { return static_cast<int64_t>(channels_.size()); }
  double factor(int64_t c) const { return channels_[static_cast<size_t>(c)].factor; }
  float bias(int64_t c) const { return static_cast<float>(channels_[static_cast<size_t>(c)].bias); }
  bool scales() const { return scales_; }
  bool shifts() const { return shifts_; }

  // Returns true if the weights may be multiplied by the factors. `ranges` has one element per
  // channel.
  bool IsSafe(absl::Span<const WeightRange> ranges) const {
    for (size_t c = 0; c < channels_.size(); ++c) {
      if (!channels_[c].is_safe) return false;
      const double factor = std::abs(channels_[c].factor);
      if (factor == 0 || ranges[c].largest == 0) continue;
      // Rounded like the weights.
      const auto smallest = static_cast<float>(ranges[c].smallest * factor);
      const auto largest = static_cast<float>(ranges[c].largest * factor);
      if (smallest < std::numeric_limits<float>::min() || std::isinf(largest)) return false;
    }
    return true;
  }

  // Scale() appends y * by(c), Shift() appends y + by(c). unit(c) is the typical magnitude of a
  // result. A shift before the product, multiplied by the factor, must not be much larger, because
  // image and shift may cancel.
  template <typename F, typename U>
  void Scale(const F& by, const U& unit) {
    scales_ = true;
    for (size_t c = 0; c < channels_.size(); ++c) {
      channels_[c].Scale(by(static_cast<int64_t>(c)), unit(static_cast<int64_t>(c)));
    }
  }
  void Negate() {
    scales_ = true;
    for (Channel& channel : channels_) {
      channel.factor = -channel.factor;
      channel.bias = -channel.bias;
    }
  }
  template <typename F>
  void Shift(const F& by) {
    shifts_ = true;
    for (size_t c = 0; c < channels_.size(); ++c) channels_[c].Shift(by(static_cast<int64_t>(c)));
  }

 private:
  struct Channel {
    // Limits factors, so that results do not overflow. Also limits the ratio of the last factor to
    // an earlier factor, so that underflow errors are not magnified.
    static constexpr double kMaxFactor = 0x1p40;
    static constexpr double kMaxBias = 0x1p100;
    // The largest shift before a product, multiplied by the factor, relative to the typical
    // magnitude of the result.
    static constexpr double kMaxMoved = 0x1p10;

    void Scale(double by, double unit) {
      factor *= by;
      bias *= by;
      if (factor != 0) smallest_factor = std::min(smallest_factor, std::abs(factor));
      // NaN is not safe.
      is_safe = is_safe && std::abs(factor) <= kMaxFactor * std::min(1.0, smallest_factor) &&
                std::abs(bias) <= std::min(kMaxMoved * unit, kMaxBias);
    }
    void Shift(double by) {
      bias += by;
      is_safe = is_safe && std::abs(by) <= kMaxBias && std::abs(bias) <= kMaxBias;
    }

    double factor = 1;
    double bias = 0;
    double smallest_factor = 1;
    bool is_safe = true;
  };

  std::vector<Channel> channels_;
  bool scales_ = false;
  bool shifts_ = false;
};

double ElementOf(const Tensor& tensor, int64_t i) {
  return static_cast<double>(static_cast<const float*>(tensor.raw_data())[i]);
}

// Returns the range of the weights of each channel. Channels are the innermost dimension of a
// filter.
std::vector<WeightRange> RangesOf(const Tensor& filter, int64_t channels) {
  std::vector<WeightRange> ranges(static_cast<size_t>(channels));
  const auto weights = filter.span<float>();
  for (size_t i = 0; i < weights.size(); ++i) {
    const double weight = std::abs(static_cast<double>(weights[i]));
    if (weight == 0 || !std::isfinite(weight)) continue;
    WeightRange& range = ranges[i % ranges.size()];
    range.smallest = std::min(range.smallest, weight);
    range.largest = std::max(range.largest, weight);
  }
  return ranges;
}

class Folder {
 public:
  Folder(const PassContext& context, PlanGraph* graph)
      : kernels_(*context.kernels), rewriter_(context, graph), graph_(*graph) {}

  absl::Status Fold() {
    for (const int32_t node : rewriter_.order()) {
      GRADFLOW_RETURN_IF_ERROR(rewriter_.CheckStop(node));
      const std::string& op = graph_.origin(node).type_string();
      if ((op == "Conv2D" || op == "DepthwiseConv2dNative") && IsPlain(node)) Fold(node);
    }
    GRADFLOW_RETURN_IF_ERROR(graph_.Prune());
    rewriter_.DropUnreadConstants();
    return absl::OkStatus();
  }

 private:
  // Returns true for a float NHWC node that no pass has changed.
  bool IsPlain(int32_t node) const {
    if (graph_.label(node) != nullptr || graph_.kernel(node) != nullptr) return false;
    const Node& origin = graph_.origin(node);
    std::string format = "NHWC";
    return IsPure(origin) && origin.output_type(0) == DT_FLOAT &&
           (!origin.GetAttr("data_format", &format).ok() || format == "NHWC");
  }

  // Sets *value to the value of a float constant. Returns false if `source` is not a float
  // constant.
  bool ConstantOf(PlanGraph::Value source, Tensor* value, int32_t* constant = nullptr) {
    return rewriter_.ConstantOf(source, value, constant) && value->dtype() == DT_FLOAT;
  }

  // Sets *value to the value of a float constant that is a scalar or has one element per channel.
  // Returns false for any other source.
  bool ChannelsOf(PlanGraph::Value source, int64_t channels, Tensor* value) {
    constexpr int kImageDims = 4;
    if (!ConstantOf(source, value) || value->dims() > kImageDims) return false;
    const int64_t last = value->dims() == 0 ? 1 : value->dim_size(value->dims() - 1);
    return value->NumElements() == last && (last == 1 || last == channels);
  }

  // Appends a node to `affine`. Input `input` of the node is the result so far. Returns false if
  // the node is not a product or sum of this input with constants.
  bool Append(int32_t node, int input, Affine* affine) {
    const std::string& op = graph_.origin(node).type_string();
    if (!IsPlain(node)) return false;
    if (op == "FusedBatchNormV3" || op == "FusedBatchNormV2" || op == "FusedBatchNorm") {
      return input == kX && AppendNorm(node, affine);
    }
    const bool bias = op == "BiasAdd";
    const bool product = op == "Mul";
    const bool difference = op == "Sub";
    if (!bias && !product && !difference && op != "AddV2" && op != "Add") return false;
    if (bias && input != 0) return false;
    Tensor by;
    if (!ChannelsOf(graph_.edge(node, 1 - input), affine->channels(), &by)) return false;
    if (bias && (by.dims() != 1 || by.NumElements() != affine->channels())) return false;
    const double sign = difference && input == 0 ? -1 : 1;
    const auto at = [&](int64_t c) { return sign * ElementOf(by, by.NumElements() == 1 ? 0 : c); };
    if (product) {
      affine->Scale(at, /*unit=*/[](int64_t) { return 1.0; });
      return true;
    }
    if (difference && input == 1) affine->Negate();
    affine->Shift(at);
    return true;
  }

  bool AppendNorm(int32_t norm, Affine* affine) {
    bool is_training = true;
    float epsilon = 0;
    if (!graph_.origin(norm).GetAttr("is_training", &is_training).ok() || is_training ||
        !graph_.origin(norm).GetAttr("epsilon", &epsilon).ok()) {
      return false;
    }
    Tensor inputs[kVariance + 1];
    for (int i = kScale; i <= kVariance; ++i) {
      if (!ConstantOf(graph_.edge(norm, i), &inputs[i]) || inputs[i].dims() != 1 ||
          inputs[i].dim_size(0) != affine->channels()) {
        return false;
      }
    }
    affine->Shift([&](int64_t c) { return -ElementOf(inputs[kMean], c); });
    affine->Scale(
        [&](int64_t c) {
          return ElementOf(inputs[kScale], c) /
                 std::sqrt(ElementOf(inputs[kVariance], c) + static_cast<double>(epsilon));
        },
        /*unit=*/[&](int64_t c) { return std::abs(ElementOf(inputs[kScale], c)); });
    affine->Shift([&](int64_t c) { return ElementOf(inputs[kOffset], c); });
    return true;
  }

  // Folds the nodes that follow a convolution.
  void Fold(int32_t conv) {
    Tensor filter;
    int32_t filter_node = -1;
    if (!ConstantOf(graph_.edge(conv, 1), &filter, &filter_node) || filter.dims() != 4) return;
    const bool depthwise = graph_.origin(conv).type_string() != "Conv2D";
    const int64_t channels = filter.dim_size(3) * (depthwise ? filter.dim_size(2) : 1);
    if (filter.NumElements() == 0) return;
    const std::vector<WeightRange> ranges = RangesOf(filter, channels);
    // Each node except the last has one reader, the next node of the chain.
    std::vector<int32_t> chain = {conv};
    Affine affine(channels);
    for (;;) {
      const int32_t next = rewriter_.OnlyReader(chain.back());
      if (next < 0 || !rewriter_.use(next).first_output) break;
      Affine longer = affine;
      const int input = rewriter_.use(chain.back()).input;
      if (!Append(next, input, &longer) || !longer.IsSafe(ranges)) break;
      affine = std::move(longer);
      chain.push_back(next);
    }
    // Folds a filter that several convolutions share for only one of them, because more copies
    // would multiply its memory.
    if (!affine.scales() || folded_filters_.count(filter_node) > 0) return;
    absl::StatusOr<Tensor> folded = Tensor::Allocate(DT_FLOAT, filter.shape());
    if (!folded.ok()) return;
    float* const weights = static_cast<float*>(folded->raw_data());
    const float* const from = static_cast<const float*>(filter.raw_data());
    for (int64_t i = 0; i < filter.NumElements(); i += channels) {
      for (int64_t c = 0; c < channels; ++c) {
        weights[i + c] = static_cast<float>(static_cast<double>(from[i + c]) * affine.factor(c));
      }
    }
    if (Replace(chain, *folded, affine)) folded_filters_.insert(filter_node);
  }

  // Replaces a chain with a convolution that has the folded filter, followed by a bias addition.
  bool Replace(const std::vector<int32_t>& chain, const Tensor& filter, const Affine& affine) {
    const int32_t conv = chain.front();
    const int32_t last = chain.back();
    absl::StatusOr<std::unique_ptr<OpKernel>> kernel = kernels_.Make(graph_.origin(conv), filter);
    if (!kernel.ok()) return false;
    absl::StatusOr<Tensor> bias;
    if (affine.shifts()) {
      bias = Tensor::Allocate(DT_FLOAT, {affine.channels()});
      if (!bias.ok() || !MakeBiasAdd(graph_.origin(conv))) return false;
      for (int64_t c = 0; c < affine.channels(); ++c) {
        static_cast<float*>(bias->raw_data())[c] = affine.bias(c);
      }
    }
    const std::string& op = graph_.origin(conv).type_string();
    PlanGraph::NewNode folded = rewriter_.NewNodeFor(chain, op);
    const PlanNodeLabel whole = folded.label;
    if (affine.shifts()) folded.label = rewriter_.LabelFor({conv}, op);
    folded.kernel = *std::move(kernel);
    folded.device = graph_.device(conv);
    folded.inputs = {graph_.edge(conv, 0), rewriter_.AddConstant({graph_.origin(conv).name(),
                                                                  "FoldedFilter", whole.origins},
                                                                 filter, graph_.device(conv))};
    if (!affine.shifts()) {
      rewriter_.Replace(last, std::move(folded));
      return true;
    }
    PlanGraph::NewNode added;
    added.label = rewriter_.LabelFor(absl::MakeConstSpan(chain).subspan(1), "BiasAdd");
    added.kernel = bias_add_;
    added.output_types = {DT_FLOAT};
    added.device = graph_.device(last);
    PlanNodeLabel label = added.label;
    label.op = "FoldedBias";
    added.inputs = {{graph_.AddNode(std::move(folded)), 0},
                    rewriter_.AddConstant(std::move(label), *bias, added.device)};
    rewriter_.Replace(last, std::move(added));
    return true;
  }

  // Makes the kernel that all bias additions share. Returns false on error.
  bool MakeBiasAdd(const Node& of) {
    if (bias_add_ != nullptr) return true;
    auto kernel = PlanRewriter::MakeKernel(of, "BiasAdd", {{"T", DT_FLOAT}}, {DT_FLOAT, DT_FLOAT},
                                           {DT_FLOAT});
    if (!kernel.ok()) return false;
    bias_add_ = *std::move(kernel);
    return true;
  }

  KernelCache& kernels_;
  PlanRewriter rewriter_;
  PlanGraph& graph_;
  // Null until a bias is added.
  std::shared_ptr<const OpKernel> bias_add_;
  // Filters that already have a folded copy.
  internal::HashSet<int32_t> folded_filters_;
};

}  // namespace

absl::Status FoldBatchNorms(const PassContext& context, PlanGraph* graph) {
  if (!context.options.fold_batch_norms) return absl::OkStatus();
  return Folder(context, graph).Fold();
}

}  // namespace gradflow
