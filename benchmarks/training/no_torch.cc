// Used if libtorch is not installed.
#include "benchmarks/training/networks.h"

namespace gradflow::benchmarks {

Runner TorchStep(const Tensor&, const Tensor&, int) { return nullptr; }

}  // namespace gradflow::benchmarks
