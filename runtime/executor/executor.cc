#include "gradflow/runtime/executor/executor.h"

#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/functional/function_ref.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tsan.h"
#include "gradflow/runtime/executor/run.h"

namespace gradflow {
namespace {

// The latch of a thread that calls Run: a flow graph without nodes. A thread that waits for a graph
// takes work from the arena that made the graph.
class GraphLatch final : public ReadyQueue::Arena::Latch {
 public:
  void Close() override { graph_.reserve_wait(); }
  bool Open() override {
    try {
      // Makes oneTBB allocate its data for this thread before the latch opens, because the
      // allocation may throw.
      tbb::this_task_arena::isolate([] {});
    } catch (...) {
      return false;
    }
    graph_.release_wait();
    return true;
  }
  void Wait() override { graph_.wait_for_all(); }

 private:
  tbb::task_group_context context_{tbb::task_group_context::isolated};
  tbb::flow::graph graph_{context_};
};

// The arena of a thread that calls a session, and of the helpers of its run. It has a slot for that
// thread and a slot for each helper. Workers look for work in random slots, so the empty slots of
// an arena for several callers would delay them.
class CallerArena final : public ReadyQueue::Arena {
 public:
  // `slots` is the number of threads.
  explicit CallerArena(int slots) : slots_(slots) {}

  // Reserves the arena for the calling thread. Returns false if it is in use or out of memory.
  bool Acquire() {
    if (in_use_.load(std::memory_order_relaxed) ||
        in_use_.exchange(true, std::memory_order_acquire)) {
      return false;
    }
    if (arena_.has_value()) return true;
    try {
      arena_.emplace(slots_).initialize();
      return true;
    } catch (...) {
      // An arena that failed to initialize cannot be used again.
      arena_.reset();
      Release();
      return false;
    }
  }
  void Release() { in_use_.store(false, std::memory_order_release); }

  // Calls fn() within the arena. REQUIRES: the calling thread has acquired the arena
  void Execute(absl::FunctionRef<void()> fn) {
    arena_->execute([&] { fn(); });
  }

  bool Spawn(void (*help)(void*), void* gate) override {
    try {
      arena_->enqueue(Helper{help, gate});
      return true;
    } catch (...) {
      return false;
    }
  }
  void Isolate(absl::FunctionRef<void()> fn) override {
    tbb::this_task_arena::isolate([&] { fn(); });
  }
  Latch* CallerLatch() override {
    if (latch_ != nullptr) return latch_.get();
    try {
      latch_ = std::make_unique<GraphLatch>();
    } catch (...) {
      return nullptr;
    }
    return latch_.get();
  }

 private:
  struct Helper {
    GRADFLOW_NO_TSAN void operator()() const { help(gate); }
    void (*help)(void*);
    void* gate;
  };

  const int slots_;
  std::atomic<bool> in_use_{false};
  // Made when the arena is first used.
  std::optional<tbb::task_arena> arena_;
  // Made when the calling thread first waits for others.
  std::unique_ptr<GraphLatch> latch_;
};

// The arenas of a session: one for each run that uses several threads, up to a limit.
class Threads final : public LoopArena {
 public:
  // If all arenas are in use, there are more runs than threads, and another run executes only on
  // its calling thread.
  explicit Threads(int threads) {
    const int slots = NumSlots(threads);
    for (int i = 0; i < 2 * threads + 6; ++i) arenas_.emplace_back(slots);
  }

  bool Execute(absl::FunctionRef<void()> fn) override {
    return ExecuteRun([&](ReadyQueue::Arena*) { fn(); });
  }

  // Like Execute(), for a run. Passes `fn` the arena where the run spawns helpers.
  bool ExecuteRun(absl::FunctionRef<void(ReadyQueue::Arena*)> fn) {
    const auto arena = std::find_if(arenas_.begin(), arenas_.end(),
                                    [](CallerArena& candidate) { return candidate.Acquire(); });
    if (arena == arenas_.end()) return false;
    const absl::Cleanup release = [&arena] { arena->Release(); };
    arena->Execute([&] {
      const ScopedArenaMembership member(this);
      fn(&*arena);
    });
    return true;
  }

 private:
  // Returns the number of slots of an arena: at most the number of threads that the process may
  // have, because oneTBB warns on standard error about more.
  static int NumSlots(int threads) {
    const size_t allowed =
        tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
    return static_cast<int>(std::min<size_t>(threads, allowed));
  }

  // Acquired in order, so that successive runs use the same arenas, where workers still look for
  // work.
  std::deque<CallerArena> arenas_;
};

std::shared_ptr<const ExecutorState> MakeState(const Parallelism& parallelism,
                                               const std::shared_ptr<Allocator>& allocator,
                                               std::shared_ptr<ResourceManager> resources,
                                               const std::vector<ExecutorDevice>& other_devices,
                                               const KernelRights& rights) {
  auto state = std::make_shared<ExecutorState>();
  state->parallelism = parallelism;
  state->devices.push_back({"", ShardedPtr<Allocator>(allocator)});
  state->resources = std::move(resources);
  state->rights = rights;
  for (const ExecutorDevice& device : other_devices) {
    state->devices.push_back({device.name, ShardedPtr<Allocator>(device.allocator)});
  }
  state->run_memory = std::make_unique<PoolAllocator>();
  const int threads = std::max(parallelism.inter_op, parallelism.intra_op);
  if (threads > 1) state->arena = std::make_shared<Threads>(threads);
  return state;
}

// Returns the bytes of all feeds. Nodes take longer in runs that are fed more bytes than the
// measuring runs.
int64_t BytesOf(absl::Span<const Tensor* const> feeds) {
  int64_t bytes = 0;
  for (const Tensor* feed : feeds) {
    bytes += feed->NumElements() *
             static_cast<int64_t>(std::max<size_t>(DataTypeSize(feed->dtype()), 1));
  }
  return bytes;
}

// Executes one call of Executor::Run. REQUIRES: CheckFeeds of the plan accepts the feeds
absl::Status RunOnce(RunState* run, const Plan& plan, absl::Span<const Tensor* const> feeds,
                     TraceRecorder* trace, std::vector<Tensor>* outputs) {
  void* const memory = ExecutionFrame::AllocateMemory(plan, &run->run_memory());
  if (memory == nullptr) {
    return errors::ResourceExhausted("out of memory for a run of ", plan.num_nodes(), " nodes");
  }
  ExecutionFrame frame(run, plan, trace, memory);
  frame.SetFeeds(feeds);
  bool measures = false;
  int64_t fed_bytes = 0;
  if (run->shared()) {
    fed_bytes = BytesOf(feeds);
    frame.SetFedBytes(fed_bytes);
    measures = plan.BeginMeasuring();
  }
  if (measures) frame.MeasureCosts();
  run->RunToEnd(&frame);
  // If there is no memory for a new order, the plan keeps its current one.
  if (measures) {
    (void)CallSafely([&] {
      plan.EndMeasuring(/*finished=*/!run->failed(), fed_bytes);
      return absl::OkStatus();
    });
  }
  if (run->failed()) return std::move(run->status());
  return outputs == nullptr ? absl::OkStatus() : frame.Fetch(outputs);
}

}  // namespace

Executor::Executor(const Parallelism& parallelism, const std::shared_ptr<Allocator>& allocator,
                   std::shared_ptr<ResourceManager> resources,
                   const std::vector<ExecutorDevice>& other_devices, const KernelRights& rights)
    : state_(MakeState(parallelism, allocator, std::move(resources), other_devices, rights)) {}

Executor::~Executor() = default;

int Executor::threads() const {
  return std::max(state_->parallelism.inter_op, state_->parallelism.intra_op);
}
void Executor::Trim() const { state_->run_memory->Trim(); }
void Executor::StopCaching() const { state_->run_memory->StopCaching(); }

absl::Status Executor::Run(const std::shared_ptr<const Plan>& plan,
                           absl::Span<const Tensor* const> feeds, const RunLimits& limits,
                           std::vector<Tensor>* outputs, TraceRecorder* trace,
                           const std::shared_ptr<const FunctionTable>& functions) const {
  return CallSafely([&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(plan->CheckFeeds(feeds));
    const ExecutorState& state = *state_;
    GRADFLOW_RETURN_IF_ERROR(state.CheckDevices(*plan));
    const Parallelism& threads = state.parallelism;
    Threads* const arena = static_cast<Threads*>(state.arena.get());
    const auto run = [&](ReadyQueue::Arena* helpers, int max_loop_threads) -> absl::Status {
      if (!plan->has_async()) {
        RunState run(state, limits, trace, functions.get(), helpers, max_loop_threads);
        return RunOnce(&run, *plan, feeds, trace, outputs);
      }
      const auto run = std::make_shared<RunState>(state, limits, trace, functions.get(), helpers,
                                                  max_loop_threads);
      run->Retain(state_, plan, functions);
      return RunOnce(run.get(), *plan, feeds, trace, outputs);
    };
    if (arena == nullptr) return run(nullptr, 1);
    // Limits loops to fewer threads than the arena has if inter_op exceeds intra_op.
    const int max_loop_threads = threads.intra_op < threads.inter_op ? threads.intra_op : 0;
    if (threads.inter_op == 1 || !plan->may_share(BytesOf(feeds))) {
      return run(nullptr, max_loop_threads);
    }
    absl::Status status;
    const bool executed = arena->ExecuteRun(
        [&](ReadyQueue::Arena* helpers) { status = run(helpers, max_loop_threads); });
    if (executed) return status;
    return run(nullptr, 1);
  });
}

}  // namespace gradflow
