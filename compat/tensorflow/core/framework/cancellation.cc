#include "tensorflow/core/framework/cancellation.h"

#include <utility>

namespace tensorflow {

const CancellationToken CancellationManager::kInvalidToken = -1;

CancellationManager::~CancellationManager() {
  StartCancel();
  std::unique_lock<std::mutex> lock(mutex_);
  cancelled_changed_.wait(lock, [this] { return cancelled_; });
}

void CancellationManager::StartCancel() {
  std::map<CancellationToken, CancelCallback> callbacks;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (cancelling_ || cancelled_) return;
    cancelling_ = true;
    callbacks.swap(callbacks_);
  }
  for (const auto& [token, callback] : callbacks) callback();
  const std::lock_guard<std::mutex> lock(mutex_);
  cancelling_ = false;
  cancelled_ = true;
  cancelled_changed_.notify_all();
}

bool CancellationManager::IsCancelled() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return cancelled_;
}

bool CancellationManager::IsCancelling() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return cancelling_;
}

bool CancellationManager::RegisterCallback(CancellationToken token, CancelCallback callback) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (cancelling_ || cancelled_) return false;
  callbacks_[token] = std::move(callback);
  return true;
}

bool CancellationManager::DeregisterCallback(CancellationToken token) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!cancelling_ && !cancelled_) {
    callbacks_.erase(token);
    return true;
  }
  cancelled_changed_.wait(lock, [this] { return cancelled_; });
  return false;
}

bool CancellationManager::TryDeregisterCallback(CancellationToken token) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (cancelling_ || cancelled_) return false;
  callbacks_.erase(token);
  return true;
}

}  // namespace tensorflow
