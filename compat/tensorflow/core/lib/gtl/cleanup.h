// gtl::MakeCleanup: runs a function at the end of a block.
#ifndef GRADFLOW_COMPAT_CORE_LIB_GTL_CLEANUP_H_
#define GRADFLOW_COMPAT_CORE_LIB_GTL_CLEANUP_H_

#include <functional>
#include <type_traits>
#include <utility>

namespace tensorflow {
namespace gtl {

// Runs `f` on destruction, unless released.
template <typename F>
class Cleanup {
 public:
  Cleanup() = default;
  explicit Cleanup(F f) : active_(true), f_(std::move(f)) {}
  template <typename G>
  Cleanup(Cleanup<G>&& other)  // NOLINT: a Cleanup<std::function<void()>> holds any
      : active_(!other.is_released()), f_(other.release()) {}
  Cleanup(Cleanup&& other) noexcept
      : active_(std::exchange(other.active_, false)), f_(std::move(other.f_)) {}
  Cleanup& operator=(Cleanup&& other) {
    if (active_) f_();
    active_ = std::exchange(other.active_, false);
    f_ = std::move(other.f_);
    return *this;
  }
  ~Cleanup() {
    if (active_) f_();
  }
  // Returns the function. It will not be run.
  F release() {
    active_ = false;
    return std::move(f_);
  }
  bool is_released() const { return !active_; }

 private:
  bool active_ = false;
  F f_{};
};

template <typename F>
Cleanup<std::decay_t<F>> MakeCleanup(F&& f) {
  return Cleanup<std::decay_t<F>>(std::forward<F>(f));
}

}  // namespace gtl
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_GTL_CLEANUP_H_
