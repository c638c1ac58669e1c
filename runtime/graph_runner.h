// GraphRunner: what Session and ClientSession share. It runs one graph by names, and owns all that
// runs have in common: the threads, the pool of memory, the kernels and the plans.
//
// Thread safety: Run is const in effect and may be called by any number of threads at once. Who
// adds nodes to the graph holds graph_mutex() meanwhile; runs whose plans are made do not wait for
// that.
#ifndef GRADFLOW_RUNTIME_GRAPH_RUNNER_H_
#define GRADFLOW_RUNTIME_GRAPH_RUNNER_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/graph.h"
#include "gradflow/runtime/executor.h"
#include "gradflow/runtime/kernel_cache.h"
#include "gradflow/runtime/options.h"
#include "gradflow/runtime/plan_cache.h"
#include "gradflow/runtime/pool_allocator.h"

namespace gradflow {

class GraphRunner {
 public:
  // Borrows the graph. Errors are those of the options.
  static absl::StatusOr<std::unique_ptr<GraphRunner>> Make(const SessionOptions& options,
                                                           const Graph& graph);
  GraphRunner(const GraphRunner&) = delete;
  GraphRunner& operator=(const GraphRunner&) = delete;

  // *outputs gets what is fetched, in order; on error it is as it was. It may be null, and so may
  // `metadata`. Throws nothing.
  absl::Status Run(const RunOptions& options, const RunRequest& request,
                   std::vector<Tensor>* outputs, RunMetadata* metadata);

  Mutex* graph_mutex() ABSL_LOCK_RETURNED(graph_mutex_) { return &graph_mutex_; }

  // Drops the plans and the memory that no run uses.
  void DropCaches();

  int threads() const { return executor_.threads(); }
  const std::shared_ptr<PoolAllocator>& pool() const { return pool_; }

 private:
  GraphRunner(int threads, const Graph& graph);

  absl::StatusOr<std::shared_ptr<const Plan>> FindOrMakePlan(const RunRequest& request);

  const Graph& graph_;
  const std::shared_ptr<PoolAllocator> pool_;
  const Executor executor_;
  PlanCache plans_;
  // Guards the reading and the changing of the graph.
  Mutex graph_mutex_;
  KernelCache kernels_ ABSL_GUARDED_BY(graph_mutex_);
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_GRAPH_RUNNER_H_
