#include "gradflow/core/fused_steps.h"

#include <algorithm>

#include "gradflow/core/parallel.h"

namespace gradflow {

void ApplyToAll(const RunContext& run, const FusedSteps& steps, Tensor* result) {
  const int64_t columns = result->dims() == 0 ? 1 : result->dim_size(result->dims() - 1);
  if (result->NumElements() == 0) return;
  float* const data = static_cast<float*>(result->raw_data());
  const int64_t block = BlockSizeForCost(1.0 * static_cast<double>(columns));
  ParallelFor(run, result->NumElements() / columns, block, [&](int64_t begin, int64_t end) {
    steps.Apply({data + begin * columns, columns, begin, end - begin, 0, columns});
  });
}

}  // namespace gradflow
