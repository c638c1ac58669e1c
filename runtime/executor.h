// Executor: runs plans on the threads of one session.
//
// A run is one block of memory (a count per node, a place per tensor) and no threads of its own. A
// thread that finishes a node goes on with one of the nodes that this makes ready, and offers the
// others to the session's threads; kernels that cost less than handing them over stay on the thread
// that made their inputs. A tensor is moved into the last node that reads it, which may then write
// its result in place, and is dropped after that.
//
// Thread safety: Run is const and any number of threads may call it at once, also for one plan,
// also from within a oneTBB task or arena of the caller's.
#ifndef GRADFLOW_RUNTIME_EXECUTOR_H_
#define GRADFLOW_RUNTIME_EXECUTOR_H_

#include <chrono>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/tensor.h"
#include "gradflow/runtime/plan.h"

namespace gradflow {

// What bounds one run.
struct RunLimits {
  // Looked at before each node. Zero is no limit.
  std::chrono::milliseconds timeout{0};
};

class Executor {
 public:
  // The thread that calls Run works on its run, and so do threads - 1 that all runs share (fewer if
  // the machine has fewer cores). If several threads call Run at once, one that has nothing left to
  // do for its own run but wait may help with a node of another's. With 1, no other thread ever
  // takes part. Tensors are allocated from `allocator`. REQUIRES: threads >= 1
  Executor(int threads, std::shared_ptr<Allocator> allocator);
  // REQUIRES: no run is in flight.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  int threads() const { return threads_; }

  // Runs `plan` with its feeds, in the plan's order, and puts what it fetches into *outputs, which
  // may be null. The first error of a kernel ends the run: nodes that have not started do not
  // start, and the text begins with "node 'name' (Op): " (unless memory is too short even for a
  // text: RESOURCE_EXHAUSTED). On error *outputs is as it was.
  absl::Status Run(const Plan& plan, absl::Span<const Tensor* const> feeds, const RunLimits& limits,
                   std::vector<Tensor>* outputs) const;

 private:
  struct Threads;

  const int threads_;
  const std::shared_ptr<Allocator> allocator_;
  // Memory of the runs themselves, kept between them.
  const std::unique_ptr<Allocator> run_memory_;
  // Null for one thread.
  const std::unique_ptr<Threads> shared_threads_;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_EXECUTOR_H_
