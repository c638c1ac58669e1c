// FoldConstants() (passes.h).
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/integer_kernels.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/tables.h"
#include "gradflow/runtime/plan/constant_runner.h"
#include "gradflow/runtime/plan/op_traits.h"
#include "gradflow/runtime/plan/passes.h"

namespace gradflow {
namespace {

// Replaces the kernel of a node whose outputs are known.
class KnownKernel final : public OpKernel {
 public:
  explicit KnownKernel(std::vector<Tensor> outputs) : outputs_(std::move(outputs)) {}
  absl::Status Compute(KernelContext& ctx) const override {
    for (size_t i = 0; i < outputs_.size(); ++i) ctx.set_output(static_cast<int>(i), outputs_[i]);
    return absl::OkStatus();
  }
  bool IsCheap() const override { return true; }

 private:
  const std::vector<Tensor> outputs_;
};

// Strings and lists may take far more memory than their tensors.
bool IsStringOrVariant(DataType dtype) {
  return BaseType(dtype) == DT_STRING || BaseType(dtype) == DT_VARIANT;
}

class ConstantFolder {
 public:
  // Does not fold nodes with a QuantizingKernel if `keeps_quantizers` is true.
  ConstantFolder(const PassContext& context, PlanGraph* graph, bool keeps_quantizers)
      : keeps_quantizers_(keeps_quantizers),
        max_bytes_(context.budget->folded_bytes),
        budget_(*context.budget),
        kernels_(*context.kernels),
        graph_(*graph),
        uses_cache_(!context.options.fold_batch_norms && !context.options.integer_inference &&
                    !graph->is_loop()),
        kind_(graph->num_nodes(), kVariable),
        runner_(context, max_bytes_, FoldedBytes()) {}

  // Returns an error if the run is over and a node was stopped.
  absl::Status Fold() {
    for (const int32_t i : graph_.order()) {
      if (!stopped_.ok() || runner_.is_stopped() || runner_.work_left() <= 0) break;
      if (graph_.has_known_value(i)) {
        kind_[i] = kConst;
      } else if (!graph_.is_original(i)) {
        continue;
      } else if (graph_.origin(i).IsConstant()) {
        kind_[i] = graph_.num_edges(i) == 0 ? kConst : kVariable;
      } else if (MayBeFolded(i) && Evaluate(i)) {
        kind_[i] = kFolded;
      }
    }
    // Also runs after a stop: the values so far are complete, and other plans need not compute them
    // again.
    for (const int32_t i : graph_.order()) {
      // Values that only other folded nodes read are dropped with their nodes.
      if (kind_[i] != kFolded || uses_[i] == 0) continue;
      const FoldedNode folded = MakeFolded(std::move(values_.find(i)->second));
      if (UsesCache(i)) kernels_.AddFolded(graph_.origin(i), folded, max_bytes_);
      budget_.folded_bytes -= folded.bytes;
      graph_.SetConstant(i, folded.kernel);
    }
    GRADFLOW_RETURN_IF_ERROR(graph_.Prune());
    return stopped_;
  }

 private:
  enum Kind : uint8_t { kVariable, kConst, kFolded };

  // The cache holds nodes of the session's graph, but no nodes of functions.
  bool UsesCache(int32_t node) const { return uses_cache_ && graph_.site(node) == nullptr; }

  // Returns the bytes of nodes that were folded for other plans and are used here.
  int64_t FoldedBytes() const {
    int64_t bytes = 0;
    for (const int32_t i : graph_.order()) {
      if (graph_.has_known_value(i) && graph_.site(i) == nullptr)
        bytes += kernels_.FindFolded(graph_.origin(i)).bytes;
    }
    return bytes;
  }

  // Returns true if the node is pure and not excluded, and everything that it needs is known.
  bool MayBeFolded(int32_t i) const {
    const Node& node = graph_.origin(i);
    // Folded values are in memory of the first device.
    if (graph_.device(i) != 0) return false;
    if (graph_.num_inputs(i) == 0 || (UsesCache(i) && !kernels_.MayBeFolded(node))) return false;
    for (int e = 0; e < graph_.num_edges(i); ++e) {
      const PlanGraph::Value source = graph_.edge(i, e);
      // A control input that a feed satisfies prevents folding: a plan without this feed must not
      // find the node in the cache.
      if (source.is_feed() || kind_[source.node] == kVariable) return false;
    }
    for (const DataType dtype : node.output_types()) {
      if (IsStringOrVariant(dtype)) return false;
    }
    if (!IsPure(node)) return false;
    if (!keeps_quantizers_) return true;
    const absl::StatusOr<const OpKernel*> kernel = kernels_.Get(graph_.site(i), node);
    return !kernel.ok() || dynamic_cast<const QuantizingKernel*>(*kernel) == nullptr;
  }

  // Computes a node. Returns false if it is left to the runs.
  bool Evaluate(int32_t i) {
    const Node& node = graph_.origin(i);
    std::vector<Tensor> outputs;
    const int64_t work_before = runner_.work_left();
    const absl::Status status = CallSafely([&]() -> absl::Status {
      absl::InlinedVector<Tensor, 4> inputs;
      for (int e = 0; e < graph_.num_inputs(i); ++e) {
        GRADFLOW_ASSIGN_OR_RETURN(inputs.emplace_back(), ValueOf(graph_.edge(i, e)));
      }
      GRADFLOW_ASSIGN_OR_RETURN(const OpKernel* const kernel, kernels_.Get(graph_.site(i), node));
      return runner_.Run(node, *kernel, absl::MakeSpan(inputs), &outputs);
    });
    if (!status.ok()) {
      if (runner_.is_stopped()) {
        // A stop is not a fault of the node.
        stopped_ = runner_.StopError(graph_.origin_at_site(i));
      } else if (UsesCache(i) &&
                 (!absl::IsResourceExhausted(status) ||
                  work_before - runner_.work_left() > PlanBudget::kMaxFoldingWork / 2)) {
        // A node that only exceeded the remaining memory or work is not excluded, because another
        // plan may have more left.
        kernels_.NeverFold(node);
      }
      return false;
    }
    if (uses_.empty()) uses_ = graph_.CountUses();
    values_.emplace(i, std::move(outputs));
    for (int e = 0; e < graph_.num_edges(i); ++e) DropUse(graph_.edge(i, e).node);
    return true;
  }

  absl::StatusOr<Tensor> ValueOf(PlanGraph::Value value) {
    const auto it = values_.find(value.node);
    if (it != values_.end()) return it->second[value.output];
    const Node& node = graph_.origin(value.node);
    const OpKernel* kernel = graph_.kernel(value.node).get();
    if (kernel == nullptr) {
      GRADFLOW_ASSIGN_OR_RETURN(kernel, kernels_.Get(graph_.site(value.node), node));
    }
    std::vector<Tensor> outputs;
    GRADFLOW_RETURN_IF_ERROR(runner_.Run(node, *kernel, {}, &outputs));
    return std::move(outputs[value.output]);
  }

  // Drops one use of a node after one of its readers has been folded.
  void DropUse(int32_t node) {
    if (--uses_[node] > 0) return;
    const auto it = values_.find(node);
    if (it != values_.end()) it->second = {};
  }

  const bool keeps_quantizers_;
  const int64_t max_bytes_;
  PlanBudget& budget_;
  KernelCache& kernels_;
  PlanGraph& graph_;
  // False if folded constants decide the bits of results, because the plan must then not depend on
  // earlier plans. Also false in a loop.
  const bool uses_cache_;
  // Indexed by node.
  std::vector<Kind> kind_;
  // The number of uses of each node; empty until a node is folded. A folded node uses nothing.
  std::vector<int32_t> uses_;
  // The outputs of folded nodes that still have uses, keyed by node.
  internal::HashMap<int32_t, std::vector<Tensor>> values_;
  ConstantRunner runner_;
  absl::Status stopped_;
};

}  // namespace

FoldedNode MakeFolded(std::vector<Tensor> outputs) {
  FoldedNode folded;
  for (const Tensor& output : outputs) folded.bytes += static_cast<int64_t>(output.TotalBytes());
  folded.kernel = std::make_shared<KnownKernel>(std::move(outputs));
  return folded;
}

absl::Status FoldConstants(const PassContext& context, PlanGraph* graph) {
  if (context.budget->folded_bytes <= 0) return absl::OkStatus();
  return ConstantFolder(context, graph, context.options.integer_inference).Fold();
}

absl::Status FoldQuantizedConstants(const PassContext& context, PlanGraph* graph) {
  if (!context.options.integer_inference || context.budget->folded_bytes <= 0) {
    return absl::OkStatus();
  }
  return ConstantFolder(context, graph, /*keeps_quantizers=*/false).Fold();
}

}  // namespace gradflow
