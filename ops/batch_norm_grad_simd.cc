#include "gradflow/ops/batch_norm_grad_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradflow/ops/batch_norm_grad_simd.cc"
#include "gradflow/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

// The mean is subtracted in double: rounding in float could be off to the same side for all
// elements, which shows where the gradients have a large mean.
template <class D>
HWY_INLINE void AddSums(D d, V<D> dy, V<D> x, const Wide<D>& mean, Wide<D>& sum_dy,
                        Wide<D>& sum_product) {
  const Wide<D> wide_dy = Wide<D>::Promote(d, dy);
  sum_dy = sum_dy + wide_dy;
  sum_product = sum_product + wide_dy * (Wide<D>::Promote(d, x) - mean);
}

// One pass over rows: sums, and for kFrozen the result too.
template <class Io, bool kFrozen>
struct SumsOfRows {
  const typename Io::Element* dy;
  const typename Io::Element* x;
  typename Io::Element* dx;
  const float* mean;
  const float* factor;
  double* sum_dy;
  double* sum_product;

  template <class D>
  HWY_INLINE void Run(D d, int64_t i, int64_t j) const {
    const Wide<D> means = Wide<D>::Promote(d, hn::LoadU(d, mean + j));
    Wide<D> sums = Wide<D>::Load(sum_dy + j);
    Wide<D> products = Wide<D>::Load(sum_product + j);
    const V<D> gradient = Io::Load(d, dy + i);
    AddSums(d, gradient, Io::Load(d, x + i), means, sums, products);
    if (kFrozen) Io::Store(d, gradient * hn::LoadU(d, factor + j), dx + i);
    sums.Store(sum_dy + j);
    products.Store(sum_product + j);
  }
};

// The same over a run.
template <class Io, bool kFrozen>
struct SumsOfRun {
  const typename Io::Element* dy;
  const typename Io::Element* x;
  typename Io::Element* dx;
  float mean;
  float factor;

  template <class D>
  HWY_INLINE void Run(D d, int64_t i, Wide<D>* sums) const {
    const V<D> gradient = Io::Load(d, dy + i);
    AddSums(d, gradient, Io::Load(d, x + i), Wide<D>::Promote(d, hn::Set(d, mean)), sums[0],
            sums[1]);
    if (kFrozen) Io::Store(d, gradient * hn::Set(d, factor), dx + i);
  }
};

template <class D>
struct Backprop {
  V<D> mean;
  V<D> mean_dy;
  V<D> mean_dy_rest;
  V<D> slope;
  V<D> factor;

  HWY_INLINE V<D> operator()(V<D> dy, V<D> x) const {
    return (dy - mean_dy - ((x - mean) * slope + mean_dy_rest)) * factor;
  }
};

template <class Io>
struct RowsMath {
  const typename Io::Element* dy;
  const typename Io::Element* x;
  typename Io::Element* dx;
  BatchNormGradCoefficients c;

  template <class D>
  HWY_INLINE void Run(D d, int64_t i, int64_t j) const {
    const Backprop<D> backprop = {hn::LoadU(d, c.mean + j), hn::LoadU(d, c.mean_dy + j),
                                  hn::LoadU(d, c.mean_dy_rest + j), hn::LoadU(d, c.slope + j),
                                  hn::LoadU(d, c.factor + j)};
    Io::Store(d, backprop(Io::Load(d, dy + i), Io::Load(d, x + i)), dx + i);
  }
};

template <class Io>
struct RunMath {
  const typename Io::Element* dy;
  const typename Io::Element* x;
  typename Io::Element* dx;
  float mean;
  float mean_dy;
  float mean_dy_rest;
  float slope;
  float factor;

  template <class D>
  HWY_INLINE void Run(D d, int64_t i) const {
    const Backprop<D> backprop = {hn::Set(d, mean), hn::Set(d, mean_dy), hn::Set(d, mean_dy_rest),
                                  hn::Set(d, slope), hn::Set(d, factor)};
    Io::Store(d, backprop(Io::Load(d, dy + i), Io::Load(d, x + i)), dx + i);
  }
};

template <class Io>
HWY_INLINE void SumsOfRowsOf(const void* dy, const void* x, const BatchNormRows& rows,
                             const float* mean, double* sum_dy, double* sum_product) {
  ForEachRow(SumsOfRows<Io, false>{Elements<Io>(dy), Elements<Io>(x), nullptr, mean, nullptr,
                                   sum_dy, sum_product},
             rows.rows, rows.stride, rows.columns);
}

template <class Io>
HWY_INLINE void FrozenRowsOf(const void* dy, const void* x, void* dx, const BatchNormRows& rows,
                             const float* mean, const float* factor, double* sum_dy,
                             double* sum_product) {
  ForEachRow(SumsOfRows<Io, true>{Elements<Io>(dy), Elements<Io>(x), Elements<Io>(dx), mean, factor,
                                  sum_dy, sum_product},
             rows.rows, rows.stride, rows.columns);
}

template <class Io>
HWY_INLINE void GradRowsOf(const void* dy, const void* x, void* dx, const BatchNormRows& rows,
                           const BatchNormGradCoefficients& c) {
  ForEachRow(RowsMath<Io>{Elements<Io>(dy), Elements<Io>(x), Elements<Io>(dx), c}, rows.rows,
             rows.stride, rows.columns);
}

template <class Io>
HWY_INLINE void SumsOfRunOf(const void* dy, const void* x, int64_t n, float mean, double* lanes) {
  ForEachSum<2>(SumsOfRun<Io, false>{Elements<Io>(dy), Elements<Io>(x), nullptr, mean, 0}, n,
                lanes);
}

template <class Io>
HWY_INLINE void FrozenRunOf(const void* dy, const void* x, void* dx, int64_t n, float mean,
                            float factor, double* lanes) {
  ForEachSum<2>(
      SumsOfRun<Io, true>{Elements<Io>(dy), Elements<Io>(x), Elements<Io>(dx), mean, factor}, n,
      lanes);
}

template <class Io>
HWY_INLINE void GradRunOf(const void* dy, const void* x, void* dx, int64_t n,
                          const BatchNormGradCoefficients& c) {
  ForEach(RunMath<Io>{Elements<Io>(dy), Elements<Io>(x), Elements<Io>(dx), *c.mean, *c.mean_dy,
                      *c.mean_dy_rest, *c.slope, *c.factor},
          n);
}

void RowsSums(ElementType type, const void* dy, const void* x, const BatchNormRows& rows,
              const float* mean, double* sum_dy, double* sum_product) {
  GRADFLOW_SIMD_SWITCH(type, SumsOfRowsOf, dy, x, rows, mean, sum_dy, sum_product);
}

void Rows(ElementType type, const void* dy, const void* x, void* dx, const BatchNormRows& rows,
          const BatchNormGradCoefficients& coefficients) {
  GRADFLOW_SIMD_SWITCH(type, GradRowsOf, dy, x, dx, rows, coefficients);
}

void FrozenRows(ElementType type, const void* dy, const void* x, void* dx,
                const BatchNormRows& rows, const float* mean, const float* factor, double* sum_dy,
                double* sum_product) {
  GRADFLOW_SIMD_SWITCH(type, FrozenRowsOf, dy, x, dx, rows, mean, factor, sum_dy, sum_product);
}

void RunSums(ElementType type, const void* dy, const void* x, int64_t n, float mean,
             double* lanes) {
  GRADFLOW_SIMD_SWITCH(type, SumsOfRunOf, dy, x, n, mean, lanes);
}

void Run(ElementType type, const void* dy, const void* x, void* dx, int64_t n,
         const BatchNormGradCoefficients& coefficients) {
  GRADFLOW_SIMD_SWITCH(type, GradRunOf, dy, x, dx, n, coefficients);
}

void FrozenRun(ElementType type, const void* dy, const void* x, void* dx, int64_t n, float mean,
               float factor, double* lanes) {
  GRADFLOW_SIMD_SWITCH(type, FrozenRunOf, dy, x, dx, n, mean, factor, lanes);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradflow {
namespace {

HWY_EXPORT(RowsSums);
HWY_EXPORT(Rows);
HWY_EXPORT(FrozenRows);
HWY_EXPORT(RunSums);
HWY_EXPORT(Run);
HWY_EXPORT(FrozenRun);

}  // namespace

void BatchNormGradSumsOfRows(ElementType type, const void* dy, const void* x,
                             const BatchNormRows& rows, const float* mean, double* sum_dy,
                             double* sum_product) {
  GRADFLOW_SIMD_DISPATCH(RowsSums)(type, dy, x, rows, mean, sum_dy, sum_product);
}

void BatchNormGradRows(ElementType type, const void* dy, const void* x, void* dx,
                       const BatchNormRows& rows, const BatchNormGradCoefficients& coefficients) {
  GRADFLOW_SIMD_DISPATCH(Rows)(type, dy, x, dx, rows, coefficients);
}

void BatchNormFrozenGradRows(ElementType type, const void* dy, const void* x, void* dx,
                             const BatchNormRows& rows, const float* mean, const float* factor,
                             double* sum_dy, double* sum_product) {
  GRADFLOW_SIMD_DISPATCH(FrozenRows)
  (type, dy, x, dx, rows, mean, factor, sum_dy, sum_product);
}

void BatchNormGradSumsOfRun(ElementType type, const void* dy, const void* x, int64_t n, float mean,
                            double* lanes) {
  GRADFLOW_SIMD_DISPATCH(RunSums)(type, dy, x, n, mean, lanes);
}

void BatchNormGradRun(ElementType type, const void* dy, const void* x, void* dx, int64_t n,
                      const BatchNormGradCoefficients& coefficients) {
  GRADFLOW_SIMD_DISPATCH(Run)(type, dy, x, dx, n, coefficients);
}

void BatchNormFrozenGradRun(ElementType type, const void* dy, const void* x, void* dx, int64_t n,
                            float mean, float factor, double* lanes) {
  GRADFLOW_SIMD_DISPATCH(FrozenRun)(type, dy, x, dx, n, mean, factor, lanes);
}

}  // namespace gradflow
#endif  // HWY_ONCE
