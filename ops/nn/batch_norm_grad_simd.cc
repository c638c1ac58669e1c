#include "gradflow/ops/nn/batch_norm_grad_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradflow/ops/nn/batch_norm_grad_simd.cc"
#include "gradflow/ops/nn/batch_norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

// Sums of dy and of dy * (x - mean). The mean is subtracted from each x. Subtracting it from the
// sum of dy * x at the end would be inexact: rounding errors in the same direction could exceed the
// difference.
struct GradSums : Shift {
  template <class DD>
  HWY_INLINE void Add(DD, const V<DD>* dy_and_x, V<DD> channel_mean, V<DD>* sums) const {
    sums[0] = sums[0] + dy_and_x[0];
    sums[1] = sums[1] + dy_and_x[0] * (dy_and_x[1] - channel_mean);
  }
};

template <class D>
struct Backprop {
  V<D> mean;
  V<D> mean_dy;
  V<D> mean_dy_rest;
  V<D> slope;
  V<D> factor;

  HWY_INLINE V<D> operator()(const V<D>* dy_and_x) const {
    return (dy_and_x[0] - mean_dy - ((dy_and_x[1] - mean) * slope + mean_dy_rest)) * factor;
  }
};

struct BackpropMap {
  BatchNormGradCoefficients c;

  template <class D>
  HWY_INLINE Backprop<D> Column(D d, int64_t j) const {
    return {hn::LoadU(d, c.mean + j), hn::LoadU(d, c.mean_dy + j), hn::LoadU(d, c.mean_dy_rest + j),
            hn::LoadU(d, c.slope + j), hn::LoadU(d, c.factor + j)};
  }
  HWY_INLINE Backprop<Full> Channel(int64_t i) const {
    const Full d;
    return {hn::Set(d, c.mean[i]), hn::Set(d, c.mean_dy[i]), hn::Set(d, c.mean_dy_rest[i]),
            hn::Set(d, c.slope[i]), hn::Set(d, c.factor[i])};
  }
};

template <class D>
struct ScaleBy {
  V<D> factor;

  HWY_INLINE V<D> operator()(const V<D>* dy) const { return dy[0] * factor; }
};

struct ScaleMap {
  const float* factor;

  template <class D>
  HWY_INLINE ScaleBy<D> Column(D d, int64_t j) const {
    return {hn::LoadU(d, factor + j)};
  }
};

template <class Io>
HWY_INLINE void SumsOfRowsOf(const void* dy, const void* x, const BatchNormRows& rows,
                             const float* mean, double* const* sums) {
  const typename Io::Element* const in[] = {Elements<Io>(dy), Elements<Io>(x)};
  SumRows<Io, 2, 2>(GradSums{{mean}}, in, rows, sums);
}

template <class Io, bool kNonTemporal>
HWY_INLINE void GradRowsOf(const void* dy, const void* x, void* dx, const BatchNormRows& rows,
                           const BatchNormGradCoefficients& c) {
  const typename Io::Element* const in[] = {Elements<Io>(dy), Elements<Io>(x)};
  MapRows<Io, 2, kNonTemporal>(BackpropMap{c}, in, Elements<Io>(dx), rows);
  if (kNonTemporal) hwy::FlushStream();
}

template <class Io, bool kNonTemporal>
HWY_INLINE void FrozenRowsOf(const void* dy, const void* x, void* dx, const BatchNormRows& rows,
                             const float* mean, const float* factor, double* const* sums) {
  // One row at a time, so that it is still in the L1 cache when it is scaled.
  for (int64_t row = 0; row < rows.rows; ++row) {
    const BatchNormRows one = {1, rows.stride, rows.columns};
    const int64_t offset = row * rows.stride;
    const typename Io::Element* const in[] = {Elements<Io>(dy) + offset, Elements<Io>(x) + offset};
    SumRows<Io, 2, 2>(GradSums{{mean}}, in, one, sums);
    MapRows<Io, 1, kNonTemporal>(ScaleMap{factor}, in, Elements<Io>(dx) + offset, one);
  }
  if (kNonTemporal) hwy::FlushStream();
}

template <class Io>
HWY_INLINE void SumsOfPlanesOf(const void* dy, const void* x, const Planes& planes,
                               const float* mean, double* lanes) {
  ForEachRun(planes, [&](int64_t c, int64_t offset) HWY_ATTR {
    const typename Io::Element* const in[] = {Elements<Io>(dy) + offset, Elements<Io>(x) + offset};
    SumRun<Io, 2, 2>(GradSums{{mean}}, c, in, planes.length, NextRun(planes, c), 0,
                     lanes + c * 2 * kSumLanes);
  });
}

template <class Io, bool kNonTemporal>
HWY_INLINE void GradPlanesOf(const void* dy, const void* x, void* dx, const Planes& planes,
                             const BatchNormGradCoefficients& coefficients) {
  const BackpropMap map = {coefficients};
  ForEachRun(planes, [&](int64_t c, int64_t offset) HWY_ATTR {
    const typename Io::Element* const in[] = {Elements<Io>(dy) + offset, Elements<Io>(x) + offset};
    MapRun<Io, 2, kNonTemporal>(map.Channel(c), in, Elements<Io>(dx) + offset, planes.length);
  });
  if (kNonTemporal) hwy::FlushStream();
}

template <class Io, bool kNonTemporal>
HWY_INLINE void FrozenPlanesOf(const void* dy, const void* x, void* dx, const Planes& planes,
                               const float* mean, const float* factor, double* lanes) {
  // The number of elements processed at a time: few enough to stay in the L1 cache until they are
  // scaled.
  constexpr int64_t kElements = 2048;
  ForEachRun(planes, [&](int64_t c, int64_t offset) HWY_ATTR {
    const ScaleBy<Full> scale = {hn::Set(Full(), factor[c])};
    for (int64_t i = 0; i < planes.length; i += kElements) {
      const int64_t n = HWY_MIN(planes.length - i, kElements);
      const typename Io::Element* const in[] = {Elements<Io>(dy) + offset + i,
                                                Elements<Io>(x) + offset + i};
      SumRun<Io, 2, 2>(GradSums{{mean}}, c, in, n, n, 0, lanes + c * 2 * kSumLanes);
      MapRun<Io, 1, kNonTemporal>(scale, in, Elements<Io>(dx) + offset + i, n);
    }
  });
  if (kNonTemporal) hwy::FlushStream();
}

void RowsSums(ElementType type, const void* dy, const void* x, const BatchNormRows& rows,
              const float* mean, double* const* sums) {
  GRADFLOW_SIMD_SWITCH(type, SumsOfRowsOf, dy, x, rows, mean, sums);
}

void Rows(ElementType type, const void* dy, const void* x, void* dx, const BatchNormRows& rows,
          const BatchNormGradCoefficients& coefficients, bool non_temporal) {
  GRADFLOW_BATCH_NORM_SWITCH(type, non_temporal, GradRowsOf, dy, x, dx, rows, coefficients);
}

void FrozenRows(ElementType type, const void* dy, const void* x, void* dx,
                const BatchNormRows& rows, const float* mean, const float* factor,
                bool non_temporal, double* const* sums) {
  GRADFLOW_BATCH_NORM_SWITCH(type, non_temporal, FrozenRowsOf, dy, x, dx, rows, mean, factor, sums);
}

void PlanesSums(ElementType type, const void* dy, const void* x, const Planes& planes,
                const float* mean, double* lanes) {
  GRADFLOW_SIMD_SWITCH(type, SumsOfPlanesOf, dy, x, planes, mean, lanes);
}

void PlanesGrad(ElementType type, const void* dy, const void* x, void* dx, const Planes& planes,
                const BatchNormGradCoefficients& coefficients, bool non_temporal) {
  GRADFLOW_BATCH_NORM_SWITCH(type, non_temporal, GradPlanesOf, dy, x, dx, planes, coefficients);
}

void FrozenPlanes(ElementType type, const void* dy, const void* x, void* dx, const Planes& planes,
                  const float* mean, const float* factor, bool non_temporal, double* lanes) {
  GRADFLOW_BATCH_NORM_SWITCH(type, non_temporal, FrozenPlanesOf, dy, x, dx, planes, mean, factor,
                             lanes);
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
HWY_EXPORT(PlanesSums);
HWY_EXPORT(PlanesGrad);
HWY_EXPORT(FrozenPlanes);

}  // namespace

void BatchNormGradSumsOfRows(ElementType type, const void* dy, const void* x,
                             const BatchNormRows& rows, const float* mean, double* sum_dy,
                             double* sum_product) {
  double* const sums[] = {sum_dy, sum_product};
  GRADFLOW_SIMD_DISPATCH(RowsSums)(type, dy, x, rows, mean, sums);
}

void BatchNormGradRows(ElementType type, const void* dy, const void* x, void* dx,
                       const BatchNormRows& rows, const BatchNormGradCoefficients& coefficients,
                       bool non_temporal) {
  GRADFLOW_SIMD_DISPATCH(Rows)(type, dy, x, dx, rows, coefficients, non_temporal);
}

void BatchNormFrozenGradRows(ElementType type, const void* dy, const void* x, void* dx,
                             const BatchNormRows& rows, const float* mean, const float* factor,
                             bool non_temporal, double* sum_dy, double* sum_product) {
  double* const sums[] = {sum_dy, sum_product};
  GRADFLOW_SIMD_DISPATCH(FrozenRows)(type, dy, x, dx, rows, mean, factor, non_temporal, sums);
}

void BatchNormGradSumsOfPlanes(ElementType type, const void* dy, const void* x,
                               const Planes& planes, const float* mean, double* lanes) {
  GRADFLOW_SIMD_DISPATCH(PlanesSums)(type, dy, x, planes, mean, lanes);
}

void BatchNormGradPlanes(ElementType type, const void* dy, const void* x, void* dx,
                         const Planes& planes, const BatchNormGradCoefficients& coefficients,
                         bool non_temporal) {
  GRADFLOW_SIMD_DISPATCH(PlanesGrad)(type, dy, x, dx, planes, coefficients, non_temporal);
}

void BatchNormFrozenGradPlanes(ElementType type, const void* dy, const void* x, void* dx,
                               const Planes& planes, const float* mean, const float* factor,
                               bool non_temporal, double* lanes) {
  GRADFLOW_SIMD_DISPATCH(FrozenPlanes)(type, dy, x, dx, planes, mean, factor, non_temporal, lanes);
}

}  // namespace gradflow
#endif  // HWY_ONCE
