// Variant: a value of any copyable type. gradflow has no tensors of variants: a kernel that takes
// one compiles, and no graph can run it.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_VARIANT_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_VARIANT_H_

#include <any>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow {

class Variant {
 public:
  Variant() = default;
  template <typename T, typename = std::enable_if_t<!std::is_same_v<std::decay_t<T>, Variant>>>
  Variant(T&& value) : value_(std::forward<T>(value)) {}  // NOLINT: holds any value
  template <typename T, typename = std::enable_if_t<!std::is_same_v<std::decay_t<T>, Variant>>>
  Variant& operator=(T&& value) {
    value_ = std::forward<T>(value);
    return *this;
  }

  bool is_empty() const { return !value_.has_value(); }
  void clear() { value_.reset(); }
  void swap(Variant& other) { value_.swap(other.value_); }
  // Return the value if it is a T, otherwise null.
  template <typename T>
  T* get() {
    return std::any_cast<T>(&value_);
  }
  template <typename T>
  const T* get() const {
    return std::any_cast<T>(&value_);
  }
  // The compiler's name of the type of the value; empty if there is none.
  std::string TypeName() const { return is_empty() ? "" : value_.type().name(); }
  std::string DebugString() const { return absl::StrCat("Variant<type: ", TypeName(), ">"); }

 private:
  std::any value_;
};

}  // namespace tensorflow

namespace gradflow {

template <>
struct DataTypeToEnum<tensorflow::Variant> {
  static constexpr DataType value = DT_VARIANT;
  static constexpr DataType v() { return DT_VARIANT; }
};

}  // namespace gradflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_VARIANT_H_
