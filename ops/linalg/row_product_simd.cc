#include "gradflow/ops/linalg/row_product_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradflow/ops/linalg/row_product_simd.cc"
#include "gradflow/ops/common/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

// The number of rows of y that are added up before they are added to the result, so that the result
// is read and written less often. Sums of eight terms are also more precise than one long sum.
constexpr int64_t kRows = 8;

struct SumOfRows {
  const float* x;
  const float* y;
  int64_t stride;
  float* out;
  bool add;
  template <class D>
  HWY_INLINE void Run(D d, int64_t i) const {
    const float* const p = y + i;
    auto even = hn::Set(d, x[0]) * hn::LoadU(d, p);
    auto odd = hn::Set(d, x[1]) * hn::LoadU(d, p + stride);
    GRADFLOW_UNROLL
    for (int64_t r = 2; r < kRows; r += 2) {
      even = even + hn::Set(d, x[r]) * hn::LoadU(d, p + r * stride);
      odd = odd + hn::Set(d, x[r + 1]) * hn::LoadU(d, p + (r + 1) * stride);
    }
    auto sum = even + odd;
    if (add) sum = hn::LoadU(d, out + i) + sum;
    hn::StoreU(sum, d, out + i);
  }
};

struct OneRow {
  float x;
  const float* y;
  float* out;
  bool add;
  template <class D>
  HWY_INLINE void Run(D d, int64_t i) const {
    auto sum = hn::Set(d, x) * hn::LoadU(d, y + i);
    if (add) sum = hn::LoadU(d, out + i) + sum;
    hn::StoreU(sum, d, out + i);
  }
};

void RowTimesMatrix(int64_t n, int64_t k, const float* x, int64_t x_stride, const float* y,
                    int64_t y_stride, float* out, bool add) {
  int64_t p = 0;
  for (; p + kRows <= k; p += kRows) {
    float factors[kRows];
    for (int64_t r = 0; r < kRows; ++r) factors[r] = x[(p + r) * x_stride];
    ForEach(SumOfRows{factors, y + p * y_stride, y_stride, out, add}, n);
    add = true;
  }
  for (; p < k; ++p) {
    ForEach(OneRow{x[p * x_stride], y + p * y_stride, out, add}, n);
    add = true;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradflow {

HWY_EXPORT(RowTimesMatrix);

void MultiplyRow(int64_t n, int64_t k, const float* x, int64_t x_stride, const float* y,
                 int64_t y_stride, float* out, bool add) {
  GRADFLOW_SIMD_DISPATCH(RowTimesMatrix)(n, k, x, x_stride, y, y_stride, out, add);
}

}  // namespace gradflow
#endif  // HWY_ONCE
