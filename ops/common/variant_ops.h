// Zeros and sums of variants: of lists of tensors, and of types with functions in VariantRegistry.
#ifndef GRADFLOW_OPS_COMMON_VARIANT_OPS_H_
#define GRADFLOW_OPS_COMMON_VARIANT_OPS_H_

#include "absl/status/status.h"
#include "gradflow/core/op_kernel.h"

namespace gradflow {

// Makes output 0 zeros of input 0, a tensor of variants. The zeros of a list are a list of zeros;
// elements that are not set stay so. Returns UNIMPLEMENTED for a type without such a function,
// INVALID_ARGUMENT for more than 64 levels of lists in lists.
absl::Status ZerosLikeVariants(KernelContext& ctx);

// Makes output 0 the sums of the elements of all inputs, tensors of variants of one shape. The sum
// of lists is the list of the sums of their elements. An element that is not set, or has no value,
// adds nothing. Returns INVALID_ARGUMENT if values have different types, or lists different sizes;
// otherwise as ZerosLikeVariants().
absl::Status AddVariants(KernelContext& ctx);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_VARIANT_OPS_H_
