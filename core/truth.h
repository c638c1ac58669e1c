// TruthOf: converts a tensor to a condition, as If, While and ToBool do.
#ifndef GRADFLOW_CORE_TRUTH_H_
#define GRADFLOW_CORE_TRUTH_H_

#include "absl/status/statusor.h"
#include "gradflow/core/tensor.h"

#pragma GCC visibility push(default)
namespace gradflow {

// Returns true for a scalar that is not zero or, if it is a string, not empty. Returns true for a
// tensor of another shape if it has elements. Returns INVALID_ARGUMENT for all other scalars, such
// as complex numbers.
absl::StatusOr<bool> TruthOf(const Tensor& tensor);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_TRUTH_H_
