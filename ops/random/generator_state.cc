#include "gradflow/ops/random/generator_state.h"

#include "gradflow/core/status.h"
#include "gradflow/core/variable.h"

namespace gradflow {

absl::Status CheckGeneratorAlgorithm(int64_t algorithm) {
  constexpr int64_t kPhiloxAlgorithm = 1;
  constexpr int64_t kThreeFryAlgorithm = 2;
  constexpr int64_t kAnyAlgorithm = 3;
  if (algorithm == kPhiloxAlgorithm || algorithm == kAnyAlgorithm) return absl::OkStatus();
  if (algorithm == kThreeFryAlgorithm) {
    return errors::Unimplemented("algorithm 2 (ThreeFry) is not available on the CPU");
  }
  return errors::InvalidArgument("algorithm must be 1 (Philox) or 3 (automatic), but is ",
                                 algorithm);
}

absl::StatusOr<KeyAndCounter> AdvanceGenerator(KernelContext& ctx, int i, uint64_t outputs,
                                               Tensor* before) {
  VariableUpdate update;
  GRADFLOW_RETURN_IF_ERROR(update.Begin(ctx, {i}, DT_INT64));
  const TensorShape& shape = update.value(0).shape();
  if (shape.dims() != 1 || shape.dim_size(0) < kGeneratorStateSize) {
    return errors::InvalidArgument("the state of a generator must be a vector of at least ",
                                   kGeneratorStateSize, " elements, but has shape ",
                                   shape.DebugString());
  }
  GRADFLOW_RETURN_IF_ERROR(update.MakeWritable());
  const auto state = update.value(0).span<int64_t>();
  if (before != nullptr) {
    for (int k = 0; k < kGeneratorStateSize; ++k) before->span<int64_t>()[k] = state[k];
  }
  const auto low = static_cast<uint64_t>(state[0]);
  const auto high = static_cast<uint64_t>(state[1]);
  const uint64_t sum = low + outputs * kCountersPerOutput;
  state[0] = static_cast<int64_t>(sum);
  state[1] = static_cast<int64_t>(high + (sum < low ? 1 : 0));
  return KeyAndCounter{static_cast<uint64_t>(state[2]), {low, high}};
}

}  // namespace gradflow
