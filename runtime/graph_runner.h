// GraphRunner: what Session and ClientSession share. It runs one graph by names, and owns all that
// runs have in common: the threads, the pool of memory, the kernels and the plans.
//
// Thread safety: Run is const in effect and may be called by any number of threads at once. Who
// adds nodes to the graph holds graph_mutex() meanwhile; runs whose plans are made do not wait for
// that. Nor do they write to any memory that other runs write, but for the counts of tensors that
// they share: fed ones, and constants of the graph.
#ifndef GRADFLOW_RUNTIME_GRAPH_RUNNER_H_
#define GRADFLOW_RUNTIME_GRAPH_RUNNER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/resource_manager.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/graph.h"
#include "gradflow/runtime/executor.h"
#include "gradflow/runtime/kernel_cache.h"
#include "gradflow/runtime/options.h"
#include "gradflow/runtime/plan_cache.h"
#include "gradflow/runtime/pool_allocator.h"
#include "gradflow/runtime/published.h"
#include "gradflow/runtime/run_limits.h"
#include "gradflow/runtime/stripes.h"

namespace gradflow {

class GraphRunner {
 public:
  // Borrows the graph. Errors are those of the options.
  static absl::StatusOr<std::unique_ptr<GraphRunner>> Make(const SessionOptions& options,
                                                           const Graph& graph);
  // Tensors outlive it. REQUIRES: no run is in flight.
  ~GraphRunner();
  GraphRunner(const GraphRunner&) = delete;
  GraphRunner& operator=(const GraphRunner&) = delete;

  // *outputs gets what is fetched, in order; on error it is as it was. It may be null, and so may
  // `metadata`. Throws nothing.
  absl::Status Run(const RunOptions& options, const RunRequest& request,
                   std::vector<Tensor>* outputs, RunMetadata* metadata);

  // As Session's. Throw nothing.
  absl::Status MakeCallable(const CallableOptions& options, int64_t* out_handle);
  absl::Status RunCallable(int64_t handle, absl::Span<const Tensor> feeds,
                           std::vector<Tensor>* outputs, RunMetadata* metadata);
  absl::Status ReleaseCallable(int64_t handle);

  Mutex* graph_mutex() ABSL_LOCK_RETURNED(graph_mutex_) { return &graph_mutex_; }

  // Ends all runs with CANCELLED, those in flight and those to come, without waiting for them, and
  // drops the plans, kernels, constants and memory that no run uses; the last run drops the rest.
  void Close();
  // What is said of calls after Close.
  static absl::Status Closed();
  bool closed() const { return closed_.load(std::memory_order_acquire); }

  // Gives memory that no run uses back to the system.
  void Trim();

  int threads() const { return executor_.threads(); }
  const std::shared_ptr<PoolAllocator>& pool() const { return pool_; }

 private:
  struct Callable {
    std::shared_ptr<const Plan> plan;
    RunOptions options;
  };
  struct Callables {
    // The callable of a handle, or null.
    std::shared_ptr<const Callable> Find(int64_t handle) const;

    // By ascending handles.
    std::vector<std::pair<int64_t, std::shared_ptr<const StripedPtr<const Callable>>>> list;
    int64_t next_handle = 1;
  };

  GraphRunner(const Parallelism& parallelism, const ConfigProto& config,
              const PlanOptions& plan_options, const Graph& graph);

  // The clock of the timeout runs from here on.
  RunLimits LimitsOf(const RunOptions& options) const;
  absl::StatusOr<std::shared_ptr<const Plan>> FindOrMakePlan(const RunRequest& request,
                                                             const RunLimits& limits);
  // The plan keeps its kernels alive.
  absl::StatusOr<std::shared_ptr<const Plan>> MakePlan(const PlanNames& names,
                                                       const RunLimits& limits)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(graph_mutex_);
  absl::Status RunPlan(const Plan& plan, const RunOptions& options, const RunLimits& limits,
                       absl::Span<const Tensor* const> feeds, std::vector<Tensor>* outputs,
                       RunMetadata* metadata);
  absl::Status NoCallable(int64_t handle) const;

  const Graph& graph_;
  const PlanOptions plan_options_;
  // 0 for none.
  const int64_t memory_limit_;
  const std::shared_ptr<PoolAllocator> pool_;
  ResourceManager resources_;
  const Executor executor_;
  PlanCache plans_;
  Published<Callables> callables_;
  std::atomic<bool> closed_{false};
  // Guards the reading and the changing of the graph.
  Mutex graph_mutex_;
  // Close drops it without waiting for graph_mutex_, which guards what is in it.
  Mutex kernels_mutex_;
  std::shared_ptr<KernelCache> kernels_ ABSL_GUARDED_BY(kernels_mutex_);
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_GRAPH_RUNNER_H_
