// RunContext: what the kernels of one run share.
//
// The executor makes one per run. A kernel reaches it through KernelContext::run(), from whatever
// thread it runs on, and hands it to its loops (core/parallel.h). Sub-plans that a kernel runs
// (FunctionRunner) share the run's limits, threads and trace.
//
// Thread safety: constant while the run lasts; what it points to may be used from any thread.
#ifndef GRADFLOW_CORE_RUN_CONTEXT_H_
#define GRADFLOW_CORE_RUN_CONTEXT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/run_stop.h"
#include "gradflow/core/tensor.h"

#pragma GCC visibility push(default)
namespace gradflow {

class KernelContext;
class ResourceManager;

// The threads that loops run on.
class LoopArena {
 public:
  virtual ~LoopArena() = default;
  // Calls fn() on the calling thread, as one of the arena's. Returns false, without calling it, if
  // the arena is full.
  virtual bool Execute(absl::FunctionRef<void()> fn) = 0;
};

// A function that FunctionRunner has found; valid as long as the runner.
class RunnableFunction;

// Runs functions, which are plans, as part of a run: under its limits, on its threads and in its
// trace. For kernels whose op calls a function (If, While, calls).
class FunctionRunner {
 public:
  // Takes the function's status and, if that is OK, its results.
  using Done = std::function<void(absl::Status status, std::vector<Tensor> results)>;

  virtual ~FunctionRunner() = default;
  // NOT_FOUND if there is no function of this name.
  virtual absl::StatusOr<const RunnableFunction*> Find(absl::string_view name) const = 0;
  // Starts `function` on `args` and returns at once; nothing waits, so functions may call each
  // other to any depth. Calls done() once, from any thread, unless the run ends first. `caller` is
  // the context of the kernel that calls, which must not be done before: errors and traces name its
  // node.
  virtual void RunAsync(const RunnableFunction* function, const KernelContext& caller,
                        std::vector<Tensor> args, Done done) = 0;
};

// Borrows everything.
struct RunContext {
  // Reports whether the run is to end early. Kernels that are busy for milliseconds outside of
  // loops ask now and then, and return any status if so.
  bool ShouldStop() const { return stop != nullptr && stop->Check(); }

  // Stops the run's loops and nodes; null if nothing does.
  RunStop* stop = nullptr;
  // Where loops of several blocks run; null for the arena that the calling thread is in.
  LoopArena* arena = nullptr;
  // The most threads that one loop may use, with its own; 0 for all of the arena, 1 for the calling
  // thread alone.
  int max_loop_threads = 0;
  // Where tensors are allocated; never null.
  const std::shared_ptr<Allocator>* allocator = &SystemAllocator();
  // The session's resources for kernels; null without a session, also while a plan is made.
  ResourceManager* resources = nullptr;
  // Null if there are no functions to run.
  FunctionRunner* functions = nullptr;
  // Numbers the runs of a session from 1; 0 without a session.
  int64_t step_id = 0;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_RUN_CONTEXT_H_
