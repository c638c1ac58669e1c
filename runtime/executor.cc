#include "gradflow/runtime/executor.h"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/run_stop.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tsan.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/runtime/pool_allocator.h"
#include "gradflow/runtime/run_trace.h"

namespace gradflow {

// The threads that the runs of a session share.
struct Executor::Threads final : LoopArena {
  // Room in the arena for the workers and beside them for max_callers threads, each with a run of
  // its own. Who finds no room is not made to wait: there is more to do than threads to do it, so
  // its run takes place on its own thread.
  explicit Threads(int threads)
      : max_callers(2 * threads + 6), arena(max_callers + NumWorkers(threads), max_callers) {
    arena.initialize();
  }

  // oneTBB warns, on standard error, of more workers than the process may have.
  static int NumWorkers(int threads) {
    const size_t allowed =
        tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
    return static_cast<int>(std::min<size_t>(threads, allowed)) - 1;
  }

  // Counts a caller for as long as it lives.
  struct Caller {
    explicit Caller(Threads* t)
        : threads(*t), before(t->callers.fetch_add(1, std::memory_order_relaxed)) {}
    ~Caller() { threads.callers.fetch_sub(1, std::memory_order_relaxed); }
    bool has_room() const { return before < threads.max_callers; }
    Threads& threads;
    const int before;
  };

  bool Execute(absl::FunctionRef<void()> fn) override {
    const Caller caller(this);
    if (!caller.has_room()) return false;
    arena.execute([&] { fn(); });
    return true;
  }

  const int max_callers;
  std::atomic<int> callers{0};
  tbb::task_arena arena;
};

namespace {

constexpr int32_t kNone = -1;
constexpr int32_t kDone = -2;

// What an output is before its kernel sets it: a tensor that none may set.
const Tensor& UnsetTensor() {
  static const Tensor* const unset = new Tensor(DT_INVALID, TensorShape());
  return *unset;
}

// How a run takes place: on one thread or several, and whether it is watched.
enum class Mode { kAlone, kShared, kAloneTraced, kSharedTraced };
constexpr bool IsShared(Mode mode) { return mode == Mode::kShared || mode == Mode::kSharedTraced; }
constexpr bool IsTraced(Mode mode) {
  return mode == Mode::kAloneTraced || mode == Mode::kSharedTraced;
}

// A task group that stays usable when oneTBB has no memory for a task.
class NodeGroup : public tbb::task_group {
 public:
  // False if the task could not be made.
  template <typename F>
  bool TryRun(F&& task) noexcept {
    try {
      run(std::forward<F>(task));
      return true;
    } catch (...) {
      ReleaseCount(this, 0);
      return false;
    }
  }

 private:
  // run() counts the task before there is memory for it, and forgets to take that back; wait()
  // would then never return. In later versions of oneTBB the task counts itself.
  template <typename G>
  static auto ReleaseCount(G* group, int) -> decltype(group->m_wait_ctx.release()) {
    group->m_wait_ctx.release();
  }
  template <typename G>
  static void ReleaseCount(G*, ...) {}
};

// One run of a plan.
//
// Thread safety: Work() may be called from many threads, each with a node that is its own: one
// that is ready, and that no other thread has been given.
//
// Invariants:
//   1. state_[n] goes from the number of nodes that n waits for down to 0. Who takes it to 0 owns
//      n, and from then on uses state_[n] as the link of a list of ready nodes; after n has run
//      without error it is kDone. Taking down is a release and reaching 0 an acquire, so the owner
//      sees the outputs of all nodes that n waited for.
//   2. tensors_[s] is a living object from when its maker is done (a feed: from the start) until
//      uses_[s] is 0, and not at all if no one uses it; neither may be touched at other times, but
//      for a node with one input that is its last reader: it destroys the tensor when it has run.
//      Its type is plan.slot_types()[s], as its maker checks, so a kernel's inputs have the types
//      that the plan has checked against the node.
//   3. uses_[s] counts the reads to come. A reader that finds it at 1 is the last, and the
//      tensor is its own; any other copies the tensor first and counts down then, so that whoever
//      finds 1 knows that all copies are made. A fetch is a use that lasts until the end.
//   4. status_ is written by the thread that sets failed_, and read when all threads have left.
//   5. When stop_ has stopped, loops of kernels may have skipped blocks. So each kernel's outputs
//      are dropped unless the run goes on after it has ended.
//   6. Nothing throws while nodes run, when other threads may be in the run, too. Before and after
//      that an exception may leave it: the tensors are dropped with the run.
class PlanRun {
 public:
  PlanRun(const Plan& plan, const Parallelism& parallelism,
          const std::shared_ptr<Allocator>& allocator, ResourceManager* resources,
          const RunLimits& limits, RunTrace* trace, char* memory)
      : plan_(plan),
        order_(plan.order()),
        nodes_(plan.nodes().data()),
        parallelism_(parallelism),
        allocator_(allocator),
        resources_(resources),
        trace_(trace),
        tensors_(reinterpret_cast<Tensor*>(memory)),
        state_(reinterpret_cast<std::atomic<int32_t>*>(tensors_ + plan.num_slots())),
        uses_(state_ + plan.num_nodes()),
        unset_(UnsetTensor()),
        limits_(limits),
        stop_(limits.cancelled, limits.closed, limits.deadline) {
    static_assert(sizeof(std::atomic<int32_t>) == sizeof(int32_t));
    if (plan.num_nodes() > 0) {
      std::memcpy(static_cast<void*>(state_), plan.pending().data(),
                  plan.num_nodes() * sizeof(int32_t));
    }
    std::memset(static_cast<void*>(uses_), 0, plan.num_feeds() * sizeof(int32_t));
  }
  ~PlanRun() {
    if (!finished_) DropTensors();
  }

  static size_t MemoryBytes(const Plan& plan) {
    return plan.num_slots() * (sizeof(Tensor) + sizeof(int32_t)) +
           plan.num_nodes() * sizeof(int32_t);
  }

  void SetFeeds(absl::Span<const Tensor* const> feeds) {
    for (size_t i = 0; i < feeds.size(); ++i) {
      const int32_t uses = plan_.slot_uses()[i];
      if (uses > 0) new (&tensors_[i]) Tensor(*feeds[i]);
      uses_[i].store(uses, std::memory_order_relaxed);
    }
  }

  // Runs all nodes on this thread, and their loops in the arena unless that is null.
  void RunAlone(LoopArena* arena) {
    const ScopedLoopSettings scope(
        {&stop_, arena == nullptr ? 1 : SharedLoops().max_threads, arena});
    if (trace_ == nullptr) {
      Work<Mode::kAlone>(kNone);
    } else {
      Work<Mode::kAloneTraced>(kNone);
    }
  }

  // Runs all nodes on this thread and those of the arena, which this one is in. Isolated, so that a
  // thread which waits for its run takes no node of another's: that could be long.
  void RunShared() {
    measures_ = plan_.BeginMeasuring();
    tbb::this_task_arena::isolate([this] {
      const ScopedLoopSettings scope(SharedLoops());
      WorkShared(kNone);
      if (group_.has_value()) {
        group_->wait();
        TsanAcquire(this);
      }
    });
    if (!measures_) return;
    // Without memory for another order, the plan keeps the one it has.
    (void)CallSafely([&] {
      plan_.EndMeasuring(/*finished=*/!failed_.load(std::memory_order_relaxed));
      return absl::OkStatus();
    });
  }

  // Ends the run. Only once, after all nodes.
  absl::Status Finish(std::vector<Tensor>* outputs);

 private:
  struct Task;
  using Inputs = absl::InlinedVector<Tensor, 8>;

  // Ready nodes that are one thread's.
  struct ReadyNodes {
    // A list through state_: nodes to run here, the newest first.
    int32_t list = kNone;
    // A node worth a task, for when the list is empty.
    int32_t kept = kNone;
  };

  // Runs node `first` (the plan's roots if kNone) and what becomes ready, but for what it offers to
  // other threads.
  template <Mode kMode>
  void Work(int32_t first) noexcept;
  void WorkShared(int32_t first) {
    if (trace_ == nullptr) {
      Work<Mode::kShared>(first);
    } else {
      Work<Mode::kSharedTraced>(first);
    }
  }
  // Work of another thread than the caller's.
  void Help(int32_t node);
  template <Mode kMode>
  void AddReady(int32_t node, ReadyNodes* ready);
  template <Mode kMode>
  void AddSuccessors(int32_t node, ReadyNodes* ready);
  // Gives a node to whichever thread is free. False if there is no memory for that.
  bool Offer(int32_t node);
  bool OfferAsTask(int32_t node);
  // Takes one of waiting_, or kNone: then the thread counts as working no more.
  int32_t TakeWaiting();
  LoopSettings SharedLoops() {
    const int threads = parallelism_.intra_op < parallelism_.inter_op ? parallelism_.intra_op : 0;
    return {&stop_, threads};
  }
  // Whether fewer nodes may run at once than there are threads.
  bool limits_nodes() const { return parallelism_.inter_op < parallelism_.intra_op; }

  // Ends the run, with the name of the node, if it is to end. `what` became of the node.
  bool EndIfStopped(const Plan::PlanNode& node, const char* what) {
    if (!stop_.Check()) return false;
    EndStopped(node, what);
    return true;
  }
  void EndStopped(const Plan::PlanNode& node, const char* what);
  // False if the run is over.
  template <Mode kMode>
  bool RunNode(int32_t node, Inputs* inputs);
  template <Mode kMode>
  absl::Status Compute(const Plan::PlanNode& node, Inputs* inputs, Tensor** only_input);
  template <Mode kMode>
  void TakeInput(int32_t slot, Inputs* inputs);
  // Ends the run with the error that make_error() returns or throws, if it is the first.
  template <typename F>
  void Fail(F&& make_error);
  void DropTensors();

  // Makes `list` what follows on `node`.
  int32_t Push(int32_t node, int32_t list) {
    state_[node].store(list, std::memory_order_relaxed);
    return node;
  }

  const Plan& plan_;
  const Plan::Order& order_;
  const Plan::PlanNode* const nodes_;
  const Parallelism& parallelism_;
  const std::shared_ptr<Allocator>& allocator_;
  ResourceManager* const resources_;
  RunTrace* const trace_;
  Tensor* const tensors_;
  std::atomic<int32_t>* const state_;
  std::atomic<int32_t>* const uses_;
  const Tensor& unset_;
  const RunLimits& limits_;
  RunStop stop_;
  std::atomic<bool> failed_{false};
  absl::Status status_;
  // Whether the nodes that are worth a task are timed for the plan.
  bool measures_ = false;
  // Whether Finish has left no tensor in the slots.
  bool finished_ = false;
  // Made by the first offer, which is the caller's.
  std::optional<NodeGroup> group_;

  // Where fewer nodes may run at once than there are threads, those that may not yet are a list
  // through state_; a thread goes on with one of them when it has none of its own left. As long as
  // there is one, as many threads as may are working (or have a task that is to begin): a thread
  // that stops has found none, and who adds one makes a task for another thread if it may.
  Mutex waiting_mutex_;
  int32_t waiting_ ABSL_GUARDED_BY(waiting_mutex_) = kNone;
  // The end of the list, if there is one.
  int32_t last_waiting_ ABSL_GUARDED_BY(waiting_mutex_) = kNone;
  int working_ ABSL_GUARDED_BY(waiting_mutex_) = 1;
};

template <Mode kMode>
void PlanRun::Work(int32_t first) noexcept {
  Inputs inputs;
  ReadyNodes ready;
  if (first == kNone) {
    // Backwards, since the newest is the first to run.
    const std::vector<int32_t>& roots = order_.roots;
    for (size_t i = roots.size(); i-- > 0;) AddReady<kMode>(roots[i], &ready);
  } else {
    ready.kept = first;
  }
  // From now on, each node that ends looks whether the next may start.
  const int32_t next = ready.list != kNone ? ready.list : ready.kept;
  if (next == kNone || EndIfStopped(nodes_[next], "not started")) return;
  for (;;) {
    int32_t node = ready.list;
    if (node != kNone) {
      ready.list = state_[node].load(std::memory_order_relaxed);
    } else if (node = std::exchange(ready.kept, kNone); node == kNone) {
      if (!IsShared(kMode) || !limits_nodes()) return;
      if (node = TakeWaiting(); node == kNone) return;
    }
    if (!RunNode<kMode>(node, &inputs)) return;
    AddSuccessors<kMode>(node, &ready);
  }
}

template <Mode kMode>
void PlanRun::AddReady(int32_t node, ReadyNodes* ready) {
  if constexpr (IsTraced(kMode)) trace_->node(node).scheduled = RunTrace::Now();
  if (!IsShared(kMode) || nodes_[node].cheap) {
    ready->list = Push(node, ready->list);
    return;
  }
  const int32_t before = std::exchange(ready->kept, node);
  if (before != kNone && !Offer(before)) ready->list = Push(before, ready->list);
}

template <Mode kMode>
void PlanRun::AddSuccessors(int32_t node, ReadyNodes* ready) {
  const int32_t* const successors = order_.successors.data();
  for (int32_t i = nodes_[node + 1].successors_begin; i-- > nodes_[node].successors_begin;) {
    const int32_t next = successors[i];
    if constexpr (IsShared(kMode)) {
      // At 1, this node is the only one left to count, and nobody else does.
      if (state_[next].load(std::memory_order_acquire) != 1 &&
          state_[next].fetch_sub(1, std::memory_order_acq_rel) != 1) {
        continue;
      }
    } else {
      const int32_t pending = state_[next].load(std::memory_order_relaxed) - 1;
      state_[next].store(pending, std::memory_order_relaxed);
      if (pending != 0) continue;
    }
    AddReady<kMode>(next, ready);
  }
}

// Work for another thread: a ready node, or kNone for one that waits.
struct PlanRun::Task {
  GRADFLOW_NO_TSAN void operator()() const {
    TsanAcquire(handover);
    run->Help(node);
    TsanRelease(run);
  }

  PlanRun* run;
  const void* handover;
  int32_t node;
};

void PlanRun::Help(int32_t node) {
  if (node == kNone) node = TakeWaiting();
  if (node == kNone) return;
  const ScopedLoopSettings scope(SharedLoops());
  WorkShared(node);
}

bool PlanRun::Offer(int32_t node) {
  if (!limits_nodes()) return OfferAsTask(node);
  bool add_thread;
  {
    MutexLock lock(&waiting_mutex_);
    Push(node, kNone);
    if (waiting_ == kNone) {
      waiting_ = node;
    } else {
      Push(last_waiting_, node);
    }
    last_waiting_ = node;
    add_thread = working_ < parallelism_.inter_op;
    if (add_thread) ++working_;
  }
  if (add_thread && !OfferAsTask(kNone)) {
    MutexLock lock(&waiting_mutex_);
    --working_;
  }
  return true;
}

bool PlanRun::OfferAsTask(int32_t node) {
  if (!group_.has_value()) group_.emplace();
  const void* const handover = node == kNone ? nodes_ : static_cast<const void*>(&state_[node]);
  TsanRelease(handover);
  return group_->TryRun(Task{this, handover, node});
}

int32_t PlanRun::TakeWaiting() {
  MutexLock lock(&waiting_mutex_);
  const int32_t node = waiting_;
  if (node == kNone) {
    --working_;
  } else {
    waiting_ = state_[node].load(std::memory_order_relaxed);
  }
  return node;
}

void PlanRun::EndStopped(const Plan::PlanNode& node, const char* what) {
  Fail([&] {
    return errors::Prefix(absl::StrCat(internal::NodePrefix(node.node->def()), what, ", since "),
                          WhyStopped(stop_, limits_));
  });
}

template <Mode kMode>
bool PlanRun::RunNode(int32_t node, Inputs* inputs) {
  const Plan::PlanNode& plan_node = nodes_[node];
  const int32_t begin = plan_node.outputs_begin;
  const int32_t end = nodes_[node + 1].outputs_begin;
  if constexpr (IsTraced(kMode)) {
    trace_->node(node).thread = RunTrace::ThisThread();
    trace_->node(node).start = RunTrace::Now();
  }
  for (int32_t slot = begin; slot < end; ++slot) new (&tensors_[slot]) Tensor(unset_);
  Tensor* only_input = nullptr;
  const absl::Status status =
      CallSafely([&] { return Compute<kMode>(plan_node, inputs, &only_input); });
  // Before anyone reads the outputs, so that an output over the memory of an input is alone there.
  inputs->clear();
  if (only_input != nullptr) std::destroy_at(only_input);
  // The first thing to be said of a kernel that was stopped, whatever it says itself.
  const bool stopped = EndIfStopped(plan_node, "stopped");
  if (stopped || !status.ok()) {
    std::destroy(tensors_ + begin, tensors_ + end);
    if constexpr (IsTraced(kMode)) trace_->node(node).EndFailed();
    if (!stopped) {
      Fail([&] { return errors::Prefix(internal::NodePrefix(plan_node.node->def()), status); });
    }
    return false;
  }
  for (int32_t slot = begin; slot < end; ++slot) {
    const int32_t uses = plan_.slot_uses()[slot];
    if (uses == 0) std::destroy_at(&tensors_[slot]);
    uses_[slot].store(uses, std::memory_order_relaxed);
  }
  if constexpr (IsTraced(kMode)) trace_->node(node).end = RunTrace::Now();
  state_[node].store(kDone, std::memory_order_relaxed);
  return true;
}

template <Mode kMode>
absl::Status PlanRun::Compute(const Plan::PlanNode& node, Inputs* inputs, Tensor** only_input) {
  const Plan::PlanNode& next = *(&node + 1);
  const int32_t num_inputs = next.inputs_begin - node.inputs_begin;
  absl::Span<Tensor> in;
  if (const int32_t* slots = plan_.inputs().data() + node.inputs_begin;
      num_inputs == 1 && uses_[slots[0]].load(std::memory_order_acquire) == 1) {
    // The last reader of its only input, as most are, reads it where it is.
    uses_[slots[0]].store(0, std::memory_order_relaxed);
    *only_input = &tensors_[slots[0]];
    in = absl::MakeSpan(*only_input, 1);
  } else {
    inputs->reserve(num_inputs);
    for (int32_t i = 0; i < num_inputs; ++i) TakeInput<kMode>(slots[i], inputs);
    in = absl::MakeSpan(*inputs);
  }
  const size_t num_outputs = next.outputs_begin - node.outputs_begin;
  const absl::Span<Tensor> outputs(tensors_ + node.outputs_begin, num_outputs);
  const auto types = plan_.slot_types().subspan(node.outputs_begin, num_outputs);
  KernelContext context(in, outputs, types, allocator_, resources_);
  RunTrace::NodeRecord* record = nullptr;
  if constexpr (IsTraced(kMode)) {
    record = &trace_->node(static_cast<int32_t>(&node - nodes_));
    context.CountAllocatedBytes(&record->allocated_bytes);
    record->compute_start = RunTrace::Now();
  }
  const bool measures = IsShared(kMode) && measures_ && !node.cheap;
  const int64_t start = measures ? RunTrace::Now() : 0;
  GRADFLOW_RETURN_IF_ERROR(node.kernel->Compute(context));
  if (measures) plan_.SetCost(static_cast<int>(&node - nodes_), RunTrace::Now() - start);
  if constexpr (IsTraced(kMode)) record->compute_end = RunTrace::Now();
  for (size_t i = 0; i < num_outputs; ++i) {
    if (outputs[i].dtype() == types[i] && outputs[i].IsInitialized()) {
      // Shared with another tensor they are counted, or the caller's.
      if (types[i] == DT_STRING && outputs[i].CanBeReused()) {
        GRADFLOW_RETURN_IF_ERROR(outputs[i].CountStrings());
      }
      continue;
    }
    if (outputs[i].dtype() == DT_INVALID) {
      return errors::Internal("the kernel did not set output ", i);
    }
    return errors::Internal("the kernel set output ", i, " to ",
                            outputs[i].IsInitialized() ? "a" : "an uninitialised",
                            " tensor of type ", DataTypeString(outputs[i].dtype()), ", expected ",
                            DataTypeString(types[i]));
  }
  if constexpr (IsTraced(kMode)) {
    for (const Tensor& output : outputs) {
      record->outputs.push_back(
          {output.dtype(), output.shape(), static_cast<int64_t>(output.TotalBytes())});
    }
  }
  return absl::OkStatus();
}

template <Mode kMode>
void PlanRun::TakeInput(int32_t slot, Inputs* inputs) {
  Tensor& tensor = tensors_[slot];
  std::atomic<int32_t>& uses = uses_[slot];
  const int32_t left = uses.load(std::memory_order_acquire);
  if (left == 1) {
    inputs->push_back(std::move(tensor));
    uses.store(0, std::memory_order_relaxed);
    std::destroy_at(&tensors_[slot]);
    return;
  }
  inputs->push_back(tensor);
  if constexpr (IsShared(kMode)) {
    if (uses.fetch_sub(1, std::memory_order_acq_rel) == 1) std::destroy_at(&tensor);
  } else {
    uses.store(left - 1, std::memory_order_relaxed);
  }
}

template <typename F>
void PlanRun::Fail(F&& make_error) {
  if (!failed_.exchange(true, std::memory_order_relaxed)) status_ = CallSafely(make_error);
  stop_.Stop();
}

absl::Status PlanRun::Finish(std::vector<Tensor>* outputs) {
  if (status_.ok() && outputs != nullptr) {
    status_ = CallSafely([&] {
      std::vector<Tensor> fetched;
      fetched.reserve(plan_.fetches().size());
      for (const Plan::Fetch& fetch : plan_.fetches()) {
        Tensor& tensor = tensors_[fetch.slot];
        if (fetch.last) {
          fetched.push_back(std::move(tensor));
        } else {
          fetched.push_back(tensor);
        }
      }
      *outputs = std::move(fetched);
      return absl::OkStatus();
    });
  }
  if (status_.ok()) {
    // All others have been read for the last time.
    for (const Plan::Fetch& fetch : plan_.fetches()) {
      if (fetch.last) std::destroy_at(&tensors_[fetch.slot]);
    }
    finished_ = true;
  }
  return std::move(status_);
}

void PlanRun::DropTensors() {
  const auto drop = [&](int32_t begin, int32_t end) {
    for (int32_t slot = begin; slot < end; ++slot) {
      if (uses_[slot].load(std::memory_order_relaxed) > 0) std::destroy_at(&tensors_[slot]);
    }
  };
  drop(0, plan_.num_feeds());
  for (int32_t node = 0; node < plan_.num_nodes(); ++node) {
    if (state_[node].load(std::memory_order_relaxed) == kDone) {
      drop(nodes_[node].outputs_begin, nodes_[node + 1].outputs_begin);
    }
  }
}

}  // namespace

Executor::Executor(const Parallelism& parallelism, const std::shared_ptr<Allocator>& allocator,
                   ResourceManager* resources)
    : parallelism_(parallelism),
      allocator_(allocator),
      resources_(resources),
      run_memory_(std::make_unique<PoolAllocator>()),
      shared_threads_(threads() > 1 ? std::make_unique<Threads>(threads()) : nullptr) {}

Executor::~Executor() = default;

void Executor::Trim() const { run_memory_->Trim(); }
void Executor::StopCaching() const { run_memory_->StopCaching(); }

absl::Status Executor::Run(const Plan& plan, absl::Span<const Tensor* const> feeds,
                           const RunLimits& limits, std::vector<Tensor>* outputs,
                           RunTrace* trace) const {
  return CallSafely([&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(plan.CheckFeeds(feeds));
    const size_t bytes = std::max<size_t>(PlanRun::MemoryBytes(plan), 1);
    const auto free_memory = [&](void* memory) { run_memory_->Deallocate(memory, bytes); };
    const std::unique_ptr<void, decltype(free_memory)> memory(run_memory_->Allocate(bytes),
                                                              free_memory);
    if (memory == nullptr) {
      return errors::ResourceExhausted("out of memory for a run of ", plan.num_nodes(), " nodes");
    }
    PlanRun run(plan, parallelism_, allocator_.get(), resources_, limits, trace,
                static_cast<char*>(memory.get()));
    run.SetFeeds(feeds);
    if (shared_threads_ == nullptr || plan.is_sequential()) {
      run.RunAlone(shared_threads_.get());
    } else if (!shared_threads_->Execute([&] { run.RunShared(); })) {
      run.RunAlone(nullptr);
    }
    return run.Finish(outputs);
  });
}

}  // namespace gradflow
