// The loops of Cast and Select, for the best instruction set of the processor. Results do not
// depend on it.
#ifndef GRADFLOW_OPS_MATH_CAST_LOOPS_H_
#define GRADFLOW_OPS_MATH_CAST_LOOPS_H_

#include <cstdint>

#include "gradflow/core/types.h"

namespace gradflow {

// Casts take up to two loops, through the intermediate type of the source: double, float, uint64,
// int64 or int32. Types are those of loops, without half and bfloat16.
DataType IntermediateType(DataType from);

// Sets n elements `to` of the intermediate type to those of type `from_type`, of complex numbers
// the real part. REQUIRES: the types differ
void WidenElements(DataType from_type, const void* from, void* to, int64_t n);

// Converts n elements of an intermediate type to `to_type`. Complex numbers get imaginary part 0.
void NarrowElements(DataType from_type, DataType to_type, const void* from, void* to, int64_t n);

// Sets n elements of `size` bytes, 1, 2, 4, 8 or 16, to those of `t` where the byte of `condition`
// is not 0, otherwise to those of `e`. A stride of `t` or `e` is 1, or 0 to repeat one element.
void SelectElements(int size, const uint8_t* condition, const void* t, int64_t t_stride,
                    const void* e, int64_t e_stride, void* out, int64_t n);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_MATH_CAST_LOOPS_H_
