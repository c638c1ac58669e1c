// ResolveReferences() (passes.h).
#include <memory>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/resource_handle.h"
#include "gradflow/core/status.h"
#include "gradflow/core/variable.h"
#include "gradflow/graph/node.h"
#include "gradflow/runtime/plan/passes.h"

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

// Ends when its control inputs have.
class WaitKernel final : public OpKernel {
 public:
  absl::Status Compute(KernelContext&) const override { return absl::OkStatus(); }
  bool IsCheap() const override { return true; }
};

class References {
 public:
  explicit References(PlanGraph* graph) : graph_(*graph) {}

  absl::Status Resolve() {
    const int32_t num_nodes = graph_.num_nodes();
    bool any = false;
    for (int32_t node = 0; node < num_nodes && !any; ++node) {
      for (const DataType dtype : graph_.output_types(node)) any |= IsRefType(dtype);
    }
    if (!any) return absl::OkStatus();
    for (int32_t node = 0; node < num_nodes; ++node) {
      int32_t barrier = kNoBarrier;
      for (int i = 0; i < graph_.num_inputs(node); ++i) {
        const PlanGraph::Value source = graph_.edge(node, i);
        if (graph_.origin(node).takes_reference(i)) {
          if (source.is_feed()) {
            return errors::InvalidArgument(
                PlanNodePrefix(graph_.origin(node), nullptr), "input ", i,
                " must be a reference to a variable, but is fed a value");
          }
          continue;
        }
        if (!IsReference(source)) continue;
        if (barrier == kNoBarrier && graph_.num_edges(node) > 1) barrier = AddBarrier(node);
        graph_.SetEdge(node, i, AddRead(source, barrier));
      }
    }
    for (int i = 0; i < graph_.num_fetches(); ++i) {
      const PlanGraph::Value root = graph_.roots()[i];
      if (IsReference(root)) graph_.SetRoot(i, AddRead(root, kNoBarrier));
    }
    return graph_.Prune();
  }

 private:
  static constexpr int32_t kNoBarrier = -1;

  bool IsReference(PlanGraph::Value value) const {
    return !value.is_feed() && !value.is_control() &&
           IsRefType(graph_.output_types(value.node)[value.output]);
  }

  // Adds a node that ends when all inputs of `reader`, data and control, are there. Reads that
  // waited for the inputs themselves would have a quadratic number of edges.
  // REQUIRES: no edge of `reader` is a read yet
  int32_t AddBarrier(int32_t reader) {
    PlanGraph::NewNode barrier;
    barrier.label.name = graph_.origin(reader).name();
    barrier.label.op = "Wait";
    barrier.label.origins = {&graph_.origin(reader)};
    barrier.kernel = std::make_shared<WaitKernel>();
    barrier.device = graph_.device(reader);
    for (int e = 0; e < graph_.num_edges(reader); ++e) {
      const PlanGraph::Value input = graph_.edge(reader, e);
      if (!input.is_feed()) barrier.control_inputs.push_back(input.node);
    }
    return graph_.AddNode(std::move(barrier));
  }

  // Adds a node that reads the variable, after the barrier of its reader if there is one.
  PlanGraph::Value AddRead(PlanGraph::Value source, int32_t barrier) {
    const Node& variable = graph_.origin(source.node);
    const DataType dtype = BaseType(graph_.output_types(source.node)[source.output]);
    PlanGraph::NewNode read;
    read.label.name = variable.name();
    read.label.op = "Read";
    read.label.origins = {&variable};
    read.kernel = std::make_shared<ReadKernel>(dtype);
    read.output_types = {dtype};
    read.inputs = {source};
    read.device = graph_.device(source.node);
    if (barrier != kNoBarrier) read.control_inputs.push_back(barrier);
    return {graph_.AddNode(std::move(read)), 0};
  }

  PlanGraph& graph_;
};

}  // namespace

absl::Status ResolveReferences(const PassContext&, PlanGraph* graph) {
  return References(graph).Resolve();
}

}  // namespace gradflow
