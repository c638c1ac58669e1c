// PlanRewriter: common code of passes that replace nodes. It finds the kernels and constants of
// nodes, makes replacement nodes, and ends the pass when the run that waits for the plan ends.
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
// Internal.
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
#include "gradflow/core/stop_token.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/tables.h"
#include "gradflow/runtime/plan/passes.h"
#include "gradflow/runtime/plan/plan_graph.h"

namespace gradflow {

// Returns an error that names `node` if the run that waits for the plan has been cancelled or its
// session has been closed.
absl::Status CheckPlanStop(const PlanGraph& graph, int32_t node, const RunLimits& limits,
                           StopToken* stop);

class PlanRewriter {
 public:
  PlanRewriter(const PassContext& context, PlanGraph* graph);

  // The nodes in topological order, and their uses, when the rewriter was made. Changes of the pass
  // do not update them.
  absl::Span<const int32_t> order() const { return order_; }
  const PlanGraph::Use& use(int32_t node) const { return uses_[node]; }

  absl::Status CheckStop(int32_t node) {
    return CheckPlanStop(graph_, node, context_.limits, &stop_);
  }

  // Returns the node that reads the first output of `node`, if this is the only use of `node`;
  // otherwise -1. The only use must be a single data input.
  int32_t OnlyReader(int32_t node) const;

  // Returns true if no pass has changed the node and it computes the pure op `op`.
  bool IsOp(int32_t node, absl::string_view op) const;

  // Returns the operation that a node computes, such as "FusedMatMul".
  const std::string& OpOf(int32_t node) const;

  // Returns the kernel of a pure node, and makes the kernel if necessary. Returns null for
  // constants and for nodes that are not pure. Errors of making the kernel are the
  // errors that the layout of the plan (layout.h) would return.
  absl::StatusOr<const OpKernel*> KernelOf(int32_t node);

  // Returns true if `source` is an output of a constant node, directly or through Identity nodes.
  // Sets *value to the constant's value and *constant, if not null, to its node. Returns false if
  // the value differs between runs, or if the constant's kernel does not keep the value.
  bool ConstantOf(PlanGraph::Value source, Tensor* value, int32_t* constant = nullptr);
  // Drops kernels that ConstantOf() made for constants that no node reads after PlanGraph::Prune().
  // Keeping them would double the memory of weights.
  void DropUnreadConstants();

  // Makes a kernel of `op`. Looks the op up in the registry of the graph of `like`. Attributes that
  // are not in `attrs` have their default values.
  static absl::StatusOr<std::shared_ptr<const OpKernel>> MakeKernel(
      const Node& like, absl::string_view op,
      absl::Span<const std::pair<const char*, DataType>> attrs,
      absl::Span<const DataType> input_types, absl::Span<const DataType> output_types);

  // Returns a node that computes the result of nodes.back() and replaces all of `nodes`. It has
  // their origins and control inputs, and the device and first output type of the last. The caller
  // sets the kernel and the inputs.
  PlanGraph::NewNode NewNodeFor(absl::Span<const int32_t> nodes, absl::string_view op) const;
  // Returns the label of such a node.
  PlanNodeLabel LabelFor(absl::Span<const int32_t> nodes, absl::string_view op) const;
  // Adds a node with this value and returns its output 0.
  PlanGraph::Value AddConstant(PlanNodeLabel label, const Tensor& value, uint8_t device);

  // Adds a node whose only output replaces the first output of `node`, and returns the new node.
  // REQUIRES: the other outputs of `node` are not used
  int32_t Replace(int32_t node, PlanGraph::NewNode by);

 private:
  const PassContext& context_;
  PlanGraph& graph_;
  StopToken stop_;
  const std::vector<int32_t> order_;
  // Indexed by node.
  const std::vector<PlanGraph::Use> uses_;
  // Constants whose kernels ConstantOf() has made.
  internal::HashSet<std::pair<const CallSite*, const Node*>> read_;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_PLAN_REWRITER_H_
