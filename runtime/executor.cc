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
#include "absl/strings/str_cat.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tsan.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/runtime/call_safely.h"
#include "gradflow/runtime/pool_allocator.h"

namespace gradflow {

// The threads that the runs of a session share.
struct Executor::Threads {
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

  const int max_callers;
  std::atomic<int> callers{0};
  tbb::task_arena arena;
};

namespace {

using Clock = std::chrono::steady_clock;

constexpr int32_t kNone = -1;
constexpr int32_t kDone = -2;

// What an output is before its kernel sets it: a tensor that none may set.
const Tensor& UnsetTensor() {
  static const Tensor* const unset = new Tensor(DT_INVALID, TensorShape());
  return *unset;
}

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
//      uses_[s] is 0, and not at all if no one uses it; neither may be touched at other times. Its
//      type is plan.slot_types()[s], as its maker checks, so a kernel's inputs have the types that
//      the plan has checked against the node.
//   3. uses_[s] counts the reads to come. A reader that finds it at 1 is the last and may move the
//      tensor; any other copies the tensor first and counts down then, so that whoever finds 1
//      knows that all copies are made. A fetch is a use that lasts until the end.
//   4. status_ is written by the thread that sets stopped_, and read when all threads have left.
//   5. Nothing throws while nodes run, when other threads may be in the run, too. Before and after
//      that an exception may leave it: the tensors are dropped with the run.
class PlanRun {
 public:
  PlanRun(const Plan& plan, const std::shared_ptr<Allocator>& allocator, const RunLimits& limits,
          char* memory)
      : plan_(plan),
        nodes_(plan.nodes().data()),
        allocator_(allocator),
        tensors_(reinterpret_cast<Tensor*>(memory)),
        state_(reinterpret_cast<std::atomic<int32_t>*>(tensors_ + plan.num_slots())),
        uses_(state_ + plan.num_nodes()),
        unset_(UnsetTensor()),
        timeout_(limits.timeout) {
    // More than a year is no limit, and could be more than the clock can say.
    has_deadline_ = timeout_.count() > 0 && timeout_ < std::chrono::hours(24 * 365);
    if (has_deadline_) deadline_ = Clock::now() + timeout_;
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

  // Runs all nodes on this thread.
  void RunAlone() {
    const ScopedSerialLoops serial;
    Work<false>(kNone);
  }

  // Runs all nodes on this thread and those of the arena, which this one is in.
  void RunShared() {
    struct Restore {
      ~Restore() { callers_run = outer; }
      const PlanRun* const outer;
    } const restore{std::exchange(callers_run, this)};
    Work<true>(kNone);
    if (group_.has_value()) {
      group_->wait();
      TsanAcquire(this);
    }
  }

  // Ends the run. Only once, after all nodes.
  absl::Status Finish(std::vector<Tensor>* outputs);

 private:
  struct Task;
  using Inputs = absl::InlinedVector<Tensor, 8>;

  // Ready nodes of one thread.
  struct ReadyNodes {
    // A list through state_: nodes to run here, the newest first.
    int32_t list = kNone;
    // A node worth a task, for when the list is empty.
    int32_t kept = kNone;
  };

  // Runs node `first` (the plan's roots if kNone) and what becomes ready, but for what it offers to
  // other threads.
  template <bool kShared>
  void Work(int32_t first) noexcept;
  template <bool kShared>
  void AddReady(int32_t node, ReadyNodes* ready);
  template <bool kShared>
  void AddSuccessors(int32_t node, ReadyNodes* ready);
  bool Offer(int32_t node);

  // False if the node fails or may not start any more.
  template <bool kShared>
  bool RunNode(int32_t node, Inputs* inputs);
  template <bool kShared>
  absl::Status Compute(const Plan::PlanNode& node, Inputs* inputs);
  template <bool kShared>
  void TakeInput(int32_t slot, Inputs* inputs);
  // Ends the run with the error that make_error() returns or throws, if it is the first.
  template <typename F>
  void Fail(F&& make_error);
  void DropTensors();

  int32_t Push(int32_t node, int32_t list) {
    state_[node].store(list, std::memory_order_relaxed);
    return node;
  }

  // The run that this thread has called for and now works for, or waits for.
  static thread_local const PlanRun* callers_run;

  const Plan& plan_;
  const Plan::PlanNode* const nodes_;
  const std::shared_ptr<Allocator>& allocator_;
  Tensor* const tensors_;
  std::atomic<int32_t>* const state_;
  std::atomic<int32_t>* const uses_;
  const Tensor& unset_;
  const std::chrono::milliseconds timeout_;
  bool has_deadline_ = false;
  Clock::time_point deadline_;
  std::atomic<bool> stopped_{false};
  absl::Status status_;
  // Whether Finish has left no tensor in the slots.
  bool finished_ = false;
  // Made by the first offer, which is the caller's.
  std::optional<tbb::task_group> group_;
};

thread_local const PlanRun* PlanRun::callers_run = nullptr;

template <bool kShared>
void PlanRun::Work(int32_t first) noexcept {
  // A thread that waits for a run of its own does not lose itself in another's: it does one node
  // of that and hands on what follows.
  const bool guest = kShared && callers_run != nullptr && callers_run != this;
  Inputs inputs;
  ReadyNodes ready;
  if (first == kNone) {
    // Backwards, since the newest is the first to run.
    const absl::Span<const int32_t> roots = plan_.roots();
    for (size_t i = roots.size(); i-- > 0;) AddReady<kShared>(roots[i], &ready);
  } else {
    ready.kept = first;
  }
  for (bool did_work = false;;) {
    int32_t node = ready.list;
    if (node != kNone) {
      ready.list = state_[node].load(std::memory_order_relaxed);
    } else if (node = std::exchange(ready.kept, kNone); node == kNone) {
      return;
    } else if (guest && std::exchange(did_work, true) && Offer(node)) {
      return;
    }
    if (!RunNode<kShared>(node, &inputs)) return;
    AddSuccessors<kShared>(node, &ready);
  }
}

template <bool kShared>
void PlanRun::AddReady(int32_t node, ReadyNodes* ready) {
  if (!kShared || nodes_[node].cheap) {
    ready->list = Push(node, ready->list);
    return;
  }
  const int32_t before = std::exchange(ready->kept, node);
  if (before != kNone && !Offer(before)) ready->list = Push(before, ready->list);
}

template <bool kShared>
void PlanRun::AddSuccessors(int32_t node, ReadyNodes* ready) {
  const int32_t* const successors = plan_.successors().data();
  for (int32_t i = nodes_[node + 1].successors_begin; i-- > nodes_[node].successors_begin;) {
    const int32_t next = successors[i];
    if constexpr (kShared) {
      if (state_[next].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
    } else {
      const int32_t pending = state_[next].load(std::memory_order_relaxed) - 1;
      state_[next].store(pending, std::memory_order_relaxed);
      if (pending != 0) continue;
    }
    AddReady<kShared>(next, ready);
  }
}

// A ready node that has been offered to other threads.
struct PlanRun::Task {
  GRADFLOW_NO_TSAN void operator()() const {
    TsanAcquire(handover);
    run->Work<true>(node);
    TsanRelease(run);
  }

  PlanRun* run;
  const void* handover;
  int32_t node;
};

// Gives a node to whichever thread is free. False if there is no memory for that.
bool PlanRun::Offer(int32_t node) {
  try {
    if (!group_.has_value()) group_.emplace();
    TsanRelease(&state_[node]);
    group_->run(Task{this, &state_[node], node});
    return true;
  } catch (...) {
    return false;
  }
}

template <bool kShared>
bool PlanRun::RunNode(int32_t node, Inputs* inputs) {
  if (stopped_.load(std::memory_order_relaxed)) return false;
  const Plan::PlanNode& plan_node = nodes_[node];
  if (has_deadline_ && Clock::now() > deadline_) {
    Fail([&] {
      return absl::DeadlineExceededError(absl::StrCat(internal::NodePrefix(plan_node.node->def()),
                                                      "not started, since the run's timeout of ",
                                                      timeout_.count(), " ms is over"));
    });
    return false;
  }
  const int32_t begin = plan_node.outputs_begin;
  const int32_t end = nodes_[node + 1].outputs_begin;
  for (int32_t slot = begin; slot < end; ++slot) new (&tensors_[slot]) Tensor(unset_);
  const absl::Status status = CallSafely([&] { return Compute<kShared>(plan_node, inputs); });
  // Before anyone reads the outputs, so that an output over the memory of an input is alone there.
  inputs->clear();
  if (!status.ok()) {
    std::destroy(tensors_ + begin, tensors_ + end);
    Fail([&] { return errors::Prefix(internal::NodePrefix(plan_node.node->def()), status); });
    return false;
  }
  for (int32_t slot = begin; slot < end; ++slot) {
    const int32_t uses = plan_.slot_uses()[slot];
    if (uses == 0) std::destroy_at(&tensors_[slot]);
    uses_[slot].store(uses, std::memory_order_relaxed);
  }
  state_[node].store(kDone, std::memory_order_relaxed);
  return true;
}

template <bool kShared>
absl::Status PlanRun::Compute(const Plan::PlanNode& node, Inputs* inputs) {
  const Plan::PlanNode& next = *(&node + 1);
  inputs->reserve(next.inputs_begin - node.inputs_begin);
  for (int32_t i = node.inputs_begin; i < next.inputs_begin; ++i) {
    TakeInput<kShared>(plan_.inputs()[i], inputs);
  }
  const size_t num_outputs = next.outputs_begin - node.outputs_begin;
  const absl::Span<Tensor> outputs(tensors_ + node.outputs_begin, num_outputs);
  const auto types = plan_.slot_types().subspan(node.outputs_begin, num_outputs);
  KernelContext context(absl::MakeSpan(*inputs), outputs, types, allocator_);
  GRADFLOW_RETURN_IF_ERROR(node.kernel->Compute(context));
  for (size_t i = 0; i < num_outputs; ++i) {
    if (outputs[i].dtype() == types[i] && outputs[i].IsInitialized()) continue;
    if (outputs[i].dtype() == DT_INVALID) {
      return errors::Internal("the kernel did not set output ", i);
    }
    return errors::Internal("the kernel set output ", i, " to ",
                            outputs[i].IsInitialized() ? "a" : "an uninitialised",
                            " tensor of type ", DataTypeString(outputs[i].dtype()), ", expected ",
                            DataTypeString(types[i]));
  }
  return absl::OkStatus();
}

template <bool kShared>
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
  if constexpr (kShared) {
    if (uses.fetch_sub(1, std::memory_order_acq_rel) == 1) std::destroy_at(&tensor);
  } else {
    uses.store(left - 1, std::memory_order_relaxed);
  }
}

template <typename F>
void PlanRun::Fail(F&& make_error) {
  if (!stopped_.exchange(true, std::memory_order_relaxed)) status_ = CallSafely(make_error);
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

Executor::Executor(int threads, std::shared_ptr<Allocator> allocator)
    : threads_(threads),
      allocator_(std::move(allocator)),
      run_memory_(std::make_unique<PoolAllocator>()),
      shared_threads_(threads > 1 ? std::make_unique<Threads>(threads) : nullptr) {}

Executor::~Executor() = default;

absl::Status Executor::Run(const Plan& plan, absl::Span<const Tensor* const> feeds,
                           const RunLimits& limits, std::vector<Tensor>* outputs) const {
  return CallSafely([&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(plan.CheckFeeds(feeds));
    const size_t bytes = std::max<size_t>(PlanRun::MemoryBytes(plan), 1);
    const auto free_memory = [&](void* memory) { run_memory_->Deallocate(memory, bytes); };
    const std::unique_ptr<void, decltype(free_memory)> memory(run_memory_->Allocate(bytes),
                                                              free_memory);
    if (memory == nullptr) {
      return errors::ResourceExhausted("out of memory for a run of ", plan.num_nodes(), " nodes");
    }
    PlanRun run(plan, allocator_, limits, static_cast<char*>(memory.get()));
    run.SetFeeds(feeds);
    if (shared_threads_ == nullptr || plan.all_cheap()) {
      run.RunAlone();
    } else if (const Threads::Caller caller(shared_threads_.get()); caller.has_room()) {
      shared_threads_->arena.execute([&] { run.RunShared(); });
    } else {
      run.RunAlone();
    }
    return run.Finish(outputs);
  });
}

}  // namespace gradflow
