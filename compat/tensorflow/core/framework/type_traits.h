// Properties of element types at compile time.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_TYPE_TRAITS_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_TYPE_TRAITS_H_

#include <type_traits>

#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

struct true_type {
  static constexpr bool value = true;
};
struct false_type {
  static constexpr bool value = false;
};

template <typename T>
struct is_quantized : false_type {};
template <>
struct is_quantized<qint8> : true_type {};
template <>
struct is_quantized<quint8> : true_type {};
template <>
struct is_quantized<qint16> : true_type {};
template <>
struct is_quantized<quint16> : true_type {};
template <>
struct is_quantized<qint32> : true_type {};

template <typename T>
struct is_complex : std::bool_constant<gradflow::kIsComplex<T>> {};

// Types that are copied as bytes: all types except strings, handles and variants.
template <typename T>
struct is_simple_type : std::bool_constant<std::is_trivially_copyable_v<T>> {};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_TYPE_TRAITS_H_
