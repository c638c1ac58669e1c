// Session: runs a GraphDef. Feeds, fetches and targets are given by name, as in TensorFlow.
//
//   std::unique_ptr<Session> session(NewSession(SessionOptions()));
//   absl::Status status = session->Create(graph_def);
//   std::vector<Tensor> outputs;
//   if (status.ok()) status = session->Run({{"x", x}}, {"y:0", "dx:1"}, {"update"}, &outputs);
//
// A tensor is named "node:output", or "node" for output 0. Any tensor may be fed and any fetched. A
// run executes the nodes that the fetches and targets need. Nodes that only serve to compute a fed
// tensor do not run.
//
// Thread safety and concurrent calls:
//   - Any number of threads may call Run and RunCallable at once, even from within their own oneTBB
//     tasks and arenas. Runs affect each other only through resources that kernels share on
//     purpose.
//   - Create, Extend and Close may be called at any time. A run sees the nodes that the graph had
//     when the run began, and perhaps the nodes of an Extend that was in progress. A callable sees
//     the nodes that the graph had when the callable was made.
//   - Close ends the runs in flight with CANCELLED, at the next block of their kernels' loops. It
//     does not wait for them. After Close, Create, Extend, Run and the calls for callables return
//     CANCELLED.
//   - No call may be in progress when the session is destroyed. Tensors may outlive the session.
//
// SessionOptions (options.h) sets the threads and memory that runs use. If
// inter_op_parallelism_threads and intra_op_parallelism_threads are both 1, no thread is started.
//
// The caller owns fetched tensors. They keep their memory until they are dropped, even after the
// session is destroyed. A fetched tensor may share its elements with a fed tensor, with another
// fetched tensor, or with a constant of the graph. Make a DeepCopy before writing to such a tensor.
#ifndef GRADFLOW_RUNTIME_SESSION_SESSION_H_
#define GRADFLOW_RUNTIME_SESSION_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/resource_manager.h"
#include "gradflow/core/tensor.h"
#include "gradflow/runtime/memory/pool_allocator.h"
#include "gradflow/runtime/session/options.h"

#pragma GCC visibility push(default)
namespace gradflow {

class GraphDef;

class Session {
 public:
  // Makes a session without a graph. Ops come from GlobalRegistry() or from `registry`, which is
  // borrowed. Returns INVALID_ARGUMENT if an option is out of range, NOT_FOUND if
  // SessionOptions::target is unknown, UNIMPLEMENTED if an option is not supported.
  static absl::StatusOr<std::unique_ptr<Session>> Make(const SessionOptions& options);
  static absl::StatusOr<std::unique_ptr<Session>> Make(const SessionOptions& options,
                                                       const Registry& registry);
  virtual ~Session() = default;

  // Sets the session's graph. Returns ALREADY_EXISTS if the session already has a graph, or an
  // error of ImportGraphDef (graph/import.h). On error the session is unchanged.
  virtual absl::Status Create(const GraphDef& graph) = 0;
  // Overload that does not copy. On error `graph` is in an unspecified state.
  virtual absl::Status Create(GraphDef&& graph) = 0;
  // Adds nodes, whose inputs may be existing nodes. Same as Create if the session has no graph.
  virtual absl::Status Extend(const GraphDef& graph) = 0;
  virtual absl::Status Extend(GraphDef&& graph) = 0;

  // Runs the nodes that `output_tensor_names` and `target_node_names` need. Stores the tensors of
  // `output_tensor_names`, in order, in *outputs, which may be null. On error *outputs is
  // unchanged. Errors:
  //
  //   NOT_FOUND            a name is not in the graph; the text lists the nearest names
  //   INVALID_ARGUMENT     a node has no such output, a tensor is fed twice, a fed tensor has the
  //                        wrong type or a shape that its placeholder excludes, a fetch is in a
  //                        branch that was not taken, or an option is out of range
  //   UNIMPLEMENTED        an option is not supported
  //   FAILED_PRECONDITION  the session has no graph
  //   RESOURCE_EXHAUSTED   out of memory, or the session's memory limit is reached
  //   DEADLINE_EXCEEDED    the timeout has expired
  //   CANCELLED            the CancellationToken was cancelled, or the session has been closed
  //   otherwise a kernel's error, after "node 'name' (Op): "; the first error ends the run
  virtual absl::Status Run(const std::vector<std::pair<std::string, Tensor>>& inputs,
                           const std::vector<std::string>& output_tensor_names,
                           const std::vector<std::string>& target_node_names,
                           std::vector<Tensor>* outputs) = 0;
  // Overload with options. `run_metadata` may be null.
  virtual absl::Status Run(const RunOptions& run_options,
                           const std::vector<std::pair<std::string, Tensor>>& inputs,
                           const std::vector<std::string>& output_tensor_names,
                           const std::vector<std::string>& target_node_names,
                           std::vector<Tensor>* outputs, RunMetadata* run_metadata) = 0;
  // Overload with a token: cancelling it ends the run. Not in TensorFlow's interface.
  virtual absl::Status Run(const RunOptions& run_options,
                           const std::vector<std::pair<std::string, Tensor>>& inputs,
                           const std::vector<std::string>& output_tensor_names,
                           const std::vector<std::string>& target_node_names,
                           std::vector<Tensor>* outputs, RunMetadata* run_metadata,
                           const CancellationToken& cancellation_token) = 0;

  // ---- Callables: runs whose names are looked up once, as in TensorFlow ----

  using CallableHandle = int64_t;
  // Makes a callable for the names in `options`. Returns errors of options, names and kernels like
  // Run.
  virtual absl::Status MakeCallable(const CallableOptions& options, CallableHandle* out_handle) = 0;
  // Runs a callable. `feed_tensors` are in the order of CallableOptions.feed. Returns the errors of
  // Run, and INVALID_ARGUMENT if there is no such callable or the number of tensors is wrong.
  virtual absl::Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feed_tensors,
                                   std::vector<Tensor>* fetch_tensors,
                                   RunMetadata* run_metadata) = 0;
  // Overload with a token: cancelling it ends the run. Not in TensorFlow's interface.
  virtual absl::Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feed_tensors,
                                   std::vector<Tensor>* fetch_tensors, RunMetadata* run_metadata,
                                   const CancellationToken& cancellation_token) = 0;
  // Releases a callable. Its runs in flight are not affected.
  virtual absl::Status ReleaseCallable(CallableHandle handle) = 0;

  // Stops all runs without waiting for them. Frees the plans, kernels, constants and memory that
  // the session caches. Runs in flight free their plans and memory when they end.
  virtual absl::Status Close() = 0;

  // Returns the names of the outputs that no node reads, in the order of the nodes: the likely
  // results of the graph. Waits for an import or a plan in progress. Not in TensorFlow's interface.
  virtual absl::StatusOr<std::vector<std::string>> UnusedOutputs() const = 0;

  // Returns the type of an output, "node" or "node:1". Returns NOT_FOUND if the graph has no such
  // output. Not in TensorFlow's interface.
  virtual absl::StatusOr<DataType> OutputType(absl::string_view name) const = 0;

  // Returns the resources that runs share, such as variables. They live as long as the session.
  // After Close, there are none. Not in TensorFlow's interface.
  virtual ResourceManager* resources() const = 0;
  // Returns the allocator of tensors, which counts against the session's limits. Not in
  // TensorFlow's interface.
  virtual std::shared_ptr<Allocator> allocator() const = 0;

  // Returns statistics of the memory of tensors that runs have allocated. ResetPeakMemory sets the
  // peak to the memory in use. Not in TensorFlow's interface.
  virtual PoolAllocator::Stats MemoryStats() const = 0;
  virtual void ResetPeakMemory() = 0;
  // Returns the cached memory of dropped tensors to the system.
  virtual void Trim() = 0;
};

// Makes a session, which the caller owns, as in TensorFlow. The second overload returns null if the
// first returns an error.
absl::Status NewSession(const SessionOptions& options, Session** out_session);
Session* NewSession(const SessionOptions& options);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_RUNTIME_SESSION_SESSION_H_
