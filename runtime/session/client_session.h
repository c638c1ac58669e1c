// ClientSession: runs the graph of a Scope. Takes Outputs instead of names.
//
//   Scope root = Scope::NewRootScope();
//   auto x = ops::Placeholder(root, DT_FLOAT);
//   auto y = ops::Square(root, x);
//   ClientSession session(root);
//   std::vector<Tensor> outputs;
//   absl::Status status = session.Run({{x, {1.f, 2.f}}}, {y}, &outputs);
//
// A session runs the scope's graph itself, not a copy, so later runs see nodes that are added. The
// rules of session.h for names, errors and fetched tensors apply. In addition, Run returns the
// error of a failed scope or of unsupported options.
//
// Thread safety: any number of threads may call Run at once, while no thread adds to the scope. The
// graph lives as long as the session. No call may be in progress when the session is destroyed.
#ifndef GRADFLOW_RUNTIME_SESSION_CLIENT_SESSION_H_
#define GRADFLOW_RUNTIME_SESSION_CLIENT_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "gradflow/core/resource_manager.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"
#include "gradflow/runtime/memory/pool_allocator.h"
#include "gradflow/runtime/session/cancellation.h"

#pragma GCC visibility push(default)
namespace gradflow {

// gradflow/runtime/session/options.h defines these.
class CallableOptions;
class RunMetadata;
class RunOptions;
struct SessionOptions;

class ClientSession {
 public:
  // Feeds: the tensor or value that replaces an output.
  using FeedType = std::unordered_map<Output, Input::Initializer, OutputHash>;

  // Makes a session for the graph of the scope. Run returns the error of the scope or of the
  // options.
  explicit ClientSession(const Scope& scope);
  ClientSession(const Scope& scope, const std::string& target);
  ClientSession(const Scope& scope, const SessionOptions& session_options);
  ~ClientSession();
  ClientSession(const ClientSession&) = delete;
  ClientSession& operator=(const ClientSession&) = delete;

  // Stores the values of `fetch_outputs`, in order, in *outputs, which may be null.
  absl::Status Run(const std::vector<Output>& fetch_outputs, std::vector<Tensor>* outputs) const;
  // Overload that feeds the outputs in `inputs`.
  absl::Status Run(const FeedType& inputs, const std::vector<Output>& fetch_outputs,
                   std::vector<Tensor>* outputs) const;
  // Overload that also runs `run_outputs`.
  absl::Status Run(const FeedType& inputs, const std::vector<Output>& fetch_outputs,
                   const std::vector<Operation>& run_outputs, std::vector<Tensor>* outputs) const;
  // Overload with options. `run_metadata` may be null.
  absl::Status Run(const RunOptions& run_options, const FeedType& inputs,
                   const std::vector<Output>& fetch_outputs,
                   const std::vector<Operation>& run_outputs, std::vector<Tensor>* outputs,
                   RunMetadata* run_metadata) const;
  // Overload with a token: cancelling it ends the run. Not in TensorFlow's interface.
  absl::Status Run(const RunOptions& run_options, const FeedType& inputs,
                   const std::vector<Output>& fetch_outputs,
                   const std::vector<Operation>& run_outputs, std::vector<Tensor>* outputs,
                   RunMetadata* run_metadata, const CancellationToken& cancellation_token) const;

  // Same as the methods of Session. CallableOptions names Outputs and Operations by Output::name().
  // A callable does not see nodes that are added after the callable was made.
  using CallableHandle = int64_t;
  absl::Status MakeCallable(const CallableOptions& options, CallableHandle* out_handle) const;
  absl::Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feed_tensors,
                           std::vector<Tensor>* fetch_tensors, RunMetadata* run_metadata) const;
  absl::Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feed_tensors,
                           std::vector<Tensor>* fetch_tensors, RunMetadata* run_metadata,
                           const CancellationToken& cancellation_token) const;
  absl::Status ReleaseCallable(CallableHandle handle) const;

  // See Session. Returns null if an option is wrong.
  ResourceManager* resources() const;
  // See Session.
  PoolAllocator::Stats MemoryStats() const;
  void ResetPeakMemory();
  void Trim();

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_RUNTIME_SESSION_CLIENT_SESSION_H_
