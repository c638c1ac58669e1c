// Loops over contiguous elements that elementwise kernels share, compiled for several instruction
// sets. Results have the same bits with all of them.
#ifndef GRADFLOW_OPS_COMMON_ELEMENTWISE_SIMD_H_
#define GRADFLOW_OPS_COMMON_ELEMENTWISE_SIMD_H_

#include <cstdint>

#include "gradflow/ops/common/simd.h"

namespace gradflow {

// Converts n numbers between a 16-bit type and float, like core/float16.h. REQUIRES: `type` is not
// kFloat, and the arrays do not overlap
void Float16ToFloat(ElementType type, const void* from, float* to, int64_t n);
// Uses non-temporal stores if `non_temporal` is true and `to` is aligned to 64 bytes. After
// non-temporal stores, call hwy::FlushStream() on the same thread.
void FloatToFloat16(ElementType type, const float* from, void* to, int64_t n, bool non_temporal);

// Copies bytes with non-temporal stores. Cache lines that are shared with other data are written
// with plain stores. Call hwy::FlushStream() on the same thread afterwards.
// REQUIRES: the arrays do not overlap
void CopyNonTemporal(const void* from, void* to, int64_t bytes);

// Rounding directions of RoundToIntegers. kNearest rounds halves to even.
enum class Rounding { kDown, kUp, kNearest, kTowardsZero };
// Rounds n numbers to integers. `to` may be `from`.
void RoundToIntegers(Rounding rounding, const float* from, float* to, int64_t n);
void RoundToIntegers(Rounding rounding, const double* from, double* to, int64_t n);

// Stores the square roots of n numbers, rounded as in IEEE 754. `to` may be `from`.
void SquareRoots(const float* from, float* to, int64_t n);
void SquareRoots(const double* from, double* to, int64_t n);

// Float loops with the signature ElementwiseLoop (ops/common/elementwise.h).
void AddFloats(const void* const* x, const int64_t* strides, void* out, int64_t n);
void SubtractFloats(const void* const* x, const int64_t* strides, void* out, int64_t n);
void MultiplyFloats(const void* const* x, const int64_t* strides, void* out, int64_t n);
// max(x, 0) and min(max(x, 0), 6). NaN stays NaN.
void ReluFloats(const void* const* x, const int64_t* strides, void* out, int64_t n);
void Relu6Floats(const void* const* x, const int64_t* strides, void* out, int64_t n);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_ELEMENTWISE_SIMD_H_
