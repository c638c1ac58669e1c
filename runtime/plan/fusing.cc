// FuseSteps: convolutions and products apply the elementwise nodes that follow them to each part of
// their result, while that is in a cache.
//
// The fused node holds the kernels of all its nodes. Where a run's shapes do not suit, or an input
// is not valid, it runs them one by one, with the results and errors of the nodes.
#include <algorithm>
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/fused_steps.h"
#include "gradflow/core/run_stop.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/tables.h"
#include "gradflow/runtime/plan/op_traits.h"
#include "gradflow/runtime/plan/passes.h"

namespace gradflow {
namespace {

// The number of elements that all steps process before the next ones; they fit the L1 cache.
constexpr int64_t kElementsAtOnce = 4096;

// A node of a chain.
struct Link {
  const OpKernel* kernel = nullptr;
  // Keeps a kernel that another pass has made; otherwise null.
  std::shared_ptr<const OpKernel> owner;
  // Null for the first.
  const StepKernel* step = nullptr;
  // The input that is the output of the node before it.
  int input = -1;
  int num_inputs = 0;
  // Index of its first other input among those of the fused node.
  int first_input = 0;
  DataTypeVector output_types;
};

class FusedKernel final : public OpKernel {
 public:
  FusedKernel(const FusibleKernel* head, std::vector<Link> links)
      : head_(head), links_(std::move(links)) {
    for (size_t i = 1; i < links_.size(); ++i) {
      const Link& before = links_[i - 1];
      links_[i].first_input = before.first_input + before.num_inputs - (i > 1 ? 1 : 0);
      num_step_inputs_ += static_cast<size_t>(links_[i].num_inputs);
    }
  }

  absl::Status Compute(KernelContext& ctx) const override {
    Inputs inputs;
    AppendInputs(ctx, links_[0], &inputs);
    Steps steps(*this, ctx);
    KernelContext head_ctx = ctx.WithInputs(absl::MakeSpan(inputs));
    bool done = false;
    GRADFLOW_RETURN_IF_ERROR(head_->ComputeFused(head_ctx, &steps, &done));
    return done ? absl::OkStatus() : ComputeOneByOne(ctx);
  }

 private:
  // Borrowed inputs of one link or more.
  using Inputs = absl::InlinedVector<Tensor, 8>;

  // Appends the inputs of a link. The input that is the previous link's output is unset.
  static void AppendInputs(const KernelContext& ctx, const Link& link, Inputs* inputs) {
    int next = link.first_input;
    for (int i = 0; i < link.num_inputs; ++i) {
      if (i == link.input) {
        inputs->emplace_back(Tensor::Unset{});
      } else {
        inputs->emplace_back(Tensor::Borrow(), ctx.input(next++));
      }
    }
  }

  // The steps of one run.
  class Steps final : public FusedSteps {
   public:
    Steps(const FusedKernel& kernel, const KernelContext& ctx) : kernel_(kernel), ctx_(ctx) {}

    bool Prepare(const TensorShape& shape) override {
      // Steps may borrow the tensors where they are.
      inputs_.reserve(kernel_.num_step_inputs_);
      for (size_t i = 1; i < kernel_.links_.size(); ++i) {
        const Link& link = kernel_.links_[i];
        const size_t begin = inputs_.size();
        AppendInputs(ctx_, link, &inputs_);
        steps_.push_back(link.step->MakeStep(
            ctx_.run(), absl::MakeConstSpan(inputs_).subspan(begin), link.input, shape));
        if (steps_.back() == nullptr) return false;
      }
      return true;
    }

    void Apply(const ResultPart& part) const override {
      const int64_t rows =
          std::max<int64_t>(1, kElementsAtOnce / std::max<int64_t>(part.columns, 1));
      for (int64_t i = 0; i < part.rows; i += rows) {
        const ResultPart piece = {part.data + i * part.stride,   part.stride, part.row + i,
                                  std::min(rows, part.rows - i), part.column, part.columns};
        for (const std::unique_ptr<FusedStep>& step : steps_) step->Apply(piece);
      }
    }

   private:
    const FusedKernel& kernel_;
    const KernelContext& ctx_;
    // Tensors that the steps borrow, of all steps.
    Inputs inputs_;
    absl::InlinedVector<std::unique_ptr<FusedStep>, 8> steps_;
  };

  absl::Status ComputeOneByOne(KernelContext& ctx) const {
    Tensor result(Tensor::Unset{});
    for (size_t i = 0; i < links_.size(); ++i) {
      const Link& link = links_[i];
      Inputs inputs;
      AppendInputs(ctx, link, &inputs);
      if (i > 0) inputs[static_cast<size_t>(link.input)] = std::move(result);
      std::vector<Tensor> outputs(link.output_types.size(), Tensor(Tensor::Unset{}));
      KernelContext link_ctx(absl::MakeSpan(inputs), absl::MakeSpan(outputs), link.output_types,
                             ctx.run());
      GRADFLOW_RETURN_IF_ERROR(link.kernel->Compute(link_ctx));
      result = std::move(outputs[0]);
    }
    ctx.set_output(0, std::move(result));
    return absl::OkStatus();
  }

  const FusibleKernel* const head_;
  // Head first. The inputs of the fused node are those of the head, followed by those of each step
  // without the output of the step before it.
  std::vector<Link> links_;
  // The number of inputs of all links except the head.
  size_t num_step_inputs_ = 0;
};

// The interface T of kernels of one class, or null. Neighbors are often of one class.
template <typename T>
class Cast {
 public:
  const T* operator()(const OpKernel* kernel) {
    if (kernel == nullptr) return nullptr;
    const std::type_info& type = typeid(*kernel);
    if (last_ != nullptr && *last_ == type && !last_is_) return nullptr;
    const T* const result = dynamic_cast<const T*>(kernel);
    last_ = &type;
    last_is_ = result != nullptr;
    return result;
  }

 private:
  const std::type_info* last_ = nullptr;
  bool last_is_ = false;
};

class Fuser {
 public:
  Fuser(const PassContext& context, PlanGraph* graph)
      : kernels_(*context.kernels),
        graph_(*graph),
        limits_(context.limits),
        stop_(limits_.cancelled, limits_.closed) {}

  absl::Status Fuse() {
    uses_ = graph_.FindUses();
    GRADFLOW_RETURN_IF_ERROR(FindKernels());
    std::vector<int32_t> heads;
    for (const int32_t node : graph_.order()) {
      if (heads_[node]) heads.push_back(node);
    }
    // Visits heads in reverse order: if an addition has several convolutions as inputs, it is fused
    // with the last one, whose other input is then ready.
    for (size_t i = heads.size(); i-- > 0;) FuseFrom(heads[i]);
    return graph_.Prune();
  }

 private:
  // Makes the kernels in the order of the plan, as the layout does. Kernels of constants precede
  // those of their readers, which may keep the constants' values.
  absl::Status FindKernels() {
    kernel_of_.resize(graph_.num_nodes());
    heads_.resize(graph_.num_nodes());
    Cast<FusibleKernel> fusible;
    for (const int32_t node : graph_.order()) {
      if (stop_.Check()) {
        const std::string prefix = PlanNodePrefix(graph_.origin(node), graph_.label(node));
        return errors::Prefix(absl::StrCat(prefix, "not planned, since "),
                              WhyStopped(stop_, limits_));
      }
      if (graph_.has_known_value(node) || graph_.stateful(node)) continue;
      absl::StatusOr<const OpKernel*> kernel = graph_.kernel(node).get();
      if (*kernel == nullptr) kernel = kernels_.Get(graph_.origin(node));
      // The layout reports the error.
      if (!kernel.ok() || !IsPure(graph_.origin(node))) continue;
      kernel_of_[node] = *kernel;
      const PlanGraph::Use& use = uses_[node];
      if (use.count != 1 || use.input < 0 || graph_.output_types(node).size() != 1) continue;
      const FusibleKernel* const head = fusible(*kernel);
      heads_[node] = head != nullptr && head->CanBeFused();
    }
    return absl::OkStatus();
  }

  void FuseFrom(int32_t head) {
    std::vector<int32_t> chain = {head};
    std::vector<Link> links(1);
    links[0].num_inputs = graph_.num_inputs(head);
    // Blocks of loops stay short, so that a run can be stopped.
    constexpr size_t kMaxLinks = 16;
    for (int32_t node = head; chain.size() < kMaxLinks;) {
      const PlanGraph::Use& use = uses_[node];
      const int32_t next = use.reader;
      if (use.count != 1 || use.input < 0 || !use.first_output || taken_.count(next) > 0) break;
      // The next node must have a kernel, one output, and the same device.
      if (kernel_of_[next] == nullptr || !uses_[next].first_output ||
          graph_.device(next) != graph_.device(head)) {
        break;
      }
      const StepKernel* const step = dynamic_cast<const StepKernel*>(kernel_of_[next]);
      if (step == nullptr || !step->CanBeStep(use.input)) break;
      Link link;
      link.step = step;
      link.input = use.input;
      link.num_inputs = graph_.num_inputs(next);
      links.push_back(link);
      chain.push_back(next);
      node = next;
    }
    if (chain.size() == 1) return;
    PlanGraph::NewNode fused;
    for (size_t i = 0; i < chain.size(); ++i) {
      const int32_t node = chain[i];
      taken_.insert(node);
      links[i].kernel = kernel_of_[node];
      links[i].owner = graph_.kernel(node);
      for (const DataType dtype : graph_.output_types(node)) {
        links[i].output_types.push_back(BaseType(dtype));
      }
      if (const PlanNodeLabel* const label = graph_.label(node)) {
        fused.label.origins.insert(fused.label.origins.end(), label->origins.begin(),
                                   label->origins.end());
      } else {
        fused.label.origins.push_back(&graph_.origin(node));
      }
      for (int e = 0; e < graph_.num_edges(node); ++e) {
        const PlanGraph::Value value = graph_.edge(node, e);
        if (e < graph_.num_inputs(node)) {
          if (e != links[i].input) fused.inputs.push_back(value);
        } else if (!value.is_feed()) {
          fused.control_inputs.push_back(value.node);
        }
      }
    }
    const int32_t last = chain.back();
    fused.label.name = graph_.origin(last).name();
    const PlanNodeLabel* const label = graph_.label(head);
    fused.label.op =
        absl::StrCat("Fused", label == nullptr ? graph_.origin(head).type_string() : label->op);
    fused.output_types = {DT_FLOAT};
    fused.device = graph_.device(head);
    fused.kernel = std::make_shared<FusedKernel>(
        dynamic_cast<const FusibleKernel*>(kernel_of_[head]), std::move(links));
    const int32_t added = graph_.AddNode(std::move(fused));
    std::vector<PlanGraph::Value> outputs(graph_.output_types(last).size(), {added, 0});
    graph_.Replace(last, added, std::move(outputs));
  }

  KernelCache& kernels_;
  PlanGraph& graph_;
  const RunLimits& limits_;
  RunStop stop_;
  // By node.
  std::vector<PlanGraph::Use> uses_;
  // The kernels of pure nodes.
  std::vector<const OpKernel*> kernel_of_;
  std::vector<bool> heads_;
  // The nodes of chains.
  internal::HashSet<int32_t> taken_;
};

}  // namespace

absl::Status FuseSteps(const PassContext& context, PlanGraph* graph) {
  if (!context.options.fuse) return absl::OkStatus();
  return Fuser(context, graph).Fuse();
}

}  // namespace gradflow
