// SessionOptions, and the messages that configure sessions and runs.
//
//   SessionOptions options;
//   options.config.set_intra_op_parallelism_threads(4);
//   options.tensor_memory_limit_bytes = int64_t{1} << 30;
//   std::unique_ptr<Session> session(NewSession(options));
//
// ConfigProto, RunOptions, CallableOptions and RunMetadata are messages in TensorFlow's wire format
// (proto/config.proto). Only SessionOptions::fold_batch_norms changes the values that a run
// computes. These fields have an effect:
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
// A run has at most as many threads as the larger of the two numbers in ConfigProto, for nodes that
// run concurrently and for the loops inside a kernel; 0 stands for the number of cores. The thread
// that calls Run is one of them: with 1 and 1, a run takes place on the calling thread alone, and
// no thread is ever started. The others are oneTBB's, which all runs of the process share.
//
// A timeout counts from the call of Run. Kernels that are running when it expires do not finish:
// the run ends a few milliseconds later. The timeout interrupts neither the making of a plan, for
// the first run of its feeds, fetches and targets, nor the wait for another run that makes one; the
// run ends after it.
#ifndef GRADFLOW_RUNTIME_SESSION_OPTIONS_H_
#define GRADFLOW_RUNTIME_SESSION_OPTIONS_H_

#include <cstdint>
#include <string>

#include "gradflow/graph/import.h"
#include "gradflow/io/file_access.h"
#include "gradflow/proto/config.pb.h"
#include "gradflow/runtime/session/cancellation.h"

#pragma GCC visibility push(default)
namespace gradflow {

struct SessionOptions {
  // The maximum of both numbers of threads. A negative or larger number is INVALID_ARGUMENT when
  // the session is made.
  static constexpr int kMaxThreads = 1024;

  // The execution engine: "" or "local", which both mean this process. Anything else is NOT_FOUND
  // when the session is made.
  std::string target;
  ConfigProto config;

  // ---- TensorFlow has no such options ----

  // The limits of the graphs passed to Session::Create and Extend.
  GraphLimits graph_limits;
  // The maximum number of bytes of tensors that the session's runs hold at once, as the pool rounds
  // them up, including fetched tensors that are still alive; 0 for no limit. A node that would
  // exceed it fails with RESOURCE_EXHAUSTED, and the session remains usable. Constants and fed
  // tensors are not counted.
  int64_t tensor_memory_limit_bytes = 0;
  // The approximate number of bytes of dropped tensors that the session caches for later tensors;
  // -1 for a quarter of the machine's memory. Session::Trim frees them.
  int64_t pool_limit_bytes = -1;
  // Folds batch normalization in inference, also as products and sums with constants, into the
  // constant weights of the convolution before it. Keeps images between convolutions in the layout
  // that oneDNN prefers. Runs are faster. Results differ by rounding errors of sums, within the
  // bound of docs/security.md. Relu and Relu6 behind such a convolution make 0 of NaN. Plans do
  // not share folded weights. Without effect at opt_level L0.
  bool fold_batch_norms = false;
  // The files that ops such as ReadFile and SaveV2 may touch; by default all files that the process
  // may touch. Other accesses are PERMISSION_DENIED. Use FileAccess::None() for untrusted graphs.
  // The command line does so. Plugins are responsible for their own ops.
  FileAccess file_access;
  // Print and PrintV2 write control characters to terminals unescaped. By default they escape all
  // but line breaks and tabs, since a graph could change the contents of the terminal.
  bool raw_prints = false;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_RUNTIME_SESSION_OPTIONS_H_
