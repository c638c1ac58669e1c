// The functions Exp, Log, Expm1 and Log1p of float vectors. Include this file after simd-inl.h;
// like simd-inl.h, it is included once per target.
//
// Results have the same bits on all targets: products and sums are not fused, and lanes do not
// depend on each other. Maximum errors over all floats, in ulps: Exp 0.81 (subnormal results
// included), Log 0.96, Expm1 and Log1p 1.1, Sigmoid 2.5.
#if defined(GRADFLOW_OPS_COMMON_EXP_LOG_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADFLOW_OPS_COMMON_EXP_LOG_INL_H_
#undef GRADFLOW_OPS_COMMON_EXP_LOG_INL_H_
#else
#define GRADFLOW_OPS_COMMON_EXP_LOG_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {

// ln 2 in two parts. Products of the upper part and 9-bit integers are exact.
constexpr float kLn2High = 0x1.62e4p-1f;
constexpr float kLn2Low = 0x1.7f7d1cp-20f;

// Returns e^r - 1 - r, with an error below 2^-28 of e^r. REQUIRES: |r| <= ln 2 / 2
template <class D>
HWY_INLINE V<D> ExpBeyondLinear(D d, V<D> r) {
  const auto r2 = r * r;
  const auto c01 = hn::Set(d, 0x1.fffffcp-2f) + r * hn::Set(d, 0x1.555492p-3f);
  const auto c23 = hn::Set(d, 0x1.5558bcp-5f) + r * hn::Set(d, 0x1.1239c6p-7f);
  return r2 * (c01 + r2 * (c23 + r2 * hn::Set(d, 0x1.6a4154p-10f)));
}

// Returns e^x / 2^n, where n is the integer nearest to x / ln 2.
template <class D>
HWY_INLINE V<D> ExpOfRemainder(D d, V<D> x, V<D> n) {
  // The first difference is exact.
  const auto r = x - n * hn::Set(d, kLn2High) - n * hn::Set(d, kLn2Low);
  // 1 + r in two parts.
  const auto one = hn::Set(d, 1.0f);
  const auto sum = one + r;
  const auto rest = r - (sum - one);
  return sum + (rest + ExpBeyondLinear(d, r));
}

template <class D>
HWY_INLINE V<D> Exp(D d, V<D> x) {
  const hn::RebindToSigned<D> di;
  // Adding `shift` rounds to an integer, which is then in the lowest bits.
  const auto shift = hn::Set(d, 0x1.8p23f);
  const auto log2_e = hn::Set(d, 0x1.715476p0f);
  if (HWY_LIKELY(hn::AllTrue(d, hn::Abs(x) <= hn::Set(d, 87.0f)))) {
    const auto shifted = x * log2_e + shift;
    const auto y = ExpOfRemainder(d, x, shifted - shift);
    // Adds n to the exponent of y.
    const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
    return hn::BitCast(d, hn::BitCast(di, y) + exponent);
  }
  // Results are 0 or infinite beyond these bounds. NaN is kept.
  const auto low = hn::Set(d, -104.0f);
  const auto high = hn::Set(d, 89.0f);
  x = hn::IfThenElse(x < low, low, hn::IfThenElse(x > high, high, x));
  const auto shifted = x * log2_e + shift;
  const auto y = ExpOfRemainder(d, x, shifted - shift);
  // Multiplies by two powers of two, because a single one may overflow. Only the second product
  // rounds.
  const auto n = hn::BitCast(di, shifted) - hn::BitCast(di, shift);
  const auto half = hn::ShiftRight<1>(n);
  const auto bias = hn::Set(di, 127);
  const auto first = hn::BitCast(d, hn::ShiftLeft<23>(half + bias));
  const auto second = hn::BitCast(d, hn::ShiftLeft<23>(n - half + bias));
  return y * first * second;
}

// Like ExpBeyondLinear, but with an error below 2^-29.7 of e^r. Expm1 needs this: subtracting 1
// doubles the relative error of e^r.
template <class D>
HWY_INLINE V<D> CloserExpBeyondLinear(D d, V<D> r) {
  const auto r2 = r * r;
  const auto c01 = hn::Set(d, 0x1p-1f) + r * hn::Set(d, 0x1.555556p-3f);
  const auto c23 = hn::Set(d, 0x1.55547ep-5f) + r * hn::Set(d, 0x1.11107ap-7f);
  const auto c45 = hn::Set(d, 0x1.6d9984p-10f) + r * hn::Set(d, 0x1.a1bb42p-13f);
  return r2 * (c01 + r2 * (c23 + r2 * c45));
}

// Returns e^x - 1.
template <class D>
HWY_INLINE V<D> Expm1(D d, V<D> x) {
  const hn::RebindToSigned<D> di;
  const auto shift = hn::Set(d, 0x1.8p23f);
  const auto one = hn::Set(d, 1.0f);
  // The result is -1 below -bound, and e^x above bound.
  const auto bound = hn::Set(d, 30.0f);
  const auto v = hn::IfThenElse(x < hn::Neg(bound), hn::Neg(bound), x);
  const auto shifted = v * hn::Set(d, 0x1.715476p0f) + shift;
  const auto n = shifted - shift;
  // v - n ln 2 in two parts.
  const auto high = v - n * hn::Set(d, kLn2High);
  const auto low = n * hn::Set(d, kLn2Low);
  const auto r = high - low;
  const auto rest_of_r = (high - r) - low;
  // 2^n - 1 + 2^n r in two parts, plus the remaining terms of 2^n e^r.
  const auto power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted) + hn::Set(di, 127)));
  const auto constant = power - one;
  const auto linear = power * r;
  const auto sum = constant + linear;
  const auto rest = (linear - (sum - constant)) + ((power - constant) - one);
  auto y = sum + (rest + power * (rest_of_r + CloserExpBeyondLinear(d, r)));
  if (HWY_UNLIKELY(!hn::AllTrue(d, x <= bound))) y = hn::IfThenElse(x > bound, Exp(d, x), y);
  // Keeps the sign of zero.
  return hn::IfThenElse(x == hn::Zero(d), x, y);
}

// Returns log(x) + k ln 2 + rest_of_log, where rest_of_log is small.
// REQUIRES: x is normal, positive and finite
template <class D>
HWY_INLINE V<D> LogOfNormal(D d, V<D> x, V<D> k, V<D> rest_of_log) {
  const hn::RebindToSigned<D> di;
  // x is 2^e (1 + f), with 1 + f from sqrt(1/2) to sqrt(2).
  const auto root = hn::Set(di, 0x3f3504f3);
  const auto bits = hn::BitCast(di, x) - root;
  const auto e = hn::ConvertTo(d, hn::ShiftRight<23>(bits)) + k;
  const auto f = hn::BitCast(d, hn::And(bits, hn::Set(di, 0x007fffff)) + root) - hn::Set(d, 1.0f);
  const auto f2 = f * f;
  // (log(1 + f) - f + f^2 / 2) / f^3, with an error below 2^-27 of the logarithm.
  const auto c01 = hn::Set(d, 0x1.555554p-2f) + f * hn::Set(d, -0x1.000226p-2f);
  const auto c23 = hn::Set(d, 0x1.99a01cp-3f) + f * hn::Set(d, -0x1.54728ap-3f);
  const auto c45 = hn::Set(d, 0x1.22d930p-3f) + f * hn::Set(d, -0x1.0d8246p-3f);
  const auto c67 = hn::Set(d, 0x1.055eacp-3f) + f * hn::Set(d, -0x1.38c96ap-4f);
  const auto q = c01 + f2 * c23 + f2 * f2 * (c45 + f2 * c67);
  const auto small = f2 * (f * q - hn::Set(d, 0.5f)) + (e * hn::Set(d, kLn2Low) + rest_of_log);
  // e ln 2 + f in two parts; the product is exact.
  const auto large = e * hn::Set(d, kLn2High);
  const auto sum = large + f;
  const auto rest = f - (sum - large);
  return sum + (rest + small);
}

template <class D>
HWY_INLINE V<D> Log(D d, V<D> x) {
  const hn::RebindToSigned<D> di;
  const auto infinity = hn::BitCast(d, hn::Set(di, 0x7f800000));
  const auto min = hn::Set(d, 0x1p-126f);
  if (HWY_LIKELY(hn::AllTrue(d, hn::And(x >= min, x < infinity)))) {
    return LogOfNormal(d, x, hn::Zero(d), hn::Zero(d));
  }
  const auto is_small = x < min;
  const auto scaled = hn::IfThenElse(is_small, x * hn::Set(d, 0x1p23f), x);
  auto y = LogOfNormal(d, scaled, hn::IfThenElseZero(is_small, hn::Set(d, -23.0f)), hn::Zero(d));
  // log(infinity) is infinity, and log(NaN) is NaN.
  y = hn::IfThenElse(x < infinity, y, x);
  y = hn::IfThenElse(x == hn::Zero(d), hn::Neg(infinity), y);
  return hn::IfThenElse(x < hn::Zero(d), hn::BitCast(d, hn::Set(di, 0x7fc00000)), y);
}

// Returns log(1 + x).
template <class D>
HWY_INLINE V<D> Log1p(D d, V<D> x) {
  const hn::RebindToSigned<D> di;
  const auto infinity = hn::BitCast(d, hn::Set(di, 0x7f800000));
  const auto one = hn::Set(d, 1.0f);
  // 1 + x is u + c. log(u + c) is log(u) + c / u, up to a term of order c^2.
  const auto u = one + x;
  const auto c = hn::IfThenElse(x > one, one - (u - x), x - (u - one));
  auto y = LogOfNormal(d, u, hn::Zero(d), c / u);
  if (HWY_UNLIKELY(!hn::AllTrue(d, hn::And(x > hn::Neg(one), x < infinity)))) {
    y = hn::IfThenElse(x < infinity, y, x);
    y = hn::IfThenElse(x == hn::Neg(one), hn::Neg(infinity), y);
    y = hn::IfThenElse(x < hn::Neg(one), hn::BitCast(d, hn::Set(di, 0x7fc00000)), y);
  }
  // Keeps the sign of zero.
  return hn::IfThenElse(x == hn::Zero(d), x, y);
}

// Returns 1 / (1 + e^-x). The argument `e` is the exponential of -|x|: it is at most 1, which
// avoids overflow and preserves the precision of small results.
template <class D>
HWY_INLINE V<D> SigmoidOfExponential(D d, V<D> x, V<D> e) {
  const auto one = hn::Set(d, hn::TFromD<D>(1));
  return hn::IfThenElse(x >= hn::Zero(d), one, e) / (one + e);
}

template <class D>
HWY_INLINE V<D> Sigmoid(D d, V<D> x) {
  return SigmoidOfExponential(d, x, Exp(d, hn::Neg(hn::Abs(x))));
}

}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#endif
