// ClientSession: runs what a Scope has built, by Outputs instead of names.
//
//   Scope root = Scope::NewRootScope();
//   auto x = ops::Placeholder(root, DT_FLOAT);
//   auto y = ops::Square(root, x);
//   ClientSession session(root);
//   std::vector<Tensor> outputs;
//   absl::Status status = session.Run({{x, {1.f, 2.f}}}, {y}, &outputs);
//
// It runs the scope's graph itself, not a copy, so that nodes that are added later are there in the
// next run. What session.h says of names, errors and fetched tensors holds here, too; Run also
// returns the error of a scope that has failed, and of options that cannot be had.
//
// Thread safety: any number of threads may call Run at once, while no one adds to the scope. The
// graph lives as long as the session. No call may be in progress when the session is destroyed.
#ifndef GRADFLOW_RUNTIME_CLIENT_SESSION_H_
#define GRADFLOW_RUNTIME_CLIENT_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"
#include "gradflow/runtime/options.h"
#include "gradflow/runtime/pool_allocator.h"

#pragma GCC visibility push(default)
namespace gradflow {

class ClientSession {
 public:
  // What to feed: the tensor or value that takes the place of an output.
  using FeedType = std::unordered_map<Output, Input::Initializer, OutputHash>;

  // A session for the graph of the scope. Its error, and that of the options, is what Run returns.
  explicit ClientSession(const Scope& scope);
  ClientSession(const Scope& scope, const std::string& target);
  ClientSession(const Scope& scope, const SessionOptions& session_options);
  ~ClientSession();
  ClientSession(const ClientSession&) = delete;
  ClientSession& operator=(const ClientSession&) = delete;

  // Puts the values of `fetch_outputs`, in order, into *outputs, which may be null.
  absl::Status Run(const std::vector<Output>& fetch_outputs, std::vector<Tensor>* outputs) const;
  // The same with some outputs given.
  absl::Status Run(const FeedType& inputs, const std::vector<Output>& fetch_outputs,
                   std::vector<Tensor>* outputs) const;
  // The same; `run_outputs` run, too.
  absl::Status Run(const FeedType& inputs, const std::vector<Output>& fetch_outputs,
                   const std::vector<Operation>& run_outputs, std::vector<Tensor>* outputs) const;
  // The same with options. `run_metadata` may be null.
  absl::Status Run(const RunOptions& run_options, const FeedType& inputs,
                   const std::vector<Output>& fetch_outputs,
                   const std::vector<Operation>& run_outputs, std::vector<Tensor>* outputs,
                   RunMetadata* run_metadata) const;

  // As Session's. CallableOptions names what Outputs and Operations are: Output::name(). The graph
  // is seen as it was when the callable was made.
  using CallableHandle = int64_t;
  absl::Status MakeCallable(const CallableOptions& options, CallableHandle* out_handle) const;
  absl::Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feed_tensors,
                           std::vector<Tensor>* fetch_tensors, RunMetadata* run_metadata) const;
  absl::Status ReleaseCallable(CallableHandle handle) const;

  // As Session's.
  PoolAllocator::Stats MemoryStats() const;
  void ResetPeakMemory();
  void Trim();

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_RUNTIME_CLIENT_SESSION_H_
