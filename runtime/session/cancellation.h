// CancellationToken: stops runs from any thread.
//
//   CancellationToken token;
//   // In one thread:
//   absl::Status status = session->Run({}, feeds, fetches, targets, &outputs, nullptr, token);
//   // In another thread. The run returns CANCELLED within milliseconds, even if a kernel runs.
//   // docs/security.md lists the kernels that take longer under Exclusions.
//   token.Cancel();
//
// Copies of a token share its state. A cancelled token stays cancelled: use a new one for the next
// run.
//
// Thread safety: all methods may be called from any thread.
#ifndef GRADFLOW_RUNTIME_SESSION_CANCELLATION_H_
#define GRADFLOW_RUNTIME_SESSION_CANCELLATION_H_

#include <memory>

#include "gradflow/core/stop_token.h"

#pragma GCC visibility push(default)
namespace gradflow {

class CancellationToken {
 public:
  // Makes a new token, which is not cancelled.
  CancellationToken() : cancelled_(std::make_shared<CancelFlag>()) {}
  // A move copies: a moved-from token would have no state.
  CancellationToken(const CancellationToken&) = default;
  CancellationToken& operator=(const CancellationToken&) = default;

  // Ends all runs in flight and all later runs that use this token.
  void Cancel() const { cancelled_->Raise(); }
  bool IsCancelled() const { return cancelled_->IsRaised(); }

  // For the executor. Lives as long as a copy of the token.
  CancelFlag* flag() const { return cancelled_.get(); }

 private:
  std::shared_ptr<CancelFlag> cancelled_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_RUNTIME_SESSION_CANCELLATION_H_
