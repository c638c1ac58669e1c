#include "gradflow/ops/batch_norm_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradflow/ops/batch_norm_simd.cc"
#include "gradflow/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

// The difference is taken in double, where it is exact unless x and the shift are far apart.
template <class D>
HWY_INLINE void AddMoments(D d, V<D> x, const Wide<D>& shift, Wide<D>& sum, Wide<D>& squares) {
  const Wide<D> difference = Wide<D>::Promote(d, x) - shift;
  sum = sum + difference;
  squares = squares + difference * difference;
}

template <class Io>
struct MomentsOfRows {
  const typename Io::Element* x;
  const float* shift;
  double* sum;
  double* sum_of_squares;

  template <class D>
  HWY_INLINE void Run(D d, int64_t i, int64_t j) const {
    const Wide<D> wide_shift = Wide<D>::Promote(d, hn::LoadU(d, shift + j));
    Wide<D> sums = Wide<D>::Load(sum + j);
    Wide<D> squares = Wide<D>::Load(sum_of_squares + j);
    AddMoments(d, Io::Load(d, x + i), wide_shift, sums, squares);
    sums.Store(sum + j);
    squares.Store(sum_of_squares + j);
  }
};

template <class Io>
struct MomentsOfRun {
  const typename Io::Element* x;
  float shift;

  template <class D>
  HWY_INLINE void Run(D d, int64_t i, Wide<D>* sums) const {
    AddMoments(d, Io::Load(d, x + i), Wide<D>::Promote(d, hn::Set(d, shift)), sums[0], sums[1]);
  }
};

template <class D>
struct Normalise {
  V<D> mean;
  V<D> mean_rest;
  V<D> factor;
  V<D> offset;

  static HWY_INLINE Normalise Load(D d, const BatchNormCoefficients& c, int64_t j) {
    return {hn::LoadU(d, c.mean + j), hn::LoadU(d, c.mean_rest + j), hn::LoadU(d, c.factor + j),
            hn::LoadU(d, c.offset + j)};
  }
  HWY_INLINE V<D> operator()(V<D> x) const { return (x - mean - mean_rest) * factor + offset; }
};

template <class Io>
struct RowsMath {
  const typename Io::Element* x;
  typename Io::Element* y;
  BatchNormCoefficients coefficients;

  template <class D>
  HWY_INLINE void Run(D d, int64_t i, int64_t j) const {
    const auto normalise = Normalise<D>::Load(d, coefficients, j);
    Io::Store(d, normalise(Io::Load(d, x + i)), y + i);
  }
};

template <class Io>
struct RunMath {
  const typename Io::Element* x;
  typename Io::Element* y;
  float mean;
  float mean_rest;
  float factor;
  float offset;

  template <class D>
  HWY_INLINE void Run(D d, int64_t i) const {
    const Normalise<D> normalise = {hn::Set(d, mean), hn::Set(d, mean_rest), hn::Set(d, factor),
                                    hn::Set(d, offset)};
    Io::Store(d, normalise(Io::Load(d, x + i)), y + i);
  }
};

template <class Io>
HWY_INLINE void MomentsOfRowsOf(const void* x, const BatchNormRows& rows, const float* shift,
                                double* sum, double* sum_of_squares) {
  ForEachRow(MomentsOfRows<Io>{Elements<Io>(x), shift, sum, sum_of_squares}, rows.rows, rows.stride,
             rows.columns);
}

template <class Io>
HWY_INLINE void RowsForwardOf(const void* x, void* y, const BatchNormRows& rows,
                              const BatchNormCoefficients& coefficients) {
  ForEachRow(RowsMath<Io>{Elements<Io>(x), Elements<Io>(y), coefficients}, rows.rows, rows.stride,
             rows.columns);
}

template <class Io>
HWY_INLINE void MomentsOfRunOf(const void* x, int64_t n, float shift, double* lanes) {
  ForEachSum<2>(MomentsOfRun<Io>{Elements<Io>(x), shift}, n, lanes);
}

template <class Io>
HWY_INLINE void RunForwardOf(const void* x, void* y, int64_t n,
                             const BatchNormCoefficients& coefficients) {
  ForEach(RunMath<Io>{Elements<Io>(x), Elements<Io>(y), *coefficients.mean, *coefficients.mean_rest,
                      *coefficients.factor, *coefficients.offset},
          n);
}

void Moments(ElementType type, const void* x, const BatchNormRows& rows, const float* shift,
             double* sum, double* sum_of_squares) {
  GRADFLOW_SIMD_SWITCH(type, MomentsOfRowsOf, x, rows, shift, sum, sum_of_squares);
}

void RowsForward(ElementType type, const void* x, void* y, const BatchNormRows& rows,
                 const BatchNormCoefficients& coefficients) {
  GRADFLOW_SIMD_SWITCH(type, RowsForwardOf, x, y, rows, coefficients);
}

void RunMoments(ElementType type, const void* x, int64_t n, float shift, double* lanes) {
  GRADFLOW_SIMD_SWITCH(type, MomentsOfRunOf, x, n, shift, lanes);
}

void RunForward(ElementType type, const void* x, void* y, int64_t n,
                const BatchNormCoefficients& coefficients) {
  GRADFLOW_SIMD_SWITCH(type, RunForwardOf, x, y, n, coefficients);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradflow {
namespace {

HWY_EXPORT(Moments);
HWY_EXPORT(RowsForward);
HWY_EXPORT(RunMoments);
HWY_EXPORT(RunForward);

}  // namespace

void BatchNormMomentsOfRows(ElementType type, const void* x, const BatchNormRows& rows,
                            const float* shift, double* sum, double* sum_of_squares) {
  GRADFLOW_SIMD_DISPATCH(Moments)(type, x, rows, shift, sum, sum_of_squares);
}

void BatchNormRowsForward(ElementType type, const void* x, void* y, const BatchNormRows& rows,
                          const BatchNormCoefficients& coefficients) {
  GRADFLOW_SIMD_DISPATCH(RowsForward)(type, x, y, rows, coefficients);
}

void BatchNormMomentsOfRun(ElementType type, const void* x, int64_t n, float shift, double* lanes) {
  GRADFLOW_SIMD_DISPATCH(RunMoments)(type, x, n, shift, lanes);
}

void BatchNormRunForward(ElementType type, const void* x, void* y, int64_t n,
                         const BatchNormCoefficients& coefficients) {
  GRADFLOW_SIMD_DISPATCH(RunForward)(type, x, y, n, coefficients);
}

}  // namespace gradflow
#endif  // HWY_ONCE
