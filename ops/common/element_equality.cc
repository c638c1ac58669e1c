#include "gradflow/ops/common/element_equality.h"

#include <complex>
#include <string>
#include <type_traits>

#include "absl/hash/hash.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow {
namespace {

template <typename T>
bool Equal(const void* a, int64_t i, const void* b, int64_t j) {
  const T& x = static_cast<const T*>(a)[i];
  const T& y = static_cast<const T*>(b)[j];
  if constexpr (kIsFloat16<T>) {
    return static_cast<float>(x) == static_cast<float>(y);
  } else {
    return x == y;
  }
}

// absl::Hash gives 0 and -0 the same hash.
template <typename T>
size_t Hash(const void* a, int64_t i) {
  const T& x = static_cast<const T*>(a)[i];
  if constexpr (kIsFloat16<T>) {
    return absl::Hash<float>()(static_cast<float>(x));
  } else if constexpr (kIsComplex<T>) {
    return absl::HashOf(x.real(), x.imag());
  } else {
    return absl::Hash<T>()(x);
  }
}

}  // namespace

ElementEquality FindElementEquality(DataType dtype) {
  ElementEquality found = {};
  using Floats = ConcatTypes<FloatingTypes, ComplexTypes>::type;
  const auto find = [&](auto tag) {
    using T = typename decltype(tag)::type;
    found = {Equal<T>, Hash<T>};
  };
  if (DispatchType(Floats(), dtype, find)) return found;
  DispatchElement(dtype, [&](auto tag) {
    using E = typename decltype(tag)::type;
    constexpr bool kIsString = std::is_same_v<E, tstring>;
    if constexpr (!std::is_same_v<E, Bytes16> && kIsObject<E> == kIsString) find(tag);
  });
  return found;
}

}  // namespace gradflow
