// Stripes: what many threads count at once is kept several times, a stripe each, so that each
// thread writes to memory which (nearly) no other one writes. Not for users.
#ifndef GRADFLOW_RUNTIME_STRIPES_H_
#define GRADFLOW_RUNTIME_STRIPES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace gradflow {

inline constexpr int kNumStripes = 16;
// Processors fetch cache lines in pairs.
inline constexpr size_t kStripeAlignment = 128;

// In [0, kNumStripes), always the same for a thread. Threads share one only if there are more.
inline int StripeOfThisThread() {
  // Unsigned, so that it may wrap.
  static std::atomic<uint32_t> threads{0};
  thread_local const int stripe = threads.fetch_add(1, std::memory_order_relaxed) % kNumStripes;
  return stripe;
}

// One object with a reference count for each stripe, so that threads which take and drop references
// to it do not write to memory that they share.
template <typename T>
class StripedPtr {
 public:
  StripedPtr() = default;
  explicit StripedPtr(const std::shared_ptr<T>& object) {
    for (std::shared_ptr<T>& one : by_stripe_) {
      one = {std::make_shared<Owner>(Owner{object}), object.get()};
    }
  }

  // With the count of this thread's stripe.
  const std::shared_ptr<T>& get() const { return by_stripe_[StripeOfThisThread()]; }

 private:
  // Lies behind its count, and keeps it apart from others.
  struct alignas(kStripeAlignment) Owner {
    std::shared_ptr<T> object;
  };

  std::array<std::shared_ptr<T>, kNumStripes> by_stripe_;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_STRIPES_H_
