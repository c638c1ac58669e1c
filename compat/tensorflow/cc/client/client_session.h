// ClientSession: gradflow::ClientSession. In TensorFlow 1.x programs, it returns
// tensorflow::Status.
#ifndef GRADFLOW_COMPAT_CC_CLIENT_CLIENT_SESSION_H_
#define GRADFLOW_COMPAT_CC_CLIENT_CLIENT_SESSION_H_

#include <vector>

#include "gradflow/runtime/session/client_session.h"
#include "gradflow/runtime/session/options.h"
#include "tensorflow/cc/framework/ops.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/threadpool_options.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow {

class ClientSession : public gradflow::ClientSession {
 public:
  using gradflow::ClientSession::ClientSession;

  Status Run(const std::vector<Output>& fetch_outputs, std::vector<Tensor>* outputs) const {
    return gradflow::ClientSession::Run(fetch_outputs, outputs);
  }
  Status Run(const FeedType& inputs, const std::vector<Output>& fetch_outputs,
             std::vector<Tensor>* outputs) const {
    return gradflow::ClientSession::Run(inputs, fetch_outputs, outputs);
  }
  Status Run(const FeedType& inputs, const std::vector<Output>& fetch_outputs,
             const std::vector<Operation>& run_outputs, std::vector<Tensor>* outputs) const {
    return gradflow::ClientSession::Run(inputs, fetch_outputs, run_outputs, outputs);
  }
  Status Run(const RunOptions& run_options, const FeedType& inputs,
             const std::vector<Output>& fetch_outputs, const std::vector<Operation>& run_outputs,
             std::vector<Tensor>* outputs, RunMetadata* run_metadata) const {
    return gradflow::ClientSession::Run(run_options, inputs, fetch_outputs, run_outputs, outputs,
                                        run_metadata);
  }
  Status Run(const RunOptions& run_options, const FeedType& inputs,
             const std::vector<Output>& fetch_outputs, const std::vector<Operation>& run_outputs,
             std::vector<Tensor>* outputs, RunMetadata* run_metadata,
             const gradflow::CancellationToken& cancellation_token) const {
    return gradflow::ClientSession::Run(run_options, inputs, fetch_outputs, run_outputs, outputs,
                                        run_metadata, cancellation_token);
  }
  // Returns UNIMPLEMENTED if `threads` has a pool.
  Status Run(const RunOptions& run_options, const FeedType& inputs,
             const std::vector<Output>& fetch_outputs, const std::vector<Operation>& run_outputs,
             std::vector<Tensor>* outputs, RunMetadata* run_metadata,
             const thread::ThreadPoolOptions& threads) const {
    TF_RETURN_IF_ERROR(CheckNoPools(threads));
    return Run(run_options, inputs, fetch_outputs, run_outputs, outputs, run_metadata);
  }

  Status MakeCallable(const CallableOptions& options, CallableHandle* out_handle) const {
    return gradflow::ClientSession::MakeCallable(options, out_handle);
  }
  Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feed_tensors,
                     std::vector<Tensor>* fetch_tensors, RunMetadata* run_metadata) const {
    return gradflow::ClientSession::RunCallable(handle, feed_tensors, fetch_tensors, run_metadata);
  }
  Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feed_tensors,
                     std::vector<Tensor>* fetch_tensors, RunMetadata* run_metadata,
                     const gradflow::CancellationToken& cancellation_token) const {
    return gradflow::ClientSession::RunCallable(handle, feed_tensors, fetch_tensors, run_metadata,
                                                cancellation_token);
  }
  Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feed_tensors,
                     std::vector<Tensor>* fetch_tensors, RunMetadata* run_metadata,
                     const thread::ThreadPoolOptions& threads) const {
    TF_RETURN_IF_ERROR(CheckNoPools(threads));
    return RunCallable(handle, feed_tensors, fetch_tensors, run_metadata);
  }
  Status ReleaseCallable(CallableHandle handle) const {
    return gradflow::ClientSession::ReleaseCallable(handle);
  }

 private:
  static absl::Status CheckNoPools(const thread::ThreadPoolOptions& threads) {
    if (threads.inter_op_threadpool == nullptr && threads.intra_op_threadpool == nullptr) {
      return absl::OkStatus();
    }
    return errors::Unimplemented("a run has the session's threads, not those of ThreadPoolOptions");
  }
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CC_CLIENT_CLIENT_SESSION_H_
