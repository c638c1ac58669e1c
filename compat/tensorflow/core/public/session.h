// Session: runs a GraphDef by the names of its nodes. See gradflow/runtime/session/session.h for
// names, errors, thread safety and ownership of tensors.
#ifndef GRADFLOW_COMPAT_CORE_PUBLIC_SESSION_H_
#define GRADFLOW_COMPAT_CORE_PUBLIC_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/device_attributes.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow {

// The interface of sessions. Programs may derive from it. NewSession returns an implementation by
// gradflow::Session. It is defined in this header alone, as its functions return the Status of the
// program.
class Session {
 public:
  virtual ~Session() = default;
  virtual Status Create(const GraphDef& graph) = 0;
  virtual Status Extend(const GraphDef& graph) = 0;
  virtual Status Run(const std::vector<std::pair<std::string, Tensor>>& inputs,
                     const std::vector<std::string>& output_tensor_names,
                     const std::vector<std::string>& target_node_names,
                     std::vector<Tensor>* outputs) = 0;
  virtual Status Run(const RunOptions&, const std::vector<std::pair<std::string, Tensor>>&,
                     const std::vector<std::string>&, const std::vector<std::string>&,
                     std::vector<Tensor>*, RunMetadata*) {
    return NotOfThisSession();
  }
  using CallableHandle = int64_t;
  virtual Status MakeCallable(const CallableOptions&, CallableHandle*) {
    return NotOfThisSession();
  }
  virtual Status RunCallable(CallableHandle, const std::vector<Tensor>&, std::vector<Tensor>*,
                             RunMetadata*) {
    return NotOfThisSession();
  }
  virtual Status ReleaseCallable(CallableHandle) { return NotOfThisSession(); }
  // Stores the devices of the session.
  virtual Status ListDevices(std::vector<DeviceAttributes>*) { return NotOfThisSession(); }
  virtual Status Close() = 0;

 private:
  static Status NotOfThisSession() {
    return errors::Unimplemented("this session does not have this");
  }
};

namespace compat_internal {

// gradflow::Session, whose header has a NewSession of its own.
class LocalSessionCalls {
 public:
  static absl::StatusOr<std::unique_ptr<LocalSessionCalls>> Make(const SessionOptions& options);
  ~LocalSessionCalls();
  absl::Status Create(const GraphDef& graph);
  absl::Status Extend(const GraphDef& graph);
  absl::Status Run(const std::vector<std::pair<std::string, Tensor>>& inputs,
                   const std::vector<std::string>& output_tensor_names,
                   const std::vector<std::string>& target_node_names, std::vector<Tensor>* outputs);
  absl::Status Run(const RunOptions& run_options,
                   const std::vector<std::pair<std::string, Tensor>>& inputs,
                   const std::vector<std::string>& output_tensor_names,
                   const std::vector<std::string>& target_node_names, std::vector<Tensor>* outputs,
                   RunMetadata* run_metadata);
  absl::Status MakeCallable(const CallableOptions& options, int64_t* out_handle);
  absl::Status RunCallable(int64_t handle, const std::vector<Tensor>& feed_tensors,
                           std::vector<Tensor>* fetch_tensors, RunMetadata* run_metadata);
  absl::Status ReleaseCallable(int64_t handle);
  static DeviceAttributes Cpu();
  absl::Status Close();

 private:
  struct Impl;
  explicit LocalSessionCalls(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

class LocalSession final : public Session {
 public:
  explicit LocalSession(std::unique_ptr<LocalSessionCalls> session)
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
  // The CPU.
  Status ListDevices(std::vector<DeviceAttributes>* devices) override {
    *devices = {LocalSessionCalls::Cpu()};
    return absl::OkStatus();
  }
  Status Close() override { return session_->Close(); }

 private:
  const std::unique_ptr<LocalSessionCalls> session_;
};

}  // namespace compat_internal

// Create a session. The second overload returns null on error.
inline Status NewSession(const SessionOptions& options, Session** out_session) {
  *out_session = nullptr;
  absl::StatusOr<std::unique_ptr<compat_internal::LocalSessionCalls>> session =
      compat_internal::LocalSessionCalls::Make(options);
  if (!session.ok()) return session.status();
  *out_session = new compat_internal::LocalSession(*std::move(session));
  return absl::OkStatus();
}
inline Session* NewSession(const SessionOptions& options) {
  Session* session = nullptr;
  if (const absl::Status status = NewSession(options, &session); !status.ok()) LOG(ERROR) << status;
  return session;
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PUBLIC_SESSION_H_
