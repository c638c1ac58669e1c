#include "gradflow/ops/common/elementwise_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradflow/ops/common/elementwise_simd.cc"
#include "gradflow/ops/common/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

// Like Half, but uses the processor's conversion if there is one.
#if HWY_TARGET <= HWY_AVX2
struct LoadedHalf {
  using Element = uint16_t;
  template <class D>
  static HWY_INLINE V<D> Load(D d, const uint16_t* p) {
    const auto bits = hn::LoadU(hn::Rebind<uint16_t, D>(), p);
    return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), bits));
  }
};
#else
using LoadedHalf = Half;
#endif

template <class Io>
struct ToFloatMath {
  const uint16_t* from;
  float* to;
  template <class D>
  HWY_INLINE void Run(D d, int64_t i) const {
    hn::StoreU(Io::Load(d, from + i), d, to + i);
  }
};

// Like Half, but uses the processor's rounding instruction if there is one. NaN has no payload.
#if HWY_TARGET <= HWY_AVX2
struct RoundedHalf {
  using Element = uint16_t;
  template <class D>
  static HWY_INLINE hn::Vec<hn::Rebind<uint16_t, D>> Round(D d, V<D> v) {
    const auto nan = hn::BitCast(d, hn::Set(hn::RebindToUnsigned<D>(), 0x7fc00000u));
    v = hn::IfThenElse(v == v, v, hn::CopySign(nan, v));
    return hn::BitCast(hn::Rebind<uint16_t, D>(), hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), v));
  }
  template <class D>
  static HWY_INLINE void Store(D d, V<D> v, uint16_t* p) {
    hn::StoreU(Round(d, v), hn::Rebind<uint16_t, D>(), p);
  }
  // REQUIRES: D is a full vector
  template <class D>
  static HWY_INLINE void StoreNonTemporal(D d, V<D> v, uint16_t* p) {
    hn::Stream(Round(d, v), hn::Rebind<uint16_t, D>(), p);
  }
};
#else
using RoundedHalf = Half;
#endif

template <class Io, bool kNonTemporal>
struct FromFloatMath {
  const float* from;
  uint16_t* to;
  template <class D>
  HWY_INLINE void Run(D d, int64_t i) const {
    Put<Io, kNonTemporal>(d, hn::LoadU(d, from + i), to + i);
  }
};

void ToFloatLoop(ElementType type, const void* from, float* to, int64_t n) {
  if (type == ElementType::kHalf) {
    ForEach(ToFloatMath<LoadedHalf>{Elements<Half>(from), to}, n);
  } else {
    ForEach(ToFloatMath<Bfloat16>{Elements<Bfloat16>(from), to}, n);
  }
}

template <class Io>
HWY_INLINE void FromFloat(const float* from, void* to, int64_t n, bool non_temporal) {
  if (non_temporal) {
    ForEach(FromFloatMath<Io, true>{from, Elements<Io>(to)}, n);
  } else {
    ForEach(FromFloatMath<Io, false>{from, Elements<Io>(to)}, n);
  }
}

void FromFloatLoop(ElementType type, const float* from, void* to, int64_t n, bool non_temporal) {
  if (type == ElementType::kHalf) {
    FromFloat<RoundedHalf>(from, to, n, non_temporal);
  } else {
    FromFloat<Bfloat16>(from, to, n, non_temporal);
  }
}

void StreamLoop(const void* from, void* to, int64_t bytes) {
  constexpr int64_t kLine = 64;
  const auto* source = static_cast<const uint8_t*>(from);
  auto* target = static_cast<uint8_t*>(to);
  const int64_t misaligned = static_cast<int64_t>(reinterpret_cast<uintptr_t>(target) % kLine);
  int64_t i = misaligned == 0 ? 0 : kLine - misaligned;
  if (i > bytes) i = bytes;
  __builtin_memcpy(target, source, static_cast<size_t>(i));
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<uint8_t> d;
  constexpr int64_t kStep = hn::MaxLanes(hn::ScalableTag<uint8_t>());
  for (; i + kLine <= bytes; i += kLine) {
    GRADFLOW_UNROLL
    for (int64_t k = 0; k < kLine; k += kStep) {
      hn::Stream(hn::LoadU(d, source + i + k), d, target + i + k);
    }
  }
#endif
  __builtin_memcpy(target + i, source + i, static_cast<size_t>(bytes - i));
}

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
// On these targets, Highway's Round loses the sign of zero.
HWY_INLINE float Rounded(Rounding rounding, float v) {
  switch (rounding) {
    case Rounding::kDown:
      return __builtin_floorf(v);
    case Rounding::kUp:
      return __builtin_ceilf(v);
    case Rounding::kNearest:
      return __builtin_nearbyintf(v);
    case Rounding::kTowardsZero:
      return __builtin_truncf(v);
  }
  return v;
}
HWY_INLINE double Rounded(Rounding rounding, double v) {
  switch (rounding) {
    case Rounding::kDown:
      return __builtin_floor(v);
    case Rounding::kUp:
      return __builtin_ceil(v);
    case Rounding::kNearest:
      return __builtin_nearbyint(v);
    case Rounding::kTowardsZero:
      return __builtin_trunc(v);
  }
  return v;
}

template <Rounding kRounding, typename T>
void RoundRun(const T* from, T* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = Rounded(kRounding, from[i]);
}
#else
template <Rounding kRounding, class D>
HWY_INLINE V<D> Rounded(D, V<D> v) {
  switch (kRounding) {
    case Rounding::kDown:
      return hn::Floor(v);
    case Rounding::kUp:
      return hn::Ceil(v);
    case Rounding::kNearest:
      return hn::Round(v);
    case Rounding::kTowardsZero:
      return hn::Trunc(v);
  }
}

template <Rounding kRounding, typename T>
void RoundRun(const T* from, T* to, int64_t n) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  constexpr int64_t kStep = hn::MaxLanes(hn::ScalableTag<T>());
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    hn::StoreU(Rounded<kRounding>(d, hn::LoadU(d, from + i)), d, to + i);
  }
  for (; i < n; ++i) hn::StoreU(Rounded<kRounding>(one, hn::LoadU(one, from + i)), one, to + i);
}
#endif

template <typename T>
HWY_INLINE void RoundSwitch(Rounding rounding, const T* from, T* to, int64_t n) {
  switch (rounding) {
    case Rounding::kDown:
      return RoundRun<Rounding::kDown>(from, to, n);
    case Rounding::kUp:
      return RoundRun<Rounding::kUp>(from, to, n);
    case Rounding::kNearest:
      return RoundRun<Rounding::kNearest>(from, to, n);
    case Rounding::kTowardsZero:
      return RoundRun<Rounding::kTowardsZero>(from, to, n);
  }
}

template <typename T>
HWY_INLINE void SquareRootsOf(const T* from, T* to, int64_t n) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  constexpr int64_t kStep = hn::MaxLanes(hn::ScalableTag<T>());
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) hn::StoreU(hn::Sqrt(hn::LoadU(d, from + i)), d, to + i);
  for (; i < n; ++i) hn::StoreU(hn::Sqrt(hn::LoadU(one, from + i)), one, to + i);
}

void SquareRootFloats(const float* from, float* to, int64_t n) { SquareRootsOf(from, to, n); }
void SquareRootDoubles(const double* from, double* to, int64_t n) { SquareRootsOf(from, to, n); }

void RoundFloats(Rounding rounding, const float* from, float* to, int64_t n) {
  RoundSwitch(rounding, from, to, n);
}
void RoundDoubles(Rounding rounding, const double* from, double* to, int64_t n) {
  RoundSwitch(rounding, from, to, n);
}

struct AddVectors {
  template <class D>
  static HWY_INLINE V<D> Of(D, V<D> x, V<D> y) {
    return x + y;
  }
};
struct SubtractVectors {
  template <class D>
  static HWY_INLINE V<D> Of(D, V<D> x, V<D> y) {
    return x - y;
  }
};
struct MultiplyVectors {
  template <class D>
  static HWY_INLINE V<D> Of(D, V<D> x, V<D> y) {
    return x * y;
  }
};
struct ReluVectors {
  template <class D>
  static HWY_INLINE V<D> Of(D d, V<D> x) {
    return hn::IfThenZeroElse(x <= hn::Zero(d), x);
  }
};
struct Relu6Vectors {
  template <class D>
  static HWY_INLINE V<D> Of(D d, V<D> x) {
    const auto six = hn::Set(d, 6.0f);
    const auto positive = ReluVectors::Of(d, x);
    return hn::IfThenElse(positive > six, six, positive);
  }
};

template <class F>
struct UnaryMath {
  const float* x;
  float* out;
  template <class D>
  HWY_INLINE void Run(D d, int64_t i) const {
    hn::StoreU(F::Of(d, hn::LoadU(d, x + i)), d, out + i);
  }
};

// kOneX and kOneY mark an operand with stride 0, a single element.
template <class F, bool kOneX, bool kOneY>
struct BinaryMath {
  const float* x;
  const float* y;
  float* out;
  template <class D>
  HWY_INLINE void Run(D d, int64_t i) const {
    const auto a = kOneX ? hn::Set(d, *x) : hn::LoadU(d, x + i);
    const auto b = kOneY ? hn::Set(d, *y) : hn::LoadU(d, y + i);
    hn::StoreU(F::Of(d, a, b), d, out + i);
  }
};

template <class F>
HWY_INLINE void UnaryFloats(const void* const* x, void* out, int64_t n) {
  ForEach(UnaryMath<F>{static_cast<const float*>(x[0]), static_cast<float*>(out)}, n);
}

template <class F>
HWY_INLINE void BinaryFloats(const void* const* x, const int64_t* strides, void* out, int64_t n) {
  const auto* const a = static_cast<const float*>(x[0]);
  const auto* const b = static_cast<const float*>(x[1]);
  auto* const result = static_cast<float*>(out);
  if (strides[0] == 0) {
    // Read before the output is written, because the output may overwrite this element.
    const float one = *a;
    ForEach(BinaryMath<F, true, false>{&one, b, result}, n);
  } else if (strides[1] == 0) {
    const float one = *b;
    ForEach(BinaryMath<F, false, true>{a, &one, result}, n);
  } else {
    ForEach(BinaryMath<F, false, false>{a, b, result}, n);
  }
}

void SumLoop(const void* const* x, const int64_t* strides, void* out, int64_t n) {
  BinaryFloats<AddVectors>(x, strides, out, n);
}
void DifferenceLoop(const void* const* x, const int64_t* strides, void* out, int64_t n) {
  BinaryFloats<SubtractVectors>(x, strides, out, n);
}
void ProductLoop(const void* const* x, const int64_t* strides, void* out, int64_t n) {
  BinaryFloats<MultiplyVectors>(x, strides, out, n);
}
void ReluLoop(const void* const* x, const int64_t*, void* out, int64_t n) {
  UnaryFloats<ReluVectors>(x, out, n);
}
void Relu6Loop(const void* const* x, const int64_t*, void* out, int64_t n) {
  UnaryFloats<Relu6Vectors>(x, out, n);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradflow {

HWY_EXPORT(ToFloatLoop);
HWY_EXPORT(FromFloatLoop);
HWY_EXPORT(StreamLoop);
HWY_EXPORT(RoundFloats);
HWY_EXPORT(RoundDoubles);
HWY_EXPORT(SquareRootFloats);
HWY_EXPORT(SquareRootDoubles);
HWY_EXPORT(SumLoop);
HWY_EXPORT(DifferenceLoop);
HWY_EXPORT(ProductLoop);
HWY_EXPORT(ReluLoop);
HWY_EXPORT(Relu6Loop);

void Float16ToFloat(ElementType type, const void* from, float* to, int64_t n) {
  GRADFLOW_SIMD_DISPATCH(ToFloatLoop)(type, from, to, n);
}
void FloatToFloat16(ElementType type, const float* from, void* to, int64_t n, bool non_temporal) {
  constexpr uintptr_t kLine = 64;
  const bool aligned = reinterpret_cast<uintptr_t>(to) % kLine == 0;
  GRADFLOW_SIMD_DISPATCH(FromFloatLoop)(type, from, to, n, non_temporal && aligned);
}
void CopyNonTemporal(const void* from, void* to, int64_t bytes) {
  GRADFLOW_SIMD_DISPATCH(StreamLoop)(from, to, bytes);
}
void RoundToIntegers(Rounding rounding, const float* from, float* to, int64_t n) {
  GRADFLOW_SIMD_DISPATCH(RoundFloats)(rounding, from, to, n);
}
void RoundToIntegers(Rounding rounding, const double* from, double* to, int64_t n) {
  GRADFLOW_SIMD_DISPATCH(RoundDoubles)(rounding, from, to, n);
}
void SquareRoots(const float* from, float* to, int64_t n) {
  GRADFLOW_SIMD_DISPATCH(SquareRootFloats)(from, to, n);
}
void SquareRoots(const double* from, double* to, int64_t n) {
  GRADFLOW_SIMD_DISPATCH(SquareRootDoubles)(from, to, n);
}

void AddFloats(const void* const* x, const int64_t* strides, void* out, int64_t n) {
  GRADFLOW_SIMD_DISPATCH(SumLoop)(x, strides, out, n);
}
void SubtractFloats(const void* const* x, const int64_t* strides, void* out, int64_t n) {
  GRADFLOW_SIMD_DISPATCH(DifferenceLoop)(x, strides, out, n);
}
void MultiplyFloats(const void* const* x, const int64_t* strides, void* out, int64_t n) {
  GRADFLOW_SIMD_DISPATCH(ProductLoop)(x, strides, out, n);
}
void ReluFloats(const void* const* x, const int64_t* strides, void* out, int64_t n) {
  GRADFLOW_SIMD_DISPATCH(ReluLoop)(x, strides, out, n);
}
void Relu6Floats(const void* const* x, const int64_t* strides, void* out, int64_t n) {
  GRADFLOW_SIMD_DISPATCH(Relu6Loop)(x, strides, out, n);
}

}  // namespace gradflow
#endif  // HWY_ONCE
