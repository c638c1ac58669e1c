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
#include <string>

namespace gradflow {

// How a session uses the machine.
//
// A session has one set of threads, for nodes beside each other and for the loops inside a kernel
// alike, so that the two never add up to more than the machine has. Its size is the larger of the
// two numbers below; if both are 0, as they are at first, it is the number of cores. The thread
// that calls Run is one of them: with 1, a run takes place on the calling thread alone and no
// thread is ever started. Several threads that call Run at once each bring themselves.
class ConfigProto {
 public:
  // The most that a session can be asked for. A negative or larger number is INVALID_ARGUMENT when
  // the session is made.
  static constexpr int kMaxThreads = 1024;

  int32_t intra_op_parallelism_threads() const { return intra_op_; }
  void set_intra_op_parallelism_threads(int32_t threads) { intra_op_ = threads; }
  int32_t inter_op_parallelism_threads() const { return inter_op_; }
  void set_inter_op_parallelism_threads(int32_t threads) { inter_op_ = threads; }

 private:
  int32_t intra_op_ = 0;
  int32_t inter_op_ = 0;
};

struct SessionOptions {
  // Where graphs run: "" or "local", which both mean this process. Anything else is NOT_FOUND when
  // the session is made.
  std::string target;
  ConfigProto config;
};

// How one run goes.
class RunOptions {
 public:
  enum TraceLevel {
    NO_TRACE = 0,
    SOFTWARE_TRACE = 1,
    HARDWARE_TRACE = 2,
    FULL_TRACE = 3,
  };

  // Only NO_TRACE for now: a run with any other level is UNIMPLEMENTED.
  TraceLevel trace_level() const { return trace_level_; }
  void set_trace_level(TraceLevel level) { trace_level_ = level; }

  // Milliseconds after which the run ends with DEADLINE_EXCEEDED; 0 for no limit, negative is
  // INVALID_ARGUMENT. The time is looked at before each node, so a run lasts until the kernels that
  // run then are done.
  int64_t timeout_in_ms() const { return timeout_in_ms_; }
  void set_timeout_in_ms(int64_t milliseconds) { timeout_in_ms_ = milliseconds; }

 private:
  TraceLevel trace_level_ = NO_TRACE;
  int64_t timeout_in_ms_ = 0;
};

// What a run reports beside its outputs. It is empty for as long as RunOptions has no trace that a
// session accepts.
class RunMetadata {
 public:
  void Clear() {}
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_OPTIONS_H_
