// core::RefCounted: an object with a reference count.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_REFCOUNT_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_REFCOUNT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace tensorflow {
namespace core {

// Starts with a single reference. The last Unref() deletes the object. Thread-safe.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void Ref() const { count_.fetch_add(1, std::memory_order_relaxed); }
  // Returns true if this was the last reference.
  bool Unref() const {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
    delete this;
    return true;
  }
  int_fast32_t RefCount() const { return count_.load(std::memory_order_acquire); }
  bool RefCountIsOne() const { return RefCount() == 1; }

 protected:
  virtual ~RefCounted() = default;

  // Adds a reference unless the last reference has been dropped.
  bool TryRef() const {
    int_fast32_t count = RefCount();
    while (count != 0) {
      if (count_.compare_exchange_weak(count, count + 1, std::memory_order_relaxed)) return true;
    }
    return false;
  }

 private:
  mutable std::atomic<int_fast32_t> count_{1};
};

// Drops a reference.
struct RefCountDeleter {
  void operator()(const RefCounted* object) const { object->Unref(); }
};
template <typename T>
using RefCountPtr = std::unique_ptr<T, RefCountDeleter>;

// Adds a reference.
template <typename T>
RefCountPtr<T> GetNewRef(T* object) {
  object->Ref();
  return RefCountPtr<T>(object);
}

// Drops a reference at the end of a block. The object may be null.
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

// An object that weak pointers can refer to.
class WeakRefCounted : public RefCounted {
 public:
  WeakRefCounted() { data_->object = this; }
  // Returns the number of weak pointers.
  int WeakRefCount() const { return static_cast<int>(data_.use_count()) - 1; }

 protected:
  ~WeakRefCounted() override {
    const std::lock_guard<std::mutex> lock(data_->mutex);
    data_->object = nullptr;
  }

 private:
  template <typename T>
  friend class WeakPtr;
  struct Data {
    std::mutex mutex;
    const WeakRefCounted* object;
  };
  RefCountPtr<const WeakRefCounted> NewRef() const {
    return RefCountPtr<const WeakRefCounted>(TryRef() ? this : nullptr);
  }

  const std::shared_ptr<Data> data_ = std::make_shared<Data>();
};

// Refers to an object without keeping it alive. Thread-safe, except for assignment.
template <typename T>
class WeakPtr {
 public:
  explicit WeakPtr(T* object = nullptr) : data_(object == nullptr ? nullptr : object->data_) {}
  // Returns a new reference, or null if the object no longer exists.
  RefCountPtr<T> GetNewRef() const {
    if (data_ == nullptr) return nullptr;
    const std::lock_guard<std::mutex> lock(data_->mutex);
    if (data_->object == nullptr) return nullptr;
    return RefCountPtr<T>(
        static_cast<T*>(const_cast<WeakRefCounted*>(data_->object->NewRef().release())));
  }

 private:
  std::shared_ptr<WeakRefCounted::Data> data_;
};

}  // namespace core
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_REFCOUNT_H_
