#include "gradflow/core/stop_token.h"

#include <utility>

namespace gradflow {

CancelFlag::CallbackId CancelFlag::AddCallback(std::function<void()> callback) {
  MutexLock lock(&mutex_);
  // Stored before the flag is read: either Raise() sees that there are callbacks, or this function
  // sees that the flag is raised.
  has_callbacks_.store(true, std::memory_order_seq_cst);
  if (raised_.load(std::memory_order_seq_cst)) return 0;
  callbacks_.emplace(next_id_, std::move(callback));
  return next_id_++;
}

void CancelFlag::RunCallbacks() {
  for (;;) {
    std::function<void()> callback;
    {
      MutexLock lock(&mutex_);
      // Another thread that raises the flag calls the rest.
      if (callbacks_.empty() || running_.load(std::memory_order_relaxed) != 0) return;
      auto first = callbacks_.extract(callbacks_.begin());
      callback = std::move(first.mapped());
      runner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
      running_.store(first.key(), std::memory_order_release);
    }
    callback();
    // Destroys the objects that the callback owns before any thread is told that it has ended.
    callback = nullptr;
    running_.store(0, std::memory_order_release);
  }
}

void CancelFlag::DropCallbacks() {
  // Destroyed without the mutex, because callbacks may own any object.
  std::map<CallbackId, std::function<void()>> dropped;
  MutexLock lock(&mutex_);
  dropped.swap(callbacks_);
}

void CancelFlag::RemoveCallback(CallbackId id) {
  if (id == 0) return;
  std::function<void()> removed;
  {
    MutexLock lock(&mutex_);
    const auto it = callbacks_.find(id);
    if (it != callbacks_.end()) {
      removed = std::move(it->second);
      callbacks_.erase(it);
      return;
    }
  }
  while (running_.load(std::memory_order_acquire) == id &&
         runner_.load(std::memory_order_relaxed) != std::this_thread::get_id()) {
    std::this_thread::yield();
  }
}

}  // namespace gradflow
