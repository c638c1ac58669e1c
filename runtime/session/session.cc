#include "gradflow/runtime/session/session.h"

#include <atomic>
#include <utility>

#include "gradflow/core/call_safely.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/tensor_id.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/graph_runner.h"

namespace gradflow {
namespace {

// A session in this process.
class LocalSession final : public Session {
 public:
  explicit LocalSession(const Registry& registry) : graph_(registry) {}

  absl::Status Init(const SessionOptions& options) {
    import_options_.limits = options.graph_limits;
    import_options_.allow_missing_ops = options.allow_missing_ops;
    import_options_.require_kernels = !options.allow_missing_ops;
    GRADFLOW_ASSIGN_OR_RETURN(runner_, GraphRunner::Make(options, graph_));
    return absl::OkStatus();
  }

  absl::Status Create(const GraphDef& graph) override { return Import(graph, /*is_new=*/true); }
  absl::Status Create(GraphDef&& graph) override {
    return Import(std::move(graph), /*is_new=*/true);
  }
  absl::Status Extend(const GraphDef& graph) override { return Import(graph, /*is_new=*/false); }
  absl::Status Extend(GraphDef&& graph) override {
    return Import(std::move(graph), /*is_new=*/false);
  }

  absl::Status Run(const std::vector<std::pair<std::string, Tensor>>& inputs,
                   const std::vector<std::string>& output_tensor_names,
                   const std::vector<std::string>& target_node_names,
                   std::vector<Tensor>* outputs) override {
    return Run(RunOptions::default_instance(), inputs, output_tensor_names, target_node_names,
               outputs, nullptr);
  }

  absl::Status Run(const RunOptions& run_options,
                   const std::vector<std::pair<std::string, Tensor>>& inputs,
                   const std::vector<std::string>& output_tensor_names,
                   const std::vector<std::string>& target_node_names, std::vector<Tensor>* outputs,
                   RunMetadata* run_metadata) override {
    GRADFLOW_RETURN_IF_ERROR(CheckHasGraph());
    return runner_->Run(run_options, {inputs, output_tensor_names, target_node_names}, outputs,
                        run_metadata);
  }

  absl::Status Run(const RunOptions& run_options,
                   const std::vector<std::pair<std::string, Tensor>>& inputs,
                   const std::vector<std::string>& output_tensor_names,
                   const std::vector<std::string>& target_node_names, std::vector<Tensor>* outputs,
                   RunMetadata* run_metadata,
                   const CancellationToken& cancellation_token) override {
    GRADFLOW_RETURN_IF_ERROR(CheckHasGraph());
    return runner_->Run(run_options, {inputs, output_tensor_names, target_node_names}, outputs,
                        run_metadata, &cancellation_token);
  }

  absl::Status MakeCallable(const CallableOptions& options, CallableHandle* out_handle) override {
    GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(out_handle, "MakeCallable", "out_handle"));
    GRADFLOW_RETURN_IF_ERROR(CheckHasGraph());
    return runner_->MakeCallable(options, out_handle);
  }
  absl::Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feed_tensors,
                           std::vector<Tensor>* fetch_tensors, RunMetadata* run_metadata) override {
    GRADFLOW_RETURN_IF_ERROR(CheckOpen());
    return runner_->RunCallable(handle, feed_tensors, fetch_tensors, run_metadata);
  }
  absl::Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feed_tensors,
                           std::vector<Tensor>* fetch_tensors, RunMetadata* run_metadata,
                           const CancellationToken& cancellation_token) override {
    GRADFLOW_RETURN_IF_ERROR(CheckOpen());
    return runner_->RunCallable(handle, feed_tensors, fetch_tensors, run_metadata,
                                &cancellation_token);
  }
  absl::Status ReleaseCallable(CallableHandle handle) override {
    GRADFLOW_RETURN_IF_ERROR(CheckOpen());
    return runner_->ReleaseCallable(handle);
  }

  absl::Status Close() override {
    runner_->Close();
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::string>> UnusedOutputs() const override {
    std::vector<std::string> outputs;
    GRADFLOW_RETURN_IF_ERROR(CallSafely([&] {
      MutexLock lock(runner_->graph_mutex());
      outputs = gradflow::UnusedOutputs(graph_);
      return absl::OkStatus();
    }));
    return outputs;
  }

  absl::StatusOr<DataType> OutputType(absl::string_view name) const override {
    DataType type = DT_INVALID;
    GRADFLOW_RETURN_IF_ERROR(CallSafely([&]() -> absl::Status {
      GRADFLOW_ASSIGN_OR_RETURN(const TensorId id, ParseTensorId(name));
      MutexLock lock(runner_->graph_mutex());
      const Node* const node = graph_.FindNode(id.node);
      if (node == nullptr || id.index < 0 || id.index >= node->num_outputs()) {
        return errors::NotFound("the graph has no output ", internal::Quoted(name));
      }
      type = node->output_type(id.index);
      return absl::OkStatus();
    }));
    return type;
  }

  ResourceManager* resources() const override { return runner_->resources(); }
  std::shared_ptr<Allocator> allocator() const override { return runner_->pool(); }

  PoolAllocator::Stats MemoryStats() const override { return runner_->pool()->GetStats(); }
  void ResetPeakMemory() override { runner_->pool()->ResetPeak(); }
  void Trim() override { runner_->Trim(); }

 private:
  absl::Status CheckOpen() const {
    if (!runner_->closed()) return absl::OkStatus();
    return GraphRunner::Closed();
  }

  absl::Status CheckHasGraph() const {
    GRADFLOW_RETURN_IF_ERROR(CheckOpen());
    if (has_graph_.load(std::memory_order_acquire)) return absl::OkStatus();
    return errors::FailedPrecondition("the session has no graph; give it one with Create");
  }

  // Creates or extends the graph. Copies or moves the GraphDef, as ImportGraphDef does.
  template <typename G>
  absl::Status Import(G&& graph, bool is_new) {
    GRADFLOW_RETURN_IF_ERROR(CheckOpen());
    return CallSafely([&]() -> absl::Status {
      MutexLock lock(runner_->graph_mutex());
      if (is_new && has_graph_.load(std::memory_order_relaxed)) {
        return errors::AlreadyExists("the session has a graph; add to it with Extend");
      }
      GRADFLOW_RETURN_IF_ERROR(ImportGraphDef(import_options_, std::forward<G>(graph), &graph_));
      has_graph_.store(true, std::memory_order_release);
      return absl::OkStatus();
    });
  }

  ImportGraphDefOptions import_options_;
  // Changed only under runner_->graph_mutex().
  Graph graph_;
  // Never null after Init.
  std::unique_ptr<GraphRunner> runner_;
  std::atomic<bool> has_graph_{false};
};

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Make(const SessionOptions& options,
                                                       const Registry& registry) {
  std::unique_ptr<LocalSession> session;
  GRADFLOW_RETURN_IF_ERROR(CallSafely([&] {
    session = std::make_unique<LocalSession>(registry);
    return session->Init(options);
  }));
  return session;
}

absl::StatusOr<std::unique_ptr<Session>> Session::Make(const SessionOptions& options) {
  return Make(options, GlobalRegistry());
}

absl::Status NewSession(const SessionOptions& options, Session** out_session) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(out_session, "NewSession", "out_session"));
  GRADFLOW_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Make(options));
  *out_session = session.release();
  return absl::OkStatus();
}

Session* NewSession(const SessionOptions& options) {
  Session* session = nullptr;
  return NewSession(options, &session).ok() ? session : nullptr;
}

}  // namespace gradflow
