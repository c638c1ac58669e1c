// Accumulates elements of one tensor into another, for scatter ops and their gradients.
#ifndef GRADFLOW_OPS_COMMON_ACCUMULATE_H_
#define GRADFLOW_OPS_COMMON_ACCUMULATE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "gradflow/core/run_context.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/types.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow {

// The function that combines an element `to` of the result with an element `from`.
enum class Accumulation {
  // from
  kUpdate,
  // to + from; the disjunction of bools, the concatenation of strings. Integers wrap around.
  kAdd,
  // to - from; of bools, whether they differ.
  kSub,
  kMul,
  // Integers are truncated towards 0. REQUIRES: no divisor is 0
  kDiv,
  // The lesser or greater; `to` if either is NaN.
  kMin,
  kMax,
};

// Accumulates n elements. Strides are in elements. 16-bit floats are computed in float and rounded.
using AccumulateFn = void (*)(void* to, int64_t to_stride, const void* from, int64_t from_stride,
                              int64_t n);

// Returns null if the type has no such accumulation.
AccumulateFn FindAccumulation(Accumulation accumulation, DataType dtype);
// Returns the types of an accumulation except bool and string.
DataTypeVector AccumulationTypes(Accumulation accumulation);

// Accumulates a block of shape `dims` of `source`, where `from` locates its elements, into
// `target`, where `to` does. REQUIRES: as of CopyStrided, and the type has the accumulation `fn`
void AccumulateStrided(const RunContext& run, AccumulateFn fn, absl::Span<const int64_t> dims,
                       const Tensor& source, StridedLoop::Operand from, Tensor* target,
                       StridedLoop::Operand to);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_ACCUMULATE_H_
