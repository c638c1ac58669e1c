// Passes: functions that rewrite a plan before it is laid out, each in a file of its own.
//
// Passes rewrite pure nodes only (op_traits.h), in time linear in the size of the plan. All but
// FoldBatchNorms and BlockChannels preserve every bit of a run's results. The rewritten plan
// returns only errors that the original plan could return. Not for users.
#ifndef GRADFLOW_RUNTIME_PLAN_PASSES_H_
#define GRADFLOW_RUNTIME_PLAN_PASSES_H_

#include <vector>

#include "absl/status/status.h"
#include "gradflow/core/tensor.h"
#include "gradflow/runtime/executor/run_limits.h"
#include "gradflow/runtime/plan/kernel_cache.h"
#include "gradflow/runtime/plan/plan.h"
#include "gradflow/runtime/plan/plan_graph.h"

namespace gradflow {

// The context of a pass.
struct PassContext {
  const PlanOptions& options;
  // The limits of the run that waits for the plan. If their flags end a pass, its status names the
  // node that was stopped.
  const RunLimits& limits;
  KernelCache* kernels;
};

// Resolves edges of reference type, which carry handles of variables in a run. Adds a node that
// reads the variable for each input and fetch that takes a value. The read waits for all other data
// and control inputs of its reader, so that it sees their writes. Runs first.
absl::Status ResolveReferences(const PassContext& context, PlanGraph* graph);

// Eliminates common subexpressions. Of pure nodes with the same op, attributes, device, inputs and
// control inputs, the first replaces the others, and errors name the first. Attributes are compared
// bit by bit. Nodes with an attribute of more than 4 KiB, such as a long constant, are kept.
absl::Status EliminateCommonSubexpressions(const PassContext& context, PlanGraph* graph);

// Folds constants: runs pure nodes whose inputs are constants on the calling thread, replaces them
// by their values, and adds the values to the kernel cache for later plans. With fold_batch_norms,
// values neither come from the cache nor go there: a plan must not depend on other plans, since
// constants decide which weights are folded. These nodes are kept:
//
//   - nodes that fail, which then fail in the run if it reaches them
//   - nodes with a control input from a feed, or from a node that is neither constant nor folded
//   - nodes with outputs of strings
//   - nodes whose inputs or outputs would make the memory exceed PlanOptions::max_folded_bytes
//   - nodes that come after a limit on the work of folding. It counts nodes, bytes and blocks of
//     loops, and is reached after some tenths of a second
//
// If the limits end the pass, the cache keeps the values so far.
absl::Status FoldConstants(const PassContext& context, PlanGraph* graph);

// Returns a node without inputs whose outputs are `outputs`.
FoldedNode MakeFolded(std::vector<Tensor> outputs);

// Folds products and sums with constants behind a convolution into its constant filter, where a
// constant has an element for each channel, or one: Mul, Add, AddV2, Sub, BiasAdd, and batch
// normalization in inference. Images are NHWC and of float. One addition of a bias takes the place
// of the nodes. Chains without a product are kept, and so are nodes whose constants could make
// numbers overflow, underflow or cancel: docs/security.md states how far values change.
absl::Status FoldBatchNorms(const PassContext& context, PlanGraph* graph);

// Fuses a convolution or product of float with the chain of elementwise nodes behind it, biases,
// batch normalization in inference, residual additions and activations: one node applies them to
// each part of the result, while that is in a cache. Each node of the chain but the last has one
// reader. The kernels decide what they can do (core/fused_steps.h).
absl::Status FuseSteps(const PassContext& context, PlanGraph* graph);

// Keeps images in blocks of channels (core/channel_blocks.h) between convolutions of constant
// filters. An image is in blocks if all its readers are such convolutions. They compute a bias, the
// addition of another convolution's image and a rectifier along with their result. Images that come
// from other nodes, or go to them, are converted; groups of fewer than three images in blocks for
// each of those are left alone. Runs with PlanOptions::fold_batch_norms: values change in the last
// bits, and a rectifier makes 0 of NaN.
absl::Status BlockChannels(const PassContext& context, PlanGraph* graph);

// Add entries to *report. Called after constant folding, and after the last pass, respectively.
void ReportMergedAndFolded(const PlanGraph& graph, PlanReport* report);
void ReportFused(const PlanGraph& graph, PlanReport* report);

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_PASSES_H_
