// Session: runs a GraphDef by the names of its nodes. See gradflow/runtime/session/session.h for
// names, errors, thread safety and ownership of tensors.
#ifndef GRADFLOW_COMPAT_CORE_PUBLIC_SESSION_H_
#define GRADFLOW_COMPAT_CORE_PUBLIC_SESSION_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow {

// The interface of sessions, with TensorFlow's Status. Programs may derive from it. NewSession
// returns an implementation by gradflow::Session.
class Session {
 public:
  virtual ~Session() = default;
  virtual Status Create(const GraphDef& graph) = 0;
  virtual Status Extend(const GraphDef& graph) = 0;
  virtual Status Run(const std::vector<std::pair<std::string, Tensor>>& inputs,
                     const std::vector<std::string>& output_tensor_names,
                     const std::vector<std::string>& target_node_names,
                     std::vector<Tensor>* outputs) = 0;
  virtual Status Run(const RunOptions& run_options,
                     const std::vector<std::pair<std::string, Tensor>>& inputs,
                     const std::vector<std::string>& output_tensor_names,
                     const std::vector<std::string>& target_node_names,
                     std::vector<Tensor>* outputs, RunMetadata* run_metadata);
  using CallableHandle = int64_t;
  virtual Status MakeCallable(const CallableOptions& options, CallableHandle* out_handle);
  virtual Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feed_tensors,
                             std::vector<Tensor>* fetch_tensors, RunMetadata* run_metadata);
  virtual Status ReleaseCallable(CallableHandle handle);
  virtual Status Close() = 0;
};

// Create a session. The second overload returns null on error.
Status NewSession(const SessionOptions& options, Session** out_session);
Session* NewSession(const SessionOptions& options);

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PUBLIC_SESSION_H_
