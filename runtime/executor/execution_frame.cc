// ExecutionFrame, which executes the nodes of one plan (run.h).
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"
#include "gradflow/core/truth.h"
#include "gradflow/runtime/executor/run.h"
#include "gradflow/runtime/trace/trace_recorder.h"

namespace gradflow {
namespace {

// The link of an asynchronous node that is in flight.
constexpr int32_t kAsyncNode = -3;
constexpr int32_t kNoSlot = -1;

// Like TruthOf(), but fast for the usual conditions.
absl::StatusOr<bool> IsTrue(const Tensor& condition) {
  if (condition.dtype() == DT_BOOL && condition.dims() == 0) {
    return *static_cast<const bool*>(condition.data());
  }
  return TruthOf(condition);
}

Tensor Scalar(int32_t value) {
  Tensor scalar(DT_INT32, {});
  scalar.scalar<int32_t>()() = value;
  return scalar;
}

}  // namespace

size_t ExecutionFrame::MemoryBytes(const Plan& plan) {
  return plan.num_slots() * (sizeof(Tensor) + sizeof(int32_t) + sizeof(SlotState)) +
         plan.calls().size() * sizeof(void*) + plan.num_nodes() * 2 * sizeof(int32_t);
}

void* ExecutionFrame::AllocateMemory(const Plan& plan, PoolAllocator* pool) {
  return pool->Allocate(std::max<size_t>(MemoryBytes(plan), 1));
}

ExecutionFrame::ExecutionFrame(RunState* run, const Plan& plan, TraceRecorder* trace, void* memory)
    : Source(reinterpret_cast<int32_t*>(reinterpret_cast<ExecutionFrame**>(
                                            static_cast<Tensor*>(memory) + plan.num_slots()) +
                                        plan.calls().size()) +
             plan.num_slots() + plan.num_nodes()),
      run_(*run),
      plan_(plan),
      order_(&plan.order()),
      nodes_(plan.nodes().data()),
      input_slots_(plan.inputs().data()),
      slot_types_(plan.slot_types().data()),
      slot_uses_(plan.slot_uses().data()),
      contexts_(&run->context()),
      trace_(trace),
      tensors_(static_cast<Tensor*>(memory)),
      callees_(reinterpret_cast<ExecutionFrame**>(tensors_ + plan.num_slots())),
      uses_(reinterpret_cast<std::atomic<int32_t>*>(callees_ + plan.calls().size())),
      pending_(uses_ + plan.num_slots()),
      links_(reinterpret_cast<int32_t*>(pending_ + plan.num_nodes())),
      slot_states_(reinterpret_cast<SlotState*>(links_ + plan.num_nodes())),
      reservation_(run->context().allocator->get()) {
  static_assert(sizeof(std::atomic<int32_t>) == sizeof(int32_t));
  static_assert(sizeof(SlotState) == 1);
  if (plan.num_nodes() > 0) {
    std::memcpy(static_cast<void*>(pending_), plan.pending().data(),
                plan.num_nodes() * sizeof(int32_t));
  }
  std::memset(static_cast<void*>(slot_states_), static_cast<int>(SlotState::kEmpty),
              plan.num_slots());
  std::fill_n(callees_, plan.calls().size(), nullptr);
  // FirstAsyncNode() also reads the links of nodes that have not started.
  if (plan.has_async()) std::fill_n(links_, plan.num_nodes(), kNoNode);
}

ExecutionFrame::~ExecutionFrame() {
  // Deletes the frames of calls that are in progress because the run has failed. Uses no recursion,
  // because calls may be nested to any depth.
  FrameList calls;
  MoveCalleesTo(&calls);
  while (ExecutionFrame* const call = calls.Pop()) {
    call->MoveCalleesTo(&calls);
    Delete(call);
  }
  for (int32_t slot = 0; slot < plan_.num_slots(); ++slot) {
    if (slot_states_[slot] == SlotState::kValue) std::destroy_at(&tensors_[slot]);
  }
  if (!is_in_block_) {
    run_.run_memory().Deallocate(tensors_, std::max<size_t>(MemoryBytes(plan_), 1));
  }
}

void ExecutionFrame::SetCaller(const Caller& caller, FunctionRunner::Done done) {
  caller_ = caller;
  depth_ = caller.frame->depth_ + 1;
  done_ = std::move(done);
}

void ExecutionFrame::SetFeeds(absl::Span<const Tensor* const> feeds) {
  for (size_t i = 0; i < feeds.size(); ++i) {
    const int32_t uses = plan_.slot_uses()[i];
    uses_[i].store(uses, std::memory_order_relaxed);
    if (uses == 0) continue;
    new (&tensors_[i]) Tensor(*feeds[i]);
    slot_states_[i] = SlotState::kValue;
  }
}

absl::Status ExecutionFrame::Fetch(std::vector<Tensor>* outputs) {
  std::vector<Tensor> fetched;
  fetched.reserve(plan_.fetches().size());
  for (size_t i = 0; i < plan_.fetches().size(); ++i) {
    const Plan::Fetch& fetch = plan_.fetches()[i];
    Tensor& tensor = tensors_[fetch.slot];
    if (slot_states_[fetch.slot] != SlotState::kValue) {
      return errors::InvalidArgument("fetch ", i,
                                     " has no value: it is in a branch that was not taken");
    }
    if (fetch.last) {
      fetched.push_back(std::move(tensor));
    } else {
      fetched.push_back(tensor);
    }
  }
  *outputs = std::move(fetched);
  return absl::OkStatus();
}

void ExecutionFrame::Execute(ReadyQueue::Work* work, FrameList* calls) {
  if (trace_ == nullptr) {
    run_.shared() ? Work<Mode::kShared>(work, calls) : Work<Mode::kAlone>(work, calls);
  } else {
    run_.shared() ? Work<Mode::kSharedTraced>(work, calls) : Work<Mode::kAloneTraced>(work, calls);
  }
}

namespace {

// Returns the error of a kernel that did not set output i to a tensor of type `expected`.
ABSL_ATTRIBUTE_NOINLINE absl::Status WrongOutput(int i, const Tensor& output, DataType expected) {
  if (output.dtype() == DT_INVALID) {
    return errors::Internal("the kernel did not set output ", i);
  }
  return errors::Internal("the kernel set output ", i, " to ",
                          output.IsInitialized() ? "a" : "an uninitialized", " tensor of type ",
                          DataTypeString(output.dtype()), ", expected ", DataTypeString(expected));
}

}  // namespace

// An asynchronous node that is in flight. Lives as long as the copies of its AsyncDone. A copy may
// outlive the run, but can then no longer reach the run.
class ExecutionFrame::AsyncNode final : public ReadyQueue::Completion {
 public:
  // The target that the kernel calls and drops.
  class Handle final : public AsyncDone::Target {
   public:
    explicit Handle(std::shared_ptr<AsyncNode> node) : node_(std::move(node)) {}
    ~Handle() override {
      if (node_->ended_.load(std::memory_order_relaxed)) return;
      node_->End(absl::Status(absl::StatusCode::kInternal,
                              "the kernel dropped its callback without a call"));
    }
    bool Done(absl::Status status) override { return node_->End(std::move(status)); }

   private:
    const std::shared_ptr<AsyncNode> node_;
  };

  AsyncNode(ExecutionFrame* frame, int32_t node, Inputs inputs)
      : run_(frame->run_.shared_from_this()),
        frame_(frame),
        plan_(frame->plan_),
        node_(node),
        inputs_(std::move(inputs)),
        outputs_(plan_.nodes()[node + 1].outputs_begin - plan_.nodes()[node].outputs_begin,
                 Tensor(Tensor::Unset())),
        context_(absl::MakeSpan(inputs_), absl::MakeSpan(outputs_),
                 plan_.slot_types().subspan(plan_.nodes()[node].outputs_begin, outputs_.size()),
                 run_->context(plan_.nodes()[node].device)) {
    context_.CountAllocatedBytes(&allocated_bytes_);
    context_.SetPlanNode(frame, node);
  }

  // Lets the node push itself to the queue.
  void SetSelf(const std::shared_ptr<AsyncNode>& self) { self_ = self; }

  bool End(absl::Status status) {
    if (ended_.exchange(true)) return false;
    status_ = std::move(status);
    run_->queue().PushCompletion(frame_, self_.lock());
    return true;
  }

 private:
  friend class ExecutionFrame;

  const std::shared_ptr<RunState> run_;
  // Threads outside of the run may pass on the pointer, but may not access the frame.
  ExecutionFrame* const frame_;
  const Plan& plan_;
  const int32_t node_;
  Inputs inputs_;
  std::vector<Tensor> outputs_;
  int64_t allocated_bytes_ = 0;
  KernelContext context_;
  std::atomic<bool> ended_{false};
  absl::Status status_;
  std::weak_ptr<AsyncNode> self_;
};

// Work() and the functions that it calls for each node are inlined into one function with few
// bounds checks. Otherwise this loop would dominate the time of graphs of small kernels.
template <ExecutionFrame::Mode kMode>
void ExecutionFrame::Work(ReadyQueue::Work* work, FrameList* calls) noexcept {
  Inputs inputs;
  ReadyNodes ready;
  if (work->completion != nullptr) {
    const auto node = std::static_pointer_cast<AsyncNode>(work->completion);
    work->completion = nullptr;
    if (!AsyncNodeDone<kMode>(node.get())) return;
    PropagateOutputs<kMode>(node->node_, &ready);
  } else if (work->called) {
    const absl::Status status = CallSafely([&] { return TakeResults(work->node); });
    if constexpr (IsTraced(kMode)) trace_->node(work->node).compute_end = TraceRecorder::Now();
    if (!NodeDone<kMode>(work->node, {}, status)) return;
    PropagateOutputs<kMode>(work->node, &ready);
  } else if (work->node == kNoNode) {
    // Adds the roots backwards, because the newest node runs first.
    const std::vector<int32_t>& roots = order_->roots;
    for (size_t i = roots.size(); i-- > 0;) AddReady<kMode>(roots[i], &ready);
  } else {
    ready.kept = work->node;
  }
  // From now on, each node that ends checks if the next may start.
  const int32_t next = ready.list != kNoNode ? ready.list : ready.kept;
  if (next == kNoNode || EndIfStopped(next, "not started")) return;
  for (;;) {
    int32_t node = ready.list;
    if (node != kNoNode) {
      ready.list = links_[node];
    } else if (node = std::exchange(ready.kept, kNoNode); node == kNoNode) {
      return;
    } else if (IsShared(kMode) && !calls->empty()) {
      // Another thread may run the calls meanwhile.
      run_.PushStarts(calls);
    }
    bool ended = true;
    if (!ProcessNode<kMode>(node, &inputs, calls, &ended)) return;
    if (ended) PropagateOutputs<kMode>(node, &ready);
  }
}

template <ExecutionFrame::Mode kMode>
void ExecutionFrame::AddReady(int32_t node, ReadyNodes* ready) {
  if constexpr (IsTraced(kMode)) trace_->node(node).scheduled = TraceRecorder::Now();
  if (!IsShared(kMode) || IsSmall(node)) {
    ready->list = Link(node, ready->list);
    return;
  }
  const int32_t before = std::exchange(ready->kept, node);
  if (before == kNoNode) return;
  if (caller_.frame != nullptr) Open();
  run_.queue().Push(this, before);
}

template <ExecutionFrame::Mode kMode>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void ExecutionFrame::PropagateOutputs(int32_t node,
                                                                          ReadyNodes* ready) {
  const int32_t* const successors = order_->successors.data();
  for (int32_t i = nodes_[node + 1].successors_begin; i-- > nodes_[node].successors_begin;) {
    const int32_t next = successors[i];
    if constexpr (IsShared(kMode)) {
      // If the count is 1, only this node remains to be counted, and no other thread changes the
      // count.
      if (pending_[next].load(std::memory_order_acquire) != 1 &&
          pending_[next].fetch_sub(1, std::memory_order_acq_rel) != 1) {
        continue;
      }
    } else {
      const int32_t pending = pending_[next].load(std::memory_order_relaxed) - 1;
      pending_[next].store(pending, std::memory_order_relaxed);
      if (pending != 0) continue;
    }
    AddReady<kMode>(next, ready);
  }
}

bool ExecutionFrame::CloseOne() {
  return AddOpen(-1) == 1 && !run_.failed() && !run_.stop().IsStopped();
}

void ExecutionFrame::EndFunction() {
  RunState& run = run_;
  std::vector<Tensor> results;
  const absl::Status status = CallSafely([&] { return Fetch(&results); });
  const FunctionRunner::Done done = std::move(done_);
  // Destroys this. done() may also end the caller.
  run.Remove(this);
  const absl::Status called = CallSafely([&] {
    done(status, std::move(results));
    return absl::OkStatus();
  });
  if (!called.ok()) run.Fail([&] { return called; });
}

void ExecutionFrame::FailStopped(int32_t node, const char* what) {
  run_.Fail([&] {
    return errors::Prefix(absl::StrCat(Prefix(node), what, ", since "),
                          WhyStopped(run_.stop(), run_.limits()));
  });
}

int32_t ExecutionFrame::FirstAsyncNode() const {
  for (int32_t node = 0; node < plan_.num_nodes(); ++node) {
    if (nodes_[node].async && links_[node] == kAsyncNode) return node;
  }
  return kNoNode;
}

std::string ExecutionFrame::Prefix(int32_t node) const {
  // Lists only the innermost node and the outermost calls, because a recursion may have any depth.
  // Skips frames of calls (is_call()), because the names of their nodes contain the names of the
  // callers.
  constexpr size_t kMaxCalls = 4;
  std::vector<Caller> callers;
  for (const ExecutionFrame* frame = this; frame->caller_.frame != nullptr;
       frame = frame->caller_.frame) {
    if (!frame->is_call()) callers.push_back(frame->caller_);
  }
  std::string prefix;
  for (size_t i = callers.size(); i-- > 0 && callers.size() - i <= kMaxCalls;) {
    absl::StrAppend(&prefix, callers[i].frame->plan_.ErrorPrefix(callers[i].node));
  }
  if (callers.size() > kMaxCalls) {
    absl::StrAppend(&prefix, "(", callers.size() - kMaxCalls, " more calls) ");
  }
  return absl::StrCat(prefix, plan_.ErrorPrefix(node));
}

template <ExecutionFrame::Mode kMode>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool ExecutionFrame::ProcessNode(int32_t node, Inputs* inputs,
                                                                     FrameList* calls,
                                                                     bool* ended) {
  const Plan::NodeItem& plan_node = nodes_[node];
  if (any_dead_.load(std::memory_order_relaxed) && IsDead(node)) {
    SkipDeadNode(node);
    return true;
  }
  if constexpr (IsTraced(kMode)) {
    trace_->node(node).thread = TraceRecorder::ThisThread();
    trace_->node(node).start = TraceRecorder::Now();
  }
  if (plan_node.ends_later) {
    if (!plan_node.async) {
      return plan_node.is_merge ? ProcessMerge<kMode>(node)
                                : ProcessCall<kMode>(node, calls, ended);
    }
    *ended = false;
    ProcessAsync<kMode>(node);
    return !EndIfStopped(node, "stopped");
  }
  const int32_t begin = plan_node.outputs_begin;
  const int32_t end = nodes_[node + 1].outputs_begin;
  for (int32_t slot = begin; slot < end; ++slot) new (&tensors_[slot]) Tensor(Tensor::Unset());
  int32_t only_input = kNoSlot;
  DeadOutputs dead;
  const absl::Status status = CallSafely([&]() ABSL_ATTRIBUTE_ALWAYS_INLINE {
    return ProcessSync<kMode>(node, inputs, &only_input, &dead);
  });
  // Inputs are dropped before the outputs are read, so that an output that reuses an input's memory
  // is its only owner.
  if (only_input != kNoSlot) {
    Destroy(only_input);
  } else {
    inputs->clear();
    ReleaseInputs<kMode>(node);
  }
  return NodeDone<kMode>(node, dead, status);
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline absl::Span<Tensor> ExecutionFrame::PrepareInputs(
    int32_t node, Inputs* inputs, int32_t* only_input) {
  const Plan::NodeItem& plan_node = nodes_[node];
  const int32_t* const slots = input_slots_ + plan_node.inputs_begin;
  const int32_t num_inputs = nodes_[node + 1].inputs_begin - plan_node.inputs_begin;
  if (plan_node.has_foreign_inputs) {
    inputs->reserve(num_inputs);
    for (int32_t i = 0; i < num_inputs; ++i) {
      inputs->emplace_back(Tensor::Borrow(), tensors_[slots[i]]);
    }
  } else if (num_inputs == 1 && uses_[slots[0]].load(std::memory_order_acquire) == 1) {
    // Most nodes are the last reader of their only input. They read it in its slot.
    uses_[slots[0]].store(0, std::memory_order_relaxed);
    *only_input = slots[0];
    return absl::MakeSpan(&tensors_[slots[0]], 1);
  } else {
    inputs->reserve(num_inputs);
    for (int32_t i = 0; i < num_inputs; ++i) BorrowInput(slots[i], inputs);
  }
  return absl::MakeSpan(*inputs);
}

template <ExecutionFrame::Mode kMode>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline absl::Status ExecutionFrame::ProcessSync(int32_t node,
                                                                             Inputs* inputs,
                                                                             int32_t* only_input,
                                                                             DeadOutputs* dead) {
  const Plan::NodeItem& plan_node = nodes_[node];
  const Plan::NodeItem& next = nodes_[node + 1];
  const absl::Span<Tensor> in = PrepareInputs(node, inputs, only_input);
  const size_t num_outputs = next.outputs_begin - plan_node.outputs_begin;
  KernelContext context(in, {tensors_ + plan_node.outputs_begin, num_outputs},
                        {slot_types_ + plan_node.outputs_begin, num_outputs},
                        contexts_[plan_node.device]);
  if constexpr (IsTraced(kMode)) {
    context.CountAllocatedBytes(&trace_->node(node).allocated_bytes);
    trace_->node(node).compute_start = TraceRecorder::Now();
  }
  const bool measures = IsShared(kMode) && measures_ && !plan_node.cheap;
  const int64_t start = measures ? TraceRecorder::Now() : 0;
  GRADFLOW_RETURN_IF_ERROR(plan_node.kernel->Compute(context));
  if (measures) plan_.SetCost(node, TraceRecorder::Now() - start);
  if constexpr (IsTraced(kMode)) trace_->node(node).compute_end = TraceRecorder::Now();
  if (!context.dead_outputs().empty()) SetDeadOutputs(node, context, dead);
  return CheckOutputs<kMode>(node);
}

void ExecutionFrame::SetDeadOutputs(int32_t node, const KernelContext& context, DeadOutputs* dead) {
  dead->assign(context.dead_outputs().begin(), context.dead_outputs().end());
  // CheckOutputs accepts empty tensors.
  const int32_t begin = nodes_[node].outputs_begin;
  for (const int i : *dead) tensors_[begin + i] = Tensor(plan_.slot_types()[begin + i], {0});
}

template <ExecutionFrame::Mode kMode>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool ExecutionFrame::NodeDone(int32_t node,
                                                                  const DeadOutputs& dead,
                                                                  const absl::Status& status) {
  const int32_t begin = nodes_[node].outputs_begin;
  const int32_t end = nodes_[node + 1].outputs_begin;
  // A stop takes precedence over the kernel's own error.
  const bool stopped = EndIfStopped(node, "stopped");
  if (stopped || !status.ok()) {
    std::destroy(tensors_ + begin, tensors_ + end);
    if constexpr (IsTraced(kMode)) trace_->node(node).EndFailed();
    if (!stopped) run_.Fail([&] { return errors::Prefix(Prefix(node), status); });
    return false;
  }
  for (int32_t slot = begin; slot < end; ++slot) {
    const int32_t uses = slot_uses_[slot];
    if (uses == 0) {
      std::destroy_at(&tensors_[slot]);
      continue;
    }
    uses_[slot].store(uses, std::memory_order_relaxed);
    slot_states_[slot] = SlotState::kValue;
  }
  if (!dead.empty()) {
    for (const int i : dead) {
      if (slot_states_[begin + i] != SlotState::kValue) continue;
      Destroy(begin + i);
      slot_states_[begin + i] = SlotState::kDead;
    }
    any_dead_.store(true, std::memory_order_relaxed);
  }
  if constexpr (IsTraced(kMode)) trace_->node(node).end = TraceRecorder::Now();
  return true;
}

template <ExecutionFrame::Mode kMode>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline absl::Status ExecutionFrame::CheckOutputs(int32_t node) {
  const int32_t begin = nodes_[node].outputs_begin;
  const int32_t end = nodes_[node + 1].outputs_begin;
  for (int32_t slot = begin; slot < end; ++slot) {
    Tensor& output = tensors_[slot];
    const DataType type = slot_types_[slot];
    if (output.dtype() == type && output.IsInitialized()) {
      // Strings that are shared with another tensor are already counted or belong to the caller.
      if (type == DT_STRING && output.CanBeReused()) {
        GRADFLOW_RETURN_IF_ERROR(output.ChargeStrings());
      }
      continue;
    }
    return WrongOutput(slot - begin, output, type);
  }
  if constexpr (IsTraced(kMode)) {
    for (int32_t slot = begin; slot < end; ++slot) {
      const Tensor& output = tensors_[slot];
      trace_->node(node).outputs.push_back(
          {output.dtype(), output.shape(), static_cast<int64_t>(output.TotalBytes())});
    }
  }
  return absl::OkStatus();
}

template <ExecutionFrame::Mode kMode>
void ExecutionFrame::ProcessAsync(int32_t node) {
  const Plan::NodeItem& plan_node = nodes_[node];
  std::shared_ptr<AsyncNode> state;
  const absl::Status started = CallSafely([&] {
    Inputs inputs;
    const int32_t* const slots = input_slots_ + plan_node.inputs_begin;
    const int32_t num_inputs = nodes_[node + 1].inputs_begin - plan_node.inputs_begin;
    // The kernel may outlive the run, so nothing is borrowed.
    inputs.assign(num_inputs, Tensor(Tensor::Unset()));
    for (int32_t i = 0; i < num_inputs; ++i) inputs[i] = tensors_[slots[i]];
    ReleaseInputs<kMode>(node);
    state = std::make_shared<AsyncNode>(this, node, std::move(inputs));
    state->SetSelf(state);
    AsyncDone done(std::make_shared<AsyncNode::Handle>(state));
    links_[node] = kAsyncNode;
    if constexpr (IsTraced(kMode)) trace_->node(node).compute_start = TraceRecorder::Now();
    // From here on the node may end at any time, on any thread.
    if (caller_.frame != nullptr) Open();
    run_.queue().BeginAsync();
    const absl::Status thrown = CallSafely([&] {
      plan_node.kernel->AsAsync()->ComputeAsync(state->context_, done);
      return absl::OkStatus();
    });
    if (!thrown.ok()) done(thrown);
    return absl::OkStatus();
  });
  if (!started.ok()) run_.Fail([&] { return errors::Prefix(Prefix(node), started); });
}

template <ExecutionFrame::Mode kMode>
bool ExecutionFrame::AsyncNodeDone(AsyncNode* node) {
  const int32_t begin = nodes_[node->node_].outputs_begin;
  links_[node->node_] = kNoNode;
  for (size_t i = 0; i < node->outputs_.size(); ++i) {
    new (&tensors_[begin + i]) Tensor(std::move(node->outputs_[i]));
  }
  node->inputs_.clear();
  if constexpr (IsTraced(kMode)) {
    trace_->node(node->node_).compute_end = TraceRecorder::Now();
    trace_->node(node->node_).allocated_bytes = node->allocated_bytes_;
  }
  DeadOutputs dead;
  absl::Status status = node->status_;
  if (status.ok()) {
    status = CallSafely([&] {
      SetDeadOutputs(node->node_, node->context_, &dead);
      return CheckOutputs<kMode>(node->node_);
    });
  }
  return NodeDone<kMode>(node->node_, dead, status);
}

void ExecutionFrame::BorrowInput(int32_t slot, Inputs* inputs) {
  Tensor& tensor = tensors_[slot];
  if (uses_[slot].load(std::memory_order_acquire) != 1) {
    inputs->emplace_back(Tensor::Borrow(), tensor);
    return;
  }
  inputs->push_back(std::move(tensor));
  uses_[slot].store(0, std::memory_order_relaxed);
  Destroy(slot);
}

template <ExecutionFrame::Mode kMode>
void ExecutionFrame::ReleaseInputs(int32_t node) {
  for (int32_t i = nodes_[node].inputs_begin; i < nodes_[node + 1].inputs_begin; ++i) {
    const int32_t slot = input_slots_[i];
    // If the slot is empty, BorrowInput has moved its tensor. No other reader can empty the slot
    // until this node has counted down.
    if (slot_states_[slot] == SlotState::kValue) ReleaseInput<kMode>(slot);
  }
}

template <ExecutionFrame::Mode kMode>
void ExecutionFrame::ReleaseInput(int32_t slot) {
  std::atomic<int32_t>& uses = uses_[slot];
  if constexpr (IsShared(kMode)) {
    if (uses.fetch_sub(1, std::memory_order_acq_rel) == 1) Destroy(slot);
  } else {
    const int32_t left = uses.load(std::memory_order_relaxed) - 1;
    uses.store(left, std::memory_order_relaxed);
    if (left == 0) Destroy(slot);
  }
}

// ---- Calls ----

template <ExecutionFrame::Mode kMode>
Tensor ExecutionFrame::TakeInput(int32_t slot) {
  Tensor& tensor = tensors_[slot];
  if (uses_[slot].load(std::memory_order_acquire) == 1) {
    Tensor taken = std::move(tensor);
    uses_[slot].store(0, std::memory_order_relaxed);
    Destroy(slot);
    return taken;
  }
  // The reference of the copy keeps other nodes from writing to the tensor.
  Tensor copy = tensor;
  ReleaseInput<kMode>(slot);
  return copy;
}

absl::Status ExecutionFrame::TakeFetch(size_t i, Tensor* taken) {
  const Plan::Fetch& fetch = plan_.fetches()[i];
  if (slot_states_[fetch.slot] != SlotState::kValue) {
    return errors::InvalidArgument("result ", i,
                                   " has no value: it is in a branch that was not taken");
  }
  if (!fetch.last) {
    *taken = tensors_[fetch.slot];
  } else {
    *taken = std::move(tensors_[fetch.slot]);
    Destroy(fetch.slot);
  }
  return absl::OkStatus();
}

void ExecutionFrame::SetFeed(int i, Tensor value) {
  const int32_t uses = slot_uses_[i];
  uses_[i].store(uses, std::memory_order_relaxed);
  if (uses == 0) return;
  new (&tensors_[i]) Tensor(std::move(value));
  slot_states_[i] = SlotState::kValue;
}

absl::StatusOr<const Plan*> ExecutionFrame::FirstCallee(int32_t node, int* first_arg) const {
  const Plan::NodeItem& item = nodes_[node];
  const Plan::Call& call = plan_.calls()[item.call];
  const std::vector<const Plan*>& plans = call.plans;
  const Tensor* const first_input = nodes_[node + 1].inputs_begin > item.inputs_begin
                                        ? &tensors_[input_slots_[item.inputs_begin]]
                                        : nullptr;
  *first_arg = 1;
  switch (call.op) {
    case FunctionalOp::kIf: {
      GRADFLOW_ASSIGN_OR_RETURN(const bool condition, IsTrue(*first_input));
      return plans[condition ? 0 : 1];
    }
    case FunctionalOp::kCase: {
      GRADFLOW_RETURN_IF_ERROR(CheckRank("branch_index", first_input->shape(), 0));
      const int64_t index = first_input->scalar<int32_t>()();
      const auto last = static_cast<int64_t>(plans.size()) - 1;
      return plans[index < 0 || index > last ? last : index];
    }
    default:
      *first_arg = 0;
      return plans[0];
  }
}

absl::StatusOr<ExecutionFrame*> ExecutionFrame::MakeCallee(int32_t node, const Plan& plan) {
  constexpr size_t kObject =
      (sizeof(ExecutionFrame) + alignof(Tensor) - 1) / alignof(Tensor) * alignof(Tensor);
  const size_t bytes = kObject + MemoryBytes(plan);
  TraceRecorder* const trace = trace_ == nullptr ? nullptr : run_.trace_->AddCallee(plan, *trace_);
  // From the allocator of tensors, whose limit is the only bound on the depth of a recursion.
  void* const memory = run_.AllocateFrame(bytes);
  if (memory == nullptr) {
    return errors::ResourceExhausted("out of memory for a function call: ", depth_ + 1,
                                     depth_ == 0 ? " call is" : " calls are",
                                     " in progress within each other");
  }
  auto* const callee =
      new (memory) ExecutionFrame(&run_, plan, trace, static_cast<char*>(memory) + kObject);
  callee->is_in_block_ = true;
  callee->caller_ = {this, node};
  callee->depth_ = depth_ + 1;
  callees_[nodes_[node].call] = callee;
  callee->MeasureIfNeeded();
  return callee;
}

void ExecutionFrame::MeasureIfNeeded() {
  order_ = &plan_.order();
  small_ = order_->small.empty() ? nullptr : order_->small.data();
  measures_ = run_.shared() && plan_.BeginMeasuring();
}

void ExecutionFrame::EndMeasuring() {
  if (!measures_) return;
  measures_ = false;
  // If there is no memory for a new order, the plan keeps its current one.
  (void)CallSafely([&] {
    plan_.EndMeasuring(/*finished=*/true);
    return absl::OkStatus();
  });
}

void ExecutionFrame::Delete(ExecutionFrame* frame) {
  RunState& run = frame->run_;
  const size_t object = static_cast<size_t>(reinterpret_cast<char*>(frame->tensors_) -
                                            reinterpret_cast<char*>(frame));
  const size_t bytes = object + MemoryBytes(frame->plan_);
  frame->~ExecutionFrame();
  run.FreeFrame(frame, bytes);
}

void ExecutionFrame::DeleteCallee(int32_t call) { Delete(std::exchange(callees_[call], nullptr)); }

void ExecutionFrame::MoveCalleesTo(FrameList* frames) {
  for (size_t i = 0; i < plan_.calls().size(); ++i) {
    if (callees_[i] != nullptr) frames->Push(std::exchange(callees_[i], nullptr));
  }
}

template <ExecutionFrame::Mode kMode>
absl::StatusOr<ExecutionFrame*> ExecutionFrame::StartCall(int32_t node) {
  const Plan::NodeItem& item = nodes_[node];
  const int32_t* const slots = input_slots_ + item.inputs_begin;
  const int num_inputs = nodes_[node + 1].inputs_begin - item.inputs_begin;
  int first_arg = 0;
  GRADFLOW_ASSIGN_OR_RETURN(const Plan* const plan, FirstCallee(node, &first_arg));
  ForState loop;
  // The first feed of the body of a For is the index.
  int first_feed = 0;
  if (plan_.calls()[item.call].op == FunctionalOp::kFor) {
    constexpr int kNumbers = 3;
    int64_t* const numbers[kNumbers] = {&loop.index, &loop.limit, &loop.delta};
    for (int i = 0; i < kNumbers; ++i) {
      const Tensor& number = tensors_[slots[i]];
      if (number.dims() != 0) {
        return errors::InvalidArgument("start, limit and delta must be scalars, but input ", i,
                                       " has shape ", number.shape().DebugString());
      }
      *numbers[i] = number.scalar<int32_t>()();
    }
    if (loop.delta == 0 ? loop.index != loop.limit : (loop.limit - loop.index) * loop.delta < 0) {
      return errors::InvalidArgument("a loop from ", loop.index, " by steps of ", loop.delta,
                                     " never reaches ", loop.limit);
    }
    first_arg = kNumbers;
    first_feed = 1;
    if (loop.index == loop.limit) {
      const int32_t out = item.outputs_begin;
      for (int i = 0; i < kNumbers; ++i) ReleaseInput<kMode>(slots[i]);
      for (int i = first_arg; i < num_inputs; ++i) {
        new (&tensors_[out + i - first_arg]) Tensor(TakeInput<kMode>(slots[i]));
      }
      return nullptr;
    }
  }
  GRADFLOW_ASSIGN_OR_RETURN(ExecutionFrame* const callee, MakeCallee(node, *plan));
  if (first_feed > 0) {
    callee->for_ = loop;
    callee->SetFeed(0, Scalar(static_cast<int32_t>(loop.index)));
  }
  for (int i = 0; i < first_arg; ++i) ReleaseInput<kMode>(slots[i]);
  for (int i = first_arg; i < num_inputs; ++i) {
    callee->SetFeed(first_feed + i - first_arg, TakeInput<kMode>(slots[i]));
  }
  return callee;
}

template <ExecutionFrame::Mode kMode>
bool ExecutionFrame::ProcessCall(int32_t node, FrameList* calls, bool* ended) {
  if constexpr (IsTraced(kMode)) trace_->node(node).compute_start = TraceRecorder::Now();
  ExecutionFrame* callee = nullptr;
  const absl::Status started = CallSafely([&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(callee, StartCall<kMode>(node));
    return absl::OkStatus();
  });
  if (!started.ok()) {
    if constexpr (IsTraced(kMode)) trace_->node(node).EndFailed();
    run_.Fail([&] { return errors::Prefix(Prefix(node), started); });
    return false;
  }
  *ended = callee == nullptr;
  if (*ended) {
    if constexpr (IsTraced(kMode)) trace_->node(node).compute_end = TraceRecorder::Now();
    return NodeDone<kMode>(node, {}, absl::OkStatus());
  }
  if (caller_.frame != nullptr) Open();
  calls->Push(callee);
  return !EndIfStopped(node, "stopped");
}

absl::Status ExecutionFrame::TakeResults(int32_t node) {
  const Plan::NodeItem& item = nodes_[node];
  const int32_t begin = item.outputs_begin;
  const int32_t end = nodes_[node + 1].outputs_begin;
  for (int32_t slot = begin; slot < end; ++slot) new (&tensors_[slot]) Tensor(Tensor::Unset());
  ExecutionFrame* const callee = callees_[item.call];
  callee->EndMeasuring();
  // The first fetch of a While is its condition.
  const size_t first = plan_.calls()[item.call].op == FunctionalOp::kWhile ? 1 : 0;
  for (int32_t slot = begin; slot < end; ++slot) {
    GRADFLOW_RETURN_IF_ERROR(callee->TakeFetch(first + slot - begin, &tensors_[slot]));
  }
  DeleteCallee(item.call);
  return absl::OkStatus();
}

ExecutionFrame* ExecutionFrame::NextFrameOfCall() {
  ExecutionFrame& caller = *caller_.frame;
  const FunctionalOp op = caller.plan_.calls()[caller.nodes_[caller_.node].call].op;
  if (op != FunctionalOp::kWhile && op != FunctionalOp::kFor) return nullptr;
  RunState& run = run_;
  const int32_t node = caller_.node;
  ExecutionFrame* next = nullptr;
  const absl::Status status = CallSafely([&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(next,
                              op == FunctionalOp::kWhile ? NextFrameOfWhile() : NextFrameOfFor());
    return absl::OkStatus();
  });
  if (!status.ok()) {
    run.Fail([&] { return errors::Prefix(caller.Prefix(node), status); });
  } else if (next != nullptr) {
    // The body may have no nodes, which would check whether the run is stopped.
    caller.EndIfStopped(node, "stopped");
  }
  return next;
}

absl::StatusOr<ExecutionFrame*> ExecutionFrame::NextFrameOfWhile() {
  const Plan::Fetch& condition = plan_.fetches()[0];
  if (slot_states_[condition.slot] != SlotState::kValue) {
    return errors::InvalidArgument("the condition has no value");
  }
  GRADFLOW_ASSIGN_OR_RETURN(const bool goes_on, IsTrue(tensors_[condition.slot]));
  if (!goes_on) return nullptr;
  ExecutionFrame& caller = *caller_.frame;
  const std::vector<const Plan*>& plans =
      caller.plan_.calls()[caller.nodes_[caller_.node].call].plans;
  if (&plan_ == plans[1]) {
    GRADFLOW_RETURN_IF_ERROR(BeginIteration(/*first_fetch=*/1, /*first_feed=*/0));
    return this;
  }
  // From here on, this is the frame that has evaluated the condition for the first time.
  EndMeasuring();
  Inputs variables;
  for (size_t i = 1; i < plan_.fetches().size(); ++i) {
    GRADFLOW_RETURN_IF_ERROR(TakeFetch(i, &variables.emplace_back(Tensor::Unset())));
  }
  const int32_t node = caller_.node;
  // Destroys this.
  caller.DeleteCallee(caller.nodes_[node].call);
  GRADFLOW_ASSIGN_OR_RETURN(ExecutionFrame* const first, caller.MakeCallee(node, *plans[1]));
  for (size_t i = 0; i < variables.size(); ++i) {
    first->SetFeed(static_cast<int>(i), std::move(variables[i]));
  }
  return first;
}

absl::StatusOr<ExecutionFrame*> ExecutionFrame::NextFrameOfFor() {
  for_.index += for_.delta;
  if (for_.delta > 0 ? for_.index >= for_.limit : for_.index <= for_.limit) return nullptr;
  GRADFLOW_RETURN_IF_ERROR(BeginIteration(/*first_fetch=*/0, /*first_feed=*/1));
  SetFeed(0, Scalar(static_cast<int32_t>(for_.index)));
  return this;
}

absl::Status ExecutionFrame::BeginIteration(size_t first_fetch, int first_feed) {
  EndMeasuring();
  const absl::Span<const Plan::Fetch> fetches = plan_.fetches();
  const size_t num_variables = fetches.size() - first_fetch;
  // A variable that an iteration passes on unchanged stays where it is.
  const auto stays = [&](size_t i) {
    const Plan::Fetch& fetch = fetches[first_fetch + i];
    return fetch.last && fetch.slot == first_feed + static_cast<int>(i) &&
           slot_states_[fetch.slot] == SlotState::kValue;
  };
  Inputs variables;
  for (size_t i = 0; i < num_variables; ++i) {
    Tensor& variable = variables.emplace_back(Tensor::Unset());
    if (stays(i)) continue;
    GRADFLOW_RETURN_IF_ERROR(TakeFetch(first_fetch + i, &variable));
  }
  if (first_fetch > 0 && fetches[0].last) Destroy(fetches[0].slot);
  if (any_dead_.load(std::memory_order_relaxed)) {
    for (int32_t slot = 0; slot < plan_.num_slots(); ++slot) {
      if (slot_states_[slot] == SlotState::kDead) slot_states_[slot] = SlotState::kEmpty;
    }
    any_dead_.store(false, std::memory_order_relaxed);
  }
  for (size_t i = 0; i < num_variables; ++i) {
    const int feed = first_feed + static_cast<int>(i);
    if (variables[i].dtype() == DT_INVALID) {
      uses_[feed].store(plan_.slot_uses()[feed], std::memory_order_relaxed);
    } else {
      SetFeed(feed, std::move(variables[i]));
    }
  }
  if (plan_.num_nodes() > 0) {
    std::memcpy(static_cast<void*>(pending_), plan_.pending().data(),
                plan_.num_nodes() * sizeof(int32_t));
  }
  if (trace_ != nullptr) trace_ = run_.trace_->AddCallee(plan_, *caller_.frame->trace_);
  open_.store(1, std::memory_order_relaxed);
  MeasureIfNeeded();
  return absl::OkStatus();
}

const ExecutionFrame* ExecutionFrame::FindWaiting() const {
  const ExecutionFrame* found = nullptr;
  std::vector<const ExecutionFrame*> frames = {this};
  while (!frames.empty()) {
    const ExecutionFrame* const frame = frames.back();
    frames.pop_back();
    if (frame->FirstAsyncNode() != kNoNode && (found == nullptr || frame->depth_ > found->depth_)) {
      found = frame;
    }
    for (size_t i = 0; i < frame->plan_.calls().size(); ++i) {
      if (frame->callees_[i] != nullptr) frames.push_back(frame->callees_[i]);
    }
  }
  return found;
}

bool ExecutionFrame::IsDead(int32_t node) const {
  const auto is_dead = [&](int32_t slot) { return slot_states_[slot] == SlotState::kDead; };
  const int32_t* const begin = input_slots_ + nodes_[node].inputs_begin;
  const int32_t* const end = input_slots_ + nodes_[node + 1].inputs_begin;
  if (nodes_[node].is_merge) return std::all_of(begin, end, is_dead);
  if (std::any_of(begin, end, is_dead)) return true;
  if (!plan_.has_dead_controls()) return false;
  const absl::Span<const int32_t> controls = plan_.dead_controls(node);
  return std::any_of(controls.begin(), controls.end(), is_dead);
}

template <ExecutionFrame::Mode kMode>
bool ExecutionFrame::ProcessMerge(int32_t node) {
  const Plan::NodeItem& item = nodes_[node];
  if constexpr (IsTraced(kMode)) trace_->node(node).compute_start = TraceRecorder::Now();
  const int32_t output = item.outputs_begin;
  for (int i = 0; i < 2; ++i) new (&tensors_[output + i]) Tensor(Tensor::Unset());
  int32_t taken = -1;
  for (int32_t i = item.inputs_begin; i < nodes_[node + 1].inputs_begin; ++i) {
    const int32_t slot = input_slots_[i];
    if (slot_states_[slot] != SlotState::kValue) continue;
    if (taken < 0) {
      taken = i - item.inputs_begin;
      tensors_[output] = TakeInput<kMode>(slot);
    } else {
      ReleaseInput<kMode>(slot);
    }
  }
  const absl::Status status = CallSafely([&]() -> absl::Status {
    if (slot_uses_[output + 1] > 0) tensors_[output + 1] = Scalar(taken);
    if constexpr (IsTraced(kMode)) {
      const Tensor& value = tensors_[output];
      trace_->node(node).compute_end = TraceRecorder::Now();
      trace_->node(node).outputs.push_back(
          {value.dtype(), value.shape(), static_cast<int64_t>(value.TotalBytes())});
    }
    return absl::OkStatus();
  });
  return NodeDone<kMode>(node, {}, status);
}

void ExecutionFrame::SkipDeadNode(int32_t node) {
  for (int32_t i = nodes_[node].inputs_begin; i < nodes_[node + 1].inputs_begin; ++i) {
    const int32_t slot = input_slots_[i];
    // Other readers still check whether the slot is dead.
    if (slot_states_[slot] == SlotState::kDead) continue;
    ReleaseInput<Mode::kShared>(slot);
  }
  for (int32_t slot = nodes_[node].outputs_begin; slot < nodes_[node + 1].outputs_begin; ++slot) {
    slot_states_[slot] = SlotState::kDead;
  }
  if (!plan_.has_dead_controls()) return;
  const int32_t slot = plan_.dead_slot(node);
  if (slot >= 0) slot_states_[slot] = SlotState::kDead;
}

}  // namespace gradflow
