// MakeUnique and WrapUnique of TensorFlow 1.x.
#ifndef GRADFLOW_COMPAT_CORE_UTIL_PTR_UTIL_H_
#define GRADFLOW_COMPAT_CORE_UTIL_PTR_UTIL_H_

#include <memory>
#include <utility>

namespace tensorflow {

template <typename T, typename... Args>
std::unique_ptr<T> MakeUnique(Args&&... args) {
  return std::make_unique<T>(std::forward<Args>(args)...);
}
template <typename T>
std::unique_ptr<T> WrapUnique(T* pointer) {
  return std::unique_ptr<T>(pointer);
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_UTIL_PTR_UTIL_H_
