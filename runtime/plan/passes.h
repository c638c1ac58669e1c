// Passes: functions that rewrite a plan before LayOutPlan() (layout.h) makes its final form. Each
// pass has its own file.
//
// After ResolveReferences, passes rewrite only pure nodes (op_traits.h). Each pass takes time
// linear in the size of the plan. All passes except UseIntegers, FoldBatchNorms and
// ChooseBlockedLayouts preserve every bit of a run's results. The rewritten plan returns only
// errors that the original plan could return. Internal.
#ifndef GRADFLOW_RUNTIME_PLAN_PASSES_H_
#define GRADFLOW_RUNTIME_PLAN_PASSES_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gradflow/core/tensor.h"
#include "gradflow/runtime/executor/run_limits.h"
#include "gradflow/runtime/plan/kernel_cache.h"
#include "gradflow/runtime/plan/plan.h"
#include "gradflow/runtime/plan/plan_graph.h"

namespace gradflow {

// The work and memory that Plan::Make() may still use. A plan shares them with the plans of the
// functions that it calls. Work is counted, never timed, so that the same graph gives the same plan
// on a loaded machine.
struct PlanBudget {
  static constexpr int64_t kMaxFoldingWork = 300'000'000;
  static constexpr int64_t kMaxInlinedNodes = 200'000;
  static constexpr int64_t kMaxFunctionSize = 4'000'000;

  // Bytes of tensors that constant folding may use and keep.
  int64_t folded_bytes = 0;
  // Units of about a nanosecond.
  int64_t folding_work = kMaxFoldingWork;
  // The nodes of functions that are planned inline.
  int64_t inlined_nodes = kMaxInlinedNodes;
  // The nodes, edges and outputs of all functions, planned inline or separately, counted once for
  // each call. A call itself counts as 16 nodes, or as 64 if its function has a separate plan.
  int64_t function_size = kMaxFunctionSize;
};

// The context of a pass.
struct PassContext {
  const PlanOptions& options;
  // The limits of the run that waits for the plan. If a cancellation or a closed session ends a
  // pass, the status names the node that was stopped.
  const RunLimits& limits;
  KernelCache* kernels;
  PlanBudget* budget;
};

// Turns the loops of version 1 control flow (graph/control_flow.h) among the nodes from
// `first_node` on into nodes that run plans, as a While does (convert_loops.cc). Runs on each new
// graph, before the other passes. The run waits for the nodes in *effects, if not null; nodes in a
// loop are replaced there by the loop. Returns INVALID_ARGUMENT, with the name of a node, if a loop
// is not well-formed, or if one of `results` or of the fetches is in a loop.
absl::Status ConvertLoops(const PassContext& context, PlanGraph* graph, int32_t first_node = 0,
                          absl::Span<const PlanGraph::Value> results = {},
                          std::vector<int32_t>* effects = nullptr);

// Replaces calls of functions by the nodes of the functions (expand_calls.h). Runs first.
absl::Status ExpandCalls(const PassContext& context, PlanGraph* graph);

// Resolves edges of reference type, which carry variable handles at run time. For each input and
// fetch that takes a value instead of a reference, adds a node that reads the variable. The new
// node waits for all other data and control inputs of its reader, so that it sees their writes.
absl::Status ResolveReferences(const PassContext& context, PlanGraph* graph);

// Replaces reads of frozen variables by constants that share the buffers of the variables.
absl::Status FreezeVariables(const PassContext& context, PlanGraph* graph);

// Eliminates common subexpressions. The first of several pure nodes with the same op, attributes,
// device, inputs and control inputs replaces the others, and errors name the first. Attributes are
// compared bit by bit. Nodes with an attribute of more than 4 KiB, such as a long constant, are
// kept.
absl::Status EliminateCommonSubexpressions(const PassContext& context, PlanGraph* graph);

// Folds constants. Runs pure nodes with constant inputs on the calling thread, replaces the nodes
// with their values, and adds the values to the kernel cache for later plans. The cache is not used
// with fold_batch_norms: constants then decide which weights are folded, and a plan must not depend
// on other plans. These nodes are kept:
//
//   - nodes that fail; they fail again in the run if it reaches them
//   - nodes with a control input from a feed, or from a node that is neither constant nor folded
//   - nodes with string outputs
//   - nodes on devices other than the first
//   - nodes whose inputs or outputs would make the memory exceed PlanOptions::max_folded_bytes
//   - nodes beyond the limit on the work of folding, which counts nodes, bytes and loop blocks and
//     stands for a fraction of a second
//
// If the run's limits end the pass, the cache keeps the values computed so far.
absl::Status FoldConstants(const PassContext& context, PlanGraph* graph);

// Replaces nodes between fake-quantization nodes by kernels of 8-bit integers
// (integer_inference.cc). Does nothing unless PlanOptions::integer_inference is set.
// FoldConstants() then keeps fake-quantization nodes, whose ranges this pass reads.
absl::Status UseIntegers(const PassContext& context, PlanGraph* graph);

// Folds the fake-quantization nodes with constant inputs that UseIntegers() has left, and the nodes
// that need them.
absl::Status FoldQuantizedConstants(const PassContext& context, PlanGraph* graph);

// Returns a node without inputs whose outputs are `outputs`.
FoldedNode MakeFolded(std::vector<Tensor> outputs);

// Folds products and sums with constants after a convolution into its constant filter: Mul, Add,
// AddV2, Sub, BiasAdd, and batch normalization in inference. Each constant is a scalar or has one
// element per channel; images are float and NHWC. One bias addition replaces the nodes. Chains
// without a product are kept. Nodes whose constants could make numbers overflow, underflow or
// cancel are also kept; docs/security.md states how far values change.
absl::Status FoldBatchNorms(const PassContext& context, PlanGraph* graph);

// Fuses a float convolution or matrix product with the chain of elementwise nodes after it: biases,
// batch normalization in inference, residual additions and activations. One node applies the chain
// to each part of the result while the part is in a cache. Each node of the chain except the last
// has a single reader. The kernels decide which steps they can fuse (core/fused_steps.h).
absl::Status FuseSteps(const PassContext& context, PlanGraph* graph);

// Keeps images in the blocked layout (core/blocked_layout.h) between convolutions with constant
// filters. An image is blocked if such a convolution makes it and all its readers are such
// convolutions. The convolutions also compute a bias, the addition of another convolution's image
// and a ReLU. They convert all other images that they read or write. A group of convolutions is
// left unchanged if it has fewer than three blocked images per converted image. Runs only with
// PlanOptions::fold_batch_norms and fuse, because values change in the last bits and a ReLU turns
// NaN into 0.
absl::Status ChooseBlockedLayouts(const PassContext& context, PlanGraph* graph);

// Add entries to *report. ReportMergedAndFolded() is called after constant folding, ReportFused()
// after the last pass.
void ReportMergedAndFolded(const PlanGraph& graph, PlanReport* report);
void ReportFused(const PlanGraph& graph, PlanReport* report);

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_PASSES_H_
