#include "gradflow/ops/common/elementary_simd.h"

// Asks the compiler for the architecture. HWY_ARCH_X86 is not defined yet, because simd-inl.h must
// disable targets before it includes Highway.
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradflow/ops/common/elementary_simd.cc"
#include "gradflow/ops/common/simd-inl.h"
// Included after simd-inl.h, which defines the vector types.
#include "gradflow/ops/common/exp_log-inl.h"
#include "gradflow/ops/common/tanh_erf_atan-inl.h"

#ifndef GRADFLOW_SLEEF_FUNCTIONS
// clang-format off
// SLEEF's functions and their error bounds, in the order of the enums.
#define GRADFLOW_SLEEF_FUNCTIONS(X)                                                              \
  X(acos, u10) X(acosh, u10) X(asin, u10) X(asinh, u10) X(atan, u10) X(atanh, u10) X(cos, u10)  \
  X(cosh, u10) X(erf, u10) X(erfc, u15) X(exp, u10) X(expm1, u10) X(lgamma, u10) X(log, u10)    \
  X(log1p, u10) X(sin, u10) X(sinh, u10) X(tan, u10) X(tanh, u10)
// clang-format on
#define GRADFLOW_SLEEF_FUNCTIONS2(X) X(atan2, u10) X(pow, u10)
#define GRADFLOW_SLEEF_JOIN(name, lanes, bound, target) Sleef_cinz_##name##lanes##_##bound##target
#define GRADFLOW_SLEEF_NAME(name, lanes, bound, target) \
  GRADFLOW_SLEEF_JOIN(name, lanes, bound, target)

// Declared here, because SLEEF's header declares only the functions for the instruction sets that
// the whole file is compiled for.
extern "C" {
#define GRADFLOW_DECLARE(name, bound)                  \
  float Sleef_cinz_##name##f1_##bound##purec(float x); \
  double Sleef_cinz_##name##d1_##bound##purec(double x);
GRADFLOW_SLEEF_FUNCTIONS(GRADFLOW_DECLARE)
#undef GRADFLOW_DECLARE
#define GRADFLOW_DECLARE(name, bound)                           \
  float Sleef_cinz_##name##f1_##bound##purec(float x, float y); \
  double Sleef_cinz_##name##d1_##bound##purec(double x, double y);
GRADFLOW_SLEEF_FUNCTIONS2(GRADFLOW_DECLARE)
#undef GRADFLOW_DECLARE
#if HWY_ARCH_X86
#define GRADFLOW_DECLARE(name, bound)                            \
  __m128 Sleef_cinz_##name##f4_##bound##sse4(__m128 x);          \
  __m128d Sleef_cinz_##name##d2_##bound##sse4(__m128d x);        \
  __m256 Sleef_cinz_##name##f8_##bound##avx(__m256 x);           \
  __m256d Sleef_cinz_##name##d4_##bound##avx(__m256d x);         \
  __m512 Sleef_cinz_##name##f16_##bound##avx512fnofma(__m512 x); \
  __m512d Sleef_cinz_##name##d8_##bound##avx512fnofma(__m512d x);
GRADFLOW_SLEEF_FUNCTIONS(GRADFLOW_DECLARE)
#undef GRADFLOW_DECLARE
#define GRADFLOW_DECLARE(name, bound)                                      \
  __m128 Sleef_cinz_##name##f4_##bound##sse4(__m128 x, __m128 y);          \
  __m128d Sleef_cinz_##name##d2_##bound##sse4(__m128d x, __m128d y);       \
  __m256 Sleef_cinz_##name##f8_##bound##avx(__m256 x, __m256 y);           \
  __m256d Sleef_cinz_##name##d4_##bound##avx(__m256d x, __m256d y);        \
  __m512 Sleef_cinz_##name##f16_##bound##avx512fnofma(__m512 x, __m512 y); \
  __m512d Sleef_cinz_##name##d8_##bound##avx512fnofma(__m512d x, __m512d y);
GRADFLOW_SLEEF_FUNCTIONS2(GRADFLOW_DECLARE)
#undef GRADFLOW_DECLARE
#elif HWY_ARCH_ARM_A64
#define GRADFLOW_DECLARE(name, bound)                                     \
  float32x4_t Sleef_cinz_##name##f4_##bound##advsimdnofma(float32x4_t x); \
  float64x2_t Sleef_cinz_##name##d2_##bound##advsimdnofma(float64x2_t x);
GRADFLOW_SLEEF_FUNCTIONS(GRADFLOW_DECLARE)
#undef GRADFLOW_DECLARE
#define GRADFLOW_DECLARE(name, bound)                                                    \
  float32x4_t Sleef_cinz_##name##f4_##bound##advsimdnofma(float32x4_t x, float32x4_t y); \
  float64x2_t Sleef_cinz_##name##d2_##bound##advsimdnofma(float64x2_t x, float64x2_t y);
GRADFLOW_SLEEF_FUNCTIONS2(GRADFLOW_DECLARE)
#undef GRADFLOW_DECLARE
#endif
}
#endif

#undef GRADFLOW_SLEEF_FLOATS
#undef GRADFLOW_SLEEF_DOUBLES
#undef GRADFLOW_SLEEF_TARGET
#undef GRADFLOW_SLEEF_BYTES
// clang passes vectors of more than 128 bits according to the compiler flags of the file, even
// within a function for another target. SLEEF expects them in other registers.
#if !defined(__clang__) && (HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL)
#define GRADFLOW_SLEEF_FLOATS f16
#define GRADFLOW_SLEEF_DOUBLES d8
#define GRADFLOW_SLEEF_TARGET avx512fnofma
#define GRADFLOW_SLEEF_BYTES 64
#elif !defined(__clang__) && HWY_TARGET == HWY_AVX2
#define GRADFLOW_SLEEF_FLOATS f8
#define GRADFLOW_SLEEF_DOUBLES d4
#define GRADFLOW_SLEEF_TARGET avx
#define GRADFLOW_SLEEF_BYTES 32
#elif HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || \
    HWY_TARGET == HWY_AVX3_DL
#define GRADFLOW_SLEEF_FLOATS f4
#define GRADFLOW_SLEEF_DOUBLES d2
#define GRADFLOW_SLEEF_TARGET sse4
#define GRADFLOW_SLEEF_BYTES 16
#elif HWY_ARCH_ARM_A64
#define GRADFLOW_SLEEF_FLOATS f4
#define GRADFLOW_SLEEF_DOUBLES d2
#define GRADFLOW_SLEEF_TARGET advsimdnofma
#define GRADFLOW_SLEEF_BYTES 16
#else
#define GRADFLOW_SLEEF_FLOATS f1
#define GRADFLOW_SLEEF_DOUBLES d1
#define GRADFLOW_SLEEF_TARGET purec
#define GRADFLOW_SLEEF_BYTES 0
#endif

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {

// Vector types of SLEEF's functions.
template <typename T>
struct Sleef {
#if GRADFLOW_SLEEF_BYTES > 0
  using D = hn::FixedTag<T, GRADFLOW_SLEEF_BYTES / sizeof(T)>;
  using Raw = decltype(V<D>::raw);
  static constexpr int64_t kLanes = hn::MaxLanes(D());
  static HWY_INLINE Raw Load(const T* p) { return hn::LoadU(D(), p).raw; }
  static HWY_INLINE void Store(Raw v, T* p) { hn::StoreU(V<D>{v}, D(), p); }
#else
  using Raw = T;
  static constexpr int64_t kLanes = 1;
  static HWY_INLINE Raw Load(const T* p) { return *p; }
  static HWY_INLINE void Store(Raw v, T* p) { *p = v; }
#endif
  using Function = Raw (*)(Raw);
  using Function2 = Raw (*)(Raw, Raw);
};

#define GRADFLOW_FLOATS(name, bound) \
  GRADFLOW_SLEEF_NAME(name, GRADFLOW_SLEEF_FLOATS, bound, GRADFLOW_SLEEF_TARGET),
#define GRADFLOW_DOUBLES(name, bound) \
  GRADFLOW_SLEEF_NAME(name, GRADFLOW_SLEEF_DOUBLES, bound, GRADFLOW_SLEEF_TARGET),
constexpr Sleef<float>::Function kFloatFunctions[] = {GRADFLOW_SLEEF_FUNCTIONS(GRADFLOW_FLOATS)};
constexpr Sleef<double>::Function kDoubleFunctions[] = {GRADFLOW_SLEEF_FUNCTIONS(GRADFLOW_DOUBLES)};
constexpr Sleef<float>::Function2 kFloatFunctions2[] = {GRADFLOW_SLEEF_FUNCTIONS2(GRADFLOW_FLOATS)};
constexpr Sleef<double>::Function2 kDoubleFunctions2[] = {
    GRADFLOW_SLEEF_FUNCTIONS2(GRADFLOW_DOUBLES)};
#undef GRADFLOW_FLOATS
#undef GRADFLOW_DOUBLES

// A vector of the last n elements. The remaining lanes repeat the first of these elements.
template <typename T, int64_t kLanes = Sleef<T>::kLanes>
struct Last {
  alignas(64) T values[kLanes];
  HWY_INLINE Last(const T* from, int64_t n) {
    for (int64_t i = 0; i < kLanes; ++i) values[i] = from[i < n ? i : 0];
  }
};

template <typename T>
HWY_INLINE void Apply(typename Sleef<T>::Function f, const T* x, T* y, int64_t n) {
  using S = Sleef<T>;
  int64_t i = 0;
  for (; i + S::kLanes <= n; i += S::kLanes) S::Store(f(S::Load(x + i)), y + i);
  if (i == n) return;
  Last<T> last(x + i, n - i);
  S::Store(f(S::Load(last.values)), last.values);
  for (int64_t k = 0; i + k < n; ++k) y[i + k] = last.values[k];
}

template <typename T>
HWY_INLINE void Apply2(typename Sleef<T>::Function2 f, const T* x, const T* y, T* z, int64_t n) {
  using S = Sleef<T>;
  int64_t i = 0;
  for (; i + S::kLanes <= n; i += S::kLanes) S::Store(f(S::Load(x + i), S::Load(y + i)), z + i);
  if (i == n) return;
  Last<T> last(x + i, n - i);
  const Last<T> second(y + i, n - i);
  S::Store(f(S::Load(last.values), S::Load(second.values)), last.values);
  for (int64_t k = 0; i + k < n; ++k) z[i + k] = last.values[k];
}

// Applies a function of exp_log-inl.h or tanh_erf_atan-inl.h.
template <class F>
HWY_INLINE void ApplyOwn(const F& f, const float* x, float* y, int64_t n) {
  const Full d;
  constexpr int64_t kLanes = kFull;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(f(hn::LoadU(d, x + i)), d, y + i);
  if (i == n) return;
  Last<float, kLanes> last(x + i, n - i);
  hn::Store(f(hn::Load(d, last.values)), d, last.values);
  for (int64_t k = 0; i + k < n; ++k) y[i + k] = last.values[k];
}

void ApplyAtan2(const float* y, const float* x, float* z, int64_t n) {
  const Full d;
  constexpr int64_t kLanes = kFull;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    hn::StoreU(Atan2(d, hn::LoadU(d, y + i), hn::LoadU(d, x + i)), d, z + i);
  }
  if (i == n) return;
  Last<float, kLanes> last(y + i, n - i);
  const Last<float, kLanes> second(x + i, n - i);
  hn::Store(Atan2(d, hn::Load(d, last.values), hn::Load(d, second.values)), d, last.values);
  for (int64_t k = 0; i + k < n; ++k) z[i + k] = last.values[k];
}

void ApplyFloats(Elementary f, const float* x, float* y, int64_t n) {
  if (f == Elementary::kAcos) {
    return ApplyOwn([](V<Full> v) HWY_ATTR { return Acos(Full(), v); }, x, y, n);
  }
  if (f == Elementary::kAsin) {
    return ApplyOwn([](V<Full> v) HWY_ATTR { return Asin(Full(), v); }, x, y, n);
  }
  if (f == Elementary::kAtan) {
    return ApplyOwn([](V<Full> v) HWY_ATTR { return Atan(Full(), v); }, x, y, n);
  }
  if (f == Elementary::kErf) {
    return ApplyOwn([](V<Full> v) HWY_ATTR { return Erf(Full(), v); }, x, y, n);
  }
  if (f == Elementary::kTanh) {
    return ApplyOwn([](V<Full> v) HWY_ATTR { return Tanh(Full(), v); }, x, y, n);
  }
  if (f == Elementary::kExp) {
    return ApplyOwn([](V<Full> v) HWY_ATTR { return Exp(Full(), v); }, x, y, n);
  }
  if (f == Elementary::kExpm1) {
    return ApplyOwn([](V<Full> v) HWY_ATTR { return Expm1(Full(), v); }, x, y, n);
  }
  if (f == Elementary::kLog) {
    return ApplyOwn([](V<Full> v) HWY_ATTR { return Log(Full(), v); }, x, y, n);
  }
  if (f == Elementary::kLog1p) {
    return ApplyOwn([](V<Full> v) HWY_ATTR { return Log1p(Full(), v); }, x, y, n);
  }
  Apply(kFloatFunctions[static_cast<int>(f)], x, y, n);
}
void ApplyDoubles(Elementary f, const double* x, double* y, int64_t n) {
  Apply(kDoubleFunctions[static_cast<int>(f)], x, y, n);
}
void ApplyFloats2(Elementary2 f, const float* x, const float* y, float* z, int64_t n) {
  if (f == Elementary2::kAtan2) return ApplyAtan2(x, y, z, n);
  Apply2(kFloatFunctions2[static_cast<int>(f)], x, y, z, n);
}
void ApplyDoubles2(Elementary2 f, const double* x, const double* y, double* z, int64_t n) {
  Apply2(kDoubleFunctions2[static_cast<int>(f)], x, y, z, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <algorithm>
#include <cmath>
#include <limits>

#include "gradflow/ops/common/log_gamma.h"

namespace gradflow {

HWY_EXPORT(ApplyFloats);
HWY_EXPORT(ApplyDoubles);
HWY_EXPORT(ApplyFloats2);
HWY_EXPORT(ApplyDoubles2);

namespace {

// A range of arguments with wrong results of SLEEF 3.5.1, and the function to use instead. The
// range excludes its bounds. It is a range of x if `is_signed` is true, otherwise a range of |x|.
// SLEEF's results for infinities are right.
struct Fault {
  Elementary function;
  bool is_signed;
  double low;
  double high;
  double (*instead)(double x);
};

constexpr double kLn2 = 0.69314718055994530942;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

double LogOfTwice(double x) { return Sleef_cinz_logd1_u10purec(x) + kLn2; }
double Log(double x) { return Sleef_cinz_logd1_u10purec(x); }
double AsinhOfLarge(double x) { return std::copysign(LogOfTwice(std::abs(x)), x); }
double Sinh(double x) { return Sleef_cinz_sinhd1_u10purec(x); }
double Cosh(double x) { return Sleef_cinz_coshd1_u10purec(x); }
double LgammaOfLarge(double x) { return Sleef_cinz_lgammad1_u10purec(x); }
// Returns e^|x| / 2, which is cosh(x) for large |x|. e^|x| may overflow although its half does not.
// The half is therefore computed as (e^709 / 2) * e^(|x| - 709).
double CoshOfLarge(double x) {
  return 0x1.d422d2be5dc9bp+1021 * Sleef_cinz_expd1_u10purec(std::abs(x) - 709);
}
double SinhOfLarge(double x) { return std::copysign(CoshOfLarge(x), x); }

// Floats in these ranges are computed in double.
constexpr Fault kFloatFaults[] = {
    {Elementary::kAcosh, true, 1e18, kInfinite, LogOfTwice},
    {Elementary::kAsinh, false, 1e18, kInfinite, AsinhOfLarge},
    {Elementary::kCosh, false, 88, kInfinite, Cosh},
    {Elementary::kSinh, false, 88, kInfinite, Sinh},
    {Elementary::kLgamma, true, -kInfinite, 0, LogGamma},
    {Elementary::kLgamma, true, 1e36, kInfinite, LgammaOfLarge},
};
constexpr Fault kDoubleFaults[] = {
    {Elementary::kAcosh, true, 1e150, kInfinite, LogOfTwice},
    {Elementary::kAsinh, false, 1e150, kInfinite, AsinhOfLarge},
    {Elementary::kCosh, false, 709, kInfinite, CoshOfLarge},
    {Elementary::kSinh, false, 709, kInfinite, SinhOfLarge},
    {Elementary::kLog1p, true, 1e306, kInfinite, Log},
    {Elementary::kLgamma, true, -kInfinite, 0, LogGamma},
};

// Calls apply(x, y, n) and corrects the results of `f` in the ranges of `faults`. If there are such
// ranges, `apply` is called for parts of the arrays that stay in the L1 cache.
template <typename T, size_t kFaults, typename F>
void ApplyAndCorrect(Elementary f, const Fault (&faults)[kFaults], const T* x, T* y, int64_t n,
                     F apply) {
  const Fault* const end = faults + kFaults;
  const Fault* const first =
      std::find_if(faults, end, [&](const Fault& fault) { return fault.function == f; });
  if (first == end) return apply(x, y, n);
  constexpr int64_t kPart = 512;
  T before[kPart];
  for (int64_t begin = 0; begin < n; begin += kPart) {
    const int64_t part = std::min(kPart, n - begin);
    std::copy_n(x + begin, part, before);
    apply(x + begin, y + begin, part);
    for (const Fault* fault = first; fault != end && fault->function == f; ++fault) {
      const T low = static_cast<T>(fault->low);
      const T high = static_cast<T>(fault->high);
      const auto is_wrong = [&](T value) {
        const T v = fault->is_signed ? value : std::abs(value);
        return (v > low) & (v < high);
      };
      int wrong = 0;
      for (int64_t i = 0; i < part; ++i) wrong += is_wrong(before[i]);
      for (int64_t i = 0; wrong > 0 && i < part; ++i) {
        if (!is_wrong(before[i])) continue;
        y[begin + i] = static_cast<T>(fault->instead(before[i]));
        --wrong;
      }
    }
  }
}

}  // namespace

void ApplyElementary(Elementary f, const float* x, float* y, int64_t n) {
  ApplyAndCorrect(f, kFloatFaults, x, y, n, [f](const float* from, float* to, int64_t count) {
    GRADFLOW_SIMD_DISPATCH(ApplyFloats)(f, from, to, count);
  });
}
void ApplyElementary(Elementary f, const double* x, double* y, int64_t n) {
  ApplyAndCorrect(f, kDoubleFaults, x, y, n, [f](const double* from, double* to, int64_t count) {
    GRADFLOW_SIMD_DISPATCH(ApplyDoubles)(f, from, to, count);
  });
}
void ApplyElementary(Elementary2 f, const float* x, const float* y, float* z, int64_t n) {
  GRADFLOW_SIMD_DISPATCH(ApplyFloats2)(f, x, y, z, n);
}
void ApplyElementary(Elementary2 f, const double* x, const double* y, double* z, int64_t n) {
  GRADFLOW_SIMD_DISPATCH(ApplyDoubles2)(f, x, y, z, n);
}

}  // namespace gradflow
#endif  // HWY_ONCE
