#include "gradflow/runtime/graph_runner.h"

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
#include "gradflow/core/run_stop.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/runtime/run_trace.h"

namespace gradflow {
namespace {

absl::StatusOr<Parallelism> ParallelismOf(const ConfigProto& config) {
  static constexpr int kMax = ConfigProto::kMaxThreads;
  const auto check = [](const char* name, int threads) -> absl::StatusOr<int> {
    if (threads == 0) return std::clamp(tbb::info::default_concurrency(), 1, kMax);
    if (threads > 0 && threads <= kMax) return threads;
    return errors::InvalidArgument(name, " is ", threads, ", expected 0 to ", kMax);
  };
  Parallelism parallelism;
  GRADFLOW_ASSIGN_OR_RETURN(parallelism.intra_op, check("intra_op_parallelism_threads",
                                                        config.intra_op_parallelism_threads()));
  GRADFLOW_ASSIGN_OR_RETURN(parallelism.inter_op, check("inter_op_parallelism_threads",
                                                        config.inter_op_parallelism_threads()));
  return parallelism;
}

absl::Status CheckMemoryOptions(const ConfigProto& config) {
  if (config.tensor_memory_limit_bytes() < 0) {
    return errors::InvalidArgument("tensor_memory_limit_bytes is ",
                                   config.tensor_memory_limit_bytes(),
                                   ", expected 0 (no limit) or more");
  }
  if (config.pool_limit_bytes() < -1) {
    return errors::InvalidArgument("pool_limit_bytes is ", config.pool_limit_bytes(),
                                   ", expected -1 (a quarter of the memory) or more");
  }
  return absl::OkStatus();
}

absl::StatusOr<PlanOptions> PlanOptionsOf(const ConfigProto& config) {
  const OptimizerOptions& optimizer = config.graph_options().optimizer_options();
  if (optimizer.opt_level() != OptimizerOptions::L1 &&
      optimizer.opt_level() != OptimizerOptions::L0) {
    return errors::InvalidArgument("opt_level is ", static_cast<int>(optimizer.opt_level()),
                                   ", expected -1 (L0) or 0 (L1)");
  }
  if (optimizer.max_folded_constant_in_bytes() < 0) {
    return errors::InvalidArgument("max_folded_constant_in_bytes is ",
                                   optimizer.max_folded_constant_in_bytes(),
                                   ", expected 0 (the default) or more");
  }
  PlanOptions options;
  if (optimizer.opt_level() == OptimizerOptions::L0) {
    options.merge_identical_nodes = false;
    options.max_folded_bytes = 0;
  } else if (optimizer.max_folded_constant_in_bytes() > 0) {
    options.max_folded_bytes = optimizer.max_folded_constant_in_bytes();
  }
  return options;
}

std::shared_ptr<PoolAllocator> MakePool(const ConfigProto& config) {
  const int64_t keep = config.pool_limit_bytes();
  const int64_t limit = config.tensor_memory_limit_bytes();
  return std::make_shared<PoolAllocator>(
      keep < 0 ? PoolAllocator::DefaultLimit() : static_cast<size_t>(keep),
      limit == 0 ? SIZE_MAX : static_cast<size_t>(limit));
}

absl::Status CheckRunOptions(const RunOptions& options) {
  if (options.trace_level() < RunOptions::NO_TRACE ||
      options.trace_level() > RunOptions::FULL_TRACE) {
    return errors::InvalidArgument("RunOptions.trace_level is ",
                                   static_cast<int>(options.trace_level()), ", expected 0 to ",
                                   static_cast<int>(RunOptions::FULL_TRACE));
  }
  if (options.timeout_in_ms() < 0) {
    return errors::InvalidArgument("RunOptions.timeout_in_ms is ", options.timeout_in_ms(),
                                   ", expected 0 (no limit) or more");
  }
  return absl::OkStatus();
}

absl::Status CheckLimits(const RunLimits& limits) {
  RunStop stop(limits.cancelled, limits.closed, limits.deadline);
  return stop.Check() ? WhyStopped(stop, limits) : absl::OkStatus();
}

using Feeds = absl::InlinedVector<const Tensor*, 8>;

// A plan, and what must outlive it.
struct PlanAndKernels {
  std::shared_ptr<KernelCache> kernels;
  std::unique_ptr<const Plan> plan;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GraphRunner>> GraphRunner::Make(const SessionOptions& options,
                                                               const Graph& graph) {
  if (!options.target.empty() && options.target != "local") {
    return errors::NotFound("there is no session for the target ", internal::Quoted(options.target),
                            "; expected '' or 'local', which are this process");
  }
  GRADFLOW_ASSIGN_OR_RETURN(const Parallelism parallelism, ParallelismOf(options.config));
  GRADFLOW_RETURN_IF_ERROR(CheckMemoryOptions(options.config));
  GRADFLOW_ASSIGN_OR_RETURN(const PlanOptions plan_options, PlanOptionsOf(options.config));
  std::unique_ptr<GraphRunner> runner;
  GRADFLOW_RETURN_IF_ERROR(CallSafely([&] {
    runner.reset(new GraphRunner(parallelism, options.config, plan_options, graph));
    return absl::OkStatus();
  }));
  return runner;
}

GraphRunner::GraphRunner(const Parallelism& parallelism, const ConfigProto& config,
                         const PlanOptions& plan_options, const Graph& graph)
    : graph_(graph),
      plan_options_(plan_options),
      memory_limit_(config.tensor_memory_limit_bytes()),
      pool_(MakePool(config)),
      executor_(parallelism, pool_, &resources_),
      kernels_(std::make_shared<KernelCache>()) {}

GraphRunner::~GraphRunner() {
  // Tensors that live on keep the pool, but need not keep what it has in store.
  pool_->StopCaching();
}

absl::Status GraphRunner::Run(const RunOptions& options, const RunRequest& request,
                              std::vector<Tensor>* outputs, RunMetadata* metadata) {
  return CallSafely([&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(CheckRunOptions(options));
    if (metadata != nullptr) metadata->Clear();
    const RunLimits limits = LimitsOf(options);
    std::shared_ptr<const Plan> plan = plans_.Find(request);
    if (plan == nullptr) {
      // Making a plan may take long, and wait for others to be made.
      GRADFLOW_RETURN_IF_ERROR(CheckLimits(limits));
      GRADFLOW_ASSIGN_OR_RETURN(plan, FindOrMakePlan(request, limits));
    }
    Feeds feeds;
    feeds.reserve(request.feeds.size());
    for (const auto& feed : request.feeds) feeds.push_back(&feed.second);
    return RunPlan(*plan, options, limits, feeds, outputs, metadata);
  });
}

RunLimits GraphRunner::LimitsOf(const RunOptions& options) const {
  RunLimits limits;
  limits.SetTimeout(std::chrono::milliseconds(options.timeout_in_ms()));
  limits.closed = &closed_;
  if (options.cancellation_token().has_value()) {
    limits.cancelled = options.cancellation_token()->flag();
  }
  return limits;
}

absl::Status GraphRunner::RunPlan(const Plan& plan, const RunOptions& options,
                                  const RunLimits& limits, absl::Span<const Tensor* const> feeds,
                                  std::vector<Tensor>* outputs, RunMetadata* metadata) {
  // Otherwise the nodes ask.
  if (plan.num_nodes() == 0) GRADFLOW_RETURN_IF_ERROR(CheckLimits(limits));
  std::optional<RunTrace> trace;
  if (options.trace_level() != RunOptions::NO_TRACE && metadata != nullptr) trace.emplace(plan);
  absl::Status status =
      executor_.Run(plan, feeds, limits, outputs, trace.has_value() ? &*trace : nullptr);
  if (trace.has_value()) trace->WriteTo(metadata->mutable_step_stats());
  if (memory_limit_ > 0 && absl::IsResourceExhausted(status)) {
    status = absl::ResourceExhaustedError(
        absl::StrCat(status.message(), " (the session may have ", memory_limit_,
                     " bytes of tensors at once: ConfigProto.tensor_memory_limit_bytes)"));
  }
  return status;
}

absl::StatusOr<std::shared_ptr<const Plan>> GraphRunner::FindOrMakePlan(const RunRequest& request,
                                                                        const RunLimits& limits) {
  MutexLock lock(&graph_mutex_);
  // Of several threads that need the same plan at first, one makes it and the others wait for it.
  // If its run ends meanwhile, the next one does.
  if (std::shared_ptr<const Plan> plan = plans_.Find(request)) return plan;
  PlanNames names = request.Names();
  GRADFLOW_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, MakePlan(names, limits));
  plans_.Insert(std::move(names), plan);
  // Close may have cleared the cache before.
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
  // What is made serves all runs: the loops of factories do not end with a run that calls for this.
  const ScopedLoopSettings loops({nullptr, 1});
  // Isolated, so that a kernel, or the factory of one, which waits for tasks of its own takes none
  // of the caller's, which could wait for graph_mutex_.
  GRADFLOW_ASSIGN_OR_RETURN(made->plan, tbb::this_task_arena::isolate([&] {
                              return Plan::Make(graph_, names, made->kernels.get(), plan_options_,
                                                limits);
                            }));
  return std::shared_ptr<const Plan>(made, made->plan.get());
}

absl::Status GraphRunner::MakeCallable(const CallableOptions& options, int64_t* out_handle) {
  return CallSafely([&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(CheckRunOptions(options.run_options()));
    const auto callable = std::make_shared<Callable>();
    callable->options = options.run_options();
    // The limits of its options are those of its runs.
    RunLimits limits;
    limits.closed = &closed_;
    {
      MutexLock lock(&graph_mutex_);
      GRADFLOW_ASSIGN_OR_RETURN(
          callable->plan, MakePlan({options.feed(), options.fetch(), options.target()}, limits));
    }
    bool added = false;
    callables_.Update([&](const Callables& old) -> std::optional<Callables> {
      // Close drops the callables after it has said so.
      if (closed()) return std::nullopt;
      Callables callables = old;
      *out_handle = callables.next_handle++;
      callables.list.emplace_back(*out_handle,
                                  std::make_shared<StripedPtr<const Callable>>(callable));
      added = true;
      return callables;
    });
    return added ? absl::OkStatus() : Closed();
  });
}

absl::Status GraphRunner::RunCallable(int64_t handle, absl::Span<const Tensor> feeds,
                                      std::vector<Tensor>* outputs, RunMetadata* metadata) {
  return CallSafely([&]() -> absl::Status {
    if (metadata != nullptr) metadata->Clear();
    // Found by a reader that is gone when the run begins: a version of the table that is replaced
    // must not wait for a long run.
    const std::shared_ptr<const Callable> callable =
        Published<Callables>::Reader(callables_)->Find(handle);
    if (callable == nullptr) return NoCallable(handle);
    const RunLimits limits = LimitsOf(callable->options);
    Feeds pointers;
    pointers.reserve(feeds.size());
    for (const Tensor& feed : feeds) pointers.push_back(&feed);
    return RunPlan(*callable->plan, callable->options, limits, pointers, outputs, metadata);
  });
}

absl::Status GraphRunner::ReleaseCallable(int64_t handle) {
  return CallSafely([&]() -> absl::Status {
    bool found = false;
    callables_.Update([&](const Callables& old) -> std::optional<Callables> {
      Callables callables = old;
      auto& list = callables.list;
      const auto it = std::find_if(list.begin(), list.end(),
                                   [=](const auto& entry) { return entry.first == handle; });
      if (it == list.end()) return std::nullopt;
      found = true;
      list.erase(it);
      return callables;
    });
    return found ? absl::OkStatus() : NoCallable(handle);
  });
}

std::shared_ptr<const GraphRunner::Callable> GraphRunner::Callables::Find(int64_t handle) const {
  const auto it =
      std::lower_bound(list.begin(), list.end(), handle,
                       [](const auto& entry, int64_t wanted) { return entry.first < wanted; });
  return it != list.end() && it->first == handle ? it->second->get() : nullptr;
}

absl::Status GraphRunner::Closed() { return absl::CancelledError("the session has been closed"); }

absl::Status GraphRunner::NoCallable(int64_t handle) const {
  if (closed()) return Closed();
  return errors::InvalidArgument("there is no callable of handle ", handle,
                                 "; it may have been released");
}

void GraphRunner::Close() {
  closed_.store(true, std::memory_order_release);
  callables_.Update([](const Callables& old) -> std::optional<Callables> {
    return Callables{{}, old.next_handle};
  });
  plans_.Clear();
  resources_.Close();
  pool_->StopCaching();
  executor_.StopCaching();
  // Freed without the lock, unless a plan has them.
  std::shared_ptr<KernelCache> kernels;
  MutexLock lock(&kernels_mutex_);
  kernels.swap(kernels_);
}

void GraphRunner::Trim() {
  pool_->Trim();
  executor_.Trim();
}

}  // namespace gradflow
