// Session: runs a GraphDef by the names of its nodes, as TensorFlow's session does.
//
//   std::unique_ptr<Session> session(NewSession(SessionOptions()));
//   absl::Status status = session->Create(graph_def);
//   std::vector<Tensor> outputs;
//   if (status.ok()) status = session->Run({{"x", x}}, {"y:0", "dx:1"}, {"update"}, &outputs);
//
// A tensor is named "node:output", or "node" for output 0. Any tensor may be fed and any fetched.
// Only what the fetches and targets need runs; what only serves to compute a fed tensor does not.
//
// Thread safety, and what holds when calls meet:
//   - Any number of threads may call Run and RunCallable at once, also from within oneTBB tasks and
//     arenas of their own. Runs change nothing that another one sees, but for the resources that
//     kernels keep on purpose.
//   - Create, Extend and Close may be called at any time. A run sees the graph as it was when the
//     run began, or as it is after an Extend that was in progress then. A callable sees it as it
//     was when the callable was made.
//   - Close ends the runs in flight with CANCELLED, at the next block of their kernels' loops, and
//     does not wait for that. All calls after Close are CANCELLED, except Close itself.
//   - No call may be in progress when the session is destroyed. Tensors outlive it.
//
// How many threads runs use, and how much memory, is said by SessionOptions (options.h). With
// inter_op and intra_op both 1, no thread is ever started.
//
// Fetched tensors are the caller's: they keep their memory, whatever becomes of the session, until
// they are dropped. They are handles: one may share its elements with a tensor that was fed, with
// another that was fetched, or with a constant of the graph. Make a DeepCopy to write to one.
#ifndef GRADFLOW_RUNTIME_SESSION_H_
#define GRADFLOW_RUNTIME_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/tensor.h"
#include "gradflow/runtime/options.h"
#include "gradflow/runtime/pool_allocator.h"

#pragma GCC visibility push(default)
namespace gradflow {

class GraphDef;

class Session {
 public:
  // A session without a graph, for the ops of GlobalRegistry() or of `registry`, which is
  // borrowed. INVALID_ARGUMENT or NOT_FOUND for options that cannot be had.
  static absl::StatusOr<std::unique_ptr<Session>> Make(const SessionOptions& options);
  static absl::StatusOr<std::unique_ptr<Session>> Make(const SessionOptions& options,
                                                       const Registry& registry);
  virtual ~Session() = default;

  // Gives the session its graph. ALREADY_EXISTS if it has one; otherwise what ImportGraphDef
  // (graph/import.h) says, and then nothing has changed.
  virtual absl::Status Create(const GraphDef& graph) = 0;
  // The same without a copy. On error `graph` is in an unknown state.
  virtual absl::Status Create(GraphDef&& graph) = 0;
  // Adds nodes, which may take inputs from nodes that are there. The first Extend of a session
  // without a graph is a Create.
  virtual absl::Status Extend(const GraphDef& graph) = 0;
  virtual absl::Status Extend(GraphDef&& graph) = 0;

  // Runs what `output_tensor_names` and `target_node_names` need and puts the tensors of the
  // former, in order, into *outputs, which may be null. On error *outputs is as it was:
  //
  //   NOT_FOUND            there is no node of a name (with the nearest names)
  //   INVALID_ARGUMENT     a node has no such output, a tensor is fed twice, or a fed tensor has
  //                        another type or shape than its place
  //   FAILED_PRECONDITION  there is no graph yet
  //   DEADLINE_EXCEEDED    RunOptions.timeout_in_ms is over
  //   CANCELLED            by RunOptions.cancellation_token, or the session has been closed
  //   otherwise what a kernel says, after "node 'name' (Op): "; the first error ends the run
  virtual absl::Status Run(const std::vector<std::pair<std::string, Tensor>>& inputs,
                           const std::vector<std::string>& output_tensor_names,
                           const std::vector<std::string>& target_node_names,
                           std::vector<Tensor>* outputs) = 0;
  // The same with options. `run_metadata` may be null.
  virtual absl::Status Run(const RunOptions& run_options,
                           const std::vector<std::pair<std::string, Tensor>>& inputs,
                           const std::vector<std::string>& output_tensor_names,
                           const std::vector<std::string>& target_node_names,
                           std::vector<Tensor>* outputs, RunMetadata* run_metadata) = 0;

  // ---- Callables: runs whose names are looked up once. As TensorFlow's ----

  using CallableHandle = int64_t;
  // Prepares what `options` names; errors are those that Run has for names.
  virtual absl::Status MakeCallable(const CallableOptions& options, CallableHandle* out_handle) = 0;
  // As Run, with the tensors to feed in the order of CallableOptions.feed. INVALID_ARGUMENT if
  // there is no such callable, or for another number of tensors.
  virtual absl::Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feed_tensors,
                                   std::vector<Tensor>* fetch_tensors,
                                   RunMetadata* run_metadata) = 0;
  // Runs of it that are in flight end as usual.
  virtual absl::Status ReleaseCallable(CallableHandle handle) = 0;

  // Stops all runs, without waiting for them, and frees the plans, kernels, constants and memory
  // that the session keeps between them; what runs in flight use goes when they end.
  virtual absl::Status Close() = 0;

  // The outputs that no node takes, by name, in the order of the nodes: what a graph is likely to
  // be for, if nobody says. Waits for an import or a plan in progress. Not in TensorFlow's
  // interface.
  virtual absl::StatusOr<std::vector<std::string>> UnusedOutputs() const = 0;

  // The memory of tensors that runs have allocated; ResetPeakMemory starts a new peak. Not in
  // TensorFlow's interface.
  virtual PoolAllocator::Stats MemoryStats() const = 0;
  virtual void ResetPeakMemory() = 0;
  // Gives the memory of dropped tensors, which the session keeps for the next, back to the system.
  virtual void Trim() = 0;
};

// As TensorFlow's. The second returns null where the first returns an error.
absl::Status NewSession(const SessionOptions& options, Session** out_session);
Session* NewSession(const SessionOptions& options);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_RUNTIME_SESSION_H_
