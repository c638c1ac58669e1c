// SessionOptions, and the messages that configure sessions and runs.
//
//   SessionOptions options;
//   options.config.set_intra_op_parallelism_threads(4);
//   options.tensor_memory_limit_bytes = int64_t{1} << 30;
//   std::unique_ptr<Session> session(NewSession(options));
//
// ConfigProto, RunOptions, CallableOptions and RunMetadata are messages in TensorFlow's wire format
// (proto/config.proto). Only SessionOptions::fold_batch_norms and integer_inference change
// the values that a run computes. These fields have an effect:
//
//   ConfigProto       intra_op_parallelism_threads, inter_op_parallelism_threads,
//                     operation_timeout_in_ms, and of graph_options.optimizer_options: opt_level,
//                     do_common_subexpression_elimination, do_constant_folding,
//                     max_folded_constant_in_bytes
//   RunOptions        trace_level (all levels but NO_TRACE record the same), timeout_in_ms
//   CallableOptions   feed, fetch, target, run_options
//
// An option that requests an unsupported feature is an error, UNIMPLEMENTED: separate thread pools,
// clusters, cost models, partition graphs, watched tensors, connected tensors. All other options
// concern devices and optimizations that do not exist here, and have no effect.
//
// ConfigProto limits the number of nodes that run concurrently and the number of threads for the
// loops inside a kernel; 0 means the number of cores. The larger of the two numbers limits the
// threads of a run. The thread that calls Run counts. If both numbers are 1, a run uses only the
// calling thread, and no thread is ever started. The other threads belong to oneTBB, and all runs
// of the process share them.
//
// A timeout counts from the call of Run. Kernels that are running when it expires do not finish:
// the run ends a few milliseconds later. The first run with given feeds, fetches and targets makes
// a plan. The timeout does not interrupt making a plan or waiting for another run that makes one;
// the run ends afterwards.
#ifndef GRADFLOW_RUNTIME_SESSION_OPTIONS_H_
#define GRADFLOW_RUNTIME_SESSION_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "gradflow/graph/import.h"
#include "gradflow/io/file_access.h"
#include "gradflow/proto/config.pb.h"
#include "gradflow/runtime/session/cancellation.h"

#pragma GCC visibility push(default)
namespace gradflow {

class Collectives;

struct SessionOptions {
  // The maximum for both numbers of threads. If a number is negative or larger, making the session
  // returns INVALID_ARGUMENT.
  static constexpr int kMaxThreads = 1024;

  // The execution engine: "" or "local", which both mean this process. For any other value, making
  // the session returns NOT_FOUND.
  std::string target;
  ConfigProto config;

  // ---- TensorFlow has no such options ----

  // The limits of the graphs passed to Session::Create and Extend.
  GraphLimits graph_limits;
  // The maximum number of bytes of tensors that the session's runs hold at once, as rounded up by
  // the pool; 0 means seven eighths of the machine's memory. Fetched tensors count while they are
  // alive. Constants and fed tensors do not count. A node that would exceed the limit fails with
  // RESOURCE_EXHAUSTED, and the session remains usable.
  int64_t tensor_memory_limit_bytes = 0;
  // The approximate number of bytes that the session caches when tensors are dropped, and reuses
  // for later tensors; -1 means a quarter of the machine's memory. Session::Trim frees the cache.
  int64_t pool_limit_bytes = -1;
  // Folds batch normalization in inference, including equivalent products and sums with constants,
  // into the constant weights of the preceding convolution. Keeps images between convolutions in
  // oneDNN's blocked layout. Runs are faster. Results differ by rounding errors of sums, within the
  // bound of docs/security.md. Relu and Relu6 after such a convolution turn NaN into 0. Plans do
  // not share folded weights. Has no effect at opt_level L0.
  bool fold_batch_norms = false;
  // Computes with 8-bit integers between the fake-quantization nodes of a graph: convolutions,
  // matrix products and the nodes after them, with constant weights and ranges. Results differ from
  // the float graph by at most one step at each fake-quantization node (docs/quantization.md). Has
  // no effect at opt_level L0.
  bool integer_inference = false;
  // With integer_inference, computes what TensorFlow Lite's converter and its reference kernels
  // compute from the same ranges, byte for byte: fixed-point factors that round halves away from 0
  // (docs/quantization.md). Runs are slower.
  bool tflite_rounding = false;
  // Accepts nodes whose op is not registered or has no kernel. A run that needs such a node returns
  // NOT_FOUND or UNIMPLEMENTED with its name.
  bool allow_missing_ops = false;
  // An option of LoadSavedModel (saved_model/loader.h); sessions ignore it. Freezes the variables
  // that no signature writes: plans use them as constants, so that constants are folded and filters
  // are packed once, and a later write returns FAILED_PRECONDITION. Unless set, models that are
  // loaded for serving (the tag "serve") are frozen.
  std::optional<bool> freeze_variables;
  // The files that ops such as ReadFile and SaveV2 may touch; by default all files that the process
  // may touch. Other accesses return PERMISSION_DENIED. Use FileAccess::None() for untrusted
  // graphs; the command line does so by default. Plugins are responsible for their own ops.
  FileAccess file_access;
  // If true, Print and PrintV2 write control characters to terminals unescaped. By default they
  // escape control characters except line breaks and tabs, because a graph could change the
  // contents of the terminal.
  bool raw_prints = false;
  // Exchanges tensors with the other ranks of a distributed run, for the Collective* ops
  // (docs/distributed.md). Without it, these ops work only in groups of one rank. Several sessions
  // may share it.
  std::shared_ptr<Collectives> collectives;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_RUNTIME_SESSION_OPTIONS_H_
