#include "tensorflow/core/framework/rendezvous.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/lib/strings/numbers.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/notification.h"

namespace tensorflow {
namespace {

using RendezvousArgs = RendezvousInterface::Args;

// Holds a reference to the device context of the arguments.
class KeptArgs {
 public:
  explicit KeptArgs(const RendezvousArgs& args) : args_(args) {
    if (args.device_context != nullptr) args.device_context->Ref();
  }
  KeptArgs(KeptArgs&& other) noexcept : args_(std::exchange(other.args_, RendezvousArgs())) {}
  KeptArgs& operator=(KeptArgs&& other) noexcept {
    std::swap(args_, other.args_);
    return *this;
  }
  ~KeptArgs() {
    if (args_.device_context != nullptr) args_.device_context->Unref();
  }
  const RendezvousArgs& get() const { return args_; }

 private:
  RendezvousArgs args_;
};

struct SentTensor {
  KeptArgs args;
  Tensor tensor;
  bool is_dead;
};

struct Receiver {
  KeptArgs args;
  RendezvousInterface::DoneCallback done;
  int64_t id;
  CancellationToken token = CancellationManager::kInvalidToken;
};

// The tensors sent under a name, or the receivers waiting for it. One of the two lists is empty.
struct TensorQueue {
  std::deque<SentTensor> values;
  std::deque<Receiver> waiters;
};

// Calls back without a lock, because a callback may send or receive.
void CallReceiver(const Receiver& waiter, const absl::Status& status, const RendezvousArgs& sender,
                  const Tensor& tensor, bool is_dead) {
  // A running callback of the manager no longer finds the waiter.
  if (CancellationManager* const manager = waiter.args.get().cancellation_manager;
      manager != nullptr && waiter.token != CancellationManager::kInvalidToken) {
    manager->TryDeregisterCallback(waiter.token);
  }
  waiter.done(status, sender, waiter.args.get(), tensor, is_dead);
}

// The shared state. Callbacks of cancellation managers may outlive the rendezvous.
class RendezvousTable {
 public:
  absl::Status Send(const std::string& key, const RendezvousArgs& args, const Tensor& tensor,
                    bool is_dead) {
    std::optional<Receiver> waiter;
    {
      const mutex_lock lock(mutex_);
      if (!status_.ok()) return status_;
      TensorQueue& queue = queues_[key];
      if (queue.waiters.empty()) {
        queue.values.push_back({KeptArgs(args), tensor, is_dead});
        return absl::OkStatus();
      }
      waiter = std::move(queue.waiters.front());
      queue.waiters.pop_front();
      if (queue.waiters.empty()) queues_.erase(key);
    }
    CallReceiver(*waiter, absl::OkStatus(), args, tensor, is_dead);
    return absl::OkStatus();
  }

  void Receive(const std::shared_ptr<RendezvousTable>& self, const std::string& key,
               const RendezvousArgs& args, RendezvousInterface::DoneCallback done) {
    Receiver waiter{KeptArgs(args), std::move(done), 0};
    std::optional<SentTensor> value;
    absl::Status status;
    {
      const mutex_lock lock(mutex_);
      status = status_;
      const auto queue = queues_.find(key);
      if (status.ok() && queue != queues_.end() && !queue->second.values.empty()) {
        value = std::move(queue->second.values.front());
        queue->second.values.pop_front();
        if (queue->second.values.empty()) queues_.erase(queue);
      } else if (status.ok() && Register(self, key, &waiter)) {
        queues_[key].waiters.push_back(std::move(waiter));
        return;
      } else if (status.ok()) {
        status = errors::Cancelled("RecvAsync is cancelled.");
      }
    }
    if (value.has_value()) {
      CallReceiver(waiter, status, value->args.get(), value->tensor, value->is_dead);
    } else {
      CallReceiver(waiter, status, RendezvousArgs(), Tensor(), false);
    }
  }

  void Abort(const absl::Status& status) {
    CHECK(!status.ok()) << "a rendezvous ends with an error";
    std::map<std::string, TensorQueue> queues;
    {
      const mutex_lock lock(mutex_);
      status_.Update(status);
      queues.swap(queues_);
    }
    for (const auto& [key, queue] : queues) {
      for (const Receiver& waiter : queue.waiters)
        CallReceiver(waiter, status, RendezvousArgs(), Tensor(), false);
    }
  }

 private:
  // Returns false if the waiter is already cancelled.
  bool Register(const std::shared_ptr<RendezvousTable>& self, const std::string& key,
                Receiver* waiter) {
    waiter->id = next_id_++;
    CancellationManager* const manager = waiter->args.get().cancellation_manager;
    if (manager == nullptr) return true;
    waiter->token = manager->get_cancellation_token();
    const auto cancel = [table = std::weak_ptr<RendezvousTable>(self), key, id = waiter->id] {
      if (const std::shared_ptr<RendezvousTable> locked = table.lock()) locked->Cancel(key, id);
    };
    return manager->RegisterCallback(waiter->token, cancel);
  }

  void Cancel(const std::string& key, int64_t id) {
    std::optional<Receiver> waiter;
    {
      const mutex_lock lock(mutex_);
      const auto queue = queues_.find(key);
      if (queue == queues_.end()) return;
      std::deque<Receiver>& waiters = queue->second.waiters;
      const auto found = std::find_if(waiters.begin(), waiters.end(),
                                      [id](const Receiver& w) { return w.id == id; });
      if (found == waiters.end()) return;
      waiter = std::move(*found);
      waiters.erase(found);
      if (waiters.empty()) queues_.erase(queue);
    }
    // The manager is cancelling, so it holds no callback for this waiter.
    waiter->token = CancellationManager::kInvalidToken;
    CallReceiver(*waiter, errors::Cancelled("RecvAsync is cancelled."), RendezvousArgs(), Tensor(),
                 false);
  }

  mutex mutex_;
  absl::Status status_;
  int64_t next_id_ = 0;
  std::map<std::string, TensorQueue> queues_;
};

class LocalRendezvous : public Rendezvous {
 public:
  ~LocalRendezvous() override { table_->Abort(errors::Cancelled("the rendezvous is gone")); }

  absl::Status Send(const ParsedKey& key, const Args& args, const Tensor& val,
                    bool is_dead) override {
    return table_->Send(std::string(key.FullKey()), args, val, is_dead);
  }
  void RecvAsync(const ParsedKey& key, const Args& args, DoneCallback done) override {
    table_->Receive(table_, std::string(key.FullKey()), args, std::move(done));
  }
  void StartAbort(const absl::Status& status) override { table_->Abort(status); }

 private:
  const std::shared_ptr<RendezvousTable> table_ = std::make_shared<RendezvousTable>();
};

}  // namespace

RendezvousInterface::ParsedKey& RendezvousInterface::ParsedKey::operator=(const ParsedKey& other) {
  if (this == &other) return *this;
  buf_ = other.buf_;
  // Returns the same part of this key.
  const auto part = [&](absl::string_view view) {
    if (view.data() == nullptr) return absl::string_view();
    return absl::string_view(buf_).substr(view.data() - other.buf_.data(), view.size());
  };
  src_device = part(other.src_device);
  src = other.src;
  src_incarnation = other.src_incarnation;
  dst_device = part(other.dst_device);
  dst = other.dst;
  edge_name = part(other.edge_name);
  return *this;
}

absl::Status RendezvousInterface::Recv(const ParsedKey& key, const Args& args, Tensor* val,
                                       bool* is_dead, int64_t timeout_ms) {
  struct {
    Notification done;
    absl::Status status;
    Tensor tensor;
    bool is_dead = false;
  } result;
  // Ends the wait on a timeout, or when the caller's manager cancels.
  CancellationManager stop;
  CancellationManager* const manager = args.cancellation_manager;
  CancellationToken token = CancellationManager::kInvalidToken;
  if (manager != nullptr) {
    token = manager->get_cancellation_token();
    if (!manager->RegisterCallback(token, [&stop] { stop.StartCancel(); })) {
      return errors::Cancelled("RecvAsync is cancelled.");
    }
  }
  Args stoppable = args;
  stoppable.cancellation_manager = &stop;
  RecvAsync(key, stoppable,
            [&result](const absl::Status& status, const Args&, const Args&, const Tensor& tensor,
                      bool dead) {
              result.status = status;
              result.tensor = tensor;
              result.is_dead = dead;
              result.done.Notify();
            });
  bool is_late = false;
  if (timeout_ms > 0) {
    constexpr int64_t kMaxMilliseconds = std::numeric_limits<int64_t>::max() / 1000;
    const int64_t microseconds = std::min(timeout_ms, kMaxMilliseconds) * 1000;
    is_late = !WaitForNotificationWithTimeout(&result.done, microseconds);
    if (is_late) stop.StartCancel();
  }
  // A sender that has removed the waiter will call back.
  result.done.WaitForNotification();
  if (manager != nullptr) manager->DeregisterCallback(token);
  if (is_late && errors::IsCancelled(result.status)) {
    return errors::DeadlineExceeded("no tensor of key '", key.FullKey(), "' within ", timeout_ms,
                                    " ms");
  }
  *val = result.tensor;
  *is_dead = result.is_dead;
  return result.status;
}

std::string Rendezvous::CreateKey(const std::string& src_device, uint64 src_incarnation,
                                  const std::string& dst_device, const std::string& name,
                                  const FrameAndIter& frame_iter) {
  return absl::StrCat(src_device, ";", strings::FpToString(src_incarnation), ";", dst_device, ";",
                      name, ";", frame_iter.frame_id, ":", frame_iter.iter_id);
}

absl::Status Rendezvous::ParseKey(absl::string_view key, ParsedKey* out) {
  ParsedKey parsed;
  parsed.buf_ = std::string(key);
  const std::vector<absl::string_view> parts = absl::StrSplit(parsed.buf_, ';');
  if (parts.size() != 5 || !DeviceNameUtils::ParseFullName(parts[0], &parsed.src) ||
      !strings::HexStringToUint64(parts[1], &parsed.src_incarnation) ||
      !DeviceNameUtils::ParseFullName(parts[2], &parsed.dst) || parts[3].empty() ||
      parts[4].empty()) {
    return errors::InvalidArgument("'", key, "' is not a key of a rendezvous");
  }
  parsed.src_device = parts[0];
  parsed.dst_device = parts[2];
  parsed.edge_name = parts[3];
  *out = parsed;
  return absl::OkStatus();
}

Rendezvous* NewLocalRendezvous(int) { return new LocalRendezvous; }

}  // namespace tensorflow
