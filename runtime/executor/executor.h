// Executor: runs plans on the calling threads and on oneTBB's workers.
//
// A run has a block of memory for each plan that it executes (a count per node, a slot per tensor),
// and owns no threads. A thread that finishes a node continues with the cheap nodes that became
// ready and with one expensive node. It leaves the other expensive nodes to oneTBB's workers. A
// node is cheap if it costs less than a task switch. A tensor is moved into the last node that
// reads it, which may write its result in place, and is dropped after that node.
//
// Asynchronous kernels hold no thread. If a run has nothing else to do, only the thread that called
// Run waits for them. Functions that kernels call run the same way, as part of the run.
//
// Thread safety: Run is const. Any number of threads may call it at once, even with the same plan,
// and even from within a oneTBB task or arena of the caller. A run that uses only
// its calling thread does not write to memory that other runs write to.
#ifndef GRADFLOW_RUNTIME_EXECUTOR_EXECUTOR_H_
#define GRADFLOW_RUNTIME_EXECUTOR_EXECUTOR_H_

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/run_context.h"
#include "gradflow/core/tensor.h"
#include "gradflow/io/file_access.h"
#include "gradflow/runtime/executor/run_limits.h"
#include "gradflow/runtime/memory/pool_allocator.h"
#include "gradflow/runtime/plan/plan.h"

namespace gradflow {

class Collectives;
class ResourceManager;
class TraceRecorder;
struct ExecutorState;

// The number of threads that runs use.
struct Parallelism {
  // The maximum number of nodes of one run that execute at once.
  int inter_op = 1;
  // The maximum number of threads for the loops of one kernel.
  int intra_op = 1;
};

// A device of an executor. Nodes of a plan that request it allocate their tensors there.
struct ExecutorDevice {
  // A name from PlanOptions::devices.
  std::string name;
  std::shared_ptr<Allocator> allocator;
};

// Permissions of kernels beyond access to their tensors (SessionOptions).
struct KernelRights {
  FileAccess files;
  bool raw_prints = false;
  std::shared_ptr<Collectives> collectives;
};

// A function that kernels call: a plan whose feeds are its arguments and whose fetches are its
// results.
class RunnableFunction {
 public:
  RunnableFunction(std::string name, std::shared_ptr<const Plan> plan)
      : name_(std::move(name)), plan_(std::move(plan)) {}
  const std::string& name() const { return name_; }
  const std::shared_ptr<const Plan>& plan() const { return plan_; }

 private:
  std::string name_;
  std::shared_ptr<const Plan> plan_;
};

// The functions that the kernels of a run may call, by name.
class FunctionTable {
 public:
  // Adds a function. Replaces the function of that name, if any.
  void Add(const std::string& name, std::shared_ptr<const Plan> plan) {
    functions_.insert_or_assign(name, RunnableFunction(name, std::move(plan)));
  }
  // Returns null if there is no such function.
  const RunnableFunction* Find(absl::string_view name) const {
    const auto it = functions_.find(name);
    return it == functions_.end() ? nullptr : &it->second;
  }

 private:
  std::map<std::string, RunnableFunction, std::less<>> functions_;
};

class Executor {
 public:
  // A run uses at most max(inter_op, intra_op) threads: its caller and oneTBB's workers, which all
  // runs share. A thread that waits for its run works for no other run. If both numbers are 1, a
  // run uses only its calling thread. Tensors are allocated from `allocator`; nodes on other
  // devices use the allocators of `other_devices`. Kernels use `resources` and have `rights`.
  // REQUIRES: both numbers >= 1
  Executor(const Parallelism& parallelism, const std::shared_ptr<Allocator>& allocator,
           std::shared_ptr<ResourceManager> resources = nullptr,
           const std::vector<ExecutorDevice>& other_devices = {}, const KernelRights& rights = {});
  // Overload with `threads` for both numbers.
  Executor(int threads, const std::shared_ptr<Allocator>& allocator)
      : Executor(Parallelism{threads, threads}, allocator) {}
  // REQUIRES: no run is in flight. Asynchronous kernels of runs that are over may still be in
  // flight.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  int threads() const;

  // Runs `plan` and stores the fetched tensors in *outputs, which may be null. `feeds` are in the
  // order of PlanNames::feeds. On error *outputs is unchanged.
  //
  // The first error of a kernel, or the first limit that is reached, ends the run. Nodes that have
  // not started do not start, running nodes stop at the next block of a loop, and Run does not wait
  // for asynchronous nodes. The error of a node begins with "node 'name' (Op): ", unless there is
  // no memory for the text.
  //
  // Returns FAILED_PRECONDITION if the executor lacks a device of the plan.
  //
  // Records the nodes in *trace, which was made for this plan and may be null. Kernels may call
  // `functions`.
  absl::Status Run(const std::shared_ptr<const Plan>& plan, absl::Span<const Tensor* const> feeds,
                   const RunLimits& limits, std::vector<Tensor>* outputs,
                   TraceRecorder* trace = nullptr,
                   const std::shared_ptr<const FunctionTable>& functions = nullptr) const;

  // Frees the memory that is cached for later runs. The allocators keep the memory of tensors.
  void Trim() const;
  // Trims now, and returns large blocks to the system when the runs in flight end.
  void StopCaching() const;

 private:
  const std::shared_ptr<const ExecutorState> state_;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_EXECUTOR_EXECUTOR_H_
