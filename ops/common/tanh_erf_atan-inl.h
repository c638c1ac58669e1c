// The functions Tanh, Erf, Asin, Acos, Atan and Atan2 of float vectors. Include this file after
// exp_log-inl.h; like simd-inl.h, it is included once per target.
//
// Each odd function is computed for a magnitude and gets its sign at the end. NaN takes the way of
// small magnitudes and stays NaN. Results have the same bits on all targets: products and sums are
// not fused, and lanes do not depend on each other.
#if defined(GRADFLOW_OPS_COMMON_TANH_ERF_ATAN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADFLOW_OPS_COMMON_TANH_ERF_ATAN_INL_H_
#undef GRADFLOW_OPS_COMMON_TANH_ERF_ATAN_INL_H_
#else
#define GRADFLOW_OPS_COMMON_TANH_ERF_ATAN_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {

// Returns tanh(x).
template <class D>
HWY_INLINE V<D> Tanh(D d, V<D> x) {
  const hn::RebindToSigned<D> di;
  const auto one = hn::Set(d, 1.0f);
  const auto magnitude = hn::Abs(x);
  // Below 1, an odd polynomial with an error below 2^-27 of the result.
  const auto t = x * x;
  const auto t2 = t * t;
  const auto c01 = hn::Set(d, -0x1.55553cp-2f) + t * hn::Set(d, 0x1.110be4p-3f);
  const auto c23 = hn::Set(d, -0x1.b9623ap-5f) + t * hn::Set(d, 0x1.600a02p-6f);
  const auto c45 = hn::Set(d, -0x1.0461e0p-7f) + t * hn::Set(d, 0x1.2da7d2p-9f);
  const auto c456 = c45 + t2 * hn::Set(d, -0x1.77e30ap-12f);
  const auto c = c01 + t2 * (c23 + t2 * c456);
  const auto small = magnitude + magnitude * (t * c);
  // From 1 on, the result is 1 - 2 / (e^(2 x) + 1). At the bound it rounds to 1.
  const auto bound = hn::Set(d, 9.5f);
  const auto v = hn::IfThenElse(magnitude > bound, bound, magnitude);
  const auto twice = v + v;
  const auto shift = hn::Set(d, 0x1.8p23f);
  const auto shifted = twice * hn::Set(d, 0x1.715476p0f) + shift;
  const auto y = ExpOfRemainder(d, twice, shifted - shift);
  const auto e = hn::BitCast(d, hn::BitCast(di, y) + hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  const auto large = one - Quotient(one + one, e + one);
  return hn::CopySign(hn::IfThenElse(magnitude >= one, large, small), x);
}

// Returns erf(x).
template <class D>
HWY_INLINE V<D> Erf(D d, V<D> x) {
  const auto one = hn::Set(d, 1.0f);
  const auto magnitude = hn::Abs(x);
  // An odd polynomial with an error below 2^-29 of the result.
  const auto t = x * x;
  const auto t2 = t * t;
  const auto c23 = hn::Set(d, 0x1.ce2de8p-4f) + t * hn::Set(d, -0x1.b8140ap-6f);
  const auto c45 = hn::Set(d, 0x1.5560c8p-8f) + t * hn::Set(d, -0x1.b53bc8p-11f);
  const auto c67 = hn::Set(d, 0x1.b3f37cp-14f) + t * hn::Set(d, -0x1.fc3794p-18f);
  // Two steps of Horner's method, because their terms nearly cancel.
  const auto c1 = hn::Set(d, -0x1.812740p-2f) + t * (c23 + t2 * (c45 + t2 * c67));
  const auto small = magnitude + magnitude * (hn::Set(d, 0x1.06eba8p-3f) + t * c1);
  // Above, the result is 1 - p(x - 2.5)^8. At the bound it rounds to 1.
  const auto bound = hn::Set(d, 3.95f);
  const auto v = hn::IfThenElse(magnitude > bound, bound, magnitude) - hn::Set(d, 2.5f);
  const auto v2 = v * v;
  const auto p01 = hn::Set(d, 0x1.81ea94p-2f) + v * hn::Set(d, -0x1.0235dap-2f);
  const auto p23 = hn::Set(d, 0x1.46be22p-5f) + v * hn::Set(d, 0x1.54ef2ap-7f);
  const auto p45 = hn::Set(d, -0x1.ebdd86p-9f) + v * hn::Set(d, -0x1.3365a0p-14f);
  const auto p67 = hn::Set(d, 0x1.caa988p-13f) + v * hn::Set(d, 0x1.955d68p-17f);
  const auto p = p01 + v2 * (p23 + v2 * (p45 + v2 * p67));
  const auto p2 = p * p;
  const auto p4 = p2 * p2;
  const auto large = one - p4 * p4;
  const auto is_large = magnitude >= hn::Set(d, 1.2f);
  return hn::CopySign(hn::IfThenElse(is_large, large, small), x);
}

constexpr float kHalfPiHigh = 0x1.921fb6p0f;
constexpr float kHalfPiLow = -0x1.777a5cp-25f;

// Returns the arctangent of q. REQUIRES: 0 <= q <= 1, or NaN
template <class D>
HWY_INLINE V<D> AtanOfFraction(D d, V<D> q) {
  const auto t = q * q;
  const auto t2 = t * t;
  const auto c01 = hn::Set(d, -0x1.55553ep-2f) + t * hn::Set(d, 0x1.9991fep-3f);
  const auto c23 = hn::Set(d, -0x1.2421d0p-3f) + t * hn::Set(d, 0x1.c09bdcp-4f);
  const auto c45 = hn::Set(d, -0x1.583be0p-4f) + t * hn::Set(d, 0x1.dae822p-5f);
  const auto c67 = hn::Set(d, -0x1.ff166ap-6f) + t * hn::Set(d, 0x1.65f896p-7f);
  const auto c4567 = c45 + t2 * c67;
  const auto t4 = t2 * t2;
  const auto c = (c01 + t2 * c23) + t4 * (c4567 + t4 * hn::Set(d, -0x1.d6cfa8p-10f));
  return q + q * (t * c);
}

// Returns atan(x).
template <class D>
HWY_INLINE V<D> Atan(D d, V<D> x) {
  const auto one = hn::Set(d, 1.0f);
  const auto magnitude = hn::Abs(x);
  const auto is_large = magnitude > one;
  const auto q =
      Quotient(hn::IfThenElse(is_large, one, magnitude), hn::IfThenElse(is_large, magnitude, one));
  const auto angle = AtanOfFraction(d, q);
  // The arctangent of x is pi / 2 minus the arctangent of 1 / x.
  const auto rest = hn::Set(d, kHalfPiHigh) - (angle - hn::Set(d, kHalfPiLow));
  return hn::CopySign(hn::IfThenElse(is_large, rest, angle), x);
}

// Returns the angle of the point (x, y).
template <class D>
HWY_INLINE V<D> Atan2(D d, V<D> y, V<D> x) {
  const hn::RebindToSigned<D> di;
  const auto zero = hn::Zero(d);
  const auto one = hn::Set(d, 1.0f);
  const auto infinity = hn::BitCast(d, hn::Set(di, 0x7f800000));
  const auto a = hn::Abs(x);
  const auto b = hn::Abs(y);
  const auto is_steep = b > a;
  const auto divisor = hn::IfThenElse(is_steep, b, a);
  const auto dividend = hn::IfThenElse(is_steep, a, b);
  // The quotients of two zeros and of two infinities are 0 and 1.
  const auto is_zero = divisor == zero;
  auto q = Quotient(dividend, hn::IfThenElse(is_zero, one, divisor));
  q = hn::IfThenElse(dividend == infinity, one, q);
  const auto angle = AtanOfFraction(d, q);
  const auto rest = hn::Set(d, kHalfPiHigh) - (angle - hn::Set(d, kHalfPiLow));
  const auto acute = hn::IfThenElse(is_steep, rest, angle);
  const auto obtuse = hn::Set(d, 2 * kHalfPiHigh) - (acute - hn::Set(d, 2 * kHalfPiLow));
  // The sign of x, which may be -0.
  const auto is_left = hn::CopySign(one, x) < zero;
  const auto result = hn::CopySign(hn::IfThenElse(is_left, obtuse, acute), y);
  // The quotient loses a NaN of x if y is infinite. A NaN is returned as it is.
  return hn::IfThenElse(x == x, hn::IfThenElse(y == y, result, y), x);
}

// Returns the arcsine of a magnitude of at most 1/2. For a larger magnitude, returns half of its
// arccosine: the arcsine of sqrt((1 - magnitude) / 2).
template <class D>
HWY_INLINE V<D> AsinOfHalf(D d, V<D> magnitude, hn::Mask<D> is_large) {
  const auto half = hn::Set(d, 0.5f);
  const auto t =
      hn::IfThenElse(is_large, (hn::Set(d, 1.0f) - magnitude) * half, magnitude * magnitude);
  const auto root = hn::IfThenElse(is_large, hn::Sqrt(t), magnitude);
  const auto c01 = hn::Set(d, 0x1.5555c8p-3f) + t * hn::Set(d, 0x1.3301e8p-4f);
  const auto c23 = hn::Set(d, 0x1.747e0ep-5f) + t * hn::Set(d, 0x1.8c2a5ep-6f);
  const auto c = c01 + (t * t) * (c23 + (t * t) * hn::Set(d, 0x1.596b70p-5f));
  return root + root * (t * c);
}

// Returns asin(x).
template <class D>
HWY_INLINE V<D> Asin(D d, V<D> x) {
  const auto magnitude = hn::Abs(x);
  const auto is_large = magnitude > hn::Set(d, 0.5f);
  const auto half = AsinOfHalf(d, magnitude, is_large);
  const auto rest = hn::Set(d, kHalfPiHigh) - (half + half - hn::Set(d, kHalfPiLow));
  return hn::CopySign(hn::IfThenElse(is_large, rest, half), x);
}

// Returns acos(x).
template <class D>
HWY_INLINE V<D> Acos(D d, V<D> x) {
  const auto magnitude = hn::Abs(x);
  const auto is_large = magnitude > hn::Set(d, 0.5f);
  const auto half = AsinOfHalf(d, magnitude, is_large);
  const auto right = hn::Set(d, kHalfPiHigh) - (hn::CopySign(half, x) - hn::Set(d, kHalfPiLow));
  const auto twice = half + half;
  const auto obtuse = hn::Set(d, 2 * kHalfPiHigh) - (twice - hn::Set(d, 2 * kHalfPiLow));
  const auto large = hn::IfThenElse(x < hn::Zero(d), obtuse, twice);
  return hn::IfThenElse(is_large, large, right);
}

}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#endif
