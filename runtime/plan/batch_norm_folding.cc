// FoldBatchNorms: conv(x, w) normalised is conv(x, w * factor) + bias, where factor is
// scale / sqrt(variance + epsilon), and bias is offset - mean * factor.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gradflow/core/fused_steps.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/run_stop.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/tables.h"
#include "gradflow/runtime/plan/op_traits.h"
#include "gradflow/runtime/plan/passes.h"

namespace gradflow {
namespace {

// A folded filter.
class FilterKernel final : public OpKernel {
 public:
  explicit FilterKernel(Tensor value) : value_(std::move(value)) {}
  absl::Status Compute(KernelContext& ctx) const override {
    ctx.set_output(0, value_);
    return absl::OkStatus();
  }
  bool IsCheap() const override { return true; }

 private:
  const Tensor value_;
};

// Adds a vector to each row of its input.
class BiasKernel final : public OpKernel, public StepKernel {
 public:
  explicit BiasKernel(std::vector<float> bias) : bias_(std::move(bias)) {}

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const int64_t columns = static_cast<int64_t>(bias_.size());
    if (x.dtype() != DT_FLOAT || x.dims() == 0 || x.dim_size(x.dims() - 1) != columns) {
      return errors::InvalidArgument("the result of the convolution has shape ",
                                     x.shape().DebugString(), ", expected ", columns, " channels");
    }
    Tensor* y = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.ForwardInputOrAllocateOutput(0, 0, x.shape(), &y));
    if (columns == 0) return absl::OkStatus();
    const float* const from = static_cast<const float*>(x.raw_data());
    float* const to = static_cast<float*>(y->raw_data());
    ParallelFor(ctx, x.NumElements() / columns,
                BlockSizeForCost(0.5 * static_cast<double>(columns)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    AddToRow(from + row * columns, bias_.data(), columns, to + row * columns);
                  }
                });
    return absl::OkStatus();
  }

  bool CanBeStep(int) const override { return true; }
  std::unique_ptr<FusedStep> MakeStep(const RunContext&, absl::Span<const Tensor>, int,
                                      const TensorShape& shape) const override {
    if (shape.dims() == 0 ||
        shape.dim_size(shape.dims() - 1) != static_cast<int64_t>(bias_.size())) {
      return nullptr;
    }
    return std::make_unique<Step>(bias_.data());
  }

 private:
  class Step final : public FusedStep {
   public:
    explicit Step(const float* bias) : bias_(bias) {}
    void Apply(const ResultPart& part) const override {
      for (int64_t row = 0; row < part.rows; ++row) {
        float* const data = part.data + row * part.stride;
        AddToRow(data, bias_ + part.column, part.columns, data);
      }
    }

   private:
    const float* const bias_;
  };

  static void AddToRow(const float* x, const float* bias, int64_t n, float* y) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] + bias[i];
  }

  const std::vector<float> bias_;
};

class Folder {
 public:
  Folder(const PassContext& context, PlanGraph* graph)
      : kernels_(*context.kernels),
        graph_(*graph),
        stop_(context.limits.cancelled, context.limits.closed) {}

  absl::Status Fold() {
    const std::vector<int32_t> uses = graph_.CountUses();
    FindOtherOutputs();
    // FoldNorm() adds nodes.
    const std::vector<int32_t> order(graph_.order().begin(), graph_.order().end());
    for (const int32_t node : order) {
      // The layout reports the stop.
      if (stop_.Check()) break;
      if (IsNorm(node)) FoldNorm(node, uses);
    }
    return graph_.Prune();
  }

 private:
  // Inputs of batch normalisation.
  enum { kX, kScale, kOffset, kMean, kVariance };

  // Returns true for a node of the graph itself, of float and NHWC.
  bool IsPlain(int32_t node) const {
    if (graph_.label(node) != nullptr || graph_.kernel(node) != nullptr) return false;
    const Node& origin = graph_.origin(node);
    std::string format = "NHWC";
    return IsPure(origin) && origin.output_type(0) == DT_FLOAT &&
           (!origin.GetAttr("data_format", &format).ok() || format == "NHWC");
  }
  bool IsNorm(int32_t node) const {
    const std::string& op = graph_.origin(node).type_string();
    if (op != "FusedBatchNormV3" && op != "FusedBatchNormV2" && op != "FusedBatchNorm") {
      return false;
    }
    bool is_training = true;
    return IsPlain(node) && graph_.origin(node).GetAttr("is_training", &is_training).ok() &&
           !is_training && !other_outputs_[node];
  }
  // Finds the nodes of which an output other than the first is read.
  void FindOtherOutputs() {
    other_outputs_.resize(graph_.num_nodes());
    const auto add = [&](PlanGraph::Value value) {
      if (!value.is_feed() && value.output > 0) other_outputs_[value.node] = true;
    };
    for (const PlanGraph::Value root : graph_.roots()) add(graph_.Resolve(root));
    for (const int32_t reader : graph_.order()) {
      for (int i = 0; i < graph_.num_edges(reader); ++i) add(graph_.edge(reader, i));
    }
  }

  // Sets *value to that of a constant of float, perhaps behind nodes that copy it. Returns false if
  // it is none.
  // Stores the constant's node in *constant, which may be null.
  bool ConstantOf(PlanGraph::Value source, Tensor* value, int32_t* constant = nullptr) {
    while (!source.is_feed() && !graph_.has_known_value(source.node) &&
           graph_.origin(source.node).type_string() == "Identity" &&
           graph_.num_edges(source.node) == 1) {
      source = graph_.edge(source.node, 0);
    }
    if (source.is_feed() || source.output != 0) return false;
    if (constant != nullptr) *constant = source.node;
    const Node& node = graph_.origin(source.node);
    const OpKernel* kernel = graph_.kernel(source.node).get();
    if (!graph_.has_known_value(source.node)) {
      if (!node.IsConstant() || graph_.num_edges(source.node) > 0 || kernel != nullptr)
        return false;
      const absl::StatusOr<const OpKernel*> made = kernels_.Get(node);
      if (!made.ok()) return false;
      kernel = *made;
      // One that is not cheap decodes its value in each run, within the run's limit of memory.
      if (!kernel->IsCheap()) return false;
    }
    DataTypeVector types;
    for (const DataType dtype : node.output_types()) types.push_back(BaseType(dtype));
    std::vector<Tensor> outputs(types.size(), Tensor(Tensor::Unset{}));
    const RunContext run;
    KernelContext ctx({}, absl::MakeSpan(outputs), types, run);
    if (!kernel->Compute(ctx).ok()) return false;
    *value = outputs[0];
    return value->dtype() == DT_FLOAT && value->IsInitialized();
  }

  void FoldNorm(int32_t norm, const std::vector<int32_t>& uses) {
    // norm(bias(conv)), or norm(conv).
    std::vector<int32_t> chain = {norm};
    PlanGraph::Value source = graph_.edge(norm, kX);
    const auto is_next = [&] {
      // Not a node that a fold has added: it has no element in `uses`.
      return !source.is_feed() && source.output == 0 && IsPlain(source.node) &&
             uses[source.node] == 1;
    };
    Tensor bias;
    if (is_next() && graph_.origin(source.node).type_string() == "BiasAdd") {
      if (!ConstantOf(graph_.edge(source.node, 1), &bias)) return;
      chain.push_back(source.node);
      source = graph_.edge(source.node, 0);
    }
    if (!is_next()) return;
    const int32_t conv = source.node;
    const std::string& op = graph_.origin(conv).type_string();
    if (op != "Conv2D" && op != "DepthwiseConv2dNative") return;
    chain.push_back(conv);
    Tensor filter;
    Tensor inputs[kVariance + 1];
    int32_t filter_node = -1;
    if (!ConstantOf(graph_.edge(conv, 1), &filter, &filter_node) || filter.dims() != 4) return;
    for (int i = kScale; i <= kVariance; ++i) {
      if (!ConstantOf(graph_.edge(norm, i), &inputs[i])) return;
    }
    const int64_t channels = filter.dim_size(3) * (op == "Conv2D" ? 1 : filter.dim_size(2));
    for (int i = kScale; i <= kVariance; ++i) {
      if (inputs[i].dims() != 1 || inputs[i].dim_size(0) != channels) return;
    }
    if (chain.size() == 3 && (bias.dims() != 1 || bias.dim_size(0) != channels)) return;
    float epsilon = 0;
    if (channels == 0 || !graph_.origin(norm).GetAttr("epsilon", &epsilon).ok()) return;

    const auto at = [](const Tensor& tensor, int64_t i) {
      return static_cast<double>(static_cast<const float*>(tensor.raw_data())[i]);
    };
    std::vector<double> factors;
    std::vector<float> folded_bias;
    for (int64_t c = 0; c < channels; ++c) {
      const double factor = at(inputs[kScale], c) /
                            std::sqrt(at(inputs[kVariance], c) + static_cast<double>(epsilon));
      const double before = chain.size() == 3 ? at(bias, c) : 0;
      factors.push_back(factor);
      folded_bias.push_back(
          static_cast<float>((before - at(inputs[kMean], c)) * factor + at(inputs[kOffset], c)));
      // Weights that overflow would make NaN of zeros.
      if (!std::isfinite(factor) || !std::isfinite(folded_bias.back())) return;
    }
    // Copies of a filter that convolutions share would multiply its memory.
    if (!folded_filters_.insert(filter_node).second) return;
    absl::StatusOr<Tensor> folded = Tensor::Allocate(DT_FLOAT, filter.shape());
    if (!folded.ok()) return;
    float* const weights = static_cast<float*>(folded->raw_data());
    const float* const from = static_cast<const float*>(filter.raw_data());
    for (int64_t i = 0; i < filter.NumElements(); i += channels) {
      for (int64_t c = 0; c < channels; ++c) {
        weights[i + c] =
            static_cast<float>(static_cast<double>(from[i + c]) * factors[static_cast<size_t>(c)]);
        if (std::isinf(weights[i + c]) && !std::isinf(from[i + c])) return;
      }
    }
    Replace(chain, *folded, std::move(folded_bias));
  }

  // Puts a convolution with other weights, and a bias, in the place of a chain, the last node
  // first.
  void Replace(const std::vector<int32_t>& chain, const Tensor& filter, std::vector<float> bias) {
    const int32_t norm = chain.front();
    const int32_t conv = chain.back();
    absl::StatusOr<std::unique_ptr<OpKernel>> kernel = kernels_.Make(graph_.origin(conv), filter);
    if (!kernel.ok()) return;
    std::vector<const Node*> origins;
    std::vector<int32_t> control_inputs;
    for (size_t i = chain.size(); i-- > 0;) {
      origins.push_back(&graph_.origin(chain[i]));
      for (int e = graph_.num_inputs(chain[i]); e < graph_.num_edges(chain[i]); ++e) {
        const PlanGraph::Value value = graph_.edge(chain[i], e);
        if (!value.is_feed()) control_inputs.push_back(value.node);
      }
    }
    const std::string& name = graph_.origin(conv).name();
    PlanGraph::NewNode constant;
    constant.label = {name, "FoldedFilter", origins};
    constant.kernel = std::make_shared<FilterKernel>(filter);
    constant.output_types = {DT_FLOAT};
    constant.device = graph_.device(conv);
    PlanGraph::NewNode folded;
    folded.label = {name, graph_.origin(conv).type_string(), {&graph_.origin(conv)}};
    folded.kernel = *std::move(kernel);
    folded.output_types = {DT_FLOAT};
    folded.inputs = {graph_.edge(conv, 0), {graph_.AddNode(std::move(constant)), 0}};
    folded.control_inputs = std::move(control_inputs);
    folded.device = graph_.device(conv);
    PlanGraph::NewNode added;
    added.label = {graph_.origin(norm).name(), "FoldedBias", {origins.begin() + 1, origins.end()}};
    added.kernel = std::make_shared<BiasKernel>(std::move(bias));
    added.output_types = {DT_FLOAT};
    added.inputs = {{graph_.AddNode(std::move(folded)), 0}};
    added.device = graph_.device(norm);
    const int32_t by = graph_.AddNode(std::move(added));
    graph_.Replace(norm, by,
                   std::vector<PlanGraph::Value>(graph_.output_types(norm).size(), {by, 0}));
  }

  KernelCache& kernels_;
  PlanGraph& graph_;
  RunStop stop_;
  // By node.
  std::vector<bool> other_outputs_;
  // The constants of which a convolution has a folded copy.
  internal::HashSet<int32_t> folded_filters_;
};

}  // namespace

absl::Status FoldBatchNorms(const PassContext& context, PlanGraph* graph) {
  if (!context.options.fold_batch_norms) return absl::OkStatus();
  return Folder(context, graph).Fold();
}

}  // namespace gradflow
