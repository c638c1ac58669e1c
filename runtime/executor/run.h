// RunState: one call of Executor::Run. ExecutionFrame: one run of a plan within it.
//
// A RunState holds the limits of the call, its queue of ready work and its first error. It has a
// ExecutionFrame for the requested plan and one for each function call in progress.
//
// A ExecutionFrame executes the nodes of its plan. A thread that finishes a node continues with one
// of the nodes that became ready, and pushes the others to the queue.
//
// Not for users.
#ifndef GRADFLOW_RUNTIME_EXECUTOR_RUN_H_
#define GRADFLOW_RUNTIME_EXECUTOR_RUN_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/charge.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/run_context.h"
#include "gradflow/core/tensor.h"
#include "gradflow/runtime/executor/executor.h"
#include "gradflow/runtime/executor/ready_queue.h"
#include "gradflow/runtime/executor/run_limits.h"
#include "gradflow/runtime/memory/pool_allocator.h"
#include "gradflow/runtime/memory/shards.h"
#include "gradflow/runtime/plan/plan.h"

namespace gradflow {

class ExecutionFrame;
class RunTrace;

// State that the runs of an executor share.
struct ExecutorState {
  // Returns a unique number for a new run. Threads of different shards write to different memory.
  int64_t NextStepId() const {
    const int shard = ShardOfThisThread();
    const int64_t before = step_counts[shard].count.fetch_add(1, std::memory_order_relaxed);
    return before * kNumShards + shard + 1;
  }

  // Returns FAILED_PRECONDITION unless the executor has the devices of the plan.
  absl::Status CheckDevices(const Plan& plan) const;

  Parallelism parallelism;
  struct Device {
    std::string name;
    // Kept alive by every tensor.
    ShardedPtr<Allocator> allocator;
  };
  // Indexed by Plan::PlanNode::device. The first is the default, whose name CheckDevices() ignores.
  std::vector<Device> devices;
  std::shared_ptr<ResourceManager> resources;
  KernelRights rights;
  // Memory of frames, cached between runs until Trim. Holds as many blocks of each size as runs
  // were in flight at once, up to a quarter of the machine's memory.
  std::unique_ptr<PoolAllocator> run_memory;
  // Null for one thread.
  std::shared_ptr<LoopArena> arena;

  struct alignas(kShardAlignment) StepCount {
    std::atomic<int64_t> count{0};
  };
  mutable std::array<StepCount, kNumShards> step_counts;
};

// A run: what its frames share.
class RunState final : public FunctionRunner, public std::enable_shared_from_this<RunState> {
 public:
  // Borrows all arguments. Retain() makes it own those that asynchronous kernels may use. Several
  // threads work for the run if `arena` is not null.
  RunState(const ExecutorState& state, const RunLimits& limits, RunTrace* trace,
           const FunctionTable* functions, ReadyQueue::Arena* arena, int max_loop_threads);
  ~RunState() override;

  // Keeps the objects that asynchronous kernels may use alive as long as this object. REQUIRES:
  // this object is owned by a std::shared_ptr
  void Retain(std::shared_ptr<const ExecutorState> state, std::shared_ptr<const Plan> plan,
              std::shared_ptr<const FunctionTable> functions);

  // Runs `frame` to its end, on the calling thread and its helpers. When this returns, no thread is
  // in the run, and asynchronous nodes that are still in flight can no longer reach it.
  void RunToEnd(ExecutionFrame* frame);

  // Implements FunctionRunner.
  absl::StatusOr<const RunnableFunction*> Find(absl::string_view name) const override;
  void RunAsync(const RunnableFunction* function, const KernelContext& caller,
                std::vector<Tensor> args, Done done) override;

  // Stops the run. The first call sets its error to what make_error() returns or throws.
  template <typename F>
  void Fail(F&& make_error) {
    if (!failed_.exchange(true, std::memory_order_relaxed)) status_ = CallSafely(make_error);
    stop_.Stop();
  }
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  // REQUIRES: no thread is in the run.
  absl::Status& status() { return status_; }

  // Returns the context of kernels on a device of the plan. They differ in their allocators.
  const RunContext& context(uint8_t device) const { return contexts_[device]; }
  // Returns the context of kernels on the first device.
  const RunContext& context() const { return contexts_[0]; }
  RunStop& stop() { return stop_; }
  const RunLimits& limits() const { return limits_; }
  ReadyQueue& queue() { return queue_; }
  PoolAllocator& run_memory() const { return *state_.run_memory; }
  // Returns true if several threads work for the run.
  bool shared() const { return arena_ != nullptr; }

 private:
  friend class ExecutionFrame;

  // Executes a piece of work and what follows it.
  void Execute(ReadyQueue::Work* work);
  // Executes work until the queue is empty.
  void Help();
  // Calls fn(), which executes nodes, in isolation: while a kernel waits for tasks of its own, its
  // thread executes no other node. That node could wait for a lock that the kernel holds.
  void Isolate(absl::FunctionRef<void()> fn);
  // Destroys a function's run that has ended.
  void Remove(ExecutionFrame* frame);

  const ExecutorState& state_;
  RunLimits limits_;
  RunTrace* const trace_;
  const FunctionTable* const functions_;
  // Null if the calling thread runs all nodes.
  ReadyQueue::Arena* const arena_;
  RunStop stop_;
  // By device.
  absl::InlinedVector<RunContext, 1> contexts_;
  ReadyQueue queue_;
  std::atomic<bool> failed_{false};
  // Written by the thread that sets failed_, read after all threads have left.
  absl::Status status_;
  Mutex mutex_;
  // Function calls in progress.
  std::map<ExecutionFrame*, std::unique_ptr<ExecutionFrame>> calls_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;

  // Kept alive by Retain().
  std::shared_ptr<const ExecutorState> retained_state_;
  std::shared_ptr<const Plan> retained_plan_;
  std::shared_ptr<const FunctionTable> retained_functions_;
  std::shared_ptr<const CancelFlag> retained_cancelled_;
  std::shared_ptr<const CancelFlag> retained_closed_;
};

// One execution of a plan: the tensors and the states of its nodes. The plan of a run has one
// frame, and each call of a function has another.
//
// Thread safety: many threads may call Work(), each with a node that it owns: a ready node that no
// other thread has taken.
//
// Invariants:
//   1. pending_[n] starts as the number of nodes that n waits for. The thread that finds it at 1,
//      or decrements it to 0, owns n. A thread that finds 1 is the last, and need not decrement it.
//      Decrements are releases, and finding 1 or 0 is an acquire, so the owner sees the outputs of
//      all nodes that n waited for.
//   2. slot_states_[s] is the state of tensors_[s]: no object (kEmpty), a tensor (kValue), or no
//      object because the branch that makes it is not taken (kDead). The producer of s sets the
//      state before any reader can run. The last reader resets it to kEmpty when it has taken the
//      tensor. The tensor has the type plan.slot_types()[s], which its producer checks.
//   3. uses_[s] is the number of remaining reads. A reader that finds 1 is the last, and owns the
//      tensor. Any other reader borrows the tensor and decrements uses_[s] when its kernel has
//      ended. So no kernel borrows the tensor when a reader finds 1. There are two exceptions: an
//      asynchronous node copies its inputs and decrements before its kernel starts, so that the
//      references keep others from reusing the buffers; and a node with inputs of another device
//      always borrows. A fetch is a use that lasts until the end of the run.
//   4. Kernels of a stopped run may have skipped blocks of their loops. Therefore a kernel's
//      outputs are dropped if the run has stopped by the time that the kernel ends.
//   5. Nothing throws while nodes run, since other threads may be in the run. Before and after, an
//      exception may leave the run, whose tensors are then dropped.
class ExecutionFrame : public ReadyQueue::Source {
 public:
  // The node that called a function, and its run. Errors name the chain of callers.
  struct Caller {
    ExecutionFrame* frame;
    int32_t node;
  };

  // Returns memory for a run of `plan`, or null if out of memory.
  static void* AllocateMemory(const Plan& plan, PoolAllocator* pool);

  // Takes ownership of `memory`, which AllocateMemory returned. `trace` is made for this plan, or
  // null.
  ExecutionFrame(RunState* run, const Plan& plan, RunTrace* trace, void* memory);
  ~ExecutionFrame();
  ExecutionFrame(const ExecutionFrame&) = delete;
  ExecutionFrame& operator=(const ExecutionFrame&) = delete;

  // Makes this the run of a function. `done` receives the fetched tensors.
  void SetCaller(const Caller& caller, FunctionRunner::Done done);
  void SetFeeds(absl::Span<const Tensor* const> feeds);
  // Moves the fetched tensors into *outputs. REQUIRES: all nodes have run
  absl::Status Fetch(std::vector<Tensor>* outputs);

  const Plan& plan() const { return plan_; }
  // Sets the number of fed bytes, which decides whether the measured costs of nodes apply.
  void SetFedBytes(int64_t bytes) { small_ = order_.Holds(bytes) ? order_.small.data() : nullptr; }
  // Makes the run measure the costs of the plan's nodes.
  void MeasureCosts() { measures_ = true; }

 private:
  friend class RunState;
  class AsyncNode;
  enum class SlotState : uint8_t { kEmpty, kValue, kDead };
  // Execution on one thread or several, with or without a trace.
  enum class Mode { kAlone, kShared, kAloneTraced, kSharedTraced };
  static constexpr bool IsShared(Mode mode) {
    return mode == Mode::kShared || mode == Mode::kSharedTraced;
  }
  static constexpr bool IsTraced(Mode mode) {
    return mode == Mode::kAloneTraced || mode == Mode::kSharedTraced;
  }
  using Inputs = absl::InlinedVector<Tensor, 8>;
  // Indexes of a node's outputs that have no value.
  using DeadOutputs = absl::InlinedVector<int, 2>;

  // Ready nodes that one thread owns.
  struct ReadyNodes {
    // The nodes to run on this thread, newest first, linked through links_.
    int32_t list = kNoNode;
    // A node that is worth a task. Runs on this thread when the list is empty.
    int32_t kept = kNoNode;
  };

  static size_t MemoryBytes(const Plan& plan);

  // Executes `work`, which belongs to this run, and the nodes that become ready, except those that
  // it pushes to the queue.
  void Execute(ReadyQueue::Work* work);
  template <Mode kMode>
  void Work(ReadyQueue::Work* work) noexcept;
  bool IsSmall(int32_t node) const {
    return nodes_[node].cheap || (small_ != nullptr && small_[node] != 0);
  }
  template <Mode kMode>
  void AddReady(int32_t node, ReadyNodes* ready);
  template <Mode kMode>
  void PropagateOutputs(int32_t node, ReadyNodes* ready);
  // Returns false if the run is over. Sets *ended to false if the node is asynchronous.
  template <Mode kMode>
  bool ProcessNode(int32_t node, Inputs* inputs, bool* ended);
  template <Mode kMode>
  absl::Status ProcessSync(int32_t node, Inputs* inputs, int32_t* only_input, DeadOutputs* dead);
  // Returns the inputs of a node that is not asynchronous: *inputs, or, if the node is the last
  // reader of its only input, the tensor in its slot, which *only_input then names.
  absl::Span<Tensor> PrepareInputs(int32_t node, Inputs* inputs, int32_t* only_input);
  // Copies the indexes of the kernel's outputs without a value to *dead, and sets placeholder
  // tensors for them.
  void SetDeadOutputs(int32_t node, const KernelContext& context, DeadOutputs* dead);
  template <Mode kMode>
  void ProcessAsync(int32_t node);
  template <Mode kMode>
  bool AsyncNodeDone(AsyncNode* node);
  // Ends a node whose kernel returned `status`. Returns false if the run is over.
  template <Mode kMode>
  bool NodeDone(int32_t node, const DeadOutputs& dead, const absl::Status& status);
  template <Mode kMode>
  absl::Status CheckOutputs(int32_t node);
  // Appends the tensor of a slot: the tensor itself for the last reader, which may reuse its
  // memory, otherwise a borrowed copy.
  void BorrowInput(int32_t slot, Inputs* inputs);
  // Decrements the uses of the inputs that are still in their slots.
  template <Mode kMode>
  void ReleaseInputs(int32_t node);
  template <Mode kMode>
  void ReleaseInput(int32_t slot);
  bool HasDeadInput(int32_t node) const;
  void SkipDeadNode(int32_t node);

  // Returns true if the run has been stopped, and ends it with an error that names the node and its
  // fate, `what`: "not started" or "stopped".
  bool EndIfStopped(int32_t node, const char* what) {
    if (!run_.stop().Check()) return false;
    FailStopped(node, what);
    return true;
  }
  void FailStopped(int32_t node, const char* what);
  // Returns an asynchronous node that is in flight, or kNoNode.
  int32_t FirstAsyncNode() const;
  // Returns "node 'name' (Op): ", preceded by the prefixes of the callers.
  std::string Prefix(int32_t node) const;
  // Counts a piece of work that keeps a function's run open.
  void Open() { open_.fetch_add(1, std::memory_order_relaxed); }
  void CloseOne();
  void Destroy(int32_t slot) {
    slot_states_[slot] = SlotState::kEmpty;
    std::destroy_at(&tensors_[slot]);
  }
  // Prepends `node` to `list`. Returns the new list.
  int32_t Link(int32_t node, int32_t list) {
    links_[node] = list;
    return node;
  }

  RunState& run_;
  const Plan& plan_;
  const Plan::Order& order_;
  // Points to arrays of the plan, which loops over nodes read without checks of bounds.
  const Plan::PlanNode* const nodes_;
  const int32_t* const input_slots_;
  const DataType* const slot_types_;
  const int32_t* const slot_uses_;
  // By device.
  const RunContext* const contexts_;
  RunTrace* const trace_;
  Tensor* const tensors_;
  std::atomic<int32_t>* const uses_;
  std::atomic<int32_t>* const pending_;
  int32_t* const links_;
  SlotState* const slot_states_;
  bool measures_ = false;
  // Plan::Order::small; null if it does not apply to this run.
  const uint8_t* small_ = nullptr;
  // True if any slot is or was dead.
  std::atomic<bool> any_dead_{false};

  // The number of pieces of work of a function's run, queued or in progress, and of its
  // asynchronous nodes in flight. The function has ended at 0.
  std::atomic<int> open_{1};
  Caller caller_ = {nullptr, kNoNode};
  // The memory of a function's run.
  Charge charge_;
  // The nesting depth of a function call; 0 for the requested plan.
  int depth_ = 0;
  FunctionRunner::Done done_;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_EXECUTOR_RUN_H_
