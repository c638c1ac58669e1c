#include "tensorflow/core/public/session.h"

#include <memory>

#include "gradflow/runtime/session/session.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace {

class LocalSession final : public Session {
 public:
  explicit LocalSession(std::unique_ptr<gradflow::Session> session)
      : session_(std::move(session)) {}

  Status Create(const GraphDef& graph) override { return session_->Create(graph); }
  Status Extend(const GraphDef& graph) override { return session_->Extend(graph); }
  Status Run(const std::vector<std::pair<std::string, Tensor>>& inputs,
             const std::vector<std::string>& output_tensor_names,
             const std::vector<std::string>& target_node_names,
             std::vector<Tensor>* outputs) override {
    return session_->Run(inputs, output_tensor_names, target_node_names, outputs);
  }
  Status Run(const RunOptions& run_options,
             const std::vector<std::pair<std::string, Tensor>>& inputs,
             const std::vector<std::string>& output_tensor_names,
             const std::vector<std::string>& target_node_names, std::vector<Tensor>* outputs,
             RunMetadata* run_metadata) override {
    return session_->Run(run_options, inputs, output_tensor_names, target_node_names, outputs,
                         run_metadata);
  }
  Status MakeCallable(const CallableOptions& options, CallableHandle* out_handle) override {
    return session_->MakeCallable(options, out_handle);
  }
  Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feed_tensors,
                     std::vector<Tensor>* fetch_tensors, RunMetadata* run_metadata) override {
    return session_->RunCallable(handle, feed_tensors, fetch_tensors, run_metadata);
  }
  Status ReleaseCallable(CallableHandle handle) override {
    return session_->ReleaseCallable(handle);
  }
  Status Close() override { return session_->Close(); }

 private:
  const std::unique_ptr<gradflow::Session> session_;
};

Status NotOfThisSession() { return errors::Unimplemented("this session does not have this"); }

}  // namespace

Status Session::Run(const RunOptions&, const std::vector<std::pair<std::string, Tensor>>&,
                    const std::vector<std::string>&, const std::vector<std::string>&,
                    std::vector<Tensor>*, RunMetadata*) {
  return NotOfThisSession();
}
Status Session::MakeCallable(const CallableOptions&, CallableHandle*) { return NotOfThisSession(); }
Status Session::RunCallable(CallableHandle, const std::vector<Tensor>&, std::vector<Tensor>*,
                            RunMetadata*) {
  return NotOfThisSession();
}
Status Session::ReleaseCallable(CallableHandle) { return NotOfThisSession(); }

Status NewSession(const SessionOptions& options, Session** out_session) {
  *out_session = nullptr;
  absl::StatusOr<std::unique_ptr<gradflow::Session>> session = gradflow::Session::Make(options);
  if (!session.ok()) return session.status();
  *out_session = new LocalSession(*std::move(session));
  return absl::OkStatus();
}

Session* NewSession(const SessionOptions& options) {
  Session* session;
  if (const Status status = NewSession(options, &session); !status.ok()) LOG(ERROR) << status;
  return session;
}

}  // namespace tensorflow
