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
#include "gradflow/runtime/optimize.h"

namespace gradflow {
namespace {

// The system's memory, up to a limit.
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
    // More than that no limit allows, and a sum could overflow.
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

// What takes longer is left to the runs, which can be stopped.
constexpr std::chrono::milliseconds kMaxTime(300);

// Stands for the kernel of a node whose outputs are known.
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

  // Not OK if a node was stopped since the run is over.
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
    // Also when stopped: those values are whole, and other plans need not wait for them again.
    if (!values_.empty()) RemoveUnused();
    return stopped_;
  }

 private:
  enum Kind : uint8_t { kVariable, kConst, kFolded };

  // Of what was folded for other plans, and is used here.
  static int64_t BytesOf(const PlanNodes& nodes) {
    int64_t bytes = 0;
    for (const auto& [id, folded] : nodes.constants) bytes += folded.bytes;
    return bytes;
  }

  // Whether all that it needs is known.
  bool MayBeFolded(const Node& node) const {
    if (node.num_inputs() == 0 || !kernels_.MayBeFolded(node)) return false;
    for (const Node::Source& source : node.sources()) {
      // Also if only its control input is cut: a plan without this feed has to find that missing.
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
        // Which says nothing of the node.
        stopped_ = errors::Prefix(absl::StrCat(internal::NodePrefix(node.def()), "stopped, since "),
                                  WhyStopped(stop_, limits_));
      } else if (!absl::IsResourceExhausted(status)) {
        // In another plan there may be more memory to spare.
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
    const ScopedLoopSettings serial({&stop_, 1});
    KernelContext context(inputs, absl::MakeSpan(*outputs), types, allocator_);
    GRADFLOW_RETURN_IF_ERROR(kernel.Compute(context));
    // Its loops may have skipped something then.
    if (stop_.Check()) return absl::DeadlineExceededError("takes too long to fold");
    int64_t bytes = 0;
    for (size_t i = 0; i < types.size(); ++i) {
      const Tensor& output = (*outputs)[i];
      if (output.dtype() != types[i] || !output.IsInitialized()) {
        return errors::Internal("output ", i, " is not as declared");
      }
      bytes += static_cast<int64_t>(output.TotalBytes());
    }
    // Memory that does not come from the allocator counts, too.
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

  // How many edges leave each node, and once more if it is a root.
  void CountUses() {
    uses_.resize(nodes_.order.size());
    for (const Node* root : nodes_.roots) ++uses_[nodes_.PositionOf(*root)];
    for (const Node* node : nodes_.order) {
      for (const Node::Source& source : nodes_.SourcesOf(*node)) {
        if (!nodes_.IsCut(source)) ++uses_[nodes_.PositionOf(*source.node)];
      }
    }
  }

  // A node that needed `node` has been folded.
  void DropUse(const Node& node) {
    const int32_t position = nodes_.PositionOf(node);
    if (--uses_[position] > 0) return;
    const auto it = values_.find(nodes_.order[position]->id());
    if (it != values_.end()) it->second = {};
  }

  // Takes out what only served to compute what is known now, and puts values in their place.
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
  // By position; empty until a node is folded. A node that has been folded uses nothing.
  std::vector<int32_t> uses_;
  // By node id, of folded nodes: their outputs, for as long as they are used.
  absl::flat_hash_map<int, std::vector<Tensor>> values_;
  const std::shared_ptr<Allocator> allocator_;
  // When the run is cancelled that waits for the plan, or folding has taken long enough.
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
