#include "gradflow/c/eager/cancellation.h"

#include <thread>
#include <utility>

#include "gradflow/c/eager/op.h"
#include "gradflow/c/status.h"

using gradflow::MutexLock;
using gradflow::capi::CallOr;
using gradflow::capi::CallQuietly;

TFE_CancellationManager* TFE_NewCancellationManager(void) {
  return CallOr<TFE_CancellationManager*>(nullptr, [] { return new TFE_CancellationManager; });
}

bool TFE_CancellationManagerIsCancelled(TFE_CancellationManager* manager) {
  return manager->token.IsCancelled();
}
bool TFE_CancellationManagerIsCancelling(TFE_CancellationManager* manager) {
  return manager->cancelling.load();
}

void TFE_CancellationManagerStartCancel(TFE_CancellationManager* manager) {
  std::map<TFE_CancellationToken, TFE_CancelCallback> callbacks;
  {
    const MutexLock lock(&manager->mutex);
    if (manager->token.IsCancelled()) return;
    manager->cancelling.store(true);
    manager->canceller = std::this_thread::get_id();
    manager->token.Cancel();
    callbacks.swap(manager->callbacks);
  }
  for (const auto& [token, callback] : callbacks) {
    CallQuietly([&callback = callback] { callback.callback(callback.context); });
  }
  const MutexLock lock(&manager->mutex);
  manager->cancelling.store(false);
  manager->changed.Notify();
}

TFE_CancellationToken TFE_CancellationManagerGetToken(TFE_CancellationManager* manager) {
  const MutexLock lock(&manager->mutex);
  return manager->next++;
}

bool TFE_CancellationManagerRegisterCallback(TFE_CancellationManager* manager,
                                             TFE_CancellationToken token,
                                             const TFE_CancelCallback* c_callback, const char*) {
  return CallOr(false, [&] {
    const MutexLock lock(&manager->mutex);
    if (manager->token.IsCancelled()) return false;
    manager->callbacks[token] = *c_callback;
    return true;
  });
}

bool TFE_CancellationManagerDeregisterCallback(TFE_CancellationManager* manager,
                                               TFE_CancellationToken token) {
  const MutexLock lock(&manager->mutex);
  if (!manager->token.IsCancelled()) return manager->callbacks.erase(token) > 0;
  // A callback that deregisters itself must not wait.
  if (manager->canceller == std::this_thread::get_id()) return false;
  while (manager->cancelling.load()) manager->changed.Wait(&manager->mutex);
  // Notify() wakes a single thread, which wakes the next.
  manager->changed.Notify();
  return false;
}

bool TFE_CancellationManagerTryDeregisterCallback(TFE_CancellationManager* manager,
                                                  TFE_CancellationToken token) {
  const MutexLock lock(&manager->mutex);
  if (manager->token.IsCancelled()) return false;
  return manager->callbacks.erase(token) > 0;
}

void TFE_DeleteCancellationManager(TFE_CancellationManager* manager) { delete manager; }

void TFE_OpSetCancellationManager(TFE_Op* op, TFE_CancellationManager* cancellation_manager,
                                  TF_Status* status) {
  op->cancellation = cancellation_manager;
  TF_SetStatus(status, TF_OK, "");
}
