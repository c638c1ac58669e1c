// FuseSteps: convolutions and matrix products apply the elementwise nodes that follow them to each
// part of the result while the part is in a cache.
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/fused_steps.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/tables.h"
#include "gradflow/runtime/plan/fused_kernel.h"
#include "gradflow/runtime/plan/passes.h"
#include "gradflow/runtime/plan/plan_rewriter.h"

namespace gradflow {
namespace {

// Casts a kernel to T, or returns null. Remembers the last class, because consecutive kernels often
// have the same class.
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
  Fuser(const PassContext& context, PlanGraph* graph) : rewriter_(context, graph), graph_(*graph) {}

  absl::Status Fuse() {
    GRADFLOW_RETURN_IF_ERROR(FindKernels());
    std::vector<int32_t> heads;
    for (const int32_t node : rewriter_.order()) {
      if (heads_[node]) heads.push_back(node);
    }
    // Visits heads in reverse order: if an addition has several convolutions as inputs, it is fused
    // with the last one, and its other input is then ready.
    for (size_t i = heads.size(); i-- > 0;) FuseFrom(heads[i]);
    return graph_.Prune();
  }

 private:
  // Makes the kernels in the order of the plan, like LayOutPlan(). Kernels of constants come before
  // the kernels of their readers, which may keep the constants' values.
  absl::Status FindKernels() {
    kernel_of_.resize(graph_.num_nodes());
    heads_.resize(graph_.num_nodes());
    Cast<FusibleKernel> fusible;
    for (const int32_t node : rewriter_.order()) {
      GRADFLOW_RETURN_IF_ERROR(rewriter_.CheckStop(node));
      GRADFLOW_ASSIGN_OR_RETURN(kernel_of_[node], rewriter_.KernelOf(node));
      if (rewriter_.OnlyReader(node) < 0 || graph_.output_types(node).size() != 1) continue;
      const FusibleKernel* const head = fusible(kernel_of_[node]);
      heads_[node] = head != nullptr && head->CanBeFused();
    }
    return absl::OkStatus();
  }

  void FuseFrom(int32_t head) {
    std::vector<int32_t> chain = {head};
    std::vector<FusedKernel::Link> links(1);
    links[0].num_inputs = graph_.num_inputs(head);
    // Keeps loop blocks short, so that a run can be stopped.
    constexpr size_t kMaxLinks = 16;
    for (int32_t node = head; chain.size() < kMaxLinks;) {
      const int32_t next = rewriter_.OnlyReader(node);
      if (next < 0 || taken_.count(next) > 0) break;
      // The next node must have a kernel, one output, and the same device.
      if (kernel_of_[next] == nullptr || !rewriter_.use(next).first_output ||
          graph_.device(next) != graph_.device(head)) {
        break;
      }
      const StepKernel* const step = dynamic_cast<const StepKernel*>(kernel_of_[next]);
      const int input = rewriter_.use(node).input;
      if (step == nullptr || !step->CanBeStep(input)) break;
      FusedKernel::Link link;
      link.step = step;
      link.input = input;
      link.num_inputs = graph_.num_inputs(next);
      links.push_back(link);
      chain.push_back(next);
      node = next;
    }
    if (chain.size() == 1) return;
    PlanGraph::NewNode fused =
        rewriter_.NewNodeFor(chain, absl::StrCat("Fused", rewriter_.OpOf(head)));
    for (size_t i = 0; i < chain.size(); ++i) {
      const int32_t node = chain[i];
      taken_.insert(node);
      links[i].kernel = kernel_of_[node];
      links[i].owner = graph_.kernel(node);
      for (const DataType dtype : graph_.output_types(node)) {
        links[i].output_types.push_back(BaseType(dtype));
      }
      for (int e = 0; e < graph_.num_inputs(node); ++e) {
        if (e != links[i].input) fused.inputs.push_back(graph_.edge(node, e));
      }
    }
    fused.kernel = std::make_shared<FusedKernel>(
        dynamic_cast<const FusibleKernel*>(kernel_of_[head]), std::move(links));
    rewriter_.Replace(chain.back(), std::move(fused));
  }

  PlanRewriter rewriter_;
  PlanGraph& graph_;
  // The kernels of pure nodes, indexed by node.
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
