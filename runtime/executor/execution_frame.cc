// ExecutionFrame, which executes the nodes of one plan (run.h).
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/status.h"
#include "gradflow/runtime/executor/run.h"
#include "gradflow/runtime/trace/run_trace.h"

namespace gradflow {
namespace {

// The link of an asynchronous node that is in flight.
constexpr int32_t kAsyncNode = -3;
constexpr int32_t kNoSlot = -1;

}  // namespace

size_t ExecutionFrame::MemoryBytes(const Plan& plan) {
  return plan.num_slots() * (sizeof(Tensor) + sizeof(int32_t) + sizeof(SlotState)) +
         plan.num_nodes() * 2 * sizeof(int32_t);
}

void* ExecutionFrame::AllocateMemory(const Plan& plan, PoolAllocator* pool) {
  return pool->Allocate(std::max<size_t>(MemoryBytes(plan), 1));
}

ExecutionFrame::ExecutionFrame(RunState* run, const Plan& plan, RunTrace* trace, void* memory)
    : Source(reinterpret_cast<int32_t*>(static_cast<Tensor*>(memory) + plan.num_slots()) +
             plan.num_slots() + plan.num_nodes()),
      run_(*run),
      plan_(plan),
      order_(plan.order()),
      nodes_(plan.nodes().data()),
      input_slots_(plan.inputs().data()),
      slot_types_(plan.slot_types().data()),
      slot_uses_(plan.slot_uses().data()),
      contexts_(&run->context()),
      trace_(trace),
      tensors_(static_cast<Tensor*>(memory)),
      uses_(reinterpret_cast<std::atomic<int32_t>*>(tensors_ + plan.num_slots())),
      pending_(uses_ + plan.num_slots()),
      links_(reinterpret_cast<int32_t*>(pending_ + plan.num_nodes())),
      slot_states_(reinterpret_cast<SlotState*>(links_ + plan.num_nodes())),
      charge_(run->context().allocator->get()) {
  static_assert(sizeof(std::atomic<int32_t>) == sizeof(int32_t));
  static_assert(sizeof(SlotState) == 1);
  if (plan.num_nodes() > 0) {
    std::memcpy(static_cast<void*>(pending_), plan.pending().data(),
                plan.num_nodes() * sizeof(int32_t));
  }
  std::memset(static_cast<void*>(slot_states_), static_cast<int>(SlotState::kEmpty),
              plan.num_slots());
  // FirstAsyncNode() reads the links of nodes that have not started, too.
  if (plan.has_async()) std::fill_n(links_, plan.num_nodes(), kNoNode);
}

ExecutionFrame::~ExecutionFrame() {
  for (int32_t slot = 0; slot < plan_.num_slots(); ++slot) {
    if (slot_states_[slot] == SlotState::kValue) std::destroy_at(&tensors_[slot]);
  }
  run_.run_memory().Deallocate(tensors_, std::max<size_t>(MemoryBytes(plan_), 1));
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

void ExecutionFrame::Execute(ReadyQueue::Work* work) {
  if (trace_ == nullptr) {
    run_.shared() ? Work<Mode::kShared>(work) : Work<Mode::kAlone>(work);
  } else {
    run_.shared() ? Work<Mode::kSharedTraced>(work) : Work<Mode::kAloneTraced>(work);
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

// An asynchronous node that is in flight. Lives as long as a copy of its AsyncDone, which may
// outlive the run but can no longer reach it then.
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
  // Only the run may access it.
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

// Work() and what it calls for each node are one function: a node of a chain of small kernels takes
// 38 ns instead of 65 (AMD EPYC, Zen 4), together with fewer checks of bounds.
template <ExecutionFrame::Mode kMode>
void ExecutionFrame::Work(ReadyQueue::Work* work) noexcept {
  Inputs inputs;
  ReadyNodes ready;
  if (work->completion != nullptr) {
    const auto node = std::static_pointer_cast<AsyncNode>(work->completion);
    work->completion = nullptr;
    if (!AsyncNodeDone<kMode>(node.get())) return;
    PropagateOutputs<kMode>(node->node_, &ready);
  } else if (work->node == kNoNode) {
    // Backwards, since the newest node runs first.
    const std::vector<int32_t>& roots = order_.roots;
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
    }
    bool ended = true;
    if (!ProcessNode<kMode>(node, &inputs, &ended)) return;
    if (ended) PropagateOutputs<kMode>(node, &ready);
  }
}

template <ExecutionFrame::Mode kMode>
void ExecutionFrame::AddReady(int32_t node, ReadyNodes* ready) {
  if constexpr (IsTraced(kMode)) trace_->node(node).scheduled = RunTrace::Now();
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
  const int32_t* const successors = order_.successors.data();
  for (int32_t i = nodes_[node + 1].successors_begin; i-- > nodes_[node].successors_begin;) {
    const int32_t next = successors[i];
    if constexpr (IsShared(kMode)) {
      // At 1, only this node is left to count, and no other thread changes the count.
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

void ExecutionFrame::CloseOne() {
  if (open_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  // The function has ended, unless the run has.
  RunState& run = run_;
  if (run.failed() || run.stop().IsStopped()) return;
  std::vector<Tensor> results;
  const absl::Status status = CallSafely([&] { return Fetch(&results); });
  const FunctionRunner::Done done = std::move(done_);
  // Destroys this. The call of done() may end the caller, too.
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
  // Lists the innermost node and the outermost calls only, since a recursion may be of any depth.
  constexpr size_t kMaxCalls = 4;
  std::vector<Caller> callers;
  for (Caller c = caller_; c.frame != nullptr; c = c.frame->caller_) callers.push_back(c);
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
                                                                     bool* ended) {
  const Plan::PlanNode& plan_node = nodes_[node];
  if (any_dead_.load(std::memory_order_relaxed) && HasDeadInput(node)) {
    SkipDeadNode(node);
    return true;
  }
  if constexpr (IsTraced(kMode)) {
    trace_->node(node).thread = RunTrace::ThisThread();
    trace_->node(node).start = RunTrace::Now();
  }
  if (plan_node.async) {
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
  // Inputs are dropped before the outputs are read, so that an output in the memory of an input
  // owns it alone.
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
  const Plan::PlanNode& plan_node = nodes_[node];
  const int32_t* const slots = input_slots_ + plan_node.inputs_begin;
  const int32_t num_inputs = nodes_[node + 1].inputs_begin - plan_node.inputs_begin;
  if (plan_node.has_foreign_inputs) {
    inputs->reserve(num_inputs);
    for (int32_t i = 0; i < num_inputs; ++i) {
      inputs->emplace_back(Tensor::Borrow(), tensors_[slots[i]]);
    }
  } else if (num_inputs == 1 && uses_[slots[0]].load(std::memory_order_acquire) == 1) {
    // The last reader of its only input, as most nodes are, reads it in place.
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
  const Plan::PlanNode& plan_node = nodes_[node];
  const Plan::PlanNode& next = nodes_[node + 1];
  const absl::Span<Tensor> in = PrepareInputs(node, inputs, only_input);
  const size_t num_outputs = next.outputs_begin - plan_node.outputs_begin;
  KernelContext context(in, {tensors_ + plan_node.outputs_begin, num_outputs},
                        {slot_types_ + plan_node.outputs_begin, num_outputs},
                        contexts_[plan_node.device]);
  if constexpr (IsTraced(kMode)) {
    context.CountAllocatedBytes(&trace_->node(node).allocated_bytes);
    trace_->node(node).compute_start = RunTrace::Now();
  }
  const bool measures = IsShared(kMode) && measures_ && !plan_node.cheap;
  const int64_t start = measures ? RunTrace::Now() : 0;
  GRADFLOW_RETURN_IF_ERROR(plan_node.kernel->Compute(context));
  if (measures) plan_.SetCost(node, RunTrace::Now() - start);
  if constexpr (IsTraced(kMode)) trace_->node(node).compute_end = RunTrace::Now();
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
  if constexpr (IsTraced(kMode)) trace_->node(node).end = RunTrace::Now();
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
      // Strings that are shared with another tensor are counted already, or are the caller's.
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
  const Plan::PlanNode& plan_node = nodes_[node];
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
    if constexpr (IsTraced(kMode)) trace_->node(node).compute_start = RunTrace::Now();
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
    trace_->node(node->node_).compute_end = RunTrace::Now();
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
    // BorrowInput has moved the tensor of an empty slot. No other reader can empty the slot as long
    // as this node has not counted down.
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

bool ExecutionFrame::HasDeadInput(int32_t node) const {
  for (int32_t i = nodes_[node].inputs_begin; i < nodes_[node + 1].inputs_begin; ++i) {
    if (slot_states_[input_slots_[i]] == SlotState::kDead) return true;
  }
  return false;
}

void ExecutionFrame::SkipDeadNode(int32_t node) {
  for (int32_t i = nodes_[node].inputs_begin; i < nodes_[node + 1].inputs_begin; ++i) {
    const int32_t slot = input_slots_[i];
    // Other readers still check if it is dead.
    if (slot_states_[slot] == SlotState::kDead) continue;
    ReleaseInput<Mode::kShared>(slot);
  }
  for (int32_t slot = nodes_[node].outputs_begin; slot < nodes_[node + 1].outputs_begin; ++slot) {
    slot_states_[slot] = SlotState::kDead;
  }
}

}  // namespace gradflow
