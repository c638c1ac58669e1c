// Rounding of vectors of doubles to floats. Included like simd-inl.h, once for each target, after
// it.
#if defined(GRADFLOW_OPS_COMMON_NARROWED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADFLOW_OPS_COMMON_NARROWED_INL_H_
#undef GRADFLOW_OPS_COMMON_NARROWED_INL_H_
#else
#define GRADFLOW_OPS_COMMON_NARROWED_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {

// Rounds to float, as a static_cast does.
template <class D>
HWY_INLINE hn::Vec<hn::Rebind<float, D>> Narrowed(D d, V<D> v) {
  const hn::Rebind<float, D> df;
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  // These stop at the largest float, of which twice is infinity.
  const auto beyond = hn::Abs(v) >= hn::Set(d, 0x1.ffffffp127);
  const V<D> factor = hn::IfThenElse(beyond, hn::Set(d, 2.0), hn::Set(d, 1.0));
  return hn::DemoteTo(df, v) * hn::DemoteTo(df, factor);
#else
  return hn::DemoteTo(df, v);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#endif
