#include "gradflow/ops/math/cast_loops.h"

#include <cstdint>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradflow/ops/math/cast_loops.cc"
#include "gradflow/ops/common/simd-inl.h"

// The loops of Cast are plain C++ that compilers vectorize for each target.
#ifndef GRADFLOW_VECTOR_LOOP
#if defined(__clang__)
#define GRADFLOW_VECTOR_LOOP _Pragma("clang loop vectorize(enable)")
#else
#define GRADFLOW_VECTOR_LOOP _Pragma("GCC ivdep")
#endif
#endif

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {

// ---- Widening ----

template <typename From, typename To>
void Widen(const void* from, void* to, int64_t n) {
  const From* const values = static_cast<const From*>(from);
  To* const results = static_cast<To*>(to);
  GRADFLOW_VECTOR_LOOP
  for (int64_t i = 0; i < n; ++i) results[i] = static_cast<To>(values[i]);
}

// Reads bytes, because a fed bool may be neither 0 nor 1, and reading such a bool is undefined
// behavior.
void WidenBools(const void* from, void* to, int64_t n) {
  const uint8_t* const values = static_cast<const uint8_t*>(from);
  int32_t* const results = static_cast<int32_t*>(to);
  GRADFLOW_VECTOR_LOOP
  for (int64_t i = 0; i < n; ++i) results[i] = values[i] != 0;
}

// Takes the real parts of complex numbers.
template <typename T>
void WidenComplex(const void* from, void* to, int64_t n) {
  const T* const values = static_cast<const T*>(from);
  T* const results = static_cast<T*>(to);
  GRADFLOW_VECTOR_LOOP
  for (int64_t i = 0; i < n; ++i) results[i] = values[2 * i];
}

void WidenLoop(DataType from_type, const void* from, void* to, int64_t n) {
  switch (from_type) {
    case DT_INT8:
      return Widen<int8_t, int32_t>(from, to, n);
    case DT_UINT8:
      return Widen<uint8_t, int32_t>(from, to, n);
    case DT_INT16:
      return Widen<int16_t, int32_t>(from, to, n);
    case DT_UINT16:
      return Widen<uint16_t, int32_t>(from, to, n);
    case DT_UINT32:
      return Widen<uint32_t, int64_t>(from, to, n);
    case DT_BOOL:
      return WidenBools(from, to, n);
    case DT_COMPLEX64:
      return WidenComplex<float>(from, to, n);
    case DT_COMPLEX128:
      return WidenComplex<double>(from, to, n);
    default:
      return;
  }
}

// ---- Narrowing ----

// Rounds towards zero. NaN and numbers that do not fit become the smallest integer, as on x86.
template <typename To, typename From>
HWY_INLINE To ToSigned(From value) {
  constexpr From kMin = sizeof(To) == 8 ? static_cast<From>(-0x1p63) : static_cast<From>(-0x1p31);
  // Selecting before the conversion lets the compiler vectorize. NaN does not fit.
  const bool fits = (value >= kMin) & (value < -kMin);
  return static_cast<To>(fits ? value : kMin);
}

template <typename To, typename From>
HWY_INLINE To Narrowed(From value) {
  if constexpr (std::is_integral_v<From> || std::is_floating_point_v<To>) {
    return static_cast<To>(value);
  } else if constexpr (std::is_same_v<To, uint64_t>) {
    // The upper half of the uint64 range does not fit int64.
    constexpr From kHalf = 0x1p63;
    if (value >= kHalf && value < 2 * kHalf) return static_cast<uint64_t>(value);
    return static_cast<uint64_t>(ToSigned<int64_t>(value));
  } else if constexpr (sizeof(To) == 8 || std::is_same_v<To, uint32_t>) {
    return static_cast<To>(ToSigned<int64_t>(value));
  } else {
    // Smaller types get the low bits of an int32.
    return static_cast<To>(ToSigned<int32_t>(value));
  }
}

template <typename From, typename To>
void Narrow(const From* values, void* to, int64_t n) {
  To* const results = static_cast<To*>(to);
  GRADFLOW_VECTOR_LOOP
  for (int64_t i = 0; i < n; ++i) results[i] = Narrowed<To>(values[i]);
}

template <typename From>
void NarrowToBools(const From* values, void* to, int64_t n) {
  uint8_t* const results = static_cast<uint8_t*>(to);
  GRADFLOW_VECTOR_LOOP
  for (int64_t i = 0; i < n; ++i) results[i] = values[i] != From(0);
}

template <typename From, typename To>
void NarrowToComplex(const From* values, void* to, int64_t n) {
  To* const results = static_cast<To*>(to);
  for (int64_t i = 0; i < n; ++i) {
    results[2 * i] = Narrowed<To>(values[i]);
    results[2 * i + 1] = 0;
  }
}

// The low bits of integers do not depend on the sign, so types that differ only in sign share a
// loop.
template <typename From>
void NarrowFrom(DataType to_type, const void* from, void* to, int64_t n) {
  constexpr bool kIsInteger = std::is_integral_v<From>;
  const From* const values = static_cast<const From*>(from);
  switch (to_type) {
    case DT_FLOAT:
      return Narrow<From, float>(values, to, n);
    case DT_DOUBLE:
      return Narrow<From, double>(values, to, n);
    case DT_INT8:
    case DT_UINT8:
      return Narrow<From, int8_t>(values, to, n);
    case DT_INT16:
    case DT_UINT16:
      return Narrow<From, int16_t>(values, to, n);
    case DT_UINT32:
      return Narrow<From, std::conditional_t<kIsInteger, int32_t, uint32_t>>(values, to, n);
    case DT_INT32:
      return Narrow<From, int32_t>(values, to, n);
    case DT_UINT64:
      return Narrow<From, std::conditional_t<kIsInteger, int64_t, uint64_t>>(values, to, n);
    case DT_INT64:
      return Narrow<From, int64_t>(values, to, n);
    case DT_BOOL:
      return NarrowToBools(values, to, n);
    case DT_COMPLEX64:
      return NarrowToComplex<From, float>(values, to, n);
    case DT_COMPLEX128:
      return NarrowToComplex<From, double>(values, to, n);
    default:
      return;
  }
}

void NarrowLoop(DataType from_type, DataType to_type, const void* from, void* to, int64_t n) {
  switch (from_type) {
    case DT_FLOAT:
      return NarrowFrom<float>(to_type, from, to, n);
    case DT_DOUBLE:
      return NarrowFrom<double>(to_type, from, to, n);
    case DT_INT32:
      return NarrowFrom<int32_t>(to_type, from, to, n);
    case DT_INT64:
      return NarrowFrom<int64_t>(to_type, from, to, n);
    case DT_UINT64:
      return NarrowFrom<uint64_t>(to_type, from, to, n);
    default:
      return;
  }
}

// ---- Selection ----

// An element of 16 bytes.
struct Pair {
  uint64_t words[2];
};

// Returns the mask of elements with a zero `condition`.
template <class D>
HWY_INLINE auto IsFalse(D d, const uint8_t* condition) {
  const auto bytes = hn::LoadU(hn::Rebind<uint8_t, D>(), condition);
  if constexpr (sizeof(hn::TFromD<D>) == 1) {
    return bytes == hn::Zero(d);
  } else if constexpr (sizeof(hn::TFromD<D>) == 8) {
    return hn::PromoteTo(d, hn::PromoteTo(hn::Rebind<uint32_t, D>(), bytes)) == hn::Zero(d);
  } else {
    return hn::PromoteTo(d, bytes) == hn::Zero(d);
  }
}

// Returns the elements from `from` + i on or, for stride 0, the single element repeated.
template <int64_t kStride, class D>
HWY_INLINE V<D> LoadOperand(D d, const hn::TFromD<D>* from, int64_t i) {
  if constexpr (kStride == 0) {
    return hn::Set(d, *from);
  } else {
    return hn::LoadU(d, from + i);
  }
}

template <typename E, int64_t kT, int64_t kE>
struct SelectMath {
  const uint8_t* condition;
  const E* t;
  const E* e;
  E* out;
  template <class D>
  HWY_INLINE void Run(D d, int64_t i) const {
    const auto yes = LoadOperand<kT>(d, t, i);
    const auto no = LoadOperand<kE>(d, e, i);
    hn::StoreU(hn::IfThenElse(IsFalse(d, condition + i), no, yes), d, out + i);
  }
};

template <typename E, int64_t kT, int64_t kE>
HWY_INLINE void SelectRun(const uint8_t* condition, const E* t, const E* e, E* out, int64_t n) {
  if constexpr (std::is_same_v<E, Pair>) {
    for (int64_t i = 0; i < n; ++i) out[i] = condition[i] != 0 ? t[kT * i] : e[kE * i];
  } else {
    const SelectMath<E, kT, kE> math{condition, t, e, out};
    constexpr int64_t kStep = hn::MaxLanes(hn::ScalableTag<E>());
    // Hardware prefetchers stop between the chunks of a loop and at the end of a page.
    constexpr int64_t kAhead = 4096 / sizeof(E);
    int64_t i = 0;
    for (; i + kStep <= n; i += kStep) {
      if (kT != 0) hwy::Prefetch(t + i + kAhead);
      if (kE != 0) hwy::Prefetch(e + i + kAhead);
      math.Run(hn::ScalableTag<E>(), i);
    }
    for (; i < n; ++i) math.Run(hn::CappedTag<E, 1>(), i);
  }
}

template <typename E>
void SelectOf(const uint8_t* condition, const void* t_data, int64_t t_stride, const void* e_data,
              int64_t e_stride, void* out_data, int64_t n) {
  const E* const t = static_cast<const E*>(t_data);
  const E* const e = static_cast<const E*>(e_data);
  E* const out = static_cast<E*>(out_data);
  if (t_stride == 0) {
    e_stride == 0 ? SelectRun<E, 0, 0>(condition, t, e, out, n)
                  : SelectRun<E, 0, 1>(condition, t, e, out, n);
  } else {
    e_stride == 0 ? SelectRun<E, 1, 0>(condition, t, e, out, n)
                  : SelectRun<E, 1, 1>(condition, t, e, out, n);
  }
}

void SelectLoop(int size, const uint8_t* condition, const void* t, int64_t t_stride, const void* e,
                int64_t e_stride, void* out, int64_t n) {
  switch (size) {
    case 1:
      return SelectOf<uint8_t>(condition, t, t_stride, e, e_stride, out, n);
    case 2:
      return SelectOf<uint16_t>(condition, t, t_stride, e, e_stride, out, n);
    case 4:
      return SelectOf<uint32_t>(condition, t, t_stride, e, e_stride, out, n);
    case 8:
      return SelectOf<uint64_t>(condition, t, t_stride, e, e_stride, out, n);
    default:
      return SelectOf<Pair>(condition, t, t_stride, e, e_stride, out, n);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradflow {

HWY_EXPORT(WidenLoop);
HWY_EXPORT(NarrowLoop);
HWY_EXPORT(SelectLoop);

DataType IntermediateType(DataType from) {
  switch (from) {
    case DT_DOUBLE:
    case DT_COMPLEX128:
      return DT_DOUBLE;
    case DT_FLOAT:
    case DT_COMPLEX64:
      return DT_FLOAT;
    case DT_UINT64:
      return DT_UINT64;
    case DT_INT64:
    case DT_UINT32:
      return DT_INT64;
    default:
      return DT_INT32;
  }
}

void WidenElements(DataType from_type, const void* from, void* to, int64_t n) {
  GRADFLOW_SIMD_DISPATCH(WidenLoop)(from_type, from, to, n);
}

void NarrowElements(DataType from_type, DataType to_type, const void* from, void* to, int64_t n) {
  GRADFLOW_SIMD_DISPATCH(NarrowLoop)(from_type, to_type, from, to, n);
}

void SelectElements(int size, const uint8_t* condition, const void* t, int64_t t_stride,
                    const void* e, int64_t e_stride, void* out, int64_t n) {
  GRADFLOW_SIMD_DISPATCH(SelectLoop)(size, condition, t, t_stride, e, e_stride, out, n);
}

}  // namespace gradflow
#endif  // HWY_ONCE
