#include "gradflow/distributed/elements.h"

#include <type_traits>

#include "gradflow/core/float16.h"

namespace gradflow::distributed {
namespace {

using MergedTypes = TypeList<bfloat16, half, float, double, int32_t, int64_t>;

// Integers wrap around: overflow of signed integers is undefined.
struct Add {
  template <typename T>
  T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(x) + static_cast<U>(y));
    } else {
      return static_cast<T>(x + y);
    }
  }
};

struct Mul {
  template <typename T>
  T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(x) * static_cast<U>(y));
    } else {
      return static_cast<T>(x * y);
    }
  }
};

// Like Minimum and Maximum, these propagate NaN.
struct Min {
  template <typename T>
  T operator()(T x, T y) const {
    return (x < y || x != x) ? x : y;
  }
};

struct Max {
  template <typename T>
  T operator()(T x, T y) const {
    return (x > y || x != x) ? x : y;
  }
};

template <typename T, typename F>
void Merge(F merge, T* target, const T* source, int64_t count) {
  for (int64_t i = 0; i < count; ++i) target[i] = merge(target[i], source[i]);
}

}  // namespace

bool CanMerge(DataType dtype) {
  return DispatchType(MergedTypes(), dtype, [](auto) {});
}

void MergeElements(DataType dtype, CollectiveMerge merge, void* target, const void* source,
                   int64_t count) {
  DispatchType(MergedTypes(), dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const t = static_cast<T*>(target);
    const T* const s = static_cast<const T*>(source);
    switch (merge) {
      case CollectiveMerge::kAdd:
        return Merge(Add(), t, s, count);
      case CollectiveMerge::kMul:
        return Merge(Mul(), t, s, count);
      case CollectiveMerge::kMin:
        return Merge(Min(), t, s, count);
      case CollectiveMerge::kMax:
        return Merge(Max(), t, s, count);
    }
  });
}

void DivideElements(DataType dtype, void* elements, int64_t count, int divisor) {
  DispatchType(MergedTypes(), dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const x = static_cast<T*>(elements);
    const auto y = static_cast<T>(divisor);
    for (int64_t i = 0; i < count; ++i) x[i] = static_cast<T>(x[i] / y);
  });
}

}  // namespace gradflow::distributed
