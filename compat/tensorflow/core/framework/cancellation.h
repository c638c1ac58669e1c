// CancellationManager: calls functions when something is cancelled. Serves a program's own work:
// runs of a session are cancelled with a gradflow::CancellationToken
// (gradflow/runtime/session/session.h).
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
  // Cancels, and waits for a StartCancel() on another thread. REQUIRES: not called by a callback
  ~CancellationManager();

  // Calls the registered functions, on this thread. Returns at once if it has been called before.
  void StartCancel();
  bool IsCancelled() const;
  bool IsCancelling() const;
  CancellationToken get_cancellation_token() { return next_token_++; }
  // Returns false, and does not register, if it is cancelled already.
  bool RegisterCallback(CancellationToken token, CancelCallback callback);
  // Returns true if the function will not be called. Otherwise it has been called when
  // DeregisterCallback returns, and may be running when TryDeregisterCallback does. REQUIRES: not
  // called by a callback
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
