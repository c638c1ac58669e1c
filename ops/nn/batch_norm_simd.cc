#include "gradflow/ops/nn/batch_norm_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradflow/ops/nn/batch_norm_simd.cc"
#include "gradflow/ops/nn/batch_norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

// The difference is computed in double. It is exact unless x and the shift differ greatly in
// magnitude.
struct MomentSums : Shift {
  template <class DD>
  HWY_INLINE void Add(DD, const V<DD>* x, V<DD> channel_shift, V<DD>* sums) const {
    const V<DD> difference = x[0] - channel_shift;
    sums[0] = sums[0] + difference;
    sums[1] = sums[1] + difference * difference;
  }
};

template <class D>
struct Normalize {
  V<D> mean;
  V<D> mean_rest;
  V<D> factor;
  V<D> offset;

  HWY_INLINE V<D> operator()(const V<D>* x) const {
    return (x[0] - mean - mean_rest) * factor + offset;
  }
};

struct NormalizeMap {
  BatchNormCoefficients c;

  template <class D>
  HWY_INLINE Normalize<D> Column(D d, int64_t j) const {
    return {hn::LoadU(d, c.mean + j), hn::LoadU(d, c.mean_rest + j), hn::LoadU(d, c.factor + j),
            hn::LoadU(d, c.offset + j)};
  }
  HWY_INLINE Normalize<Full> Channel(int64_t i) const {
    const Full d;
    return {hn::Set(d, c.mean[i]), hn::Set(d, c.mean_rest[i]), hn::Set(d, c.factor[i]),
            hn::Set(d, c.offset[i])};
  }
};

template <class Io>
HWY_INLINE void MomentsOfRowsOf(const void* x, const BatchNormRows& rows, const float* shift,
                                double* const* sums) {
  const typename Io::Element* const in[] = {Elements<Io>(x)};
  SumRows<Io, 1, 2>(MomentSums{{shift}}, in, rows, sums);
}

template <class Io, bool kNonTemporal>
HWY_INLINE void RowsForwardOf(const void* x, void* y, const BatchNormRows& rows,
                              const BatchNormCoefficients& coefficients) {
  const typename Io::Element* const in[] = {Elements<Io>(x)};
  MapRows<Io, 1, kNonTemporal>(NormalizeMap{coefficients}, in, Elements<Io>(y), rows);
  if (kNonTemporal) hwy::FlushStream();
}

template <class Io>
HWY_INLINE void MomentsOfPlanesOf(const void* x, const Planes& planes, const float* shift,
                                  double* lanes) {
  const MomentSums sums = {{shift}};
  ForEachRun(planes, [&](int64_t c, int64_t offset) HWY_ATTR {
    const typename Io::Element* const in[] = {Elements<Io>(x) + offset};
    typename Io::Element pad;
    Io::Store(One(), hn::Set(One(), shift[c]), &pad);
    SumRun<Io, 1, 2>(sums, c, in, planes.length, NextRun(planes, c), pad,
                     lanes + c * 2 * kSumLanes);
  });
}

template <class Io, bool kNonTemporal>
HWY_INLINE void PlanesForwardOf(const void* x, void* y, const Planes& planes,
                                const BatchNormCoefficients& coefficients) {
  const NormalizeMap map = {coefficients};
  ForEachRun(planes, [&](int64_t c, int64_t offset) HWY_ATTR {
    const typename Io::Element* const in[] = {Elements<Io>(x) + offset};
    MapRun<Io, 1, kNonTemporal>(map.Channel(c), in, Elements<Io>(y) + offset, planes.length);
  });
  if (kNonTemporal) hwy::FlushStream();
}

void RowMoments(ElementType type, const void* x, const BatchNormRows& rows, const float* shift,
                double* const* sums) {
  GRADFLOW_SIMD_SWITCH(type, MomentsOfRowsOf, x, rows, shift, sums);
}

void RowsForward(ElementType type, const void* x, void* y, const BatchNormRows& rows,
                 const BatchNormCoefficients& coefficients, bool non_temporal) {
  GRADFLOW_BATCH_NORM_SWITCH(type, non_temporal, RowsForwardOf, x, y, rows, coefficients);
}

void PlaneMoments(ElementType type, const void* x, const Planes& planes, const float* shift,
                  double* lanes) {
  GRADFLOW_SIMD_SWITCH(type, MomentsOfPlanesOf, x, planes, shift, lanes);
}

void PlanesForward(ElementType type, const void* x, void* y, const Planes& planes,
                   const BatchNormCoefficients& coefficients, bool non_temporal) {
  GRADFLOW_BATCH_NORM_SWITCH(type, non_temporal, PlanesForwardOf, x, y, planes, coefficients);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradflow {
namespace {

HWY_EXPORT(RowMoments);
HWY_EXPORT(RowsForward);
HWY_EXPORT(PlaneMoments);
HWY_EXPORT(PlanesForward);

}  // namespace

void BatchNormMomentsOfRows(ElementType type, const void* x, const BatchNormRows& rows,
                            const float* shift, double* sum, double* sum_of_squares) {
  double* const sums[] = {sum, sum_of_squares};
  GRADFLOW_SIMD_DISPATCH(RowMoments)(type, x, rows, shift, sums);
}

void BatchNormRowsForward(ElementType type, const void* x, void* y, const BatchNormRows& rows,
                          const BatchNormCoefficients& coefficients, bool non_temporal) {
  GRADFLOW_SIMD_DISPATCH(RowsForward)(type, x, y, rows, coefficients, non_temporal);
}

void BatchNormMomentsOfPlanes(ElementType type, const void* x, const Planes& planes,
                              const float* shift, double* lanes) {
  GRADFLOW_SIMD_DISPATCH(PlaneMoments)(type, x, planes, shift, lanes);
}

void BatchNormPlanesForward(ElementType type, const void* x, void* y, const Planes& planes,
                            const BatchNormCoefficients& coefficients, bool non_temporal) {
  GRADFLOW_SIMD_DISPATCH(PlanesForward)(type, x, y, planes, coefficients, non_temporal);
}

}  // namespace gradflow
#endif  // HWY_ONCE
