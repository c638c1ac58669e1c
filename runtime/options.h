// What a session and a run can be told, with the names that TensorFlow's protobuf classes have.
//
//   SessionOptions options;
//   options.config.set_intra_op_parallelism_threads(4);
//   std::unique_ptr<Session> session(NewSession(options));
//
// These are plain values, not messages. What they cannot say yet has no accessor, and what they can
// say is either done or refused with an error: nothing is ignored.
#ifndef GRADFLOW_RUNTIME_OPTIONS_H_
#define GRADFLOW_RUNTIME_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gradflow/graph/import.h"
#include "gradflow/runtime/cancellation.h"

#pragma GCC visibility push(default)
namespace gradflow {

class StepStats;

// How a session optimises the graphs that it runs. Whatever is said here, a run gives the same
// values to the bit, and its errors are among those that it could end with otherwise.
class OptimizerOptions {
 public:
  // As TensorFlow's.
  enum Level : int {
    // Nodes that compute the same from the same inputs run once, and nodes of constants run when
    // a plan is made.
    L1 = 0,
    // Every node that a run needs runs.
    L0 = -1,
  };

  // Whether plans are made smaller: all levels but L0.
  Level opt_level() const { return level_; }
  void set_opt_level(Level level) { level_ = level; }
  // The most bytes of tensors that come from running nodes of constants beforehand, for each list
  // of feeds, fetches and targets that is run; 0 for 10 MiB, negative is INVALID_ARGUMENT when the
  // session is made. The session keeps as many of the latest, so that other lists need not run
  // those nodes again.
  int64_t max_folded_constant_in_bytes() const { return max_folded_bytes_; }
  void set_max_folded_constant_in_bytes(int64_t bytes) { max_folded_bytes_ = bytes; }

 private:
  Level level_ = L1;
  int64_t max_folded_bytes_ = 0;
};

// As TensorFlow's, of which the optimizer's options are left.
class GraphOptions {
 public:
  // What plans are made smaller by.
  const OptimizerOptions& optimizer_options() const { return optimizer_; }
  OptimizerOptions* mutable_optimizer_options() { return &optimizer_; }

 private:
  OptimizerOptions optimizer_;
};

// How a session uses the machine.
//
// A session has one set of threads, for nodes beside each other and for the loops inside a kernel
// alike, so that the two never add up to more than the machine has. Its size is the larger of the
// two numbers below, either of which is the number of cores if it is 0, as it is at first. The
// thread that calls Run is one of them: with 1 and 1, a run takes place on the calling thread alone
// and no thread is ever started. Several threads that call Run at once each bring themselves.
class ConfigProto {
 public:
  // The most that a session can be asked for. A negative or larger number is INVALID_ARGUMENT when
  // the session is made.
  static constexpr int kMaxThreads = 1024;

  // The most threads that the loops of one kernel run on.
  int32_t intra_op_parallelism_threads() const { return intra_op_; }
  void set_intra_op_parallelism_threads(int32_t threads) { intra_op_ = threads; }
  // The most nodes of one run that run at once.
  int32_t inter_op_parallelism_threads() const { return inter_op_; }
  void set_inter_op_parallelism_threads(int32_t threads) { inter_op_ = threads; }

  // How plans are made.
  const GraphOptions& graph_options() const { return graph_options_; }
  GraphOptions* mutable_graph_options() { return &graph_options_; }

  // ---- Memory. TensorFlow has no such options for the CPU ----

  // The most bytes of tensors that the session's runs may have at once, those among them that have
  // been fetched and are still held, as the pool rounds them up; 0 for no limit. A node that would
  // need more fails with RESOURCE_EXHAUSTED; the session stays good. Constants and fed tensors do
  // not count.
  int64_t tensor_memory_limit_bytes() const { return tensor_memory_limit_; }
  void set_tensor_memory_limit_bytes(int64_t bytes) { tensor_memory_limit_ = bytes; }
  // About how much memory of dropped tensors the session keeps for the next; -1 for a quarter of
  // the machine's. Session::Trim gives it back.
  int64_t pool_limit_bytes() const { return pool_limit_; }
  void set_pool_limit_bytes(int64_t bytes) { pool_limit_ = bytes; }

 private:
  int32_t intra_op_ = 0;
  int32_t inter_op_ = 0;
  int64_t tensor_memory_limit_ = 0;
  int64_t pool_limit_ = -1;
  GraphOptions graph_options_;
};

struct SessionOptions {
  // Where graphs run: "" or "local", which both mean this process. Anything else is NOT_FOUND when
  // the session is made.
  std::string target;
  ConfigProto config;
  // How large the graphs of Session::Create and Extend may be. TensorFlow has no such option.
  GraphLimits graph_limits;
};

// How one run goes.
class RunOptions {
 public:
  // As TensorFlow's.
  enum TraceLevel : int {
    NO_TRACE = 0,
    SOFTWARE_TRACE = 1,
    HARDWARE_TRACE = 2,
    FULL_TRACE = 3,
  };

  // With any level but NO_TRACE, RunMetadata gets step_stats: all of them record the same.
  TraceLevel trace_level() const { return trace_level_; }
  void set_trace_level(TraceLevel level) { trace_level_ = level; }

  // Milliseconds after which the run ends with DEADLINE_EXCEEDED; 0 for no limit, negative is
  // INVALID_ARGUMENT. Kernels that run then do not finish: a few milliseconds later all is over.
  // The time counts from the call. What the first run of its feeds, fetches and targets takes to
  // prepare is not cut short, nor is waiting for others to prepare theirs: then the run ends, and
  // the next one finds all prepared.
  int64_t timeout_in_ms() const { return timeout_in_ms_; }
  void set_timeout_in_ms(int64_t milliseconds) { timeout_in_ms_ = milliseconds; }

  // Ends the run with CANCELLED, in the same way as a timeout, and also while it prepares (though
  // not while it waits for others to prepare theirs). TensorFlow's RunOptions have none.
  const std::optional<CancellationToken>& cancellation_token() const { return cancellation_token_; }
  void set_cancellation_token(const CancellationToken& token) { cancellation_token_ = token; }

 private:
  TraceLevel trace_level_ = NO_TRACE;
  int64_t timeout_in_ms_ = 0;
  std::optional<CancellationToken> cancellation_token_;
};

// What a run reports beside its outputs.
class RunMetadata {
 public:
  RunMetadata();
  ~RunMetadata();
  // A copy has statistics of its own.
  RunMetadata(const RunMetadata& other);
  RunMetadata& operator=(const RunMetadata& other);
  RunMetadata(RunMetadata&& other) noexcept;
  RunMetadata& operator=(RunMetadata&& other) noexcept;

  // With a trace: which nodes ran when on which thread, and what they made
  // (gradflow/proto/step_stats.pb.h, in TensorFlow's wire format). Also of a run that failed, until
  // then: the node that failed, and those that were stopped, are there without outputs.
  bool has_step_stats() const { return step_stats_ != nullptr; }
  const StepStats& step_stats() const;
  StepStats* mutable_step_stats();
  void Clear();
  // As TensorFlow's RunMetadata, for programs that read its files.
  std::string SerializeAsString() const;

 private:
  std::unique_ptr<StepStats> step_stats_;
};

// What a callable runs, for Session::MakeCallable: names as for Session::Run.
//
//   CallableOptions options;
//   options.add_feed("x:0");
//   options.add_fetch("y:0");
class CallableOptions {
 public:
  // What is fed, in the order in which RunCallable takes the tensors.
  int feed_size() const { return static_cast<int>(feed_.size()); }
  const std::string& feed(int i) const { return feed_[i]; }
  const std::vector<std::string>& feed() const { return feed_; }
  void add_feed(std::string name) { feed_.push_back(std::move(name)); }

  // What is fetched, in the order in which RunCallable returns it.
  int fetch_size() const { return static_cast<int>(fetch_.size()); }
  const std::string& fetch(int i) const { return fetch_[i]; }
  const std::vector<std::string>& fetch() const { return fetch_; }
  void add_fetch(std::string name) { fetch_.push_back(std::move(name)); }

  // Nodes that run, too.
  int target_size() const { return static_cast<int>(target_.size()); }
  const std::string& target(int i) const { return target_[i]; }
  const std::vector<std::string>& target() const { return target_; }
  void add_target(std::string name) { target_.push_back(std::move(name)); }

  // Of each run. A cancellation token that has been used stops all runs to come.
  const RunOptions& run_options() const { return run_options_; }
  RunOptions* mutable_run_options() { return &run_options_; }

 private:
  std::vector<std::string> feed_;
  std::vector<std::string> fetch_;
  std::vector<std::string> target_;
  RunOptions run_options_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_RUNTIME_OPTIONS_H_
