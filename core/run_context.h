// RunContext: the state that the kernels of one run share.
//
// The executor makes a RunContext for each run. A kernel gets it from KernelContext::run(), on any
// thread, and passes it to its loops (core/parallel.h). Functions that a kernel calls
// (FunctionRunner) share the run's limits, threads and trace.
//
// Thread safety: constant during the run. The objects that it points to are thread-safe.
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
#include "gradflow/core/stop_token.h"
#include "gradflow/core/tensor.h"

#pragma GCC visibility push(default)
namespace gradflow {

class Collectives;
class FileAccess;
class KernelContext;
class ResourceManager;

// The threads that loops run on.
class LoopArena {
 public:
  virtual ~LoopArena() = default;
  // Calls fn() on the calling thread. The arena's threads share the loops of fn(). Returns false
  // without calling fn() if the arena has no room for another calling thread.
  virtual bool Execute(absl::FunctionRef<void()> fn) = 0;
};

// A function that FunctionRunner has found. Valid while the runner lives.
class RunnableFunction;

// Runs functions as part of a run: under its limits, on its threads and in its trace. A function is
// run from its own plan. For the kernels of ops that call functions.
class FunctionRunner {
 public:
  // Takes the function's status and, if it is OK, the results.
  using Done = std::function<void(absl::Status status, std::vector<Tensor> results)>;

  virtual ~FunctionRunner() = default;
  // Returns NOT_FOUND if there is no function of this name.
  virtual absl::StatusOr<const RunnableFunction*> Find(absl::string_view name) const = 0;
  // Starts `function` on `args` and returns at once. No thread waits for a function, so functions
  // may call each other to any depth. Calls done() once, from any thread, unless the run ends
  // first. `caller` is the context of the calling kernel. Errors and traces name its node.
  // REQUIRES: the calling kernel has not called its own done()
  virtual void RunAsync(const RunnableFunction* function, const KernelContext& caller,
                        std::vector<Tensor> args, Done done) = 0;
};

// Owns nothing: all pointers are borrowed.
struct RunContext {
  // Returns true if the run must end early. A kernel that is busy for milliseconds outside of
  // ParallelFor() polls this. If it is true, the kernel returns any status.
  bool ShouldStop() const { return IsStopped(stop); }

  // Stops the run's loops and nodes; null if the run cannot be stopped.
  StopToken* stop = nullptr;
  // The arena of loops with several blocks; null for the arena of the calling thread.
  LoopArena* arena = nullptr;
  // The maximum number of threads of a loop, including the calling thread; 0 for all threads of the
  // arena.
  int max_loop_threads = 0;
  // The allocator of tensors; never null.
  const std::shared_ptr<Allocator>* allocator = &SystemAllocator();
  // The session's resources; null without a session, and while constants are folded.
  ResourceManager* resources = nullptr;
  // Null if there are no functions to run.
  FunctionRunner* functions = nullptr;
  // The number of the run within its session, unique and at least 1; 0 without a session.
  int64_t step_id = 0;
  // The files that kernels may touch; null for no files, for example while constants are folded.
  // Kernels read it with FileAccessOf() (io/file_access.h).
  const FileAccess* files = nullptr;
  // Exchanges tensors with other ranks (core/collectives.h); null if the session has no ranks.
  Collectives* collectives = nullptr;
  // If true, Print and PrintV2 write control characters to terminals unescaped.
  bool raw_prints = false;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_RUN_CONTEXT_H_
