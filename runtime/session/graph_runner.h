// GraphRunner: the common implementation of Session and ClientSession. Runs one graph by names.
// Owns the threads, the memory pool, the kernels and the plans that its runs share.
//
// Thread safety: any number of threads may call Run at once. Callers must hold graph_mutex() while
// they add nodes to the graph. Runs whose plans are already made do not wait for the mutex or for
// each other. They write to no memory that other runs write, except the reference counts of shared
// tensors: fed tensors and constants of the graph.
#ifndef GRADFLOW_RUNTIME_SESSION_GRAPH_RUNNER_H_
#define GRADFLOW_RUNTIME_SESSION_GRAPH_RUNNER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/resource_manager.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/graph.h"
#include "gradflow/runtime/executor/executor.h"
#include "gradflow/runtime/executor/run_limits.h"
#include "gradflow/runtime/memory/pool_allocator.h"
#include "gradflow/runtime/memory/shards.h"
#include "gradflow/runtime/plan/kernel_cache.h"
#include "gradflow/runtime/session/options.h"
#include "gradflow/runtime/session/plan_cache.h"
#include "gradflow/runtime/session/replicated.h"

namespace gradflow {

class GraphRunner {
 public:
  // Makes a runner that borrows the graph. Returns errors of the options.
  static absl::StatusOr<std::unique_ptr<GraphRunner>> Make(const SessionOptions& options,
                                                           const Graph& graph);
  // Feeds of any shape are valid from now on, as in TensorFlow's sessions. Kernels check the shapes
  // of their inputs. REQUIRES: no run has started
  void AcceptAnyFeedShape() { plan_options_.check_feed_shapes = false; }
  // Tensors may outlive the runner. REQUIRES: no run is in flight.
  ~GraphRunner();
  GraphRunner(const GraphRunner&) = delete;
  GraphRunner& operator=(const GraphRunner&) = delete;

  // Stores the fetched tensors, in order, in *outputs. On error *outputs is unchanged. `outputs`,
  // `metadata` and `token` may be null. Does not throw.
  absl::Status Run(const RunOptions& options, const RunRequest& request,
                   std::vector<Tensor>* outputs, RunMetadata* metadata,
                   const CancellationToken* token = nullptr);

  // Same as the methods of Session. They do not throw.
  absl::Status MakeCallable(const CallableOptions& options, int64_t* out_handle);
  absl::Status RunCallable(int64_t handle, absl::Span<const Tensor> feeds,
                           std::vector<Tensor>* outputs, RunMetadata* metadata,
                           const CancellationToken* token = nullptr);
  absl::Status ReleaseCallable(int64_t handle);

  Mutex* graph_mutex() ABSL_LOCK_RETURNED(graph_mutex_) { return &graph_mutex_; }

  // Ends all runs in flight and all later runs with CANCELLED, without waiting for them. Drops the
  // plans, kernels, constants and memory that no run uses; the last run drops the rest.
  void Close();
  // Returns the error of calls after Close.
  static absl::Status Closed();
  bool closed() const { return closed_->IsRaised(); }

  // Frees the cached memory that no run uses.
  void Trim();

  int threads() const { return executor_.threads(); }
  const std::shared_ptr<PoolAllocator>& pool() const { return pool_; }
  ResourceManager* resources() const { return resources_.get(); }

 private:
  struct Callable {
    std::shared_ptr<const Plan> plan;
    RunOptions options;
  };
  // Keyed by handle.
  using Callables = absl::flat_hash_map<int64_t, std::shared_ptr<const ShardedPtr<const Callable>>>;

  // REQUIRES: CheckSessionOptions(options) is OK
  GraphRunner(const SessionOptions& options, const Graph& graph);

  // Returns the limits of a run. Its timeout starts with this call.
  RunLimits LimitsOf(const RunOptions& options, const CancellationToken* token) const;
  absl::StatusOr<std::shared_ptr<const Plan>> FindOrMakePlan(const RunRequest& request,
                                                             const RunLimits& limits);
  // Makes a plan, which keeps its kernels alive.
  absl::StatusOr<std::shared_ptr<const Plan>> MakePlan(const PlanNames& names,
                                                       const RunLimits& limits)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(graph_mutex_);
  absl::Status RunPlan(const std::shared_ptr<const Plan>& plan, const RunOptions& options,
                       const RunLimits& limits, absl::Span<const Tensor* const> feeds,
                       std::vector<Tensor>* outputs, RunMetadata* metadata);
  // Drops a callable. Returns false if no callable has this handle.
  bool DropCallable(int64_t handle);
  absl::Status NoCallable(int64_t handle) const;

  const Graph& graph_;
  PlanOptions plan_options_;
  // In bytes; 0 means no limit.
  const int64_t memory_limit_;
  // The default timeout of runs; 0 means no timeout.
  const int64_t timeout_in_ms_;
  const std::shared_ptr<PoolAllocator> pool_;
  const std::shared_ptr<ResourceManager> resources_;
  const Executor executor_;
  PlanCache plans_;
  Replicated<Callables> callables_;
  std::atomic<int64_t> next_handle_{1};
  // Shared with asynchronous kernels that outlive their runs.
  const std::shared_ptr<CancelFlag> closed_ = std::make_shared<CancelFlag>();
  // Guards the graph, for reading and writing.
  Mutex graph_mutex_;
  // Guards only the pointer, so that Close can drop it without waiting for graph_mutex_.
  // graph_mutex_ guards the cache itself.
  Mutex kernels_mutex_;
  std::shared_ptr<KernelCache> kernels_ ABSL_GUARDED_BY(kernels_mutex_);
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_SESSION_GRAPH_RUNNER_H_
