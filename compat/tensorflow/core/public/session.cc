#include "tensorflow/core/public/session.h"

#include "gradflow/runtime/session/session.h"
#include "tensorflow/core/framework/device_base.h"

namespace tensorflow::compat_internal {

struct LocalSessionCalls::Impl {
  std::unique_ptr<gradflow::Session> session;
};

LocalSessionCalls::LocalSessionCalls(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LocalSessionCalls::~LocalSessionCalls() = default;

absl::StatusOr<std::unique_ptr<LocalSessionCalls>> LocalSessionCalls::Make(
    const SessionOptions& options) {
  absl::StatusOr<std::unique_ptr<gradflow::Session>> session = gradflow::Session::Make(options);
  if (!session.ok()) return session.status();
  return std::unique_ptr<LocalSessionCalls>(
      new LocalSessionCalls(std::make_unique<Impl>(Impl{*std::move(session)})));
}

std::unique_ptr<LocalSessionCalls> LocalSessionCalls::Wrap(
    std::unique_ptr<gradflow::Session> session) {
  return std::unique_ptr<LocalSessionCalls>(
      new LocalSessionCalls(std::make_unique<Impl>(Impl{std::move(session)})));
}

gradflow::Session* LocalSessionCalls::session() const { return impl_->session.get(); }

absl::Status LocalSessionCalls::Create(const GraphDef& graph) {
  return impl_->session->Create(graph);
}

absl::Status LocalSessionCalls::Extend(const GraphDef& graph) {
  return impl_->session->Extend(graph);
}

absl::Status LocalSessionCalls::Run(const std::vector<std::pair<std::string, Tensor>>& inputs,
                                    const std::vector<std::string>& output_tensor_names,
                                    const std::vector<std::string>& target_node_names,
                                    std::vector<Tensor>* outputs) {
  return impl_->session->Run(inputs, output_tensor_names, target_node_names, outputs);
}

absl::Status LocalSessionCalls::Run(const RunOptions& run_options,
                                    const std::vector<std::pair<std::string, Tensor>>& inputs,
                                    const std::vector<std::string>& output_tensor_names,
                                    const std::vector<std::string>& target_node_names,
                                    std::vector<Tensor>* outputs, RunMetadata* run_metadata) {
  return impl_->session->Run(run_options, inputs, output_tensor_names, target_node_names, outputs,
                             run_metadata);
}

absl::Status LocalSessionCalls::MakeCallable(const CallableOptions& options, int64_t* out_handle) {
  return impl_->session->MakeCallable(options, out_handle);
}

absl::Status LocalSessionCalls::RunCallable(int64_t handle, const std::vector<Tensor>& feed_tensors,
                                            std::vector<Tensor>* fetch_tensors,
                                            RunMetadata* run_metadata) {
  return impl_->session->RunCallable(handle, feed_tensors, fetch_tensors, run_metadata);
}

absl::Status LocalSessionCalls::ReleaseCallable(int64_t handle) {
  return impl_->session->ReleaseCallable(handle);
}

DeviceAttributes LocalSessionCalls::Cpu() {
  return DeviceBase(static_cast<Env*>(nullptr)).attributes();
}

absl::Status LocalSessionCalls::Close() { return impl_->session->Close(); }

}  // namespace tensorflow::compat_internal
