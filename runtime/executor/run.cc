#include "gradflow/runtime/executor/run.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/runtime/trace/trace_recorder.h"

namespace gradflow {
namespace {

// The approximate bytes of a function call beyond ExecutionFrame::MemoryBytes(): the frame object,
// and the objects of the calling node.
constexpr size_t kCallBytes = 1024;

}  // namespace

absl::Status ExecutorState::CheckDevices(const Plan& plan) const {
  for (size_t i = 1; i < plan.devices().size(); ++i) {
    if (i >= devices.size() || devices[i].name != plan.devices()[i]) {
      return errors::FailedPrecondition("the plan is for device '", plan.devices()[i],
                                        "', which the executor does not have");
    }
  }
  return absl::OkStatus();
}

RunState::RunState(const ExecutorState& state, const RunLimits& limits, TraceRecorder* trace,
                   const FunctionTable* functions, ReadyQueue::Arena* arena, int max_loop_threads)
    : state_(state),
      limits_(limits),
      trace_(trace),
      functions_(functions),
      arena_(arena),
      stop_(limits.cancelled, limits.closed, limits.deadline),
      queue_(state.parallelism.inter_op, arena, [this] { Help(); }) {
  const int64_t step_id = state.NextStepId();
  for (const ExecutorState::Device& device : state.devices) {
    RunContext& context = contexts_.emplace_back();
    context.stop = &stop_;
    context.arena = state.arena.get();
    context.max_loop_threads = max_loop_threads;
    context.allocator = &device.allocator.get();
    context.resources = state.resources.get();
    context.functions = this;
    context.files = &state.rights.files;
    context.raw_prints = state.rights.raw_prints;
    context.collectives = state.rights.collectives.get();
    context.step_id = step_id;
  }
}

RunState::~RunState() { FreeSpareFrames(); }

void* RunState::AllocateFrame(size_t bytes) {
  if (!shared()) {
    for (Block& spare : spare_frames_) {
      if (spare.bytes == bytes) return std::exchange(spare, Block()).begin;
    }
  }
  return context().allocator->get()->Allocate(bytes);
}

void RunState::FreeFrame(void* block, size_t bytes) {
  Block freed = {block, bytes};
  // A run that has failed makes no more calls.
  if (!shared() && !failed()) {
    std::rotate(spare_frames_.begin(), spare_frames_.begin() + 1, spare_frames_.end());
    std::swap(freed, spare_frames_.back());
  }
  if (freed.begin != nullptr) {
    context().allocator->get()->Deallocate(freed.begin, freed.bytes);
  }
}

void RunState::FreeSpareFrames() {
  for (Block& spare : spare_frames_) {
    if (spare.begin == nullptr) continue;
    context().allocator->get()->Deallocate(spare.begin, spare.bytes);
    spare = Block();
  }
}

void RunState::Retain(std::shared_ptr<const ExecutorState> state, std::shared_ptr<const Plan> plan,
                      std::shared_ptr<const FunctionTable> functions) {
  retained_state_ = std::move(state);
  retained_plan_ = std::move(plan);
  retained_functions_ = std::move(functions);
  if (limits_.cancelled != nullptr)
    retained_cancelled_ = limits_.cancelled->weak_from_this().lock();
  if (limits_.closed != nullptr) retained_closed_ = limits_.closed->weak_from_this().lock();
}

void RunState::Execute(ReadyQueue::Work* work) {
  ExecutionFrame* frame = static_cast<ExecutionFrame*>(work->source);
  FrameList calls;
  for (;;) {
    frame->Execute(work, &calls);
    work->node = kNoNode;
    work->called = false;
    if (frame->caller_.frame != nullptr && frame->CloseOne()) {
      if (!frame->is_call()) {
        frame->EndFunction();
      } else if (ExecutionFrame* const next = frame->NextFrameOfCall()) {
        calls.Push(next);
      } else if (!failed()) {
        work->node = frame->caller_.node;
        work->called = true;
        frame = frame->caller_.frame;
        continue;
      }
    }
    frame = calls.Pop();
    if (frame == nullptr) return;
    // One call runs on this thread.
    if (shared() && !calls.empty()) PushStarts(&calls);
  }
}

void RunState::PushStarts(FrameList* calls) {
  // If the run is over, the callers destroy the frames.
  while (ExecutionFrame* const call = calls->Pop()) queue_.PushStart(call);
}

void RunState::Help() {
  ReadyQueue::Work work;
  const ScopedArenaMembership member(context().arena);
  Isolate([&] {
    while (queue_.Take(&work)) Execute(&work);
  });
}

void RunState::Isolate(absl::FunctionRef<void()> fn) {
  if (arena_ == nullptr) return fn();
  arena_->Isolate(fn);
}

void RunState::RunToEnd(ExecutionFrame* frame) {
  ReadyQueue::Work work;
  work.source = frame;
  // Without helpers and asynchronous nodes, the queue is always empty.
  if (!shared() && !frame->plan().has_async()) return Execute(&work);
  Isolate([&] {
    Execute(&work);
    while (queue_.Take(&work)) Execute(&work);
  });
  CancelFlag::CallbackId on_cancel = 0;
  CancelFlag::CallbackId on_close = 0;
  const auto wake = [this] { queue_.Wake(); };
  if (frame->plan().has_async()) {
    // An exception must not leave this function while helpers are in the run.
    const absl::Status added = CallSafely([&] {
      if (limits_.cancelled != nullptr) on_cancel = limits_.cancelled->AddCallback(wake);
      if (limits_.closed != nullptr) on_close = limits_.closed->AddCallback(wake);
      return absl::OkStatus();
    });
    if (!added.ok()) Fail([&] { return added; });
  }
  while (queue_.WaitAndTake(&stop_, &work)) {
    Isolate([&] {
      do {
        Execute(&work);
      } while (queue_.Take(&work));
    });
  }
  if (limits_.cancelled != nullptr) limits_.cancelled->RemoveCallback(on_cancel);
  if (limits_.closed != nullptr) limits_.closed->RemoveCallback(on_close);
  // Asynchronous kernels in flight may keep this object alive after the run.
  FreeSpareFrames();
  const bool unfinished = queue_.Close();
  if (!frame->plan().has_async()) return;
  stop_.DropCallbacks();
  std::map<ExecutionFrame*, std::unique_ptr<ExecutionFrame>> calls;
  MutexLock lock(&mutex_);
  closed_ = true;
  if (unfinished && !failed()) {
    // The error names the innermost function call that has an asynchronous node in flight.
    const ExecutionFrame* waiting = frame->FindWaiting();
    for (const auto& [call, owner] : calls_) {
      const ExecutionFrame* const found = call->FindWaiting();
      if (found != nullptr && (waiting == nullptr || found->depth_ > waiting->depth_)) {
        waiting = found;
      }
    }
    if (waiting == nullptr) waiting = frame;
    const int32_t node = std::max(waiting->FirstAsyncNode(), 0);
    Fail([&] {
      return errors::Prefix(absl::StrCat(waiting->Prefix(node), "stopped, since "),
                            WhyStopped(stop_, limits_));
    });
  }
  calls.swap(calls_);
}

absl::StatusOr<const RunnableFunction*> RunState::Find(absl::string_view name) const {
  const RunnableFunction* const function = functions_ == nullptr ? nullptr : functions_->Find(name);
  if (function != nullptr) return function;
  return errors::NotFound("there is no function ", internal::Quoted(name));
}

void RunState::Remove(ExecutionFrame* frame) {
  std::unique_ptr<ExecutionFrame> removed;
  MutexLock lock(&mutex_);
  const auto it = calls_.find(frame);
  if (it == calls_.end()) return;
  removed = std::move(it->second);
  calls_.erase(it);
}

void RunState::RunAsync(const RunnableFunction* function, const KernelContext& caller,
                        std::vector<Tensor> args, Done done) {
  std::unique_ptr<ExecutionFrame> call;
  const absl::Status status = CallSafely([&]() -> absl::Status {
    const Plan& plan = *function->plan();
    std::vector<const Tensor*> feeds;
    for (const Tensor& arg : args) feeds.push_back(&arg);
    GRADFLOW_RETURN_IF_ERROR(plan.CheckFeeds(feeds));
    GRADFLOW_RETURN_IF_ERROR(state_.CheckDevices(plan));
    MutexLock lock(&mutex_);
    if (closed_) return absl::CancelledError("the run is over");
    const ExecutionFrame::Caller node = {caller.frame(), caller.plan_node()};
    if (node.frame == nullptr) {
      return errors::FailedPrecondition("only asynchronous kernels may call functions");
    }
    TraceRecorder* const trace =
        trace_ == nullptr ? nullptr
                          : trace_->AddCall(function->plan(), node.frame->trace_, node.node);
    void* const memory = ExecutionFrame::AllocateMemory(plan, &run_memory());
    if (memory == nullptr) {
      return errors::ResourceExhausted("out of memory for a run of ", plan.num_nodes(), " nodes");
    }
    call.reset(new (std::nothrow) ExecutionFrame(this, plan, trace, memory));
    if (call == nullptr) {
      run_memory().Deallocate(memory, std::max<size_t>(ExecutionFrame::MemoryBytes(plan), 1));
      return errors::ResourceExhausted("out of memory for a run of ", plan.num_nodes(), " nodes");
    }
    // This is the only limit on the number of calls in progress.
    if (!call->reservation_.Set(ExecutionFrame::MemoryBytes(plan) + kCallBytes)) {
      return errors::ResourceExhausted("the function calls in progress, ", calls_.size() + 1,
                                       ", exceed the session's memory limit");
    }
    call->SetFeeds(feeds);
    ExecutionFrame* const frame = call.get();
    const auto it = calls_.emplace(frame, nullptr).first;
    it->second = std::move(call);
    frame->SetCaller(node, std::move(done));
    if (queue_.PushStart(frame)) return absl::OkStatus();
    // The queue closes shortly before `closed_` is set.
    call = std::move(it->second);
    calls_.erase(it);
    done = std::move(call->done_);
    return absl::CancelledError("the run is over");
  });
  // Destroys the frame of a refused call without the mutex, and before the callback, which may drop
  // the last reference to this object.
  call = nullptr;
  if (!status.ok() && done != nullptr) done(status, {});
}

}  // namespace gradflow
