// Accumulation of one tensor's elements into another tensor, for scatter ops and their gradients.
#ifndef GRADFLOW_OPS_COMMON_ACCUMULATE_H_
#define GRADFLOW_OPS_COMMON_ACCUMULATE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "gradflow/core/run_context.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/types.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow {

// The operation that combines an element `to` of the result with an element `from`.
enum class Accumulation {
  // The result is `from`.
  kUpdate,
  // to + from. Bools are combined with "or", strings are concatenated. Integers wrap around, here
  // and in kSub and kMul.
  kAdd,
  // to - from. For bools: true if they differ.
  kSub,
  // to * from
  kMul,
  // to / from. Integer quotients are truncated towards 0. REQUIRES: no integer divisor is 0
  kDiv,
  // The smaller or larger element; `to` if either is NaN.
  kMin,
  kMax,
};

// Accumulates n elements. Strides are in elements. 16-bit floats are computed in float and rounded.
using AccumulateFn = void (*)(void* to, int64_t to_stride, const void* from, int64_t from_stride,
                              int64_t n);

// Returns the function for elements of a type, or null if the type does not support the
// accumulation.
AccumulateFn FindAccumulation(Accumulation accumulation, DataType dtype);
// Returns the types that support an accumulation, without bool and string.
DataTypeVector AccumulationTypes(Accumulation accumulation);

// Accumulates a block of shape `dims`. `from` locates the block in `source`, `to` in `target`.
// REQUIRES: the conditions of CopyStrided hold, and the type supports the accumulation `fn`
void AccumulateStrided(const RunContext& run, AccumulateFn fn, absl::Span<const int64_t> dims,
                       const Tensor& source, StridedLoop::Operand from, Tensor* target,
                       StridedLoop::Operand to);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_ACCUMULATE_H_
