// PlanRewriter: what passes have in common. Passes that replace nodes by others find the kernels
// and constants of nodes with it, make the nodes that replace them, and end when the run that waits
// for the plan ends.
//
//   absl::Status FuseSomething(const PassContext& context, PlanGraph* graph) {
//     PlanRewriter rewriter(context, graph);
//     for (const int32_t node : rewriter.order()) {
//       GRADFLOW_RETURN_IF_ERROR(rewriter.CheckStop(node));
//       ...
//       PlanGraph::NewNode added = rewriter.NewNodeFor({first, node}, "Something");
//       added.kernel = ...;
//       added.inputs = ...;
//       rewriter.Replace(node, std::move(added));
//     }
//     return graph->Prune();
//   }
//
// Not for users.
#ifndef GRADFLOW_RUNTIME_PLAN_PLAN_REWRITER_H_
#define GRADFLOW_RUNTIME_PLAN_PLAN_REWRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/run_stop.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/tables.h"
#include "gradflow/runtime/plan/passes.h"
#include "gradflow/runtime/plan/plan_graph.h"

namespace gradflow {

// Returns an error that names `node` if the run that waits for the plan has been cancelled or
// closed.
absl::Status CheckPlanStop(const PlanGraph& graph, int32_t node, const RunLimits& limits,
                           RunStop* stop);

class PlanRewriter {
 public:
  PlanRewriter(const PassContext& context, PlanGraph* graph);

  // The nodes in topological order, and their uses, before the pass changed anything.
  absl::Span<const int32_t> order() const { return order_; }
  const PlanGraph::Use& use(int32_t node) const { return uses_[node]; }

  absl::Status CheckStop(int32_t node) {
    return CheckPlanStop(graph_, node, context_.limits, &stop_);
  }

  // Returns the only reader of a node's first output, through one of its inputs, or -1 if the node
  // is used otherwise.
  int32_t OnlyReader(int32_t node) const;

  // Returns true for a node of the graph that no pass has changed, and that computes this pure op.
  bool IsOp(int32_t node, absl::string_view op) const;

  // Returns the operation that a node computes, such as "FusedMatMul".
  const std::string& OpOf(int32_t node) const;

  // Returns the kernel of a pure node, made now if it was not, and null for other nodes and for
  // constants. Its error is what the layout of the plan would return.
  absl::StatusOr<const OpKernel*> KernelOf(int32_t node);

  // Sets *value to that of a constant, perhaps behind nodes that copy it, and *constant, if not
  // null, to its node. Returns false if the value differs between runs, or if its kernel does not
  // keep it.
  bool ConstantOf(PlanGraph::Value source, Tensor* value, int32_t* constant = nullptr);
  // Drops the kernels of constants that were made for ConstantOf(), and that no node reads after
  // PlanGraph::Prune(). Keeping them would double the memory of weights.
  void DropUnreadConstants();

  // Makes the kernel of an op without a node, with these attributes and the defaults of the others,
  // from the registry of the node `like`.
  static absl::StatusOr<std::shared_ptr<const OpKernel>> MakeKernel(
      const Node& like, absl::string_view op,
      absl::Span<const std::pair<const char*, DataType>> attrs,
      absl::Span<const DataType> input_types, absl::Span<const DataType> output_types);

  // Returns a node for the result of nodes.back(), which takes the place of all: it has their
  // origins, their control inputs, and the device and the first output type of the last. The kernel
  // and the inputs are left to the caller.
  PlanGraph::NewNode NewNodeFor(absl::Span<const int32_t> nodes, absl::string_view op) const;
  // The label of such a node.
  PlanNodeLabel LabelFor(absl::Span<const int32_t> nodes, absl::string_view op) const;
  // Returns output 0 of a new node of this value.
  PlanGraph::Value AddConstant(PlanNodeLabel label, const Tensor& value, uint8_t device);

  // Adds a node whose only output replaces the first output of `node`. The others are not used.
  // Returns the new node.
  int32_t Replace(int32_t node, PlanGraph::NewNode by);

 private:
  const PassContext& context_;
  PlanGraph& graph_;
  RunStop stop_;
  const std::vector<int32_t> order_;
  // By node.
  const std::vector<PlanGraph::Use> uses_;
  // Constants whose kernels ConstantOf() has made.
  internal::HashSet<const Node*> read_;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_PLAN_REWRITER_H_
