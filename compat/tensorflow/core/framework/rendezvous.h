// Rendezvous: passes tensors by name between threads. It serves a program's own threads. Sessions
// do not use it, because they run a graph on one device.
//
// Thread safety: all methods may be called from any thread.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_RENDEZVOUS_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_RENDEZVOUS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/control_flow.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/lib/core/status.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace tensorflow {

class RendezvousInterface {
 public:
  struct Args {
    // A reference is held until the tensor is received.
    DeviceContext* device_context = nullptr;
    AllocatorAttributes alloc_attrs;
    // Ends the wait of a receiver with CANCELLED. Borrowed.
    CancellationManager* cancellation_manager = nullptr;
  };

  // A parsed key. Its views refer to the key, which it owns.
  struct ParsedKey {
    ParsedKey() = default;
    ParsedKey(const ParsedKey& other) { *this = other; }
    ParsedKey& operator=(const ParsedKey& other);
    absl::string_view FullKey() const { return buf_; }

    absl::string_view src_device;
    DeviceNameUtils::ParsedName src;
    uint64 src_incarnation = 0;
    absl::string_view dst_device;
    DeviceNameUtils::ParsedName dst;
    absl::string_view edge_name;

   private:
    friend class Rendezvous;
    std::string buf_;
  };

  // Receives the status, the arguments of the sender and the receiver, the tensor, and a flag for
  // dead tensors.
  using DoneCallback =
      std::function<void(const absl::Status&, const Args&, const Args&, const Tensor&, bool)>;

  virtual ~RendezvousInterface() = default;
  // Passes a tensor to the receiver that has waited longest, or keeps it for the next receiver.
  virtual absl::Status Send(const ParsedKey& key, const Args& args, const Tensor& val,
                            bool is_dead) = 0;
  // Calls `done` when a tensor is available, on this thread or on the thread of the sender.
  virtual void RecvAsync(const ParsedKey& key, const Args& args, DoneCallback done) = 0;
  // Waits for a tensor. With a positive timeout, returns DEADLINE_EXCEEDED after it; the next
  // tensor then goes to the next receiver.
  absl::Status Recv(const ParsedKey& key, const Args& args, Tensor* val, bool* is_dead,
                    int64_t timeout_ms = 0);
  // Ends all current and later waits with the error.
  virtual void StartAbort(const absl::Status& status) = 0;
};

class Rendezvous : public RendezvousInterface, public core::WeakRefCounted {
 public:
  // "source;incarnation;destination;name;frame:iteration", with the incarnation in hexadecimal.
  static std::string CreateKey(const std::string& src_device, uint64 src_incarnation,
                               const std::string& dst_device, const std::string& name,
                               const FrameAndIter& frame_iter);
  static absl::Status ParseKey(absl::string_view key, ParsedKey* out);
};

// Returns a rendezvous with one reference, which the caller owns. The last Unref() ends all waits
// with CANCELLED.
Rendezvous* NewLocalRendezvous(int num_shards = 1);

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_RENDEZVOUS_H_
