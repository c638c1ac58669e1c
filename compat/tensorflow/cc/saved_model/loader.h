// Loads SavedModels. See gradflow/saved_model/loader.h.
//
// Variables are not frozen unless SessionOptions::freeze_variables asks for it, because programs
// may write variables with any node of the session.
#ifndef GRADFLOW_COMPAT_CC_SAVED_MODEL_LOADER_H_
#define GRADFLOW_COMPAT_CC_SAVED_MODEL_LOADER_H_

#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/graph_debug_info.pb.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/public/session.h"

namespace tensorflow {

// The common functions of both bundles.
class SavedModelBundleInterface {
 public:
  virtual ~SavedModelBundleInterface() = default;
  // The bundle owns the session.
  virtual Session* GetSession() const = 0;
  virtual const protobuf::Map<std::string, SignatureDef>& GetSignatures() const = 0;
};

// A loaded graph. Closes its session when it is destroyed.
struct SavedModelBundle : public SavedModelBundleInterface {
  SavedModelBundle() = default;
  ~SavedModelBundle() override {
    if (session != nullptr) session->Close().IgnoreError();
  }

  Session* GetSession() const override { return session.get(); }
  const protobuf::Map<std::string, SignatureDef>& GetSignatures() const override {
    return meta_graph_def.signature_def();
  }

  std::unique_ptr<Session> session;
  MetaGraphDef meta_graph_def;
  std::unique_ptr<GraphDebugInfo> debug_info;
};

// A loaded graph without its messages, except the signatures.
class SavedModelBundleLite : public SavedModelBundleInterface {
 public:
  SavedModelBundleLite() = default;
  SavedModelBundleLite(std::unique_ptr<Session> session,
                       protobuf::Map<std::string, SignatureDef> signatures)
      : session_(std::move(session)), signatures_(std::move(signatures)) {}
  SavedModelBundleLite(SavedModelBundleLite&&) = default;
  SavedModelBundleLite& operator=(SavedModelBundleLite&&) = default;
  ~SavedModelBundleLite() override {
    if (session_ != nullptr) session_->Close().IgnoreError();
  }

  Session* GetSession() const override { return session_.get(); }
  const protobuf::Map<std::string, SignatureDef>& GetSignatures() const override {
    return signatures_;
  }

 private:
  std::unique_ptr<Session> session_;
  protobuf::Map<std::string, SignatureDef> signatures_;
};

namespace compat_internal {

// Loads a model. `debug_info` may be null.
absl::StatusOr<std::unique_ptr<LocalSessionCalls>> LoadModel(
    const SessionOptions& session_options, const RunOptions& run_options,
    const std::string& export_dir, const std::unordered_set<std::string>& tags, bool keeps_graph,
    MetaGraphDef* meta_graph, std::unique_ptr<GraphDebugInfo>* debug_info);
absl::Status RestoreModel(const RunOptions& run_options, const MetaGraphDef& meta_graph,
                          const std::string& export_dir, LocalSessionCalls* session);
bool HasSavedModel(const std::string& export_dir);

// The session of SavedModelBundleLite. It only runs its graph: Create() and Extend() return
// UNIMPLEMENTED, and a run that asks for partition graphs returns INVALID_ARGUMENT.
class LiteSession final : public Session {
 public:
  explicit LiteSession(std::unique_ptr<LocalSessionCalls> session) : session_(std::move(session)) {}

  using Session::Close;
  using Session::Create;
  using Session::Extend;
  Status Create(const GraphDef&) override { return OnlyRuns(); }
  Status Extend(const GraphDef&) override { return OnlyRuns(); }
  Status Run(const std::vector<std::pair<std::string, Tensor>>& inputs,
             const std::vector<std::string>& output_tensor_names,
             const std::vector<std::string>& target_node_names,
             std::vector<Tensor>* outputs) override {
    return session_.Run(inputs, output_tensor_names, target_node_names, outputs);
  }
  Status Run(const RunOptions& run_options,
             const std::vector<std::pair<std::string, Tensor>>& inputs,
             const std::vector<std::string>& output_tensor_names,
             const std::vector<std::string>& target_node_names, std::vector<Tensor>* outputs,
             RunMetadata* run_metadata) override {
    const Status status = CheckOptions(run_options);
    if (!status.ok()) return status;
    return session_.Run(run_options, inputs, output_tensor_names, target_node_names, outputs,
                        run_metadata);
  }
  Status Run(const RunOptions& run_options,
             const std::vector<std::pair<std::string, Tensor>>& inputs,
             const std::vector<std::string>& output_tensor_names,
             const std::vector<std::string>& target_node_names, std::vector<Tensor>* outputs,
             RunMetadata* run_metadata, const thread::ThreadPoolOptions& threads) override {
    const Status status = CheckOptions(run_options);
    if (!status.ok()) return status;
    return session_.Run(run_options, inputs, output_tensor_names, target_node_names, outputs,
                        run_metadata, threads);
  }
  Status MakeCallable(const CallableOptions& options, CallableHandle* out_handle) override {
    const Status status = CheckOptions(options.run_options());
    return status.ok() ? session_.MakeCallable(options, out_handle) : status;
  }
  Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feed_tensors,
                     std::vector<Tensor>* fetch_tensors, RunMetadata* run_metadata) override {
    return session_.RunCallable(handle, feed_tensors, fetch_tensors, run_metadata);
  }
  Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feed_tensors,
                     std::vector<Tensor>* fetch_tensors, RunMetadata* run_metadata,
                     const thread::ThreadPoolOptions& threads) override {
    return session_.RunCallable(handle, feed_tensors, fetch_tensors, run_metadata, threads);
  }
  Status ReleaseCallable(CallableHandle handle) override {
    return session_.ReleaseCallable(handle);
  }
  Status ListDevices(std::vector<DeviceAttributes>* devices) override {
    return session_.ListDevices(devices);
  }
  Status Close() override { return session_.Close(); }

 private:
  static Status OnlyRuns() {
    return errors::Unimplemented("the session of a SavedModelBundleLite only runs its graph");
  }
  static Status CheckOptions(const RunOptions& run_options) {
    if (!run_options.output_partition_graphs()) return absl::OkStatus();
    return errors::InvalidArgument(
        "a SavedModelBundleLite does not support RunOptions.output_partition_graphs");
  }

  LocalSession session_;
};
// Counts a model that is read, and notes its fingerprint, for tensorflow/cc/saved_model/metrics.h.
absl::Status CountRead(const std::string& export_dir, absl::string_view api_label);

}  // namespace compat_internal

// Restores the variables and runs the node that initializes the model.
inline Status RestoreSession(const RunOptions& run_options, const MetaGraphDef& meta_graph,
                             const std::string& export_dir, std::unique_ptr<Session>* session) {
  auto* const local = dynamic_cast<compat_internal::LocalSession*>(session->get());
  if (local == nullptr)
    return errors::Unimplemented("RestoreSession needs a session of NewSession");
  return compat_internal::RestoreModel(run_options, meta_graph, export_dir, local->calls());
}

// Makes a session with the graph.
inline Status LoadMetagraphIntoSession(const SessionOptions& session_options,
                                       const MetaGraphDef& meta_graph,
                                       std::unique_ptr<Session>* session) {
  SessionOptions options = session_options;
  options.allow_missing_ops = true;
  Session* made = nullptr;
  const Status status = NewSession(options, &made);
  if (!status.ok()) return status;
  session->reset(made);
  return (*session)->Create(meta_graph.graph_def());
}

inline Status LoadSavedModel(const SessionOptions& session_options, const RunOptions& run_options,
                             const std::string& export_dir,
                             const std::unordered_set<std::string>& tags,
                             SavedModelBundle* bundle) {
  auto session = compat_internal::LoadModel(session_options, run_options, export_dir, tags,
                                            /*keeps_graph=*/true, &bundle->meta_graph_def,
                                            &bundle->debug_info);
  if (!session.ok()) return session.status();
  bundle->session = std::make_unique<compat_internal::LocalSession>(*std::move(session));
  return absl::OkStatus();
}
inline Status LoadSavedModel(const SessionOptions& session_options, const RunOptions& run_options,
                             const std::string& export_dir,
                             const std::unordered_set<std::string>& tags,
                             SavedModelBundleLite* bundle) {
  MetaGraphDef meta_graph;
  auto session = compat_internal::LoadModel(session_options, run_options, export_dir, tags,
                                            /*keeps_graph=*/false, &meta_graph, nullptr);
  if (!session.ok()) return session.status();
  *bundle =
      SavedModelBundleLite(std::make_unique<compat_internal::LiteSession>(*std::move(session)),
                           std::move(*meta_graph.mutable_signature_def()));
  return absl::OkStatus();
}

// Returns true if the folder has a SavedModel.
inline bool MaybeSavedModelDirectory(const std::string& export_dir) {
  return compat_internal::HasSavedModel(export_dir);
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CC_SAVED_MODEL_LOADER_H_
