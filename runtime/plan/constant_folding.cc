// FoldConstants() (passes.h).
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/integer_kernels.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/node_kernel.h"
#include "gradflow/graph/tables.h"
#include "gradflow/runtime/plan/op_traits.h"
#include "gradflow/runtime/plan/passes.h"

namespace gradflow {
namespace {

// Allocates from the system, up to a limit in bytes.
class LimitedAllocator final : public Allocator {
 public:
  explicit LimitedAllocator(int64_t limit) : left_(limit) {}

  void* Allocate(size_t bytes) override {
    if (!Reserve(bytes)) return nullptr;
    void* const block = SystemAllocator()->Allocate(bytes);
    if (block == nullptr) Release(bytes);
    return block;
  }
  void Deallocate(void* block, size_t bytes) override {
    SystemAllocator()->Deallocate(block, bytes);
    Release(bytes);
  }
  bool Reserve(size_t bytes) override {
    // No limit allows more, and larger sums could overflow.
    constexpr size_t kMax = size_t{1} << 60;
    if (bytes > kMax) return false;
    if (left_.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed) >=
        static_cast<int64_t>(bytes)) {
      return true;
    }
    Release(bytes);
    return false;
  }
  void Release(size_t bytes) override {
    left_.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  }

 private:
  std::atomic<int64_t> left_;
};

// Limits on the work of folding a plan, in units of about a nanosecond. Nodes beyond the limit are
// left to the runs, which can be stopped. Work counts nodes, bytes of inputs and outputs, and loop
// blocks. It is never timed, so a plan does not depend on the load of the machine.
constexpr int64_t kMaxWork = PlanBudget::kMaxFoldingWork;
constexpr int64_t kNodeWork = 1'000;
// BlockSizeForCost() aims at blocks of this work. Loops call StopToken::Check() before each block.
constexpr int64_t kBlockWork = 20'000;

// The work of matrix libraries, which do not check whether to stop. Their time grows with the cube
// of the matrix size.
int64_t LibraryWork(const Node& node, absl::Span<const Tensor> inputs) {
  if (node.op().api().group != "linalg_ops") return 0;
  double work = 0;
  for (const Tensor& input : inputs) {
    work += std::pow(static_cast<double>(input.NumElements()), 1.5);
  }
  return static_cast<int64_t>(std::min(work, 2.0 * kMaxWork));
}

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
        limits_(context.limits),
        kernels_(*context.kernels),
        graph_(*graph),
        uses_cache_(!context.options.fold_batch_norms && !context.options.integer_inference &&
                    !graph->is_loop()),
        kind_(graph->num_nodes(), kVariable),
        allocator_(std::make_shared<LimitedAllocator>(max_bytes_ - FoldedBytes())),
        stop_(limits_.cancelled, limits_.closed),
        work_left_(context.budget->folding_work) {}

  // Returns an error if the run is over and a node was stopped.
  absl::Status Fold() {
    for (const int32_t i : graph_.order()) {
      if (!stopped_.ok() || stop_.IsStopped() || work_left_ <= 0) break;
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
    const int64_t work_before = work_left_;
    const absl::Status status = CallSafely([&]() -> absl::Status {
      absl::InlinedVector<Tensor, 4> inputs;
      int64_t bytes = 0;
      for (int e = 0; e < graph_.num_inputs(i); ++e) {
        GRADFLOW_ASSIGN_OR_RETURN(const Tensor input, ValueOf(graph_.edge(i, e)));
        bytes += static_cast<int64_t>(input.TotalBytes());
        inputs.push_back(input);
      }
      if (bytes > max_bytes_) return errors::ResourceExhausted("inputs too large to fold");
      work_left_ -= kNodeWork + bytes + LibraryWork(node, inputs);
      if (work_left_ <= 0) return errors::ResourceExhausted("takes too much work to fold");
      GRADFLOW_ASSIGN_OR_RETURN(const OpKernel* const kernel, kernels_.Get(graph_.site(i), node));
      return Run(node, *kernel, absl::MakeSpan(inputs), &outputs);
    });
    if (!status.ok()) {
      if (stop_.cancelled() || stop_.closed()) {
        // A stop is not a fault of the node.
        stopped_ = errors::Prefix(
            absl::StrCat(PlanNodePrefix(graph_.origin_at_site(i)), "stopped, since "),
            WhyStopped(stop_, limits_));
      } else if (UsesCache(i) &&
                 (!absl::IsResourceExhausted(status) || work_before - work_left_ > kMaxWork / 2)) {
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

  absl::Status Run(const Node& node, const OpKernel& kernel, absl::Span<Tensor> inputs,
                   std::vector<Tensor>* outputs) {
    StopToken stop(limits_.cancelled, limits_.closed,
                   StopToken::MaxChecks{work_left_ / kBlockWork});
    RunContext run;
    run.stop = &stop;
    run.max_loop_threads = 1;
    run.allocator = &allocator_;
    const absl::Status status = internal::RunNodeKernel(node, kernel, inputs, run, outputs);
    const int64_t checks = work_left_ / kBlockWork - stop.checks_left();
    work_left_ -= checks * kBlockWork;
    // Loops of a stopped kernel may have skipped blocks, so its status means nothing.
    if (stop.checks_left() < 0) {
      work_left_ = 0;
      return errors::ResourceExhausted("takes too much work to fold");
    }
    GRADFLOW_RETURN_IF_ERROR(status);
    GRADFLOW_RETURN_IF_ERROR(CheckStop(&stop_));
    int64_t bytes = 0;
    for (const Tensor& output : *outputs) bytes += static_cast<int64_t>(output.TotalBytes());
    // Includes memory that does not come from the allocator.
    if (bytes > max_bytes_) return errors::ResourceExhausted("outputs too large to fold");
    work_left_ -= bytes;
    return absl::OkStatus();
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
    GRADFLOW_RETURN_IF_ERROR(Run(node, *kernel, {}, &outputs));
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
  const RunLimits& limits_;
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
  const std::shared_ptr<Allocator> allocator_;
  // Stops when the run that waits for the plan is cancelled.
  StopToken stop_;
  int64_t& work_left_;
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
