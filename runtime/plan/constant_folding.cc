#include <atomic>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/run_stop.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/runtime/plan/optimize.h"

namespace gradflow {
namespace {

// Allocates from the system, up to a limit.
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
    // No limit allows more, and a sum could overflow.
    constexpr size_t kMost = size_t{1} << 60;
    if (bytes > kMost) return false;
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

// The time limit of folding. What takes longer is left to the runs, which can be stopped.
constexpr std::chrono::milliseconds kMaxTime(300);

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

FoldedNode MakeFolded(std::vector<Tensor> outputs) {
  FoldedNode folded;
  for (const Tensor& output : outputs) folded.bytes += static_cast<int64_t>(output.TotalBytes());
  folded.kernel = std::make_shared<KnownKernel>(std::move(outputs));
  return folded;
}

bool IsString(DataType dtype) { return BaseType(dtype) == DT_STRING; }

class ConstantFolder {
 public:
  ConstantFolder(int64_t max_bytes, const RunLimits& limits, KernelCache* kernels, PlanNodes* nodes)
      : max_bytes_(max_bytes),
        limits_(limits),
        kernels_(*kernels),
        nodes_(*nodes),
        kind_(nodes->order.size(), kVariable),
        allocator_(std::make_shared<LimitedAllocator>(max_bytes - BytesOf(*nodes))),
        stop_(limits.cancelled, limits.closed, RunStop::Clock::now() + kMaxTime) {}

  // Returns an error if the run is over and a node was stopped.
  absl::Status Fold() {
    for (size_t i = 0; i < kind_.size() && stopped_.ok() && !stop_.IsStopped(); ++i) {
      const Node& node = *nodes_.order[i];
      if (nodes_.ConstantOf(node) != nullptr) {
        kind_[i] = kConst;
      } else if (node.IsConstant()) {
        kind_[i] = node.sources().empty() ? kConst : kVariable;
      } else if (MayBeFolded(node) && Evaluate(node)) {
        kind_[i] = kFolded;
      }
    }
    // Done also when stopped: the values so far are complete, and other plans need not compute them
    // again.
    if (!values_.empty()) RemoveUnused();
    return stopped_;
  }

 private:
  enum Kind : uint8_t { kVariable, kConst, kFolded };

  // Returns the bytes of nodes that were folded for other plans and are used here.
  static int64_t BytesOf(const PlanNodes& nodes) {
    int64_t bytes = 0;
    for (const auto& [id, folded] : nodes.constants) bytes += folded.bytes;
    return bytes;
  }

  // Returns true if everything that the node needs is known.
  bool MayBeFolded(const Node& node) const {
    if (node.num_inputs() == 0 || !kernels_.MayBeFolded(node)) return false;
    for (const Node::Source& source : node.sources()) {
      // False also if a feed only prunes a control input: a plan without this feed must not find
      // the node in the cache.
      if (nodes_.IsCut(source) || kind_[nodes_.PositionOf(*source.node)] == kVariable) {
        return false;
      }
    }
    for (const DataType dtype : node.output_types()) {
      if (IsString(dtype)) return false;
    }
    return IsPure(node);
  }

  bool Evaluate(const Node& node) {
    std::vector<Tensor> outputs;
    const absl::Status status = CallSafely([&]() -> absl::Status {
      absl::InlinedVector<Tensor, 4> inputs;
      int64_t bytes = 0;
      for (int i = 0; i < node.num_inputs(); ++i) {
        GRADFLOW_ASSIGN_OR_RETURN(const Tensor input, ValueOf(node.sources()[i]));
        bytes += static_cast<int64_t>(input.TotalBytes());
        inputs.push_back(input);
      }
      if (bytes > max_bytes_) return errors::ResourceExhausted("inputs too large to fold");
      GRADFLOW_ASSIGN_OR_RETURN(const OpKernel* const kernel, kernels_.Get(node));
      return Run(node, *kernel, absl::MakeSpan(inputs), &outputs);
    });
    if (!status.ok()) {
      if (stop_.cancelled() || stop_.closed()) {
        // A stop is not a fault of the node.
        stopped_ = errors::Prefix(absl::StrCat(internal::NodePrefix(node.def()), "stopped, since "),
                                  WhyStopped(stop_, limits_));
      } else if (!absl::IsResourceExhausted(status)) {
        // Another plan may have more memory to spare.
        kernels_.NeverFold(node);
      }
      return false;
    }
    if (uses_.empty()) CountUses();
    values_.emplace(node.id(), std::move(outputs));
    for (const Node::Source& source : node.sources()) {
      if (!nodes_.IsCut(source)) DropUse(*source.node);
    }
    return true;
  }

  absl::Status Run(const Node& node, const OpKernel& kernel, absl::Span<Tensor> inputs,
                   std::vector<Tensor>* outputs) {
    DataTypeVector types;
    for (const DataType dtype : node.output_types()) types.push_back(BaseType(dtype));
    outputs->resize(types.size());
    RunContext run;
    run.stop = &stop_;
    run.max_loop_threads = 1;
    run.allocator = &allocator_;
    KernelContext context(inputs, absl::MakeSpan(*outputs), types, run);
    GRADFLOW_RETURN_IF_ERROR(kernel.Compute(context));
    // Loops of a stopped kernel may have skipped blocks.
    if (stop_.Check()) return absl::DeadlineExceededError("takes too long to fold");
    int64_t bytes = 0;
    for (size_t i = 0; i < types.size(); ++i) {
      const Tensor& output = (*outputs)[i];
      if (output.dtype() != types[i] || !output.IsInitialized()) {
        return errors::Internal("output ", i, " is not as declared");
      }
      bytes += static_cast<int64_t>(output.TotalBytes());
    }
    // Counts memory that does not come from the allocator, too.
    if (bytes > max_bytes_) return errors::ResourceExhausted("outputs too large to fold");
    return absl::OkStatus();
  }

  absl::StatusOr<Tensor> ValueOf(const Node::Source& source) {
    const Node& node = *nodes_.order[nodes_.PositionOf(*source.node)];
    if (const auto it = values_.find(node.id()); it != values_.end()) {
      return it->second[source.output];
    }
    const OpKernel* kernel = nodes_.ConstantOf(node);
    if (kernel == nullptr) {
      GRADFLOW_ASSIGN_OR_RETURN(kernel, kernels_.Get(node));
    }
    std::vector<Tensor> outputs;
    GRADFLOW_RETURN_IF_ERROR(Run(node, *kernel, {}, &outputs));
    return std::move(outputs[source.output]);
  }

  // Counts the edges that leave each node, plus one if it is a root.
  void CountUses() {
    uses_.resize(nodes_.order.size());
    for (const Node* root : nodes_.roots) ++uses_[nodes_.PositionOf(*root)];
    for (const Node* node : nodes_.order) {
      for (const Node::Source& source : nodes_.SourcesOf(*node)) {
        if (!nodes_.IsCut(source)) ++uses_[nodes_.PositionOf(*source.node)];
      }
    }
  }

  // Drops a use of `node`, one of whose readers has been folded.
  void DropUse(const Node& node) {
    const int32_t position = nodes_.PositionOf(node);
    if (--uses_[position] > 0) return;
    const auto it = values_.find(nodes_.order[position]->id());
    if (it != values_.end()) it->second = {};
  }

  // Prunes nodes that only served to compute values that are known now, and replaces folded nodes
  // by their values.
  void RemoveUnused() {
    std::vector<int32_t> moved(nodes_.order.size());
    int32_t end = 0;
    for (size_t i = 0; i < nodes_.order.size(); ++i) {
      const Node* const node = nodes_.order[i];
      moved[i] = end;
      if (kind_[i] != kVariable && uses_[i] == 0) {
        nodes_.constants.erase(node->id());
        continue;
      }
      if (kind_[i] == kFolded) {
        const FoldedNode folded = MakeFolded(std::move(values_.find(node->id())->second));
        kernels_.AddFolded(*node, folded, max_bytes_);
        nodes_.constants.emplace(node->id(), folded);
      }
      nodes_.order[end++] = node;
    }
    nodes_.order.resize(end);
    for (int32_t& position : nodes_.position) {
      if (position >= 0) position = moved[position];
    }
  }

  const int64_t max_bytes_;
  const RunLimits& limits_;
  KernelCache& kernels_;
  PlanNodes& nodes_;
  // By position.
  std::vector<Kind> kind_;
  // By position; empty until a node is folded. A folded node uses nothing.
  std::vector<int32_t> uses_;
  // By node id: the outputs of folded nodes, as long as they are used.
  absl::flat_hash_map<int, std::vector<Tensor>> values_;
  const std::shared_ptr<Allocator> allocator_;
  // Stops when the run that waits for the plan is cancelled, or after kMaxTime of folding.
  RunStop stop_;
  absl::Status stopped_;
};

}  // namespace

absl::Status FoldConstants(int64_t max_bytes, const RunLimits& limits, KernelCache* kernels,
                           PlanNodes* nodes) {
  if (max_bytes <= 0) return absl::OkStatus();
  return ConstantFolder(max_bytes, limits, kernels, nodes).Fold();
}

}  // namespace gradflow
