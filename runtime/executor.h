// Executor: runs plans on the threads of one session.
//
// A run is one block of memory (a count per node, a place per tensor) and no threads of its own. A
// thread that finishes a node goes on with one of the nodes that this makes ready, and offers the
// others to the session's threads; kernels that cost less than handing them over stay on the thread
// that made their inputs. A tensor is moved into the last node that reads it, which may then write
// its result in place, and is dropped after that.
//
// Thread safety: Run is const and any number of threads may call it at once, also for one plan,
// also from within a oneTBB task or arena of the caller's. Runs of a plan that needs no other
// thread write to no memory that other runs write.
#ifndef GRADFLOW_RUNTIME_EXECUTOR_H_
#define GRADFLOW_RUNTIME_EXECUTOR_H_

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/tensor.h"
#include "gradflow/runtime/plan.h"
#include "gradflow/runtime/pool_allocator.h"
#include "gradflow/runtime/run_limits.h"
#include "gradflow/runtime/stripes.h"

namespace gradflow {

class ResourceManager;
class RunTrace;

// How many threads runs use.
struct Parallelism {
  // The most nodes of one run at once.
  int inter_op = 1;
  // The most threads for the loops of one kernel.
  int intra_op = 1;
};

class Executor {
 public:
  // The thread that calls Run works on its run, and so do others that all runs share: with it, as
  // many as the larger of the two numbers (fewer if the machine has fewer cores). A thread
  // that waits for its run works for no other. With 1 and 1, no other thread ever takes part.
  // Tensors are allocated from `allocator`, and `resources` are for the kernels. REQUIRES: both
  // numbers >= 1
  Executor(const Parallelism& parallelism, const std::shared_ptr<Allocator>& allocator,
           ResourceManager* resources = nullptr);
  // The same number for both.
  Executor(int threads, const std::shared_ptr<Allocator>& allocator)
      : Executor(Parallelism{threads, threads}, allocator) {}
  // REQUIRES: no run is in flight.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  int threads() const { return std::max(parallelism_.inter_op, parallelism_.intra_op); }

  // Runs `plan` with its feeds, in the plan's order, and puts what it fetches into *outputs, which
  // may be null. The first error of a kernel, or the first limit that is met, ends the run: nodes
  // that have not started do not start, others stop at the next block of a loop, and the text
  // begins with "node 'name' (Op): " (unless memory is too short even for a text:
  // RESOURCE_EXHAUSTED). On error *outputs is as it was.
  // What nodes do is recorded in *trace, which is for this plan, unless it is null.
  absl::Status Run(const Plan& plan, absl::Span<const Tensor* const> feeds, const RunLimits& limits,
                   std::vector<Tensor>* outputs, RunTrace* trace = nullptr) const;

  // Gives memory that no run uses back to the system.
  void Trim() const;
  // The same for good: large blocks go back as the runs that are in flight end.
  void StopCaching() const;

 private:
  struct Threads;

  const Parallelism parallelism_;
  // Every tensor holds on to it.
  const StripedPtr<Allocator> allocator_;
  ResourceManager* const resources_;
  // Memory of the runs themselves, kept between them until Trim: of each size, as many blocks as
  // there were runs at once, and a quarter of the machine's memory at most.
  const std::unique_ptr<PoolAllocator> run_memory_;
  // Null for one thread.
  const std::unique_ptr<Threads> shared_threads_;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_EXECUTOR_H_
