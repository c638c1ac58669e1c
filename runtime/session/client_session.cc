#include "gradflow/runtime/session/client_session.h"

#include <utility>

#include "gradflow/core/call_safely.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/node.h"
#include "gradflow/runtime/session/graph_runner.h"
#include "gradflow/runtime/session/options.h"

namespace gradflow {
namespace {

SessionOptions OptionsForTarget(const std::string& target) {
  SessionOptions options;
  options.target = target;
  return options;
}

}  // namespace

struct ClientSession::Impl {
  Impl(const Scope& s, const SessionOptions& options)
      : scope(s), graph(s.graph_as_shared_ptr()), runner(GraphRunner::Make(options, *graph)) {}

  // Returns INVALID_ARGUMENT unless `node` belongs to this graph. `role` is "feed", "fetch" or
  // "target".
  absl::Status CheckNode(absl::string_view role, const Node* node) const {
    if (node == nullptr) {
      return errors::InvalidArgument("a ", role, " is empty: it names no node");
    }
    if (&node->graph() != graph.get()) {
      return errors::InvalidArgument(role, " '", node->name(), "' belongs to another graph");
    }
    return absl::OkStatus();
  }

  // CheckNode() for an output. The run rejects indexes that are too large.
  absl::Status CheckOutput(absl::string_view role, const Output& output) const {
    GRADFLOW_RETURN_IF_ERROR(CheckNode(role, output.node()));
    if (output.index() >= 0) return absl::OkStatus();
    return errors::InvalidArgument(role, " '", output.node()->name(), "' is given as its output ",
                                   output.index());
  }

  absl::Status Run(const RunOptions& options, const FeedType& inputs,
                   const std::vector<Output>& fetch_outputs,
                   const std::vector<Operation>& run_outputs, std::vector<Tensor>* outputs,
                   RunMetadata* metadata, const CancellationToken* token);

  const Scope scope;
  const std::shared_ptr<Graph> graph;
  // The runner, or the error of the options.
  const absl::StatusOr<std::unique_ptr<GraphRunner>> runner;
};

absl::Status ClientSession::Impl::Run(const RunOptions& options, const FeedType& inputs,
                                      const std::vector<Output>& fetch_outputs,
                                      const std::vector<Operation>& run_outputs,
                                      std::vector<Tensor>* outputs, RunMetadata* metadata,
                                      const CancellationToken* token) {
  GRADFLOW_RETURN_IF_ERROR(runner.status());
  GRADFLOW_RETURN_IF_ERROR(scope.status());
  std::vector<std::pair<std::string, Tensor>> feeds;
  feeds.reserve(inputs.size());
  for (const auto& [output, value] : inputs) {
    GRADFLOW_RETURN_IF_ERROR(CheckOutput("feed", output));
    if (!value.status.ok()) {
      return errors::Prefix(absl::StrCat("feed '", output.name(), "': "), value.status);
    }
    feeds.emplace_back(output.name(), value.tensor);
  }
  std::vector<std::string> fetches;
  fetches.reserve(fetch_outputs.size());
  for (const Output& output : fetch_outputs) {
    GRADFLOW_RETURN_IF_ERROR(CheckOutput("fetch", output));
    fetches.push_back(output.name());
  }
  std::vector<std::string> targets;
  targets.reserve(run_outputs.size());
  for (const Operation& operation : run_outputs) {
    GRADFLOW_RETURN_IF_ERROR(CheckNode("target", operation.node()));
    targets.push_back(operation.node()->name());
  }
  return (*runner)->Run(options, {feeds, fetches, targets}, outputs, metadata, token);
}

ClientSession::ClientSession(const Scope& scope) : ClientSession(scope, SessionOptions()) {}
ClientSession::ClientSession(const Scope& scope, const std::string& target)
    : ClientSession(scope, OptionsForTarget(target)) {}
ClientSession::ClientSession(const Scope& scope, const SessionOptions& session_options)
    : impl_(std::make_unique<Impl>(scope, session_options)) {}
ClientSession::~ClientSession() = default;

absl::Status ClientSession::Run(const std::vector<Output>& fetch_outputs,
                                std::vector<Tensor>* outputs) const {
  return Run(FeedType(), fetch_outputs, {}, outputs);
}

absl::Status ClientSession::Run(const FeedType& inputs, const std::vector<Output>& fetch_outputs,
                                std::vector<Tensor>* outputs) const {
  return Run(inputs, fetch_outputs, {}, outputs);
}

absl::Status ClientSession::Run(const FeedType& inputs, const std::vector<Output>& fetch_outputs,
                                const std::vector<Operation>& run_outputs,
                                std::vector<Tensor>* outputs) const {
  return Run(RunOptions::default_instance(), inputs, fetch_outputs, run_outputs, outputs, nullptr);
}

absl::Status ClientSession::Run(const RunOptions& run_options, const FeedType& inputs,
                                const std::vector<Output>& fetch_outputs,
                                const std::vector<Operation>& run_outputs,
                                std::vector<Tensor>* outputs, RunMetadata* run_metadata) const {
  return CallSafely([&] {
    return impl_->Run(run_options, inputs, fetch_outputs, run_outputs, outputs, run_metadata,
                      nullptr);
  });
}

absl::Status ClientSession::Run(const RunOptions& run_options, const FeedType& inputs,
                                const std::vector<Output>& fetch_outputs,
                                const std::vector<Operation>& run_outputs,
                                std::vector<Tensor>* outputs, RunMetadata* run_metadata,
                                const CancellationToken& cancellation_token) const {
  return CallSafely([&] {
    return impl_->Run(run_options, inputs, fetch_outputs, run_outputs, outputs, run_metadata,
                      &cancellation_token);
  });
}

absl::Status ClientSession::MakeCallable(const CallableOptions& options,
                                         CallableHandle* out_handle) const {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(out_handle, "MakeCallable", "out_handle"));
  GRADFLOW_RETURN_IF_ERROR(impl_->runner.status());
  GRADFLOW_RETURN_IF_ERROR(impl_->scope.status());
  return (*impl_->runner)->MakeCallable(options, out_handle);
}

absl::Status ClientSession::RunCallable(CallableHandle handle,
                                        const std::vector<Tensor>& feed_tensors,
                                        std::vector<Tensor>* fetch_tensors,
                                        RunMetadata* run_metadata) const {
  GRADFLOW_RETURN_IF_ERROR(impl_->runner.status());
  return (*impl_->runner)->RunCallable(handle, feed_tensors, fetch_tensors, run_metadata);
}

absl::Status ClientSession::RunCallable(CallableHandle handle,
                                        const std::vector<Tensor>& feed_tensors,
                                        std::vector<Tensor>* fetch_tensors,
                                        RunMetadata* run_metadata,
                                        const CancellationToken& cancellation_token) const {
  GRADFLOW_RETURN_IF_ERROR(impl_->runner.status());
  return (*impl_->runner)
      ->RunCallable(handle, feed_tensors, fetch_tensors, run_metadata, &cancellation_token);
}

absl::Status ClientSession::ReleaseCallable(CallableHandle handle) const {
  GRADFLOW_RETURN_IF_ERROR(impl_->runner.status());
  return (*impl_->runner)->ReleaseCallable(handle);
}

ResourceManager* ClientSession::resources() const {
  return impl_->runner.ok() ? (*impl_->runner)->resources() : nullptr;
}

PoolAllocator::Stats ClientSession::MemoryStats() const {
  return impl_->runner.ok() ? (*impl_->runner)->pool()->GetStats() : PoolAllocator::Stats();
}

void ClientSession::ResetPeakMemory() {
  if (impl_->runner.ok()) (*impl_->runner)->pool()->ResetPeak();
}

void ClientSession::Trim() {
  if (impl_->runner.ok()) (*impl_->runner)->Trim();
}

}  // namespace gradflow
