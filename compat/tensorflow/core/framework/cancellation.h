// CancellationManager: calls functions on cancellation. It serves a program's own work. Runs of a
// session are cancelled with a gradflow::CancellationToken (gradflow/runtime/session/session.h).
//
// Thread safety: all methods may be called from any thread.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_CANCELLATION_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_CANCELLATION_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

namespace tensorflow {

using CancellationToken = int64_t;
using CancelCallback = std::function<void()>;

class CancellationManager {
 public:
  static const CancellationToken kInvalidToken;

  CancellationManager() = default;
  CancellationManager(const CancellationManager&) = delete;
  CancellationManager& operator=(const CancellationManager&) = delete;
  // Cancels, and waits for a StartCancel() on another thread. REQUIRES: not called from a callback
  ~CancellationManager();

  // Calls the registered functions on this thread. Returns immediately if called before.
  void StartCancel();
  bool IsCancelled() const;
  bool IsCancelling() const;
  CancellationToken get_cancellation_token() { return next_token_++; }
  // Returns false without registering if already cancelled.
  bool RegisterCallback(CancellationToken token, CancelCallback callback);
  // Return true if the function will not be called. Otherwise, the function has already returned
  // when DeregisterCallback returns, and may still be running when TryDeregisterCallback returns.
  // REQUIRES: not called from a callback
  bool DeregisterCallback(CancellationToken token);
  bool TryDeregisterCallback(CancellationToken token);

 private:
  mutable std::mutex mutex_;
  std::condition_variable cancelled_changed_;
  bool cancelling_ = false;
  bool cancelled_ = false;
  std::map<CancellationToken, CancelCallback> callbacks_;
  std::atomic<CancellationToken> next_token_{0};
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_CANCELLATION_H_
