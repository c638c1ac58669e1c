// The state of a random generator that lives in a variable (tf.random.Generator).
#ifndef GRADFLOW_OPS_RANDOM_GENERATOR_STATE_H_
#define GRADFLOW_OPS_RANDOM_GENERATOR_STATE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/tensor.h"
#include "gradflow/ops/random/streams.h"

namespace gradflow {

// The number of elements of the state: the low and the high half of the counter, and the key.
inline constexpr int kGeneratorStateSize = 3;

// Returns INVALID_ARGUMENT unless `algorithm` is Philox, which the CPU supports. ThreeFry is
// UNIMPLEMENTED.
absl::Status CheckGeneratorAlgorithm(int64_t algorithm);

// Reads the state in the variable of input `i`, and advances it by `outputs` times the counters
// that an output reserves. If `before` is not null, makes it the first elements of the old state.
// Returns INVALID_ARGUMENT and changes nothing if the variable is not a state.
absl::StatusOr<KeyAndCounter> AdvanceGenerator(KernelContext& ctx, int i, uint64_t outputs,
                                               Tensor* before = nullptr);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_RANDOM_GENERATOR_STATE_H_
