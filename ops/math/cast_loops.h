// The loops of Cast and Select, compiled for several instruction sets. Results are the same with
// all of them.
#ifndef GRADFLOW_OPS_MATH_CAST_LOOPS_H_
#define GRADFLOW_OPS_MATH_CAST_LOOPS_H_

#include <cstdint>

#include "gradflow/core/types.h"

namespace gradflow {

// Returns the intermediate type of a cast from `from`: double, float, uint64, int64 or int32. A
// cast consists of at most two loops. Types are the types that loops see, which are never half or
// bfloat16.
DataType IntermediateType(DataType from);

// Converts n elements of type `from_type` to its intermediate type. Takes the real part of complex
// numbers. REQUIRES: the types differ
void WidenElements(DataType from_type, const void* from, void* to, int64_t n);

// Converts n elements of an intermediate type to `to_type`. Complex numbers get imaginary part 0.
void NarrowElements(DataType from_type, DataType to_type, const void* from, void* to, int64_t n);

// Selects n elements of `size` bytes: the element of `t` if the byte of `condition` is not 0,
// otherwise the element of `e`. `size` is 1, 2, 4, 8 or 16. The stride of `t` and `e` is 1, or 0 to
// repeat one element.
void SelectElements(int size, const uint8_t* condition, const void* t, int64_t t_stride,
                    const void* e, int64_t e_stride, void* out, int64_t n);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_MATH_CAST_LOOPS_H_
