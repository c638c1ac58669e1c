// Used if libtorch is not installed.
#include "benchmarks/ops/cases.h"

namespace gradflow::benchmarks {

Runner TorchUnique(const Tensor&, int) { return nullptr; }
Runner TorchSegmentSum(const Tensor&, const Tensor&, int64_t, int) { return nullptr; }
Runner TorchNormal(int64_t, int) { return nullptr; }
Runner TorchTopK(const Tensor&, int, int) { return nullptr; }

}  // namespace gradflow::benchmarks
