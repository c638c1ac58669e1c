// core::RefCounted: an object that counts its references.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_REFCOUNT_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_REFCOUNT_H_

#include <atomic>
#include <cstdint>
#include <memory>

namespace tensorflow {
namespace core {

// The last Unref() deletes the object. Starts with one reference. Thread-safe.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void Ref() const { count_.fetch_add(1, std::memory_order_relaxed); }
  // Returns true if that was the last reference.
  bool Unref() const {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
    delete this;
    return true;
  }
  int_fast32_t RefCount() const { return count_.load(std::memory_order_acquire); }
  bool RefCountIsOne() const { return RefCount() == 1; }

 protected:
  virtual ~RefCounted() = default;

 private:
  mutable std::atomic<int_fast32_t> count_{1};
};

// Drops a reference.
struct RefCountDeleter {
  void operator()(const RefCounted* object) const { object->Unref(); }
};
template <typename T>
using RefCountPtr = std::unique_ptr<T, RefCountDeleter>;

// Takes one more reference.
template <typename T>
RefCountPtr<T> GetNewRef(T* object) {
  object->Ref();
  return RefCountPtr<T>(object);
}

// Drops a reference, to an object that may be null, at the end of a block.
class ScopedUnref {
 public:
  explicit ScopedUnref(const RefCounted* object) : object_(object) {}
  ScopedUnref(const ScopedUnref&) = delete;
  ScopedUnref& operator=(const ScopedUnref&) = delete;
  ~ScopedUnref() {
    if (object_ != nullptr) object_->Unref();
  }

 private:
  const RefCounted* const object_;
};

}  // namespace core
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_REFCOUNT_H_
