// CancellationToken: stops runs from any thread.
//
//   CancellationToken token;
//   RunOptions options;
//   options.set_cancellation_token(token);
//   // In one thread:
//   absl::Status status = session->Run(options, feeds, fetches, targets, &outputs, nullptr);
//   // In another: the run returns CANCELLED within milliseconds, also from within a kernel.
//   token.Cancel();
//
// Copies of a token are the same token. One that has been cancelled stays so: take a new one for
// the next run.
//
// Thread safety: all of it may be used from any thread.
#ifndef GRADFLOW_RUNTIME_CANCELLATION_H_
#define GRADFLOW_RUNTIME_CANCELLATION_H_

#include <atomic>
#include <memory>

#pragma GCC visibility push(default)
namespace gradflow {

class CancellationToken {
 public:
  // A new token, which is not cancelled.
  CancellationToken() : cancelled_(std::make_shared<std::atomic<bool>>(false)) {}
  // There is no moving, which would leave a token without a state.
  CancellationToken(const CancellationToken&) = default;
  CancellationToken& operator=(const CancellationToken&) = default;

  // Ends all runs that have this token, those in flight and those to come.
  void Cancel() const { cancelled_->store(true, std::memory_order_release); }
  bool IsCancelled() const { return cancelled_->load(std::memory_order_acquire); }

  // For the executor. Lives as long as a copy of the token.
  const std::atomic<bool>* flag() const { return cancelled_.get(); }

 private:
  std::shared_ptr<std::atomic<bool>> cancelled_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_RUNTIME_CANCELLATION_H_
