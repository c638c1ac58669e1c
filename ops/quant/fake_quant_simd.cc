#include "gradflow/ops/quant/fake_quant_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradflow/ops/quant/fake_quant_simd.cc"
#include "gradflow/ops/common/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

// ---- Ranges ----

// Returns 0 in the lanes whose values are finite, otherwise NaN.
template <class D>
HWY_INLINE V<D> ZeroIfFinite(D d, const float* values) {
  return hn::LoadU(d, values) * hn::Zero(d);
}

template <class D>
struct NudgedRange {
  V<D> min;
  V<D> max;
  V<D> scale;
  V<D> inverse;
  V<D> zero;
};

template <class D>
HWY_INLINE NudgedRange<D> NudgeRange(D d, const FakeQuantLevels& levels, V<D> min, V<D> max) {
  const V<D> lowest = hn::Set(d, levels.lowest);
  const V<D> highest = hn::Set(d, levels.highest);
  const V<D> half = hn::Set(d, 0.5f);
  const V<D> steps = highest - lowest;
  NudgedRange<D> range;
  range.scale = Quotient(max - min, steps);
  range.inverse = Quotient(steps, max - min);
  const V<D> zero_point = lowest - Quotient(min, range.scale);
  // Rounds halves away from zero. The zero point is not negative.
  const V<D> floor = hn::Floor(zero_point);
  V<D> nudged = floor + hn::IfThenElseZero(zero_point - floor >= half, hn::Set(d, 1.0f));
  nudged = hn::IfThenElse(zero_point > highest, highest, nudged);
  nudged = hn::IfThenElse(zero_point < lowest, lowest, nudged);
  range.min = (lowest - nudged) * range.scale;
  range.max = (highest - nudged) * range.scale;
  range.zero = hn::Floor(hn::Neg(range.min) * range.inverse + half);
  return range;
}

template <class D>
HWY_INLINE hn::Mask<D> IsZeroRange(D d, V<D> min, V<D> max) {
  return hn::And(min == hn::Zero(d), max == hn::Zero(d));
}

struct ColumnsMath {
  FakeQuantLevels levels;
  const float* min;
  const float* max;
  FakeQuantColumns columns;

  template <class D>
  HWY_INLINE void Run(D d, int64_t i) const {
    const V<D> low = hn::LoadU(d, min + i);
    const V<D> high = hn::LoadU(d, max + i);
    const NudgedRange<D> range = NudgeRange(d, levels, low, high);
    hn::StoreU(range.min, d, columns.min + i);
    hn::StoreU(range.max, d, columns.max + i);
    hn::StoreU(range.scale, d, columns.scale + i);
    hn::StoreU(range.inverse, d, columns.inverse + i);
    hn::StoreU(range.zero, d, columns.zero + i);
    const hn::RebindToUnsigned<D> du;
    const auto keep = Select(d, IsZeroRange(d, low, high), hn::Zero(du), hn::Set(du, ~0u));
    hn::StoreU(keep, du, columns.keep + i);
  }
};

struct RangesMath {
  FakeQuantLevels levels;
  const float* min;
  const float* max;
  FakeQuantRanges ranges;

  template <class D>
  HWY_INLINE void Run(D d, int64_t i) const {
    const V<D> low = hn::LoadU(d, min + i);
    const V<D> high = hn::LoadU(d, max + i);
    const NudgedRange<D> range = NudgeRange(d, levels, low, high);
    // The range contains all numbers; NaN, which no range contains, passes as well.
    const auto all = IsZeroRange(d, low, high);
    const V<D> infinity = hn::BitCast(d, hn::Set(hn::RebindToUnsigned<D>(), 0x7f800000u));
    hn::StoreU(hn::IfThenElse(all, hn::Neg(infinity), range.min), d, ranges.min + i);
    hn::StoreU(hn::IfThenElse(all, infinity, range.max), d, ranges.max + i);
    hn::StoreU(hn::IfThenElseZero(all, hn::Set(d, 1.0f)), d, ranges.outside + i);
  }
};

// ---- Forward ----

// The comparisons are the comparisons of std::min and std::max, so that NaN stays NaN.
template <class D>
HWY_INLINE V<D> Shift(V<D> x, V<D> min, V<D> max) {
  const V<D> below = hn::IfThenElse(max < x, max, x);
  return hn::IfThenElse(below < min, min, below) - min;
}

template <class D>
HWY_INLINE V<D> Quantize(D d, V<D> steps, V<D> zero, V<D> scale) {
  return hn::Floor(steps - zero + hn::Set(d, 0.5f)) * scale;
}

template <bool kDivide, bool kNonTemporal>
struct FlatMath {
  const float* x;
  float* y;
  FakeQuantStep step;

  template <class D>
  HWY_INLINE void Run(D d, int64_t i) const {
    const V<D> shift = Shift<D>(hn::LoadU(d, x + i), hn::Set(d, step.min), hn::Set(d, step.max));
    const V<D> scale = hn::Set(d, step.scale);
    const V<D> steps = kDivide ? Quotient(shift, scale) : shift * hn::Set(d, step.inverse);
    Put<Float, kNonTemporal>(d, Quantize(d, steps, hn::Set(d, step.zero), scale), y + i);
  }
};

template <bool kDivide>
struct IntegersMath {
  const float* x;
  uint8_t* y;
  FakeQuantStep step;

  template <class D>
  HWY_INLINE void Run(D d, int64_t i) const {
    const V<D> value = hn::LoadU(d, x + i);
    const V<D> zero = hn::Set(d, step.zero);
    const V<D> shift = Shift<D>(value, hn::Set(d, step.min), hn::Set(d, step.max));
    const V<D> steps =
        kDivide ? Quotient(shift, hn::Set(d, step.scale)) : shift * hn::Set(d, step.inverse);
    V<D> level = hn::Floor(steps - zero + hn::Set(d, 0.5f)) + zero;
    level = hn::IfThenElse(value == value, level, zero);
    const hn::Rebind<uint8_t, D> d8;
    hn::StoreU(hn::DemoteTo(d8, hn::ConvertTo(hn::RebindToSigned<D>(), level)), d8, y + i);
  }
};

template <bool kNonTemporal>
struct RowsMath {
  const float* x;
  float* y;
  FakeQuantColumns steps;

  template <class D>
  HWY_INLINE void Run(D d, int64_t i, int64_t j) const {
    const V<D> min = hn::LoadU(d, steps.min + j);
    const V<D> max = hn::LoadU(d, steps.max + j);
    const V<D> scale = hn::LoadU(d, steps.scale + j);
    const V<D> inverse = hn::LoadU(d, steps.inverse + j);
    const V<D> zero = hn::LoadU(d, steps.zero + j);
    const hn::RebindToUnsigned<D> du;
    const V<D> keep = hn::BitCast(d, hn::LoadU(du, steps.keep + j));
    const V<D> shift = Shift<D>(hn::LoadU(d, x + i), min, max);
    Put<Float, kNonTemporal>(d, hn::And(Quantize(d, shift * inverse, zero, scale), keep), y + i);
  }
};

// ---- Gradients ----

template <bool kNonTemporal>
struct GradMath {
  const float* g;
  const float* x;
  float* dx;
  float min;
  float max;

  template <class D>
  HWY_INLINE void Run(D d, int64_t i) const {
    const V<D> value = hn::LoadU(d, x + i);
    const auto inside = hn::And(value >= hn::Set(d, min), value <= hn::Set(d, max));
    const V<D> mask = hn::IfThenElseZero(inside, hn::Set(d, 1.0f));
    Put<Float, kNonTemporal>(d, hn::LoadU(d, g + i) * mask, dx + i);
  }
  template <class D>
  HWY_INLINE void Run(D d, int64_t i, float weight, V<D>* terms) const {
    const V<D> value = hn::LoadU(d, x + i);
    const V<D> gradient = hn::LoadU(d, g + i);
    const V<D> low = hn::Set(d, min);
    const V<D> high = hn::Set(d, max);
    const auto inside = hn::And(value >= low, value <= high);
    Put<Float, kNonTemporal>(d, gradient * hn::IfThenElseZero(inside, hn::Set(d, 1.0f)), dx + i);
    terms[0] = gradient * hn::IfThenElseZero(value < low, hn::Set(d, weight));
    terms[1] = gradient * hn::IfThenElseZero(value > high, hn::Set(d, weight));
  }
};

template <bool kNonTemporal>
struct GradRowsMath {
  const float* g;
  const float* x;
  float* dx;
  FakeQuantRanges ranges;

  template <class D>
  struct Range {
    V<D> low;
    V<D> high;
    V<D> outside;
  };

  template <class D>
  HWY_INLINE Range<D> Columns(D d, int64_t j) const {
    return {hn::LoadU(d, ranges.min + j), hn::LoadU(d, ranges.max + j),
            hn::LoadU(d, ranges.outside + j)};
  }
  HWY_INLINE void Prefetch(int64_t i) const {
    hwy::Prefetch(g + i);
    hwy::Prefetch(x + i);
    if (!kNonTemporal) hwy::Prefetch(dx + i);
  }
  template <class D>
  HWY_INLINE V<D> Run(D d, int64_t i, const Range<D>& range, float weight, V<D>* terms) const {
    const V<D> value = hn::LoadU(d, x + i);
    const V<D> gradient = hn::LoadU(d, g + i);
    const auto inside = hn::And(value >= range.low, value <= range.high);
    terms[0] = gradient * hn::IfThenElseZero(value < range.low, hn::Set(d, weight));
    terms[1] = gradient * hn::IfThenElseZero(value > range.high, hn::Set(d, weight));
    return gradient * hn::IfThenElse(inside, hn::Set(d, 1.0f), range.outside);
  }
  template <class D>
  HWY_INLINE void Store(D d, V<D> result, int64_t i) const {
    Put<Float, kNonTemporal>(d, result, dx + i);
  }
};

template <class DD>
HWY_INLINE void SumToFloat(DD d, const double* sum, const float* min, const float* max,
                           float* result) {
  const hn::Rebind<float, DD> df;
  const auto zero_range = IsZeroRange(df, hn::LoadU(df, min), hn::LoadU(df, max));
  const hn::Vec<DD> value = hn::LoadU(d, sum);
  const hn::Vec<DD> nan = hn::BitCast(d, hn::Set(hn::RebindToUnsigned<DD>(), 0x7ff8ull << 48));
  const auto rounded = Narrowed(d, hn::IfThenElse(value == value, value, nan));
  hn::StoreU(hn::IfThenZeroElse(zero_range, rounded), df, result);
}

// ---- For each target ----

bool Finite(const float* values, int64_t n) {
  // Combines the bits of zeros and NaN. A sum would be slower, because additions wait for each
  // other.
  const Full d;
  V<Full> bits = hn::Zero(d);
  const int64_t step = kFull;
  int64_t i = 0;
  for (; i + step <= n; i += step) bits = hn::Or(bits, hn::Abs(ZeroIfFinite(d, values + i)));
  bool finite = hn::AllTrue(d, bits == hn::Zero(d));
  for (; i < n; ++i) {
    finite = finite && hn::AllTrue(One(), ZeroIfFinite(One(), values + i) == hn::Zero(One()));
  }
  return finite;
}

void ToFloats(const double* sums, const float* min, const float* max, int64_t n, float* result) {
  const hn::ScalableTag<double> d;
  const int64_t step = hn::MaxLanes(d);
  int64_t i = 0;
  for (; i + step <= n; i += step) SumToFloat(d, sums + i, min + i, max + i, result + i);
  for (; i < n; ++i) SumToFloat(hn::CappedTag<double, 1>(), sums + i, min + i, max + i, result + i);
}

void Columns(const FakeQuantLevels& levels, const float* min, const float* max, int64_t n,
             const FakeQuantColumns& columns) {
  ForEach(ColumnsMath{levels, min, max, columns}, n);
}

void Ranges(const FakeQuantLevels& levels, const float* min, const float* max, int64_t n,
            const FakeQuantRanges& ranges) {
  ForEach(RangesMath{levels, min, max, ranges}, n);
}

template <bool kDivide>
HWY_INLINE void Flat(const float* x, float* y, int64_t n, const FakeQuantStep& step,
                     bool non_temporal) {
  if (non_temporal) {
    ForEach(FlatMath<kDivide, true>{x, y, step}, n);
    hwy::FlushStream();
  } else {
    ForEach(FlatMath<kDivide, false>{x, y, step}, n);
  }
}

void Divide(const float* x, float* y, int64_t n, const FakeQuantStep& step, bool non_temporal) {
  Flat<true>(x, y, n, step, non_temporal);
}

void Multiply(const float* x, float* y, int64_t n, const FakeQuantStep& step, bool non_temporal) {
  Flat<false>(x, y, n, step, non_temporal);
}

void Integers(const float* x, uint8_t* y, int64_t n, const FakeQuantStep& step, bool divides) {
  if (divides) {
    ForEach(IntegersMath<true>{x, y, step}, n);
  } else {
    ForEach(IntegersMath<false>{x, y, step}, n);
  }
}

void Rows(const float* x, float* y, int64_t rows, int64_t stride, int64_t columns,
          const FakeQuantColumns& steps, bool non_temporal) {
  if (non_temporal) {
    ForEachRow(RowsMath<true>{x, y, steps}, rows, stride, columns);
    hwy::FlushStream();
  } else {
    ForEachRow(RowsMath<false>{x, y, steps}, rows, stride, columns);
  }
}

void Grad(const float* g, const float* x, float* dx, int64_t n, float min, float max,
          bool non_temporal) {
  if (non_temporal) {
    ForEach(GradMath<true>{g, x, dx, min, max}, n);
    hwy::FlushStream();
  } else {
    ForEach(GradMath<false>{g, x, dx, min, max}, n);
  }
}

void GradSums(const float* g, const float* x, float* dx, int64_t n, float min, float max,
              bool non_temporal, double* lanes) {
  if (non_temporal) {
    ForEachTerm<2>(GradMath<true>{g, x, dx, min, max}, n, lanes);
    hwy::FlushStream();
  } else {
    ForEachTerm<2>(GradMath<false>{g, x, dx, min, max}, n, lanes);
  }
}

void GradRows(const float* g, const float* x, float* dx, int64_t rows, int64_t stride,
              int64_t columns, const FakeQuantRanges& ranges, bool non_temporal,
              double* const* sums) {
  // A local copy of the pointers: the compiler would otherwise reload them after each store of a
  // sum.
  double* const to[] = {sums[0], sums[1]};
  if (non_temporal) {
    ForEachRowTerm<2>(GradRowsMath<true>{g, x, dx, ranges}, rows, stride, columns, to);
    hwy::FlushStream();
  } else {
    ForEachRowTerm<2>(GradRowsMath<false>{g, x, dx, ranges}, rows, stride, columns, to);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradflow {
namespace {

HWY_EXPORT(Finite);
HWY_EXPORT(ToFloats);
HWY_EXPORT(Columns);
HWY_EXPORT(Ranges);
HWY_EXPORT(Divide);
HWY_EXPORT(Multiply);
HWY_EXPORT(Integers);
HWY_EXPORT(Rows);
HWY_EXPORT(Grad);
HWY_EXPORT(GradSums);
HWY_EXPORT(GradRows);

}  // namespace

FakeQuantStep Nudge(const FakeQuantLevels& levels, float min, float max) {
  FakeQuantStep step;
  uint32_t keep = 0;
  NudgeColumns(levels, &min, &max, 1,
               {&step.min, &step.max, &step.scale, &step.inverse, &step.zero, &keep});
  return step;
}

bool AllFinite(const float* values, int64_t n) { return GRADFLOW_SIMD_DISPATCH(Finite)(values, n); }

void SumsToFloats(const double* sums, const float* min, const float* max, int64_t n,
                  float* result) {
  GRADFLOW_SIMD_DISPATCH(ToFloats)(sums, min, max, n, result);
}

void NudgeColumns(const FakeQuantLevels& levels, const float* min, const float* max, int64_t n,
                  const FakeQuantColumns& columns) {
  GRADFLOW_SIMD_DISPATCH(Columns)(levels, min, max, n, columns);
}

void NudgeRanges(const FakeQuantLevels& levels, const float* min, const float* max, int64_t n,
                 const FakeQuantRanges& ranges) {
  GRADFLOW_SIMD_DISPATCH(Ranges)(levels, min, max, n, ranges);
}

void FakeQuantDivide(const float* x, float* y, int64_t n, const FakeQuantStep& step,
                     bool non_temporal) {
  GRADFLOW_SIMD_DISPATCH(Divide)(x, y, n, step, non_temporal);
}

void FakeQuantMultiply(const float* x, float* y, int64_t n, const FakeQuantStep& step,
                       bool non_temporal) {
  GRADFLOW_SIMD_DISPATCH(Multiply)(x, y, n, step, non_temporal);
}

void FakeQuantIntegers(const float* x, uint8_t* y, int64_t n, const FakeQuantStep& step,
                       bool divides) {
  GRADFLOW_SIMD_DISPATCH(Integers)(x, y, n, step, divides);
}

void FakeQuantRows(const float* x, float* y, int64_t rows, int64_t stride, int64_t columns,
                   const FakeQuantColumns& steps, bool non_temporal) {
  GRADFLOW_SIMD_DISPATCH(Rows)(x, y, rows, stride, columns, steps, non_temporal);
}

void FakeQuantGrad(const float* g, const float* x, float* dx, int64_t n, float min, float max,
                   bool non_temporal) {
  GRADFLOW_SIMD_DISPATCH(Grad)(g, x, dx, n, min, max, non_temporal);
}

void FakeQuantGradSums(const float* g, const float* x, float* dx, int64_t n, float min, float max,
                       bool non_temporal, double* lanes) {
  GRADFLOW_SIMD_DISPATCH(GradSums)(g, x, dx, n, min, max, non_temporal, lanes);
}

void FakeQuantGradRows(const float* g, const float* x, float* dx, int64_t rows, int64_t stride,
                       int64_t columns, const FakeQuantRanges& ranges, bool non_temporal,
                       double* sum_below, double* sum_above) {
  double* const sums[] = {sum_below, sum_above};
  GRADFLOW_SIMD_DISPATCH(GradRows)(g, x, dx, rows, stride, columns, ranges, non_temporal, sums);
}

}  // namespace gradflow
#endif  // HWY_ONCE
