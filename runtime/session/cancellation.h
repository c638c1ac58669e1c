// CancellationToken: stops runs from any thread.
//
//   CancellationToken token;
//   // In one thread:
//   absl::Status status = session->Run({}, feeds, fetches, targets, &outputs, nullptr, token);
//   // In another: the run returns CANCELLED, also from within a kernel. This takes milliseconds,
//   // except while the kernels are at work that docs/security.md lists under Exclusions.
//   token.Cancel();
//
// Copies of a token share its state. A cancelled token stays cancelled: use a new one for the next
// run.
//
// Thread safety: all methods may be called from any thread.
#ifndef GRADFLOW_RUNTIME_SESSION_CANCELLATION_H_
#define GRADFLOW_RUNTIME_SESSION_CANCELLATION_H_

#include <memory>

#include "gradflow/core/run_stop.h"

#pragma GCC visibility push(default)
namespace gradflow {

class CancellationToken {
 public:
  // Makes a new token, which is not cancelled.
  CancellationToken() : cancelled_(std::make_shared<CancelFlag>()) {}
  // Not movable: a moved-from token would have no state.
  CancellationToken(const CancellationToken&) = default;
  CancellationToken& operator=(const CancellationToken&) = default;

  // Ends all runs that use this token, those in flight and later ones.
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
