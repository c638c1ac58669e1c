// Loops over contiguous elements that elementwise kernels share, for the best instruction set of
// the processor. Results have the same bits on all of them.
#ifndef GRADFLOW_OPS_COMMON_ELEMENTWISE_SIMD_H_
#define GRADFLOW_OPS_COMMON_ELEMENTWISE_SIMD_H_

#include <cstdint>

#include "gradflow/ops/common/simd.h"

namespace gradflow {

// Convert n numbers between 16 bits and float, as core/float16.h does. REQUIRES: `type` is not
// kFloat, and the arrays do not overlap
void Float16ToFloat(ElementType type, const void* from, float* to, int64_t n);
// Uses non-temporal stores if `non_temporal` and `to` is aligned to 64 bytes. Then call
// hwy::FlushStream() on the same thread afterwards.
void FloatToFloat16(ElementType type, const float* from, void* to, int64_t n, bool non_temporal);

// Copies bytes by non-temporal stores. REQUIRES: the arrays do not overlap. Stores plainly what
// shares a cache line with other data. Call hwy::FlushStream() on the same thread afterwards.
void CopyNonTemporal(const void* from, void* to, int64_t bytes);

// Directions of RoundToIntegers. kNearest rounds halves to even.
enum class Rounding { kDown, kUp, kNearest, kTowardsZero };
// Round n numbers to integers. `to` may be `from`.
void RoundToIntegers(Rounding rounding, const float* from, float* to, int64_t n);
void RoundToIntegers(Rounding rounding, const double* from, double* to, int64_t n);

// Store the square roots of n numbers, as IEEE 754 rounds them. `to` may be `from`.
void SquareRoots(const float* from, float* to, int64_t n);
void SquareRoots(const double* from, double* to, int64_t n);

// Each is an ElementwiseLoop (ops/common/elementwise.h) of float.
void AddFloats(const void* const* x, const int64_t* strides, void* out, int64_t n);
void SubtractFloats(const void* const* x, const int64_t* strides, void* out, int64_t n);
void MultiplyFloats(const void* const* x, const int64_t* strides, void* out, int64_t n);
// max(x, 0) and min(max(x, 0), 6). NaN stays NaN.
void RectifyFloats(const void* const* x, const int64_t* strides, void* out, int64_t n);
void Rectify6Floats(const void* const* x, const int64_t* strides, void* out, int64_t n);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_ELEMENTWISE_SIMD_H_
