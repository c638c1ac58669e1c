// RunState: one call of Executor::Run. ExecutionFrame: one run of a plan within it.
//
// A RunState holds the limits of the call, its queue of ready work and its first error. It has an
// ExecutionFrame for the requested plan and one for each function call in progress.
//
// An ExecutionFrame executes the nodes of its plan. A thread that finishes a node continues with
// the cheap nodes that became ready and with one expensive node. It pushes the other expensive
// nodes to the queue.
//
// A call (PartitionedCall, If, Case, While, For) runs the plan of a function in a separate frame.
// The thread that starts the call continues with that frame when its current frame has no ready
// node left, unless another thread takes the new frame first. The thread that ends the last node of
// the frame moves the results into the caller's frame and continues there. So calls need no
// recursion in C++, no other thread and no lock. The iterations of a loop reuse one frame.
//
// Internal.
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
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/memory_reservation.h"
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
class TraceRecorder;

// Frames of calls that a thread is about to run or to destroy, linked through their next_frame_.
class FrameList {
 public:
  bool empty() const { return first_ == nullptr; }
  void Push(ExecutionFrame* frame);
  // Returns null if the list is empty.
  ExecutionFrame* Pop();

 private:
  ExecutionFrame* first_ = nullptr;
};

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
    // Every tensor of the device shares its ownership.
    ShardedPtr<Allocator> allocator;
  };
  // Indexed by Plan::NodeItem::device. The first is the default, whose name CheckDevices() ignores.
  std::vector<Device> devices;
  std::shared_ptr<ResourceManager> resources;
  KernelRights rights;
  // Memory of frames, cached between runs until Executor::Trim(). The number of cached blocks of a
  // size is the largest number that was in use at once. The cache takes at most a quarter of the
  // machine's memory.
  std::unique_ptr<PoolAllocator> run_memory;
  // Null for one thread.
  std::shared_ptr<LoopArena> arena;

  struct alignas(kShardAlignment) StepCount {
    std::atomic<int64_t> count{0};
  };
  mutable std::array<StepCount, kNumShards> step_counts;
};

// A run: the state that its frames share.
class RunState final : public FunctionRunner, public std::enable_shared_from_this<RunState> {
 public:
  // Borrows all arguments. Retain() makes this object own the arguments that asynchronous kernels
  // may use. Several threads work for the run if `arena` is not null.
  RunState(const ExecutorState& state, const RunLimits& limits, TraceRecorder* trace,
           const FunctionTable* functions, ReadyQueue::Arena* arena, int max_loop_threads);
  ~RunState() override;

  // Extends the lifetime of the objects that asynchronous kernels may use to the lifetime of this
  // object. REQUIRES: this object is owned by a std::shared_ptr
  void Retain(std::shared_ptr<const ExecutorState> state, std::shared_ptr<const Plan> plan,
              std::shared_ptr<const FunctionTable> functions);

  // Runs `frame` to its end, on the calling thread and its helpers. When this returns, no thread is
  // in the run, and asynchronous nodes that are still in flight can no longer reach it.
  void RunToEnd(ExecutionFrame* frame);

  // Implements FunctionRunner.
  absl::StatusOr<const RunnableFunction*> Find(absl::string_view name) const override;
  void RunAsync(const RunnableFunction* function, const KernelContext& caller,
                std::vector<Tensor> args, Done done) override;

  // Stops the run. The first call sets the run's error to the result of make_error(), or to the
  // error of the exception that make_error() throws.
  template <typename F>
  void Fail(F&& make_error) {
    if (!failed_.exchange(true, std::memory_order_relaxed)) status_ = CallSafely(make_error);
    stop_.Stop();
  }
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  // REQUIRES: no thread is in the run.
  absl::Status& status() { return status_; }

  // Returns the context of kernels on a device of the plan. Contexts differ only in their
  // allocators.
  const RunContext& context(uint8_t device) const { return contexts_[device]; }
  // Returns the context of kernels on the first device.
  const RunContext& context() const { return contexts_[0]; }
  StopToken& stop() { return stop_; }
  const RunLimits& limits() const { return limits_; }
  ReadyQueue& queue() { return queue_; }
  PoolAllocator& run_memory() const { return *state_.run_memory; }
  // Returns true if several threads work for the run.
  bool shared() const { return arena_ != nullptr; }

 private:
  friend class ExecutionFrame;

  // Executes `work`, the calls that it starts, and the nodes that become ready, except those that
  // it pushes to the queue.
  void Execute(ReadyQueue::Work* work);
  // Lets other threads run the calls.
  void PushStarts(FrameList* calls);
  // Executes work until the queue is empty.
  void Help();
  // Calls fn(), which executes nodes, in isolation: while a kernel waits for its own tasks, its
  // thread executes no other node. Another node could wait for a lock that the kernel holds.
  void Isolate(absl::FunctionRef<void()> fn);
  // Destroys the frame of a function call that has ended.
  void Remove(ExecutionFrame* frame);
  // Allocate and free memory for the frame of a call, charged like a tensor. A run on one thread
  // keeps a few blocks for its next calls, because a call of the pool takes long in comparison with
  // a small function. AllocateFrame() returns null if out of memory.
  void* AllocateFrame(size_t bytes);
  void FreeFrame(void* block, size_t bytes);
  void FreeSpareFrames();

  const ExecutorState& state_;
  RunLimits limits_;
  TraceRecorder* const trace_;
  const FunctionTable* const functions_;
  // Null if the calling thread runs all nodes.
  ReadyQueue::Arena* const arena_;
  StopToken stop_;
  // Indexed by device.
  absl::InlinedVector<RunContext, 1> contexts_;
  ReadyQueue queue_;
  std::atomic<bool> failed_{false};
  // Written by the thread that sets failed_, read after all threads have left.
  absl::Status status_;
  struct Block {
    void* begin = nullptr;
    size_t bytes = 0;
  };
  // Free blocks for frames of calls. The next block to replace comes first.
  std::array<Block, 4> spare_frames_;
  Mutex mutex_;
  // Function calls in progress.
  std::map<ExecutionFrame*, std::unique_ptr<ExecutionFrame>> calls_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;

  // Set by Retain().
  std::shared_ptr<const ExecutorState> retained_state_;
  std::shared_ptr<const Plan> retained_plan_;
  std::shared_ptr<const FunctionTable> retained_functions_;
  std::shared_ptr<const CancelFlag> retained_cancelled_;
  std::shared_ptr<const CancelFlag> retained_closed_;
};

// One execution of a plan: the tensors and the states of its nodes. A run has a frame for the
// requested plan and a frame for each function call in progress.
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
//      ended. So no kernel borrows the tensor when a reader finds 1. There are two exceptions. An
//      asynchronous node, or a call that is not the last reader, copies its inputs and decrements
//      uses_[s] before its kernel or plan starts; the references of the copies keep other nodes
//      from reusing the buffers. A node with inputs of another device always borrows. A fetch is a
//      use that lasts until the end of the run.
//   4. Kernels of a stopped run may have skipped blocks of their loops. Therefore a kernel's
//      outputs are dropped if the run has stopped by the time that the kernel ends.
//   5. Nothing throws while nodes run, because other threads may be in the run. Before the first
//      node and after the last node, an exception may propagate to the caller. The tensors of the
//      run are then dropped.
class ExecutionFrame : public ReadyQueue::Source {
 public:
  // The node that called a function, and the frame of that node. Errors name the chain of callers.
  struct Caller {
    ExecutionFrame* frame;
    int32_t node;
  };

  // Returns memory for a frame of `plan`, or null if out of memory.
  static void* AllocateMemory(const Plan& plan, PoolAllocator* pool);

  // Takes ownership of `memory`, which AllocateMemory returned. `trace` is made for this plan, or
  // null.
  ExecutionFrame(RunState* run, const Plan& plan, TraceRecorder* trace, void* memory);
  ~ExecutionFrame();
  ExecutionFrame(const ExecutionFrame&) = delete;
  ExecutionFrame& operator=(const ExecutionFrame&) = delete;

  // Makes this the frame of a function that a kernel calls. `done` receives the fetched tensors.
  void SetCaller(const Caller& caller, FunctionRunner::Done done);
  void SetFeeds(absl::Span<const Tensor* const> feeds);
  // Moves the fetched tensors into *outputs. REQUIRES: all nodes have run
  absl::Status Fetch(std::vector<Tensor>* outputs);

  const Plan& plan() const { return plan_; }
  // Sets the number of fed bytes, which decides whether the measured costs of nodes apply.
  void SetFedBytes(int64_t bytes) {
    small_ = order_->Holds(bytes) ? order_->small.data() : nullptr;
  }
  // Makes this frame measure the costs of the plan's nodes.
  void MeasureCosts() { measures_ = true; }

 private:
  friend class FrameList;
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

  // Executes `work`, which belongs to this frame, and the nodes that become ready, except those
  // that it pushes to the queue. Adds the frames of calls to *calls.
  void Execute(ReadyQueue::Work* work, FrameList* calls);
  template <Mode kMode>
  void Work(ReadyQueue::Work* work, FrameList* calls) noexcept;

  // ---- Calls ----

  // Starts a call: makes its first frame and adds it to *calls. Returns false if the run is over.
  // Sets *ended to true if the call is a loop without iterations.
  template <Mode kMode>
  bool ProcessCall(int32_t node, FrameList* calls, bool* ended);
  template <Mode kMode>
  absl::StatusOr<ExecutionFrame*> StartCall(int32_t node);
  // Returns the plan that the call runs first. Sets *first_arg to the input that is the first
  // argument.
  absl::StatusOr<const Plan*> FirstCallee(int32_t node, int* first_arg) const;
  // Makes the frame of a plan that `node` runs, in the place of the call's current frame.
  absl::StatusOr<ExecutionFrame*> MakeCallee(int32_t node, const Plan& plan);
  // Sets feed i of a frame that has not started.
  void SetFeed(int i, Tensor value);
  // Returns an input of a node that ends later: the tensor itself for its last reader, otherwise a
  // copy.
  template <Mode kMode>
  Tensor TakeInput(int32_t slot);
  // Sets *taken to fetch i of a frame that has ended: the tensor itself if no later fetch returns
  // it, otherwise a copy.
  absl::Status TakeFetch(size_t i, Tensor* taken);
  // Called when all nodes of a frame of a call have ended. Returns the frame that the call
  // continues with, an iteration of its loop, or null if the call has ended or has failed.
  ExecutionFrame* NextFrameOfCall();
  absl::StatusOr<ExecutionFrame*> NextFrameOfWhile();
  absl::StatusOr<ExecutionFrame*> NextFrameOfFor();
  // Turns the fetched tensors, from `first_fetch` on, into the feeds from `first_feed` on, and
  // resets the frame for the next iteration.
  absl::Status BeginIteration(size_t first_fetch, int first_feed);
  // Moves the results of a call that has ended into the outputs of its node, and destroys the
  // call's frame.
  absl::Status TakeResults(int32_t node);
  // Makes the frame of a call measure the costs of its nodes if its plan needs that, and uses the
  // costs measured so far.
  void MeasureIfNeeded();
  void EndMeasuring();
  void DeleteCallee(int32_t call);
  // Adds the frames of calls in progress to *frames.
  void MoveCalleesTo(FrameList* frames);
  static void Delete(ExecutionFrame* frame);
  // Returns true if the frame belongs to a call, instead of the requested plan or a function that a
  // kernel calls.
  bool is_call() const { return caller_.frame != nullptr && done_ == nullptr; }
  // Returns the innermost frame with an asynchronous node in flight, among this frame and the calls
  // in progress within it. Returns null if there is none.
  const ExecutionFrame* FindWaiting() const;

  // ---- Nodes ----

  bool IsSmall(int32_t node) const {
    return nodes_[node].cheap || (small_ != nullptr && small_[node] != 0);
  }
  template <Mode kMode>
  void AddReady(int32_t node, ReadyNodes* ready);
  template <Mode kMode>
  void PropagateOutputs(int32_t node, ReadyNodes* ready);
  // Returns false if the run is over. Sets *ended to false if the node ends later.
  template <Mode kMode>
  bool ProcessNode(int32_t node, Inputs* inputs, FrameList* calls, bool* ended);
  template <Mode kMode>
  absl::Status ProcessSync(int32_t node, Inputs* inputs, int32_t* only_input, DeadOutputs* dead);
  // Returns the inputs of a node that is not asynchronous. If the node is the last reader of its
  // only input, returns the tensor in its slot and sets *only_input to the slot. Otherwise returns
  // *inputs.
  absl::Span<Tensor> PrepareInputs(int32_t node, Inputs* inputs, int32_t* only_input);
  // Copies to *dead the indexes of the outputs that the kernel left without a value, and sets
  // placeholder tensors for these outputs.
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
  // Returns true if the node does not run because it is in a branch that is not taken.
  bool IsDead(int32_t node) const;
  // Runs a Merge that has an input.
  template <Mode kMode>
  bool ProcessMerge(int32_t node);
  void SkipDeadNode(int32_t node);

  // If the run has been stopped, ends it with an error and returns true. The error names the node
  // and `what` happened to it: "not started" or "stopped".
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
  // Counts a piece of work, or an asynchronous node, that the function call still waits for.
  void Open() { AddOpen(1); }
  // Adds to open_. Returns the old value. One thread alone needs no locked instruction.
  int AddOpen(int n) {
    if (run_.shared()) return open_.fetch_add(n, std::memory_order_acq_rel);
    const int before = open_.load(std::memory_order_relaxed);
    open_.store(before + n, std::memory_order_relaxed);
    return before;
  }
  // Counts down. Returns true if that was the last piece of work and the run is not over.
  bool CloseOne();
  // Passes the results of a function that a kernel called to the kernel, and destroys this.
  void EndFunction();
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
  const Plan::Order* order_;
  // Pointers to arrays of the plan. Loops over nodes read the arrays through them, without bounds
  // checks.
  const Plan::NodeItem* const nodes_;
  const int32_t* const input_slots_;
  const DataType* const slot_types_;
  const int32_t* const slot_uses_;
  // Indexed by device.
  const RunContext* const contexts_;
  TraceRecorder* trace_;
  Tensor* const tensors_;
  // The current frame of each call, by Plan::NodeItem::call; null if it is not in progress.
  ExecutionFrame** const callees_;
  std::atomic<int32_t>* const uses_;
  std::atomic<int32_t>* const pending_;
  int32_t* const links_;
  SlotState* const slot_states_;
  bool measures_ = false;
  // Plan::Order::small; null if it does not apply to this run.
  const uint8_t* small_ = nullptr;
  // True if any slot is or was dead.
  std::atomic<bool> any_dead_{false};

  // The number of a function's pieces of work that are queued or in progress, plus its asynchronous
  // nodes in flight. The function has ended when this is 0.
  std::atomic<int> open_{1};
  Caller caller_ = {nullptr, kNoNode};
  // Charges the memory of a function that a kernel calls.
  MemoryReservation reservation_;
  // True if this object and its tensors are in one block of memory, as for a call.
  bool is_in_block_ = false;
  ExecutionFrame* next_frame_ = nullptr;
  // The state of a For: the index of the current iteration, and the arguments.
  struct ForState {
    int64_t index = 0;
    int64_t limit = 0;
    int64_t delta = 0;
  };
  ForState for_;
  // The nesting depth of a function call; 0 for the requested plan.
  int depth_ = 0;
  FunctionRunner::Done done_;
};

inline void FrameList::Push(ExecutionFrame* frame) {
  frame->next_frame_ = first_;
  first_ = frame;
}

inline ExecutionFrame* FrameList::Pop() {
  ExecutionFrame* const frame = first_;
  if (frame != nullptr) first_ = frame->next_frame_;
  return frame;
}

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_EXECUTOR_RUN_H_
