#include "gradflow/runtime/session/option_checks.h"

#include <cstdint>

#include "absl/strings/string_view.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/node_checks.h"

namespace gradflow::internal {
namespace {

absl::Status CheckThreads(absl::string_view name, int threads) {
  if (threads >= 0 && threads <= SessionOptions::kMaxThreads) return absl::OkStatus();
  return errors::InvalidArgument(name, " is ", threads, ", expected 0 to ",
                                 SessionOptions::kMaxThreads);
}

absl::Status CheckOptimizer(const OptimizerOptions& optimizer) {
  if (optimizer.opt_level() != OptimizerOptions::L1 &&
      optimizer.opt_level() != OptimizerOptions::L0) {
    return errors::InvalidArgument("opt_level is ", static_cast<int>(optimizer.opt_level()),
                                   ", expected -1 (L0) or 0 (L1)");
  }
  if (optimizer.max_folded_constant_in_bytes() >= 0) return absl::OkStatus();
  return errors::InvalidArgument("max_folded_constant_in_bytes is ",
                                 optimizer.max_folded_constant_in_bytes(),
                                 ", expected 0 (the default) or more");
}

// Returns the error for an option that is set. `reason` is a clause, such as
// "graphs are not partitioned".
absl::Status Unsupported(absl::string_view option, absl::string_view reason) {
  return errors::Unimplemented(option, " is set, but ", reason);
}

absl::Status CheckConfig(const ConfigProto& config) {
  if (config.session_inter_op_thread_pool_size() > 0) {
    return Unsupported("ConfigProto.session_inter_op_thread_pool",
                       "a session has one set of threads");
  }
  if (config.cluster_def().job_size() > 0) {
    return Unsupported("ConfigProto.cluster_def", "a session runs in this process only");
  }
  if (config.graph_options().build_cost_model() != 0) {
    return Unsupported("ConfigProto.graph_options.build_cost_model", "there is no cost model");
  }
  if (config.operation_timeout_in_ms() < 0) {
    return errors::InvalidArgument("ConfigProto.operation_timeout_in_ms is ",
                                   config.operation_timeout_in_ms(),
                                   ", expected 0 (no limit) or more");
  }
  GRADFLOW_RETURN_IF_ERROR(
      CheckThreads("intra_op_parallelism_threads", config.intra_op_parallelism_threads()));
  return CheckThreads("inter_op_parallelism_threads", config.inter_op_parallelism_threads());
}

}  // namespace

absl::Status CheckSessionOptions(const SessionOptions& options) {
  if (!options.target.empty() && options.target != "local") {
    return errors::NotFound("there is no session for the target ", Quoted(options.target),
                            "; expected '' or 'local', which are this process");
  }
  GRADFLOW_RETURN_IF_ERROR(CheckConfig(options.config));
  if (options.tensor_memory_limit_bytes < 0) {
    return errors::InvalidArgument("tensor_memory_limit_bytes is ",
                                   options.tensor_memory_limit_bytes,
                                   ", expected 0 (seven eighths of the machine's memory) or more");
  }
  if (options.pool_limit_bytes < -1) {
    return errors::InvalidArgument("pool_limit_bytes is ", options.pool_limit_bytes,
                                   ", expected -1 (a quarter of the memory) or more");
  }
  return CheckOptimizer(options.config.graph_options().optimizer_options());
}

absl::Status CheckRunOptions(const RunOptions& options) {
  if (!RunOptions::TraceLevel_IsValid(options.trace_level())) {
    return errors::InvalidArgument("RunOptions.trace_level is ",
                                   static_cast<int>(options.trace_level()), ", expected 0 to ",
                                   static_cast<int>(RunOptions::TraceLevel_MAX));
  }
  if (options.timeout_in_ms() < 0) {
    return errors::InvalidArgument("RunOptions.timeout_in_ms is ", options.timeout_in_ms(),
                                   ", expected 0 (no limit) or more");
  }
  if (options.inter_op_thread_pool() > 0) {
    return Unsupported("RunOptions.inter_op_thread_pool", "a session has one set of threads");
  }
  if (options.output_partition_graphs()) {
    return Unsupported("RunOptions.output_partition_graphs", "graphs are not partitioned");
  }
  if (options.debug_options().debug_tensor_watch_opts_size() > 0) {
    return Unsupported("RunOptions.debug_options", "tensors cannot be watched");
  }
  return absl::OkStatus();
}

absl::Status CheckCallableOptions(const CallableOptions& options) {
  if (options.tensor_connection_size() > 0) {
    return Unsupported("CallableOptions.tensor_connection",
                       "a callable has no tensors but its feeds and fetches");
  }
  return CheckRunOptions(options.run_options());
}

}  // namespace gradflow::internal
