// Session: runs a GraphDef by node names. See gradflow/runtime/session/session.h for names, errors,
// thread safety and ownership of tensors.
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
#include "tensorflow/core/platform/threadpool_options.h"
#include "tensorflow/core/public/session_options.h"

namespace gradflow {
class Session;
}  // namespace gradflow

namespace tensorflow {

class DeviceMgr;

// The interface of sessions. Programs may derive from it. NewSession returns an implementation
// based on gradflow::Session. It is only defined in this header, because its functions return the
// program's Status. Functions that a class does not override return UNIMPLEMENTED.
class Session {
 public:
  using CallableHandle = int64_t;
  using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

  Session() = default;
  virtual ~Session() = default;

  virtual Status Create(const GraphDef& graph) = 0;
  virtual Status Create(GraphDef&& graph) { return Create(graph); }
  virtual Status Create(const RunOptions&, const GraphDef&) {
    return Lacks("Create by RunOptions");
  }
  virtual Status Create(const RunOptions& run_options, GraphDef&& graph) {
    return Create(run_options, graph);
  }
  virtual Status Extend(const GraphDef& graph) = 0;
  virtual Status Extend(GraphDef&& graph) { return Extend(graph); }
  virtual Status Extend(const RunOptions&, const GraphDef&) {
    return Lacks("Extend by RunOptions");
  }
  virtual Status Extend(const RunOptions& run_options, GraphDef&& graph) {
    return Extend(run_options, graph);
  }
  virtual Status Run(const NamedTensors& inputs,
                     const std::vector<std::string>& output_tensor_names,
                     const std::vector<std::string>& target_node_names,
                     std::vector<Tensor>* outputs) = 0;
  virtual Status Run(const RunOptions&, const NamedTensors&, const std::vector<std::string>&,
                     const std::vector<std::string>&, std::vector<Tensor>*, RunMetadata*) {
    return Lacks("Run with RunOptions");
  }
  virtual Status Run(const RunOptions&, const NamedTensors&, const std::vector<std::string>&,
                     const std::vector<std::string>&, std::vector<Tensor>*, RunMetadata*,
                     const thread::ThreadPoolOptions&) {
    return Lacks("Run with ThreadPoolOptions");
  }
  virtual Status PRunSetup(const std::vector<std::string>& /*input_names*/,
                           const std::vector<std::string>& /*output_names*/,
                           const std::vector<std::string>& /*target_nodes*/,
                           std::string* /*handle*/) {
    return Lacks("partial run");
  }
  virtual Status PRun(const std::string& /*handle*/, const NamedTensors& /*inputs*/,
                      const std::vector<std::string>& /*output_names*/,
                      std::vector<Tensor>* /*outputs*/) {
    return Lacks("partial run");
  }
  virtual Status MakeCallable(const CallableOptions&, CallableHandle*) {
    return Lacks("MakeCallable");
  }
  virtual Status RunCallable(CallableHandle, const std::vector<Tensor>&, std::vector<Tensor>*,
                             RunMetadata*) {
    return Lacks("RunCallable");
  }
  virtual Status RunCallable(CallableHandle, const std::vector<Tensor>&, std::vector<Tensor>*,
                             RunMetadata*, const thread::ThreadPoolOptions&) {
    return Lacks("RunCallable with ThreadPoolOptions");
  }
  virtual Status ReleaseCallable(CallableHandle) { return Lacks("ReleaseCallable"); }
  // Stores the devices of the session.
  virtual Status ListDevices(std::vector<DeviceAttributes>*) { return Lacks("ListDevices"); }
  virtual Status LocalDeviceManager(const DeviceMgr**) { return Lacks("LocalDeviceManager"); }
  virtual Status Finalize() { return Lacks("Finalize"); }
  virtual Status Close() = 0;
  virtual Status Close(const RunOptions&) { return Lacks("Close by RunOptions"); }

 private:
  static Status Lacks(const char* what) {
    return errors::Unimplemented(what, " is not supported for this session.");
  }
};

namespace compat_internal {

// gradflow::Session, whose header also declares a NewSession.
class LocalSessionCalls {
 public:
  static absl::StatusOr<std::unique_ptr<LocalSessionCalls>> Make(const SessionOptions& options);
  static std::unique_ptr<LocalSessionCalls> Wrap(std::unique_ptr<gradflow::Session> session);
  gradflow::Session* session() const;
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
  LocalSessionCalls* calls() const { return session_.get(); }

  using Session::Close;
  using Session::Create;
  using Session::Extend;
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
  Status Run(const RunOptions& run_options, const NamedTensors& inputs,
             const std::vector<std::string>& output_tensor_names,
             const std::vector<std::string>& target_node_names, std::vector<Tensor>* outputs,
             RunMetadata* run_metadata, const thread::ThreadPoolOptions& threads) override {
    if (HasPools(threads)) return NoPools();
    return Run(run_options, inputs, output_tensor_names, target_node_names, outputs, run_metadata);
  }
  Status MakeCallable(const CallableOptions& options, CallableHandle* out_handle) override {
    return session_->MakeCallable(options, out_handle);
  }
  Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feed_tensors,
                     std::vector<Tensor>* fetch_tensors, RunMetadata* run_metadata) override {
    return session_->RunCallable(handle, feed_tensors, fetch_tensors, run_metadata);
  }
  Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feed_tensors,
                     std::vector<Tensor>* fetch_tensors, RunMetadata* run_metadata,
                     const thread::ThreadPoolOptions& threads) override {
    if (HasPools(threads)) return NoPools();
    return RunCallable(handle, feed_tensors, fetch_tensors, run_metadata);
  }
  Status ReleaseCallable(CallableHandle handle) override {
    return session_->ReleaseCallable(handle);
  }
  // Stores the CPU.
  Status ListDevices(std::vector<DeviceAttributes>* devices) override {
    *devices = {LocalSessionCalls::Cpu()};
    return absl::OkStatus();
  }
  Status Close() override { return session_->Close(); }

 private:
  static bool HasPools(const thread::ThreadPoolOptions& threads) {
    return threads.inter_op_threadpool != nullptr || threads.intra_op_threadpool != nullptr;
  }
  static Status NoPools() {
    return errors::Unimplemented("a run has the session's threads, not those of ThreadPoolOptions");
  }

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
// Returns UNIMPLEMENTED, because the resources of a session end with it.
inline Status Reset(const SessionOptions&, const std::vector<std::string>& /*containers*/) {
  return errors::Unimplemented(
      "sessions share no containers: the resources of a session end when it is closed");
}
inline Session* NewSession(const SessionOptions& options) {
  Session* session = nullptr;
  if (const absl::Status status = NewSession(options, &session); !status.ok()) LOG(ERROR) << status;
  return session;
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PUBLIC_SESSION_H_
