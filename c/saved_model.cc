// TF_LoadSessionFromSavedModel.
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "gradflow/c/attributes.h"
#include "gradflow/c/buffer.h"
#include "gradflow/c/session.h"
#include "gradflow/c/status.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/tensor_id.h"
#include "gradflow/proto/config.pb.h"
#include "gradflow/proto/meta_graph.pb.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/saved_model/loader.h"
#include "gradflow/saved_model/reader.h"

namespace gradflow::capi {
namespace {

// A TF_Session with the interface of Session, for RestoreSession(). The graph is there already.
class RunnerSession final : public Session {
 public:
  using Feeds = std::vector<std::pair<std::string, Tensor>>;
  using Names = std::vector<std::string>;

  explicit RunnerSession(TF_Session* session) : session_(*session) {}

  absl::Status Create(const GraphDef&) override { return HasGraph(); }
  absl::Status Create(GraphDef&&) override { return HasGraph(); }
  absl::Status Extend(const GraphDef&) override { return HasGraph(); }
  absl::Status Extend(GraphDef&&) override { return HasGraph(); }

  absl::Status Run(const Feeds& inputs, const Names& fetches, const Names& targets,
                   std::vector<Tensor>* outputs) override {
    return Run(RunOptions(), inputs, fetches, targets, outputs, nullptr);
  }
  absl::Status Run(const RunOptions& options, const Feeds& inputs, const Names& fetches,
                   const Names& targets, std::vector<Tensor>* outputs,
                   RunMetadata* metadata) override {
    return session_.runner->Run(options, {inputs, fetches, targets}, outputs, metadata);
  }
  absl::Status Run(const RunOptions& options, const Feeds& inputs, const Names& fetches,
                   const Names& targets, std::vector<Tensor>* outputs, RunMetadata* metadata,
                   const CancellationToken& token) override {
    return session_.runner->Run(options, {inputs, fetches, targets}, outputs, metadata, &token);
  }
  absl::Status MakeCallable(const CallableOptions& options, CallableHandle* handle) override {
    return session_.runner->MakeCallable(options, handle);
  }
  absl::Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feeds,
                           std::vector<Tensor>* outputs, RunMetadata* metadata) override {
    return session_.runner->RunCallable(handle, feeds, outputs, metadata);
  }
  absl::Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feeds,
                           std::vector<Tensor>* outputs, RunMetadata* metadata,
                           const CancellationToken& token) override {
    return session_.runner->RunCallable(handle, feeds, outputs, metadata, &token);
  }
  absl::Status ReleaseCallable(CallableHandle handle) override {
    return session_.runner->ReleaseCallable(handle);
  }
  absl::Status Close() override {
    session_.runner->Close();
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<std::string>> UnusedOutputs() const override {
    const MutexLock lock(&session_.graph->mutex);
    return gradflow::UnusedOutputs(session_.graph->graph);
  }
  absl::StatusOr<DataType> OutputType(absl::string_view name) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const TensorId id, ParseTensorId(name));
    const MutexLock lock(&session_.graph->mutex);
    const Node* const node = session_.graph->graph.FindNode(id.node);
    if (node == nullptr || id.index < 0 || id.index >= node->num_outputs()) {
      return errors::NotFound("there is no output ", errors::Printable(name));
    }
    return node->output_type(id.index);
  }
  ResourceManager* resources() const override { return session_.runner->resources(); }
  std::shared_ptr<Allocator> allocator() const override { return session_.runner->pool(); }
  PoolAllocator::Stats MemoryStats() const override { return session_.runner->pool()->GetStats(); }
  void ResetPeakMemory() override { session_.runner->pool()->ResetPeak(); }
  void Trim() override { session_.runner->Trim(); }

 private:
  static absl::Status HasGraph() {
    return absl::AlreadyExistsError("the session already has a graph");
  }

  TF_Session& session_;
};

absl::StatusOr<std::unique_ptr<TF_Session>> LoadSession(
    const TF_SessionOptions* session_options, const TF_Buffer* run_options, const char* export_dir,
    const char* const* tags, int num_tags, TF_Graph* graph, TF_Buffer* meta_graph_buffer) {
  GRADFLOW_RETURN_IF_ERROR(CheckArray(tags, num_tags, "tags"));
  RunOptions options;
  GRADFLOW_RETURN_IF_ERROR(ParseMessage(run_options, &options));
  std::unordered_set<std::string> tag_set;
  for (int i = 0; i < num_tags; ++i) tag_set.insert(OrEmpty(tags[i]));
  MetaGraphDef meta_graph;
  GRADFLOW_RETURN_IF_ERROR(
      ReadMetaGraphDefFromSavedModel(OrEmpty(export_dir), tag_set, &meta_graph));
  {
    ImportGraphDefOptions import;
    import.require_kernels = false;
    import.allow_missing_ops = true;
    const GraphChange change(graph);
    if (graph->graph.num_nodes() > 0) return errors::InvalidArgument("Graph is non-empty.");
    GRADFLOW_RETURN_IF_ERROR(ImportGraphDef(import, meta_graph.graph_def(), &graph->graph));
  }
  GRADFLOW_ASSIGN_OR_RETURN(std::unique_ptr<TF_Session> session,
                            TF_Session::Make(graph, session_options));
  RunnerSession runner(session.get());
  GRADFLOW_RETURN_IF_ERROR(RestoreSession(options, meta_graph, OrEmpty(export_dir), &runner));
  if (meta_graph_buffer != nullptr) {
    GRADFLOW_RETURN_IF_ERROR(FillBuffer(meta_graph, meta_graph_buffer));
  }
  return session;
}

}  // namespace
}  // namespace gradflow::capi

TF_Session* TF_LoadSessionFromSavedModel(const TF_SessionOptions* session_options,
                                         const TF_Buffer* run_options, const char* export_dir,
                                         const char* const* tags, int tags_len, TF_Graph* graph,
                                         TF_Buffer* meta_graph_def, TF_Status* status) {
  TF_Session* result = nullptr;
  gradflow::capi::Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(std::unique_ptr<TF_Session> session,
                              gradflow::capi::LoadSession(session_options, run_options, export_dir,
                                                          tags, tags_len, graph, meta_graph_def));
    result = session.release();
    return absl::OkStatus();
  });
  return result;
}
