// Session: runs a GraphDef by the names of its nodes, as TensorFlow's session does.
//
//   std::unique_ptr<Session> session(NewSession(SessionOptions()));
//   absl::Status status = session->Create(graph_def);
//   std::vector<Tensor> outputs;
//   if (status.ok()) status = session->Run({{"x", x}}, {"y:0", "dx:1"}, {"update"}, &outputs);
//
// A tensor is named "node:output", or "node" for output 0. Any tensor may be fed and any fetched.
// Only nodes that the fetches and targets need run; nodes that only serve to compute a fed tensor
// do not.
//
// Thread safety and concurrent calls:
//   - Any number of threads may call Run and RunCallable at once, also from within oneTBB tasks and
//     arenas of their own. Runs do not affect each other, except through the resources that kernels
//     share on purpose.
//   - Create, Extend and Close may be called at any time. A run sees the graph as it was when the
//     run began, or as it is after an Extend that was in progress then. A callable sees the graph
//     as it was when the callable was made.
//   - Close ends the runs in flight with CANCELLED, at the next block of their kernels' loops, and
//     does not wait for them. All calls after Close are CANCELLED, except Close itself.
//   - No call may be in progress when the session is destroyed. Tensors may outlive the session.
//
// SessionOptions (options.h) sets the threads and memory that runs use. With inter_op and intra_op
// both 1, no thread is ever started.
//
// The caller owns fetched tensors: they keep their memory until they are dropped, also beyond the
// session. They are handles: a fetched tensor may share its elements with a fed tensor, with
// another fetched tensor, or with a constant of the graph. Make a DeepCopy to write to one.
#ifndef GRADFLOW_RUNTIME_SESSION_SESSION_H_
#define GRADFLOW_RUNTIME_SESSION_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/tensor.h"
#include "gradflow/runtime/memory/pool_allocator.h"
#include "gradflow/runtime/session/options.h"

#pragma GCC visibility push(default)
namespace gradflow {

class GraphDef;

class Session {
 public:
  // Makes a session without a graph, for the ops of GlobalRegistry() or of `registry`, which is
  // borrowed. INVALID_ARGUMENT, NOT_FOUND or UNIMPLEMENTED for options that are out of range or
  // unsupported.
  static absl::StatusOr<std::unique_ptr<Session>> Make(const SessionOptions& options);
  static absl::StatusOr<std::unique_ptr<Session>> Make(const SessionOptions& options,
                                                       const Registry& registry);
  virtual ~Session() = default;

  // Sets the session's graph. ALREADY_EXISTS if it has one; otherwise the errors of ImportGraphDef
  // (graph/import.h). On error nothing has changed.
  virtual absl::Status Create(const GraphDef& graph) = 0;
  // As above, without a copy. On error `graph` is in an unspecified state.
  virtual absl::Status Create(GraphDef&& graph) = 0;
  // Adds nodes, which may take inputs from existing nodes. The first Extend of a session without a
  // graph is a Create.
  virtual absl::Status Extend(const GraphDef& graph) = 0;
  virtual absl::Status Extend(GraphDef&& graph) = 0;

  // Runs the nodes that `output_tensor_names` and `target_node_names` need, and stores the tensors
  // of the former, in order, in *outputs, which may be null. On error *outputs is unchanged:
  //
  //   NOT_FOUND            there is no node of a name (with the nearest names)
  //   INVALID_ARGUMENT     a node has no such output, a tensor is fed twice, or a fed tensor has
  //                        another type or shape than the tensor that it replaces
  //   FAILED_PRECONDITION  there is no graph yet
  //   DEADLINE_EXCEEDED    RunOptions.timeout_in_ms has expired
  //   CANCELLED            by the CancellationToken, or the session has been closed
  //   otherwise a kernel's error, after "node 'name' (Op): "; the first error ends the run
  virtual absl::Status Run(const std::vector<std::pair<std::string, Tensor>>& inputs,
                           const std::vector<std::string>& output_tensor_names,
                           const std::vector<std::string>& target_node_names,
                           std::vector<Tensor>* outputs) = 0;
  // As above, with options. `run_metadata` may be null.
  virtual absl::Status Run(const RunOptions& run_options,
                           const std::vector<std::pair<std::string, Tensor>>& inputs,
                           const std::vector<std::string>& output_tensor_names,
                           const std::vector<std::string>& target_node_names,
                           std::vector<Tensor>* outputs, RunMetadata* run_metadata) = 0;
  // As above, until the token is cancelled. Not in TensorFlow's interface.
  virtual absl::Status Run(const RunOptions& run_options,
                           const std::vector<std::pair<std::string, Tensor>>& inputs,
                           const std::vector<std::string>& output_tensor_names,
                           const std::vector<std::string>& target_node_names,
                           std::vector<Tensor>* outputs, RunMetadata* run_metadata,
                           const CancellationToken& cancellation_token) = 0;

  // ---- Callables: runs whose names are looked up once. As TensorFlow's ----

  using CallableHandle = int64_t;
  // Prepares a callable for the names in `options`. Errors are those of Run for names.
  virtual absl::Status MakeCallable(const CallableOptions& options, CallableHandle* out_handle) = 0;
  // As Run, with the tensors to feed in the order of CallableOptions.feed. INVALID_ARGUMENT if
  // there is no such callable, or for a wrong number of tensors.
  virtual absl::Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feed_tensors,
                                   std::vector<Tensor>* fetch_tensors,
                                   RunMetadata* run_metadata) = 0;
  // As above, until the token is cancelled. Not in TensorFlow's interface.
  virtual absl::Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feed_tensors,
                                   std::vector<Tensor>* fetch_tensors, RunMetadata* run_metadata,
                                   const CancellationToken& cancellation_token) = 0;
  // Releases a callable. Its runs in flight are not affected.
  virtual absl::Status ReleaseCallable(CallableHandle handle) = 0;

  // Stops all runs, without waiting for them. Frees the plans, kernels, constants and memory that
  // the session keeps between runs. Runs in flight free what they use when they end.
  virtual absl::Status Close() = 0;

  // Returns the names of the outputs that no node takes, in the order of the nodes: the likely
  // results of the graph. Waits for an import or a plan in progress. Not in TensorFlow's interface.
  virtual absl::StatusOr<std::vector<std::string>> UnusedOutputs() const = 0;

  // Returns the type of an output, "node" or "node:1". NOT_FOUND if there is none. Not in
  // TensorFlow's interface.
  virtual absl::StatusOr<DataType> OutputType(absl::string_view name) const = 0;

  // Statistics of the memory of tensors that runs have allocated. ResetPeakMemory starts a new
  // peak. Not in TensorFlow's interface.
  virtual PoolAllocator::Stats MemoryStats() const = 0;
  virtual void ResetPeakMemory() = 0;
  // Returns the memory of dropped tensors, which the session caches for later ones, to the system.
  virtual void Trim() = 0;
};

// As TensorFlow's. The second overload returns null if the first returns an error.
absl::Status NewSession(const SessionOptions& options, Session** out_session);
Session* NewSession(const SessionOptions& options);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_RUNTIME_SESSION_SESSION_H_
