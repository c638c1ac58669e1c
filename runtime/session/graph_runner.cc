#include "gradflow/runtime/session/graph_runner.h"

#include <tbb/info.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/runtime/session/option_checks.h"
#include "gradflow/runtime/trace/trace_recorder.h"

namespace gradflow {
namespace {

int ThreadsOf(int threads) {
  if (threads > 0) return threads;
  return std::clamp(tbb::info::default_concurrency(), 1, SessionOptions::kMaxThreads);
}

Parallelism ParallelismOf(const ConfigProto& config) {
  Parallelism parallelism;
  parallelism.intra_op = ThreadsOf(config.intra_op_parallelism_threads());
  parallelism.inter_op = ThreadsOf(config.inter_op_parallelism_threads());
  return parallelism;
}

PlanOptions PlanOptionsOf(const SessionOptions& session) {
  const OptimizerOptions& optimizer = session.config.graph_options().optimizer_options();
  const bool all = optimizer.opt_level() == OptimizerOptions::L1;
  PlanOptions options;
  options.eliminate_common_subexpressions = all || optimizer.do_common_subexpression_elimination();
  if (!all && !optimizer.do_constant_folding()) {
    options.max_folded_bytes = 0;
  } else if (optimizer.max_folded_constant_in_bytes() > 0) {
    options.max_folded_bytes = optimizer.max_folded_constant_in_bytes();
  }
  options.fuse = all;
  options.fold_batch_norms = all && session.fold_batch_norms;
  options.integer_inference = all && session.integer_inference;
  options.tflite_rounding = session.tflite_rounding;
  return options;
}

std::shared_ptr<PoolAllocator> MakePool(const SessionOptions& options) {
  const int64_t keep = options.pool_limit_bytes;
  const int64_t limit = options.tensor_memory_limit_bytes;
  return std::make_shared<PoolAllocator>(
      keep < 0 ? PoolAllocator::DefaultLimit() : static_cast<size_t>(keep),
      limit == 0 ? SIZE_MAX : static_cast<size_t>(limit));
}

absl::Status CheckLimits(const RunLimits& limits) {
  StopToken stop(limits.cancelled, limits.closed, limits.deadline);
  return stop.Check() ? WhyStopped(stop, limits) : absl::OkStatus();
}

using Feeds = absl::InlinedVector<const Tensor*, 8>;

// A plan, and the kernels that must outlive it.
struct PlanAndKernels {
  std::shared_ptr<KernelCache> kernels;
  std::shared_ptr<const Plan> plan;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GraphRunner>> GraphRunner::Make(const SessionOptions& options,
                                                               const Graph& graph) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckSessionOptions(options));
  std::unique_ptr<GraphRunner> runner;
  GRADFLOW_RETURN_IF_ERROR(CallSafely([&] {
    runner.reset(new GraphRunner(options, graph));
    return absl::OkStatus();
  }));
  return runner;
}

GraphRunner::GraphRunner(const SessionOptions& options, const Graph& graph)
    : graph_(graph),
      plan_options_(PlanOptionsOf(options)),
      memory_limit_(options.tensor_memory_limit_bytes),
      timeout_in_ms_(options.config.operation_timeout_in_ms()),
      pool_(MakePool(options)),
      resources_(std::make_shared<ResourceManager>()),
      executor_(ParallelismOf(options.config), pool_, resources_, /*other_devices=*/{},
                {options.file_access, options.raw_prints, options.collectives}),
      kernels_(std::make_shared<KernelCache>(resources_)) {
  plan_options_.resources = resources_.get();
}

GraphRunner::~GraphRunner() {
  // Tensors that outlive the runner keep the pool alive, but need not keep its cached blocks.
  pool_->StopCaching();
}

absl::Status GraphRunner::Run(const RunOptions& options, const RunRequest& request,
                              std::vector<Tensor>* outputs, RunMetadata* metadata,
                              const CancellationToken* token) {
  return CallSafely([&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(internal::CheckRunOptions(options));
    if (metadata != nullptr) metadata->Clear();
    const RunLimits limits = LimitsOf(options, token);
    std::shared_ptr<const Plan> plan = plans_.Find(request);
    if (plan == nullptr) {
      // Making a plan may take long and wait for other plans.
      GRADFLOW_RETURN_IF_ERROR(CheckLimits(limits));
      GRADFLOW_ASSIGN_OR_RETURN(plan, FindOrMakePlan(request, limits));
    }
    Feeds feeds;
    feeds.reserve(request.feeds.size());
    for (const auto& feed : request.feeds) feeds.push_back(&feed.second);
    return RunPlan(plan, options, limits, feeds, outputs, metadata);
  });
}

RunLimits GraphRunner::LimitsOf(const RunOptions& options, const CancellationToken* token) const {
  const int64_t timeout = options.timeout_in_ms();
  RunLimits limits;
  limits.SetTimeout(std::chrono::milliseconds(timeout > 0 ? timeout : timeout_in_ms_));
  limits.closed = closed_.get();
  if (token != nullptr) limits.cancelled = token->flag();
  return limits;
}

absl::Status GraphRunner::RunPlan(const std::shared_ptr<const Plan>& plan,
                                  const RunOptions& options, const RunLimits& limits,
                                  absl::Span<const Tensor* const> feeds,
                                  std::vector<Tensor>* outputs, RunMetadata* metadata) {
  // The executor checks the limits before each node, and therefore not for a plan without nodes.
  if (plan->num_nodes() == 0) GRADFLOW_RETURN_IF_ERROR(CheckLimits(limits));
  std::optional<TraceRecorder> trace;
  if (options.trace_level() != RunOptions::NO_TRACE && metadata != nullptr) trace.emplace(*plan);
  absl::Status status =
      executor_.Run(plan, feeds, limits, outputs, trace.has_value() ? &*trace : nullptr);
  if (trace.has_value()) trace->WriteTo(metadata->mutable_step_stats());
  if (memory_limit_ > 0 && absl::IsResourceExhausted(status)) {
    status = absl::ResourceExhaustedError(
        absl::StrCat(status.message(), " (the session may have ", memory_limit_,
                     " bytes of tensors at once: SessionOptions.tensor_memory_limit_bytes)"));
  }
  return status;
}

absl::StatusOr<std::shared_ptr<const Plan>> GraphRunner::FindOrMakePlan(const RunRequest& request,
                                                                        const RunLimits& limits) {
  // Destroyed without the lock.
  std::vector<std::shared_ptr<const void>> dropped;
  MutexLock lock(&graph_mutex_);
  // If several threads need the same new plan, one makes it and the others wait. If that
  // thread's run is cancelled before the plan is made, the next thread makes the plan.
  if (std::shared_ptr<const Plan> plan = plans_.Find(request)) return plan;
  PlanNames names = request.Names();
  GRADFLOW_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, MakePlan(names, limits));
  dropped = plans_.Insert(std::move(names), plan);
  // Close may have cleared the cache before the insertion.
  if (closed()) plans_.Clear();
  return plan;
}

absl::StatusOr<std::shared_ptr<const Plan>> GraphRunner::MakePlan(const PlanNames& names,
                                                                  const RunLimits& limits) {
  const auto made = std::make_shared<PlanAndKernels>();
  {
    MutexLock lock(&kernels_mutex_);
    made->kernels = kernels_;
  }
  if (made->kernels == nullptr) return Closed();
  // Isolated: a kernel or kernel factory that waits for its own tasks must not take a task of the
  // caller, because that task could wait for graph_mutex_.
  GRADFLOW_ASSIGN_OR_RETURN(made->plan, tbb::this_task_arena::isolate([&] {
                              return Plan::Make(graph_, names, made->kernels.get(), plan_options_,
                                                limits);
                            }));
  return std::shared_ptr<const Plan>(made, made->plan.get());
}

absl::Status GraphRunner::MakeCallable(const CallableOptions& options, int64_t* out_handle) {
  return CallSafely([&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(internal::CheckCallableOptions(options));
    const auto callable = std::make_shared<Callable>();
    callable->options = options.run_options();
    // The limits in the options apply only to the runs of the callable.
    RunLimits limits;
    limits.closed = closed_.get();
    const auto strings = [](const auto& names) {
      return std::vector<std::string>(names.begin(), names.end());
    };
    const PlanNames names = {strings(options.feed()), strings(options.fetch()),
                             strings(options.target())};
    {
      MutexLock lock(&graph_mutex_);
      GRADFLOW_ASSIGN_OR_RETURN(callable->plan, MakePlan(names, limits));
    }
    const int64_t handle = next_handle_.fetch_add(1, std::memory_order_relaxed);
    const auto sharded = std::make_shared<const ShardedPtr<const Callable>>(callable);
    // callables_ has a copy of the table for each shard of threads. If memory ran out, some copies
    // have the callable and others do not, so it is removed from all of them.
    const absl::Status added = CallSafely([&] {
      callables_.Update([&](Callables* callables) { callables->emplace(handle, sharded); });
      return absl::OkStatus();
    });
    if (!added.ok()) {
      DropCallable(handle);
      return added;
    }
    // Close may have dropped the callables before the insertion.
    if (closed()) {
      DropCallable(handle);
      return Closed();
    }
    *out_handle = handle;
    return absl::OkStatus();
  });
}

absl::Status GraphRunner::RunCallable(int64_t handle, absl::Span<const Tensor> feeds,
                                      std::vector<Tensor>* outputs, RunMetadata* metadata,
                                      const CancellationToken* token) {
  return CallSafely([&]() -> absl::Status {
    if (metadata != nullptr) metadata->Clear();
    const auto callable =
        callables_.Read([=](const Callables& callables) -> std::shared_ptr<const Callable> {
          const auto it = callables.find(handle);
          return it == callables.end() ? nullptr : it->second->get();
        });
    if (callable == nullptr) return NoCallable(handle);
    const RunLimits limits = LimitsOf(callable->options, token);
    Feeds pointers;
    pointers.reserve(feeds.size());
    for (const Tensor& feed : feeds) pointers.push_back(&feed);
    return RunPlan(callable->plan, callable->options, limits, pointers, outputs, metadata);
  });
}

absl::Status GraphRunner::ReleaseCallable(int64_t handle) {
  return CallSafely([&]() -> absl::Status {
    return DropCallable(handle) ? absl::OkStatus() : NoCallable(handle);
  });
}

bool GraphRunner::DropCallable(int64_t handle) {
  // Destroyed without a lock.
  std::shared_ptr<const ShardedPtr<const Callable>> dropped;
  callables_.Update([&](Callables* callables) {
    const auto it = callables->find(handle);
    if (it == callables->end()) return;
    dropped = std::move(it->second);
    callables->erase(it);
  });
  return dropped != nullptr;
}

absl::Status GraphRunner::Closed() { return absl::CancelledError("the session has been closed"); }

absl::Status GraphRunner::NoCallable(int64_t handle) const {
  if (closed()) return Closed();
  return errors::InvalidArgument("there is no callable with handle ", handle,
                                 "; it may have been released");
}

void GraphRunner::Close() {
  closed_->Raise();
  // Destroyed without a lock.
  std::vector<Callables> dropped;
  dropped.reserve(kNumShards);
  callables_.Update(
      [&](Callables* callables) { dropped.push_back(std::exchange(*callables, Callables())); });
  plans_.Clear();
  resources_->Close();
  pool_->StopCaching();
  executor_.StopCaching();
  // Freed without the lock, unless a plan keeps them alive.
  std::shared_ptr<KernelCache> kernels;
  MutexLock lock(&kernels_mutex_);
  kernels.swap(kernels_);
}

void GraphRunner::Trim() {
  pool_->Trim();
  executor_.Trim();
}

}  // namespace gradflow
