#include "gradflow/ops/fake_quant_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradflow/ops/fake_quant_simd.cc"
#include "gradflow/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

// The comparisons are those of std::min and std::max, so that a NaN stays one.
template <class D>
HWY_INLINE V<D> Shift(V<D> x, V<D> min, V<D> max) {
  const V<D> below = hn::IfThenElse(max < x, max, x);
  return hn::IfThenElse(below < min, min, below) - min;
}

template <class D>
HWY_INLINE V<D> Quantise(D d, V<D> steps, V<D> zero, V<D> scale) {
  return hn::Floor(steps - zero + hn::Set(d, 0.5f)) * scale;
}

template <bool kDivide>
struct FlatMath {
  const float* x;
  float* y;
  FakeQuantStep step;

  template <class D>
  HWY_INLINE void Run(D d, int64_t i) const {
    const V<D> shift = Shift<D>(hn::LoadU(d, x + i), hn::Set(d, step.min), hn::Set(d, step.max));
    const V<D> scale = hn::Set(d, step.scale);
    const V<D> steps = kDivide ? shift / scale : shift * hn::Set(d, step.inverse);
    hn::StoreU(Quantise(d, steps, hn::Set(d, step.zero), scale), d, y + i);
  }
};

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
    hn::StoreU(hn::And(Quantise(d, shift * inverse, zero, scale), keep), d, y + i);
  }
};

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
    hn::StoreU(hn::LoadU(d, g + i) * mask, d, dx + i);
  }
  template <class D>
  HWY_INLINE void Run(D d, int64_t i, Wide<D>* sums) const {
    const V<D> value = hn::LoadU(d, x + i);
    const V<D> gradient = hn::LoadU(d, g + i);
    const V<D> low = hn::Set(d, min);
    const V<D> high = hn::Set(d, max);
    const auto inside = hn::And(value >= low, value <= high);
    hn::StoreU(gradient * hn::IfThenElseZero(inside, hn::Set(d, 1.0f)), d, dx + i);
    sums[0] = sums[0] + Wide<D>::Promote(d, hn::IfThenElseZero(value < low, gradient));
    sums[1] = sums[1] + Wide<D>::Promote(d, hn::IfThenElseZero(value > high, gradient));
  }
};

struct GradRowsMath {
  const float* g;
  const float* x;
  float* dx;
  FakeQuantRanges ranges;
  double* sum_below;
  double* sum_above;

  template <class D>
  HWY_INLINE void Run(D d, int64_t i, int64_t j) const {
    const V<D> low = hn::LoadU(d, ranges.min + j);
    const V<D> high = hn::LoadU(d, ranges.max + j);
    const V<D> outside = hn::LoadU(d, ranges.outside + j);
    const V<D> value = hn::LoadU(d, x + i);
    const V<D> gradient = hn::LoadU(d, g + i);
    const auto inside = hn::And(value >= low, value <= high);
    hn::StoreU(gradient * hn::IfThenElse(inside, hn::Set(d, 1.0f), outside), d, dx + i);
    const Wide<D> below = Wide<D>::Promote(d, hn::IfThenElseZero(value < low, gradient));
    const Wide<D> above = Wide<D>::Promote(d, hn::IfThenElseZero(value > high, gradient));
    (Wide<D>::Load(sum_below + j) + below).Store(sum_below + j);
    (Wide<D>::Load(sum_above + j) + above).Store(sum_above + j);
  }
};

void Divide(const float* x, float* y, int64_t n, const FakeQuantStep& step) {
  ForEach(FlatMath</*kDivide=*/true>{x, y, step}, n);
}

void Multiply(const float* x, float* y, int64_t n, const FakeQuantStep& step) {
  ForEach(FlatMath</*kDivide=*/false>{x, y, step}, n);
}

void Rows(const float* x, float* y, int64_t rows, int64_t stride, int64_t columns,
          const FakeQuantColumns& steps) {
  ForEachRow(RowsMath{x, y, steps}, rows, stride, columns);
}

void Grad(const float* g, const float* x, float* dx, int64_t n, float min, float max) {
  ForEach(GradMath{g, x, dx, min, max}, n);
}

void GradSums(const float* g, const float* x, float* dx, int64_t n, float min, float max,
              double* lanes) {
  ForEachSum<2>(GradMath{g, x, dx, min, max}, n, lanes);
}

void GradRows(const float* g, const float* x, float* dx, int64_t rows, int64_t stride,
              int64_t columns, const FakeQuantRanges& ranges, double* sum_below,
              double* sum_above) {
  ForEachRow(GradRowsMath{g, x, dx, ranges, sum_below, sum_above}, rows, stride, columns);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradflow {
namespace {

HWY_EXPORT(Divide);
HWY_EXPORT(Multiply);
HWY_EXPORT(Rows);
HWY_EXPORT(Grad);
HWY_EXPORT(GradSums);
HWY_EXPORT(GradRows);

}  // namespace

void FakeQuantDivide(const float* x, float* y, int64_t n, const FakeQuantStep& step) {
  GRADFLOW_SIMD_DISPATCH(Divide)(x, y, n, step);
}

void FakeQuantMultiply(const float* x, float* y, int64_t n, const FakeQuantStep& step) {
  GRADFLOW_SIMD_DISPATCH(Multiply)(x, y, n, step);
}

void FakeQuantRows(const float* x, float* y, int64_t rows, int64_t stride, int64_t columns,
                   const FakeQuantColumns& steps) {
  GRADFLOW_SIMD_DISPATCH(Rows)(x, y, rows, stride, columns, steps);
}

void FakeQuantGrad(const float* g, const float* x, float* dx, int64_t n, float min, float max) {
  GRADFLOW_SIMD_DISPATCH(Grad)(g, x, dx, n, min, max);
}

void FakeQuantGradSums(const float* g, const float* x, float* dx, int64_t n, float min, float max,
                       double* lanes) {
  GRADFLOW_SIMD_DISPATCH(GradSums)(g, x, dx, n, min, max, lanes);
}

void FakeQuantGradRows(const float* g, const float* x, float* dx, int64_t rows, int64_t stride,
                       int64_t columns, const FakeQuantRanges& ranges, double* sum_below,
                       double* sum_above) {
  GRADFLOW_SIMD_DISPATCH(GradRows)
  (g, x, dx, rows, stride, columns, ranges, sum_below, sum_above);
}

}  // namespace gradflow
#endif  // HWY_ONCE
