// ResolveReferences() (passes.h).
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/resource_handle.h"
#include "gradflow/core/status.h"
#include "gradflow/core/variable.h"
#include "gradflow/graph/control_flow.h"
#include "gradflow/graph/node.h"
#include "gradflow/runtime/plan/deadness.h"
#include "gradflow/runtime/plan/passes.h"
#include "gradflow/runtime/plan/wait_kernel.h"

namespace gradflow {
namespace {

// Returns the value of the variable that its input refers to.
class ReadKernel final : public OpKernel {
 public:
  explicit ReadKernel(DataType dtype) : dtype_(dtype) {}
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(Tensor value, ReadVariable(ctx, 0, dtype_));
    ctx.set_output(0, std::move(value));
    return absl::OkStatus();
  }
  bool IsCheap() const override { return true; }

 private:
  const DataType dtype_;
};

// A node reads the value of a variable when its other inputs are ready, so that it sees their
// writes. The added read therefore waits for a barrier, a node without outputs that waits for these
// inputs.
class References {
 public:
  explicit References(PlanGraph* graph) : graph_(*graph) {}

  absl::Status Resolve() {
    const int32_t num_nodes = graph_.num_nodes();
    bool any = false;
    for (int32_t node = 0; node < num_nodes && !any; ++node) {
      for (const DataType dtype : graph_.output_types(node)) any |= IsRefType(dtype);
    }
    for (const PlanGraph::Feed& feed : graph_.feeds()) any |= IsRefType(feed.dtype);
    if (!any) return absl::OkStatus();
    if (FetchesReference()) maybe_dead_ = FindMaybeDead(graph_);
    for (int32_t node = 0; node < num_nodes; ++node) {
      // Skips nodes that a pass has added: loops take references, and Wait nodes have no data
      // inputs.
      if (graph_.label(node) != nullptr) continue;
      // The read of a Merge's input gets no barrier, which would also wait for the branches that
      // are not taken, and be dead.
      const bool is_merge = ControlFlowOpOf(graph_.origin(node)) == ControlFlowOp::kMerge;
      int32_t barrier = kNoBarrier;
      for (int i = 0; i < graph_.num_inputs(node); ++i) {
        const PlanGraph::Value source = graph_.edge(node, i);
        if (graph_.origin(node).takes_reference(i)) {
          if (source.is_feed() && !IsReference(source)) {
            return errors::InvalidArgument(
                PlanNodePrefix(graph_.origin_at_site(node)), "input ", i,
                " must be a reference to a variable, but is fed a value");
          }
          continue;
        }
        if (!IsReference(source)) continue;
        if (barrier == kNoBarrier && graph_.num_edges(node) > 1 && !is_merge) {
          barrier = AddBarrier(node);
        }
        graph_.SetEdge(node, i, AddRead(source, graph_.origin_at_site(node), barrier));
      }
    }
    ReadFetches();
    return graph_.Prune();
  }

 private:
  static constexpr int32_t kNoBarrier = -1;

  bool IsReference(PlanGraph::Value value) const {
    if (value.is_control()) return false;
    return IsRefType(value.is_feed() ? graph_.feeds()[value.output].dtype
                                     : graph_.output_types(value.node)[value.output]);
  }

  // Adds a read for each fetched reference. In TensorFlow, a fetched reference shares the memory of
  // the variable, so that the caller sees the updates of all other fetches and targets. The reads
  // therefore wait for all fetches and targets. They do not wait for nodes that may be dead,
  // because they would be dead too.
  void ReadFetches() {
    const std::vector<PlanGraph::Value> roots(graph_.roots().begin(), graph_.roots().end());
    int32_t barrier = kNoBarrier;
    for (int i = 0; i < graph_.num_fetches(); ++i) {
      if (!IsReference(roots[i]) || graph_.keeps_reference(i)) continue;
      if (barrier == kNoBarrier && roots.size() > 1) {
        barrier = AddBarrierOfRoots(roots, roots[i]);
      }
      graph_.SetRoot(i, AddRead(roots[i], graph_.origin_at_site(roots[i].node), barrier));
    }
  }

  bool FetchesReference() const {
    for (int i = 0; i < graph_.num_fetches(); ++i) {
      if (IsReference(graph_.roots()[i]) && !graph_.keeps_reference(i)) return true;
    }
    return false;
  }

  bool MayBeDead(int32_t node) const {
    return static_cast<size_t>(node) < maybe_dead_.size() && maybe_dead_[node];
  }

  // Adds a node that ends when all fetches and targets that always run are ready.
  int32_t AddBarrierOfRoots(absl::Span<const PlanGraph::Value> roots, PlanGraph::Value fetch) {
    PlanGraph::NewNode barrier = NewBarrier(graph_.origin_at_site(fetch.node));
    barrier.device = graph_.device(fetch.node);
    for (const PlanGraph::Value root : roots) {
      const PlanGraph::Value value = graph_.Resolve(root);
      if (!value.is_feed() && !MayBeDead(value.node)) barrier.control_inputs.push_back(value.node);
    }
    return graph_.AddNode(std::move(barrier));
  }

  static PlanGraph::NewNode NewBarrier(const PlanOrigin& origin) {
    PlanGraph::NewNode barrier;
    barrier.label.name = origin.name();
    barrier.label.op = "Wait";
    barrier.label.origins = {origin};
    barrier.kernel = std::make_shared<WaitKernel>();
    return barrier;
  }

  // Adds a node that ends when all data and control inputs of `reader` are ready. If each read
  // waited for the inputs itself, the number of edges would be quadratic.
  // REQUIRES: no edge of `reader` is a read yet
  int32_t AddBarrier(int32_t reader) {
    PlanGraph::NewNode barrier = NewBarrier(graph_.origin_at_site(reader));
    barrier.device = graph_.device(reader);
    for (int e = 0; e < graph_.num_edges(reader); ++e) {
      const PlanGraph::Value input = graph_.edge(reader, e);
      if (input.is_feed()) continue;
      // An output of a Switch may be dead although the Switch has run.
      if (!input.is_control() && graph_.label(input.node) == nullptr &&
          ControlFlowOpOf(graph_.origin(input.node)) == ControlFlowOp::kSwitch) {
        barrier.inputs.push_back(input);
      } else {
        barrier.control_inputs.push_back(input.node);
      }
    }
    return graph_.AddNode(std::move(barrier));
  }

  // Adds a node that reads the variable, after the barrier of its reader if there is one. Errors
  // name `reader` if a loop is fed the variable.
  PlanGraph::Value AddRead(PlanGraph::Value source, const PlanOrigin& reader, int32_t barrier) {
    const PlanOrigin variable = source.is_feed() ? reader : graph_.origin_at_site(source.node);
    const DataType dtype =
        BaseType(source.is_feed() ? graph_.feeds()[source.output].dtype
                                  : graph_.output_types(source.node)[source.output]);
    PlanGraph::NewNode read;
    read.label.name = variable.name();
    read.label.op = "Read";
    read.label.origins = {variable};
    read.kernel = std::make_shared<ReadKernel>(dtype);
    read.output_types = {dtype};
    read.inputs = {source};
    if (!source.is_feed()) read.device = graph_.device(source.node);
    if (barrier != kNoBarrier) read.control_inputs.push_back(barrier);
    return {graph_.AddNode(std::move(read)), 0};
  }

  PlanGraph& graph_;
  // Of the nodes before reads were added. Empty if no fetch is read or no node may be dead.
  std::vector<bool> maybe_dead_;
};

}  // namespace

absl::Status ResolveReferences(const PassContext&, PlanGraph* graph) {
  return References(graph).Resolve();
}

}  // namespace gradflow
