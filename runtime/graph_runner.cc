#include "gradflow/runtime/graph_runner.h"

#include <tbb/info.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/runtime/call_safely.h"

namespace gradflow {
namespace {

absl::StatusOr<int> NumThreads(const ConfigProto& config) {
  static constexpr int kMax = ConfigProto::kMaxThreads;
  const auto check = [](const char* name, int threads) -> absl::Status {
    if (threads >= 0 && threads <= kMax) return absl::OkStatus();
    return errors::InvalidArgument(name, " is ", threads, ", expected 0 to ", kMax);
  };
  const int intra = config.intra_op_parallelism_threads();
  const int inter = config.inter_op_parallelism_threads();
  GRADFLOW_RETURN_IF_ERROR(check("intra_op_parallelism_threads", intra));
  GRADFLOW_RETURN_IF_ERROR(check("inter_op_parallelism_threads", inter));
  if (const int threads = std::max(intra, inter); threads > 0) return threads;
  return std::clamp(tbb::info::default_concurrency(), 1, kMax);
}

absl::Status CheckRunOptions(const RunOptions& options) {
  if (options.trace_level() != RunOptions::NO_TRACE) {
    return errors::Unimplemented("RunOptions.trace_level is ",
                                 static_cast<int>(options.trace_level()),
                                 ", but only NO_TRACE (0) is supported");
  }
  if (options.timeout_in_ms() < 0) {
    return errors::InvalidArgument("RunOptions.timeout_in_ms is ", options.timeout_in_ms(),
                                   ", expected 0 (no limit) or more");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<GraphRunner>> GraphRunner::Make(const SessionOptions& options,
                                                               const Graph& graph) {
  if (!options.target.empty() && options.target != "local") {
    return errors::NotFound("there is no session for the target ", internal::Quoted(options.target),
                            "; expected '' or 'local', which are this process");
  }
  GRADFLOW_ASSIGN_OR_RETURN(const int threads, NumThreads(options.config));
  std::unique_ptr<GraphRunner> runner;
  GRADFLOW_RETURN_IF_ERROR(CallSafely([&] {
    runner.reset(new GraphRunner(threads, graph));
    return absl::OkStatus();
  }));
  return runner;
}

GraphRunner::GraphRunner(int threads, const Graph& graph)
    : graph_(graph), pool_(std::make_shared<PoolAllocator>()), executor_(threads, pool_) {}

absl::Status GraphRunner::Run(const RunOptions& options, const RunRequest& request,
                              std::vector<Tensor>* outputs, RunMetadata* metadata) {
  return CallSafely([&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(CheckRunOptions(options));
    if (metadata != nullptr) metadata->Clear();
    std::shared_ptr<const Plan> plan = plans_.Find(request);
    if (plan == nullptr) {
      GRADFLOW_ASSIGN_OR_RETURN(plan, FindOrMakePlan(request));
    }
    absl::InlinedVector<const Tensor*, 8> feeds;
    feeds.reserve(request.feeds.size());
    for (const auto& feed : request.feeds) feeds.push_back(&feed.second);
    RunLimits limits;
    limits.timeout = std::chrono::milliseconds(options.timeout_in_ms());
    return executor_.Run(*plan, feeds, limits, outputs);
  });
}

absl::StatusOr<std::shared_ptr<const Plan>> GraphRunner::FindOrMakePlan(const RunRequest& request) {
  MutexLock lock(&graph_mutex_);
  // Of several threads that need the same plan at first, one makes it and the others wait for it.
  if (std::shared_ptr<const Plan> plan = plans_.Find(request)) return plan;
  PlanNames names = request.Names();
  GRADFLOW_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, Plan::Make(graph_, names, &kernels_));
  plans_.Insert(std::move(names), plan);
  return plan;
}

void GraphRunner::DropCaches() {
  plans_.Clear();
  pool_->Trim();
}

}  // namespace gradflow
