// Arithmetic on the elements of the tensors that collectives merge.
#ifndef GRADFLOW_DISTRIBUTED_ELEMENTS_H_
#define GRADFLOW_DISTRIBUTED_ELEMENTS_H_

#include <cstdint>

#include "gradflow/core/collectives.h"
#include "gradflow/core/types.h"

namespace gradflow::distributed {

// Returns true for the types that can be merged: bfloat16, half, float, double, int32, int64.
bool CanMerge(DataType dtype);

// Sets target[i] = merge(target[i], source[i]) for `count` elements, in the precision of the type.
// REQUIRES: CanMerge(dtype); the arrays are the same or do not overlap
void MergeElements(DataType dtype, CollectiveMerge merge, void* target, const void* source,
                   int64_t count);

// Divides `count` elements by `divisor`, converted to the type. REQUIRES: CanMerge(dtype)
void DivideElements(DataType dtype, void* elements, int64_t count, int divisor);

}  // namespace gradflow::distributed

#endif  // GRADFLOW_DISTRIBUTED_ELEMENTS_H_
